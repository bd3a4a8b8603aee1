"""The note on a figure in which hardly anything is visible, because all its weights are small or a rule leaves no
link."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.drawing.marks import Note
from mha_viz.figures.view import Block, View, chosen

FAINT = 0.15  # on a scale from 0 to 1: weights below this have nearly the colour of the paper


def faint_cells(view: View, parts: Sequence[Block]) -> tuple[Note, ...]:
    """A note that all weights shown are so small that a scale from 0 to 1 hardly shows them."""
    if view.scale != "fixed" or not 0 < _largest(parts) < FAINT:
        return ()
    problem = f"All weights shown are less than {FAINT:g}, which a scale from 0 to 1 hardly shows."
    return (Note("", f'{problem} Use scale="head", which runs to the largest weight.'),)


def faint_links(view: View, parts: Sequence[Block]) -> tuple[Note, ...]:
    """The same for links, or a note that the rule of the view leaves none."""
    if any(chosen(part.w, view.links).any() for part in parts) or not any(part.w.size for part in parts):
        return faint_cells(view, parts)
    remedy = f'The largest weight shown is {parts[0].size(_largest(parts))}: ask for less than links="{view.links}".'
    return (Note("No weight is large enough for a link.", remedy),)


def _largest(parts: Sequence[Block]) -> float:
    return max((part.top for part in parts), default=0.0)
