"""Further questions about multi-head attention, each with its answer, a link that shows it, and the source."""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

import streamlit as st

from mha_viz.app.lab import stage
from mha_viz.app.url import address
from mha_viz.app.widgets import navigation
from mha_viz.app.widgets.parts import format_formulas, get_theme
from mha_viz.figures.layout.parallel import draw_parallel
from mha_viz.files.assets import asset_path

LAYERS_QUESTION = "Are layers parallel"  # the question that has a drawing


class QuizQuestion(NamedTuple):
    """A question with its answer. ``see`` is the label of a link to ``page`` with ``parameters``."""

    question: str
    see: str
    page: str
    parameters: dict[str, str]
    answer: str
    source: str


@cache
def load_questions() -> tuple[QuizQuestion, ...]:
    """Load all questions."""
    return tuple(QuizQuestion(**entry) for entry in json.loads(asset_path("questions.json").read_text("utf-8")))


def show_questions() -> None:
    """Show all questions as closed expanders."""
    st.markdown("### More")
    for question in load_questions():
        with st.expander(format_formulas(question.question)):
            if question.question.startswith(LAYERS_QUESTION):
                stage.show_drawings(draw_parallel(get_theme()))
            st.markdown(f"{format_formulas(question.answer)}  \n*{format_formulas(question.source)}*")
            label = f":primary[**→ {format_formulas(question.see)}**]"
            if question.page == "why heads differ":  # a link to the open page would leave the address bar unchanged
                changes = dict(stage.make_scene_parameters(question.parameters["experiment"]))
                st.button(label, key=f"to_{question.see}", type="tertiary", on_click=address.go, kwargs=changes)
            else:
                st.page_link(navigation.find_page(question.page), label=label, query_params=question.parameters)
