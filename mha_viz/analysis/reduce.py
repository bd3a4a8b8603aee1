"""Batches of sentences, and attention between the words of one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Weights
from mha_viz.attention.words import between
from mha_viz.text import WordPieces

Counts = npt.NDArray[np.int64]
Sums = npt.NDArray[np.float64]

Running = dict[str, npt.NDArray[Any]]  # sums and counts by name: those of different sentences can be added up

TINY = np.finfo(np.float32).tiny  # 1.2e-38, in place of 0 in a logarithm: 0 · log(TINY) is 0


class Batch(NamedTuple):
    """Sentences with equally many pieces: ``weights`` [head, sentence, query, key], with the heads in the order L0H0,
    L0H1, …; the texts of the sentences; and their numbers in the corpus."""

    weights: Weights
    pieces: tuple[WordPieces, ...]
    numbers: tuple[int, ...]


def word_block(weights: Weights, words: Sequence[int | None]) -> Weights:
    """[head, word, word] from [head, piece, piece]; special tokens are dropped and nothing is rescaled."""
    groups: list[list[int]] = []
    for piece, word in enumerate(words):
        if word == len(groups):
            groups.append([piece])
        elif word is not None:
            groups[word].append(piece)
    return between(weights, groups, groups)
