"""Average each head's measures over several sentences, one per line of the text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import streamlit as st

from mha_viz.analysis.metrics import METRICS, PerHead, average_measures, measure_all
from mha_viz.app.service.caches import cache_results, get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.app.url.annotated_texts import find_annotation
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.classroom import draw_legible
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import get_theme, show_remark
from mha_viz.attention import Head
from mha_viz.figures.charts.effects import draw_head_grid
from mha_viz.figures.charts.plotly_settings import CONFIG
from mha_viz.figures.drawing.table import Table
from mha_viz.model_names import cite_model
from mha_viz.numerals import decimal
from mha_viz.request import Request

MAX_LINES = 50  # maximum number of lines to read
CACHED_LINES = 256  # readings whose measures are cached

_Measurement: TypeAlias = tuple[tuple[Head, ...], Mapping[str, PerHead]]  # heads, and the measures of each


def split_lines(page: PageReading) -> tuple[str, ...]:
    """Return the sentences of the text, one per line.

    Empty for a single line, a pair, an encoder–decoder, or a text with annotation, even if that has an error.
    """
    if page.is_part or page.url.location.request.pair or find_annotation(page.url.text) is not None:
        return ()
    lines = tuple(line.strip() for line in page.url.text.splitlines() if line.strip())
    return lines if len(lines) > 1 else ()


def show_averages(page: PageReading) -> list[PageChart]:
    """Show the averages in an expander if the text has several lines. Return the charts that are shown."""
    sentences = split_lines(page)
    if not sentences:
        return []
    title = f"Averages per head over the {len(sentences)} lines, each read separately"
    with st.expander(title, on_change="rerun", key="averages", icon=":material/table_rows:") as box:
        if not box.open:
            return []
        if len(sentences) > MAX_LINES:
            show_remark(f"The first {MAX_LINES} of {len(sentences)} lines are read.")
        if page.url.location.request.off:
            show_remark("The averages are those of all heads on.")
        measurements = _measure_sentences(page.plain_request, sentences[:MAX_LINES])
        heads = measurements[0][0] if measurements else ()
        means = average_measures([values for _, values in measurements])
        citation = cite_model(page.model.name, page.attention.revision)
        citation += inference.describe_prefix(page.plain_request.prefix)
        return [_show_average(means, heads, len(measurements), citation)] if measurements else []


def _measure_sentences(request: Request, sentences: tuple[str, ...]) -> list[_Measurement]:
    """Return the heads and their measures for each sentence that could be read; remarks report the others.

    ``request`` has the model, and the prefix of each sentence.
    """
    measurements = []
    progress = st.progress(0.0, text="Reading the lines…")
    for number, sentence in enumerate(sentences, 1):
        sentence_request = replace(request, text=sentence)
        if inference.try_read(sentence_request) is not None:
            measurements.append(_measure(sentence_request))
        progress.progress(number / len(sentences), text=f"Reading line {number} of {len(sentences)}…")
    progress.empty()
    return measurements


@cache_results(CACHED_LINES)
def _measure(request: Request) -> _Measurement:
    """Return the heads and their measures for a sentence.

    Cached, so callers must not change them.
    """
    attention = get_model_service().ask_cached(verbs.read, request).result()
    return attention.every_head(), measure_all(attention)


def _show_average(means: Mapping[str, PerHead], heads: Sequence[Head], count: int, citation: str) -> PageChart:
    name = st.segmented_control(
        "Measure", list(METRICS), default="previous", key="averaged", required=True,
        format_func=lambda metric_name: METRICS[metric_name].label,
    )  # fmt: skip
    metric = METRICS[name or "previous"]
    unit = "nats" if metric.unit == "nats" else "of the attention"
    description = f"{metric.help} Means over {count} sentences, each counted once; {citation}."
    st.markdown(f"{description} {'In nats.' if metric.unit == 'nats' else 'In percent.'}")
    format_value = _format_nats if metric.unit == "nats" else _format_percent
    chart = PageChart(
        f"Average per head: {metric.label}",
        f"average-{metric.name}",
        lambda colours: draw_head_grid(_fill_layers(means[metric.name], heads), unit, (), colours, format_value),
        description,
        lambda: _make_table(means, heads, description),
    )
    figure = draw_legible(chart.draw(get_theme()))
    with st.container(key="wide_averages"):
        st.plotly_chart(
            figure, key="averages_map", theme=None, config=CONFIG, width=int(figure.layout.width), alt=chart.label
        )
    return chart


def _fill_layers(values: PerHead, heads: Sequence[Head]) -> PerHead:
    """Return the values as [layer, head] with all layers up to the last. Layers without attention are NaN."""
    all_layers: PerHead = np.full((heads[-1].layer + 1, values.shape[1]), np.nan)
    all_layers[sorted({head.layer for head in heads})] = values
    return all_layers


def _format_percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.0f}"


def _format_nats(value: float) -> str:
    return "" if math.isnan(value) else decimal(value, 1)


def _make_table(means: Mapping[str, PerHead], heads: Sequence[Head], description: str) -> Table:
    """Return a table with a row per head and a column per measure."""
    columns = [values.ravel() for values in means.values()]
    rows = [(str(head), *(_to_number(values[index]) for values in columns)) for index, head in enumerate(heads)]
    return Table(("head", *means), tuple(rows), {"caption": description})


def _to_number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
