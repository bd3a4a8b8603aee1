"""Findings: which role a head has, how well it fulfils it, and how reliable that is. Each is a row of ``roles.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mha_viz.analysis.metrics import BOTH, POSITIONS
from mha_viz.attention import Head

CORPUS_SEPARATOR = "; "  # between the names of corpora
EVERY = "every"  # k if every k-th sentence of a corpus was read; missing in tables of older versions
DOCUMENTS = "documents"  # number of documents with cases; missing in tables of older versions
Q, RULE_Q = "q", "rule_q"  # from mha_viz.analysis.q_values; missing in tables of older versions
MEASURED_COLUMNS = (
    *("layer", "head", "role", "detail", "score", "baseline", "gain", "n", "ci_low", "ci_high"),
    *("upos_baseline", "upos_rule", "state", "untrained"),
)
BEATS, EQUALS, BELOW = STATES = ("beats", "equals", "below")  # how a head compares with the rule by parts of speech
OLD_STATES = {"True": BEATS, "False": BELOW}  # values in tables of older versions, whose rule names one part of speech
RULE_INTERVAL = ("rule_low", "rule_high")  # the interval of the head's accuracy minus the rule's
COMPARISON_COLUMNS = (*RULE_INTERVAL, "kind", "choice_n", "choice", "nearest", "choice_low", "choice_high")
CANDIDATE_COLUMNS = (*MEASURED_COLUMNS, DOCUMENTS, *COMPARISON_COLUMNS, Q, RULE_Q)
# Columns that are stored for the second corpus, too.
SHARED_COLUMNS = ("score", "upos_baseline", "upos_rule", *COMPARISON_COLUMNS)
OTHER_COLUMNS = ("other_corpus", *(f"other_{name}" for name in SHARED_COLUMNS))
COLUMNS = (
    *MEASURED_COLUMNS,
    "status",
    "corpora",
    "lowest_score",
    DOCUMENTS,
    *COMPARISON_COLUMNS,
    *OTHER_COLUMNS,
    Q,
    RULE_Q,
)
AGREEMENT_ODD, NULL = "agreement_odd", "null"  # in the tables coreference_chosen and chance
# Columns that tables of older versions lack.
LATER_COLUMNS = (EVERY, DOCUMENTS, *COMPARISON_COLUMNS, *OTHER_COLUMNS, Q, RULE_Q, AGREEMENT_ODD, BOTH, NULL)
# Columns of the table position: the share that stays within words.
POSITION_COLUMNS = ("layer", "head", "offset", "mass_in_word")


class RuleComparison(NamedTuple):
    """Further numbers about a syntax role on one corpus; NaN where they were not measured.

    The choice numbers are about cases with several words of the gold word's part of speech.

    Attributes:
        rule_low, rule_high: the 95 % interval of the head's accuracy minus that of the best rule by parts of speech.
        kind: the share of these cases in which the head points to one of these words.
        choice_n: the number of cases in which it does.
        choice: the share of the ``choice_n`` cases in which it points to the right word.
        nearest: the share of the ``choice_n`` cases in which the nearest of these words is right.
        choice_low, choice_high: the interval of the difference between ``choice`` and ``nearest``.
    """

    rule_low: float = math.nan
    rule_high: float = math.nan
    kind: float = math.nan
    choice_n: float = math.nan
    choice: float = math.nan
    nearest: float = math.nan
    choice_low: float = math.nan
    choice_high: float = math.nan


class OtherCorpusScore(NamedTuple):
    """Scores of a head on the second of the two corpora that establish its role.

    They are its score, the best rule by parts of speech with its name, and further numbers (``comparison``); NaN and ""
    for roles other than syntax.
    """

    corpus: str
    score: float
    upos: float = math.nan
    upos_rule: str = ""
    comparison: RuleComparison = RuleComparison()


class Finding(NamedTuple):
    """A row of the table of roles.

    Attributes:
        low, high: the interval of the score; NaN if the score is not a share of cases.
        upos: the score of the best rule by parts of speech or, for coreference, of the rule of agreement; NaN for other
            roles.
        upos_rule: the name of that rule; "" for other roles.
        state: how the head compares with it on all corpora, one of STATES; "" for other roles.
        untrained: the score of the best untrained head.
        status: "established" on the ``corpora``, or "suggested" by one.
        lowest: the lowest score on them.
        within_words: for position, the share of the head's attention to that token that stays within a word, from the
            table ``position``; NaN otherwise.
        documents: the number of documents with cases, None if unknown.
        other_score: the numbers on the second corpus; None if only one corpus suggests the role.
        q: the false discovery rate over everything that the profile tested; NaN for roles with a threshold and in
            tables of older versions.
        rule_q: the false discovery rate of the comparison with the rule by parts of speech.
        comparison: the numbers behind ``state``; NaN for other roles.
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
    other_score: OtherCorpusScore | None = None
    q: float = math.nan
    rule_q: float = math.nan
    comparison: RuleComparison = RuleComparison()

    @property
    def is_matched_by_rule(self) -> bool:
        """True if the rule by parts of speech does at least as well as the head."""
        return bool(self.state) and self.state != BEATS


def parse_finding(*line: Any) -> Finding:
    """Build the finding from a row with COLUMNS, as text or as values."""
    cells = dict(zip(COLUMNS, line, strict=True))
    names = ["score", "baseline", "gain", "ci_low", "ci_high", "upos_baseline", "untrained", "lowest_score"]
    score, baseline, gain, low, high, upos, untrained, lowest = (_parse_number(cells[name]) for name in names)
    return Finding(
        Head(int(cells["layer"]), int(cells["head"])),
        str(cells["role"]),
        str(cells["detail"]),
        *(score, baseline, gain, int(cells["n"]), low, high, upos),
        upos_rule="" if _is_empty(cells["upos_rule"]) else str(cells["upos_rule"]),
        state="" if _is_empty(cells["state"]) else OLD_STATES.get(str(cells["state"]), str(cells["state"])),
        untrained=untrained,
        status=str(cells["status"]),
        corpora=tuple(str(cells["corpora"]).split(CORPUS_SEPARATOR)),
        lowest=lowest,
        documents=parse_whole_number(cells[DOCUMENTS]),
        other_score=_parse_other_score(*(cells[name] for name in OTHER_COLUMNS)),
        q=_parse_number(cells[Q]),
        rule_q=_parse_number(cells[RULE_Q]),
        comparison=RuleComparison(*(_parse_number(cells[name]) for name in COMPARISON_COLUMNS)),
    )


def _parse_other_score(corpus: Any, score: Any, upos: Any, rule: Any, *numbers: Any) -> OtherCorpusScore | None:
    """Build the scores on the second corpus from cells with the columns OTHER_COLUMNS; None if they are empty."""
    if _is_empty(corpus):
        return None
    name = "" if _is_empty(rule) else str(rule)
    return OtherCorpusScore(
        str(corpus), _parse_number(score), _parse_number(upos), name, RuleComparison(*map(_parse_number, numbers))
    )


def add_word_shares(findings: Iterable[Finding], position: Iterable[Sequence[Any]]) -> tuple[Finding, ...]:
    """Add the share within words to findings of position.

    ``position`` has the rows of that table, with the columns POSITION_COLUMNS.
    """
    shares = {(int(layer), int(head), POSITIONS.get(int(offset), "")): share for layer, head, offset, share in position}
    return tuple(
        f._replace(within_words=_parse_number(shares.get((*f.head, f.detail)))) if f.role == "position" else f
        for f in findings
    )


def parse_whole_number(cell: Any) -> int | None:
    """Return the number in a cell of a table; None if the cell is empty."""
    return None if _is_empty(cell) else int(float(cell))


def _is_empty(cell: Any) -> bool:
    """Return True for None, an empty text and NaN."""
    return cell is None or cell == "" or cell != cell  # NaN is not equal to itself


def _parse_number(cell: Any) -> float:
    """Return the number in a cell of a table; NaN if the cell is empty."""
    return math.nan if _is_empty(cell) else float(cell)
