"""Score how often a head points from a mention to one of its antecedents (Clark et al. 2019, section 4.3).

Candidates are the head words of *all* earlier mentions in a chunk of consecutive sentences. A head is right if its
largest weight among them is on a mention of the same chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.reduce import Counts, RunningSums
from mha_viz.attention import Weights
from mha_viz.corpus.treebank import Sentence, Word

MAX_CHUNK_TOKENS = 128  # subwords, special tokens included
THIRD_PERSON = "third_person"
TYPES = ("all", "pronoun", THIRD_PERSON, "proper", "nominal")
NEAREST, SAME_FORM = "nearest", "same_form"
BASELINES = (NEAREST, SAME_FORM)
AGREEMENT = "agreement"  # one more baseline, for third-person pronouns only
PRONOUN_KINDS = {  # form of a third-person pronoun → its kind
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
    """A mention with an earlier mention of its chain. Words are numbered within the chunk.

    Attributes:
        word: the head word of the mention.
        candidates: the head words of all earlier mentions, ascending.
        right: the candidates that belong to the same chain.
        types: the table rows in which the mention is counted.
        half: the parity of the number of its sentence.
    """

    word: int
    candidates: tuple[int, ...]
    right: frozenset[int]
    types: tuple[str, ...]
    half: int


class Chunk(NamedTuple):
    """Consecutive sentences of a document that the model reads together: their words and anaphors."""

    words: tuple[Word, ...]
    anaphors: tuple[Anaphor, ...]
    numbers: tuple[int, ...]  # the numbers of its sentences


def pack_chunks(
    lengths: Sequence[int | None], documents: Sequence[str], max_tokens: int = MAX_CHUNK_TOKENS
) -> Iterator[tuple[int, ...]]:
    """Group consecutive sentences of a document into chunks that fit, and yield the sentence numbers of each chunk.

    Args:
        lengths: subwords per sentence, without special tokens. None marks a sentence that cannot be read: it is in no
            chunk and ends the one before it.
        documents: the document of each sentence.
        max_tokens: the maximum number of subwords in a chunk. A longer sentence is a chunk by itself.
    """
    chunk: list[int] = []
    room = max_tokens
    for number, length in enumerate(lengths):
        if chunk and (length is None or length > room or documents[chunk[-1]] != documents[number]):
            yield tuple(chunk)
            chunk, room = [], max_tokens
        if length is not None:
            chunk.append(number)
            room -= length
    if chunk:
        yield tuple(chunk)


def make_chunk(sentences: Sequence[Sentence], numbers: Sequence[int], first: int = 0) -> Chunk:
    """Join the sentences with these numbers into one text and find its anaphors.

    ``first`` is the number of the first of ``sentences`` in its corpus.
    """
    words: list[Word] = []
    mentions: dict[tuple[str, int], int] = {}  # (chain, head word) → parity of the sentence
    for number in numbers:
        for mention in sentences[number].mentions:
            mentions[mention.chain, len(words) + mention.word] = (first + number) % 2
        words += sentences[number].words
    return Chunk(tuple(words), tuple(_iter_anaphors(words, mentions)), tuple(first + number for number in numbers))


def _iter_anaphors(words: Sequence[Word], mentions: dict[tuple[str, int], int]) -> Iterator[Anaphor]:
    """Yield the anaphors in the order of their words.

    An earlier word is one candidate, however many chains have a mention there.
    """
    earlier_words: list[int] = []
    chains: dict[str, list[int]] = {}  # the earlier words of each chain
    sorted_mentions = sorted(mentions, key=lambda mention: (mention[1], mention[0]))
    for word, word_mentions in groupby(sorted_mentions, key=lambda mention: mention[1]):
        candidates, names = tuple(earlier_words), [chain for chain, _ in word_mentions]
        for chain in names:
            if chain in chains:
                right = frozenset(chains[chain])
                yield Anaphor(word, candidates, right, list_mention_types(words[word]), mentions[chain, word])
        for chain in names:
            chains.setdefault(chain, []).append(word)
        earlier_words.append(word)


def list_mention_types(word: Word) -> tuple[str, ...]:
    """Return the table rows in which a mention with this head word is counted."""
    if word.upos == "PRON":
        is_third_person = "Person=3" in word.features.split("|")
        return ("all", "pronoun", THIRD_PERSON) if is_third_person else ("all", "pronoun")
    return ("all", "proper") if word.upos == "PROPN" else ("all", "nominal")


class Coreference:
    """Running counts over chunks.

    ``sums`` has correct [document, half, type, head], n [document, half, type] and baseline [document, half, type, 2].
    For third-person pronouns it also has agreement [document, half], the cases that the rule of agreement gets right,
    and both [document, half, head], the cases that the head gets right too.
    """

    def __init__(self, heads: int, documents: int = 1) -> None:
        self.sums: RunningSums = {
            "correct": np.zeros((documents, 2, len(TYPES), heads), np.int64),
            "n": np.zeros((documents, 2, len(TYPES)), np.int64),
            "baseline": np.zeros((documents, 2, len(TYPES), len(BASELINES)), np.int64),
            "agreement": np.zeros((documents, 2), np.int64),
            "both": np.zeros((documents, 2, heads), np.int64),
        }

    def add(self, block: Weights, chunk: Chunk, document: int = 0) -> None:
        """Count the anaphors of a chunk. ``block`` is [head, word, word]."""
        for anaphor in chunk.anaphors:
            types = [TYPES.index(name) for name in anaphor.types]
            candidates = np.array(anaphor.candidates)
            right = np.array([candidate in anaphor.right for candidate in anaphor.candidates])
            answers = block[:, anaphor.word, candidates].argmax(axis=1)  # [head]; the first of equal weights
            self.sums["correct"][document, anaphor.half, types] += right[answers]
            self.sums["n"][document, anaphor.half, types] += 1
            guesses = [guess in anaphor.right for guess in guess_by_baselines(anaphor, chunk.words)]
            self.sums["baseline"][document, anaphor.half, types] += np.array(guesses, np.int64)
            if THIRD_PERSON in anaphor.types and guess_by_agreement(anaphor, chunk.words) in anaphor.right:
                self.sums["agreement"][document, anaphor.half] += 1
                self.sums["both"][document, anaphor.half] += right[answers]


def guess_by_baselines(anaphor: Anaphor, words: Sequence[Word]) -> tuple[int, int]:
    """Return the answers of the two baselines.

    They are the nearest candidate, and the nearest candidate with the same form (ignoring case). If none has the same
    form, the second is the nearest, too.
    """
    nearest = anaphor.candidates[-1]
    form = words[anaphor.word].form.casefold()
    same_form = [candidate for candidate in anaphor.candidates if words[candidate].form.casefold() == form]
    return nearest, same_form[-1] if same_form else nearest


def guess_by_agreement(anaphor: Anaphor, words: Sequence[Word]) -> int:
    """Return the answer of the rule of agreement for a third-person pronoun.

    It is the nearest pronoun of its kind (he, him, his, himself; she, …), or else the nearest subject that agrees with
    it, or else the nearest candidate that agrees, or else the nearest candidate. *They* agrees with the plural, *he*,
    *she* and *it* with the singular, and a pronoun of no kind ("’em") with its own number. A word without a number
    counts as singular. No other pronoun agrees.
    """
    kind = _find_pronoun_kind(words[anaphor.word])
    same_kind = [candidate for candidate in anaphor.candidates if kind and _find_pronoun_kind(words[candidate]) == kind]
    is_plural = kind == "they" if kind else _is_plural(words[anaphor.word])
    nominals = [candidate for candidate in anaphor.candidates if words[candidate].upos != "PRON"]
    agreeing_nominals = [candidate for candidate in nominals if _is_plural(words[candidate]) == is_plural]
    subjects = [candidate for candidate in agreeing_nominals if words[candidate].base == "nsubj"]
    return (same_kind or subjects or agreeing_nominals or anaphor.candidates)[-1]


def _find_pronoun_kind(word: Word) -> str | None:
    """Return the kind of a third-person pronoun, such as "he"; None for other words."""
    return PRONOUN_KINDS.get(word.form.casefold()) if word.upos == "PRON" else None


def _is_plural(word: Word) -> bool:
    """Return True if the annotation of a word says that it is plural."""
    return "Number=Plur" in word.features.split("|")


class AgreementComparison(NamedTuple):
    """Heads compared with the rule of agreement on the same third-person pronouns.

    The fields are the arguments of :meth:`mha_viz.analysis.intervals.Documents.compute_net_intervals`.

    Attributes:
        net: [document, head], the right cases of the head minus those of the rule.
        n: [document], the number of cases.
        outcomes: [outcome, head], cases in which both are right, the head alone, the rule alone, or neither.
    """

    net: Counts
    n: Counts
    outcomes: Counts

    @classmethod
    def from_sums(cls, sums: RunningSums) -> AgreementComparison:
        """Compute the comparison from the ``sums`` of :class:`Coreference`."""
        third_person = TYPES.index(THIRD_PERSON)
        n, right, both = (
            sums["n"][:, :, third_person].sum(axis=1),
            sums["correct"][:, :, third_person].sum(axis=1),
            sums["both"].sum(axis=1),
        )
        rule_correct = sums["agreement"].sum(axis=1)[:, None]
        outcomes = (both, right - both, rule_correct - both, n[:, None] - right - rule_correct + both)
        return cls(right - rule_correct, n, np.array([counts.sum(axis=0) for counts in outcomes]))
