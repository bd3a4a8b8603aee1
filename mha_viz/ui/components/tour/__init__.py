"""Leads the eye and the keyboard to a step of the tour."""

from __future__ import annotations

from mha_viz.ui.components import drawing

_mount = drawing("tour")


def lead(step: str, place: str) -> None:
    """Where ``step`` is new, bring the element that the CSS selector ``place`` names into sight."""
    _mount(key="tour_lead", data={"step": step, "place": place}, width="content")
