"""Time the grid of all heads, from data in Python to the painted picture in the browser.

This package's grid is compared with BertViz's ``model_view``.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.chromium import name_browser, open_chromium
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from benchmarks.views import Bench, OpenedPage, Times, open_bench
from mha_viz.attention import Attention

SHAPES = ((6, 12), (12, 12))
COMPARED_TARGETS = {16: None, 64: Target("faster", 50), 128: Target("faster", 200)}  # n: target
OWN_LIMITS = {256: (300, 1.0), 512: (300, 1.0), 1024: (1000, 1.5)}  # n: maximum milliseconds and megabytes sent
LARGE_SHAPE, LARGE_TOKENS = (32, 32), 256  # a model of 1,024 heads has the targets of 1,024 tokens
WARM_TOKENS = 12  # tokens of the text that an open page shows first
SHORT_TOKENS, LONG_TOKENS, MAX_RATIO = 16, 64, 1.8  # tokens, and the maximum ratio of their times


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/grid.json``. ``quick``: fewer repetitions, BertViz only where it is fast."""
    rows: list[Row] = []
    with open_chromium() as browser:
        for layers, heads in SHAPES:
            for n in (*COMPARED_TARGETS, *OWN_LIMITS):
                with open_bench(browser) as workbench:
                    rows += _make_rows(workbench, make_random_attention(layers, heads, n), quick)
        with open_bench(browser) as workbench:
            rows += _make_rows(workbench, make_random_attention(*LARGE_SHAPE, LARGE_TOKENS), quick)
        with open_bench(browser) as workbench:
            rows.append(_measure_lengths(workbench, 3 if quick else 15))
        write(results, "grid", "The grid of all heads", "BertViz model_view", rows, name_browser(browser))


def _make_rows(workbench: Bench, attention: Attention, quick: bool) -> list[Row]:
    n, is_large = len(attention.text), (attention.layers, attention.heads) == LARGE_SHAPE
    milliseconds, megabytes = OWN_LIMITS[max(OWN_LIMITS)] if is_large else OWN_LIMITS.get(n, (0, 0.0))
    name = f"{attention.layers * attention.heads} heads, n = {n}"
    rows = []
    for page_kind, first_attention in (
        ("open page", make_random_attention(attention.layers, attention.heads, WARM_TOKENS)),
        ("new page", None),
    ):
        times, theirs = _measure_times(
            workbench, attention, first_attention, 3 if quick else 9, _choose_repetitions(attention, quick)
        )
        ours = Sample(tuple(t["presented"] for t in times))
        other_sample = Sample(tuple(t["presented"] for t in theirs)) if theirs else None
        target = Target("below", milliseconds) if n in OWN_LIMITS else COMPARED_TARGETS[n] if other_sample else None
        details = {"phases": compute_medians(times), "bertviz_phases": compute_medians(theirs) if theirs else None}
        rows.append(Row(f"{name}, {page_kind}", ours, "ms", other_sample, target, details))
    if n in OWN_LIMITS:
        rows.append(Row(f"{name}, sent", Sample((times[0]["bytes"] / 1e6,)), "MB", target=Target("below", megabytes)))
    return rows


def _measure_lengths(workbench: Bench, repetitions: int) -> Row:
    """Measure two lengths of text, which take turns in an open page."""
    layers, heads = SHAPES[0]
    first_attention, *attentions = (
        make_random_attention(layers, heads, n) for n in (WARM_TOKENS, LONG_TOKENS, SHORT_TOKENS)
    )
    workbench.show_explorer(first_attention).page.close()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for attention, milliseconds in zip(attentions, times, strict=True):
            opened_page = workbench.show_explorer(attention, workbench.show_explorer(first_attention).page)
            milliseconds.append(opened_page.times["presented"])
            opened_page.page.close()
    long_sample, short_sample = (Sample(tuple(milliseconds)) for milliseconds in times)
    name = f"{layers * heads} heads, n = {LONG_TOKENS} beside n = {SHORT_TOKENS}, open page"
    return Row(name, long_sample, "ms", short_sample, Target("share", MAX_RATIO))


def _choose_repetitions(attention: Attention, quick: bool) -> int:
    """Return how often BertViz draws. It depends on the number of lines, because one run of a minute is enough."""
    lines = attention.weights.size
    if len(attention.text) in OWN_LIMITS:
        return 0
    if quick:
        return int(lines < 400_000)
    return 5 if lines < 100_000 else 3 if lines < 1_000_000 else 1


def _measure_times(
    workbench: Bench, attention: Attention, first_attention: Attention | None, our_count: int, other_count: int
) -> tuple[list[Times], list[Times]]:
    """Return the times of both libraries, which take turns.

    With ``first_attention``, an open page that shows it is given the new data; otherwise each page is new. The first
    page of this package does not count: it warms up the browser for both.
    """
    workbench.show_explorer(attention).page.close()
    our_times: list[Times] = []
    their_times: list[Times] = []
    for turn in range(max(our_count, other_count)):
        if turn < our_count:
            page = workbench.show_explorer(first_attention).page if first_attention else None
            opened_page = workbench.show_explorer(attention, page)
            our_times.append(opened_page.times)
            opened_page.page.close()
        if turn < other_count:
            page = workbench.show_bertviz("model_view", first_attention).page if first_attention else None
            their_times.append(_finish_page(workbench.show_bertviz("model_view", attention, page), attention))
    return our_times, their_times


def _finish_page(opened_page: OpenedPage, attention: Attention) -> Times:
    """Return the times once the page has all lines, and close the page."""
    lines = opened_page.page.evaluate("document.querySelectorAll('#vis line').length")
    if lines != attention.weights.size:
        raise RuntimeError(f"BertViz drew {lines} lines of {attention.weights.size}: this is not the same picture.")
    opened_page.page.close()
    return opened_page.times


def compute_medians(times: list[Times]) -> Times:
    """Return the median of each entry of OpenedPage.times, except those that are missing."""
    names = [name for name, value in times[0].items() if value is not None]
    return {name: round(median(t[name] for t in times), 1) for name in names}
