"""Why a head links two tokens and what it then writes, in as few words as fit into a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mha_viz.attention.parts import GROUPS, FloatSums

MAX_EXPLAINED = 64  # tokens; the links of longer texts are not explained
NAMED_WORDS = 3  # words named for each key
MIN_SECOND = 0.5  # the second reason is named if it is at least this share of the first


@dataclass(frozen=True, eq=False)
class LinkReasons:
    """Why the links of a head are strong, and the words that each key moves a token towards.

    Attributes:
        codes: [query, key], the reasons of each link (:func:`encode_reasons`); None if the model cannot tell.
        words: the words of each key, the strongest first; None if the model cannot tell.
    """

    codes: npt.NDArray[np.uint8] | None
    words: tuple[tuple[str, ...], ...] | None


def encode_reasons(sums: FloatSums) -> npt.NDArray[np.uint8]:
    """Return one or two reasons of each link as a code, [query, key].

    ``sums``: [query, key, group], what the key's side adds to a score above the mean of the keys
    (:func:`mha_viz.attention.parts.sum_key_groups`). The code is the number of the largest positive group, counted from
    1, plus 16 times that of the second if it is at least half as large. It is 0 if no group is positive.
    """
    positive = np.nan_to_num(np.maximum(sums, 0), nan=0)
    order = np.argsort(-positive, axis=-1, kind="stable")[..., :2]
    first, second = np.moveaxis(np.take_along_axis(positive, order, axis=-1), -1, 0)
    codes = np.where(first > 0, 1 + order[..., 0], 0)
    codes += np.where((first > 0) & (second >= MIN_SECOND * first), 16 * (1 + order[..., 1]), 0)
    return codes.astype(np.uint8)


def decode_reasons(code: int) -> tuple[str, ...]:
    """Return the groups of a code, the largest first."""
    return tuple(GROUPS[number - 1] for number in (code & 15, code >> 4) if number)
