"""From pieces to words: the attention of one sentence as its words see each other.

Attention *to* a word is the sum over its pieces, *from* a word the mean over them (Clark et al. 2019, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Weights
from mha_viz.text import WordPieces

Counts = npt.NDArray[np.int64]
Sums = npt.NDArray[np.float64]

Running = dict[str, npt.NDArray[Any]]  # sums and counts by name: those of different sentences add up

TINY = np.finfo(np.float32).tiny  # 1.2e-38, put where a logarithm of 0 would be: 0 · log(TINY) is 0


class Batch(NamedTuple):
    """Sentences with equally many pieces: ``weights`` [head, sentence, query, key], heads in the order L0H0, L0H1, …;
    what was read of each; and the number that each has in its corpus."""

    weights: Weights
    pieces: tuple[WordPieces, ...]
    numbers: tuple[int, ...]


def word_block(weights: Weights, words: Sequence[int | None]) -> Weights:
    """[head, word, word] from [head, piece, piece]; special tokens are dropped and nothing is rescaled."""
    first, sizes, rest = _layout(words)
    if not rest:
        kept: Weights = weights[:, first[:, None], first]
        return kept
    columns = weights[:, :, first]
    for word, piece in rest:
        columns[:, :, word] += weights[:, :, piece]
    rows = columns[:, first]
    for word, piece in rest:
        rows[:, word] += columns[:, piece]
    rows /= sizes[:, None]
    block: Weights = rows
    return block


def _layout(words: Sequence[int | None]) -> tuple[npt.NDArray[np.intp], Weights, list[tuple[int, int]]]:
    """The first piece of each word, the number of its pieces, and (word, piece) for the others."""
    first: list[int] = []
    sizes: list[int] = []
    rest: list[tuple[int, int]] = []
    for piece, word in enumerate(words):
        if word is None:
            continue
        if word == len(first):
            first.append(piece)
            sizes.append(1)
        else:
            sizes[word] += 1
            rest.append((word, piece))
    return np.array(first, np.intp), np.array(sizes, np.float32), rest
