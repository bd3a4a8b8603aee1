"""The running sums of one model over one corpus; they can be added to, merged and stored in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import Chunk, Coreference
from mha_viz.analysis.distance import Distances
from mha_viz.analysis.evidence import Cases, Selection
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.patterns import Patterns
from mha_viz.analysis.reduce import Batch, Running, word_block
from mha_viz.analysis.syntax import Relations, Syntax, Tree, joined
from mha_viz.files import arrays_in, whole_file

CASES = "cases"  # of the arrays for evidence
BY_DOCUMENT = ("syntax/correct", "coreference/correct", "coreference/n", "coreference/baseline")


class Tally:
    """All measures of one pass. ``done`` and ``chunks_done`` mark the sentences and chunks that are included; ``whole``
    is False after an interrupted merge, when some sums include sentences that others lack.

    ``present``: the numbers of the documents that have rows in the sums by document, ascending; all of them or, for a
    part of the corpus, those of its sentences. ``selection``: the cases that are recorded as evidence, if any.
    """

    def __init__(
        self,
        heads: int,
        relations: Relations,
        documents: Documents,
        chunks: int,
        sentences: Sequence[int] | None = None,
        evidence: bool = False,
        first: int = 0,
        whole: Tally | None = None,
    ) -> None:
        """``sentences``: the numbers of those that will be added, None for any; ``evidence``: whether cases are
        recorded; ``first``: the number of the first sentence of ``documents``, for a part of a corpus; ``whole``: the
        sums that these will be merged into, if they are at hand."""
        self.documents, self.first = documents, first
        some = np.arange(documents.count) if sentences is None else np.unique(self._documents(sentences))
        self.present = some.astype(np.int64)
        self.patterns = Patterns(heads)
        self.distances = Distances(heads)
        self.syntax = Syntax(relations, heads, len(some))
        self.coreference = Coreference(heads, len(some))
        of_whole: Selection | None = whole.selection if whole else None
        self.selection: Selection | None = Selection(relations, heads, of_whole) if evidence else None
        self.gap: Running = {
            "correct": np.zeros((2, heads), np.int64),
            "n": np.zeros(2, np.int64),
            "scored": np.zeros(len(documents.numbers), bool),
        }
        self.done = np.zeros(len(documents.numbers), bool)
        self.chunks_done = np.zeros(chunks, bool)
        self.whole = True

    def add(self, batch: Batch, trees: Mapping[int, Tree]) -> None:
        """Add whole sentences; ``trees``: the dependency trees of the annotated ones, by number."""
        self.patterns.add(batch, self.distances.add(batch))
        with_tree = [
            (at, number) for at, number in enumerate(batch.numbers) if number in trees and len(trees[number].heads) > 1
        ]
        if with_tree:
            blocks = [word_block(batch.weights[:, at], batch.pieces[at].words) for at, _ in with_tree]
            numbers = [number for _, number in with_tree]
            sentences = joined(blocks, [trees[number] for number in numbers])
            self.syntax.add(sentences, numbers, self._rows(numbers))
            if self.selection is not None:
                self.selection.add_syntax(sentences, blocks, numbers)
        if self.selection is not None:
            self.selection.add(batch)
        self.done[[number - self.first for number in batch.numbers]] = True

    def add_chunks(self, batch: Batch, chunks: Mapping[int, Chunk]) -> None:
        """Add chunks of several sentences; ``batch.numbers`` are the numbers of the chunks."""
        for at, number in enumerate(batch.numbers):
            (row,) = self._rows(chunks[number].numbers[:1])
            block = word_block(batch.weights[:, at], batch.pieces[at].words)
            self.coreference.add(block, chunks[number], row)
            if self.selection is not None:
                self.selection.add_coreference(block, chunks[number])
        self.chunks_done[list(batch.numbers)] = True

    def _rows(self, sentences: Sequence[int]) -> list[int]:
        """The rows of these sentences' documents in the sums by document."""
        rows: list[int] = np.searchsorted(self.present, self._documents(sentences)).tolist()
        return rows

    def _documents(self, sentences: Sequence[int]) -> npt.NDArray[np.intp]:
        documents: npt.NDArray[np.intp] = self.documents.numbers[[number - self.first for number in sentences]]
        return documents

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All arrays by name, not copied."""
        parts: dict[str, Running] = {
            "patterns": self.patterns.sums,
            "distances": self.distances.sums,
            "syntax": self.syntax.sums,
            "coreference": self.coreference.sums,
            "gap": self.gap,
            "done": {"sentences": self.done, "chunks": self.chunks_done},
        }
        return {f"{part}/{name}": array for part, sums in parts.items() for name, array in sums.items()}

    def merge(self, other: Tally) -> None:
        """Add the sums of ``other``, over other sentences of the same corpus."""
        self.add_sums(other.arrays(), other.present, None if other.selection is None else other.selection.unsorted)

    def add_sums(
        self, arrays: Mapping[str, npt.NDArray[Any]], present: npt.NDArray[np.int64], cases: Cases | None = None
    ) -> None:
        """Add sums by name, in the form of :meth:`arrays`, with rows for the documents ``present`` and the cases of
        another selection. Raises ValueError if they belong to another corpus."""
        mine = self.arrays()
        expected = {
            name: (len(present), *array.shape[1:]) if name in BY_DOCUMENT else array.shape
            for name, array in mine.items()
        }
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != expected or not np.isin(present, self.present).all():
            raise ValueError("sums of another corpus")
        if self.selection is not None and cases is not None:
            self.selection.check(cases)
        rows = np.searchsorted(self.present, present)
        before, self.whole = self.whole, False
        for name, array in mine.items():
            at = rows if name in BY_DOCUMENT else ...
            array[at] = (array[at] | arrays[name]) if array.dtype == bool else array[at] + arrays[name]
        if self.selection is not None and cases is not None:
            self.selection.merge(cases)
        self.whole = before

    def save(self, path: Path, key: Mapping[str, Any]) -> None:
        """Write the sums to one file atomically. ``key`` identifies model, corpus and definitions."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            cases = {} if self.selection is None else {CASES: self.selection.cases}
            arrays = self.arrays() | cases
            np.savez(file, key=np.array(json.dumps(key, sort_keys=True)), **arrays)  # type: ignore[arg-type]

    def resume(self, path: Path, key: Mapping[str, Any]) -> bool:
        """Add the sums of a file that :meth:`save` wrote with the same key; False when there is none."""
        try:
            arrays = arrays_in(path)
            if str(arrays.pop("key")) != json.dumps(key, sort_keys=True):
                return False
            cases = None if self.selection is None else arrays.pop(CASES)
            arrays.pop(CASES, None)
            self.add_sums(arrays, self.present, cases)
        except (OSError, ValueError, KeyError):
            return False
        return True
