"""What shows in one text: whether the roles of heads, measured over a corpus, do, and what is unusual in it.

A head with a position, delimiter or broad role is *active* if this text alone meets the role's threshold. The role of a
head for a relation shows if some word gives more than half of its attention to another word; for coreference, if a
third-person pronoun gives it to an earlier word. In texts without such a link, the head attends to a delimiter (Clark
et al. 2019, section 3.2). Only gold annotation can tell whether the link is the relation.

*Unusual* are up to three findings in plain words, each about one head and one token. Each kind of finding is a row of
:data:`KINDS`: its name, whether it names words of the text, its threshold, and a function that gives candidates. The
first is what a third-person pronoun refers to, if a head is known for coreference: the largest link of such heads
from a pronoun to an earlier noun or name, however unusual it is. How unusual any other candidate is, is counted in
bits: its share of attention, times the logarithm to base 2 of that share over the share that was to be expected. That
is the mean of all heads in this text, or what this head does over a corpus (:data:`Habits`),
whichever is more; for a link, also what it gives elsewhere in the text to that key, and at that distance. This is a
term of a Kullback–Leibler divergence, so all kinds have one scale. Nothing is said below :data:`LEAST` bits: so what
a head does in every text is said only where it does it more than usual.

Never said: a link between two function words, a link that begins or ends at a word that was read as [UNK], and what
happens between the pieces of one word.
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
from mha_viz.analysis.distance import entropy
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.metrics import POSITIONS
from mha_viz.analysis.profile import HEADINGS, REMAKE, read_lines
from mha_viz.analysis.roles import BROAD, DELIMITER, MASS, SHARE
from mha_viz.analysis.shipped import given_folders
from mha_viz.attention import Attention, Head, Weights
from mha_viz.errors import CorpusError
from mha_viz.numerals import decimal
from mha_viz.text import english, is_punctuation, languages
from mha_viz.view.quantities import WEIGHT

OFFSET = {detail: offset for offset, detail in POSITIONS.items()}
LINKING = ("syntax", "coreference")  # roles that link words
TO_ONE = 0.5  # share of a word's attention that goes to one other word

_MEASURES = {metric.detail: metric.measure for metric in metrics.METRICS.values()} | {
    metrics.BOTH: lambda attention: metrics.cls(attention) + metrics.sep(attention)
}

# What each head does in most texts, from the tables of a profile, which are read without pandas: by an offset or one of
# SHARES, [head], its mean share over pieces.
Habits = Mapping[str | int, npt.NDArray[np.float64]]
SHARES: Mapping[str, tuple[str, ...]] = {"delimiter": ("cls", "sep", "punctuation"), "entropy": ("normalised",)}


def active(findings: Sequence[Finding], attention: Attention) -> tuple[bool, ...]:
    """For each role, whether it shows in this text."""
    present = [f for f in findings if f.head in attention.every_head()]
    heads = [*dict.fromkeys(f.head for f in present)]
    with_roles = attention.only(heads) if heads else attention
    seen: dict[Finding, bool] = {}
    for measure, limit, of_kind in _kinds(present, len(attention.text)):
        values = dict(zip(heads, measure(with_roles)[0], strict=True))
        seen |= {f: bool(values[f.head] >= limit) for f in of_kind}
    return tuple(seen.get(f, False) for f in findings)


def _kinds(findings: Sequence[Finding], n: int) -> Iterator[tuple[metrics.MetricFunction, float, list[Finding]]]:
    """The measure, the value that it has to reach, and the roles that it decides."""
    above = math.nextafter  # "more than" a half means: from the next number on
    linking = dict(zip(LINKING, (_strongest, _from_pronouns), strict=True))
    for role, measure in linking.items():
        of_role = [f for f in findings if f.role == role]
        if of_role:
            yield measure, above(TO_ONE, 1), of_role
    for detail in dict.fromkeys(f.detail for f in findings if f.role not in linking):
        of_kind = [f for f in findings if f.detail == detail]
        role = of_kind[0].role
        if role == "position":
            by_mass = [f for f in of_kind if math.isnan(f.low)]
            by_share = [f for f in of_kind if not math.isnan(f.low)]
            yield from ((_MEASURES[detail], above(MASS, 1), part) for part in (by_mass,) if part)
            by_maxima = partial(metrics.maxima_at, offset=OFFSET[detail])
            yield from ((by_maxima, SHARE, part) for part in (by_share,) if part)
        elif role == "delimiter":
            yield _MEASURES[detail], above(DELIMITER, 1), of_kind
        else:
            yield _MEASURES[detail], BROAD * math.log(n), of_kind


def _strongest(attention: Attention) -> metrics.PerHead:
    """[layer, head]: the largest share of its attention that a word gives to another; without special tokens and
    punctuation."""
    return _to_another(attention, lambda text: True)


def _from_pronouns(attention: Attention) -> metrics.PerHead:
    """The same, from third-person pronouns to earlier words."""
    return np.asarray(_to_another(attention, english.is_pronoun, earlier=True))


def _to_another(attention: Attention, asks: Callable[[str], bool], earlier: bool = False) -> metrics.PerHead:
    words = attention.by_words()
    text = words.text
    ordinary = [i for i, t in enumerate(text.tokens) if not (text.special[i] or is_punctuation(t.text))]
    block = words.weights[:, :, ordinary][..., ordinary]
    asking = np.array([asks(text.tokens[i].text) for i in ordinary], bool)
    back = np.subtract.outer(ordinary, ordinary)  # [from, to]: how far back a word looks
    among = asking[:, None] & (back > 0 if earlier else back != 0)
    if not among.any():
        return np.zeros(block.shape[:2])
    strongest: metrics.PerHead = np.where(among, block, 0).max(axis=(2, 3)).astype(np.float64)
    return strongest


# ---- What is unusual ----------------------------------------------------------------------------------------

MOST = 3  # findings of one text
MOST_WORDS = 128  # words of the longest text about which anything is said,
MOST_TOKENS = 1_024  # but for what a pronoun refers to: no more than a large matrix of two heads
LEAST = 0.5  # bits
ROWS = 3  # the fewest words from which a pattern of a head can be told
PATTERN = 0.5  # the least share for a pattern
LINK, APART = 0.25, 2  # a link: its least weight, and the least distance of its ends in words
WEAK = 0.3  # below this weight, the link from a pronoun is called weak,
NOTHING = 0.05  # and below this one there is none, as no number stands on a drawn link

Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[np.float64]


class Unusual(NamedTuple):
    """One finding. ``words``: a sentence in parts, every second one from the text, in quotation marks of its
    neighbours. ``query``, ``key``: the pieces that show it, ``key`` None if the whole row does. ``surprise``: in bits;
    infinite if it comes first however unusual it is."""

    kind: str
    head: Head
    value: float
    surprise: float
    words: tuple[str, ...]
    query: int
    key: int | None = None


_NO_HABITS: Habits = MappingProxyType({})


class Seen:
    """A reading by words, with what several kinds need. Weights are [head, query, key], with the heads in the order
    L0H0, L0H1, …"""

    def __init__(self, attention: Attention, roles: Mapping[Finding, bool], habits: Habits = _NO_HABITS) -> None:
        self.attention, self.roles, self.every = attention, roles, attention.every_head()
        self._habits = habits
        text = attention.text.by_words()
        self.pieces = [group[0] for group in attention.text.groups]
        self.words = [token.text for token in text.tokens]
        self.special = np.array(text.special, bool)
        self.marks = np.array([is_punctuation(word) for word in self.words], bool) & ~self.special
        self.is_known = np.array([token.known for token in text.tokens], bool)  # not read as [UNK]
        self.plain = np.flatnonzero(~(self.special | self.marks))
        self.language = languages.language_of([self.words[i] for i in self.plain])

    @cached_property
    def weights(self) -> Weights:
        """[head, query, key]: the weights between words."""
        weights = self.attention.by_words().weights
        return weights.reshape(len(self.every), *weights.shape[2:])

    @cached_property
    def rows(self) -> Values:
        """[head, key]: the mean row of a head, over ordinary words."""
        rows: Values = self.weights[:, self.plain].mean(1, dtype=np.float64)
        return rows

    def habit(self, what: str | int) -> Values:
        """[head]: what each does over a corpus, 0 where that is not known."""
        shares = self._habits.get(what, np.zeros(0))
        return shares if len(shares) == len(self.every) else np.zeros(len(self.every))

    @cached_property
    def pronouns(self) -> Flags:
        """[word]: whether it is a third-person pronoun; none in a text of another language than English, or in a
        program."""
        typed = self.attention.text
        is_english = self.language in ("", languages.ENGLISH) and not english.is_code(f"{typed.text}\n{typed.pair}")
        pronouns: Flags = (
            np.array([is_english and english.is_pronoun(word) for word in self.words], bool) & self.is_known
        )
        return pronouns

    @cached_property
    def functions(self) -> Flags:
        """[word]: whether it is a function word of the text's language."""
        functions: Flags = np.array([languages.is_function_word(word, self.language) for word in self.words], bool)
        return functions

    @cached_property
    def nouns(self) -> Flags:
        """[word]: whether it may be a noun or a name. A sentence begins after a special token as after a full stop."""
        words = ["." if special else word for word, special in zip(self.words, self.special, strict=True)]
        nouns: Flags = np.array(english.nouns(words), bool) & self.is_known & ~self.functions
        return nouns

    @cached_property
    def linked(self) -> Flags:
        """[query, key]: the links that can be said: not between two function words, and from a pronoun only to an
        earlier noun or name, because any other is read as what it refers to."""
        pairs = np.logical_and.outer(self.is_known, self.is_known) & ~np.logical_and.outer(
            self.functions, self.functions
        )
        linked: Flags = pairs & (~self.pronouns[:, None] | self.referents)
        return linked

    @cached_property
    def referents(self) -> Flags:
        """[query, key]: from a third-person pronoun to an earlier noun or name."""
        earlier = np.tri(len(self.words), k=-1, dtype=bool)
        referents: Flags = self.pronouns[:, None] & self.nouns & earlier
        return referents

    def at(self, offset: int) -> Values:
        """[head]: the mean weight of ordinary pieces on the piece at an offset, where that is of another word; zero for
        fewer than ROWS of them."""
        cells = self._diagonal(offset)
        return cells.mean(1, dtype=np.float64) if cells.shape[1] >= ROWS else np.zeros(len(self.every))

    def strongest_at(self, head: int, offset: int) -> int:
        """The piece of a head that gives most to the piece at an offset."""
        return int(self._queries(offset)[np.argmax(self._diagonal(offset)[head])])

    def _diagonal(self, offset: int) -> Weights:
        queries = self._queries(offset)
        weights = self.attention.weights
        return weights.reshape(len(self.every), *weights.shape[2:])[:, queries, queries + offset]

    def _queries(self, offset: int) -> npt.NDArray[np.intp]:
        tokens = self.attention.text.tokens
        there = {i: tokens[i + offset] for i in range(len(tokens)) if 0 <= i + offset < len(tokens)}
        return np.array(
            [
                i
                for i, other in there.items()
                if not (tokens[i].special or other.special or is_punctuation(tokens[i].text))
                and other.word != tokens[i].word
            ],
            np.intp,
        )


Candidates = Iterator[Unusual]


class Kind(NamedTuple):
    """A kind of finding: its name, whether it names words of the text, so that it could give a hidden answer away, the
    least share for it, its candidates in a reading, how many of it are said, each of another head and another word,
    and the most words of a text of which it is said."""

    name: str
    names_words: bool
    least: float
    find: Callable[[Seen, str, float], Candidates]
    most: int = 1
    longest: int = MOST_WORDS


def bits(value: float, expected: float) -> float:
    """How unusual a share is beside the expected one; never below 0."""
    return max(0.0, value * math.log2(value / max(expected, 1e-6))) if value > 0 else 0.0


def _measured(value: float, habit: float) -> str:
    """The share in words, beside the usual one if it is known."""
    return f"{decimal(value)}, usually {decimal(habit)}" if habit else decimal(value)


def _at(offset: int, says: str) -> Callable[[Seen, str, float], Candidates]:
    """Heads that look at the token at an offset."""

    def find(seen: Seen, kind: str, least: float) -> Candidates:
        values, habits = seen.at(offset), seen.habit(offset)
        for place in np.flatnonzero(values >= least):
            head, value, habit = seen.every[place], float(values[place]), float(habits[place])
            words = (f"{head} {says} ({_measured(value, habit)}).",)
            query = seen.strongest_at(int(place), offset)
            yield Unusual(kind, head, value, bits(value, max(values.mean(), habit)), words, query)

    return find


def _referents(seen: Seen, kind: str, least: float) -> Candidates:
    """The largest link from a third-person pronoun to an earlier noun or name, of all heads known for coreference."""
    referring = sorted({f.head for f in seen.roles if f.role == "coreference"})
    if not referring or not seen.referents.any():
        return
    links = np.where(seen.referents, seen.attention.only(referring).by_words().weights[0], -1)
    at, query, key = (int(place) for place in np.unravel_index(links.argmax(), links.shape))
    head, value = referring[at], float(links[at, query, key])
    if value >= least:
        says = f"”, {decimal(value)} (weak)." if value < WEAK else f"” ({decimal(value)})."
        words = (f"{head} links “", seen.words[query], "” to “", seen.words[key], says)
        yield Unusual(kind, head, value, math.inf, words, seen.pieces[query], seen.pieces[key])


def _links(seen: Seen, kind: str, least: float) -> Candidates:
    """The unexpected links between two ordinary words."""
    plain, count = seen.plain, len(seen.words)
    if len(plain) < ROWS:
        return
    block = seen.weights[:, plain[:, None], plain].astype(np.float64)  # [head, query, key]
    apart = np.abs(np.subtract.outer(plain, plain))
    usual, columns = np.maximum(block.mean(0), 1 / count), block.sum(1)
    diagonal = cache(lambda by: np.diagonal(block, by, 1, 2).sum(1))  # [head]
    habit = cache(seen.habit)  # [head], of an offset
    sayable = (apart >= APART) & seen.linked[plain[:, None], plain]
    for place, i, j in zip(*np.nonzero((block >= least) & sayable), strict=True):
        value, (query, key), others = float(block[place, i, j]), (plain[i], plain[j]), len(plain) - 1
        beside = (columns[place, j] - value) / others  # what other words give to this key
        along = (diagonal(j - i)[place] - value) / max(others - abs(j - i), 1)
        surprise = bits(value, max(usual[i, j], beside, along, habit(int(key - query))[place]))
        if surprise < LEAST:
            continue
        one, other = seen.words[query], seen.words[key]
        to = "” to another “" if one.casefold() == other.casefold() else "” to “"
        words = (f"{seen.every[place]} links “", one, to, other, f"” ({decimal(value)}).")
        places = seen.pieces[query], seen.pieces[key]
        yield Unusual(kind, seen.every[place], value, surprise, words, *places)


def _mark(seen: Seen, kind: str, least: float) -> Candidates:
    """Heads of which most goes to one punctuation mark."""
    habits = seen.habit("punctuation")
    for key in np.flatnonzero(seen.marks & seen.is_known) if len(seen.plain) >= ROWS else ():
        values = seen.rows[:, key]
        for place in np.flatnonzero(values >= least):
            value, habit = float(values[place]), float(habits[place])
            says = f"” from everywhere ({_measured(value, habit)})."
            words = (f"{seen.every[place]} looks at “", seen.words[key], says)
            query = seen.plain[np.argmax(seen.weights[place, seen.plain, key])]
            places = seen.pieces[query], seen.pieces[key]
            yield Unusual(kind, seen.every[place], value, bits(value, max(values.mean(), habit)), words, *places)


def _even(seen: Seen, kind: str, least: float) -> Candidates:
    """Heads that look at everything alike: the entropy of their rows, as a share of the largest possible one."""
    if len(seen.plain) < ROWS:
        return
    reading, habits = seen.attention, seen.habit("normalised")
    nats = entropy(reading.weights.reshape(len(seen.every), *reading.weights.shape[2:])).mean(-1)
    values = nats / math.log(len(reading.text))
    for place in np.flatnonzero(values >= least):
        value, words = float(values[place]), (f"{seen.every[place]} looks at all words alike.",)
        surprise = bits(value, max(values.mean(), habits[place]))
        yield Unusual(kind, seen.every[place], value, surprise, words, seen.pieces[seen.plain[0]])


def _idle(seen: Seen, kind: str, least: float) -> Candidates:
    """Heads known for linking words that rest on a special token instead: an even half was to be expected."""
    shown = {f.head for f, shows in seen.roles.items() if shows}
    experts = {f.head for f in seen.roles if f.role in LINKING} - shown
    resting = np.maximum(seen.habit("cls"), seen.habit("sep"))
    for head in sorted(experts.intersection(seen.every)) if len(seen.plain) else ():
        place = seen.every.index(head)
        row = np.where(seen.special, seen.rows[place], 0)
        key = int(row.argmax())
        value = float(row[key])
        if value >= least:
            words = (f"Most of {head}’s attention goes to ", seen.words[key], ", as when it finds nothing to link.")
            query = seen.plain[np.argmax(seen.weights[place, seen.plain, key])]
            surprise = bits(value, max(0.5, resting[place]))
            yield Unusual(kind, head, value, surprise, words, seen.pieces[query], seen.pieces[key])


KINDS: Mapping[str, Kind] = MappingProxyType({
    row.name: row
    for row in (
        Kind("pronoun", True, NOTHING, _referents, longest=MOST_TOKENS),
        Kind("back", False, PATTERN, _at(-1, "looks one token back")),
        Kind("ahead", False, PATTERN, _at(1, "looks one token ahead")),
        Kind("link", True, LINK, _links, most=2),
        Kind("mark", True, PATTERN, _mark),
        Kind("even", False, 0.9, _even),
        Kind("idle", False, PATTERN, _idle),
    )
})  # fmt: skip


def unusual(
    attention: Attention,
    roles: Sequence[Finding] = (),
    shows: Sequence[bool] | None = None,
    habits: Habits = _NO_HABITS,
    quiet: bool = False,
) -> tuple[Unusual, ...]:
    """The most unusual findings of a reading, at most MOST, of one head and word each: first what a pronoun refers
    to, then the most unusual first; none for other quantities than weights and from one text to another; of a text
    of more than MOST_WORDS words only what a pronoun refers to. ``roles``: what the model's heads are known for, if
    anything; ``shows``, whether each does here (:func:`active`), or None; ``habits``: what the heads do over a
    corpus, if that is known; ``quiet``: only kinds that name no words of the text.
    """
    count = len(attention.queries.groups)
    kinds = [row for row in KINDS.values() if count <= row.longest and not (quiet and row.names_words)]
    if attention.quantity != WEIGHT or attention.is_cross or not kinds:
        return ()
    there = frozenset(attention.every_head())
    each = zip(roles, active(roles, attention) if shows is None else shows, strict=True)
    seen = Seen(attention, {f: is_shown for f, is_shown in each if f.head in there}, habits)
    every = [one for row in kinds for one in row.find(seen, row.name, row.least)]
    best: list[Unusual] = []
    for one in sorted(every, key=lambda one: -one.surprise):
        is_new = all(one.head != other.head and one.query != other.query for other in best)
        of_kind = sum(other.kind == one.kind for other in best)
        if one.surprise >= LEAST and is_new and of_kind < KINDS[one.kind].most:
            best.append(one)
    return tuple(best[:MOST])


def read_habits(folder: Path) -> Habits:
    """The habits that the profile in a folder states, with the heads in the order L0H0, L0H1, …; empty without its
    tables. Raises CorpusError if it is damaged."""
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
        raise CorpusError(f"{folder} holds no averages that can be read: {error}.", REMAKE) from error
    return {what: np.array([of_heads[head] for head in sorted(of_heads)]) for what, of_heads in habits.items()}


@cache
def given_habits(model: str) -> Habits:
    """The habits of the heads of a model that comes with the app, from its first shipped profile; none of others."""
    return next((habits for folder in given_folders(model) if (habits := read_habits(folder))), {})
