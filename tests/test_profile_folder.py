"""The Roles page with profiles prepared by whoever runs the server: one model, or the steps of a training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.app.roles import folder
from mha_viz.files.assets import PROFILES_VARIABLE
from mha_viz.study.own_profiles import find_own_profiles
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home")

TEXT = "the dog saw the girl .\nthe girl saw it .\nshe saw the dog .\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``mha-viz profile a.txt --model toy@0 --model toy@400 --out …`` writes."""
    place = tmp_path_factory.mktemp("training")
    (place / "a.txt").write_text(TEXT, "utf-8")
    mv.roles.profile_all([place / "a.txt"], ["toy@0", "toy@400", "toy"], out=place / "out")
    return place / "out"


@pytest.fixture(autouse=True)
def setting(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILES_VARIABLE, str(measured))


def visit(**url: Any) -> PageSession:
    return PageSession(url, "pages/55_roles.py")


def test_steps_of_one_training_are_models_whose_names_end_with_other_numbers() -> None:
    assert [*find_own_profiles()] == ["toy", "toy@0", "toy@400"]
    assert folder.list_steps("toy@0") == folder.list_steps("toy@400") == {0: "toy@0", 400: "toy@400"}
    assert folder.list_steps("toy") == folder.list_steps("minilm") == {}


def test_a_slider_goes_through_the_steps_and_keeps_the_head() -> None:
    page = visit(model="toy@400", head="L1H1")
    assert "22 tokens" in page.said  # of the three sentences
    (slider,) = page.at.select_slider
    assert (slider.label, slider.options, slider.value) == ("Training step", ["0", "400"], 400)
    slider.set_value(0).run()
    assert page.url["model"] == "toy@0"
    assert page.url["corpus"] == folder.CHOICE
    assert page.url["head"] == "L1H1"
    assert page.at.select_slider[0].value == 0
    assert not page.at.exception


def test_one_profile_has_no_slider_and_another_corpus_can_be_chosen() -> None:
    assert not visit(model="toy", corpus=folder.CHOICE).at.select_slider
    assert "22 pieces" not in visit(model="toy").said  # what comes with the app is shown first
    assert not visit(model="toy@0", corpus="grammar").at.select_slider


def test_a_damaged_profile_is_named(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "toy@0" / "a.txt"
    broken.mkdir(parents=True)
    facts = json.loads((measured / "toy@0" / "a.txt" / "profile.json").read_text("utf-8"))
    older = {name: fact for name, fact in facts.items() if name not in ("digests", "seal")}
    (broken / "profile.json").write_text(json.dumps(older | {"definitions": "another"}), "utf-8")
    (tmp_path / "other" / "x").mkdir(parents=True)
    (tmp_path / "other" / "x" / "profile.json").write_text("[]", "utf-8")
    monkeypatch.setenv(PROFILES_VARIABLE, str(tmp_path))
    assert [*find_own_profiles()] == ["toy@0"]
    page = visit(model="toy@0", corpus=folder.CHOICE)
    assert "definitions another" in page.said
    assert not page.at.exception


def test_without_the_setting_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROFILES_VARIABLE)
    assert find_own_profiles() == {}
    assert not visit(model="toy@0", corpus=folder.CHOICE).at.select_slider
