"""The page that explains the pictures: one head drawn as links and as a matrix, and the text in one or two columns."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from mha_viz import figure as figure_api
from mha_viz.figures.theme import DARK
from mha_viz.ui import download_panel, navigation, parts, style
from mha_viz.ui.caches import lasting
from mha_viz.ui.model_service import first_reading

HEAD, PIN = "L3H1", "q10"  # of the first example: the pronoun, which this head links to its noun


def show_about() -> None:
    """The figure with an explanation of its parts, the text, and the table of models."""
    style.apply("about")
    st.header("What the pictures show")
    with st.container(key="about_figure"):
        columns = st.columns([5, 6, 4], gap="large", vertical_alignment="center")
        links, matrix = _pictures("dark" if parts.theme() is DARK else "light")
        with columns[0]:
            st.html(links)
        with columns[1]:
            st.html(matrix)
        with columns[2]:
            st.markdown(
                f"**One head, two pictures.** Both show head {HEAD} of MiniLM on the same sentence, with the word *it* "
                "held. **First**: a line from each word that looks (*query*) to the word that it looks at (*key*); the "
                "stronger the line, the larger the weight. **Second**: the same weights as a matrix; the framed row is "
                "*it*, whose weight is mostly on *animal*. `[CLS]` and `[SEP]` are left out in both."
            )
            parameters = {"head": HEAD, "pin": PIN}
            st.page_link(navigation.page("explore"), label=":primary[Open it in Explore]", query_params=parameters)
    with st.container(key="about_text"):
        st.markdown(parts.formulas(parts.text_of("about.md")))
    st.header("Models")
    with st.container(key="wide_models"):
        parts.model_table()


@lasting(2)
def _pictures(look: Literal["light", "dark"]) -> tuple[str, str]:
    """The head as links and as a matrix, drawn as files are."""
    attention = first_reading()
    links = figure_api.links(
        attention, HEAD, pin=PIN, special="hide", width_mm=110, font_pt=11, look=look, transparent=True
    )
    matrix = figure_api.heatmap(
        attention, HEAD, pin=PIN, special="hide", width_mm=110, font_pt=11, look=look, transparent=True
    )
    return download_panel.image(links, links.drawing.alt), download_panel.image(matrix, matrix.drawing.alt)
