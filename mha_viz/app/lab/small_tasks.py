"""Small tasks: the visitor guesses which of four heads does something. The answer is measured on the sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from mha_viz.analysis.distance import entropy
from mha_viz.app.lab import stage
from mha_viz.app.lab.stage import NextScene
from mha_viz.app.url import address
from mha_viz.app.widgets import classroom, inference, navigation
from mha_viz.app.widgets.parts import escape_markdown, get_theme
from mha_viz.app.widgets.url_controls import bind_control, read_option
from mha_viz.attention import Attention, Head
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.player_data import Recording, build_player_data
from mha_viz.files.assets import asset_path
from mha_viz.numerals import decimal
from mha_viz.request import Request

SCENE = "tasks"
TASK, ANSWER = "task", "answer"  # URL parameters
MODEL = "minilm"
Numbers = npt.NDArray[np.float64]


class SmallTask(NamedTuple):
    """A question about one sentence and four heads. ``measure`` is a key of MEASURES; ``link`` holds two words."""

    task: str
    text: str
    heads: tuple[str, ...]
    measure: str
    link: tuple[str, ...] = ()


class TaskMeasure(NamedTuple):
    """The measure that decides a task: its name, and a function that returns one number per head, larger is better."""

    name: str
    compute: Callable[[Attention, SmallTask], Numbers]


@cache
def load_small_tasks() -> tuple[SmallTask, ...]:
    """Load all tasks, in order."""
    entries = json.loads(asset_path("small_tasks.json").read_text("utf-8"))
    return tuple(SmallTask(**{**entry, "heads": tuple(entry["heads"])}) for entry in entries)


def show_small_tasks(_: str, next_scene: NextScene | None) -> None:
    """Show the task in the URL, by default the first, and a control to choose one. ``next_scene`` follows the last."""
    numbers = [str(number) for number in range(1, len(load_small_tasks()) + 1)]
    number = read_option(TASK, numbers, ".+") or numbers[0]
    task = load_small_tasks()[int(number) - 1]
    stage.show_question(f"Small task {number}", escape_markdown(task.task), has_switch=False)
    bind_control(
        st.pills, "Task", TASK, number, numbers, key="small_task", label_visibility="collapsed", required=True,
        change=lambda task: {TASK: task, ANSWER: None},
    )  # fmt: skip
    next_number = str(int(number) + 1)
    _show_task(
        task,
        NextScene(f"Task {next_number}", {TASK: next_number, ANSWER: None}) if next_number in numbers else next_scene,
    )


def _show_task(task: SmallTask, next_scene: NextScene | None) -> None:
    attention = inference.try_read(Request(MODEL, task.text))
    if attention is None:
        return
    word_attention = attention.by_words()
    guess = read_option(ANSWER, task.heads, ".+") or None
    with st.container(key="lab_guess", horizontal=True, vertical_alignment="center"):
        st.markdown("My answer:", width="content")
        bind_control(
            st.pills, "Your answer", ANSWER, guess, task.heads, key="small_answer",
            format_func=lambda name: format_head(Head.parse(name)), label_visibility="collapsed",
        )  # fmt: skip
    verdict = write_feedback(task, word_attention, guess) if guess else ""
    if guess and address.is_class_view():
        with classroom.hide_answer():
            st.markdown(escape_markdown(verdict))
        verdict = ""
    recording = {**build_player_data(_make_recording(task, word_attention), 0, get_theme()), "verdict": verdict}
    stage.show_player(recording, "small_task_maps", next_scene if guess else None)
    with st.container(horizontal=True):
        for name in task.heads:
            parameters = {"text": task.text, "model": MODEL, "head": name}
            st.page_link(navigation.find_page("explore"), label=f":primary[{name} in Explore]", query_params=parameters)


def _make_recording(task: SmallTask, attention: Attention) -> Recording:
    texts = [token.text for token in attention.queries.tokens]
    return Recording(
        key=f"{attention.key}|{','.join(task.heads)}",
        steps=[0],
        words=texts,
        head_names=[format_head(Head.parse(name)) for name in task.heads],
        maps=np.stack([attention[name] for name in task.heads])[None],
        relations=[],
        target_words=np.empty((0, len(texts))),
        relation_notes=[],
    )


def write_feedback(task: SmallTask, attention: Attention, answer: str) -> str:
    """Say whether ``answer`` is right, with the numbers of the four heads, the largest first."""
    measure = MEASURES[task.measure]
    numbers = dict(zip(task.heads, measure.compute(attention, task).tolist(), strict=True))
    ranked_heads = sorted(numbers, key=lambda name: -numbers[name])
    values = ", ".join(f"{name} {decimal(numbers[name])}" for name in ranked_heads)
    verdict = "You were right." if answer == ranked_heads[0] else f"Not quite: it is {ranked_heads[0]}."
    return f"{verdict} {measure.name[:1].upper()}{measure.name[1:]}: {values}."


# ---- Measures ------------------------------------------------------------------------------------------------


def _stack_maps(attention: Attention, task: SmallTask) -> npt.NDArray[np.float32]:
    return np.stack([attention[name] for name in task.heads])  # [head, query, key]


def _make_neighbour_measure(offset: int) -> Callable[[Attention, SmallTask], Numbers]:
    def average_weights(attention: Attention, task: SmallTask) -> Numbers:
        """Return the mean weight of a word on its neighbour at ``offset``, [head], without special tokens."""
        maps, ordinary_words = _stack_maps(attention, task), _list_ordinary_words(attention)
        pairs = [(query, query + offset) for query in ordinary_words if query + offset in ordinary_words]
        queries, keys = zip(*pairs, strict=True)
        means: Numbers = maps[:, queries, keys].mean(axis=1, dtype=np.float64)
        return means

    return average_weights


def _average_first(attention: Attention, task: SmallTask) -> Numbers:
    means: Numbers = _stack_maps(attention, task)[:, _list_ordinary_words(attention), 0].mean(axis=1, dtype=np.float64)
    return means


def _average_entropy(attention: Attention, task: SmallTask) -> Numbers:
    means: Numbers = entropy(_stack_maps(attention, task)[:, _list_ordinary_words(attention)].astype(np.float64)).mean(
        axis=1
    )
    return means


def _read_link(attention: Attention, task: SmallTask) -> Numbers:
    texts = [token.text for token in attention.queries.tokens]
    query, key = (texts.index(word) for word in task.link)
    return _stack_maps(attention, task)[:, query, key].astype(np.float64)


def _list_ordinary_words(attention: Attention) -> list[int]:
    return [index for index, is_special in enumerate(attention.queries.special) if not is_special]


MEASURES: Mapping[str, TaskMeasure] = MappingProxyType(
    {
        "previous": TaskMeasure("mean weight on the word before", _make_neighbour_measure(-1)),
        "next": TaskMeasure("mean weight on the next word", _make_neighbour_measure(1)),
        "first": TaskMeasure("mean weight on [CLS]", _average_first),
        "spread": TaskMeasure("mean entropy of a row, in nats", _average_entropy),
        "link": TaskMeasure("weight from the first word to the second", _read_link),
    }
)
