"""Moves view and keyboard focus to a step of the tour."""

from __future__ import annotations

from mha_viz.ui.components import drawing

_mount = drawing("tour")


def lead(step: str, place: str) -> None:
    """If ``step`` is new, scroll the element that the CSS selector ``place`` names into view."""
    _mount(key="tour_lead", data={"step": step, "place": place}, width="content")
