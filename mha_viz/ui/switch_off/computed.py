"""The effects that the page shows: at hand, or computed by a job with progress that a visitor can stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import streamlit as st

from mha_viz.analysis.effects import Effects, Together, batches, draws, joined
from mha_viz.attention import Attention, Head
from mha_viz.errors import Cancelled, MeansMissing
from mha_viz.models import catalog
from mha_viz.ui.cache import Once, office
from mha_viz.ui.inference import mean_requests
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.parts import guarded, remark
from mha_viz.ui.study_progress import wait_for

EFFECTS = Rules(
    one="study of effects",
    many="studies of effects",
    stop="Wait until it is done, or leave its page.",
    places=16,
    forgotten=lambda: 10.0,
    one_per_tab=True,
)
R = TypeVar("R")


class Question(NamedTuple):
    """What is asked of a reading: what each head does alone, or what those of ``off`` do at once."""

    model: catalog.Model
    attention: Attention
    way: str
    off: tuple[Head, ...] = ()

    @property
    def key(self) -> tuple[str, str, tuple[Head, ...]]:
        """What it is answered under."""
        return self.attention.key, self.way, self.off

    @property
    def typed(self) -> tuple[catalog.Model, str, str, str]:
        """Model, sentence, second sentence, and the way in which heads are switched off."""
        text = self.attention.text
        return self.model, text.text, text.pair, self.way


class _Desks:
    """Studies of all heads, one at a time; and of chosen heads, which need not wait behind these."""

    def __init__(self) -> None:
        self.alone: Desk[object] = Desk(EFFECTS)
        self.together: Desk[object] = Desk(EFFECTS._replace(workers=4))


@Once
def _desks() -> _Desks:
    return _Desks()


def each_head(question: Question) -> Effects | None:
    """The effects of all heads, each alone; None for a visitor who stopped that. Raises what the model raises, and
    Busy."""
    look_up = partial(office().effects.get, question.key)
    return _answer(question, _desks().alone, look_up, _study, "Switching off one head after the other")


def at_once(question: Question) -> Together | None:
    """The effect of the heads that are off at once, and of random directions, draw by draw; None and errors as of
    :func:`each_head`."""
    look_up = partial(office().together.get, question.key)
    return _answer(question, _desks().together, look_up, _study_at_once, "Reading the text without these heads")


def _answer(
    question: Question,
    desk: Desk[object],
    look_up: Callable[[], R | None],
    study: Callable[[Question, Job], None],
    words: str,
) -> R | None:
    """What ``look_up`` gives, once a job of ``study`` has put it there."""
    answer = look_up()
    if answer is not None:
        return answer
    order = partial(desk.order, question.key, question.attention.text.text[:40], partial(study, question))
    name = "at_once" if question.off else "each_head"
    if desk.left(question.key):
        remark("You stopped this. What is on the page stays as it is.")
        st.button("Go on", key=f"go_on_{name}", on_click=_go_on, args=(order,))
        return None
    job = order()
    wait_for(job, words, f"stop_{name}")
    answer = look_up()
    if answer is None:
        raise job.error or Cancelled("The effects were not computed to the end.", "Open the page again.")
    return answer


@guarded()
def _go_on(order: Callable[[], Job]) -> None:
    order()


# ---- Jobs -----------------------------------------------------------------------------------------------


def _study(question: Question, job: Job) -> None:
    """What each head alone does to the text, a batch of heads at a time."""
    attention = question.attention
    parts = list(batches(attention.layers, attention.heads, len(attention.text)))
    requests = [partial(office().some_effects, *question.typed, layer, heads) for layer, heads in parts]
    effects = _in_turn(question, job, requests)
    office().effects.put(question.key, joined(zip((layer for layer, _ in parts), effects, strict=True)))


def _study_at_once(question: Question, job: Job) -> None:
    """What the chosen heads do to the text when all are off, and as much in random directions."""
    lost = partial(office().lost, *question.typed, question.off)
    at_random = [
        partial(office().lost_at_random, *question.typed, question.off, some)
        for some in draws(len(question.attention.text))
    ]
    (sentence, tokens), *random_draws = _in_turn(question, job, [lost, *at_random])
    office().together.put(question.key, Together(sentence, tokens, np.concatenate(random_draws)))


def _in_turn(question: Question, job: Job, requests: Sequence[Callable[[], Future[Any]]]) -> list[Any]:
    """The answers to requests, one after the other, so that other visitors are answered in between. What heads put out
    on average is measured before where the way asks for it; once more where the process that reads was replaced."""
    means = mean_requests(question.model) if question.way == "mean" else []
    try:
        return _answers(job, [*means, *requests])[len(means) :]
    except MeansMissing:
        return _answers(job, [*means, *requests])[len(means) :]


def _answers(job: Job, requests: Sequence[Callable[[], Future[Any]]]) -> list[Any]:
    answers = []
    for number, request in enumerate(requests, 1):
        if job.stopped():
            raise Cancelled("Nobody waits for these effects any more.", "Open the page again.")
        answers.append(request().result())
        job.tell(number / len(requests))
    return answers
