"""A page that reads by itself is a folder of static files: what is in it, and what is refused."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.cli import main
from mha_viz.errors import ExportError, ModelUnsupported, SettingError
from mha_viz.figures.live import LIBRARIES
from mha_viz.files import npm
from mha_viz.models.reading import onnx
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import Tokenizer
from mha_viz.models.reading.tokenizer_rules import export_rules
from tests.cli_runs import assert_one_line
from tests.live_pages import EXAMPLE, PART, list_parts, write


def test_the_folder_has_everything_and_no_script_in_its_page(live_toy: Path) -> None:
    names = {path.name for path in live_toy.iterdir()}
    assert names == {
        *("index.html", "style.css", "page.js", "reader.js", "offline.js", "model.json"),
        *(f"model.{part}.onnx" for part in range(sum(name.endswith(".onnx") for name in names))),
        *(Path(name).name for library in LIBRARIES for name in library.files),
    }
    page = (live_toy / "index.html").read_text("utf-8")
    assert "default-src 'none'; script-src 'self' 'wasm-unsafe-eval';" in page
    (script,) = re.findall(r"<script(?! type=\"application/json\")[^>]*>", page)
    assert re.fullmatch(r'<script type="module" src="page\.js\?[0-9a-f]{16}">', script)
    assert not re.search(r"<style|\bon\w+=|style=|https?:", page)
    stored = json.loads(re.search(r"\{\"first\".*?\}", (live_toy / "offline.js").read_text("utf-8"))[0])
    assert {name.split("?")[0] for name in stored["all"]} == (names | {"./"}) - {"index.html", "offline.js"}
    assert all("?" in name for name in stored["all"] if name != "./")


def test_a_large_model_is_written_in_parts(live_toy: Path) -> None:
    described = json.loads((live_toy / "model.json").read_text("utf-8"))
    parts = list_parts(live_toy)
    assert len(parts) > 1
    assert max(map(len, parts)) == PART
    assert sum(map(len, parts)) == described["bytes"]


@pytest.mark.parametrize(("family", "reason"), [("llama", "family llama"), ("albert", "family albert")])
def test_a_model_that_a_page_cannot_run_is_refused(
    tiny: Callable[[str], Encoder], tmp_path: Path, family: str, reason: str
) -> None:
    model = tiny(family)
    with pytest.raises(ModelUnsupported, match=reason):
        mv.publish([(model.encode("a cat"), "L0H0")], tmp_path / "site", live=model)


def test_a_tokenizer_that_a_page_cannot_follow_is_refused(tiny: Callable[[str], Encoder], tmp_path: Path) -> None:
    for family in ("xlm-roberta", "llama", "gpt_neox"):
        model = tiny(family)
        with pytest.raises(ModelUnsupported, match=r"its tokenizer|a page cannot"):
            export_rules(Tokenizer(model.vocabulary, model.name, model.limit))


def test_what_is_missing_is_named_with_the_command_that_installs_it(
    toy: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "onnxscript":
            raise ImportError(name)
        return real(name, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without)
        with pytest.raises(ExportError, match=r'onnxscript is not installed.*pip install "\.\[live\]"'):
            onnx.check_exportable(toy)
    monkeypatch.setattr(npm, "find_npm", lambda: None)
    with pytest.raises(ExportError, match=r'npm, which .*is not installed.*pip install "\.\[live\]"'):
        npm.fetch_files(LIBRARIES[1], tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_library_with_another_hash_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "other.tgz"
    archive.write_bytes(b"not what was pinned")
    monkeypatch.setattr(npm, "_fetch_archive", lambda *_: archive.read_bytes())
    with pytest.raises(ExportError, match="does not have the expected hash"):
        npm.fetch_files(LIBRARIES[1], tmp_path / "place")
    assert [*(tmp_path / "place").iterdir()] == []


def test_a_graph_needs_a_folder_and_a_file_is_none(toy: Encoder, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("a", "utf-8")
    with pytest.raises(ExportError, match="'page' is a file"):
        write(toy, tmp_path / "page")
    with pytest.raises(ExportError, match="was not read from a folder"):
        onnx.check_exportable(toy.untrained())
    with pytest.raises(SettingError, match="half is for a page with a live model"):
        mv.publish([(toy.encode(EXAMPLE), "L0H0")], tmp_path / "a.html", half=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Neither a file nor a folder was named."),
        (["--live", "site", "--out", "a.html"], "--live and --out were both given."),
        (["--half", "--out", "a.html"], "--half is for a page with a model."),
    ],
)
def test_the_command_takes_a_file_or_a_folder(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", EXAMPLE, "--head", "L0H0", "--model", "toy", *options]) == 2
    assert_one_line(capsys.readouterr().err, words)
