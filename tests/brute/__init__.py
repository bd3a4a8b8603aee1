"""The measures once more, as plainly as can be: one sentence at a time, one head at a time, loops, float64.

Written from the definitions alone. It takes nothing from the package: its own reader of CoNLL-U, transformers' own
eager attention, its own sums. The tests compare the tables of a study with it number by number.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.brute.annotated import Sentence, read
from tests.brute.dependencies import (
    Key,
    answer,
    best_of,
    both_right,
    by_set_rules,
    kinds,
    offset_baseline,
    questions,
    set_rules,
    syntax,
    uas,
)
from tests.brute.mentions import Chunk, anaphors, chunks, coreference, gap
from tests.brute.model import Model, Reading
from tests.brute.patterns import delimiter, distance, entropy, in_word, position
from tests.brute.statistics import Count, best, between_words, bootstrap, interval, wilson

__all__ = [
    "Chunk",
    "Count",
    "Key",
    "Model",
    "Reading",
    "Results",
    "Sentence",
    "anaphors",
    "answer",
    "best",
    "best_of",
    "between_words",
    "bootstrap",
    "both_right",
    "by_set_rules",
    "coreference",
    "delimiter",
    "distance",
    "entropy",
    "gap",
    "in_word",
    "interval",
    "kinds",
    "offset_baseline",
    "position",
    "questions",
    "read",
    "results",
    "set_rules",
    "syntax",
    "uas",
    "wilson",
]


@dataclass
class Results:
    """All tables; ``sentences`` of the corpus that the model reads, with their index in the file."""

    sentences: list[tuple[int, Sentence, Reading]]
    chunks: list[tuple[Chunk, Reading]]

    def of(self, parity: int | None = None) -> list[tuple[Sentence, Reading]]:
        """Return the sentences of even (0) or odd (1) index, or all."""
        return [(s, r) for i, s, r in self.sentences if parity is None or i % 2 == parity]

    @property
    def readings(self) -> list[Reading]:
        return [reading for _, _, reading in self.sentences]


def results(text: str, model: Model) -> Results:
    sentences = read(text)
    read_ones = [(i, s, r) for i, s in enumerate(sentences) if (r := model.words(s.forms)) is not None]
    parts = [(chunk, r) for chunk in chunks(sentences, model) if (r := model.words(chunk.forms)) is not None]
    return Results(read_ones, parts)
