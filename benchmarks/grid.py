"""All heads at a glance, from data in Python to painted in the browser: ours and BertViz's ``model_view``."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.chromium import chromium, named
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import random_attention
from benchmarks.views import Bench, bench
from mha_viz.attention import Attention

SHAPES = ((6, 12), (12, 12))
COMPARED = {16: None, 64: Target("faster", 50), 128: Target("faster", 200)}  # n: target
ALONE = (256, 512)
Times = dict[str, float]


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/grid.json``. ``quick``: fewer repetitions, BertViz only where it is fast."""
    rows: list[Row] = []
    with chromium() as browser:
        for layers, heads in SHAPES:
            for n in (*COMPARED, *ALONE):
                attention = random_attention(layers, heads, n)
                with bench(browser) as desk:
                    rows += _rows(desk, attention, quick)
        write(results, "grid", "The grid of all heads, new page to painted", "BertViz model_view", rows, named(browser))


def _rows(desk: Bench, attention: Attention, quick: bool) -> list[Row]:
    n = len(attention.text)
    what = f"{attention.layers * attention.heads} heads, n = {n}"
    times, theirs = _measured(desk, attention, 3 if quick else 9, _repetitions(attention, quick))
    ours = Sample(tuple(t["presented"] for t in times))
    beside = {"phases": phases(times), "bertviz_phases": phases(theirs) if theirs else None}
    if n in ALONE:
        megabytes = Sample((times[0]["bytes"] / 1e6,))
        return [
            Row(what, ours, "ms", target=Target("below", 300), beside=beside),
            Row(f"{what}, sent", megabytes, "MB", target=Target("below", 1)),
        ]
    other = Sample(tuple(t["presented"] for t in theirs)) if theirs else None
    return [Row(what, ours, "ms", other, COMPARED[n] if other else None, beside)]


def _repetitions(attention: Attention, quick: bool) -> int:
    """How often BertViz draws: its line count decides, one run of a minute says enough."""
    if len(attention.text) in ALONE:
        return 0
    lines = attention.weights.size
    if quick:
        return int(lines < 100_000)
    return 5 if lines < 100_000 else 3 if lines < 1_000_000 else 1


def _measured(desk: Bench, attention: Attention, ours: int, other: int) -> tuple[list[Times], list[Times]]:
    """Times of both, taking turns. Our first page is thrown away: it warms the browser for both."""
    page, _ = desk.ours(attention)
    page.close()
    times: list[Times] = []
    theirs: list[Times] = []
    for turn in range(max(ours, other)):
        if turn < ours:
            times.append(_ours(desk, attention))
        if turn < other:
            theirs.append(_theirs(desk, attention))
    return times, theirs


def _ours(desk: Bench, attention: Attention) -> Times:
    page, times = desk.ours(attention)
    page.close()
    return times


def _theirs(desk: Bench, attention: Attention) -> Times:
    page, times = desk.grid_of_bertviz(attention)
    lines = page.locator("#vis line").count()
    if lines != attention.weights.size:
        raise RuntimeError(f"BertViz drew {lines} lines of {attention.weights.size}: this is not the same picture.")
    page.close()
    return times


def phases(times: list[Times]) -> dict[str, float]:
    """Medians, milliseconds: Python's work inside; data arrived, drawn and painted after navigation start; bytes."""
    names = [name for name, value in times[0].items() if value is not None]
    return {name: round(median(t[name] for t in times), 1) for name in names}
