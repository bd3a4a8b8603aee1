"""Time opening a page with all heads from disk: this package's, and BertViz's ``model_view`` of the same tensor."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.chromium import name_browser, open_chromium, open_visitor
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from benchmarks.views import open_bench
from mha_viz import figures

TOKENS = 128
WAIT_UNTIL_PAINTED = """() => new Promise((resolve) => {
  const look = () => document.documentElement.dataset.painted
    ? requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now()))) : setTimeout(look, 5);
  look();
})"""


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/standalone.json``. ``quick``: BertViz is left out."""
    attention = make_random_attention(12, 12, TOKENS)
    html = figures.grid(attention).to_html().encode()
    rows = [Row("144 heads, n = 128, file", Sample((len(html) / 1e6,)), "MB", target=Target("below", 5))]
    with open_chromium() as browser:
        ours = _time_opening(browser, html, 3 if quick else 9)
        theirs, target = None, None
        if not quick:
            with open_bench(browser) as workbench:
                opened_page = workbench.show_bertviz("model_view", attention)
                theirs, target = Sample((opened_page.times["presented"],)), Target("faster", 20)
        rows.append(Row("144 heads, n = 128, opened to painted", ours, "ms", theirs, target))
        write(results, "standalone", "A page that stands alone", "BertViz model_view", rows, name_browser(browser))


def _time_opening(browser: Browser, html: bytes, repetitions: int) -> Sample:
    """Return the milliseconds from navigation start until the picture is on screen, each in a new window."""
    milliseconds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "heads.html"
        path.write_bytes(html)
        for _ in range(repetitions):
            with open_visitor(browser) as context:
                page = context.new_page()
                page.goto(path.as_uri())
                milliseconds.append(float(page.evaluate(WAIT_UNTIL_PAINTED)))
    return Sample(tuple(milliseconds))
