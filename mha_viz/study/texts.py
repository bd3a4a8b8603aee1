"""Find the sentences of a corpus that can be read as texts with rules.

This is a first pass over the corpus: later random draws depend on the index of a sentence among the readable ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.bundled_data import MAX_TOKENS
from mha_viz.analysis.rules import RuleText
from mha_viz.corpus.limits import choose_step
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import TextError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.cases import CaseKind, Cases, MeasurableCorpus, NumberedSentence, collect_cases

FORMAT = 1  # version of the cases on disk


def read_text(encoder: Encoder, sentence: Sentence) -> RuleText | None:
    """Return the sentence as the model reads it; None if it cannot or if there are more than MAX_TOKENS tokens."""
    try:
        pieces = encoder.read_words(sentence.forms)
    except TextError:  # too long, or a word that the tokenizer drops
        return None
    return RuleText(sentence, pieces, bool(encoder.causal)) if len(pieces) <= MAX_TOKENS else None


@dataclass(frozen=True)
class TextCases(CaseKind):
    """A case for each sentence that can be read, with its number of tokens."""

    def definition(self, offset: int) -> list[object]:
        """Return the settings that determine which sentences are tried."""
        return [FORMAT, "texts", self.step, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the number of tokens of each sentence that can be read."""
        cases = Cases(sentences_read=len(numbered_sentences))
        for number, sentence in numbered_sentences:
            if (text := read_text(encoder, sentence)) is not None:
                cases.cases.append(np.array([len(text)], float))
                cases.units.append((sentence.document, number))
        return cases


class ReadableTexts(NamedTuple):
    """The sentences that can be read, among every ``step``-th sentence of a corpus.

    Attributes:
        step: one sentence in ``step`` was tried.
        numbers: the numbers of the readable sentences.
        documents: the document of each readable sentence.
        unread: the numbers of the other sentences that were tried.
    """

    step: int
    numbers: list[int]
    documents: list[str]
    unread: tuple[int, ...]

    @classmethod
    def find(
        cls, encoder: Encoder, source: MeasurableCorpus, most: int, collect: Callable[[CaseKind], Cases] | None = None
    ) -> ReadableTexts:
        """Find the readable sentences of a corpus, trying at most ``most``. Raises CorpusError and ClusterError.

        ``collect`` returns the cases of a kind over the corpus.
        """
        kind = TextCases(step := choose_step(source.count, most))
        units = (collect(kind) if collect else collect_cases(source.run(encoder, kind), lambda _: None)).units
        numbers = [number for _, number in units]
        unread = sorted({*range(0, source.count, step)} - {*numbers})
        return cls(step, numbers, [document for document, _ in units], tuple(unread))


def find_readable_index(number: int, step: int, unread: Sequence[int]) -> int:
    """Return the index of a sentence, by its number in the corpus, among the readable sentences."""
    return number // step - bisect_left(unread, number)
