"""The training lab: choose an experiment, see a run of it at once, change its settings and run it here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.errors import MhaVizError, SettingError
from mha_viz.figures import training as charts
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.theme import Theme
from mha_viz.figures.training import Line
from mha_viz.numerals import counted, percent
from mha_viz.training import record
from mha_viz.training.record import COUNT, CUT, EXPERIMENTS, PENALTY, Field, Result, Run, Settings
from mha_viz.training.statements import Statement, pair_names, pairs, statements
from mha_viz.training.tasks import CHANCE, RELATIONS
from mha_viz.ui import address
from mha_viz.ui.cache import lasting
from mha_viz.ui.jobs import Job
from mha_viz.ui.lab.trainings import trainings
from mha_viz.ui.lab.words import LANGUAGE, WORDS
from mha_viz.ui.parts import (
    complain,
    complain_later,
    entitle,
    formulas,
    guarded,
    plain,
    remark,
    say_complaint,
    theme,
)

LABELS: Mapping[Field, tuple[str, str]] = {
    "weight": ("λ", "The weight of the penalty."),
    "heads": ("Heads, h", "The number of heads must divide d_model: d_k = d_model / h."),
    "d_model": ("d_model", "How many numbers the vector of a word has."),
    "steps": ("Steps", "Updates by Adam, each on 32 new sentences."),
    "seed": ("Seed", "Determines the starting weights and the sentences; the same seed gives the same run."),
}
CHARTS = 128  # finished ones that are kept: eight show one training at one step
OF_THIS_RUN = ("run", "step", "arm")
_ASKED = re.compile(r"(seed|heads|d_model|steps|weight)-(-?[0-9]{1,12}(?:\.[0-9]{1,8})?)", re.ASCII)
_STYLE = """
<style>
.st-key-lab_maps, .st-key-lab_likeness { overflow-x: auto; }
@media (max-width: 640px) { .st-key-lab_result > div > .stHorizontalBlock { flex-direction: column-reverse; } }
</style>
"""


def show() -> None:
    """The page, from what the URL asks for."""
    st.html(_STYLE)
    say_complaint()
    experiment = record.experiment_named(st.query_params.get("experiment"))
    asked = read(experiment, st.query_params.get("run"))
    _menu(experiment)
    left, right = st.columns([7, 4], gap="large")
    with left:
        _question(experiment)
    with right:
        _settings(experiment, asked)
    result = _wanted(asked)
    if result is not None:
        _result(result, theme())


def read(experiment: str, run: str | None) -> Settings:
    """The settings that a link asks for; what it does not say, or says in a way that cannot be read, is as usual."""
    default = EXPERIMENTS[experiment].default
    changes: dict[str, Any] = {}
    for part in (run or "").split("_and_"):
        setting = _ASKED.fullmatch(part)
        if setting and (setting[1] == "weight" or "." not in setting[2]):
            changes[setting[1]] = (
                float(setting[2]) + 0.0 if setting[1] == "weight" else int(setting[2])
            )  # + 0.0: -0 is 0
    asks = EXPERIMENTS[experiment].asks
    return replace(default, **{name: value for name, value in changes.items() if name in asks})


def written(settings: Settings) -> str | None:
    """The parameter ``run`` of a link: what differs from the default run; None when nothing does."""
    experiment = EXPERIMENTS[settings.experiment]
    changed = [name for name in experiment.asks if getattr(settings, name) != getattr(experiment.default, name)]
    return "_and_".join(f"{name}-{_plainly(getattr(settings, name))}" for name in changed) or None


def _plainly(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8f}".rstrip("0").rstrip(".")


# ---- What to run ----------------------------------------------------------------------------------------


def _menu(experiment: str) -> None:
    st.markdown("### Why heads differ")
    st.markdown(LANGUAGE, width=900)
    st.session_state["lab_experiment"] = experiment  # the URL is the state: Back and links move the controls too
    st.pills(
        "Experiment",
        list(EXPERIMENTS),
        key="lab_experiment",
        format_func=lambda name: f"{EXPERIMENTS[name].number} · {formulas(WORDS[name].short)}",
        on_change=_on_experiment,
        label_visibility="collapsed",
    )


@guarded()
def _on_experiment() -> None:
    chosen = st.session_state["lab_experiment"]
    if chosen is not None:  # a second click on the same one takes nothing away
        address.go(experiment=chosen, **dict.fromkeys(OF_THIS_RUN))


def _question(experiment: str) -> None:
    words = WORDS[experiment]
    entitle("Why heads differ", words.short)
    st.markdown(f"#### {words.question}")
    st.markdown(f"{formulas(words.answer)}  \n*Source:* {formulas(words.source)}")
    st.markdown(f"**What to look at:** {formulas(words.look)}")


def _settings(experiment: str, asked: Settings) -> None:
    """The settings with what is wrong beside each, and the button that runs them."""
    running = trainings().under_way(asked)
    asks = EXPERIMENTS[experiment].asks
    _follow(experiment, asked)
    with st.container(border=True, key="lab_settings"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            values: dict[str, Any] = {name: _number(experiment, name) for name in asks}
            faults = _faults(experiment, values)
            if running is None:
                st.button(
                    "Run", type="primary", key="lab_run", disabled=bool(faults), on_click=_start, args=(experiment,),
                    help=None if faults else "Takes seconds, a large run up to a minute.", width=92,
                )  # fmt: skip
        for error in faults.values():
            complain(error)
        if running is not None:
            _progress(running)


def _follow(experiment: str, asked: Settings) -> None:
    """Put the settings of the URL into the controls when the URL is another one; else they keep what was typed."""
    stamp = (experiment, st.query_params.get("run"))
    followed = st.session_state.get("lab_followed") == stamp
    st.session_state["lab_followed"] = stamp
    for name in EXPERIMENTS[experiment].asks:
        key = _key(experiment, name)
        if not followed or key not in st.session_state:
            st.session_state[key] = getattr(asked, name)


def _number(experiment: str, name: Field) -> float:
    label, explanation = LABELS[name]
    if name == "weight":
        step: dict[str, Any] = {"step": 0.1, "format": "%g"}
    else:
        step = {"step": {"steps": 100, "d_model": 16}.get(name, 1)}
    entered: float = st.number_input(
        formulas(label), key=_key(experiment, name), help=formulas(explanation), width=92, **step
    )
    return entered


def _key(experiment: str, name: Field) -> str:
    return f"lab_{experiment}_{name}"


def _faults(experiment: str, values: Mapping[str, Any]) -> dict[Field, SettingError]:
    return record.faults(replace(EXPERIMENTS[experiment].default, **values))


@guarded()
def _start(experiment: str) -> None:
    """Run what the controls say, and let the URL say it too."""
    asks = EXPERIMENTS[experiment].asks
    chosen = {name: st.session_state[_key(experiment, name)] for name in asks}
    settings = read(experiment, written(replace(EXPERIMENTS[experiment].default, **chosen)))  # as a link can say it
    try:
        if trainings().result(settings) is None:
            trainings().start(settings)
        address.go(**{**dict.fromkeys(OF_THIS_RUN), "experiment": experiment, "run": written(settings) or "default"})
    except MhaVizError as error:
        complain_later(error)


@st.fragment(run_every=0.5)
@guarded(complain)
def _progress(training: Job) -> None:
    if training.finished or training.left:
        if training.error is not None and not training.left:
            complain_later(training.error)
        st.rerun()
    training.look()
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.progress(training.fraction, text=_standing(training))
    right.button("Stop", key="lab_stop", on_click=training.let_go, width="stretch")


def _standing(training: Job) -> str:
    first = trainings().before(training)
    if first:
        return f"Waiting for {counted(first, 'training')} of other visitors"
    return f"Training: {training.fraction:.0%}" if training.fraction else "Training is starting"


# ---- What to show ---------------------------------------------------------------------------------------


def _wanted(asked: Settings) -> Result | None:
    """The run that the URL asks for when this server has it, else the default run that comes with the app."""
    default = EXPERIMENTS[asked.experiment].default
    if "run" in st.query_params:
        done = trainings().result(asked)
        if done is not None:
            return done
        waiting = trainings().under_way(asked) is not None
        if asked != default and not waiting and not record.faults(asked):
            remark(
                f"This server has not run {_in_words(asked)}. Below is the saved default run; press Run for this one."
            )
        elif waiting:
            remark("Until the training is done, the saved default run is shown below.")
    try:
        return record.stored(asked.experiment)
    except MhaVizError as error:
        complain(error)
        return None


def _in_words(settings: Settings) -> str:
    names = {"heads": "h", "weight": "λ"}
    settings_in_words = [
        f"{names.get(name, name)} = {getattr(settings, name):,g}" for name in EXPERIMENTS[settings.experiment].asks
    ]
    return ", ".join(settings_in_words)


@st.fragment
@guarded(complain)
def _result(result: Result, theme: Theme) -> None:
    """One run: what it says, the heads at one step, and the curves."""
    with st.container(key="lab_result"):
        left, right = st.columns([7, 4], gap="large")
    with right:
        st.markdown("##### What this run shows")
        stored = result is record.stored(result.settings.experiment)
        origin = "Default run, saved with the app" if stored else "Run on this server"
        st.caption(formulas(plain(f"{origin}: {_in_words(result.settings)}.")))
        for statement in statements(result):
            _say(statement)
    with left:
        _compared(result, theme)
        arm = _arm(result)
        at = _moment(result, arm)
        _maps(result, arm, at, theme)
        if arm.heads > 1:
            _likeness(result, arm, at, theme)
    _curves(result, arm, at, theme)


def _say(statement: Statement) -> None:
    answer = "Yes." if statement.yes else "No."
    usual = "yes" if statement.usual else "no"
    odd = f" *Unusual: in the default run the answer is {usual}.*" if statement.surprising else ""
    colour = "orange" if odd else "primary"
    st.markdown(
        f"**{formulas(plain(statement.question))}** **:{colour}[{answer}]**{odd}  \n"
        f"{formulas(plain(statement.evidence))}"
    )


def _compared(result: Result, theme: Theme) -> None:
    """Charts of the run as a whole, where it has several trainings or takes heads away."""
    if result.settings.experiment in (COUNT, CUT):
        labels = [str(arm.heads) for arm in result.runs] if result.settings.experiment == COUNT else _names(result)
        shares = np.array([[*arm.accuracy[-1], arm.both[-1]] for arm in result.runs])  # [training, label]
        against = "number of heads" if result.settings.experiment == COUNT else "way of cutting"
        st.markdown(f"**Right answers, by {against}**; dotted: guessing")
        ordered = result.settings.experiment == COUNT
        _chart(charts.accuracies(labels, shares, (*RELATIONS, "both"), CHANCE, theme, ordered), "accuracies")
        _costs(result)
    if result.removal is not None:
        first, second = st.columns([3, 2])
        removal = result.removal
        first.markdown("**Right answers as heads are removed**")
        with first:
            _chart(charts.removal(removal.least, removal.most, removal.random, theme), "removal")
        second.markdown("**Importance of each head**")
        with second:
            _chart(charts.importance(removal.importance, removal.order, theme), "importance")


def _costs(result: Result) -> None:
    import pandas as pd

    rows = [
        {
            "layer": arm.label,
            "d_k": result.settings.d_model // arm.heads,
            "parameters": arm.parameters,
            "multiply-adds": arm.multiply_adds,
            "right": 100 * arm.right,
            "loss": float(arm.loss[-1]),
        }
        for arm in result.runs
    ]
    formats = {"parameters": "localized", "multiply-adds": "localized", "right": "%.1f%%", "loss": "%.5f"}
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        column_config={name: st.column_config.NumberColumn(format=f) for name, f in formats.items()},
    )


def _names(result: Result) -> list[str]:
    return [arm.label for arm in result.runs]


def _arm(result: Result) -> Run:
    """The training whose heads are shown."""
    if len(result.runs) == 1:
        return result.runs[0]
    usual = 1 if result.settings.experiment in (PENALTY, COUNT) else 0
    asked = st.query_params.get("arm", "")
    names = _names(result)
    first = int(asked) if asked in map(str, range(len(names))) else usual
    key = f"lab_arm_{result.settings.experiment}_{'|'.join(names)}"
    st.session_state[key] = names[first]
    chosen = st.segmented_control(
        "Heads of", names, key=key,
        on_change=_on_arm, args=(names, result.settings.experiment),
    )  # fmt: skip
    return result.runs[names.index(chosen) if chosen in names else first]


@guarded()
def _on_arm(names: Sequence[str], experiment: str) -> None:
    chosen = st.session_state[f"lab_arm_{experiment}_{'|'.join(names)}"]
    address.go(arm=str(names.index(chosen)) if chosen in names else None)


def _moment(result: Result, arm: Run) -> int:
    """The number of the recorded step in view."""
    steps = [int(step) for step in arm.steps]
    asked = st.query_params.get("step", "")
    first = int(asked) if asked in map(str, steps) else steps[-1]
    key = f"lab_step_{result.settings.experiment}_{steps[-1]}_{len(steps)}"
    explanation = "The steps that were recorded; 0 is before training."
    st.session_state[key] = first
    chosen = st.select_slider("Step", steps, key=key, on_change=_on_step, args=(key,), help=explanation)
    return steps.index(chosen)


@guarded()
def _on_step(key: str) -> None:
    address.go(step=str(st.session_state[key]))


def _maps(result: Result, arm: Run, at: int, theme: Theme) -> None:
    right = ", ".join(f"{name} {percent(share)}" for share, name in zip(arm.accuracy[at], RELATIONS, strict=True))
    st.markdown(
        f"**Where each head looks at step {int(arm.steps[at]):,}**; rows: from, columns: to. Right answers: {right}."
    )
    with st.container(key="lab_maps"):
        _chart(_drawn("maps", result, arm, at, theme), "maps", fixed="lab_maps")


def _likeness(result: Result, arm: Run, at: int, theme: Theme) -> None:
    st.markdown(f"**How alike the heads are at step {int(arm.steps[at]):,}**")
    with st.container(key="lab_likeness"):
        _chart(_drawn("likeness", result, arm, at, theme), "likeness", fixed="lab_likeness")


# What is drawn of one training at one step, by the key of its chart.
CURVES: Mapping[str, tuple[Callable[[Result, Run], Sequence[Line]], Mapping[str, Any]]] = {
    "loss": (
        lambda result, arm: [Line(one.label, one.loss, i, one is arm) for i, one in enumerate(result.runs)],
        {"log": True},
    ),
    "right": (
        lambda _, arm: [
            Line(name, arm.accuracy[:, r], charts.RELATION_COLOURS[r], True) for r, name in enumerate(RELATIONS)
        ],
        {"bounds": (0, 1.04)},
    ),
    "norms": (lambda _, arm: [Line(f"H{h}", arm.gradients[:, h], h) for h in range(arm.heads)], {"log": True}),
    "weights": (lambda _, arm: _pairs(arm, arm.weight_cosines), {"bounds": (-1.05, 1.05)}),
    "apart": (lambda _, arm: _pairs(arm, arm.divergence), {"bounds": (-0.02, 0.72)}),
    "pulls": (lambda _, arm: _pairs(arm, arm.gradient_cosines), {"bounds": (-1.05, 1.05)}),
}


@lasting(CHARTS)
def _drawn(key: str, result: Result, arm: Run, at: int, theme: Theme) -> Any:
    """A finished chart; nobody may change it, for other visitors are shown it too."""
    if key == "maps":
        return charts.head_maps(arm.maps[at], result.words, result.places, RELATIONS, theme)
    if key == "likeness":
        return charts.likeness(arm.weight_cosines[at], arm.divergence[at], arm.gradient_cosines[at], theme)
    lines, how = CURVES[key]
    return charts.curves([int(step) for step in arm.steps], lines(result, arm), at, theme, **how)


def _curves(result: Result, arm: Run, at: int, theme: Theme) -> None:
    def draw(title: str, key: str) -> None:
        st.markdown(title)
        _chart(_drawn(key, result, arm, at, theme), key)

    first, second, third = st.columns(3, gap="medium")
    with first:
        draw("**Loss** of the answers, in nats, logarithmic", "loss")
    with second:
        draw("**Right answers**", "right")
    with third:
        draw("**Gradient norm** of each head, logarithmic", "norms")
    if arm.heads < 2:
        return
    first, second, third = st.columns(3, gap="medium")  # another row: on a phone it follows the first
    with first:
        draw("**Weights**, cosine of two heads", "weights")
    with second:
        draw("**Attention**, divergence of two heads", "apart")
    with third:
        draw("**Gradients**, cosine of two heads", "pulls")
    st.caption(
        formulas(
            "Weights: W_Q, W_K, W_V and the slice of W_O of a head together. Gradients are those of the loss of the "
            "answers, without any penalty: the norm is over all four matrices, the cosine over W_Q, W_K and W_V."
        )
    )


def _pairs(arm: Run, matrix: Any) -> list[Line]:
    """A faint curve for every two heads, as long as they can be told apart, and their mean."""
    values = pairs(matrix)  # [step, pair]
    each = [Line(f"H{a} and H{b}", values[:, i]) for i, (a, b) in enumerate(pair_names(arm.heads))]
    return [*(each if len(each) <= 60 else []), Line("mean of all pairs", values.mean(axis=1), 0, True)]


def _chart(figure: Any, key: str, fixed: str = "") -> None:
    """A chart as wide as its place; or of its own width, in the box ``fixed`` that scrolls where there is less room."""
    if fixed:
        st.html(f"<style>.st-key-{fixed} .stElementContainer {{ min-width: {figure.layout.width:.0f}px; }}</style>")
    width: Any = "content" if fixed else "stretch"
    st.plotly_chart(figure, key=f"lab_chart_{key}", theme=None, config=CONFIG, width=width)
