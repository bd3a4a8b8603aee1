"""Models are called by what a reader can look up, in captions, files, reports, recipes and published pages, and in one
form in errors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import MhaVizError, SettingError
from mha_viz.figures.layout import Size, figure_code
from mha_viz.figures.layout.view import View
from mha_viz.model_names import ModelName, cite_model, name_in_column, read_config_name, shorten_name
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from tests.packets import read_page

HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
CITED = f"{HUB_ID} (weights SHA-256 53aa5117…)"
COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"


@pytest.mark.parametrize(
    ("model", "revision", "cited"),
    [
        ("minilm", "53aa51172d14", CITED),
        ("minilm", "53aa51172d14, bfloat16", f"{HUB_ID} (weights SHA-256 53aa5117…, bfloat16)"),
        ("minilm", "untrained, seed 0", f"{HUB_ID} (untrained, seed 0)"),
        ("minilm", "", HUB_ID),
        ("gpt2", COMMIT, f"openai-community/gpt2 (revision {COMMIT})"),
        ("gpt2@main", "", "openai-community/gpt2@main"),
        ("EleutherAI/pythia-70m@step1000", COMMIT, f"EleutherAI/pythia-70m@step1000 (revision {COMMIT})"),
        ("toy", "68f9ea1c03c2", "toy (mha_viz’s own model, weights digest 68f9ea1c03c2)"),
        ("toy@400", "", "toy@400 (mha_viz’s own model)"),
        ("repeater", "", "repeater (mha_viz’s own model)"),
        ("./bge", "0123456789ab", "bge (weights digest 0123456789ab)"),
        (ModelName("./bge", "BAAI/bge-small-en"), "0123456789ab", "BAAI/bge-small-en (weights digest 0123456789ab)"),
        ("tensors", "", "tensors"),
        ("experiment task, 4 heads", "step 300", "experiment task, 4 heads (step 300)"),
    ],
)
def test_a_model_is_cited_as_a_reader_can_look_it_up(model: str, revision: str, cited: str) -> None:
    assert cite_model(model, revision) == cited


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("minilm", HUB_ID),
        ("gpt2@main", "openai-community/gpt2@main"),
        ("toy", "toy"),
        ("toy@400", "toy@400"),
        ("./bge", "bge"),
        (ModelName("./bge", "BAAI/bge-small-en"), "BAAI/bge-small-en"),
        (ModelName("./mine", read_config_name("./mine", {"_name_or_path": "google-bert/bert-base-uncased"})), "mine"),
        (ModelName("./x", "Ours (second)"), "Ours (second)"),
    ],
)
def test_a_column_has_the_bare_name(model: str, named: str) -> None:
    assert name_in_column(model) == named


def test_every_model_of_the_catalogue_has_a_name_to_look_up() -> None:
    for row in catalog.CATALOG.values():
        assert cite_model(row.name) == (row.hub_id or f"{row.name} (mha_viz’s own model)")
        assert "/" in cite_model(row.name) or row.kind == "own"


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"name": "ours/bert-2"}, "ours/bert-2"),
        ({"_name_or_path": "BAAI/bge"}, "BAAI/bge"),
        ({"_name_or_path": "bert-base-uncased"}, "bge (bert-base-uncased by its config)"),  # what it began with
        ({"name": "ours/bert-2", "_name_or_path": "bert-base-uncased"}, "ours/bert-2"),
        *(
            ({"_name_or_path": odd}, "")
            for odd in (
                "",
                "./out",
                "/root/.cache/torch/x/",
                "../up",
                "a b",
                "a/b/c",
                "C:\\x",
                "<b>",
                7,
                None,
                "x" * 97,
            )
        ),
        ({}, ""),
    ],
)
def test_a_folder_has_the_name_in_its_config_if_it_can_be_looked_up(config: dict[str, object], name: str) -> None:
    assert read_config_name("/models/bge", config) == name


@pytest.fixture
def folder(tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ./bge, whose config has a name."""
    copy = Path(shutil.copytree(tiny_folder("bert"), tmp_path / "bge"))
    config = json.loads((copy / "config.json").read_text("utf-8")) | {"_name_or_path": "BAAI/bge"}
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    monkeypatch.chdir(tmp_path)
    return copy


def test_a_folder_is_called_so_everywhere_and_known_by_its_path(folder: Path, tmp_path: Path) -> None:
    model = mv.load("./bge")
    a = model.encode("The cat sat.")
    assert (a.model, a.by_words().model, model.name) == ("./bge",) * 3  # what links and caches have
    cited = f"BAAI/bge (weights digest {model.revision})"
    assert f"of {cited} reading" in a.heatmap("L0H0").caption
    assert a.heatmap("L0H0").drawing.about["model"] == "BAAI/bge"
    assert f'"{cited}"' in a.save(tmp_path / "a.csv").read_text("utf-8") or cited in (tmp_path / "a.csv").read_text(
        "utf-8"
    )
    assert json.loads(a.save(tmp_path / "a.json").read_text("utf-8"))["model"] == "BAAI/bge"
    assert read_page(a.heatmap("L0H0").to_html())[0].header["model"] == "BAAI/bge"
    assert f"# {cited}\n" in figure_code.write_head_code(a, "heatmap", [Head(0, 0)], View(), Size(), "a.svg")
    for suffix in (".npz", ".safetensors"):
        again = mv.load_attention(a.save(tmp_path / f"a{suffix}"))
        assert again.key == a.key
        assert f"of {cited} reading" in again.heatmap("L0H0").caption
    packed, arrays = CODEC.pack(a)  # as the process with the models answers
    assert f"of {cited} reading" in CODEC.parse(json.loads(json.dumps(packed)), arrays).heatmap("L0H0").caption
    assert str(tmp_path) not in (tmp_path / "a.json").read_text("utf-8")


def test_a_profile_and_its_report_call_it_so(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("The cat sat.\nThe dog ran.\n", "utf-8")
    profile = mv.profile(tmp_path / "two.txt", "./bge", out=tmp_path / "profile")
    again = mv.load_profile(tmp_path / "profile")
    assert (profile.model, cite_model(profile.model)) == (again.model, cite_model(again.model)) == ("./bge", "BAAI/bge")
    assert mv.roles.report(mv.load_profile("minilm")).caption.startswith(
        f"What heads of {CITED}, 6 layers × 12 heads, do on"
    )


def test_its_user_can_name_it(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = mv.load("./bge", name="Our model, 2nd run").encode("The cat sat.")
    assert f"of Our model, 2nd run (weights digest {a.revision}) reading" in a.heatmap("L0H0").caption
    assert "mv.load('./bge', name='Our model, 2nd run')" in figure_code.write_head_code(
        a, "heatmap", [Head(0, 0)], View(), Size(), ""
    )
    options = ["--model", "./bge", "--name", "Ours"]
    assert main(["attention", "The cat sat.", *options, "--out", str(tmp_path / "a.json")]) == 0
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["model"] == "Ours"
    assert (
        main(["figure", "heatmap", "The cat sat.", "--head", "L0H0", *options, "--out", str(tmp_path / "a.svg")]) == 0
    )
    assert "of Ours (weights digest" in (tmp_path / "a.svg").read_text("utf-8")
    (tmp_path / "two.txt").write_text("The cat sat.\nThe dog ran.\n", "utf-8")
    command = ["profile", str(tmp_path / "two.txt"), "--model", "./bge", "--model-name", "Ours", "--name", "Two"]
    assert main([*command, "--out", str(tmp_path / "p")]) == 0
    assert cite_model(mv.load_profile(tmp_path / "p").model) == "Ours"


@pytest.mark.parametrize("name", ["two\nlines", "x" * 201, 7])
def test_a_text_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="cannot be the name of a model"):
        mv.load("toy", name=name)


def test_errors_of_a_folder_call_it_in_one_form(folder: Path) -> None:
    """By the last part of its path, which says nothing of the machine."""
    model = mv.load("./bge")
    (folder.parent / "damaged").mkdir()
    (folder.parent / "damaged" / "config.json").write_text("{", "utf-8")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: mv.load("./damaged"), "damaged"),
        (lambda: mv.load(str(folder.parent / "damaged")), "damaged"),
        (lambda: mv.find_induction_heads(model), "bge"),
        (lambda: model.encode("The cat sat.")["L9H9"], "bge"),
        (lambda: model.encode_words(["x"] * 5000), "bge"),
        (lambda: mv.predict(model, "The cat [MASK]."), "bge"),
        (lambda: Encoder.from_folder(folder.parent / "damaged", name="./damaged"), "damaged"),
    ]
    for call, called in calls:
        with pytest.raises(MhaVizError) as error:
            call()
        words = str(error.value)
        assert re.search(rf"(?<![\w/.]){called}\b", words), words
        assert f"./{called}" not in words, words
        assert str(folder.parent) not in words, words


def test_short_names_stay_where_there_is_little_room() -> None:
    assert [shorten_name(name) for name in ("minilm", "./bge", "/srv/own/")] == ["minilm", "bge", "own"]
    a = mv.Attention.from_tensors(np.full((1, 1, 2, 2), 0.5, np.float32), ["a", "b"], model="minilm")
    assert a.model == "minilm"
