"""Charts of the training lab, for a whole result or for one training at one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mha_viz.app.service.caches import cache_results
from mha_viz.figures.charts import training as charts
from mha_viz.figures.charts.training import TrainingCurve
from mha_viz.figures.drawing.theme import Theme
from mha_viz.lab.lab import COUNT, CUT, EXPERIMENTS
from mha_viz.lab.record import Result, TrainingRun
from mha_viz.lab.statements import list_pairs, select_pairs
from mha_viz.lab.tasks import CHANCE, TWO_RELATIONS

CACHED_CHARTS = 128  # maximum cached charts; one training at one step has six


class ResultChart(NamedTuple):
    """A chart of a whole result: its title, and a function that draws it in the colours of a theme."""

    title: str
    draw: Callable[[Theme], Any]


def make_result_charts(result: Result) -> dict[str, ResultChart]:
    """Return the charts of the whole result; empty unless it has several trainings or removes heads."""
    result_charts: dict[str, ResultChart] = {}
    if result.settings.experiment in (COUNT, CUT):
        labels = [str(arm.heads) if result.settings.experiment == COUNT else arm.label for arm in result.runs]
        shares = np.array([[*arm.accuracy[-1], arm.both[-1]] for arm in result.runs])  # [training, label]
        chart_data = (labels, shares, (*TWO_RELATIONS.relations, "both"), CHANCE)
        is_ordered = result.settings.experiment == COUNT
        result_charts["accuracies"] = ResultChart(
            "Right answers of each training", lambda t: charts.draw_accuracies(*chart_data, t, is_ordered)
        )
    if result.removal is not None:
        removal = result.removal
        curves = partial(charts.draw_removal_curves, removal.least, removal.most, removal.random)
        result_charts["removal"] = ResultChart("Right answers as heads are removed", curves)
        result_charts["importance"] = ResultChart(
            "Importance of each head", partial(charts.draw_importance, removal.importance, removal.order)
        )
    return result_charts


# The charts of one training at one step: a function that returns the curves, and options of ``draw_curves``.
CURVES: Mapping[str, tuple[Callable[[Result, TrainingRun], Sequence[TrainingCurve]], Mapping[str, Any]]] = {
    "loss": (
        lambda result, arm: [TrainingCurve(run.label, run.loss, i, run is arm) for i, run in enumerate(result.runs)],
        {"log": True},
    ),
    "right": (
        lambda result, arm: [
            TrainingCurve(name, arm.accuracy[:, r], charts.RELATION_COLOURS[r], True)
            for r, name in enumerate(EXPERIMENTS[result.settings.experiment].task.relations)
        ],
        {"bounds": (0, 1.04)},
    ),
    "norms": (lambda _, arm: [TrainingCurve(f"H{h}", arm.gradients[:, h], h) for h in range(arm.heads)], {"log": True}),
    "weights": (lambda _, arm: _make_pair_curves(arm, arm.weight_cosines), {"bounds": (-1.05, 1.05)}),
    "apart": (lambda _, arm: _make_pair_curves(arm, arm.divergence), {"bounds": (-0.02, 0.72)}),
    "pulls": (lambda _, arm: _make_pair_curves(arm, arm.gradient_cosines), {"bounds": (-1.05, 1.05)}),
}


# Titles of the charts about single heads, and of the charts about pairs of heads.
TRAINING_TITLES = {
    "loss": "**Loss**, nats, logarithmic",
    "right": "**Right answers**",
    "norms": "**Gradient norms**, logarithmic",
}
PAIR_TITLES = {
    "weights": "**Weights**, cosine of pairs",
    "apart": "**Attention**, divergence of pairs",
    "pulls": "**Gradients**, cosine of pairs",
}


@cache_results(CACHED_CHARTS)
def draw_curve(key: str, result: Result, arm: TrainingRun, step_index: int, theme: Theme) -> Any:
    """Return a chart of a training with the recorded step number ``step_index`` marked.

    Cached, so callers must not change it.
    """
    make_curves, options = CURVES[key]
    return charts.draw_curves([int(step) for step in arm.steps], make_curves(result, arm), step_index, theme, **options)


def list_titles(arm: TrainingRun) -> dict[str, str]:
    """Return the titles of a training's charts, in order. A single head has no charts that compare pairs."""
    return TRAINING_TITLES | (PAIR_TITLES if arm.heads > 1 else {})


def _make_pair_curves(arm: TrainingRun, matrix: Any) -> list[TrainingCurve]:
    """Return the mean curve over all pairs of heads.

    If there are at most 60 pairs, a faint curve for each comes first.
    """
    values = select_pairs(matrix)  # [step, pair]
    pair_curves = [TrainingCurve(f"H{a} and H{b}", values[:, i]) for i, (a, b) in enumerate(list_pairs(arm.heads))]
    return [
        *(pair_curves if len(pair_curves) <= 60 else []),
        TrainingCurve("mean of all pairs", values.mean(axis=1), 0, True),
    ]
