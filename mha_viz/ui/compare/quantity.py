"""The control on the Compare page for the quantity that is drawn."""

from __future__ import annotations

import streamlit as st

from mha_viz.browser.quantities import QUANTITIES
from mha_viz.browser.view import DEFAULTS
from mha_viz.ui import address, asking
from mha_viz.ui.address import Address
from mha_viz.ui.bound import Changes, bound
from mha_viz.ui.parts import remark


def control(where: Address, is_of_weights: bool, has_second: bool) -> None:
    """The control for the quantity that is drawn, and, for gradients, for the word; a remark instead where only weights
    are compared. ``has_second``: whether a second text is compared with the first by its vector."""
    if is_of_weights:
        if where.quantity != DEFAULTS["shown"]:
            drawn_so = "Compared heads, a whole layer and a replaced word can be drawn as"
            remark(f"Weights are compared here. {drawn_so} {QUANTITIES[where.quantity].label}.")
        return
    bound(
        st.selectbox, "Shown", "shown", where.quantity, list(QUANTITIES), change=_quantity,
        format_func=lambda name: QUANTITIES[name].label, width=180, label_visibility="collapsed",
    )  # fmt: skip
    if QUANTITIES[where.quantity].of_answer and has_second:
        asking.controls(None, where)
    if where.quantity != DEFAULTS["shown"]:
        remark(QUANTITIES[where.quantity].about)


def _quantity(chosen: str) -> Changes:
    return {"shown": None if chosen == DEFAULTS["shown"] else chosen, "scale": address.scale_of(chosen)}
