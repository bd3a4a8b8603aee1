"""Which sentences of a corpus can be read as texts with rules: a first pass, since what is drawn at random depends on
the place of a sentence among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.rules import RuleText
from mha_viz.analysis.shipped import LONGEST
from mha_viz.corpus.limits import choose_step
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import TextError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.cases import CaseKind, Cases, NumberedSentence, Readable, completed_cases

FORMAT = 1  # version of the cases on disk


def text_of(encoder: Encoder, sentence: Sentence) -> RuleText | None:
    """Return the sentence as the model reads it; None if it cannot, or it has more than LONGEST pieces."""
    try:
        pieces = encoder.read_words(sentence.forms)
    except TextError:  # too long, or a word that the tokenizer drops
        return None
    return RuleText(sentence, pieces, bool(encoder.causal)) if len(pieces) <= LONGEST else None


@dataclass(frozen=True)
class TextCases(CaseKind):
    """A case for each sentence that can be read: its pieces."""

    def definition(self, offset: int) -> list[object]:
        """Which are tried."""
        return [FORMAT, "texts", self.step, offset]

    def cases(self, encoder: Encoder, numbered: Sequence[NumberedSentence]) -> Cases:
        """Return the pieces of each that can be read."""
        cases = Cases(read=len(numbered))
        for number, sentence in numbered:
            if (text := text_of(encoder, sentence)) is not None:
                cases.cases.append(np.array([len(text)], float))
                cases.units.append((sentence.document, number))
        return cases


class ReadTexts(NamedTuple):
    """The sentences that can be read, of every ``step``-th: their ``numbers`` and ``documents``, and the numbers of the
    others, ``unread``."""

    step: int
    numbers: list[int]
    documents: list[str]
    unread: tuple[int, ...]

    @classmethod
    def of(
        cls, encoder: Encoder, source: Readable, most: int, measured: Callable[[CaseKind], Cases] | None = None
    ) -> ReadTexts:
        """Those of a corpus, of ``most`` that are tried. ``measured`` returns the cases of a kind over it. Raises
        CorpusError and ClusterError."""
        kind = TextCases(step := choose_step(source.count, most))
        units = (measured(kind) if measured else completed_cases(source.run(encoder, kind), lambda _: None)).units
        numbers = [number for _, number in units]
        unread = sorted({*range(0, source.count, step)} - {*numbers})
        return cls(step, numbers, [document for document, _ in units], tuple(unread))


def place_among(number: int, step: int, unread: Sequence[int]) -> int:
    """Return the place of a sentence among those that can be read."""
    return number // step - bisect_left(unread, number)
