"""The page that explains the pictures: one head drawn as links and as a matrix, with the text in columns.

If the URL names a chapter of the documentation, the page shows that instead.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

from mha_viz import figures as figure_api
from mha_viz.app.service.caches import first_reading, lasting
from mha_viz.app.widgets import chapters, download_panel, navigation, parts
from mha_viz.app.widgets.components import apply_style
from mha_viz.figures.drawing.theme import DARK

BESIDE = 3  # paragraphs beside the figure
HEAD, PIN = "L3H1", "q10"  # of the first example: the pronoun, which this head links to its noun


def show_about() -> None:
    """Show the explanation, or a chapter of the documentation."""
    if chapter := chapters.opened():
        chapters.show_chapter(chapter)
        return
    apply_style("about")
    st.header("What the pictures show, and what they do not")
    text = parts.formulas(parts.text_of("about.md")).split("\n\n")
    with st.container(key="about_figure"):
        *places, beside = st.columns(3, gap="large")
        for picture, place in zip(_pictures("dark" if parts.theme() is DARK else "light"), places, strict=True):
            place.html(picture)
        beside.markdown("\n\n".join(text[:BESIDE]))
    parameters = {"head": HEAD, "pin": PIN}
    st.page_link(navigation.page("explore"), label=":primary[Open it in Explore]", query_params=parameters)
    with st.container(key="about_text"):
        st.markdown("\n\n".join(text[BESIDE:]))


@lasting(2)
def _pictures(look: Literal["light", "dark"]) -> tuple[str, str]:
    """Draw the head as links and as a matrix, in the way that files are drawn."""
    attention = first_reading()
    links, matrix = (
        draw(attention, HEAD, pin=PIN, special="hide", width_mm=110, font_pt=11, look=look, transparent=True)
        for draw in (figure_api.links, figure_api.heatmap)
    )
    return download_panel.image(links, links.drawing.alt), download_panel.image(matrix, matrix.drawing.alt)
