"""Show the model's answer with and without the heads that are switched off, in words and as bars."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from html import escape

import streamlit as st

from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.asking import WAIT_NOTE
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Answer
from mha_viz.figures.charts import answers as charts
from mha_viz.figures.layout.caption import describe_reading
from mha_viz.numerals import decimal, percent
from mha_viz.quotes import join_names
from mha_viz.request import BOTH, COSINE, MASK, Question, Request

MAX_BARS = 5  # maximum words with a bar
EFFECT_TARGETS = {"sentence": "the sentence vector", "answer": "the answer"}


def name_effect_target(question: Question | None) -> str:
    """Name what switching a head off changes: the vector, the prediction, or the cosine of two texts."""
    if question is None:
        return EFFECT_TARGETS["sentence"]
    return "the cosine of the two texts" if question.kind == COSINE else "the prediction"


def show_answer(attention: Attention, request: Request, description: str) -> list[PageChart]:
    """Show the answer and, if heads are off, the answer without them. Return the chart.

    ``description`` becomes the caption of the chart.

    Raises the model's errors.
    """
    answer, off = load_answer(request), request.off
    bars = _select_largest(answer)
    st.markdown(
        _write_sentence(answer, off, _describe_position(attention, answer.question), [word for word, _ in bars])
    )
    _show_bars(bars, max(max(values) for _, values in bars) if answer.words else 1.0)
    if not answer.words:
        return []
    draw = partial(charts.draw_word_bars, answer, bool(off))
    description = description if off else f"No head is off; {describe_reading(attention)}."
    return [PageChart("The most probable words", "words", draw, description, text=request.text)]


def load_answer(request: Request) -> Answer:
    """Return the answer, from the cache or from the model. Raises the model's errors."""
    if request.off:
        inference.measure_means(request)
    return inference.wait_for_result(get_model_service().ask_cached(verbs.answer_question, request), WAIT_NOTE)


def _describe_position(attention: Attention, question: Question) -> str:
    """Say where the model answers, such as "In place of “[MASK]”"; with the token's number if its word occurs twice."""
    tokens = [token.text for token in attention.text.tokens]
    if question.kind != MASK or question.place is None or question.place >= len(tokens):
        return "As the next token"
    word = tokens[question.place]
    number_note = f" at token {question.place}" if tokens.count(word) > 1 else ""
    return f"In place of “{escape_markdown(word)}”{number_note}"


def _write_sentence(answer: Answer, off: tuple[Head, ...], position: str, bar_words: Collection[str]) -> str:
    value_before, value_after = answer.followed
    condition = f"Without {name_heads(off)}{describe_off_texts(answer.question)}"
    if answer.question.kind == COSINE:
        change = f" {condition}, **{decimal(value_after, 3)}**." if off else ""
        return f"The vectors of the two texts have a cosine of **{decimal(value_before, 3)}**.{change}"
    first, second = (escape_markdown(word) for word in answer.best)
    sentence = f"{position} the model answers **{first}**."
    if off:
        sentence += f" {condition}, still **{second}**." if first == second else f" {condition}, **{second}**."
    followed_word = answer.question.word
    if followed_word in bar_words:
        return sentence
    values = f"goes from {percent(value_before)} to {percent(value_after)}" if off else f"is {percent(value_before)}"
    return f"{sentence} The probability of **{escape_markdown(followed_word)}** {values}."


def name_heads(off: Sequence[Head]) -> str:
    """Name up to three heads, or say how many they are."""
    return join_names([*map(str, off)]) if len(off) <= 3 else f"{len(off)} heads"


def describe_off_texts(question: Question | None) -> str:
    """Say in which of two texts heads are off, as the end of a sentence; empty if in all texts."""
    return "" if question is None or question.off_in == BOTH else f" in the {question.off_in} text"


def _select_largest(answer: Answer) -> list[tuple[str, tuple[float, float]]]:
    """Return the most probable words of both answers, with their probabilities before and after.

    For two texts, return their similarity instead. Subwords that are parts of one character have the same name, so a
    word may occur twice.
    """
    words = answer.words or ("how alike",)
    shares = zip(words, zip(answer.before.tolist(), answer.after.tolist(), strict=True), strict=True)
    return sorted(shares, key=lambda share: -max(share[1]))[:MAX_BARS]


def _show_bars(bars: Sequence[tuple[str, tuple[float, float]]], max_value: float) -> None:
    """Show bars that slide from the values before to those after heads are switched off."""
    st.html(f'<ul class="mha-slide">{"".join(_draw_bar(word, *values, max_value) for word, values in bars)}</ul>')


def _draw_bar(word: str, value_before: float, value_after: float, max_value: float) -> str:
    change = (
        percent(value_after)
        if percent(value_before) == percent(value_after)
        else f"{percent(value_before)} → {percent(value_after)}"
    )
    style = f"--before:{max(0, value_before) / max_value:.4f};--after:{max(0, value_after) / max_value:.4f}"
    return f'<li style="{style}"><span>{escape(word)}</span><i></i><small>{change}</small></li>'


def name_unit(question: Question | None) -> str:
    """Return the unit of an effect on the answer to the question; without a question, on the sentence vector."""
    if question is None:
        return "thousandths (1 − cosine)"
    return "thousandths (change of the cosine)" if question.kind == COSINE else "thousandths of a nat"
