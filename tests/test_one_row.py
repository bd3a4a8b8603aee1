"""A quantity, a measure per head and a verb are each added in one place, and found everywhere: tests/one_row.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.live_pages import EXAMPLE, serve_folder

ROOT = Path(__file__).resolve().parent.parent
LABEL = "on tokens nearby"
# What ARCHITECTURE.md says to do: one function in analysis/metrics.py.
MEASURE = f'''

@metric("{LABEL}")
def nearby(attention: Attention) -> PerHead:
    """Mean weight from a token to those at most two away."""
    near = [np.trace(attention.weights, at, 2, 3) for at in range(-2, 3)]
    return np.sum(near, axis=0, dtype=np.float64) / len(attention.queries)
'''
ROW = '        Kind("idle", False, MIN_PATTERN, _find_idle_heads),\n'
FINDING = '''def _twice(seen: WordReading, kind: str, min_share: float) -> Candidates:
    """A word that is read twice."""
    for at, word in enumerate(seen.words):
        if word in seen.words[:at] and word.isalpha():
            words = (f"{seen.heads[0]} reads “", word, "” twice.")
            yield UnusualFinding(kind, seen.heads[0], 1.0, math.inf, words, seen.pieces[at])


'''
FIND_FINDING = """
import mha_viz as mv
from mha_viz.analysis.unusual_heads import find_unusual_heads
from tests.page_session import PageSession
text = "dogs saw dogs ."
said = [one for one in find_unusual_heads(mv.load("toy").encode(text)) if one.kind == "twice"]
assert said and "".join(said[0].words) == "L0H0 reads “dogs” twice.", said
assert "twice" not in {one.kind for one in find_unusual_heads(mv.load("toy").encode(text), hides_words=True)}
page = PageSession({"model": "toy", "text": text})
assert "".join(said[0].words) in ["".join(one["words"]) for one in page.badges["unusual"]]
"""
PUBLISH = f"""
import sys
import mha_viz as mv
assert "nearby" in mv.load("toy").encode({EXAMPLE!r}).measures()
model = mv.load("toy")
mv.publish([(model.encode({EXAMPLE!r}), "L1H1")], sys.argv[1], live=model)
"""


def run(code: str, argument: Path, *places: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, str(argument)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True, text=True, check=False, cwd=places[-1],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def with_one_row(folder: Path) -> Path:
    """A place from which Python imports the rows at the start of a process: of those with models, too."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("from tests import one_row\n\none_row.add()\n", "utf-8")
    return folder


FIND = "import pathlib, sys; from tests import one_row; one_row.check_all(pathlib.Path(sys.argv[1]))"
FIND_MEASURE = f"{FIND.partition(' one_row.')[0]} one_row.use_separate_reader(); "
FIND_MEASURE += "one_row.check_measure(pathlib.Path(sys.argv[1]))"


@pytest.mark.app
def test_what_is_added_in_one_place_is_found_everywhere(tmp_path: Path) -> None:
    run(FIND, tmp_path, with_one_row(tmp_path / "added"), ROOT)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program in which somebody has added a measure and a finding as ARCHITECTURE.md says."""
    copy = tmp_path_factory.mktemp("changed")
    for path in ROOT.iterdir():
        if path.name not in ("mha_viz", ".git"):
            (copy / path.name).symlink_to(path)
    shutil.copytree(ROOT / "mha_viz", copy / "mha_viz", ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "mha_viz" / "analysis" / "metrics.py").open("a", encoding="utf-8") as file:
        file.write(MEASURE)
    unusual = copy / "mha_viz" / "analysis" / "unusual_heads.py"
    source = unusual.read_text("utf-8")
    assert source.count(ROW) == 1
    source = source.replace(ROW, f'{ROW}        Kind("twice", True, 0.0, _twice),\n')
    unusual.write_text(source.replace("KINDS: Mapping", f"{FINDING}KINDS: Mapping", 1), "utf-8")
    return copy


@pytest.mark.app
def test_a_finding_is_added_in_one_file_and_said_on_the_page(changed: Path, tmp_path: Path) -> None:
    run(FIND_FINDING, tmp_path, changed)


@pytest.mark.app
def test_what_was_added_before_changes_nothing_for_what_is_added_next(changed: Path, tmp_path: Path) -> None:
    run(FIND_MEASURE, tmp_path, with_one_row(tmp_path / "added"), changed)


def test_a_share_that_was_added_is_on_a_page_with_recipes_and_a_live_page_goes_on_without_it(
    changed: Path, tmp_path: Path, page: Page
) -> None:
    run(PUBLISH, tmp_path / "site", changed)
    faults = list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    with serve_folder(tmp_path / "site") as (address, _):
        page.goto(address)
        live = page.locator("#live")
        live.locator(".preview details.more > summary").click()
        expect(live.locator(".rules > div")).not_to_have_count(0)  # recipes are known here
        named = live.locator(".preview dt").filter(has_text=LABEL)
        expect(named).to_be_visible()
        expect(named.locator("xpath=following-sibling::dd").last).to_contain_text("%")
        page.get_by_label("Sentence", exact=True).fill("The dog saw a bird.")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text("Read on this device: 8 tokens.")
        expect(live.locator(".preview dt").filter(has_text="previous token")).to_be_visible()
        expect(named).to_have_count(0)  # no twin in JavaScript: not said of what is typed
    assert faults == []
