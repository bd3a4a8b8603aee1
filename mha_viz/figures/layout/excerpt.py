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
    w: npt.NDArray[np.float64], focus: Focus | None, max_tokens: int, max_parts: int, has_share: bool = True
) -> tuple[list[Excerpt], tuple[Note, ...]]:
    """Return the excerpts of ``w`` [row, column], with at most ``max_tokens`` per axis, and notes on omitted tokens.

    If everything fits, there is one excerpt with all tokens. Otherwise there is one excerpt around the pinned token or,
    without a pin, up to ``max_parts`` excerpts of equal height side by side. An axis that fits is complete in each.
    ``has_share``: whether the note states the share of attention that is left out, which would be too small if only
    some links are drawn. Signs of weights are ignored.
    """
    w = np.abs(w)
    lengths = w.shape
    longest = max(lengths)
    if longest <= max_tokens:
        return [Excerpt(range(lengths[0]), range(lengths[1]))], ()
    if focus is not None:
        return cut_excerpt_around(w, focus, max_tokens)
    count = min(math.ceil(longest / max_tokens), max_parts)
    drawn_count = min(longest, count * max_tokens)
    sides = [list(_split_axis(length, max_tokens, count, drawn_count / longest)) for length in lengths]
    excerpts = [Excerpt(*pair) for pair in zip(*sides, strict=True)]
    missing = _format_missing(sum(float(w[np.ix_(*e)].sum()) for e in excerpts), float(w.sum()))
    tokens = f"The {longest} tokens" if drawn_count == longest else f"The first {drawn_count} of {longest} tokens"
    placement = f"are set in {count} columns" if count > 1 else "are drawn"
    omission = f"; {missing} of the attention is left out." if has_share else "."
    width_advice = "" if drawn_count == longest else "To add columns for the rest, raise width_mm. "
    pin_advice = "With a pin, those around it are drawn."
    return excerpts, (Note(f"{tokens} {placement}{omission}", f"{REMEDY}. {width_advice}{pin_advice}"),)


def _split_axis(length: int, max_tokens: int, count: int, drawn_share: float) -> Iterator[range]:
    """Cut an axis into ``count`` parts, which cover the share ``drawn_share`` of it.

    If the axis fits, yield the complete axis ``count`` times.
    """
    if length <= max_tokens:
        yield from [range(length)] * count
        return
    ends = [math.floor(length * drawn_share * i / count + 0.5) for i in range(count + 1)]
    yield from (range(start, end) for start, end in pairwise(ends))


def cut_excerpt_around(
    w: npt.NDArray[np.float64], focus: Focus, max_tokens: int, remedy: str = REMEDY
) -> tuple[list[Excerpt], tuple[Note, ...]]:
    """Return the excerpt of ``w`` [row, column] around the pinned token, and a note on the tokens that are left out.

    The pinned token is in the middle; the other axis has the ``max_tokens`` consecutive tokens of largest total weight.
    Signs of weights are ignored.
    """
    w = np.abs(w)
    pinned_weights = w[slice(None) if focus.row is None else focus.row, slice(None) if focus.col is None else focus.col]
    axis_weights = None if pinned_weights.ndim == 0 else pinned_weights
    excerpt = Excerpt(
        _choose_window(w.shape[0], focus.row, max_tokens, axis_weights),
        _choose_window(w.shape[1], focus.col, max_tokens, axis_weights),
    )
    excerpt_weights = (
        pinned_weights if axis_weights is None else axis_weights[excerpt.rows if focus.row is None else excerpt.cols]
    )
    missing = _format_missing(float(excerpt_weights.sum()), float(pinned_weights.sum()))
    sentence = f"Of {max(w.shape)} tokens, {max_tokens} on each axis are drawn, around the pinned token; "
    return [excerpt], (Note(f"{sentence}{missing} of its attention is left out.", f"{remedy}."),)


def _format_missing(shown: float, total: float) -> str:
    return numerals.percent(1 - shown / total if total > 0 else 0.0)


def _choose_window(length: int, pinned: int | None, max_tokens: int, weights: npt.NDArray[np.float64] | None) -> range:
    """Return at most ``max_tokens`` consecutive tokens: around ``pinned``, or else those of largest total weight."""
    if length <= max_tokens:
        return range(length)
    if pinned is not None or weights is None:
        start = max(0, min((pinned or 0) - max_tokens // 2, length - max_tokens))
    else:
        sums = np.convolve(weights, np.ones(max_tokens), "valid")
        start = int(sums.argmax())
    return range(start, start + max_tokens)
