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
from mha_viz.figures.layout.player_data import (
    Curves,
    HeadGradients,
    PlayerCurve,
    RecordedRow,
    Recording,
    Strip,
    build_player_data,
    make_head_matrices,
    scale_losses,
)
from mha_viz.lab import lab
from mha_viz.lab.jobs import RULE
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT, OUTPUT, SPLIT_INPUT, explain_limits
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
    {OUTPUT: answers.draw_gradients, SPLIT_INPUT: answers.draw_widths, HEAD_COUNT: real_heads.draw_two_heads}
)


def describe_settings(settings: Settings) -> str:
    """Return the settings that an experiment uses, for a sentence."""
    names = {"heads": "h", "weight": "λ"}
    values = {name: getattr(settings, name) for name in EXPERIMENTS[settings.experiment].setting_names}
    return ", ".join(f"{names.get(name, name)} = {value:.10g}" for name, value in values.items())


@st.fragment
@report_errors(show_error)
def show_result(result: Result, guess: str | None, theme: Theme, next_scene: NextScene | None) -> None:
    """Show the heads of a result at one step and, on request, its numbers."""
    run = _read_run(result)
    steps = [str(int(step)) for step in run.steps]
    linked_step = read_option("step", steps, r"\d+")
    step_index = steps.index(linked_step) if linked_step else 0
    removed_count = read_option("removed", [str(n) for n in range(1, run.heads + 1)] if result.removal else (), ".+")
    if removed_count:
        step_index = len(steps) - 1 + int(removed_count)
    run_index = next(index for index, other in enumerate(result.runs) if other is run)

    seeds = list_other_seeds(result)
    other_start = None if stage.has_numbers() else _find_other_start(result)
    shown_results = (result, *filter(None, map(trainings.find_result, seeds)))

    def play(played_result: Result, follower_key: str = "") -> None:
        has_numbers = stage.has_numbers() and not seeds
        if other_start is None:
            shown_runs = tuple(shown_result.runs[run_index] for shown_result in shown_results)
            recording = _record_run(played_result, played_result.runs[run_index], theme, has_numbers, shown_runs)
            verdict = lab.compare_with_guess(guess, played_result, run_index)
        else:
            recording, verdict = (
                _record_two_rows(played_result, other_start, theme),
                lab.compare_with_other(guess, played_result, other_start),
            )
        stage.play(
            {**recording, "beside": bool(seeds)},
            step_index,
            verdict,
            partial(_make_step_parameters, played_result.settings.experiment, int(run.steps[-1])),
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
    _show_run_control(result, run_index)
    draw_answer = DRAWINGS.get(result.settings.experiment)
    stage.show_answer(
        result.settings.experiment, experiment.answer, experiment.source, draw_answer(theme) if draw_answer else ()
    )
    step_index = min(step_index, len(steps) - 1)
    if stage.has_numbers():
        _show_numbers(result, run, step_index, theme)
    downloads.show_downloads(result, run, step_index, _describe_origin(result))


def _make_step_parameters(experiment: str, last_step: int, step: int) -> dict[str, str | None]:
    """Return the URL parameters for a step. Steps after ``last_step`` stand for removed heads.

    The parameters include the experiment, because other pages have steps too.
    """
    if not step:
        return {"step": None, "removed": None}
    removed_count = str(step - last_step) if step > last_step else None
    return {"experiment": experiment, "step": str(min(step, last_step)), "removed": removed_count}


def _show_numbers(result: Result, run: TrainingRun, step_index: int, theme: Theme) -> None:
    """Show the statements about the result, the charts that compare its runs, and the curves with a step marked."""
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
    titles = curves.list_titles(run)
    stage.show_charts(
        {key: (title, curves.draw_run_chart(key, result, run, step_index, theme)) for key, title in titles.items()}
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
            "layer": run.label,
            "d_k": result.settings.d_model // run.heads,
            "parameters": run.parameters,
            "multiply-adds": run.multiply_adds,
            "right": 100 * run.final_accuracy,
            "loss": float(run.loss[-1]),
        }
        for run in result.runs
    ]
    formats = {"parameters": "localized", "multiply-adds": "localized", "right": PERCENT, "loss": "%.5f"}
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        width="stretch",
        column_config={name: st.column_config.NumberColumn(format=f) for name, f in formats.items()},
    )


def _read_run(result: Result) -> TrainingRun:
    """Return the run in the URL whose heads are shown."""
    numbers = [str(number) for number in range(len(result.runs))]
    if len(numbers) == 1:
        read_option("arm", (), ".+")
        return result.runs[0]
    return result.runs[int(read_option("arm", numbers, ".+") or _find_default_run(result))]


def _find_default_run(result: Result) -> str:
    return str(EXPERIMENTS[result.settings.experiment].initial_run)


def _show_run_control(result: Result, run_index: int) -> None:
    """Show the control that chooses whose heads are shown, if there are several runs."""
    if len(result.runs) > 1:
        names = {str(index): run.label for index, run in enumerate(result.runs)}
        stage.choose_variant("Training", "arm", str(run_index), names, _find_default_run(result))


def _find_other_start(result: Result) -> Result | None:
    """Return the result with the other initialisation that is played below this one; None if there is none yet."""
    name = EXPERIMENTS[result.settings.experiment].other_experiment
    if not name:
        return None
    settings = replace(result.settings, experiment=name)
    return lab.load_stored(name) if settings == EXPERIMENTS[name].default else trainings.find_result(settings)


@cache_results(CACHED_RECORDINGS)
def _record_two_rows(result: Result, lower_result: Result, theme: Theme) -> Mapping[str, Any]:
    """Return the data of two runs on the same sentence; the browser plays both together, step by step.

    Cached, so callers must not change it.
    """
    results = (result, lower_result)
    runs = tuple(row_result.runs[0] for row_result in results)
    first, second = (_make_recording(row_result, row_result.runs[0], False, runs) for row_result in results)
    assert first.strip
    assert second.strip
    rows = [
        RecordedRow(
            EXPERIMENTS[row_result.settings.experiment].menu_name,
            [percent(accuracy) for accuracy in row_result.runs[0].accuracy.mean(axis=1)],
            is_dashed=row_result is result,
        )
        for row_result in results
    ]
    losses = [
        line
        for row_result in results
        for line in scale_losses([row_result.runs[0].loss], 0, [run.loss for run in runs])
    ]
    recording = first._replace(
        key=f"{first.key}|{second.key}",
        head_names=[*first.head_names, *second.head_names],
        maps=np.concatenate([first.maps, second.maps], axis=1),
        strip=first.strip._replace(entries=np.concatenate([first.strip.entries, second.strip.entries], axis=1)),
        relation_notes=[[] for _ in first.relations],
        curves=Curves("loss", [line._replace(is_dashed=row.is_dashed) for line, row in zip(losses, rows, strict=True)]),
        rows=rows,
    )
    return build_player_data(recording, 0, theme)


@cache_results(CACHED_RECORDINGS)
def _record_run(
    result: Result, run: TrainingRun, theme: Theme, has_numbers: bool, shown_runs: tuple[TrainingRun, ...]
) -> Mapping[str, Any]:
    """Return the data of one run for the browser, on scales that fit all of ``shown_runs``.

    Cached, so callers must not change it.
    """
    return build_player_data(_make_recording(result, run, has_numbers, shown_runs), 0, theme)


def _make_recording(
    result: Result, run: TrainingRun, has_numbers: bool, shown_runs: tuple[TrainingRun, ...]
) -> Recording:
    task = EXPERIMENTS[result.settings.experiment].task
    removed_count = 0 if result.removal is None else run.heads
    last_step = int(run.steps[-1])
    max_query_weight = max(float(np.abs(shown_run.queries).max()) for shown_run in shown_runs)
    run_losses = [result_run.loss for result_run in result.runs]

    def extend(values: Array) -> Array:
        """Append the values of the last step once for each head that is removed after training."""
        return np.concatenate([values, np.repeat(values[-1:], removed_count, axis=0)])

    recording = Recording(
        key=f"{result.settings}|{run.label}|{has_numbers}|{max_query_weight}",
        steps=[*run.steps.tolist(), *range(last_step + 1, last_step + 1 + removed_count)],
        words=result.words,
        head_names=lab.name_heads(run),
        maps=extend(run.maps),
        relations=task.letters,
        instruction=task.instruction,
        closing_note=task.note,
        target_words=lab.find_marked_keys(result).T,
        relation_notes=[[percent(accuracy) for accuracy in accuracies] for accuracies in run.accuracy.T],
        curves=Curves("loss", scale_losses(run_losses, result.runs.index(run), [shown.loss for shown in shown_runs])),
        strip=Strip("W_Q", extend(run.queries), max_query_weight),
    )
    if result.removal is not None:
        recording = recording._replace(**_record_removal(result, run))
    if has_numbers:
        cosines = extend(run.gradient_cosines)
        recording = recording._replace(
            matrices=make_head_matrices(extend(run.weight_cosines), extend(run.divergence), cosines)
            if run.heads > 1
            else (),
            gradients=HeadGradients(extend(run.gradients), cosines[:, 0]),
            gradients_title="The gradient back to each head",
            matrices_title="How alike the heads are",
        )
    return recording


def _record_removal(result: Result, run: TrainingRun) -> dict[str, Any]:
    """Return the part of the recording in which heads are removed after training, least important first."""
    removal = result.removal
    assert removal is not None
    counts = range(1, run.heads + 1)
    is_removed = np.zeros((len(run.steps) + run.heads, run.heads), bool)
    for count in counts:
        is_removed[len(run.steps) - 1 + count, removal.order[:count]] = True
    notes = [f"{count} removed: {percent(removal.least[count])} right" for count in counts]
    accuracies = np.concatenate([run.accuracy.mean(axis=1), removal.least[1:]])
    labels = [*(f"step {int(step):,}" for step in run.steps), *notes]
    return {"is_removed": is_removed, "labels": labels, "curves": Curves("right answers", [PlayerCurve(accuracies)])}
