"""The stage of every training: its question, the visitor's prediction, the heads as they learn, and the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.widgets import classroom
from mha_viz.app.widgets.components import draw_player
from mha_viz.app.widgets.parts import (
    format_formulas,
    parse_browser_number,
    read_sent_value,
    report_errors,
    set_title,
    show_drawing,
)
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control, read_option
from mha_viz.figures.drawing.marks import Drawing

PLAYER_KEY = "lab_player"
MAX_LARGE_MAPS = 4  # maximum heads whose maps fit on a projector at the size that the view for a class gives them
GUESS, NUMBERS = "guess", "numbers"  # parameters of the URL
# Session keys: how often an answer started the player; the parameters of the last step.
_PLAY_COUNT, _LAST_STEP = "lab_plays", "lab_end"


class NextScene(NamedTuple):
    """The scene or task that comes next: its title, and the URL parameters that open it."""

    title: str
    changes: UrlChanges


def make_scene_parameters(name: str, **parameters: str) -> UrlChanges:
    """Return the URL parameters that open another scene and remove those of the current one."""
    return {**dict.fromkeys(address.SCENE_PARAMETERS), "experiment": name, **parameters}


def show_question(title: str, question: str, has_switch: bool = True) -> None:
    """Show the question as the title, with a switch for the numbers if the scene has any."""
    set_title("Why heads differ", title)
    read_option(NUMBERS, ("0", "1"), ".+")
    with st.container(key="lab_question", horizontal=True, vertical_alignment="center"):
        st.markdown(f"## {format_formulas(question)}", width="stretch")
        if has_switch:
            bind_control(
                st.toggle, "Numbers", NUMBERS, has_numbers(), change=_switch_numbers, key="lab_numbers", width="content"
            )


def has_numbers() -> bool:
    """Return whether numbers and settings are shown.

    They are if the URL says so, or if it asks for a run with settings of its own.
    """
    parameters = address.get_parameters()
    return parameters.get(NUMBERS, "1" if "run" in parameters else "0") == "1"


def _switch_numbers(is_on: bool) -> UrlChanges:
    return {NUMBERS: "1" if is_on else "0" if "run" in address.get_parameters() else None}


def ask_guess(name: str, prediction: str, options: Mapping[str, str]) -> str | None:
    """Ask the visitor what will happen, and return the answer in the URL, one of ``options`` or None.

    Choosing an answer starts the playback.
    """
    guess = read_option(GUESS, options, ".+") or None
    st.session_state.pop(_LAST_STEP, None)  # set again when the training is drawn
    with st.container(key="lab_guess", horizontal=True, vertical_alignment="center"):
        st.markdown(format_formulas(prediction), width="content")
        bind_control(
            st.pills, "What do you expect?", GUESS, guess, list(options), change=_save_guess, key=f"lab_guess_{name}",
            format_func=lambda option: format_formulas(options[option]), label_visibility="collapsed", wrap=True,
        )  # fmt: skip
    return guess


def _save_guess(guess: str | None) -> UrlChanges | None:
    if guess is None:  # a second click on the same answer
        return None
    st.session_state[_PLAY_COUNT] = st.session_state.get(_PLAY_COUNT, 0) + 1
    last_step = st.session_state.get(_LAST_STEP, {})  # set now, so that the end adds no entry to the history
    return {GUESS: guess, **last_step}


def choose_variant(label: str, name: str, value: str, names: Mapping[str, str], default: str) -> str:
    """Show a control for the training, bound to the URL parameter ``name``; return the choice, a key of ``names``."""
    choice: str | None = bind_control(
        st.segmented_control, label, name, value, list(names), default=default, required=True, wrap=True,
        key=f"lab_{name}_{'|'.join(names.values())}", format_func=names.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    return choice or default


def play(
    recording: Mapping[str, Any],
    step_index: int,
    verdict: str,
    on_step: Callable[[int], Mapping[str, str | None]],
    next_scene: NextScene | None = None,
    follower_key: str = "",
) -> None:
    """Show a recorded training with Play and Pause.

    Args:
        recording: the data for the browser.
        step_index: the number of the recorded step in view.
        verdict: shown once the training was played to its end, with the link to the ``next_scene``.
        on_step: returns the URL parameters for the step at which the visitor stops.
        next_scene: the scene or task that comes next.
        follower_key: the key of a player that moves along with the one on the stage; empty for the stage itself.
    """
    key = follower_key or PLAYER_KEY

    @report_errors()
    def save_step() -> None:
        step = parse_browser_number(read_sent_value(key, "step"))
        if step in recording["steps"]:
            address.go(**on_step(int(step or 0)))

    st.session_state[_LAST_STEP] = dict(on_step(recording["steps"][-1]))
    options = {"play": 0 if follower_key else st.session_state.get(_PLAY_COUNT, 0), "follows": bool(follower_key)}
    has_many_heads = len(recording["heads"]) > MAX_LARGE_MAPS and not follower_key
    with (
        st.container(key=f"{follower_key}_stage" if follower_key else "lab_stage"),
        st.container(key="lab_many") if has_many_heads else nullcontext(),
    ):
        show_player({**recording, **options, "at": step_index, "verdict": verdict}, key, next_scene, save_step)


def show_player(
    recording: Mapping[str, Any], key: str, next_scene: NextScene | None, on_stop: Callable[[], None] = lambda: None
) -> None:
    """Show the player, with the link to the ``next_scene`` beside its verdict.

    ``on_stop`` is called when the visitor stops at a step.
    """

    @report_errors()
    def open_next_scene() -> None:
        if next_scene:
            address.go(**next_scene.changes)

    draw_player({**recording, "next": next_scene.title if next_scene else ""}, key, on_stop, open_next_scene)


def show_answer(scene: str, answer: str, source: str, drawings: Sequence[Drawing] = ()) -> None:
    """Show the answer from the papers in a closed expander, with its drawings."""
    with st.expander("Answer", key=f"answer_of_{scene}"):
        show_drawings(drawings)
        st.markdown(f"{format_formulas(answer)}  \n*{format_formulas(source)}*")


def show_drawings(drawings: Sequence[Drawing]) -> None:
    """Show drawings side by side; on a phone, one below the other."""
    for column, drawing in zip(st.columns(len(drawings)) if drawings else (), drawings, strict=True):
        with column:
            show_drawing(drawing, int(drawing.width))


def show_charts(charts: Mapping[str, tuple[str, Any]]) -> None:
    """Show charts in rows of three: a title and the chart, by keys."""
    from mha_viz.figures.charts.plotly_settings import CONFIG

    entries = list(charts.items())
    for start in range(0, len(entries), 3):  # on a phone, one follows the other
        for column, (key, (title, chart)) in zip(st.columns(3, gap="medium"), entries[start : start + 3], strict=False):
            with column:
                st.markdown(title)
                alt = f"{title.replace('*', '')}, at each step"
                figure = classroom.draw_legible(chart)
                st.plotly_chart(figure, key=f"lab_chart_{key}", theme=None, config=CONFIG, width="stretch", alt=alt)
