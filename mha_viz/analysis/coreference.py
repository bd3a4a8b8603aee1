"""Which head points from a mention to one of its antecedents (Clark et al. 2019, section 4.3), and the names of GAP.

Candidates are the head words of *all* earlier mentions in a chunk of consecutive sentences; a head is right if its
largest weight among them is on a mention of the same chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.reduce import Counts, Running
from mha_viz.attention import Weights
from mha_viz.corpus.treebank import Sentence, Word

CHUNK = 128  # pieces, special tokens included
THIRD_PERSON = "third_person"
TYPES = ("all", "pronoun", THIRD_PERSON, "proper", "nominal")
NEAREST, SAME_FORM = "nearest", "same_form"
BASELINES = (NEAREST, SAME_FORM)
AGREEMENT = "agreement"  # a further rule, of third-person pronouns
KINDS = {  # the forms of a kind of third-person pronoun
    form: kind
    for kind, forms in {
        "he": "he him his himself",
        "she": "she her hers herself",
        "it": "it its itself",
        "they": "they them their theirs themselves themself",
    }.items()
    for form in forms.split()
}


class Anaphor(NamedTuple):
    """A mention with an earlier mention of its chain. All numbers count words of the chunk: the head word of the
    mention, the head words of all earlier mentions (ascending), and those of them that are right. ``types`` are the
    table rows in which it is counted; ``half`` is the parity of its sentence's number."""

    word: int
    candidates: tuple[int, ...]
    right: frozenset[int]
    types: tuple[str, ...]
    half: int


class Chunk(NamedTuple):
    """Consecutive sentences of a document, read together: their words, and the anaphors among them."""

    words: tuple[Word, ...]
    anaphors: tuple[Anaphor, ...]
    numbers: tuple[int, ...]  # numbers of its sentences


def pack(lengths: Sequence[int | None], documents: Sequence[str], most: int = CHUNK) -> Iterator[tuple[int, ...]]:
    """Numbers of the sentences of each chunk: as many consecutive ones of a document as fit into ``most`` pieces.

    ``lengths`` are pieces per sentence, without special tokens, None for a sentence that cannot be read: it is in no
    chunk and ends the one before it. A sentence that is longer than ``most`` is a chunk by itself.
    """
    chunk: list[int] = []
    room = most
    for number, length in enumerate(lengths):
        if chunk and (length is None or length > room or documents[chunk[-1]] != documents[number]):
            yield tuple(chunk)
            chunk, room = [], most
        if length is not None:
            chunk.append(number)
            room -= length
    if chunk:
        yield tuple(chunk)


def chunk(sentences: Sequence[Sentence], numbers: Sequence[int], first: int = 0) -> Chunk:
    """The sentences with these numbers as one text, with its anaphors. ``first``: the number of the first sentence in
    its corpus."""
    words: list[Word] = []
    mentions: dict[tuple[str, int], int] = {}  # (chain, head word) → parity of the sentence
    for number in numbers:
        for mention in sentences[number].mentions:
            mentions[mention.chain, len(words) + mention.word] = (first + number) % 2
        words += sentences[number].words
    return Chunk(tuple(words), tuple(_anaphors(words, mentions)), tuple(first + number for number in numbers))


def _anaphors(words: Sequence[Word], mentions: dict[tuple[str, int], int]) -> Iterator[Anaphor]:
    """The anaphors in the order of their words; each earlier word is counted once, however many chains have a mention
    there."""
    earlier: list[int] = []
    chains: dict[str, list[int]] = {}  # the earlier words of each chain
    ordered = sorted(mentions, key=lambda mention: (mention[1], mention[0]))
    for word, here in groupby(ordered, key=lambda mention: mention[1]):
        candidates, names = tuple(earlier), [chain for chain, _ in here]
        for chain in names:
            if chain in chains:
                right = frozenset(chains[chain])
                yield Anaphor(word, candidates, right, types_of(words[word]), mentions[chain, word])
        for chain in names:
            chains.setdefault(chain, []).append(word)
        earlier.append(word)


def types_of(word: Word) -> tuple[str, ...]:
    """The table rows in which a mention with this head word is counted."""
    if word.upos == "PRON":
        third = "Person=3" in word.features.split("|")
        return ("all", "pronoun", THIRD_PERSON) if third else ("all", "pronoun")
    return ("all", "proper") if word.upos == "PROPN" else ("all", "nominal")


class Coreference:
    """Running counts over chunks. ``sums``: correct [document, half, type, head], n [document, half, type], baseline
    [document, half, type, 2]; of third-person pronouns, agreement [document, half], how many that rule gets right, and
    both [document, half, head], how many of these the head gets right too."""

    def __init__(self, heads: int, documents: int = 1) -> None:
        self.sums: Running = {
            "correct": np.zeros((documents, 2, len(TYPES), heads), np.int64),
            "n": np.zeros((documents, 2, len(TYPES)), np.int64),
            "baseline": np.zeros((documents, 2, len(TYPES), len(BASELINES)), np.int64),
            "agreement": np.zeros((documents, 2), np.int64),
            "both": np.zeros((documents, 2, heads), np.int64),
        }

    def add(self, block: Weights, chunk: Chunk, document: int = 0) -> None:
        """Add one chunk; ``block`` is [head, word, word]."""
        for anaphor in chunk.anaphors:
            types = [TYPES.index(name) for name in anaphor.types]
            candidates = np.array(anaphor.candidates)
            right = np.array([candidate in anaphor.right for candidate in anaphor.candidates])
            chosen = block[:, anaphor.word, candidates].argmax(axis=1)  # [head]; among equal ones, the first
            self.sums["correct"][document, anaphor.half, types] += right[chosen]
            self.sums["n"][document, anaphor.half, types] += 1
            guesses = [guess in anaphor.right for guess in guessed(anaphor, chunk.words)]
            self.sums["baseline"][document, anaphor.half, types] += np.array(guesses, np.int64)
            if THIRD_PERSON in anaphor.types and agreeing(anaphor, chunk.words) in anaphor.right:
                self.sums["agreement"][document, anaphor.half] += 1
                self.sums["both"][document, anaphor.half] += right[chosen]


def guessed(anaphor: Anaphor, words: Sequence[Word]) -> tuple[int, int]:
    """The answers of the two baselines: the nearest candidate; and the nearest with the same form (ignoring case), or
    else the nearest."""
    nearest = anaphor.candidates[-1]
    form = words[anaphor.word].form.casefold()
    alike = [candidate for candidate in anaphor.candidates if words[candidate].form.casefold() == form]
    return nearest, alike[-1] if alike else nearest


def agreeing(anaphor: Anaphor, words: Sequence[Word]) -> int:
    """The answer of the rule of agreement for a third-person pronoun: the nearest pronoun of its kind (he, him, his,
    himself; she, …), or else the nearest subject that agrees with it, or else the nearest candidate that does, or else
    the nearest. They agrees with the plural, he, she and it with the singular, a pronoun of no kind ("’em") with its
    own number; a word without a number is singular. No other pronoun agrees."""
    kind = _kind(words[anaphor.word])
    of_kind = [candidate for candidate in anaphor.candidates if kind and _kind(words[candidate]) == kind]
    is_plural = kind == "they" if kind else _is_plural(words[anaphor.word])
    nominals = [candidate for candidate in anaphor.candidates if words[candidate].upos != "PRON"]
    agree = [candidate for candidate in nominals if _is_plural(words[candidate]) == is_plural]
    subjects = [candidate for candidate in agree if words[candidate].base == "nsubj"]
    return (of_kind or subjects or agree or anaphor.candidates)[-1]


def _kind(word: Word) -> str | None:
    return KINDS.get(word.form.casefold()) if word.upos == "PRON" else None


def _is_plural(word: Word) -> bool:
    return "Number=Plur" in word.features.split("|")


class BesideAgreement(NamedTuple):
    """Heads and the rule of agreement on the same third-person pronouns, as
    :meth:`mha_viz.analysis.intervals.Documents.of_net` compares them: ``net`` [document, head], how many more the head
    gets right; ``n`` [document]; ``outcomes`` [outcome, head]: both, the head alone, the rule alone, neither."""

    net: Counts
    n: Counts
    outcomes: Counts

    @classmethod
    def of(cls, sums: Running) -> BesideAgreement:
        """From the ``sums`` of :class:`Coreference`."""
        at = TYPES.index(THIRD_PERSON)
        n, right, both = (
            sums["n"][:, :, at].sum(axis=1),
            sums["correct"][:, :, at].sum(axis=1),
            sums["both"].sum(axis=1),
        )
        by_rule = sums["agreement"].sum(axis=1)[:, None]
        outcomes = (both, right - both, by_rule - both, n[:, None] - right - by_rule + both)
        return cls(right - by_rule, n, np.array([counts.sum(axis=0) for counts in outcomes]))
