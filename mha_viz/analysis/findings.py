"""Roles of heads: what a head does, how well, and how far that can be trusted; each is a row of ``roles.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mha_viz.analysis.metrics import BOTH, POSITIONS
from mha_viz.attention import Head

CORPORA = "; "  # between the names of corpora
EVERY = "every"  # k where every k-th sentence of a corpus was read; not in tables of older versions
DOCUMENTS = "documents"  # how many the cases come from; not in tables of older versions
Q, RULE_Q = "q", "rule_q"  # of mha_viz.analysis.q_values; not in tables of older versions
MEASURED = (
    *("layer", "head", "role", "detail", "score", "baseline", "gain", "n", "ci_low", "ci_high"),
    *("upos_baseline", "upos_rule", "state", "untrained"),
)
BEATS, EQUALS, BELOW = STATES = ("beats", "equals", "below")  # what a head does to the rule by parts of speech
OLDER = {"True": BEATS, "False": BELOW}  # in tables of older versions, whose rule names one part of speech
AGAINST = ("rule_low", "rule_high")  # the interval of how much more often the head is right than the rule
BESIDE = (*AGAINST, "kind", "choice_n", "choice", "nearest", "choice_low", "choice_high")
CANDIDATE = (*MEASURED, DOCUMENTS, *BESIDE, Q, RULE_Q)
OF_OTHER = ("score", "upos_baseline", "upos_rule", *BESIDE)  # what is kept of the other of two corpora
OTHER = ("other_corpus", *(f"other_{name}" for name in OF_OTHER))
COLUMNS = (*MEASURED, "status", "corpora", "lowest_score", DOCUMENTS, *BESIDE, *OTHER, Q, RULE_Q)
AGREEMENT_ODD, NULL = "agreement_odd", "null"  # of the tables coreference_chosen and chance
# columns that tables of older versions lack
LATER = (EVERY, DOCUMENTS, *BESIDE, *OTHER, Q, RULE_Q, AGREEMENT_ODD, BOTH, NULL)
WITHIN = ("layer", "head", "offset", "mass_in_word")  # columns of the table position: the share that stays within words


class Beside(NamedTuple):
    """Numbers beside the score of a role of syntax on one corpus; NaN where they were not measured.

    ``rule_low`` and ``rule_high``: the 95 % interval of how much more often the head is right than the best rule by
    parts of speech. Then, of the cases with several words of the gold word's part of speech: in which share the head
    points to one of these (``kind``, ``choice_n`` cases), in which share of those cases to the right one (``choice``),
    the share that the nearest of them gets right, and the interval of the difference.
    """

    rule_low: float = math.nan
    rule_high: float = math.nan
    kind: float = math.nan
    choice_n: float = math.nan
    choice: float = math.nan
    nearest: float = math.nan
    choice_low: float = math.nan
    choice_high: float = math.nan


class Elsewhere(NamedTuple):
    """Scores of a head on the other of the two corpora that establish its role: its score, the best rule by parts of
    speech with its name, and what stands beside them; NaN and "" for roles other than syntax."""

    corpus: str
    score: float
    upos: float = math.nan
    upos_rule: str = ""
    beside: Beside = Beside()


class Finding(NamedTuple):
    """A row of the table of roles. ``low`` and ``high`` are NaN if the score is not a share of cases.

    ``upos`` is the score of the best rule by parts of speech, for coreference that of agreement, ``upos_rule`` its
    name, ``state`` what the head does to it on all corpora, one of STATES, and ``beside`` the numbers behind that; NaN
    and "" for other roles. ``untrained``: the score of the best untrained head. ``status``: "established" on the
    ``corpora``, or "suggested" by one; ``lowest`` is the lowest of the scores on them. ``within_words``, for position:
    the share of the head's attention to that token that stays within a word, from the table ``position``; NaN
    otherwise. ``documents``: how many the cases come from, None if unknown. ``elsewhere``: the numbers on the other
    corpus; None if one corpus suggests the role. ``q``: the false discovery rate over all that the profile looked at,
    ``rule_q`` that of the head against the rule by parts of speech; NaN for roles with a threshold and in tables of
    older versions.
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
    state: str = ""
    untrained: float = math.nan
    status: str = "suggested"
    corpora: tuple[str, ...] = ()
    lowest: float = math.nan
    within_words: float = math.nan
    documents: int | None = None
    elsewhere: Elsewhere | None = None
    q: float = math.nan
    rule_q: float = math.nan
    beside: Beside = Beside()

    @property
    def is_matched(self) -> bool:
        """True if the rule by parts of speech does as well as the head, or better."""
        return bool(self.state) and self.state != BEATS


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
        state="" if _is_empty(cells["state"]) else OLDER.get(str(cells["state"]), str(cells["state"])),
        untrained=untrained,
        status=str(cells["status"]),
        corpora=tuple(str(cells["corpora"]).split(CORPORA)),
        lowest=lowest,
        documents=whole_number(cells[DOCUMENTS]),
        elsewhere=_elsewhere(*(cells[name] for name in OTHER)),
        q=_number(cells[Q]),
        rule_q=_number(cells[RULE_Q]),
        beside=Beside(*(_number(cells[name]) for name in BESIDE)),
    )


def _elsewhere(corpus: Any, score: Any, upos: Any, rule: Any, *beside: Any) -> Elsewhere | None:
    if _is_empty(corpus):
        return None
    name = "" if _is_empty(rule) else str(rule)
    return Elsewhere(str(corpus), _number(score), _number(upos), name, Beside(*map(_number, beside)))


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
