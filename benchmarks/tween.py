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
from benchmarks.views import HEAD, open_bench

SHAPE = (6, 12)
LENGTHS = (16, 32, 128)  # tokens; a longer text changes at once
TWEEN = Target("below", 33.5, p95=True)  # two frames of a screen, in which no change but one in twenty may be longer
# A change, and the milliseconds from frame to frame while the drawing becomes the other one; and how many pictures fade
# meanwhile, so that a change without movement is not taken for a smooth one.
_FRAMES = """([action, given]) => new Promise((done) => {
  const [frames, began] = [[], performance.now()];
  let last = 0;
  const note = (now) => {
    if (last) frames.push(now - last);
    last = now;
    if (now - began > 200) done([Math.max(...frames), fading]);
    else requestAnimationFrame(note);
  };
  if (action === "head") {
    const [clientX, clientY] = given;
    document.querySelector(".grid canvas").dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true }));
  } else {
    const [one, other] = given.map((value) => document.querySelector(`input[name=${action}][value=${value}]`));
    (one.checked ? other : one).click();
  }
  const fading = document.querySelectorAll("canvas.before").length;
  requestAnimationFrame(note);
})"""
_CHANGES = {"unit": ("words", "pieces"), "special": ("hide", "keep")}  # in turn; a long text begins without them
_NAMED = {"head": "a head becomes another", "unit": "pieces become words", "special": "special tokens come and go"}


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/tween.json``. ``quick``: fewer repetitions."""
    rows: list[Row] = []
    turns = 4 if quick else 20
    with open_chromium() as browser:
        for n in LENGTHS:
            with open_bench(browser) as workbench:
                page = workbench.ours(make_random_attention(*SHAPE, n)).page
                page.bring_to_front()
                for action, name in _NAMED.items():
                    longest = Sample(tuple(_measure_longest_frame(page, action, turn) for turn in range(turns)))
                    rows.append(Row(f"longest frame while {name}, n = {n}", longest, "ms", target=TWEEN))
        write(results, "tween", "A drawing becomes another", "", rows, name_browser(browser))


def _measure_longest_frame(page: Page, action: str, turn: int) -> float:
    """Return the milliseconds of the longest frame of one change. Raises RuntimeError if nothing faded."""
    given = find_grid_spot(page, (HEAD + 1 + turn) % SHAPE[1]) if action == "head" else _CHANGES[action]
    longest, fading = page.evaluate(_FRAMES, [action, given])
    page.wait_for_function("() => !document.querySelector('canvas.before')")
    if not fading:
        raise RuntimeError(f"Nothing faded when {action} changed.")
    return float(longest)
