"""Questions about multi-head attention, each with its answer, the experiment that shows it, and the source."""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

import streamlit as st

from mha_viz.files.assets import asset
from mha_viz.training.lab import EXPERIMENTS
from mha_viz.ui import classroom, navigation, style
from mha_viz.ui.lab import small_tasks
from mha_viz.ui.parts import formulas


class QuizQuestion(NamedTuple):
    """One question; ``see`` names the experiment that ``page`` shows at ``parameters``."""

    question: str
    see: str
    page: str
    parameters: dict[str, str]
    answer: str
    source: str


@cache
def questions() -> tuple[QuizQuestion, ...]:
    """All questions. Those about an experiment of the training lab are answered with its text."""
    listed = []
    for entry in json.loads(asset("questions.json").read_text("utf-8")):
        row = EXPERIMENTS.get(entry["parameters"].get("experiment", ""))
        from_lab = {"answer": row.answer, "source": row.source} if row else {}
        listed.append(QuizQuestion(**{**from_lab, **entry}))
    return tuple(listed)


def show_questions() -> None:
    """Show all questions, two beside each other if there is room."""
    style.apply("questions")
    st.markdown("## Why do attention heads differ?")
    st.markdown("Each answer links to an experiment or a page that shows it.")
    for row in range(0, len(questions()), 2):
        for number, place in enumerate(st.columns(2, gap="large"), start=row):
            if number < len(questions()):
                with place:
                    _show(number, questions()[number])
    small_tasks.show_small_tasks()


def _show(number: int, question: QuizQuestion) -> None:
    with st.container(key=f"question_{number}"):
        st.markdown(f"### {formulas(question.question)}")
        with classroom.answer():
            st.markdown(formulas(question.answer))
            st.caption(f"Source: {formulas(question.source)}")
        st.page_link(
            navigation.page(question.page),
            label=f":primary[**→ {formulas(question.see)}**]",
            query_params=question.parameters,
        )
