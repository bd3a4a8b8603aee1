"""Measure on GAP which of two names a head attends to more from a pronoun (Webster et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mha_viz.analysis.reduce import RunningSums
from mha_viz.attention.tensors import merge_to_words
from mha_viz.corpus.treebank import Gap, GapRow
from mha_viz.errors import TextError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import TokenizedText


def is_decided(row: GapRow) -> bool:
    """Return whether the pronoun refers to one of the names; other rows are not scored."""
    return row.a[2] != row.b[2]


def sum_gap_scores(encoder: Encoder, gap: Gap, numbers: Sequence[int]) -> RunningSums:
    """Sum the scores of the decided rows among ``numbers``: correct [half, head], n [half], scored [row of the table].

    A row that exceeds the model's limit is skipped.
    """
    sums: RunningSums = {
        "correct": np.zeros((2, encoder.layers * encoder.heads), np.int64),
        "n": np.zeros(2, np.int64),
        "scored": np.zeros(len(gap.rows), bool),
    }
    for number in numbers:
        row = gap.rows[number]
        right = _score_row(encoder, row) if is_decided(row) else None
        if right is not None:
            sums["correct"][number % 2] += right
            sums["n"][number % 2] += 1
            sums["scored"][number] = True
    return sums


def _score_row(encoder: Encoder, row: GapRow) -> np.ndarray | None:
    """Return whether each head gives the right name more attention, [head]; None if the row cannot be scored."""
    try:
        is_complete = encoder.tokenize(row.text).cut is None
    except TextError:
        return None
    if not is_complete:
        return None
    attention = encoder.encode(row.text)
    pieces = [
        _find_tokens(attention.text, *_locate_last_word(form, start)) for form, start, *_ in (row.pronoun, row.a, row.b)
    ]
    if not all(pieces):
        return None
    # Attention from the pronoun to each name, [head], with the heads of all layers in order.
    a, b = (merge_to_words(attention.weights, [pieces[0]], [name]).reshape(-1) for name in pieces[1:])
    return np.asarray((a > b) == row.a[2])


def _locate_last_word(span: str, start: int) -> tuple[int, int]:
    """Return where the last space-separated word of a span begins and ends, in characters.

    ``start`` is where the span begins.
    """
    last = span.split()[-1] if span.split() else span
    begin = start + span.rindex(last)
    return begin, begin + len(last)


def _find_tokens(text: TokenizedText, begin: int, end: int) -> list[int]:
    """Return the tokens that overlap these characters; empty if the characters were cut off."""
    return [
        i
        for i, token in enumerate(text.tokens)
        if token.start is not None and token.end is not None and token.start < end and token.end > begin
    ]


def is_nearest_name_right(row: GapRow) -> bool:
    """Return whether the name nearer to the pronoun, in characters, is the right one."""
    distances = [abs(name[1] - row.pronoun[1]) for name in (row.a, row.b)]
    return (row.a if distances[0] <= distances[1] else row.b)[2]
