"""The page that explains the pictures: one head drawn as links and as a matrix, with the text in columns.

If the URL names a chapter of the documentation, the page shows that instead.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

from mha_viz import figures as figure_api
from mha_viz.app.service.caches import cache_results, load_first_reading
from mha_viz.app.widgets import chapters, download_panel, navigation, parts
from mha_viz.app.widgets.components import apply_style
from mha_viz.figures.drawing.theme import DARK

PARAGRAPHS_BESIDE = 3  # paragraphs beside the figure
HEAD, PIN = "L3H1", "q10"  # in the first example: the pronoun, which this head links to its noun


def show_about() -> None:
    """Show the explanation, or a chapter of the documentation."""
    if chapter := chapters.read_chapter_name():
        chapters.show_chapter(chapter)
        return
    apply_style("about")
    st.header("What the pictures show, and what they do not")
    text = parts.format_formulas(parts.read_text_asset("about.md")).split("\n\n")
    with st.container(key="about_figure"):
        *columns, text_column = st.columns(3, gap="large")
        for picture, column in zip(
            _draw_pictures("dark" if parts.get_theme() is DARK else "light"), columns, strict=True
        ):
            column.html(picture)
        text_column.markdown("\n\n".join(text[:PARAGRAPHS_BESIDE]))
    parameters = {"head": HEAD, "pin": PIN}
    st.page_link(navigation.find_page("explore"), label=":primary[Open it in Explore]", query_params=parameters)
    with st.container(key="about_text"):
        st.markdown("\n\n".join(text[PARAGRAPHS_BESIDE:]))


@cache_results(2)
def _draw_pictures(look: Literal["light", "dark"]) -> tuple[str, str]:
    """Draw the head as links and as a matrix, with the drawing code of downloaded files."""
    attention = load_first_reading()
    links, matrix = (
        draw(attention, HEAD, pin=PIN, special="hide", width_mm=110, font_pt=11, look=look, transparent=True)
        for draw in (figure_api.links, figure_api.heatmap)
    )
    return download_panel.draw_image(links, links.drawing.alt), download_panel.draw_image(matrix, matrix.drawing.alt)
