"""Measure a published page that runs its own model: its size, and the time for a sentence in the browser."""

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

MAX_FIRST_MS = 4_000
MAX_NEXT_MS = {16: 150, 128: 600}  # n: maximum milliseconds
MAX_TASK_MS = 200  # longer delays are noticed (web.dev, Interaction to Next Paint)
SENTENCES_PER_LENGTH = 3  # in one visit
# The form works only after the example has been drawn.
IS_DRAWN = "() => document.querySelector('#live [data-live]')?.shadowRoot?.querySelector('canvas')?.width > 0"
# Return the time from the typed sentence to the frame that shows it, and the longest task of the main thread meanwhile.
READ_SENTENCE = """(sentence) => new Promise((resolve, reject) => {
  const [form, field, status] = ["form", "input", "[role=status]"].map((tag) => document.querySelector(`#live ${tag}`));
  let longest = 0;
  const tasks = new PerformanceObserver((list) => {
    longest = Math.max(longest, ...list.getEntries().map(({ duration }) => duration));
  });
  tasks.observe({ type: "longtask" });
  const began = performance.now();
  new MutationObserver(async (_, observer) => {
    if (/^(|Reading .*|Fetching .*)$/.test(status.textContent)) return;
    observer.disconnect();
    if (!status.textContent.startsWith("Read on this device")) return reject(new Error(status.textContent));
    const took = (await bench.presented()) - began;
    await bench.painted();
    tasks.disconnect();
    resolve({ took, longest });
  }).observe(status, { childList: true });
  field.value = sentence;
  field.dispatchEvent(new Event("input"));
  form.requestSubmit();
})"""


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/live.json``. ``quick``: fewer visits."""
    model = load_one_stack(catalog.DEFAULT)
    with tempfile.TemporaryDirectory() as folder, open_chromium() as browser:
        page = write_page(model, Path(folder) / "page")
        half_page = write_page(model, Path(folder) / "half", half=True)
        rows = [
            Row(f"{model.name}, the folder{suffix}", _measure_size(path), "MB")
            for path, suffix in ((page, ""), (half_page, ", halves"))
        ]
        with serve_folder(page) as (address, _):
            rows += _make_rows(browser, address, model, 2 if quick else 7)
        write(results, "live", "A page that reads by itself", "", rows, name_browser(browser))


def _measure_size(folder: Path) -> Sample:
    return Sample((sum(file.stat().st_size for file in folder.iterdir()) / 1e6,))


def _make_rows(browser: Browser, address: str, model: Encoder, visits: int) -> list[Row]:
    """Return rows for the times of visitors with an empty cache, and for the difference from the library's weights."""
    first_times, next_times = list[dict[str, float]](), {n: list[dict[str, float]]() for n in MAX_NEXT_MS}
    for _ in range(visits):
        with open_visitor(browser) as context:
            page = context.new_page()
            page.goto(address)
            page.wait_for_function(IS_DRAWN)
            first_times.append(page.evaluate(READ_SENTENCE, make_text(min(MAX_NEXT_MS))))
            for n, times in next_times.items():
                times += [page.evaluate(READ_SENTENCE, make_text(n)) for _ in range(SENTENCES_PER_LENGTH)]
            difference = _measure_difference(page, model)
    measurements = {f"first sentence, n = {min(MAX_NEXT_MS)}": (first_times, MAX_FIRST_MS)}
    measurements |= {f"next sentences, n = {n}": (next_times[n], max_ms) for n, max_ms in MAX_NEXT_MS.items()}
    rows = [
        Row(f"{model.name}, {label}", _make_sample(times, "took"), "ms", target=Target("below", max_ms))
        for label, (times, max_ms) in measurements.items()
    ]
    longest = _make_sample([entry for times, _ in measurements.values() for entry in times], "longest")
    label = f"{model.name}, longest task of the page's own thread, 0 if below 50"
    rows.append(Row(label, longest, "ms", target=Target("below", MAX_TASK_MS, p95=True)))
    target = Target("below", CLOSE * 1e6)
    return [*rows, Row(f"{model.name}, largest difference of a weight", Sample((difference,)), "× 10⁻⁶", target=target)]


def _make_sample(times: list[dict[str, float]], name: str) -> Sample:
    return Sample(tuple(entry[name] for entry in times))


def _measure_difference(page: Page, model: Encoder) -> float:
    """Return the largest difference from the library's weights, in millionths."""
    texts = [make_text(n) for n in MAX_NEXT_MS]
    answers: list[Any] = read_in_page(page, texts)
    return max(
        float(np.abs(answer.weights - model.encode(text).weights).max()) * 1e6
        for text, answer in zip(texts, answers, strict=True)
    )
