"""One result of the training lab: what it shows, the heads step by step, and the curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from mha_viz.figures.frames import Flow, Recording, Strip, alike, frames
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.theme import Theme
from mha_viz.numerals import percent
from mha_viz.training import lab
from mha_viz.training.lab import EXPERIMENTS, limits
from mha_viz.training.record import Result, Settings, TrainingRun
from mha_viz.training.statements import Statement
from mha_viz.training.tasks import RELATIONS
from mha_viz.ui import address, classroom
from mha_viz.ui.bound import bound
from mha_viz.ui.caches import lasting
from mha_viz.ui.components.player import player
from mha_viz.ui.lab import curves, downloads
from mha_viz.ui.parts import PERCENT, complain, formulas, guarded, plain, remark, sent, whole

RECORDINGS = 16  # cached data for the browser, 0.1 to 0.4 MB each
PLAYER = "lab_player"
SLICES = (
    r"**Why a head's slice of $W_O$ gives it a gradient of its own.** The output of the layer is the sum of one term "
    r"per head, $\mathrm{head}_i W_O^{(i)}$. So the gradient that comes back to head $i$ is "
    r"$\partial L/\partial\,\mathrm{head}_i = \partial L/\partial\,\mathrm{out} \cdot W_O^{(i)\top}$: the first factor "
    r"is the same for all heads, the second is the head's own. With equal slices the gradients are equal; with "
    r"different slices they differ, even where $W_Q$, $W_K$ and $W_V$ are equal."
)


def in_words(settings: Settings) -> str:
    """The settings that an experiment uses, as a sentence part."""
    names = {"heads": "h", "weight": "λ"}
    named = [
        f"{names.get(name, name)} = {getattr(settings, name):,g}" for name in EXPERIMENTS[settings.experiment].asks
    ]
    return ", ".join(named)


@st.fragment
@guarded(complain)
def show_result(result: Result, theme: Theme) -> None:
    """Show a result: its numbers in words, the heads at one step, and the curves."""
    with st.container(key="lab_result"):
        left, right = st.columns([7, 4], gap="large")
    with right:
        st.markdown("#### What this run shows")
        st.caption(formulas(plain(_origin(result))))
        for note in limits(result.settings):
            remark(note)
        with classroom.answer():
            for statement in EXPERIMENTS[result.settings.experiment].statements(result):
                _say(statement)
    with left:
        _compared(result, theme)
        arm = _arm(result)
        at = _moment(arm)
        _steps(result, arm, at, theme)
    _curves(result, arm, at, theme)
    downloads.show_downloads(result, arm, at, _origin(result))


def _origin(result: Result) -> str:
    stored = result is lab.stored(result.settings.experiment)
    return f"{'Default run, saved with the app' if stored else 'Run on this server'}: {in_words(result.settings)}."


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
    """Show the charts of the result as a whole, if it has several trainings or removes heads."""
    drawn = curves.of_the_run(result)
    if "accuracies" in drawn:
        against = EXPERIMENTS[result.settings.experiment].against
        st.markdown(f"**Right answers, by {against}**; dotted: guessing")
        _chart(drawn["accuracies"].draw(theme), "accuracies", drawn["accuracies"].title)
        _costs(result)
    if "removal" in drawn:
        first, second = st.columns([3, 2])
        first.markdown("**Right answers as heads are removed**")
        with first:
            _chart(drawn["removal"].draw(theme), "removal", drawn["removal"].title)
        second.markdown("**Importance of each head**")
        with second:
            _chart(drawn["importance"].draw(theme), "importance", drawn["importance"].title)


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
    formats = {"parameters": "localized", "multiply-adds": "localized", "right": PERCENT, "loss": "%.5f"}
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        column_config={name: st.column_config.NumberColumn(format=f) for name, f in formats.items()},
    )


def _names(result: Result) -> list[str]:
    return [arm.label for arm in result.runs]


def _arm(result: Result) -> TrainingRun:
    """The training whose heads are shown."""
    if len(result.runs) == 1:
        return result.runs[0]
    usual = EXPERIMENTS[result.settings.experiment].shown
    number = address.now().get("arm", "")
    names = _names(result)
    first = int(number) if number in map(str, range(len(names))) else usual
    chosen = bound(
        st.segmented_control, "Heads of", "arm", names[first], names,
        change=lambda name: {"arm": None if name is None else str(names.index(name))},
        key=f"lab_arm_{result.settings.experiment}_{'|'.join(names)}", wrap=True,
    )  # fmt: skip
    return result.runs[names.index(chosen) if chosen in names else first]


def _moment(arm: TrainingRun) -> int:
    """The number of the recorded step in view: the one in the URL, or else the first, before training."""
    steps = [str(int(step)) for step in arm.steps]
    step = address.now().get("step", "")
    return steps.index(step) if step in steps else 0


def _steps(result: Result, arm: TrainingRun, at: int, theme: Theme) -> None:
    """Show the heads at every recorded step, which the browser plays."""
    st.markdown("**Where each head looks**; rows: from, columns: to")
    player({**_recorded(result, arm, theme), "at": at}, PLAYER, _on_step)
    st.markdown(SLICES)


@guarded()
def _on_step() -> None:
    step = whole(sent(PLAYER, "step"))
    if step is not None and 0 <= step <= 10**6:
        address.go(step=str(step) if step else None)


@lasting(RECORDINGS)
def _recorded(result: Result, arm: TrainingRun, theme: Theme) -> Mapping[str, Any]:
    """The data of one training for the browser; cached, so callers must not change it."""
    right = [
        ", ".join(f"{name} {percent(share)}" for share, name in zip(shares, RELATIONS, strict=True))
        for shares in arm.accuracy
    ]
    recording = Recording(
        key=f"{result.settings}|{arm.label}",
        steps=arm.steps.tolist(),
        words=result.words,
        names=[f"H{h}" for h in range(arm.heads)],
        maps=arm.maps,
        relations=RELATIONS,
        places=result.places.T,
        captions=[f"Right answers: {shares}." for shares in right],
        matrices=alike(arm.weight_cosines, arm.divergence, arm.gradient_cosines) if arm.heads > 1 else (),
        flow=Flow(arm.gradients, arm.gradient_cosines[:, 0]),
        flow_title="The gradient on its way back to each head",
        matrices_title="How alike the heads are",
        strip=Strip("W_Q", arm.queries),
    )
    return frames(recording, 0, theme)


def _curves(result: Result, arm: TrainingRun, at: int, theme: Theme) -> None:
    rows = (curves.OF_THE_TRAINING, curves.OF_TWO_HEADS) if arm.heads > 1 else (curves.OF_THE_TRAINING,)
    for titles in rows:  # on a phone, one follows the other
        for column, (key, title) in zip(st.columns(3, gap="medium"), titles.items(), strict=True):
            with column:
                st.markdown(title)
                _chart(curves.drawn(key, result, arm, at, theme), key, f"{title.replace('*', '')}, at each step")
    if arm.heads < 2:
        return
    st.caption(
        formulas(
            "Weights: W_Q, W_K, W_V and the slice of W_O of a head together. Gradients are those of the loss of the "
            "answers, without any penalty: the norm is over all four matrices, the cosine over W_Q, W_K and W_V."
        )
    )


def _chart(figure: Any, key: str, alt: str) -> None:
    st.plotly_chart(
        classroom.legible(figure), key=f"lab_chart_{key}", theme=None, config=CONFIG, width="stretch", alt=alt
    )
