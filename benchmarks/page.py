"""The Explore page beside a minimal Streamlit app with one Plotly heatmap: first picture, Enter, another head."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser, Page

import mha_viz
from benchmarks.chromium import Traffic, name_browser, open_chromium, open_visitor
from benchmarks.results import Row, Sample, Target, write
from benchmarks.served import ROOT, Served, serve_app

HERE = Path(__file__).resolve().parent
ENTER = {16: Target("share", 1.0), 64: Target("share", 1.0), 128: Target("share", 2.0)}  # n: target
QUIET = 1500  # milliseconds after the picture in which late files still count
# Frequent words, each one piece for the default model.
_WORDS = """the old man saw a small dog near big trees by that river and then it ran over two red hills to find
some food for its young before night came down on them all while people in town were still at work there"""
Times = dict[str, float]


class App(NamedTuple):
    """An app that is served, and the field for its sentence."""

    server: Served
    field: str


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/page.json``. ``quick``: fewer repetitions."""
    turns = 2 if quick else 7
    with open_chromium() as browser:
        rows = _time_cold_starts(browser, turns)
        with serve_app(ROOT / "app.py") as ours, serve_app(HERE / "plotly_app.py") as theirs:
            apps = (App(ours, ".mha-sentence textarea >> nth=0"), App(theirs, "input[type=text]"))
            for app in apps:  # the models are loaded by the first visit, and by the first sentence
                with _open_page(browser, app) as (page, _):
                    _time_sentence(page, app, _make_sentence(12, 0))
            rows = (
                _time_first_visits(browser, apps, turns)
                + _time_sentences(browser, apps, turns + 1)
                + _time_heads(browser, apps[0], turns)
                + rows
            )
        write(results, "page", "The page", "a page with one Plotly heatmap", rows, name_browser(browser))


# ---- First picture ------------------------------------------------------------------------------------


def _time_first_visits(browser: Browser, apps: tuple[App, App], turns: int) -> list[Row]:
    """Time first visits, each with an empty browser cache, on servers that are warm."""
    times: tuple[list[Times], ...] = ([], [])
    for _ in range(turns):
        for app, visits in zip(apps, times, strict=True):
            with _open_page(browser, app, settle=True) as (_, taken):
                visits.append(taken)
    rows = []
    for what, field, unit in (("time", "took", "ms"), ("bytes", "megabytes", "MB")):
        ours, theirs = (Sample(tuple(t[field] for t in visits)) for visits in times)
        beside = {"phases": _compute_phases(times[0]), "plotly_phases": _compute_phases(times[1])}
        rows.append(Row(f"first picture, {what}", ours, unit, theirs, Target("share", 0.8), beside))
    sent = Sample(tuple(visit["megabytes"] for visit in times[0]))
    return [*rows, Row("first page, all that is sent", sent, "MB", target=Target("below", 4))]


def _time_cold_starts(browser: Browser, turns: int) -> list[Row]:
    """Time from the start of the server's process to the first picture, with and without torch."""
    what = "server start to first picture"
    ours, theirs, without = [], [], []
    for _ in range(min(3, turns)):
        ours.append(_time_start(browser, ROOT / "app.py"))
        theirs.append(_time_start(browser, HERE / "plotly_app.py"))
        without.append(_time_start(browser, ROOT / "app.py", ("torch",)))
    samples = [Sample(tuple(times)) for times in (ours, theirs, without)]
    return [
        Row(what, samples[0], "ms", samples[1], Target("share", 0.8)),
        Row(f"{what}, torch cannot be imported", samples[2], "ms"),
    ]


def _time_start(browser: Browser, script: Path, without: tuple[str, ...] = ()) -> float:
    with serve_app(script, without) as server, _open_page(browser, App(server, "")) as (_, taken):
        return taken["since_start"]


@contextmanager
def _open_page(browser: Browser, app: App, settle: bool = False) -> Iterator[tuple[Page, Times]]:
    """Yield a new visitor's page once its first picture is painted, and the time that it took."""
    with open_visitor(browser) as context:
        context.add_init_script(path=HERE / "watch.js")
        page = context.new_page()
        page.goto(f"{app.server.url}/_stcore/health")  # the tab's process is started before the clock
        traffic = Traffic(page)
        page.goto(app.server.url, wait_until="commit")
        taken: Times = page.evaluate("bench.first")
        origin: float = page.evaluate("performance.timeOrigin")
        taken["since_start"] = origin + taken["took"] - 1000 * app.server.started
        taken["megabytes_at_picture"] = traffic.bytes / 1e6
        if settle:
            page.wait_for_timeout(QUIET)
        taken |= {"megabytes": traffic.bytes / 1e6, "socket_megabytes": traffic.socket / 1e6}
        yield page, taken


# ---- Enter --------------------------------------------------------------------------------------------


def _time_sentences(browser: Browser, apps: tuple[App, App], turns: int) -> list[Row]:
    """Time from the Enter key until everything is painted, with a new sentence each time.

    The first sentence of each length only warms up.
    """
    rows = []
    with _open_page(browser, apps[0]) as (ours, _), _open_page(browser, apps[1]) as (theirs, _):
        for n, target in ENTER.items():
            times: tuple[list[Times], ...] = ([], [])
            for turn in range(turns):
                for page, app, entries in zip((ours, theirs), apps, times, strict=True):
                    taken = _time_sentence(page, app, _make_sentence(n, turn))
                    entries += [taken] if turn else []
            samples = [Sample(tuple(t["took"] for t in entries)) for entries in times]
            beside = {"phases": _compute_phases(times[0]), "plotly_phases": _compute_phases(times[1])}
            rows.append(Row(f"Enter to everything painted, n = {n}", samples[0], "ms", samples[1], target, beside))
    return rows


def _time_sentence(page: Page, app: App, text: str) -> Times:
    page.bring_to_front()
    page.locator(app.field).fill(text)
    page.wait_for_timeout(300)
    page.evaluate("bench.again()")
    page.locator(app.field).press("Enter")
    taken: Times = page.evaluate("bench.next")
    page.wait_for_timeout(700)  # what continues afterwards must not fall into the next measurement
    return taken


def _make_sentence(n: int, seed: int) -> str:
    """Return words that the default model reads as ``n`` tokens. Each seed gives another sentence."""
    rng = random.Random(1000 * n + seed)
    text = " ".join(rng.choice(_WORDS.split()) for _ in range(n - 2))
    read = len(mha_viz.load("minilm").tokenize(text))
    if read != n:
        raise RuntimeError(f"The sentence for n = {n} has {read} tokens: a word is more than one piece.")
    return text


# ---- Another head -------------------------------------------------------------------------------------


def _time_heads(browser: Browser, app: App, turns: int) -> list[Row]:
    """Time from a real click in the grid to the other head's picture, with all matrices in the browser."""
    rows = []
    with _open_page(browser, app) as (page, _):
        for n in (16, 64):
            _time_sentence(page, app, _make_sentence(n, 500))
            milliseconds = [_time_head(page, head) for head in range(3, 4 + turns)]
            rows.append(
                Row(f"another head opened, n = {n}", Sample(tuple(milliseconds[1:])), "ms", target=Target("below", 50))
            )
    return rows


def _time_head(page: Page, head: int) -> float:
    """Click on a head in the open head's layer. RuntimeError if it did not open."""
    x, y = find_grid_spot(page, head)
    page.mouse.move(x, y)
    page.wait_for_timeout(100)
    page.mouse.click(x, y)
    took: float = page.evaluate("bench.opened")
    title = page.locator(".one h2 code").inner_text()
    if f"H{head} " not in title:
        raise RuntimeError(f"Head {head} was clicked and {title} is open.")
    page.wait_for_timeout(700)
    return took


def find_grid_spot(page: Page, head: int) -> tuple[float, float]:
    """Return the position of another head in the opened head's row of the grid, in pixels of the window."""
    mark, grid = page.locator(".marks .opened").bounding_box(), page.locator(".grid canvas").bounding_box()
    if mark is None or grid is None:
        raise RuntimeError("The grid is not on the page.")
    opened_head = int(page.locator(".one h2 code").inner_text().partition("H")[2].split()[0])
    heads = page.locator(".heads button").count()
    step = (grid["x"] + grid["width"] - mark["x"]) / (heads - opened_head)
    return mark["x"] + (head - opened_head) * step + mark["width"] / 2, mark["y"] + mark["height"] / 2


def _compute_phases(times: list[Times]) -> Times:
    """Return medians, in milliseconds since navigation start or key, and megabytes.

    The phases are: question sent, answer received, drawn, took.
    """
    return {name: round(median(t[name] for t in times), 3) for name in times[0]}
