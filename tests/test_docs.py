"""The documentation: every block runs, every page is in the menu, and help texts are the ones that the command
prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import mha_viz
from mha_viz.cli import main, table, termination
from mha_viz.models.reading import onnx
from mha_viz.models.reading.encoder import Encoder
from tests import documents
from tests.live_pages import list_parts
from tools import docs

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
ELSEWHERE = ("hosting.md", *docs.PAGES_WITH_CORPORA)  # run by tests/test_serving.py and tests/test_readme.py
WITH_BLOCKS = [page for page in PAGES if any(docs.iter_blocks(page.read_text("utf-8"))) and page.name not in ELSEWHERE]


def commands(block: str) -> list[list[str]]:
    """The commands of a shell block; what follows | or > belongs to the shell."""
    lines = [re.split(r" [|>] ", line)[0] for line in block.splitlines() if line.strip()]
    return [shlex.split(line) for line in lines]


@pytest.fixture
def _light(minilm: Encoder, live_toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of toy is that which tests/test_live.py looks at; PyTorch takes seconds to make it."""
    documents.lighten_models(monkeypatch, minilm)
    made = onnx.Graph(b"".join(list_parts(live_toy)), 0.0)
    monkeypatch.setattr(
        onnx, "export_graph", lambda model, *_: made if model.name == "toy" else pytest.fail(model.name)
    )


@pytest.mark.usefixtures("_light")
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_every_block_of_the_documentation_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    figures = 0
    for language, block in docs.iter_blocks(page.read_text("utf-8")):
        if language == "python":
            result = docs.run_block(block, names)
            if page.name in docs.PAGES_WITH_FIGURES and (drawn := docs.render_picture(result)):
                figures += 1
                assert drawn[0].lstrip().startswith((b"<svg", b"<?xml"))
            continue
        for program, *arguments in commands(block):
            assert program == "mha-viz"
            assert main(arguments) == 0, capsys.readouterr().err
    assert figures >= 20 or page.name not in docs.PAGES_WITH_FIGURES


def test_every_page_is_in_the_menu_and_the_menu_has_no_other() -> None:
    menu = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES}
    assert menu == pages | docs.COPIES.keys()


def test_every_link_between_pages_leads_to_a_file_and_a_heading() -> None:
    """As the files are read in the repository, without the site."""
    for page in PAGES:
        for target, _, anchor in re.findall(r"\]\(([\w./-]+\.md)(#([\w-]+))?\)", page.read_text("utf-8")):
            linked = page.parent / target
            assert linked.is_file() or (ROOT / target.removeprefix("../")).is_file(), f"{page.name}: {target}"
            headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE) if anchor else []
            assert not anchor or anchor in {re.sub(r"[^\w]+", "-", heading.lower()) for heading in headings}, anchor


def test_the_page_of_commands_names_each_command_and_exit_code() -> None:
    page = (ROOT / "docs" / docs.COMMANDS).read_text("utf-8")
    commands = next(action for action in table.build_parser()._actions if isinstance(action.choices, dict)).choices
    assert re.findall(r"^\| `mha-viz ([\w-]+)", page, re.MULTILINE) == list(commands or ())
    for code, meaning in termination.EXIT_CODE_MEANINGS.items():
        assert f"| {code} | {meaning} |" in page


def test_the_page_of_commands_holds_every_help() -> None:
    page = docs.format_commands()
    for name in ("mha-viz", "mha-viz figure compare", "mha-viz toy history", "mha-viz completion"):
        assert f"## {name}\n" in page
    assert "exit codes:" in page


def test_a_page_that_loads_from_elsewhere_is_noticed() -> None:
    for tag in ('<script src="https://a.example/b.js">', '<link rel="stylesheet" href="//a.example/b.css">'):
        assert docs.EXTERNAL_RESOURCE.search(tag)
    assert not docs.EXTERNAL_RESOURCE.search(
        '<link rel="canonical" href="https://a.example/"><a href="https://a.example/">'
    )


def test_the_changelog_has_the_version() -> None:
    assert f"## {mha_viz.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
