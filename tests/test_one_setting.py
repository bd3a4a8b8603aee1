"""A setting of a drawing is added in four files and is then everywhere: in the drawings of both languages, the address,
the page, figures, the command line, captions, help and documentation; where it does not belong, it is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tools import node

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("```diff\n")[2].partition("```")[0]
TEXT = "the cat sat on the mat ."
FIND = f"""
import contextlib, io, sys
from pathlib import Path
import pytest
import mha_viz as mv
from mha_viz.cli import main
from mha_viz.errors import SettingError
from mha_viz.figures.layout import figure_code
from mha_viz.attention import Head
from mha_viz.figures.layout import Size
from mha_viz.app.url import address, lesson
from mha_viz.app.widgets.download_panel import parse_view
from tests.page_session import PageSession
from tools.docs import format_settings

folder = Path(sys.argv[1])
reading = mv.load("toy").encode({TEXT!r})
usual, other = reading.links("L1H1"), reading.links("L1H1", behind="nothing")
count = lambda figure: sum(type(mark).__name__ == "Text" for mark in figure.drawing.marks)
assert count(other) < count(usual)
assert "No number is written." in other.caption and "No number is written." not in usual.caption
other.save(folder / "python.svg")
other.save(folder / "page.html")

for draw in (lambda: reading.heatmap("L1H1", behind="nothing"), lambda: reading.grid(behind="nothing"),
             lambda: mv.compare([(reading, "L1H1")], behind="nothing"),
             lambda: mv.difference((reading, "L1H1"), (reading, "L1H2"), behind="nothing"),
             lambda: reading.links("L1H1", behind="something")):
    with pytest.raises(SettingError, match="behind"):
        draw()

view, file = parse_view({{"behind": "nothing"}}), str(folder / "again.svg")
exec(figure_code.write_head_code(reading, "links", [Head(1, 1)], view, Size(), file))
assert (folder / "again.svg").read_bytes() == (folder / "python.svg").read_bytes()

command = ["figure", "links", {TEXT!r}, "--model", "toy", "--head", "L1H1"]
assert main([*command, "--behind", "nothing", "--out", str(folder / "command.svg")]) == 0
assert (folder / "command.svg").read_bytes() == (folder / "python.svg").read_bytes()
def help_of(kind):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main(["figure", kind, "--help"])
    return " ".join(said.getvalue().split())
assert "--behind" in help_of("links") and "what stands behind a word" in help_of("links")
assert "--behind" not in help_of("heatmap")
assert main(["figure", "grid", {TEXT!r}, "--behind", "nothing", "--out", str(folder / "no.svg")]) == 2

assert address.read({{"behind": "nothing"}}).ignored_parameters == ()
assert address.read({{"behind": "odd"}}).ignored_parameters == ("behind=odd",)
assert address.select_accepted({{"behind": "nothing"}})["behind"] == "nothing"
assert "behind" not in address.select_accepted({{"behind": "nothing"}}, address.PANEL_PATTERNS)
assert "behind" in lesson.list_foreign_parameters("compare")
assert "behind" not in lesson.list_foreign_parameters("explore")
row = next(line for line in format_settings().splitlines() if "`behind`" in line)
assert all(part in row for part in ("`numbers`", "`nothing`", "what stands behind a word", "links"))

page = PageSession({{"model": "toy", "text": {TEXT!r}, "behind": "nothing"}})
assert page.url["behind"] == "nothing" and not page.at.exception
"""
IN_THE_BROWSER = """
const { parseView, encodeView } = await import("./mha_viz/browser/geometry.js");
const { listControls, listOptions, serializeSettings } = await import("./mha_viz/browser/view.js");
const reading = { n: 4, heads: 2, layers: 2, together: 4, tokens: [], start: {} };
const read = (query) => parseView(new URLSearchParams(query), reading);
console.log(JSON.stringify({
  controls: listControls("explorer").filter(({ name }) => name === "behind"),
  others: listControls("compare").filter(({ name }) => name === "behind"),
  options: listOptions("behind", "explorer"),
  read: [read("behind=nothing").behind, read("behind=odd").behind, read("").behind],
  written: [encodeView(read("behind=nothing"), reading).behind, encodeView(read(""), reading).behind],
  changes: serializeSettings(read("behind=nothing"), "explorer") !== serializeSettings(read(""), "explorer"),
}));
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program in which somebody has added a setting as ARCHITECTURE.md says."""
    copy = tmp_path_factory.mktemp("changed")
    copied = ("mha_viz", "tests")  # node follows links to where a file is
    for path in ROOT.iterdir():
        if path.name not in (*copied, ".git"):
            (copy / path.name).symlink_to(path)
    shutil.copytree(ROOT / "mha_viz", copy / "mha_viz", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__", "results"))
    run(["git", "apply", "-"], copy, EXAMPLE)
    return copy


def run(command: list[str], copy: Path, sent: str = "") -> str:
    environment = os.environ | {"PYTHONPATH": str(copy), "GIT_CEILING_DIRECTORIES": str(copy.parent)}
    done = subprocess.run(command, env=environment, input=sent, capture_output=True, text=True, check=False, cwd=copy)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_setting_takes_at_most_four_files() -> None:
    assert 1 <= EXAMPLE.count("\n+++ ") <= 4


@pytest.mark.app
def test_a_setting_is_found_everywhere_and_refused_elsewhere(changed: Path, tmp_path: Path, page: Page) -> None:
    run([sys.executable, "-c", FIND, str(tmp_path)], changed)
    page.goto((tmp_path / "page.html").as_uri())
    drawing = page.locator("details.drawing > summary")
    expect(drawing).to_have_text(re.compile("no numbers"))
    without = page.locator("canvas[aria-label^='Token links']").screenshot()
    drawing.click()
    page.locator("fieldset", has_text="Numbers").get_by_text("written").click()
    expect(drawing).to_have_text("Drawing")
    drawing.click()
    assert page.locator("canvas[aria-label^='Token links']").screenshot() != without


def test_a_setting_is_read_by_the_browser(changed: Path) -> None:
    script = changed / "read.mjs"
    script.write_text(IN_THE_BROWSER, "utf-8")
    assert json.loads(run([node.find_node(), str(script)], changed)) == {
        "controls": [{"name": "behind", "label": "Numbers", "control": "segments"}],
        "others": [],
        "options": [["numbers", "written", ""], ["nothing", "left out", ""]],
        "read": ["nothing", "numbers", "numbers"],
        "written": ["nothing", None],
        "changes": True,
    }


def test_a_setting_changes_the_drawings_of_both_languages_alike(changed: Path) -> None:
    cases = changed / "tests" / "golden" / "cases.py"
    text = cases.read_text("utf-8")
    opened = '    "as it opens": View(),\n'
    assert text.count(opened) == 1
    added = f'{opened}    "added": View(behind="nothing"),\n    "added, held": View(behind="nothing", pin="k8"),\n'
    cases.write_text(text.replace(opened, added), "utf-8")
    run([sys.executable, "-m", "tests.golden"], changed)
    drawn = json.loads((changed / "tests" / "golden" / "figures.json").read_text("utf-8"))["cases"]
    assert drawn["added"]["links"] != drawn["as it opens"]["links"]
    assert drawn["added"]["heatmap"] == drawn["as it opens"]["heatmap"]
    run([node.find_node(), "--test", "tests/js/golden.test.mjs"], changed)
