"""A placeholder with the page's shape, shown until the first drawing arrives, so that the page does not look empty or
broken."""

from __future__ import annotations

import streamlit as st

from mha_viz.attention import Attention
from mha_viz.ui import inference
from mha_viz.ui.request import PageRequest

# The explorer marks its element once it has drawn; the placeholder is then hidden.
_STYLE = """
<style>
.mha-skeleton { display: grid; grid-template-columns: 46% 1fr; gap: 36px; padding-top: 42px; }
.mha-skeleton i {
  --tile: light-dark(rgb(28 27 25 / 0.07), rgb(235 232 226 / 0.08));
  display: block; background: linear-gradient(var(--tile) 0 0); border-radius: 3px;
}
.mha-skeleton i:first-child { aspect-ratio: 2; background-size: 7.6% 15.2%; background-repeat: space; }
.mha-skeleton i:last-child { background-size: 44% 100%; background-repeat: space; }
.stMain:has([data-drawn]) .stElementContainer:has(> .stHtml .mha-skeleton) { display: none; }
@media (max-width: 980px) { .mha-skeleton { grid-template-columns: 1fr; } .mha-skeleton i:last-child { height: 40vh; } }
@media (prefers-reduced-motion: no-preference) {
  .mha-skeleton { animation: mha-waits 1.4s ease-in-out infinite alternate; }
  @keyframes mha-waits { to { opacity: 0.45; } }
}
</style>
"""
_SHAPE = '<div class="mha-skeleton" aria-hidden="true"><i></i><i></i></div>'


def requested_reading(what: PageRequest) -> Attention | None:
    """The reading that the page shows, as :func:`inference.read_shown`, with the placeholder until it is drawn."""
    st.html(_STYLE)
    shape = st.empty()
    shape.html(_SHAPE)
    attention = None
    try:
        attention = inference.read_shown(what.text, what.where)
    finally:
        if attention is None:
            shape.empty()
    return attention
