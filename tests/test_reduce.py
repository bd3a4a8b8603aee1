"""From pieces to words: sums over keys, means over queries, nothing rescaled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.reduce import reduce_to_words
from mha_viz.attention.tensors import merge_to_words
from tests import brute

# [CLS] the play ##ing [SEP]
PIECES = [
    [0.6, 0.1, 0.1, 0.1, 0.1],
    [0.1, 0.2, 0.3, 0.2, 0.2],
    [0.1, 0.4, 0.1, 0.3, 0.1],
    [0.1, 0.2, 0.5, 0.1, 0.1],
    [0.2, 0.2, 0.2, 0.2, 0.2],
]
WORDS = [None, 0, 1, 1, None]


def test_to_a_word_the_sum_and_from_a_word_the_mean() -> None:
    # the → the 0.2, the → playing 0.3 + 0.2; play and ##ing give the 0.4 and 0.2 (mean 0.3), playing 0.4 and 0.6 (0.5)
    block = reduce_to_words(np.array([PIECES], np.float32), WORDS)
    assert block == pytest.approx(np.array([[[0.2, 0.5], [0.3, 0.5]]]))


def test_words_of_one_piece_are_cut_out_as_they_are() -> None:
    weights = np.array([PIECES], np.float32)
    block = reduce_to_words(weights, [None, 0, 1, 2, None])
    assert (block == weights[:, 1:4, 1:4]).all()
    block[:] = 0  # it is a copy
    assert weights[0, 1, 1] == np.float32(0.2)


def test_special_tokens_may_stand_anywhere_or_not_at_all() -> None:
    weights = np.array([PIECES], np.float32)
    assert reduce_to_words(weights, [0, 1, None, None, 2]) == pytest.approx(weights[:, [0, 1, 4]][:, :, [0, 1, 4]])
    # first word: columns 0 + 1 of rows 0 and 1: (0.7 + 0.3) / 2; second: columns 2 + 3 + 4 of the other rows: 1.4 / 3
    block = reduce_to_words(weights, [0, 0, 1, 1, 1])
    assert block == pytest.approx(np.array([[[0.5, 0.5], [(0.5 + 0.3 + 0.4) / 3, (0.5 + 0.7 + 0.6) / 3]]]))


@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_as_the_plain_loops_and_rows_sum_to_one_with_what_special_tokens_get(sizes: list[int], seed: int) -> None:
    words = [None, *(word for word, size in enumerate(sizes) for _ in range(size)), None]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(words)), (2, len(words)))
    block = reduce_to_words(weights.astype(np.float32), words)
    for head in (0, 1):
        assert block[head] == pytest.approx(brute.sum_to_words(weights[head], words), abs=1e-6)
        for word in range(len(sizes)):
            special = [weights[head, i, 0] + weights[head, i, -1] for i, w in enumerate(words) if w == word]
            assert block[head, word].sum() + np.mean(special) == pytest.approx(1, abs=1e-6)


def test_rows_and_columns_may_be_grouped_differently_and_some_left_out() -> None:
    weights = np.array([PIECES], np.float64)
    words = merge_to_words(weights, [[2, 3]], [[0], [1, 4]])  # from playing, to [CLS] and to (the + [SEP])
    assert words.dtype == np.float64
    assert words == pytest.approx(np.array([[[0.1, (0.4 + 0.1 + 0.2 + 0.1) / 2]]]))
    assert weights[0] == pytest.approx(np.array(PIECES))
    assert merge_to_words(weights, [], [[0, 1]]).shape == (1, 0, 1)
