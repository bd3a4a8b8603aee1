"""From tokens to words: attention *to* a word is the sum over its tokens, *from* a word the mean over them.

Clark et al. 2019, section 4.1. Every number of a word, on screen, in a file or in a table, is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

F = TypeVar("F", np.float32, np.float64)
Groups = Sequence[Sequence[int]]  # the tokens of each word, in order; a special token counts as a word


def between(weights: npt.NDArray[F], queries: Groups, keys: Groups) -> npt.NDArray[F]:
    """[..., query word, key word] from [..., query, key]. Tokens in no group are left out; nothing is rescaled."""
    if all(len(group) == 1 for group in (*queries, *keys)):  # selected first
        rows, columns = (np.array([group[0] for group in groups], np.intp) for groups in (queries, keys))
        return weights[..., rows[:, None], columns]
    return averaged(summed(weights, keys, -1), queries, -2)


def averaged(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """The mean over the tokens of each group, in a new array with the groups along ``axis``."""
    means = summed(values, groups, axis)
    if any(len(group) > 1 for group in groups):
        np.moveaxis(means, axis, -1)[...] /= np.array([len(group) for group in groups], values.dtype)
    return means


def summed(values: npt.NDArray[F], groups: Groups, axis: int) -> npt.NDArray[F]:
    """The sum over the tokens of each group, added in their order, in the same form as :func:`averaged`."""
    sums = np.take(values, np.array([group[0] for group in groups], np.intp), axis)
    into, tokens = np.moveaxis(sums, axis, 0), np.moveaxis(values, axis, 0)  # views
    for word, group in enumerate(groups):
        for token in group[1:]:
            into[word] += tokens[token]
    return sums
