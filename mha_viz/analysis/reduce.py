"""Batches of sentences, and reduction of attention between tokens to attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Weights
from mha_viz.attention.tensors import merge_to_words
from mha_viz.text import WordPieces

Counts = npt.NDArray[np.int64]
FloatSums = npt.NDArray[np.float64]

OrdinaryTokens = npt.NDArray[np.bool_]  # [token]: False for special tokens
RunningSums = dict[str, npt.NDArray[Any]]  # sums and counts by name; those of different sentences can be added

TINY = np.finfo(np.float32).tiny  # 1.2e-38; replaces 0 in a logarithm, because 0 · log(TINY) is 0


@dataclass(frozen=True)
class Batch:
    """Sentences with the same number of tokens and special tokens at the same positions.

    ``weights`` is [head, sentence, query, key], with the heads in the order L0H0, L0H1, …; ``pieces`` are the texts of
    the sentences, and ``numbers`` their numbers in the corpus.
    """

    weights: Weights
    pieces: tuple[WordPieces, ...]
    numbers: tuple[int, ...]

    @cached_property
    def is_ordinary(self) -> OrdinaryTokens:
        """[token]: False for special tokens."""
        return np.array([word is not None for word in self.pieces[0].words])

    @cached_property
    def largest_keys(self) -> npt.NDArray[np.intp]:
        """The result of :func:`find_largest_ordinary` for the batch."""
        return find_largest_ordinary(self.weights, self.is_ordinary)


def find_largest_ordinary(weights: Weights, ordinary: OrdinaryTokens) -> npt.NDArray[np.intp]:
    """Return [head, sentence, row], the token with the largest weight in the row of each ordinary token.

    Special columns are ignored; of equal weights, the first is chosen. ``weights`` is [head, sentence, query, key].
    """
    tokens = np.flatnonzero(ordinary)
    if not tokens.size:
        return np.zeros((*weights.shape[:2], 0), np.intp)
    index = index_ordinary(tokens)
    block = weights[:, :, index, index] if isinstance(index, slice) else weights[:, :, tokens[:, None], tokens]
    return np.stack([tokens[head.argmax(axis=2)] for head in block])


def index_ordinary(ordinary: npt.NDArray[np.intp]) -> slice | npt.NDArray[np.intp]:
    """Return an index of the ordinary tokens: a slice, which gives a view, if special tokens are only at the ends."""
    first, last = int(ordinary[0]), int(ordinary[-1])
    return slice(first, last + 1) if last - first + 1 == len(ordinary) else ordinary


def reduce_to_words(weights: Weights, words: Sequence[int | None]) -> Weights:
    """Reduce [head, token, token] to [head, word, word]. Special tokens are dropped, and nothing is rescaled."""
    groups: list[list[int]] = []
    for piece, word in enumerate(words):
        if word == len(groups):
            groups.append([piece])
        elif word is not None:
            groups[word].append(piece)
    return merge_to_words(weights, groups, groups)
