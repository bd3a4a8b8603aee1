"""The sums of a study: named arrays, whose axes of relations, parts of speech and documents have labels.

Sums of different sentences are added by label, even if their relations and documents differ. The order of adding
changes neither counts nor the cases that are chosen as evidence (:mod:`mha_viz.analysis.evidence`), and float64 sums
only by rounding.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.evidence import Selection
from mha_viz.analysis.intervals import Documents, count_separate_documents
from mha_viz.analysis.syntax import DIRECTIONS, HALVES, Relations
from mha_viz.files import load_arrays, write_atomically

PASSES = ("trained", "untrained")
MAX_LEFT_OUT_LINES = 50  # maximum number of stored lines about left-out text
BLOCK_PREFIX = "\0"  # prefix of the label of a block of documents
CASES_ARRAY = "cases"  # the array of cases in a file of sums
# The labelled axes of each array, {axis: kind of label}, by the array's name without the pass.
LABELLED_AXES: Mapping[str, Mapping[int, str]] = {
    "syntax/correct": {0: "document", 3: "relation"},
    "syntax/both": {2: "row"},
    "syntax/kinds": {0: "document", 2: "base"},
    "syntax/choices": {2: "base"},
    "position/maxima": {0: "document"},
    "position/rows": {0: "document"},
    "coreference/correct": {0: "document"},
    "coreference/n": {0: "document"},
    "coreference/baseline": {0: "document"},
    "coreference/agreement": {0: "document"},
    "coreference/both": {0: "document"},
    "gold/n": {2: "row"},
    "gold/offset": {2: "row"},
    "gold/kinds": {2: "base"},
    "gold/cases": {0: "document", 3: "row"},
    "gold/ruled": {0: "document", 3: "row"},
    "gold/named": {2: "row", 3: "upos"},
    "kinds/correct": {0: "document", 4: "relation"},
    "kinds/cases": {0: "document", 4: "row"},
    "kinds/offset": {3: "row"},
    "why/variance": {0: "document"},
    "why/groups": {0: "document"},
    "why/query": {0: "document"},
    "why/key": {0: "document"},
    "explained/weight": {0: "document"},
    "explained/iou": {0: "document"},
    "explained/rows": {0: "document"},
    "explained/sentences": {0: "document"},
}

Array = npt.NDArray[Any]
LeftOutLine = tuple[int, int, int, str]  # (reason, number of the shard, place in the shard, line about left-out text)


@dataclass(eq=False)
class Sums:
    """Sums over some sentences.

    Attributes:
        heads: the number of heads.
        relations: the labels of relations and parts of speech.
        documents: the labels of the documents in the order of the rows, each with the number of its first sentence.
        arrays: by name: pass, measure and quantity, as in "trained/patterns/mass".
        selection: the cases recorded as evidence.
        counted: the numbers of sentences, words and so on that were measured.
        left_out: the first lines about left-out text, in order.
        unsaved: reasons why results of shards could not be saved, with counts.
        is_complete: False while :meth:`add` is running or after it was interrupted.
    """

    heads: int
    relations: Relations
    documents: Mapping[str, int]
    arrays: dict[str, Array] = field(default_factory=dict)
    selection: Selection | None = None
    counted: Counter[str] = field(default_factory=Counter)
    left_out: tuple[LeftOutLine, ...] = ()
    unsaved: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True

    @property
    def bytes(self) -> int:
        """The size of the arrays in bytes."""
        cases = 0 if self.selection is None else self.selection.cases.nbytes
        return cases + sum(array.nbytes for array in self.arrays.values())

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask counts moved bytes and decides what is small enough to move."""
        return object.__sizeof__(self) + self.bytes

    def select(self, name: str) -> dict[str, Array]:
        """Select the arrays whose names begin with ``name`` and a slash, and return them by the rest of their names."""
        return {key.removeprefix(f"{name}/"): array for key, array in self.arrays.items() if key.startswith(f"{name}/")}

    @property
    def resampling_documents(self) -> Documents:
        """The documents to resample for intervals."""
        return Documents.from_numbers((), len(self.documents))

    @cached_property
    def _labels(self) -> dict[str, tuple[Any, ...]]:
        """The labels of each kind of axis, in the order of the cells."""
        relations = self.relations
        return {
            "document": tuple(self.documents),
            "relation": relations.names,
            "row": relations.rows,
            "base": relations.bases,
            "upos": relations.upos,
        }

    @cached_property
    def _index_by_label(self) -> dict[str, dict[Any, int]]:
        """The index of each label, for each kind of axis."""
        return {kind: {label: index for index, label in enumerate(labels)} for kind, labels in self._labels.items()}

    def indices(self, kind: str, labels: Iterable[Any]) -> list[int]:
        """Return the indices of labels on an axis ("document", "relation", "row", "base" or "upos")."""
        return [self._index_by_label[kind][label] for label in labels]

    def add(self, other: Sums) -> None:
        """Add the sums of other sentences. These sums must have all labels of the others."""
        indices = {
            kind: ... if labels == self._labels[kind] else self.indices(kind, labels)
            for kind, labels in other._labels.items()
        }
        was_complete, self.is_complete = self.is_complete, False
        for name, array in other.arrays.items():
            self._add_array(name, array, indices)
        if self.selection is not None and other.selection is not None:
            self.selection.join(other.selection)
        self.counted.update(other.counted)
        self.left_out = tuple(sorted((*self.left_out, *other.left_out))[:MAX_LEFT_OUT_LINES])
        self.unsaved.update(other.unsaved)
        self.is_complete = was_complete

    def _add_array(self, name: str, array: Array, indices: Mapping[str, Any]) -> None:
        """Add an array after expanding its axes to all labels."""
        axes = _find_axes(name)
        for axis, kind in axes.items():
            if axis > 0 and indices[kind] is not ...:
                shape = (*array.shape[:axis], len(self._labels[kind]), *array.shape[axis + 1 :])
                expanded_array = np.zeros(shape, array.dtype)
                expanded_array[(slice(None),) * axis + (list(indices[kind]),)] = array
                array = expanded_array
        if name not in self.arrays:
            length = (len(self._labels[axes[0]]),) if 0 in axes else array.shape[:1]  # () for a scalar
            self.arrays[name] = np.zeros((*length, *array.shape[1:]), array.dtype)
        target, rows = self.arrays[name], indices[axes[0]] if 0 in axes else ...
        target[rows] = (target[rows] | array) if array.dtype == bool else target[rows] + array

    def group_into_blocks(self, bits: int) -> Sums:
        """Return these sums with a row for each block of documents instead of each document."""
        labels = [label_block(document, bits) for document in self.documents]
        grouped_sums = replace(self, documents=number_labels(labels), arrays=dict(self.arrays))
        rows = grouped_sums.indices("document", labels)
        for name, array in self.arrays.items():
            if _find_axes(name).get(0) == "document":
                grouped_sums.arrays[name] = np.zeros((len(grouped_sums.documents), *array.shape[1:]), array.dtype)
                np.add.at(grouped_sums.arrays[name], rows, array)
        return grouped_sums

    def save(self, path: Path, key: str, finished: bool = True) -> None:
        """Write the sums to one file atomically. Raises OSError.

        ``key`` identifies everything that they depend on. Unfinished sums are written often, and therefore not
        compressed.
        """
        arrays, facts = self._pack()
        write_arrays(arrays, {**facts, "key": key}, path, finished)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle, with which Dask moves sums between processes.

        Only the contents of the file of these sums are pickled.
        """
        return _rebuild_sums, self._pack()

    def _pack(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return all arrays, and facts as JSON values."""
        facts = {
            "heads": self.heads,
            "relations": self.relations.names,
            "upos": self.relations.upos,
            "documents": [*self.documents.items()],
            "counted": self.counted,
            "left_out": self.left_out,
            "unsaved": self.unsaved,
        }
        cases = {} if self.selection is None else {CASES_ARRAY: self.selection.cases}
        return {**self.arrays, **cases}, facts


def merge_sums(parts: Sequence[Sums]) -> Sums:
    """Merge the sums of several shards of one corpus."""
    heads = parts[0].heads
    relations = Relations(
        (), {name for part in parts for name in part.relations.names}, {tag for p in parts for tag in p.relations.upos}
    )
    documents = _merge_documents(parts)
    if (bits := _choose_bits(documents, relations, heads)) is not None:
        parts = [part.group_into_blocks(bits) for part in parts]
        documents = _merge_documents(parts)
    selection = Selection(relations, heads) if any(part.selection for part in parts) else None
    total = Sums(heads, relations, documents, selection=selection)
    for part in parts:
        total.add(part)
    return total


def _merge_documents(parts: Sequence[Sums]) -> dict[str, int]:
    """Return the documents of all parts in the order of the corpus, each with the number of its first sentence."""
    first_numbers: dict[str, int] = {}
    for part in parts:
        for label, number in part.documents.items():
            first_numbers[label] = min(number, first_numbers.get(label, number))
    return dict(sorted(first_numbers.items(), key=lambda document: document[1]))


def label_documents(documents: Sequence[str], relations: Relations, heads: int) -> list[str]:
    """Return the labels of documents, which may repeat.

    Labels are the names of the documents or, if there are too many to count each separately, the labels of their
    blocks.
    """
    bits = _choose_bits({*documents}, relations, heads)
    return [*documents] if bits is None else [label_block(document, bits) for document in documents]


def number_labels(labels: Sequence[str], first: int = 0) -> dict[str, int]:
    """Return the labels in the order of their rows, each with a number.

    It is the number of the label's first sentence or, for a block, the block's own number. ``labels`` has a label for
    each sentence; the first sentence has the number ``first``.
    """
    if labels and labels[0].startswith(BLOCK_PREFIX):
        return {label: int(label[len(BLOCK_PREFIX) :], 2) for label in sorted({*labels})}
    numbers: dict[str, int] = {}
    for number, label in enumerate(labels, first):
        numbers.setdefault(label, number)
    return numbers


def _choose_bits(documents: Iterable[str], relations: Relations, heads: int) -> int | None:
    """Return the length in bits of block labels; None if all of these documents can be counted separately.

    More documents or relations never lead to longer labels or back to separate documents, so the order of merging does
    not matter.
    """
    return choose_block_bits(documents, len(HALVES) * len(DIRECTIONS) * len(relations.names) * heads)


def choose_block_bits(documents: Iterable[str], cells: int) -> int | None:
    """Return the length in bits of block labels for documents with ``cells`` numbers each.

    Return None if no blocks are needed.
    """
    limit, labels = count_separate_documents(cells), {*documents}
    needs_blocks = len(labels) > limit or any(label.startswith(BLOCK_PREFIX) for label in labels)
    return limit.bit_length() - 1 if needs_blocks else None


def label_block(document: str, bits: int) -> str:
    """Return the label of a document's block.

    It consists of the first bits of a digest of the document's name; the label of a smaller block is shortened.
    """
    if not document.startswith(BLOCK_PREFIX):
        digest = hashlib.sha256(document.encode("utf-8", "surrogatepass")).digest()
        document = f"{BLOCK_PREFIX}{int.from_bytes(digest[:4]):032b}"
    return document[: len(BLOCK_PREFIX) + bits]


def _find_axes(name: str) -> Mapping[int, str]:
    """Return the labelled axes of an array."""
    pass_name, _, short_name = name.partition("/")
    return LABELLED_AXES.get(short_name if pass_name in PASSES else name, {})


# ---- on disk --------------------------------------------------------------------------------------------------------


def write_arrays(arrays: Mapping[str, Array], facts: Mapping[str, Any], path: Path, compressed: bool = True) -> None:
    """Write arrays, and facts as JSON values, to one file atomically. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as file:
        contents: dict[str, Any] = {**arrays, "facts": np.array(json.dumps(facts))}
        (np.savez_compressed if compressed else np.savez)(file, **contents)


def read(path: Path, key: str) -> Sums | None:
    """Return the sums that :meth:`Sums.save` wrote under this key; None if there is no complete file."""
    try:
        arrays = load_arrays(path)
        facts = json.loads(str(arrays.pop("facts")))
        return _rebuild_sums(arrays, facts) if facts["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _rebuild_sums(arrays: dict[str, Array], facts: Mapping[str, Any]) -> Sums:
    """Rebuild sums from arrays and facts. Raises ValueError for cases whose relations are not among the facts."""
    relations = Relations((), facts["relations"], facts["upos"])
    selection = Selection(relations, facts["heads"]) if CASES_ARRAY in arrays else None
    if selection is not None:
        selection.check(arrays[CASES_ARRAY])
        selection.merge(arrays.pop(CASES_ARRAY))
    lines = tuple((reason, number, place, line) for reason, number, place, line in facts["left_out"])
    counted, unsaved = Counter(facts["counted"]), Counter(facts["unsaved"])
    return Sums(facts["heads"], relations, dict(facts["documents"]), arrays, selection, counted, lines, unsaved)
