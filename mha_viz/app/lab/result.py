"""Show a result of the training lab: its heads step by step and, behind *Numbers*, statements and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app.lab import curves, downloads, real_heads, stage, trainings
from mha_viz.app.lab.seeds import choose_seeds, list_other_seeds, show_side_by_side
from mha_viz.app.lab.stage import NextScene
from mha_viz.app.service.caches import cache_results
from mha_viz.app.widgets.parts import PERCENT, escape_markdown, format_formulas, report_errors, show_error, show_remark
from mha_viz.app.widgets.url_controls import read_option
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout import answers
from mha_viz.figures.layout.frames import (
    Curves,
    Flow,
    PlayedCurve,
    RecordedRow,
    Recording,
    Strip,
    build_frames,
    compare_heads,
    scale_losses,
)
from mha_viz.lab import lab
from mha_viz.lab.jobs import RULE
from mha_viz.lab.lab import COUNT, CUT, EXPERIMENTS, OUTPUT, explain_limits
from mha_viz.lab.record import Array, Result, Settings, TrainingRun
from mha_viz.lab.statements import Statement
from mha_viz.numerals import percent

CACHED_RECORDINGS = 16  # cached data for the browser, 0.1 to 0.4 MB each
GRADIENT_NOTE = (
    r"The gradient of head $i$ is $\partial L/\partial\,\mathrm{out} \cdot W_O^{(i)\top}$; only the second factor is "
    r"its own. *Weights*: all of a head, its slice of $W_O$ included. *Gradients*: of the loss without a penalty; "
    r"cosines over $W_Q$, $W_K$, $W_V$."
)

# The drawings in the answers of some experiments.
DRAWINGS: Mapping[str, Callable[[Theme], Sequence[Drawing]]] = MappingProxyType(
    {OUTPUT: answers.draw_gradients, CUT: answers.draw_widths, COUNT: real_heads.draw_two_heads}
)


def describe_settings(settings: Settings) -> str:
    """Return the settings that an experiment uses, for a sentence."""
    names = {"heads": "h", "weight": "λ"}
    parts = [
        f"{names.get(name, name)} = {getattr(settings, name):,g}" for name in EXPERIMENTS[settings.experiment].asks
    ]
    return ", ".join(parts)


@st.fragment
@report_errors(show_error)
def show_result(result: Result, guess: str | None, theme: Theme, next_scene: NextScene | None) -> None:
    """Show the heads of a result at one step and, on request, its numbers."""
    arm = _read_arm(result)
    steps = [str(int(step)) for step in arm.steps]
    linked_step = read_option("step", steps, r"\d+")
    step_index = steps.index(linked_step) if linked_step else 0
    removed_count = read_option("removed", [str(n) for n in range(1, arm.heads + 1)] if result.removal else (), ".+")
    if removed_count:
        step_index = len(steps) - 1 + int(removed_count)
    arm_index = next(index for index, run in enumerate(result.runs) if run is arm)

    seeds = list_other_seeds(result)
    other_start = None if stage.has_numbers() else _find_other_start(result)
    shown_results = (result, *filter(None, map(trainings.find_result, seeds)))

    def play(played_result: Result, follower_key: str = "") -> None:
        has_numbers = stage.has_numbers() and not seeds
        if other_start is None:
            arms = tuple(shown_result.runs[arm_index] for shown_result in shown_results)
            recording = _record_frames(played_result, played_result.runs[arm_index], theme, has_numbers, arms)
            verdict = lab.compare_with_guess(guess, played_result, arm_index)
        else:
            recording, verdict = (
                _record_two_rows(played_result, other_start, theme),
                lab.compare_with_other(guess, played_result, other_start),
            )
        stage.play(
            {**recording, "beside": bool(seeds)},
            step_index,
            verdict,
            partial(_make_step_parameters, played_result.settings.experiment, int(arm.steps[-1])),
            None if follower_key else next_scene,
            follower_key,
        )

    if stage.has_numbers():
        choose_seeds(result, seeds)
    if seeds:
        show_side_by_side(result, seeds, play)
    else:
        play(result)
    experiment = EXPERIMENTS[result.settings.experiment]
    real_heads.show_real_heads(experiment.task.relations)
    _show_arm_control(result, arm_index)
    draw_answer = DRAWINGS.get(result.settings.experiment)
    stage.show_answer(
        result.settings.experiment, experiment.answer, experiment.source, draw_answer(theme) if draw_answer else ()
    )
    step_index = min(step_index, len(steps) - 1)
    if stage.has_numbers():
        _show_numbers(result, arm, step_index, theme)
    downloads.show_downloads(result, arm, step_index, _describe_origin(result))


def _make_step_parameters(experiment: str, last_step: int, step: int) -> dict[str, str | None]:
    """Return the URL parameters for a step. Steps after ``last_step`` stand for removed heads.

    The parameters include the experiment, because other pages have steps too.
    """
    if not step:
        return {"step": None, "removed": None}
    removed_count = str(step - last_step) if step > last_step else None
    return {"experiment": experiment, "step": str(min(step, last_step)), "removed": removed_count}


def _show_numbers(result: Result, arm: TrainingRun, step_index: int, theme: Theme) -> None:
    """Show the statements about the run, the charts that compare its trainings, and the curves with a step marked."""
    st.caption(format_formulas(escape_markdown(_describe_origin(result))))
    for note in explain_limits(result.settings):
        show_remark(note)
    statements = EXPERIMENTS[result.settings.experiment].statements(result)
    for number, column in enumerate(st.columns(2, gap="large")):
        with column:
            for statement in statements[number::2]:
                _show_statement(statement)
    if (lab.find_marked_keys(result) >= 0).any():
        st.caption(RULE)
    result_charts = curves.make_result_charts(result)
    stage.show_charts({key: (f"**{chart.title}**", chart.draw(theme)) for key, chart in result_charts.items()})
    if "accuracies" in result_charts:
        _show_costs(result)
    st.markdown(GRADIENT_NOTE)
    titles = curves.list_titles(arm)
    stage.show_charts(
        {key: (title, curves.draw_curve(key, result, arm, step_index, theme)) for key, title in titles.items()}
    )


def _describe_origin(result: Result) -> str:
    is_bundled = result is lab.load_stored(result.settings.experiment)
    return (
        f"{'Default run, saved with the app' if is_bundled else 'Run on this server'}: "
        f"{describe_settings(result.settings)}."
    )


def _show_statement(statement: Statement) -> None:
    answer = "Yes." if statement.answer else "No."
    usual_answer = "yes" if statement.expected else "no"
    surprise_note = f" *Unusual: in the default run the answer is {usual_answer}.*" if statement.is_surprising else ""
    colour = "orange" if surprise_note else "primary"
    st.markdown(
        f"**{format_formulas(escape_markdown(statement.question))}** **:{colour}[{answer}]**{surprise_note}  \n"
        f"{format_formulas(escape_markdown(statement.evidence))}"
    )


def _show_costs(result: Result) -> None:
    import pandas as pd

    rows = [
        {
            "layer": arm.label,
            "d_k": result.settings.d_model // arm.heads,
            "parameters": arm.parameters,
            "multiply-adds": arm.multiply_adds,
            "right": 100 * arm.final_accuracy,
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


def _read_arm(result: Result) -> TrainingRun:
    """Return the training in the URL whose heads are shown."""
    numbers = [str(number) for number in range(len(result.runs))]
    if len(numbers) == 1:
        read_option("arm", (), ".+")
        return result.runs[0]
    return result.runs[int(read_option("arm", numbers, ".+") or _find_default_arm(result))]


def _find_default_arm(result: Result) -> str:
    return str(EXPERIMENTS[result.settings.experiment].initial_run)


def _show_arm_control(result: Result, arm_index: int) -> None:
    """Show the control that chooses whose heads are shown, if there are several trainings."""
    if len(result.runs) > 1:
        names = {str(index): arm.label for index, arm in enumerate(result.runs)}
        stage.choose_variant("Training", "arm", str(arm_index), names, _find_default_arm(result))


def _find_other_start(result: Result) -> Result | None:
    """Return the result with the other initialisation that is played below this one; None if there is none yet."""
    name = EXPERIMENTS[result.settings.experiment].other_experiment
    if not name:
        return None
    settings = replace(result.settings, experiment=name)
    return lab.load_stored(name) if settings == EXPERIMENTS[name].default else trainings.find_result(settings)


@cache_results(CACHED_RECORDINGS)
def _record_two_rows(result: Result, lower_result: Result, theme: Theme) -> Mapping[str, Any]:
    """Return the data of two trainings on the same sentence; the browser plays both together, step by step.

    Cached, so callers must not change it.
    """
    results = (result, lower_result)
    runs = tuple(row_result.runs[0] for row_result in results)
    first, second = (_make_recording(row_result, row_result.runs[0], False, runs) for row_result in results)
    assert first.strip
    assert second.strip
    rows = [
        RecordedRow(
            EXPERIMENTS[row_result.settings.experiment].short,
            [percent(share) for share in row_result.runs[0].accuracy.mean(axis=1)],
            is_dashed=row_result is result,
        )
        for row_result in results
    ]
    curves = [
        line
        for row_result in results
        for line in scale_losses([row_result.runs[0].loss], 0, [run.loss for run in runs])
    ]
    recording = first._replace(
        key=f"{first.key}|{second.key}",
        names=[*first.names, *second.names],
        maps=np.concatenate([first.maps, second.maps], axis=1),
        strip=first.strip._replace(numbers=np.concatenate([first.strip.numbers, second.strip.numbers], axis=1)),
        notes=[[], []],
        curves=Curves("loss", [line._replace(is_dashed=row.is_dashed) for line, row in zip(curves, rows, strict=True)]),
        rows=rows,
    )
    return build_frames(recording, 0, theme)


@cache_results(CACHED_RECORDINGS)
def _record_frames(
    result: Result, arm: TrainingRun, theme: Theme, has_numbers: bool, shown_runs: tuple[TrainingRun, ...]
) -> Mapping[str, Any]:
    """Return the data of one training for the browser, on scales that fit all of ``shown_runs``.

    Cached, so callers must not change it.
    """
    return build_frames(_make_recording(result, arm, has_numbers, shown_runs), 0, theme)


def _make_recording(
    result: Result, arm: TrainingRun, has_numbers: bool, shown_runs: tuple[TrainingRun, ...]
) -> Recording:
    task = EXPERIMENTS[result.settings.experiment].task
    removed_count = 0 if result.removal is None else arm.heads
    last_step = int(arm.steps[-1])
    max_number = max(float(np.abs(run.queries).max()) for run in shown_runs)
    run_losses = [run.loss for run in result.runs]

    def extend(values: Array) -> Array:
        """Append the values of the last step once for each head that is removed after training."""
        return np.concatenate([values, np.repeat(values[-1:], removed_count, axis=0)])

    recording = Recording(
        key=f"{result.settings}|{arm.label}|{has_numbers}|{max_number}",
        steps=[*arm.steps.tolist(), *range(last_step + 1, last_step + 1 + removed_count)],
        words=result.words,
        names=lab.name_heads(arm),
        maps=extend(arm.maps),
        relations=task.letters,
        instruction=task.instruction,
        note=task.note,
        places=lab.find_marked_keys(result).T,
        notes=[[percent(share) for share in shares] for shares in arm.accuracy.T],
        curves=Curves("loss", scale_losses(run_losses, result.runs.index(arm), [run.loss for run in shown_runs])),
        strip=Strip("W_Q", extend(arm.queries), max_number),
    )
    if result.removal is not None:
        recording = recording._replace(**_record_removal(result, arm))
    if has_numbers:
        cosines = extend(arm.gradient_cosines)
        recording = recording._replace(
            matrices=compare_heads(extend(arm.weight_cosines), extend(arm.divergence), cosines)
            if arm.heads > 1
            else (),
            flow=Flow(extend(arm.gradients), cosines[:, 0]),
            flow_title="The gradient back to each head",
            matrices_title="How alike the heads are",
        )
    return recording


def _record_removal(result: Result, arm: TrainingRun) -> dict[str, Any]:
    """Return the part of the recording in which heads are removed after training, least important first."""
    removal = result.removal
    assert removal is not None
    counts = range(1, arm.heads + 1)
    off = np.zeros((len(arm.steps) + arm.heads, arm.heads), bool)
    for count in counts:
        off[len(arm.steps) - 1 + count, removal.order[:count]] = True
    notes = [f"{count} removed: {percent(removal.least[count])} right" for count in counts]
    right_shares = np.concatenate([arm.accuracy.mean(axis=1), removal.least[1:]])
    labels = [*(f"step {int(step):,}" for step in arm.steps), *notes]
    return {"off": off, "labels": labels, "curves": Curves("right answers", [PlayedCurve(right_shares)])}
