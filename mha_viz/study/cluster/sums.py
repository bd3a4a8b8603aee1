"""The sums of a part of a corpus: under the labels of that part on disk, under those of the whole corpus for merging.

Sums of different parts add up to those of the whole corpus in any order: counts exactly, float64 sums up to rounding;
and the same cases are chosen (:mod:`mha_viz.analysis.evidence`).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.evidence import best_cases, renumbered
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.syntax import Gold, Relations
from mha_viz.files import OLD_SECONDS, arrays_in, whole_file
from mha_viz.study.run import PASSES, Run
from mha_viz.study.tables import GoldCases, counts
from mha_viz.study.tally import BY_DOCUMENT, Tally

CASES = "cases"
LEFT_OUT = 50  # lines that are stored
NOT_SUMMED = ("done/", "gap/")  # fields of a tally that have to do with a corpus measured in one process
# The axes of relations, of rows of tables, and of parts of speech.
AXES: Mapping[str, Mapping[int, str]] = {
    "syntax/correct": {3: "relation"},
    "gold/n": {2: "row"},
    "gold/offset": {2: "row"},
    "gold/upos": {2: "row", 4: "upos"},
    "gold/cases": {3: "row"},
}

Array = npt.NDArray[Any]
Line = tuple[int, int, int, str]  # what is left out: the reason, the number of the part, the place in it, the line


@dataclass(frozen=True)
class Sums:
    """``relations`` and ``upos``: the labels of the axes; ``documents``: the numbers of the documents that have rows,
    ascending; ``arrays`` by pass and measure; ``counted``: how much was measured; ``left_out``: the first lines, in
    order; ``unsaved``: why the sums could not be saved."""

    relations: tuple[str, ...]
    upos: tuple[str, ...]
    documents: npt.NDArray[np.int64]
    arrays: Mapping[str, Array]
    counted: Mapping[str, int]
    left_out: tuple[Line, ...] = ()
    unsaved: tuple[str, ...] = field(default=())

    @property
    def bytes(self) -> int:
        """The size of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def __sizeof__(self) -> int:
        """The same, for Dask, which uses this to decide what is small enough to move and to count the bytes that it
        moves."""
        return object.__sizeof__(self) + self.bytes


def sums_of(run: Run, tallies: Mapping[str, Tally]) -> Sums:
    """The sums of a measured part, under the labels of the part."""
    arrays = {
        f"{name}/{measure}": array
        for name, tally in tallies.items()
        for measure, array in tally.arrays().items()
        if not measure.startswith(NOT_SUMMED)
    }
    trained = tallies[PASSES[0]]
    if trained.selection is not None:
        arrays[f"{PASSES[0]}/{CASES}"] = trained.selection.cases
    if run.corpus.has_trees:  # type: ignore[union-attr]
        gold = run.gold(trained)
        arrays |= {f"gold/{name}": array for name, array in gold.gold._asdict().items()} | {"gold/cases": gold.cases}
    lines = _lines(run)
    counted = {**counts(run.corpus, run.plan), "left_out": len(lines)}
    labels = run.relations.names, run.relations.upos
    return Sums(*labels, np.arange(run.documents.count), arrays, counted, lines[:LEFT_OUT])


def _lines(run: Run) -> tuple[Line, ...]:
    """What is left out, in the order in which a study lists it: sentences, chunks, annotation."""
    unread = sum(pieces is None for pieces in run.plan.sentences)
    whys = (run.plan.left_out[:unread], run.plan.left_out[unread:], run.corpus.left_out)  # type: ignore[union-attr]
    return tuple((why, 0, at, line) for why, lines in enumerate(whys) for at, line in enumerate(lines))


def placed(sums: Sums, relations: Relations, blocks: Sequence[int], number: int, heads: int) -> Sums:
    """The sums of part ``number`` under the labels of the corpus. ``blocks``: for each of its rows the document, or the
    block of documents, in the corpus."""
    mine = Relations((), sums.relations, sums.upos)
    at = {
        "relation": ([relations.names.index(name) for name in mine.names], len(relations.names)),
        "row": ([relations.rows.index(row) for row in mine.rows], len(relations.rows)),
        "upos": ([relations.upos.index(tag) for tag in mine.upos], len(relations.upos)),
    }
    documents, row = np.unique(np.array(blocks, np.int64), return_inverse=True)
    arrays = {}
    for name, array in sums.arrays.items():
        measure = _measure(name)
        if measure == CASES:
            arrays[name] = renumbered(array, mine, relations, heads)
            continue
        for axis, label in AXES.get(measure, {}).items():
            array = _spread(array, axis, *at[label])
        arrays[name] = _added_rows(array, row, len(documents)) if _by_document(measure) else array
    lines = tuple((why, number, place, line) for why, _, place, line in sums.left_out)
    return replace(
        sums,
        relations=relations.names,
        upos=relations.upos,
        documents=documents,
        arrays=arrays,
        left_out=lines,
    )


def _measure(name: str) -> str:
    """The name of an array without the prefix for its pass."""
    first, _, rest = name.partition("/")
    return rest if first in PASSES else name


def _by_document(measure: str) -> bool:
    return measure in BY_DOCUMENT or measure == "gold/cases"


def _spread(array: Array, axis: int, places: Sequence[int], size: int) -> Array:
    """The array enlarged to ``size`` cells along an axis, with its values at ``places``."""
    shape = list(array.shape)
    shape[axis] = size
    spread = np.zeros(shape, array.dtype)
    spread[(slice(None),) * axis + (list(places),)] = array
    return spread


def _added_rows(array: Array, row: npt.NDArray[np.intp], size: int) -> Array:
    added = np.zeros((size, *array.shape[1:]), array.dtype)
    np.add.at(added, row, array)
    return added


def merged(parts: Sequence[Sums]) -> Sums:
    """The sums of several parts, under the labels of their corpus."""
    documents = np.unique(np.concatenate([part.documents for part in parts]))
    names = dict.fromkeys(name for part in parts for name in part.arrays)
    counted: Counter[str] = Counter()
    for part in parts:
        counted.update(part.counted)
    return replace(
        parts[0],
        documents=documents,
        arrays={name: _merged(name, parts, documents) for name in names},
        counted=dict(counted),
        left_out=tuple(sorted(line for part in parts for line in part.left_out)[:LEFT_OUT]),
        unsaved=tuple(dict.fromkeys(reason for part in parts for reason in part.unsaved)),
    )


def _merged(name: str, parts: Sequence[Sums], documents: npt.NDArray[np.int64]) -> Array:
    having = [(part, part.arrays[name]) for part in parts if name in part.arrays]
    if _measure(name) == CASES:
        return best_cases(np.concatenate([array for _, array in having]))
    first = having[0][1]
    if not _by_document(_measure(name)):
        total = np.array(first)
        for _, array in having[1:]:
            total += array
        return total
    rows = np.zeros((len(documents), *first.shape[1:]), first.dtype)
    for part, array in having:
        rows[np.searchsorted(documents, part.documents)] += array
    return rows


def tally_of(sums: Sums, name: str, heads: int, documents: Documents) -> Tally:
    """The sums of one pass over a whole corpus as a tally."""
    relations = Relations((), sums.relations, sums.upos)
    cases = sums.arrays.get(f"{name}/{CASES}")
    tally = Tally(heads, relations, documents, 0, evidence=cases is not None)
    arrays = {measure: sums.arrays.get(f"{name}/{measure}", zeros) for measure, zeros in tally.arrays().items()}
    tally.add_sums(arrays, sums.documents, cases)
    return tally


def gold_of(sums: Sums, documents: Documents) -> GoldCases | None:
    """The results that follow from the annotation of a whole corpus alone; None without annotation."""
    if "gold/cases" not in sums.arrays:
        return None
    cases = np.zeros((documents.count, *sums.arrays["gold/cases"].shape[1:]), np.int64)
    cases[sums.documents] = sums.arrays["gold/cases"]
    return GoldCases(Gold(*(sums.arrays[f"gold/{name}"] for name in Gold._fields)), cases)


# ---- on disk --------------------------------------------------------------------------------------------------------


def save(sums: Sums, path: Path) -> None:
    """Write sums to one file atomically. Raises OSError."""
    facts = {name: getattr(sums, name) for name in ("relations", "upos", "counted", "left_out")}
    write({**sums.arrays, "documents": sums.documents}, facts, path)


def write(arrays: Mapping[str, Array], facts: Mapping[str, Any], path: Path) -> None:
    """Write arrays, and facts that JSON can hold, to one file atomically. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        with_facts: dict[str, Any] = {**arrays, "facts": np.array(json.dumps(facts))}
        np.savez_compressed(file, **with_facts)


def remove_left(folder: Path) -> None:
    """Remove partial files more than a day old, left in a folder by processes that were killed while writing."""
    for left in folder.glob(".*.part"):
        with suppress(OSError):  # another process removes it, or the folder is read-only
            if time.time() - left.stat().st_mtime > OLD_SECONDS:
                left.unlink()


def read(path: Path) -> Sums | None:
    """What :func:`save` wrote; None if there is no file, or no complete one."""
    try:
        arrays = arrays_in(path)
        facts = json.loads(str(arrays.pop("facts")))
        lines = tuple((why, number, at, line) for why, number, at, line in facts["left_out"])
        labels = tuple(facts["relations"]), tuple(facts["upos"])
        return Sums(*labels, arrays.pop("documents"), arrays, facts["counted"], lines)
    except (OSError, ValueError, KeyError, TypeError):
        return None
