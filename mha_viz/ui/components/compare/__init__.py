"""Heads side by side on one colour scale, with linked hover and signed differences, in one interactive drawing."""

from __future__ import annotations

from collections.abc import Callable

from mha_viz.ui.components import drawing

_mount = drawing("compare")


def compare(packet: bytes, key: str, on_view: Callable[[], None], on_edit: Callable[[], None]) -> None:
    """Draw the panels of ``figures.panels``.

    ``on_view`` runs when the user changed the view; ``st.session_state[key].view`` then holds the URL parameters that
    differ from their defaults (None: it is removed): as, unit, special, links, scale, diff, pin, at.

    ``on_edit`` runs when the user changed the compared heads; ``st.session_state[key].edit`` then holds ``action``
    ("rename", "duplicate", "remove", "move", "open", "pin"), ``index`` (the panel's place among the compared heads, or
    its number where the panels are not the compared heads), ``to`` (for "move": its new place), ``name`` (for
    "rename"); ``head``, ``model``, ``text`` and ``pair`` of the panel; and ``view``: the URL parameters after the
    change, because the panels that ``diff`` and ``at`` count have moved. They go into the URL in the same step.
    """
    _mount(key=key, data=packet, on_view_change=on_view, on_edit_change=on_edit)
