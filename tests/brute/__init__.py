"""A second, plain implementation of the measures: one sentence and one head at a time, with loops, in float64.

Written from the definitions alone. It takes nothing from the package: its own reader of CoNLL-U, transformers' own
eager attention, its own sums. The tests compare the tables of a study with it number by number.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.brute.annotated import Sentence, read
from tests.brute.dependencies import (
    Key,
    answer,
    count_both_right,
    count_by_offset,
    count_by_set_rules,
    count_kinds,
    find_set_rules,
    pick_best,
    questions,
    syntax,
    uas,
)
from tests.brute.mentions import Chunk, anaphors, build_chunks, count_coreference, count_gap
from tests.brute.model import Model, Reading
from tests.brute.patterns import (
    measure_delimiter,
    measure_distance,
    measure_entropy,
    measure_position,
    measure_within_word,
)
from tests.brute.statistics import Count, bootstrap, find_best, interval, sum_to_words, wilson

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
    "bootstrap",
    "count_both_right",
    "count_by_offset",
    "count_by_set_rules",
    "count_coreference",
    "count_gap",
    "count_kinds",
    "find_best",
    "find_set_rules",
    "interval",
    "measure_delimiter",
    "measure_distance",
    "measure_entropy",
    "measure_position",
    "measure_within_word",
    "pick_best",
    "questions",
    "read",
    "results",
    "sum_to_words",
    "syntax",
    "uas",
    "wilson",
]


@dataclass
class Results:
    """The readings from which all tables are computed: sentences, with their index in the file, and chunks."""

    sentences: list[tuple[int, Sentence, Reading]]
    chunks: list[tuple[Chunk, Reading]]

    def of(self, parity: int | None = None) -> list[tuple[Sentence, Reading]]:
        """Return the sentences of even (0) or odd (1) index, or all."""
        return [(s, r) for i, s, r in self.sentences if parity is None or i % 2 == parity]

    @property
    def readings(self) -> list[Reading]:
        return [reading for _, _, reading in self.sentences]


def results(text: str, model: Model) -> Results:
    """Read the sentences and the chunks of a CoNLL-U text, except those that the model cannot read."""
    sentences = read(text)
    read_sentences = [(i, s, r) for i, s in enumerate(sentences) if (r := model.words(s.forms)) is not None]
    chunks = [(chunk, r) for chunk in build_chunks(sentences, model) if (r := model.words(chunk.forms)) is not None]
    return Results(read_sentences, chunks)
