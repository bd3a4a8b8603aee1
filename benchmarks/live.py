"""A page that reads by itself: its size, and how long a sentence takes in the browser, from static files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks.chromium import name_browser, open_chromium, open_visitor
from benchmarks.encode import make_text
from benchmarks.results import Row, Sample, Target, write
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from tests.live_pages import CLOSE, read_in_page, serve_folder
from tests.live_pages import write as write_page

FIRST = 4_000  # milliseconds, at most
NEXT = {16: 150, 128: 600}  # pieces: milliseconds, at most
FROZEN = 200  # milliseconds without an answer that a person notices (web.dev, Interaction to Next Paint)
AGAIN = 3  # sentences of each length in one visit
# The example is drawn, and then the form is heard; what is sent before goes nowhere.
DRAWN = "() => document.querySelector('#live [data-live]')?.shadowRoot?.querySelector('canvas')?.width > 0"
# From the typed sentence to the frame that shows it, and the longest task of the page's own thread meanwhile.
READ = """(sentence) => new Promise((done, failed) => {
  const [form, field, status] = ["form", "input", "[role=status]"].map((one) => document.querySelector(`#live ${one}`));
  let longest = 0;
  const tasks = new PerformanceObserver((list) => {
    longest = Math.max(longest, ...list.getEntries().map(({ duration }) => duration));
  });
  tasks.observe({ type: "longtask" });
  const began = performance.now();
  new MutationObserver(async (_, observer) => {
    if (/^(|Reading .*|Fetching .*)$/.test(status.textContent)) return;
    observer.disconnect();
    if (!status.textContent.startsWith("Read on this device")) return failed(new Error(status.textContent));
    const took = (await bench.presented()) - began;
    await bench.painted();
    tasks.disconnect();
    done({ took, longest });
  }).observe(status, { childList: true });
  field.value = sentence;
  field.dispatchEvent(new Event("input"));
  form.requestSubmit();
})"""


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/live.json``. ``quick``: fewer visits."""
    model = load_one_stack(catalog.DEFAULT)
    with tempfile.TemporaryDirectory() as folder, open_chromium() as browser:
        page, half = write_page(model, Path(folder) / "page"), write_page(model, Path(folder) / "half", half=True)
        rows = [
            Row(f"{model.name}, the folder{also}", _measure_size(one), "MB")
            for one, also in ((page, ""), (half, ", halves"))
        ]
        with serve_folder(page) as (address, _):
            rows += _make_rows(browser, address, model, 2 if quick else 7)
        write(results, "live", "A page that reads by itself", "", rows, name_browser(browser))


def _measure_size(folder: Path) -> Sample:
    return Sample((sum(file.stat().st_size for file in folder.iterdir()) / 1e6,))


def _make_rows(browser: Browser, address: str, model: Encoder, visits: int) -> list[Row]:
    """Return rows for the times of visitors with an empty cache, and for the difference from the library's weights."""
    first, following = list[dict[str, float]](), {n: list[dict[str, float]]() for n in NEXT}
    for _ in range(visits):
        with open_visitor(browser) as context:
            page = context.new_page()
            page.goto(address)
            page.wait_for_function(DRAWN)
            first.append(page.evaluate(READ, make_text(min(NEXT))))
            for n, times in following.items():
                times += [page.evaluate(READ, make_text(n)) for _ in range(AGAIN)]
            differs = _measure_difference(page, model)
    measured = {f"first sentence, n = {min(NEXT)}": (first, FIRST)}
    measured |= {f"next sentences, n = {n}": (following[n], most) for n, most in NEXT.items()}
    rows = [
        Row(f"{model.name}, {what}", _make_sample(times, "took"), "ms", target=Target("below", most))
        for what, (times, most) in measured.items()
    ]
    longest = _make_sample([one for times, _ in measured.values() for one in times], "longest")
    what = f"{model.name}, longest task of the page's own thread, 0 if below 50"
    rows.append(Row(what, longest, "ms", target=Target("below", FROZEN, p95=True)))
    target = Target("below", CLOSE * 1e6)
    return [*rows, Row(f"{model.name}, largest difference of a weight", Sample((differs,)), "× 10⁻⁶", target=target)]


def _make_sample(times: list[dict[str, float]], name: str) -> Sample:
    return Sample(tuple(one[name] for one in times))


def _measure_difference(page: Page, model: Encoder) -> float:
    """Return the largest difference from the library's weights, in millionths."""
    texts = [make_text(n) for n in NEXT]
    answers: list[Any] = read_in_page(page, texts)
    return max(
        float(np.abs(answer.weights - model.encode(one).weights).max()) * 1e6
        for one, answer in zip(texts, answers, strict=True)
    )
