"""The control on the Compare page for the quantity that is drawn."""

from __future__ import annotations

import streamlit as st

from mha_viz.attention.tensors import QUANTITIES
from mha_viz.browser.view import DEFAULTS
from mha_viz.browser.view import QUANTITIES as SHOWN
from mha_viz.ui import address, asking
from mha_viz.ui.address import Address
from mha_viz.ui.parts import guarded, remark


def control(where: Address, is_of_weights: bool, has_second: bool) -> None:
    """The control for the quantity that is drawn, and, for gradients, for the word; a remark instead where only weights
    are compared. ``has_second``: whether a second text is compared with the first by its vector."""
    if is_of_weights:
        if where.quantity != DEFAULTS["shown"]:
            label = SHOWN[where.quantity]
            remark(f"Weights are compared here. A whole layer, or compared heads, can be drawn as {label}.")
        return
    key = f"shown_{where.quantity}"
    st.selectbox(
        "Shown",
        list(SHOWN),
        index=list(SHOWN).index(where.quantity),
        format_func=SHOWN.__getitem__,
        key=key,
        width=220,
        on_change=_on_quantity,
        args=(key,),
    )
    if where.quantity == "gradient" and has_second:
        asking.controls(None, where)
    if where.quantity != DEFAULTS["shown"]:
        remark(QUANTITIES[where.quantity].about)


@guarded()
def _on_quantity(key: str) -> None:
    chosen = st.session_state[key]
    scale = "head" if chosen in SHOWN and not QUANTITIES[chosen].is_share else None
    address.go(shown=None if chosen == DEFAULTS["shown"] else chosen, scale=scale)
