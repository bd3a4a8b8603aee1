"""Downloads of a run: its heads side by side at the step in view, and every chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mha_viz import figures as figure_api
from mha_viz.app.lab import curves
from mha_viz.app.widgets import download_panel
from mha_viz.app.widgets.download_panel import Offer, PageChart
from mha_viz.attention import Attention
from mha_viz.figures import Figure
from mha_viz.figures.charts import training
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.player_data import make_head_matrices
from mha_viz.lab.record import Result, TrainingRun


def show_downloads(result: Result, run: TrainingRun, step_index: int, origin: str) -> None:
    """Show the downloads for one run of a result at the recorded step ``step_index``."""
    download_panel.show_chart_downloads(
        make_charts(result, run, step_index, origin), [_offer_heads(result, run, step_index)]
    )


def make_charts(result: Result, run: TrainingRun, step_index: int, origin: str) -> list[PageChart]:
    """Return every chart of the run, in the order of the page."""
    description = f"Experiment “{result.settings.experiment}”. {origin}"
    run_caption = f"{description} Heads of {run.label}; step {int(run.steps[step_index]):,} is marked."
    code = (  # repeats the training
        "from mha_viz.lab.experiments import run\nfrom mha_viz.lab.record import Settings\n\n"
        f"result = run({result.settings!r})\n"
        f"result.runs[{result.runs.index(run)}].loss  # and .accuracy, .maps, .gradients\n"
    )
    page_charts = [
        PageChart(title, name, draw, description, None, code)
        for name, (title, draw) in curves.make_result_charts(result).items()
    ]
    for name, title in curves.list_titles(run).items():
        draw = partial(curves.draw_run_chart, name, result, run, step_index)
        page_charts.append(PageChart(title.replace("**", ""), f"lab-{name}", draw, run_caption, None, code))
    return page_charts + _make_player_charts(
        run, step_index, f"{description} Heads of {run.label} at step {int(run.steps[step_index]):,}.", code
    )


def _make_player_charts(run: TrainingRun, step_index: int, description: str, code: str) -> list[PageChart]:
    """Return the charts of the player at the step in view, without the heads.

    They show the gradients, and the similarity of heads.
    """
    norms, cosines = run.gradients[step_index].tolist(), run.gradient_cosines[step_index, 0].tolist()  # [head] each
    rows = tuple((f"H{head}", *pair) for head, pair in enumerate(zip(norms, cosines, strict=True)))
    table = Table(("head", "norm", "cosine_with_H0"), rows, {"caption": description})
    draw = partial(training.draw_gradients, run.gradients[step_index])
    player_charts = [PageChart("Gradient at each head", "lab-gradients", draw, description, lambda: table, code)]
    if run.heads > 1:
        for name, matrix in zip(
            ("weights", "attention", "gradients"),
            make_head_matrices(run.weight_cosines, run.divergence, run.gradient_cosines),
            strict=True,
        ):
            draw = partial(training.draw_head_comparison, matrix, step_index)
            player_charts.append(
                PageChart(f"How alike: {matrix.title}", f"lab-alike-{name}", draw, description, None, code)
            )
    return player_charts


def _offer_heads(result: Result, run: TrainingRun, step_index: int) -> Offer:
    step = int(run.steps[step_index])
    name = f"heads-step-{step}"
    attention = make_reading(result, run, step_index)
    panels = [(attention, head) for head in attention.every_head()]

    def make_figure(size: Size, **columns: Any) -> Figure:
        options: Mapping[str, Any] = {field: getattr(size, field) for field in size.__dataclass_fields__}
        return replace(figure_api.compare(panels, **columns, **options), name=name)

    return Offer(f"Heads at step {step:,}", name, run.heads * len(result.words) ** 2, make_figure, None, run.heads)


def make_reading(result: Result, run: TrainingRun, step_index: int) -> Attention:
    """Return the attention maps of a recorded step as a reading with one layer.

    The maps are stored in half precision, so rows are rescaled to sum to 1.
    """
    maps = run.maps[step_index].astype(np.float64)
    weights = (maps / maps.sum(axis=-1, keepdims=True)).astype(np.float32)
    model = f"experiment {result.settings.experiment}, {run.label}"
    return Attention.from_tensors(
        weights[None], list(result.words), model=model, revision=f"step {int(run.steps[step_index])}"
    )
