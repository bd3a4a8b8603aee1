"""Excerpts of long texts, for figures whose page has no room for all tokens with their labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz import numerals
from mha_viz.figures.drawing.marks import Note
from mha_viz.figures.layout.view import Axes, Focus

REMEDY = "For all of them, raise max_height_mm or lower font_pt"  # for links: more tokens need more height


class Excerpt(NamedTuple):
    """Rows and columns that are shown together, each a contiguous range."""

    rows: range
    cols: range

    def axes(self, axes: Axes) -> Axes:
        """Return the tokens of the excerpt."""
        return Axes(*(tuple(side[i] for i in indices) for side, indices in zip(axes, self, strict=True)))

    def place_focus(self, focus: Focus | None) -> Focus | None:
        """Return the pinned tokens by their positions in this excerpt, which must contain them."""
        if focus is None:
            return None
        return Focus(*(None if index is None else index - side.start for index, side in zip(focus, self, strict=True)))


def cut_excerpts(
    w: npt.NDArray[np.float64], focus: Focus | None, fit: int, max_parts: int, has_share: bool = True
) -> tuple[list[Excerpt], tuple[Note, ...]]:
    """Return the excerpts of ``w`` [row, column], with at most ``fit`` tokens per axis, and notes on omitted tokens.

    If everything fits, there is one excerpt with all tokens. Otherwise there is one excerpt around the pinned token or,
    without a pin, up to ``max_parts`` excerpts of equal height side by side. An axis that fits is complete in each.
    ``has_share``: whether the note states the share of attention that is left out, which would be too small if only
    some links are drawn.
    """
    lengths = w.shape
    longest = max(lengths)
    if longest <= fit:
        return [Excerpt(range(lengths[0]), range(lengths[1]))], ()
    if focus is not None:
        return cut_excerpt_around(w, focus, fit)
    count = min(math.ceil(longest / fit), max_parts)
    drawn_share = min(longest, count * fit)
    sides = [list(_split_axis(length, fit, count, drawn_share / longest)) for length in lengths]
    parts = [Excerpt(*pair) for pair in zip(*sides, strict=True)]
    missing = numerals.percent(1 - sum(float(w[np.ix_(*part)].sum()) for part in parts) / max(float(w.sum()), 1e-12))
    tokens = f"The {longest} tokens" if drawn_share == longest else f"The first {drawn_share} of {longest} tokens"
    placement = f"are set in {count} columns" if count > 1 else "are drawn"
    omitted = f"; {missing} of the attention is left out." if has_share else "."
    or_width = "" if drawn_share == longest else "For the rest in further columns, raise width_mm. "
    around_pin = "With a pin, those around it are drawn."
    return parts, (Note(f"{tokens} {placement}{omitted}", f"{REMEDY}. {or_width}{around_pin}"),)


def _split_axis(length: int, fit: int, count: int, drawn_share: float) -> Iterator[range]:
    """Cut an axis into ``count`` parts, which cover the share ``drawn_share`` of it.

    If the axis fits, yield the complete axis ``count`` times.
    """
    if length <= fit:
        yield from [range(length)] * count
        return
    ends = [math.floor(length * drawn_share * i / count + 0.5) for i in range(count + 1)]
    yield from (range(start, end) for start, end in pairwise(ends))


def cut_excerpt_around(
    w: npt.NDArray[np.float64], focus: Focus, fit: int, remedy: str = REMEDY
) -> tuple[list[Excerpt], tuple[Note, ...]]:
    """Return the excerpt of ``w`` [row, column] around the pinned token, and a note on the tokens that are left out.

    The pinned token is in the middle; the other axis has the ``fit`` consecutive tokens with the largest total weight.
    """
    pinned_weights = w[slice(None) if focus.row is None else focus.row, slice(None) if focus.col is None else focus.col]
    axis_weights = None if pinned_weights.ndim == 0 else pinned_weights
    part = Excerpt(
        _choose_window(w.shape[0], focus.row, fit, axis_weights),
        _choose_window(w.shape[1], focus.col, fit, axis_weights),
    )
    part_weights = (
        pinned_weights if axis_weights is None else axis_weights[part.rows if focus.row is None else part.cols]
    )
    missing = numerals.percent(1 - float(part_weights.sum()) / max(float(pinned_weights.sum()), 1e-12))
    sentence = f"Of {max(w.shape)} tokens, {fit} on either side are drawn, around the pinned token; "
    return [part], (Note(f"{sentence}{missing} of its attention is left out.", f"{remedy}."),)


def _choose_window(length: int, pinned: int | None, fit: int, weights: npt.NDArray[np.float64] | None) -> range:
    """Return at most ``fit`` consecutive tokens: around token ``pinned``, or else with the largest sum of weights."""
    if length <= fit:
        return range(length)
    if pinned is not None or weights is None:
        start = max(0, min((pinned or 0) - fit // 2, length - fit))
    else:
        sums = np.convolve(weights, np.ones(fit), "valid")
        start = int(sums.argmax())
    return range(start, start + fit)
