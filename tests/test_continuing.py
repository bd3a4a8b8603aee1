"""A causal model continues a text: as ``generate()`` of transformers does, in steps, and on the page, where what it
wrote is marked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import mha_viz as mv
from mha_viz.attention.answers import Continuation
from mha_viz.attention.generate_outputs import mark_written
from mha_viz.attention.steps import WRITTEN, find_first_written, parse_wordings
from mha_viz.cli import main
from mha_viz.errors import MhaVizError
from mha_viz.figures.layout import figure_code
from mha_viz.figures.layout.packet import collect_axis_tokens
from mha_viz.files.assets import asset_path
from mha_viz.models.reading.continuing import continue_text, write_more
from mha_viz.models.reading.loading import load
from tests import tiny_unlisted
from tests.page_session import PageSession, press

Folder = Callable[[str], Path]
TEXT = "the dog saw a girl . the dog"
WROTE = " stands a girl . the dog stands a"


def test_repeater_repeats() -> None:
    repeater = mv.load("repeater")
    assert continue_text(repeater, TEXT, words=8) == TEXT + WROTE
    assert continue_text(repeater, TEXT, words=2) == TEXT + " stands a"


def test_a_last_word_outside_the_vocabulary_is_continued() -> None:
    repeater, text = mv.load("repeater"), "dog river anna dog qwerty"
    assert continue_text(repeater, text, 1).split()[-1] == mv.predict(repeater, text).words[0] == "anna"


def test_a_token_that_the_tokenizer_appends_is_not_continued(tmp_path: Path) -> None:
    repeater, text = mv.load("repeater"), "dog river anna dog river"
    folder = shutil.copytree(asset_path("repeater"), tmp_path / "repeater")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    end = {"id": "[PAD]", "ids": [0], "tokens": ["[PAD]"]}
    both = [{"Sequence": {"id": part, "type_id": number}} for number, part in enumerate("AB")]
    single = [both[0], {"SpecialToken": {"id": "[PAD]", "type_id": 0}}]
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": single, "pair": both, "special_tokens": {"[PAD]": end}
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    appending = mv.load(folder)
    assert appending.encode(text).text.tokens[-1].special
    assert mv.predict(appending, text).words[0] == mv.predict(repeater, text).words[0] == "anna"
    assert continue_text(appending, text, 2) == continue_text(repeater, text, 2)


@torch.no_grad()
@pytest.mark.parametrize("family", ["gpt2 words"])
def test_it_writes_what_generate_writes(tiny_folder: Folder, family: str) -> None:
    folder = tiny_folder(family)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("The animal was", return_tensors="pt").input_ids
    new = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    state = write_more(load(folder), "The animal was", 32, steps=12)
    count = len(state.pieces)
    assert count
    assert new[:count].tolist() == list(state.pieces)
    assert state.is_complete or count == 12


def test_it_is_written_in_steps() -> None:
    repeater, state = mv.load("repeater"), Continuation()
    written = []
    while not state.is_complete:
        state = write_more(repeater, TEXT, 8, state, steps=2)
        written.append(state.text)
    assert written[0] == " stands a"
    assert written[-1] == WROTE


@pytest.mark.parametrize(
    ("model", "text", "words", "message"),
    [
        ("minilm", TEXT, 8, "reads in both directions, so it cannot continue a text"),
        ("repeater", TEXT, 0, "words is '0'. Expected a number from 1 to 32"),
        ("repeater", TEXT, 33, "Expected a number from 1 to 32"),
        ("repeater", TEXT, None, "words is 'None'. Expected a number from 1 to 32"),
        ("repeater", TEXT, "8", "Expected a number from 1 to 32"),
        ("repeater", "the dog " * 32, 8, "reads 64 tokens, and the text leaves no room"),
        ("repeater", " ", 8, "Nothing was typed"),
    ],
)
def test_what_cannot_be_continued_is_refused(model: str, text: str, words: Any, message: str) -> None:
    with pytest.raises(MhaVizError, match=message):
        continue_text(mv.load(model), text, words)


def test_a_model_that_is_read_weights_only_continues_no_text(tmp_path: Path) -> None:
    folder = tiny_unlisted.build("olmo", tmp_path)
    with pytest.raises(MhaVizError, match=r"is read without predictions.*generate\(.*from_generated"):
        continue_text(load(folder), TEXT)


# ---- On the page ----------------------------------------------------------------------------------------------


def test_a_causal_model_continues_the_text_on_the_page() -> None:
    page = PageSession({"model": "repeater", "text": TEXT, "pin": "q1"}, "pages/10_explore.py")
    press(page, "continue_text")
    assert page.url == {"model": "repeater", "text": TEXT + WROTE, "written": str(len(WROTE))}
    assert f"Written by the model: “{WROTE.strip()}”" in page.said
    header = page.shown().header
    first = len(TEXT.split()) + header["special"].index(0)
    assert header["written"] == first
    assert header["tokens"][first:] == WROTE.split() + header["tokens"][first + 8 :]
    page.read("the dog saw")
    assert "written" not in page.url
    assert "written" not in page.shown().header


@pytest.mark.parametrize(
    "url",
    [
        {"text": TEXT},
        {"model": "repeater", "text": TEXT, "pair": "a girl ."},
        {"model": "repeater", "text": "1\tthe\n"},
    ],
    ids=["both directions", "a pair", "lines"],
)
def test_only_one_text_of_a_causal_model_is_continued(url: dict[str, Any]) -> None:
    page = PageSession(url, "pages/10_explore.py")
    assert "continue_text" not in {button.key for button in page.at.button}


@pytest.mark.parametrize("written", ["0", str(len(TEXT)), "9999", "-1", "x"])
def test_a_link_that_claims_too_much_marks_nothing(written: str) -> None:
    page = PageSession({"model": "repeater", "text": TEXT, "written": written}, "pages/10_explore.py")
    assert "written" not in page.shown().header
    assert "Written by the model" not in page.said


def test_captions_and_files_say_what_the_model_wrote(tmp_path: Path) -> None:
    read = mv.load("repeater").encode(TEXT + WROTE)
    first = next(i for i, token in enumerate(read.text.tokens) if (token.end or 0) > len(TEXT))
    marked = mark_written(read, len(WROTE))
    assert find_first_written(marked) == first
    assert find_first_written(read) is None
    assert collect_axis_tokens(marked.text)["tokens"] == collect_axis_tokens(read.text)["tokens"]
    assert f"“{WROTE.strip()}” written by the model" in marked.heatmap("L1H0").caption
    opened = mv.load_attention(marked.save(tmp_path / "a.npz"))
    assert opened.made == marked.made
    assert opened.made[-1].row.name == WRITTEN
    assert parse_wordings(map(str, marked.made))[-1].row == marked.made[-1].row
    assert figure_code._write_reading("a", marked) == figure_code._write_reading("a", read)


def test_a_command_continues_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.npz"
    given = ["attention", TEXT, "--model", "repeater", "--continue", "8", "--out", str(file)]
    assert main(given) == 0
    opened = mv.load_attention(file)
    assert (opened.text.text, opened.made[-1].row.source) == (TEXT + WROTE, WROTE.strip())
    figure = ["figure", "heatmap", TEXT, "--model", "repeater", "--continue", "2", "--head", "L1H0", "--caption"]
    assert main([*figure, "--out", str(tmp_path / "a.svg")]) == 0
    assert "“stands a” written by the model" in capsys.readouterr().out
    assert main([*given, "--pair", "a girl ."]) != 0
    assert "--continue does not go with --pair" in capsys.readouterr().err
    assert main([*given[:5], "33", "--out", str(file)]) != 0
    assert "expected a number of words from 1 to 32" in capsys.readouterr().err
