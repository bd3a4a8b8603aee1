"""Find remarkable heads in one text: those whose known roles are active, and those that do something unusual.

A head with a position, delimiter or broad role is *active* if this text alone meets the role's threshold. A head with a
role for a relation is active if some word gives more than half of its attention to another word; with a role for
coreference, if a third-person pronoun gives it to an earlier word. In texts without such a link, the head attends to a
delimiter (Clark et al. 2019, section 3.2). Only gold annotation can tell whether the link is the relation.

Up to three *unusual* findings are put in plain words, each about one head and one token. Each kind of finding is a row
of :data:`KINDS`: its name, whether it names words of the text, its threshold, and a function that yields candidates. If
a head is known for coreference, the first finding is the referent of a third-person pronoun: the largest link of such
heads from a pronoun to an earlier noun or name, however unusual it is. The surprise of any other candidate is measured
in bits: its share of attention times the logarithm to base 2 of that share over the expected share. The expected share
is the mean of all heads in this text, or of this head over a corpus (:data:`Habits`), whichever is more; for a link,
it is at least the mean weight that the head gives elsewhere in the text to that key, and at that distance. The surprise
is a term of a Kullback–Leibler divergence, so all kinds have the same scale. Findings below :data:`MIN_BITS` bits are
dropped, so what a head usually does is reported only in a text where it is stronger than usual.

Never reported are links between two function words, links that begin or end at a word that was read as [UNK], and links
between the subwords of one word.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis import metrics
from mha_viz.analysis.bundled_data import list_bundled_folders
from mha_viz.analysis.distance import entropy
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.metrics import POSITIONS
from mha_viz.analysis.profile import HEADINGS, MEASURE_AGAIN, read_lines
from mha_viz.analysis.roles import BROAD_THRESHOLD, DELIMITER_THRESHOLD, MASS_THRESHOLD, MAXIMA_THRESHOLD
from mha_viz.attention import Attention, Head, Weights
from mha_viz.errors import CorpusError
from mha_viz.numerals import decimal
from mha_viz.text import english, is_punctuation, languages
from mha_viz.view.quantities import WEIGHT

OFFSETS_BY_DETAIL = {detail: offset for offset, detail in POSITIONS.items()}
LINKING_ROLES = ("syntax", "coreference")  # roles that link words
MIN_LINK_SHARE = 0.5  # share of a word's attention on one other word

_MEASURES = {metric.detail: metric.measure for metric in metrics.METRICS.values()} | {
    metrics.BOTH: lambda attention: metrics.cls(attention) + metrics.sep(attention)
}

# The habits of heads: the mean shares [head] over subwords of a corpus, by an offset or one of SHARES. They come from
# the tables of a profile, which are read without pandas.
Habits = Mapping[str | int, npt.NDArray[np.float64]]
SHARES: Mapping[str, tuple[str, ...]] = {"delimiter": ("cls", "sep", "punctuation"), "entropy": ("normalised",)}


def find_active(findings: Sequence[Finding], attention: Attention) -> tuple[bool, ...]:
    """Return, for each role, whether it is active in this text."""
    own_findings = [f for f in findings if f.head in attention.every_head()]
    heads = [*dict.fromkeys(f.head for f in own_findings)]
    head_reading = attention.only(heads) if heads else attention
    is_active: dict[Finding, bool] = {}
    for measure, limit, decided_findings in _iter_measures(own_findings, len(attention.text)):
        values = dict(zip(heads, measure(head_reading)[0], strict=True))
        is_active |= {f: bool(values[f.head] >= limit) for f in decided_findings}
    return tuple(is_active.get(f, False) for f in findings)


def _iter_measures(
    findings: Sequence[Finding], n: int
) -> Iterator[tuple[metrics.MetricFunction, float, list[Finding]]]:
    """Yield each measure, the value that it has to reach, and the roles that it decides."""
    next_float = math.nextafter  # "more than" a limit means at least the next float
    link_measures = dict(zip(LINKING_ROLES, (_find_strongest, _find_strongest_from_pronouns), strict=True))
    for role, measure in link_measures.items():
        role_findings = [f for f in findings if f.role == role]
        if role_findings:
            yield measure, next_float(MIN_LINK_SHARE, 1), role_findings
    for detail in dict.fromkeys(f.detail for f in findings if f.role not in link_measures):
        detail_findings = [f for f in findings if f.detail == detail]
        role = detail_findings[0].role
        if role == "position":
            mass_findings = [f for f in detail_findings if math.isnan(f.low)]
            share_findings = [f for f in detail_findings if not math.isnan(f.low)]
            yield from ((_MEASURES[detail], next_float(MASS_THRESHOLD, 1), part) for part in (mass_findings,) if part)
            measure_maxima = partial(metrics.compute_maxima_share, offset=OFFSETS_BY_DETAIL[detail])
            yield from ((measure_maxima, MAXIMA_THRESHOLD, part) for part in (share_findings,) if part)
        elif role == "delimiter":
            yield _MEASURES[detail], next_float(DELIMITER_THRESHOLD, 1), detail_findings
        else:
            yield _MEASURES[detail], BROAD_THRESHOLD * math.log(n), detail_findings


def _find_strongest(attention: Attention) -> metrics.PerHead:
    """Return [layer, head], the largest share of attention from a word to another word.

    Special tokens and punctuation are excluded.
    """
    return _find_strongest_between(attention, lambda text: True)


def _find_strongest_from_pronouns(attention: Attention) -> metrics.PerHead:
    """Return [layer, head], the largest share of attention from a third-person pronoun to an earlier word."""
    return np.asarray(_find_strongest_between(attention, english.is_pronoun, only_earlier=True))


def _find_strongest_between(
    attention: Attention, is_query_word: Callable[[str], bool], only_earlier: bool = False
) -> metrics.PerHead:
    """Return [layer, head], the largest share of attention between two words.

    Only words for which ``is_query_word`` is True count as queries, and with ``only_earlier``, only earlier words as
    keys.
    """
    words = attention.by_words()
    text = words.text
    ordinary = [i for i, t in enumerate(text.tokens) if not (text.special[i] or is_punctuation(t.text))]
    block = words.weights[:, :, ordinary][..., ordinary]
    is_query_index = np.array([is_query_word(text.tokens[i].text) for i in ordinary], bool)
    distances = np.subtract.outer(ordinary, ordinary)  # [query, key]: how many words back the key is
    is_allowed = is_query_index[:, None] & (distances > 0 if only_earlier else distances != 0)
    if not is_allowed.any():
        return np.zeros(block.shape[:2])
    strongest: metrics.PerHead = np.where(is_allowed, block, 0).max(axis=(2, 3)).astype(np.float64)
    return strongest


# ---- unusual findings ---------------------------------------------------------------------------------------

MAX_FINDINGS = 3  # maximum number of findings per text
MAX_WORDS = 128  # longer texts have no findings, except about a pronoun
MAX_TOKENS = 1_024  # maximum number of words for a finding about a pronoun, which needs the matrices of few heads
MIN_BITS = 0.5  # least surprise of a finding
MIN_WORDS = 3  # minimum number of words that can show a pattern
MIN_PATTERN = 0.5  # least share of attention for a pattern
MIN_LINK, MIN_DISTANCE = 0.25, 2  # least weight of a link, and least distance of its ends in words
WEAK_LINK = 0.3  # a link from a pronoun with a smaller weight is called weak
MIN_PRONOUN_LINK = 0.05  # a link from a pronoun with a smaller weight is dropped, because its line has no number

Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[np.float64]


class UnusualFinding(NamedTuple):
    """A finding about a text.

    Attributes:
        words: a sentence in parts; every second part is a word of the text, and the parts beside it have the quotation
            marks.
        query, key: the tokens that show it; ``key`` is None if the whole row does.
        surprise: in bits; infinite for a finding that comes first however unusual it is.
    """

    kind: str
    head: Head
    value: float
    surprise: float
    words: tuple[str, ...]
    query: int
    key: int | None = None


_NO_HABITS: Habits = MappingProxyType({})


class WordReading:
    """A reading by words, with values that several kinds of findings need.

    Weights are [head, query, key], with the heads in the order L0H0, L0H1, ….
    """

    def __init__(self, attention: Attention, roles: Mapping[Finding, bool], habits: Habits = _NO_HABITS) -> None:
        self.attention, self.roles, self.heads = attention, roles, attention.every_head()
        self._habits = habits
        text = attention.text.by_words()
        self.pieces = [group[0] for group in attention.text.groups]
        self.words = [token.text for token in text.tokens]
        self.special = np.array(text.special, bool)
        self.marks = np.array([is_punctuation(word) for word in self.words], bool) & ~self.special
        self.is_known = np.array([token.known for token in text.tokens], bool)  # not read as [UNK]
        self.ordinary_words = np.flatnonzero(~(self.special | self.marks))
        self.language = languages.detect_language([self.words[i] for i in self.ordinary_words])

    @cached_property
    def weights(self) -> Weights:
        """[head, query, key]: the weights between words."""
        weights = self.attention.by_words().weights
        return weights.reshape(len(self.heads), *weights.shape[2:])

    @cached_property
    def rows(self) -> Values:
        """[head, key]: the mean row of a head over ordinary words."""
        rows: Values = self.weights[:, self.ordinary_words].mean(1, dtype=np.float64)
        return rows

    def get_habit(self, key: str | int) -> Values:
        """Return [head], the mean share of each head over a corpus; 0 if unknown."""
        shares = self._habits.get(key, np.zeros(0))
        return shares if len(shares) == len(self.heads) else np.zeros(len(self.heads))

    @cached_property
    def pronouns(self) -> Flags:
        """[word]: whether it is a third-person pronoun.

        There are none in a text in another language than English, or in a program.
        """
        text = self.attention.text
        is_english = self.language in ("", languages.ENGLISH) and not english.is_code(f"{text.text}\n{text.pair}")
        pronouns: Flags = (
            np.array([is_english and english.is_pronoun(word) for word in self.words], bool) & self.is_known
        )
        return pronouns

    @cached_property
    def function_words(self) -> Flags:
        """[word]: whether it is a function word of the text's language."""
        function_words: Flags = np.array([languages.is_function_word(word, self.language) for word in self.words], bool)
        return function_words

    @cached_property
    def nouns(self) -> Flags:
        """[word]: whether it may be a noun or a name.

        A sentence begins after a special token, as after a full stop.
        """
        words = ["." if special else word for word, special in zip(self.words, self.special, strict=True)]
        nouns: Flags = np.array(english.find_nouns(words), bool) & self.is_known & ~self.function_words
        return nouns

    @cached_property
    def is_reportable(self) -> Flags:
        """[query, key]: the links that may be reported.

        They do not join two function words. From a pronoun they lead only to an earlier noun or name, because readers
        take the other end for the pronoun's referent.
        """
        pairs = np.logical_and.outer(self.is_known, self.is_known)
        pairs &= ~np.logical_and.outer(self.function_words, self.function_words)
        is_reportable: Flags = pairs & (~self.pronouns[:, None] | self.referents)
        return is_reportable

    @cached_property
    def referents(self) -> Flags:
        """[query, key]: links from a third-person pronoun to an earlier noun or name."""
        is_earlier = np.tri(len(self.words), k=-1, dtype=bool)
        referents: Flags = self.pronouns[:, None] & self.nouns & is_earlier
        return referents

    def average_at(self, offset: int) -> Values:
        """Return [head], the mean weight of ordinary tokens on the token at an offset, if it belongs to another word.

        The result is zero for fewer than MIN_WORDS such tokens.
        """
        cells = self._get_diagonal(offset)
        return cells.mean(1, dtype=np.float64) if cells.shape[1] >= MIN_WORDS else np.zeros(len(self.heads))

    def find_strongest_at(self, head: int, offset: int) -> int:
        """Return the token with the largest weight of a head on the token at an offset."""
        return int(self._list_queries(offset)[np.argmax(self._get_diagonal(offset)[head])])

    def _get_diagonal(self, offset: int) -> Weights:
        """Return [head, query], the weights of :meth:`_list_queries` on the tokens at an offset."""
        queries = self._list_queries(offset)
        weights = self.attention.weights
        return weights.reshape(len(self.heads), *weights.shape[2:])[:, queries, queries + offset]

    def _list_queries(self, offset: int) -> npt.NDArray[np.intp]:
        """Return the ordinary tokens, without punctuation, that have a token of another word at an offset."""
        tokens = self.attention.text.tokens
        targets = {i: tokens[i + offset] for i in range(len(tokens)) if 0 <= i + offset < len(tokens)}
        return np.array(
            [
                i
                for i, other in targets.items()
                if not (tokens[i].special or other.special or is_punctuation(tokens[i].text))
                and other.word != tokens[i].word
            ],
            np.intp,
        )


Candidates = Iterator[UnusualFinding]


class Kind(NamedTuple):
    """A kind of finding.

    Attributes:
        name: its name.
        names_words: whether it names words of the text, so that it could give a hidden answer away.
        min_share: the least share for it.
        find: yields its candidates in a reading.
        max_count: the maximum number of them to report, each of another head and another word.
        max_words: the maximum number of words of a text for which it is reported.
    """

    name: str
    names_words: bool
    min_share: float
    find: Callable[[WordReading, str, float], Candidates]
    max_count: int = 1
    max_words: int = MAX_WORDS


def compute_surprise(value: float, expected: float) -> float:
    """Compute how unusual a share is, compared with the expected share, in bits; never below 0."""
    return max(0.0, value * math.log2(value / max(expected, 1e-6))) if value > 0 else 0.0


def _write_share(value: float, habit: float) -> str:
    """Write a share, with the usual share if it is known."""
    return f"{decimal(value)}, usually {decimal(habit)}" if habit else decimal(value)


def _make_offset_finder(offset: int, phrase: str) -> Callable[[WordReading, str, float], Candidates]:
    """Return a function that finds heads which attend to the token at an offset."""

    def find(reading: WordReading, kind: str, min_share: float) -> Candidates:
        values, habits = reading.average_at(offset), reading.get_habit(offset)
        for head_index in np.flatnonzero(values >= min_share):
            head, value, habit = reading.heads[head_index], float(values[head_index]), float(habits[head_index])
            words = (f"{head} {phrase} ({_write_share(value, habit)}).",)
            query = reading.find_strongest_at(int(head_index), offset)
            yield UnusualFinding(kind, head, value, compute_surprise(value, max(values.mean(), habit)), words, query)

    return find


def _find_referents(reading: WordReading, kind: str, min_share: float) -> Candidates:
    """Find the largest link from a third-person pronoun to an earlier noun or name, of heads known for coreference."""
    coreference_heads = sorted({f.head for f in reading.roles if f.role == "coreference"})
    if not coreference_heads or not reading.referents.any():
        return
    links = np.where(reading.referents, reading.attention.only(coreference_heads).by_words().weights[0], -1)
    number, query, key = (int(index) for index in np.unravel_index(links.argmax(), links.shape))
    head, value = coreference_heads[number], float(links[number, query, key])
    if value >= min_share:
        ending = f"”, {decimal(value)} (weak)." if value < WEAK_LINK else f"” ({decimal(value)})."
        words = (f"{head} links “", reading.words[query], "” to “", reading.words[key], ending)
        yield UnusualFinding(kind, head, value, math.inf, words, reading.pieces[query], reading.pieces[key])


def _find_links(reading: WordReading, kind: str, min_share: float) -> Candidates:
    """Find unexpected links between two ordinary words."""
    indices, count = reading.ordinary_words, len(reading.words)
    if len(indices) < MIN_WORDS:
        return
    block = reading.weights[:, indices[:, None], indices].astype(np.float64)  # [head, query, key]
    distances = np.abs(np.subtract.outer(indices, indices))
    usual_shares, column_sums = np.maximum(block.mean(0), 1 / count), block.sum(1)
    diagonal = cache(lambda offset: np.diagonal(block, offset, 1, 2).sum(1))  # [head]
    habit = cache(reading.get_habit)  # [head], of an offset
    is_allowed = (distances >= MIN_DISTANCE) & reading.is_reportable[indices[:, None], indices]
    for head_index, i, j in zip(*np.nonzero((block >= min_share) & is_allowed), strict=True):
        value, query, key = float(block[head_index, i, j]), indices[i], indices[j]
        other_words = len(indices) - 1
        key_mean = (column_sums[head_index, j] - value) / other_words  # mean weight of the other words on this key
        distance_mean = (diagonal(j - i)[head_index] - value) / max(other_words - abs(j - i), 1)
        expected = max(usual_shares[i, j], key_mean, distance_mean, habit(int(key - query))[head_index])
        surprise = compute_surprise(value, expected)
        if surprise < MIN_BITS:
            continue
        query_word, key_word = reading.words[query], reading.words[key]
        middle = "” to another “" if query_word.casefold() == key_word.casefold() else "” to “"
        words = (f"{reading.heads[head_index]} links “", query_word, middle, key_word, f"” ({decimal(value)}).")
        tokens = reading.pieces[query], reading.pieces[key]
        yield UnusualFinding(kind, reading.heads[head_index], value, surprise, words, *tokens)


def _find_marks(reading: WordReading, kind: str, min_share: float) -> Candidates:
    """Find heads that give most of their attention to one punctuation mark."""
    habits = reading.get_habit("punctuation")
    for key in np.flatnonzero(reading.marks & reading.is_known) if len(reading.ordinary_words) >= MIN_WORDS else ():
        values = reading.rows[:, key]
        for head_index in np.flatnonzero(values >= min_share):
            value, habit = float(values[head_index]), float(habits[head_index])
            ending = f"” from everywhere ({_write_share(value, habit)})."
            words = (f"{reading.heads[head_index]} looks at “", reading.words[key], ending)
            query = reading.ordinary_words[np.argmax(reading.weights[head_index, reading.ordinary_words, key])]
            tokens = reading.pieces[query], reading.pieces[key]
            surprise = compute_surprise(value, max(values.mean(), habit))
            yield UnusualFinding(kind, reading.heads[head_index], value, surprise, words, *tokens)


def _find_even_heads(reading: WordReading, kind: str, min_share: float) -> Candidates:
    """Find heads that attend to everything alike, by the entropy of their rows as a share of the largest possible."""
    if len(reading.ordinary_words) < MIN_WORDS:
        return
    attention, habits = reading.attention, reading.get_habit("normalised")
    nats = entropy(attention.weights.reshape(len(reading.heads), *attention.weights.shape[2:])).mean(-1)
    values = nats / math.log(len(attention.text))
    for head_index in np.flatnonzero(values >= min_share):
        value, words = float(values[head_index]), (f"{reading.heads[head_index]} looks at all words equally.",)
        surprise = compute_surprise(value, max(values.mean(), habits[head_index]))
        token = reading.pieces[reading.ordinary_words[0]]
        yield UnusualFinding(kind, reading.heads[head_index], value, surprise, words, token)


def _find_idle_heads(reading: WordReading, kind: str, min_share: float) -> Candidates:
    """Find heads known for linking words that attend to a special token instead.

    The expected share is at least a half.
    """
    active_heads = {f.head for f, active in reading.roles.items() if active}
    linking_heads = {f.head for f in reading.roles if f.role in LINKING_ROLES} - active_heads
    usual_shares = np.maximum(reading.get_habit("cls"), reading.get_habit("sep"))
    for head in sorted(linking_heads.intersection(reading.heads)) if len(reading.ordinary_words) else ():
        head_index = reading.heads.index(head)
        row = np.where(reading.special, reading.rows[head_index], 0)
        key = int(row.argmax())
        value = float(row[key])
        if value >= min_share:
            words = (f"Most of {head}’s attention goes to ", reading.words[key], ", as when it finds nothing to link.")
            query = reading.ordinary_words[np.argmax(reading.weights[head_index, reading.ordinary_words, key])]
            surprise = compute_surprise(value, max(0.5, usual_shares[head_index]))
            yield UnusualFinding(kind, head, value, surprise, words, reading.pieces[query], reading.pieces[key])


KINDS: Mapping[str, Kind] = MappingProxyType({
    row.name: row
    for row in (
        Kind("pronoun", True, MIN_PRONOUN_LINK, _find_referents, max_words=MAX_TOKENS),
        Kind("back", False, MIN_PATTERN, _make_offset_finder(-1, "looks one token back")),
        Kind("ahead", False, MIN_PATTERN, _make_offset_finder(1, "looks one token ahead")),
        Kind("link", True, MIN_LINK, _find_links, max_count=2),
        Kind("mark", True, MIN_PATTERN, _find_marks),
        Kind("even", False, 0.9, _find_even_heads),
        Kind("idle", False, MIN_PATTERN, _find_idle_heads),
    )
})  # fmt: skip


def find_unusual_heads(
    attention: Attention,
    roles: Sequence[Finding] = (),
    is_active: Sequence[bool] | None = None,
    habits: Habits = _NO_HABITS,
    hides_words: bool = False,
) -> tuple[UnusualFinding, ...]:
    """Return the most unusual findings of a reading, at most MAX_FINDINGS, each about another head and word.

    The referent of a pronoun comes first, then the most unusual. There are no findings for other quantities than
    weights, or from one text to another. A text of more than MAX_WORDS words has only the finding about a pronoun.

    Args:
        attention: the reading.
        roles: the known roles of the model's heads.
        is_active: whether each role is active here (:func:`find_active`), or None to compute it.
        habits: the habits of the heads over a corpus, if known.
        hides_words: whether to skip kinds that name words of the text.
    """
    count = len(attention.queries.groups)
    kinds = [row for row in KINDS.values() if count <= row.max_words and not (hides_words and row.names_words)]
    if attention.quantity != WEIGHT or attention.is_cross or not kinds:
        return ()
    heads = frozenset(attention.every_head())
    pairs = zip(roles, find_active(roles, attention) if is_active is None else is_active, strict=True)
    reading = WordReading(attention, {f: active for f, active in pairs if f.head in heads}, habits)
    candidates = [candidate for row in kinds for candidate in row.find(reading, row.name, row.min_share)]
    best: list[UnusualFinding] = []
    for candidate in sorted(candidates, key=lambda candidate: -candidate.surprise):
        is_new = all(candidate.head != other.head and candidate.query != other.query for other in best)
        kind_count = sum(other.kind == candidate.kind for other in best)
        if candidate.surprise >= MIN_BITS and is_new and kind_count < KINDS[candidate.kind].max_count:
            best.append(candidate)
    return tuple(best[:MAX_FINDINGS])


def read_habits(folder: Path) -> Habits:
    """Read the habits from the profile in a folder, with the heads in the order L0H0, L0H1, ….

    The result is empty if the profile lacks the tables. Raises CorpusError if it is damaged.
    """
    habits: defaultdict[str | int, dict[Head, float]] = defaultdict(dict)
    try:
        tables = read_lines(folder, "position", *SHARES)
        if len(tables) <= len(SHARES):
            return {}
        for table, lines in tables.items():
            for line in (dict(zip(HEADINGS[table], cells, strict=True)) for cells in lines):
                head = Head(int(line["layer"]), int(line["head"]))
                if table == "position":
                    habits[int(line["offset"])][head] = float(line["mass"])
                for share in SHARES.get(table, ()):
                    habits[share][head] = float(line[share])
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no averages that can be read: {error}.", MEASURE_AGAIN) from error
    return {key: np.array([by_head[head] for head in sorted(by_head)]) for key, by_head in habits.items()}


@cache
def load_bundled_habits(model: str) -> Habits:
    """Return the habits of the heads of a model that comes with the app, from its first bundled profile.

    Other models have none.
    """
    return next((habits for folder in list_bundled_folders(model) if (habits := read_habits(folder))), {})
