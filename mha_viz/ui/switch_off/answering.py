"""What the model answers with and without the heads that are switched off: in words, and as bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import streamlit as st

from mha_viz.analysis.effects import Effects, agreement, ranked
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Answer, Numbers
from mha_viz.errors import ModelUnsupported
from mha_viz.figures import answers as charts
from mha_viz.figures.caption import both, reading
from mha_viz.numerals import decimal, percent
from mha_viz.process.steps import Steps
from mha_viz.quotes import series
from mha_viz.reader import verbs
from mha_viz.request import BOTH, COSINE, MASK, Question, Request
from mha_viz.ui import inference
from mha_viz.ui.asking import WAITING
from mha_viz.ui.bound import bound
from mha_viz.ui.caches import model_service
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.parts import plain, remark, theme
from mha_viz.ui.study_progress import Task, outcome

if TYPE_CHECKING:
    from mha_viz.reader.models import Models

R = TypeVar("R")
SLID = 5  # words whose probabilities slide
ON = {"sentence": "the sentence vector", "answer": "the answer"}


def changed_thing(question: Question | None, on: str) -> str:
    """Name what the removal of a head changes: the vector, the prediction, or the cosine of two texts."""
    if on == "sentence" or question is None:
        return ON["sentence"]
    return "the cosine of the two texts" if question.kind == COSINE else "the prediction"


def show_answer(attention: Attention, request: Request, about: str) -> list[PageChart]:
    """Show the answer, before and, if heads are off, after. Returns the chart, with ``about`` for its caption. Raises
    what the model raises."""
    answer, off = answer_of(request), request.off
    bars = _largest(answer)
    st.markdown(_sentence(answer, off, _place(attention, answer.question), [word for word, _ in bars]))
    _slide(bars, max(max(ends) for _, ends in bars) if answer.words else 1.0)
    if not answer.words:
        return []
    draw = partial(charts.word_bars, answer, bool(off))
    return [
        PageChart("The most probable words", "words", draw, about if off else f"No head is off; {reading(attention)}.")
    ]


def answer_of(request: Request) -> Answer:
    """The answer, from the cache or from the model. Raises what the model raises."""
    if request.off:
        inference.measure_means(request)
    return inference.wait(model_service().cached(verbs.answer, request), WAITING)


def per_head(verb: Callable[[Models, Request], Numbers], request: Request) -> Numbers:
    """One number per head for the question of a request, from the cache or from the model, with all heads on. Raises
    what the model raises."""
    whole = Request(request.model, *request.texts, question=request.question, prefix=request.prefix)
    return inference.wait(model_service().cached(verb, whole), WAITING)


def measured(
    kind: str, attention: Attention, request: Request, words: str, steps: Callable[[], Steps[R]], *of: Hashable
) -> R:
    """The result of one of ``jobs.KINDS`` for a reading, and for ``of`` besides, from the cache or in steps that can be
    stopped. Raises what the model raises, Busy, and Cancelled."""
    task = Task(kind, (attention.key, request, *of), request.text[:40], words, steps)
    if task.stored() is None:
        inference.measure_means(request)
    return outcome(task, f"{kind}_{hash(of)}" if of else kind)


def _place(attention: Attention, question: Question) -> str:
    """ "In place of “[MASK]”": where the model answers; with the token's number if its word stands there twice."""
    tokens = [token.text for token in attention.text.tokens]
    if question.kind != MASK or question.place is None or question.place >= len(tokens):
        return "As the next token"
    word = tokens[question.place]
    which = f" at token {question.place}" if tokens.count(word) > 1 else ""
    return f"In place of “{plain(word)}”{which}"


def _sentence(answer: Answer, off: tuple[Head, ...], place: str, bars: Collection[str]) -> str:
    before, after = answer.followed
    without = f"Without {of_all(off)}{in_which(answer.question)}"
    if answer.question.kind == COSINE:
        change = f" {without}, **{decimal(after, 3)}**." if off else ""
        return f"The vectors of the two texts have a cosine of **{decimal(before, 3)}**.{change}"
    first, then = (plain(word) for word in answer.best)
    sentence = f"{place} the model answers **{first}**."
    if not off:
        return sentence
    sentence += f" {without}, still **{then}**." if first == then else f" {without}, **{then}**."
    followed = answer.question.word
    changes = f" The probability of **{plain(followed)}** goes from {percent(before)} to {percent(after)}."
    return sentence if followed in bars else sentence + changes


def of_all(off: Sequence[Head]) -> str:
    """The names of up to three heads, or how many they are."""
    return series([*map(str, off)]) if len(off) <= 3 else f"{len(off)} heads"


def in_which(question: Question | None) -> str:
    """In which of two texts heads are off, as the end of a sentence; empty if in all that are read."""
    return "" if question is None or question.off_in == BOTH else f" in the {question.off_in} text"


def _largest(answer: Answer) -> list[tuple[str, tuple[float, float]]]:
    """The most probable words of both, with the probabilities before and after, or how alike two texts are. Pieces of
    a character have one name, so that a word may stand here twice."""
    words = answer.words or ("how alike",)
    shares = zip(words, zip(answer.before.tolist(), answer.after.tolist(), strict=True), strict=True)
    return sorted(shares, key=lambda share: -max(share[1]))[:SLID]


def _slide(bars: Sequence[tuple[str, tuple[float, float]]], top: float) -> None:
    """Bars that slide from before to after the heads are off."""
    st.html(f'<ul class="mha-slide">{"".join(_bar(word, *ends, top) for word, ends in bars)}</ul>')


def _bar(word: str, before: float, after: float, top: float) -> str:
    change = percent(after) if percent(before) == percent(after) else f"{percent(before)} → {percent(after)}"
    ends = f"--before:{max(0, before) / top:.4f};--after:{max(0, after) / top:.4f}"
    return f'<li style="{ends}"><span>{escape(word)}</span><i></i><small>{change}</small></li>'


def effect_control(question: Question | None, effect: str) -> str:
    """The quantity on which effects are measured: a control if there is a question, else the sentence vector."""
    if question is None:
        return "sentence"
    bound(
        st.segmented_control, "Effect on", "effect", effect, list(ON), default="answer",
        format_func=ON.__getitem__, required=True, wrap=True,
    )  # fmt: skip
    return effect


def unit(question: Question | None, effect: str) -> str:
    """The unit of an effect, on axes and after numbers."""
    if effect == "sentence" or question is None:
        return "thousandths (1 − cosine)"
    return "thousandths (change of the cosine)" if question.kind == COSINE else "thousandths of a nat"


def thousandths(value: float) -> str:
    """An effect as a number for :func:`unit`."""
    return decimal(1000 * value, 1)


def meaning_of_numbers(question: Question | None, effect: str) -> str:
    """One sentence on what the number of a head means, in :func:`unit`."""
    if effect == "sentence" or question is None:
        return "How far the sentence’s vector turns without this head, in thousandths (1 − cosine)."
    if question.kind == COSINE:
        return "How much the cosine of the two texts changes without this head, in thousandths."
    return "How far all words’ probabilities move without this head, in thousandths of a nat (KL)."


def beside_random(at_random: Numbers, effect: float) -> str:
    """The effects of removing as much in random directions, and how many are smaller."""
    if is_all_there_is(at_random, effect):
        return "the same: no other directions are left"
    weaker = int((at_random < effect).sum())
    low, high = thousandths(at_random.min()), thousandths(at_random.max())
    return f"{low} to {high}, less in {weaker} of {len(at_random)} draws"


def is_all_there_is(random: Numbers, effect: float | Numbers) -> bool:
    """True if every draw of random directions removes what the heads put out, as where all heads of a layer are off:
    the effects differ by rounding alone."""
    return bool(np.allclose(random, effect, rtol=1e-3, atol=1e-6))


def show_importance(request: Request, effects: Effects) -> None:
    """Say how far a measure that removes nothing, but uses gradients, agrees with the effects."""
    by_gradient = per_head(verbs.importance, request)
    first = ranked(by_gradient)[0]
    by_effect, alike = effects.ranked("answer").index(first) + 1, decimal(agreement(by_gradient, effects.answer))
    st.markdown(
        f"By gradients (Michel et al. 2019) **{both(first)}** comes first, by effects number {by_effect}; rank "
        f"correlation {alike}."
    )


def show_direct(attention: Attention, request: Request, question: Question) -> list[PageChart]:
    """Show what each head adds to the logit of the word directly, for models where that can be read off. Returns its
    chart, if it is open."""
    if question.kind == COSINE:
        return []
    with st.expander("Direct contribution of each head", key="direct", on_change="rerun") as box:
        if not box.open:
            return []
        try:
            added = per_head(verbs.direct, request)
        except ModelUnsupported as error:
            remark(error.problem)
            return []
        word = plain(question.word)
        st.markdown(f"What each head adds to the logit of **{word}** itself, without what later layers make of it.")
        draw = partial(charts.signed_grid, added, "logits")
        head_grid(draw(theme()), "direct_grid", "Direct contribution of each head to the logit.")
    label = f"Direct contribution of each head to the logit of “{question.word}”"
    return [PageChart(label, "direct", draw, f"No head is off; {reading(attention)}.")]
