"""Charts of the training lab, for a whole result or for one run at one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mha_viz.app.service.caches import cache_results
from mha_viz.figures.charts import training as charts
from mha_viz.figures.charts.training import TrainingCurve
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.player_data import RELATION_COLOURS
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT, SPLIT_INPUT
from mha_viz.lab.record import Result, TrainingRun
from mha_viz.lab.statements import list_pairs, select_pairs
from mha_viz.lab.tasks import CHANCE, TWO_RELATIONS

CACHED_CHARTS = 128  # maximum cached charts; one run at one step has six


class ResultChart(NamedTuple):
    """A chart of a whole result: its title, and a function that draws it in the colours of a theme."""

    title: str
    draw: Callable[[Theme], Any]


def make_result_charts(result: Result) -> dict[str, ResultChart]:
    """Return the charts of the whole result; empty unless it compares runs or removes heads."""
    result_charts: dict[str, ResultChart] = {}
    if result.settings.experiment in (HEAD_COUNT, SPLIT_INPUT):
        labels = [str(run.heads) if result.settings.experiment == HEAD_COUNT else run.label for run in result.runs]
        accuracies = np.array([[*run.accuracy[-1], run.both[-1]] for run in result.runs])  # [run, relation or both]
        chart_data = (labels, accuracies, (*TWO_RELATIONS.relations, "both"), CHANCE)
        is_ordered = result.settings.experiment == HEAD_COUNT
        result_charts["accuracies"] = ResultChart(
            "Right answers of each run", lambda t: charts.draw_accuracies(*chart_data, t, is_ordered)
        )
    if result.removal is not None:
        removal = result.removal
        draw_curves = partial(charts.draw_removal_curves, removal.least, removal.most, removal.random)
        result_charts["removal"] = ResultChart("Right answers as heads are removed", draw_curves)
        result_charts["importance"] = ResultChart(
            "Importance of each head", partial(charts.draw_importance, removal.importance, removal.order)
        )
    return result_charts


# For each chart of one run at one step: a function that returns the curves, and options of ``charts.draw_curves``.
RUN_CHARTS: Mapping[str, tuple[Callable[[Result, TrainingRun], Sequence[TrainingCurve]], Mapping[str, Any]]] = {
    "loss": (
        lambda result, selected_run: [
            TrainingCurve(run.label, run.loss, i, is_bold=run is selected_run) for i, run in enumerate(result.runs)
        ],
        {"log": True},
    ),
    "accuracy": (
        lambda result, run: [
            TrainingCurve(name, run.accuracy[:, r], RELATION_COLOURS[r], is_bold=True)
            for r, name in enumerate(EXPERIMENTS[result.settings.experiment].task.relations)
        ],
        {"bounds": (0, 1.04)},
    ),
    "norms": (lambda _, run: [TrainingCurve(f"H{h}", run.gradients[:, h], h) for h in range(run.heads)], {"log": True}),
    "weight_cosines": (lambda _, run: _make_pair_curves(run, run.weight_cosines), {"bounds": (-1.05, 1.05)}),
    "divergence": (lambda _, run: _make_pair_curves(run, run.divergence), {"bounds": (-0.02, 0.72)}),
    "gradient_cosines": (lambda _, run: _make_pair_curves(run, run.gradient_cosines), {"bounds": (-1.05, 1.05)}),
}


# Titles of the charts that every run has, and of those that compare pairs of heads.
RUN_TITLES = {
    "loss": "**Loss**, nats, logarithmic",
    "accuracy": "**Right answers**",
    "norms": "**Gradient norms**, logarithmic",
}
PAIR_TITLES = {
    "weight_cosines": "**Weights**, cosine of pairs",
    "divergence": "**Attention**, divergence of pairs",
    "gradient_cosines": "**Gradients**, cosine of pairs",
}


@cache_results(CACHED_CHARTS)
def draw_run_chart(key: str, result: Result, run: TrainingRun, step_index: int, theme: Theme) -> Any:
    """Draw the chart ``key`` of a run, and mark the recorded step at ``step_index``.

    The chart is cached, so callers must not change it.
    """
    make_curves, options = RUN_CHARTS[key]
    return charts.draw_curves([int(step) for step in run.steps], make_curves(result, run), step_index, theme, **options)


def list_titles(run: TrainingRun) -> dict[str, str]:
    """Return the titles of a run's charts, in order. A single head has no charts that compare pairs."""
    return RUN_TITLES | (PAIR_TITLES if run.heads > 1 else {})


def _make_pair_curves(run: TrainingRun, matrices: Any) -> list[TrainingCurve]:
    """Return the mean curve over all pairs of heads of ``matrices``, [step, head, head].

    If there are at most 60 pairs, a faint curve for each comes first.
    """
    values = select_pairs(matrices)  # [step, pair]
    pair_curves = [TrainingCurve(f"H{a} and H{b}", values[:, i]) for i, (a, b) in enumerate(list_pairs(run.heads))]
    return [
        *(pair_curves if len(pair_curves) <= 60 else []),
        TrainingCurve("mean of all pairs", values.mean(axis=1), 0, is_bold=True),
    ]
