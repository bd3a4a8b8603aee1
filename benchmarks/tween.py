"""Time the transition from one drawing to another: the longest frame while the head, unit or special tokens change.

The drawings are those of this package's explorer.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from benchmarks.chromium import name_browser, open_chromium
from benchmarks.page import find_grid_spot
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from benchmarks.views import OPENED_HEAD, open_bench

SHAPE = (6, 12)
LENGTHS = (16, 32, 128)  # tokens; a longer text changes at once
FRAME_TARGET = Target("below", 33.5, p95=True)  # two frames of a screen, except in one change of twenty
# Make a change; return the milliseconds of the longest frame of the transition, and the number of pictures that fade,
# so that a change without a transition does not count as a smooth one.
_FRAMES = """([action, argument]) => new Promise((resolve) => {
  const [frames, began] = [[], performance.now()];
  let last = 0;
  const recordFrame = (now) => {
    if (last) frames.push(now - last);
    last = now;
    if (now - began > 200) resolve([Math.max(...frames), fading]);
    else requestAnimationFrame(recordFrame);
  };
  if (action === "head") {
    const [clientX, clientY] = argument;
    document.querySelector(".grid canvas").dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true }));
  } else {
    const [first, second] = argument.map((value) => document.querySelector(`input[name=${action}][value=${value}]`));
    (first.checked ? second : first).click();
  }
  const fading = document.querySelectorAll("canvas.before").length;
  requestAnimationFrame(recordFrame);
})"""
_OPTIONS = {"unit": ("words", "pieces"), "special": ("hide", "keep")}  # in turn; a long text begins without them
_LABELS = {"head": "a head becomes another", "unit": "pieces become words", "special": "special tokens come and go"}


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/tween.json``. ``quick``: fewer repetitions."""
    rows: list[Row] = []
    turns = 4 if quick else 20
    with open_chromium() as browser:
        for n in LENGTHS:
            with open_bench(browser) as workbench:
                page = workbench.show_explorer(make_random_attention(*SHAPE, n)).page
                page.bring_to_front()
                for action, name in _LABELS.items():
                    longest = Sample(tuple(_measure_longest_frame(page, action, turn) for turn in range(turns)))
                    rows.append(Row(f"longest frame while {name}, n = {n}", longest, "ms", target=FRAME_TARGET))
        write(results, "tween", "A drawing becomes another", "", rows, name_browser(browser))


def _measure_longest_frame(page: Page, action: str, turn: int) -> float:
    """Return the milliseconds of the longest frame of one change. Raises RuntimeError if nothing faded."""
    argument = find_grid_spot(page, (OPENED_HEAD + 1 + turn) % SHAPE[1]) if action == "head" else _OPTIONS[action]
    longest, fading = page.evaluate(_FRAMES, [action, argument])
    page.wait_for_function("() => !document.querySelector('canvas.before')")
    if not fading:
        raise RuntimeError(f"Nothing faded when {action} changed.")
    return float(longest)
