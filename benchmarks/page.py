"""Time the Explore page: first picture, Enter, another head. The other app is a minimal one with a Plotly heatmap."""

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
from benchmarks.server import ROOT, Server, serve_app

HERE = Path(__file__).resolve().parent
ENTER_TARGETS = {16: Target("share", 1.0), 64: Target("share", 1.0), 128: Target("share", 2.0)}  # n: target
SETTLE_MS = 1500  # time after the first picture in which later files are counted
# Frequent words, each one piece for the default model.
_WORDS = """the old man saw a small dog near big trees by that river and then it ran over two red hills to find
some food for its young before night came down on them all while people in town were still at work there"""
Times = dict[str, float]


class App(NamedTuple):
    """A served app, and the selector of its sentence field."""

    server: Server
    field_selector: str


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/page.json``. ``quick``: fewer repetitions."""
    turns = 2 if quick else 7
    with open_chromium() as browser:
        rows = _time_cold_starts(browser, turns)
        with serve_app(ROOT / "app.py") as ours, serve_app(HERE / "plotly_app.py") as theirs:
            apps = (App(ours, ".mha-sentence textarea >> nth=0"), App(theirs, "input[type=text]"))
            for app in apps:  # the first visit and the first sentence load the models
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
            with _open_page(browser, app, settle=True) as (_, visit_times):
                visits.append(visit_times)
    rows = []
    for name, key, unit in (("time", "took", "ms"), ("bytes", "megabytes", "MB")):
        ours, theirs = (Sample(tuple(t[key] for t in visits)) for visits in times)
        details = {"phases": _compute_medians(times[0]), "plotly_phases": _compute_medians(times[1])}
        rows.append(Row(f"first picture, {name}", ours, unit, theirs, Target("share", 0.8), details))
    sent_bytes = Sample(tuple(visit["megabytes"] for visit in times[0]))
    return [*rows, Row("first page, all that is sent", sent_bytes, "MB", target=Target("below", 4))]


def _time_cold_starts(browser: Browser, turns: int) -> list[Row]:
    """Time from the start of the server's process to the first picture, with and without torch."""
    name = "server start to first picture"
    ours, theirs, without_torch = [], [], []
    for _ in range(min(3, turns)):
        ours.append(_time_start(browser, ROOT / "app.py"))
        theirs.append(_time_start(browser, HERE / "plotly_app.py"))
        without_torch.append(_time_start(browser, ROOT / "app.py", ("torch",)))
    samples = [Sample(tuple(times)) for times in (ours, theirs, without_torch)]
    return [
        Row(name, samples[0], "ms", samples[1], Target("share", 0.8)),
        Row(f"{name}, torch cannot be imported", samples[2], "ms"),
    ]


def _time_start(browser: Browser, script: Path, blocked_modules: tuple[str, ...] = ()) -> float:
    with serve_app(script, blocked_modules) as server, _open_page(browser, App(server, "")) as (_, times):
        return times["since_start"]


@contextmanager
def _open_page(browser: Browser, app: App, settle: bool = False) -> Iterator[tuple[Page, Times]]:
    """Yield a new visitor's page once its first picture is painted, with its times."""
    with open_visitor(browser) as context:
        context.add_init_script(path=HERE / "watch.js")
        page = context.new_page()
        page.goto(f"{app.server.url}/_stcore/health")  # the tab's process is started before the clock
        traffic = Traffic(page)
        page.goto(app.server.url, wait_until="commit")
        times: Times = page.evaluate("bench.first")
        origin: float = page.evaluate("performance.timeOrigin")
        times["since_start"] = origin + times["took"] - 1000 * app.server.start_time
        times["megabytes_at_picture"] = traffic.bytes / 1e6
        if settle:
            page.wait_for_timeout(SETTLE_MS)
        times |= {"megabytes": traffic.bytes / 1e6, "socket_megabytes": traffic.socket / 1e6}
        yield page, times


# ---- Enter --------------------------------------------------------------------------------------------


def _time_sentences(browser: Browser, apps: tuple[App, App], turns: int) -> list[Row]:
    """Time from the Enter key until everything is painted, with a new sentence each time.

    The first sentence of each length only warms up.
    """
    rows = []
    with _open_page(browser, apps[0]) as (ours, _), _open_page(browser, apps[1]) as (theirs, _):
        for n, target in ENTER_TARGETS.items():
            times: tuple[list[Times], ...] = ([], [])
            for turn in range(turns):
                for page, app, entries in zip((ours, theirs), apps, times, strict=True):
                    sentence_times = _time_sentence(page, app, _make_sentence(n, turn))
                    entries += [sentence_times] if turn else []
            samples = [Sample(tuple(t["took"] for t in entries)) for entries in times]
            details = {"phases": _compute_medians(times[0]), "plotly_phases": _compute_medians(times[1])}
            rows.append(Row(f"Enter to everything painted, n = {n}", samples[0], "ms", samples[1], target, details))
    return rows


def _time_sentence(page: Page, app: App, text: str) -> Times:
    page.bring_to_front()
    page.locator(app.field_selector).fill(text)
    page.wait_for_timeout(300)
    page.evaluate("bench.expectPicture()")
    page.locator(app.field_selector).press("Enter")
    times: Times = page.evaluate("bench.next")
    page.wait_for_timeout(700)  # let remaining work end before the next measurement
    return times


def _make_sentence(n: int, seed: int) -> str:
    """Return a sentence of ``n`` tokens for the default model; a different one for each seed."""
    rng = random.Random(1000 * n + seed)
    text = " ".join(rng.choice(_WORDS.split()) for _ in range(n - 2))
    token_count = len(mha_viz.load("minilm").tokenize(text))
    if token_count != n:
        raise RuntimeError(f"The sentence for n = {n} has {token_count} tokens: a word is more than one piece.")
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
    """Click on a head in the open head's layer. Raises RuntimeError if it did not open."""
    x, y = find_grid_spot(page, head)
    page.mouse.move(x, y)
    page.wait_for_timeout(100)
    page.mouse.click(x, y)
    milliseconds: float = page.evaluate("bench.opened")
    title = page.locator(".one h2 code").inner_text()
    if f"H{head} " not in title:
        raise RuntimeError(f"Head {head} was clicked and {title} is open.")
    page.wait_for_timeout(700)
    return milliseconds


def find_grid_spot(page: Page, head: int) -> tuple[float, float]:
    """Return the position of another head in the opened head's row of the grid, in pixels of the window."""
    marker, grid = page.locator(".marks .opened").bounding_box(), page.locator(".grid canvas").bounding_box()
    if marker is None or grid is None:
        raise RuntimeError("The grid is not on the page.")
    opened_head = int(page.locator(".one h2 code").inner_text().partition("H")[2].split()[0])
    heads = page.locator(".heads button").count()
    step = (grid["x"] + grid["width"] - marker["x"]) / (heads - opened_head)
    return marker["x"] + (head - opened_head) * step + marker["width"] / 2, marker["y"] + marker["height"] / 2


def _compute_medians(times: list[Times]) -> Times:
    """Return medians, in milliseconds since navigation start or key, and megabytes.

    The phases are: question sent, answer received, drawn, took.
    """
    return {name: round(median(t[name] for t in times), 3) for name in times[0]}
