"""The running sums of one model over one corpus; they can be added to, merged and stored in one file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import Chunk, Coreference
from mha_viz.analysis.distance import Distances
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.patterns import Patterns
from mha_viz.analysis.reduce import Batch, Running, word_block
from mha_viz.analysis.syntax import Relations, Syntax, Tree
from mha_viz.files import whole_file

BY_DOCUMENT = ("syntax/correct", "coreference/correct", "coreference/n", "coreference/baseline")


class Tally:
    """All measures of one pass. ``done`` and ``chunks_done`` mark the sentences and chunks that are included;
    ``whole`` is False after an interrupted merge, when some sums include what others lack.

    ``present``: the numbers of the documents that have rows in the sums by document, ascending; all of them, or for a
    part of the corpus those of its own sentences.
    """

    def __init__(
        self,
        heads: int,
        relations: Relations,
        documents: Documents,
        chunks: int,
        sentences: Sequence[int] | None = None,
    ) -> None:
        """``sentences``: the numbers of those that will be added; None for any."""
        self.documents = documents
        some = np.arange(documents.count) if sentences is None else np.unique(documents.numbers[list(sentences)])
        self.present = some.astype(np.int64)
        self.patterns = Patterns(heads)
        self.distances = Distances(heads)
        self.syntax = Syntax(relations, heads, len(some))
        self.coreference = Coreference(heads, len(some))
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
        blocks = (word_block(batch.weights[:, at], batch.pieces[at].words) for at, _ in with_tree)
        numbers = [number for _, number in with_tree]
        self.syntax.add(blocks, [trees[number] for number in numbers], numbers, self._rows(numbers))
        self.done[list(batch.numbers)] = True

    def add_chunks(self, batch: Batch, chunks: Mapping[int, Chunk]) -> None:
        """Add chunks of several sentences; ``batch.numbers`` are the numbers of the chunks."""
        for at, number in enumerate(batch.numbers):
            (row,) = self._rows(chunks[number].numbers[:1])
            self.coreference.add(word_block(batch.weights[:, at], batch.pieces[at].words), chunks[number], row)
        self.chunks_done[list(batch.numbers)] = True

    def _rows(self, sentences: Sequence[int]) -> list[int]:
        """Where the documents of these sentences stand in the sums by document."""
        rows: list[int] = np.searchsorted(self.present, self.documents.numbers[list(sentences)]).tolist()
        return rows

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
        self._add(other.arrays(), other.present)

    def _add(self, arrays: Mapping[str, npt.NDArray[Any]], present: npt.NDArray[np.int64]) -> None:
        mine = self.arrays()
        expected = {
            name: (len(present), *array.shape[1:]) if name in BY_DOCUMENT else array.shape
            for name, array in mine.items()
        }
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != expected or not np.isin(present, self.present).all():
            raise ValueError("sums of another corpus")
        rows = np.searchsorted(self.present, present)
        before, self.whole = self.whole, False
        for name, array in mine.items():
            at = rows if name in BY_DOCUMENT else ...
            array[at] = (array[at] | arrays[name]) if array.dtype == bool else array[at] + arrays[name]
        self.whole = before

    def save(self, path: Path, key: Mapping[str, Any]) -> None:
        """Write the sums to one file atomically. ``key`` identifies model, corpus and definitions."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez(file, key=np.array(json.dumps(key, sort_keys=True)), **self.arrays())  # type: ignore[arg-type]

    def resume(self, path: Path, key: Mapping[str, Any]) -> bool:
        """Add the sums of a file that :meth:`save` wrote with the same key; False when there is none."""
        try:
            # opened here, for np.load leaves a damaged file open
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                if str(file["key"]) != json.dumps(key, sort_keys=True):
                    return False
                self._add({name: file[name] for name in file.files if name != "key"}, self.present)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return False
        return True
