"""Roles of heads: what a head does, how well, and how far that can be trusted; each is a row of ``roles.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mha_viz.analysis.metrics import POSITIONS
from mha_viz.attention import Head

CORPORA = "; "  # between the names of corpora
EVERY = "every"  # k where every k-th sentence of a corpus was read; not in tables of older versions
DOCUMENTS = "documents"  # how many the cases come from; not in tables of older versions
Q = "q"  # of mha_viz.analysis.q_values; not in tables of older versions
MEASURED = (
    *("layer", "head", "role", "detail", "score", "baseline", "gain", "n", "ci_low", "ci_high"),
    *("upos_baseline", "upos_rule", "beats_upos", "untrained"),
)
CANDIDATE = (*MEASURED, DOCUMENTS, Q)
OTHER = ("other_corpus", "other_score", "other_upos_baseline", "other_upos_rule")  # the same; only of two corpora
COLUMNS = (*MEASURED, "status", "corpora", "lowest_score", DOCUMENTS, *OTHER, Q)
LATER = (EVERY, DOCUMENTS, *OTHER, Q)  # columns that tables of older versions lack
WITHIN = ("layer", "head", "offset", "mass_in_word")  # columns of the table position: the share that stays within words


class Elsewhere(NamedTuple):
    """The same head on the other of the two corpora that establish its role: its score, and the best rule by part of
    speech with its name; NaN and "" for roles other than syntax."""

    corpus: str
    score: float
    upos: float = math.nan
    upos_rule: str = ""


class Finding(NamedTuple):
    """A row of the table of roles. ``low`` and ``high`` are NaN if the score is not a share of cases.

    ``upos`` is the score of the best rule by part of speech, ``upos_rule`` its name, and ``beats_upos`` whether the
    head does better on every corpus; NaN, "" and None for roles other than syntax. ``untrained``: the score of the best
    untrained head. ``status``: "established" on the ``corpora``, or "suggested" by one; ``lowest`` is the lowest of the
    scores on them. ``within_words``, for position: the share of the head's attention to that token that stays within a
    word, from the table ``position``; NaN otherwise. ``documents``: how many the cases come from, None if unknown.
    ``elsewhere``: the numbers on the other corpus; None if one corpus suggests the role. ``q``: the false discovery
    rate over all that the profile looked at, NaN for roles with a threshold and in tables of older versions.
    """

    head: Head
    role: str
    detail: str
    score: float
    baseline: float
    gain: float
    n: int
    low: float
    high: float
    upos: float = math.nan
    upos_rule: str = ""
    beats_upos: bool | None = None
    untrained: float = math.nan
    status: str = "suggested"
    corpora: tuple[str, ...] = ()
    lowest: float = math.nan
    within_words: float = math.nan
    documents: int | None = None
    elsewhere: Elsewhere | None = None
    q: float = math.nan


def finding(*line: Any) -> Finding:
    """The role from a row with COLUMNS, of texts or of values."""
    cells = dict(zip(COLUMNS, line, strict=True))
    names = ["score", "baseline", "gain", "ci_low", "ci_high", "upos_baseline", "untrained", "lowest_score"]
    score, baseline, gain, low, high, upos, untrained, lowest = (_number(cells[name]) for name in names)
    return Finding(
        Head(int(cells["layer"]), int(cells["head"])),
        str(cells["role"]),
        str(cells["detail"]),
        *(score, baseline, gain, int(cells["n"]), low, high, upos),
        upos_rule="" if _is_empty(cells["upos_rule"]) else str(cells["upos_rule"]),
        beats_upos=None if _is_empty(cells["beats_upos"]) else str(cells["beats_upos"]) == "True",
        untrained=untrained,
        status=str(cells["status"]),
        corpora=tuple(str(cells["corpora"]).split(CORPORA)),
        lowest=lowest,
        documents=whole_number(cells[DOCUMENTS]),
        elsewhere=_elsewhere(*(cells[name] for name in OTHER)),
        q=_number(cells[Q]),
    )


def _elsewhere(corpus: Any, score: Any, upos: Any, rule: Any) -> Elsewhere | None:
    if _is_empty(corpus):
        return None
    return Elsewhere(str(corpus), _number(score), _number(upos), "" if _is_empty(rule) else str(rule))


def with_words(findings: Iterable[Finding], position: Iterable[Sequence[Any]]) -> tuple[Finding, ...]:
    """The roles, with the share within words for those of position; ``position``: the rows of that table, with the
    columns WITHIN."""
    shares = {(int(layer), int(head), POSITIONS.get(int(at), "")): share for layer, head, at, share in position}
    return tuple(
        f._replace(within_words=_number(shares.get((*f.head, f.detail)))) if f.role == "position" else f
        for f in findings
    )


def whole_number(cell: Any) -> int | None:
    """The number in a cell of a table, None in an empty one."""
    return None if _is_empty(cell) else int(float(cell))


def _is_empty(cell: Any) -> bool:
    return cell is None or cell == "" or cell != cell  # NaN is not equal to itself


def _number(cell: Any) -> float:
    return math.nan if _is_empty(cell) else float(cell)
