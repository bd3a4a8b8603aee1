"""A placeholder with the page's shape, shown until the first drawing arrives, so that the page does not look empty or
broken."""

from __future__ import annotations

import streamlit as st

from mha_viz.attention import Attention
from mha_viz.ui import inference, style
from mha_viz.ui.address import Url

_SHAPE = '<div class="mha-skeleton" aria-hidden="true"><i></i><i></i></div>'


def requested_reading(what: Url) -> Attention | None:
    """The reading that the page shows, as :func:`inference.read_shown`, with the placeholder until it is drawn."""
    style.apply("skeleton")
    shape = st.empty()
    shape.html(_SHAPE)
    attention = None
    try:
        attention = inference.read_shown(what.text, what.where)
    finally:
        if attention is None:
            shape.empty()
    return attention
