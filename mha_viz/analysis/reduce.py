"""Batches of sentences, and attention between the words of one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Weights
from mha_viz.attention.tensors import between
from mha_viz.text import WordPieces

Counts = npt.NDArray[np.int64]
FloatSums = npt.NDArray[np.float64]

Ordinary = npt.NDArray[np.bool_]  # [token]: False for special tokens
Running = dict[str, npt.NDArray[Any]]  # sums and counts by name: those of different sentences can be added up

TINY = np.finfo(np.float32).tiny  # 1.2e-38, in place of 0 in a logarithm: 0 · log(TINY) is 0


@dataclass(frozen=True)
class Batch:
    """Sentences with equally many pieces and their special tokens at the same positions: ``weights`` [head, sentence,
    query, key], with the heads in the order L0H0, L0H1, …; the texts of the sentences; and their numbers in the
    corpus."""

    weights: Weights
    pieces: tuple[WordPieces, ...]
    numbers: tuple[int, ...]

    @cached_property
    def ordinary(self) -> Ordinary:
        """[token]: False for special tokens."""
        return np.array([word is not None for word in self.pieces[0].words])

    @cached_property
    def largest(self) -> npt.NDArray[np.intp]:
        """As :func:`largest_ordinary`."""
        return largest_ordinary(self.weights, self.ordinary)


def largest_ordinary(weights: Weights, ordinary: Ordinary) -> npt.NDArray[np.intp]:
    """[head, sentence, row]: the token with the largest weight in each row of an ordinary token, ignoring special
    columns; among equal weights, the first. ``weights``: [head, sentence, query, key]."""
    at = np.flatnonzero(ordinary)
    if not at.size:
        return np.zeros((*weights.shape[:2], 0), np.intp)
    within = between_special(at)
    content = weights[:, :, within, within] if isinstance(within, slice) else weights[:, :, at[:, None], at]
    return np.stack([at[head.argmax(axis=2)] for head in content])


def between_special(ordinary: npt.NDArray[np.intp]) -> slice | npt.NDArray[np.intp]:
    """An index of the ordinary tokens: a slice, which gives a view, if special tokens are only at the ends."""
    first, last = int(ordinary[0]), int(ordinary[-1])
    return slice(first, last + 1) if last - first + 1 == len(ordinary) else ordinary


def word_block(weights: Weights, words: Sequence[int | None]) -> Weights:
    """[head, word, word] from [head, piece, piece]; special tokens are dropped and nothing is rescaled."""
    groups: list[list[int]] = []
    for piece, word in enumerate(words):
        if word == len(groups):
            groups.append([piece])
        elif word is not None:
            groups[word].append(piece)
    return between(weights, groups, groups)
