"""All heads at a glance, from data in Python to the painted picture in the browser.

This package's grid is compared with BertViz's ``model_view``.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.chromium import name_browser, open_chromium
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from benchmarks.views import Bench, Opened, Times, open_bench
from mha_viz.attention import Attention

SHAPES = ((6, 12), (12, 12))
COMPARED = {16: None, 64: Target("faster", 50), 128: Target("faster", 200)}  # n: target
ALONE = {256: (300, 1.0), 512: (300, 1.0), 1024: (1000, 1.5)}  # n: milliseconds and megabytes sent, at most
LARGE, LARGE_N = (32, 32), 256  # a model of 1,024 heads has the targets of 1,024 tokens
WARM = 12  # tokens of the text that an open page shows before
SHORT, LONGER, AT_MOST = 16, 64, 1.8  # tokens; the time of more tokens in that of fewer


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/grid.json``. ``quick``: fewer repetitions, BertViz only where it is fast."""
    rows: list[Row] = []
    with open_chromium() as browser:
        for layers, heads in SHAPES:
            for n in (*COMPARED, *ALONE):
                with open_bench(browser) as workbench:
                    rows += _make_rows(workbench, make_random_attention(layers, heads, n), quick)
        with open_bench(browser) as workbench:
            rows += _make_rows(workbench, make_random_attention(*LARGE, LARGE_N), quick)
        with open_bench(browser) as workbench:
            rows.append(_measure_lengths(workbench, 3 if quick else 15))
        write(results, "grid", "The grid of all heads", "BertViz model_view", rows, name_browser(browser))


def _make_rows(workbench: Bench, attention: Attention, quick: bool) -> list[Row]:
    n, is_large = len(attention.text), (attention.layers, attention.heads) == LARGE
    milliseconds, megabytes = ALONE[max(ALONE)] if is_large else ALONE.get(n, (0, 0.0))
    what = f"{attention.layers * attention.heads} heads, n = {n}"
    rows = []
    for where, warm in (
        ("open page", make_random_attention(attention.layers, attention.heads, WARM)),
        ("new page", None),
    ):
        times, theirs = _measure_times(
            workbench, attention, warm, 3 if quick else 9, _choose_repetitions(attention, quick)
        )
        ours = Sample(tuple(t["presented"] for t in times))
        other = Sample(tuple(t["presented"] for t in theirs)) if theirs else None
        target = Target("below", milliseconds) if n in ALONE else COMPARED[n] if other else None
        beside = {"phases": compute_phases(times), "bertviz_phases": compute_phases(theirs) if theirs else None}
        rows.append(Row(f"{what}, {where}", ours, "ms", other, target, beside))
    if n in ALONE:
        rows.append(Row(f"{what}, sent", Sample((times[0]["bytes"] / 1e6,)), "MB", target=Target("below", megabytes)))
    return rows


def _measure_lengths(workbench: Bench, repetitions: int) -> Row:
    """Measure two lengths of text, which take turns in an open page."""
    layers, heads = SHAPES[0]
    warm, *both = (make_random_attention(layers, heads, n) for n in (WARM, LONGER, SHORT))
    workbench.ours(warm).page.close()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for attention, times in zip(both, taken, strict=True):
            shown = workbench.ours(attention, workbench.ours(warm).page)
            times.append(shown.times["presented"])
            shown.page.close()
    longer, short = (Sample(tuple(times)) for times in taken)
    what = f"{layers * heads} heads, n = {LONGER} beside n = {SHORT}, open page"
    return Row(what, longer, "ms", short, Target("share", AT_MOST))


def _choose_repetitions(attention: Attention, quick: bool) -> int:
    """Return how often BertViz draws: it depends on its number of lines, because one run of a minute is enough."""
    lines = attention.weights.size
    if len(attention.text) in ALONE:
        return 0
    if quick:
        return int(lines < 400_000)
    return 5 if lines < 100_000 else 3 if lines < 1_000_000 else 1


def _measure_times(
    workbench: Bench, attention: Attention, warm: Attention | None, ours: int, other: int
) -> tuple[list[Times], list[Times]]:
    """Return the times of both libraries, which take turns.

    New data replace those of ``warm`` in an open page, or come in a new page if it is None. The first page of this
    package is dropped: it warms up the browser for both.
    """
    workbench.ours(attention).page.close()
    times: list[Times] = []
    theirs: list[Times] = []
    for turn in range(max(ours, other)):
        if turn < ours:
            page = workbench.ours(warm).page if warm else None
            shown = workbench.ours(attention, page)
            times.append(shown.times)
            shown.page.close()
        if turn < other:
            page = workbench.bertviz("model_view", warm).page if warm else None
            theirs.append(_finish_page(workbench.bertviz("model_view", attention, page), attention))
    return times, theirs


def _finish_page(shown: Opened, attention: Attention) -> Times:
    """Return the times once the page has all lines, and close the page."""
    lines = shown.page.evaluate("document.querySelectorAll('#vis line').length")
    if lines != attention.weights.size:
        raise RuntimeError(f"BertViz drew {lines} lines of {attention.weights.size}: this is not the same picture.")
    shown.page.close()
    return shown.times


def compute_phases(times: list[Times]) -> Times:
    """Return medians: bytes; milliseconds of Python's work, and from the start to arrived, drawn, painted."""
    names = [name for name, value in times[0].items() if value is not None]
    return {name: round(median(t[name] for t in times), 1) for name in names}
