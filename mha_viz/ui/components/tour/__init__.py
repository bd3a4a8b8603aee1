"""Moves view and keyboard focus to a step of the tour."""

from __future__ import annotations

from mha_viz.ui.components import drawing

_mount = drawing("tour")


def lead(step: str, place: str) -> None:
    """If ``step`` is new, scroll into view what the CSS selector ``place`` names: an element, or, as ``… *::part(…)``,
    a part of a drawing inside one."""
    _mount(key="tour_lead", data={"step": step, "place": place}, width="content")
