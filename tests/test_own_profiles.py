"""Profiles, and recipes, in the folders that MHA_VIZ_PROFILES names: opened on Roles however deep they are, or why
not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.analysis.bundled_data import describe_recipes
from mha_viz.analysis.profile import Profile
from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.cli import serve
from mha_viz.corpus import grammar
from mha_viz.errors import CorpusError
from mha_viz.figures.words.glosses import simplify_rule
from mha_viz.files.assets import PROFILES_VARIABLE, find_files
from mha_viz.models.getting import catalog
from mha_viz.study.own_profiles import find_own_profiles, iter_open_problems
from tests.few_sentences import limit_built_in_sentences
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home")


@pytest.fixture(scope="module")
def name(tiny_folder: Callable[[str], Path]) -> str:
    return str(tiny_folder("bert"))


@pytest.fixture(scope="module")
def own(name: str) -> Profile:
    return mv.profile(replace(grammar.corpus(20), name="my treebank"), name)


def visit(monkeypatch: pytest.MonkeyPatch, named: Path, **url: Any) -> PageSession:
    monkeypatch.setenv(PROFILES_VARIABLE, str(named))
    limit_built_in_sentences(monkeypatch)
    return PageSession(url, "pages/55_roles.py")


@pytest.mark.parametrize("below", ["", "CORPUS", "MODEL/CORPUS", "a/b/MODEL/CORPUS"])
def test_a_profile_is_opened_however_deep_it_is(
    below: str, name: str, own: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.save(tmp_path / below)
    page = visit(monkeypatch, tmp_path, model=name)
    assert "my treebank" in page.said
    assert find_own_profiles() == {name: [tmp_path / below]}
    assert [*iter_open_problems()] == []


def test_recipes_beside_it_are_on_the_card_of_a_head(
    name: str, own: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.save(tmp_path / "profile")
    recipes = mv.recipes.fit(grammar.corpus(20), name)
    explained = recipes.tables["explained"].assign(even=0.1)  # of random weights, which are even, nothing is said
    recipes = replace(recipes, tables={**recipes.tables, "explained": explained})
    recipes.save(tmp_path / "recipes")
    page = visit(monkeypatch, tmp_path, model=name, head="L0H1")
    of_head = next(recipe for recipe in describe_recipes(recipes) if str(recipe.head) == "L0H1")
    words = of_head.describe(simplify_rule)
    assert "; no rule explains " in words
    assert f"A{escape_markdown(words).removeprefix('a')}." in page.said


def test_of_two_profiles_of_one_corpus_the_nearest_is_opened(
    name: str, own: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROFILES_VARIABLE, os.pathsep.join([str(tmp_path / "none"), str(tmp_path)]))
    for folder in ("a/earlier", "new"):
        own.save(tmp_path / folder)
    assert find_own_profiles() == {name: [tmp_path / "new"]}


def test_what_is_not_opened_is_said_with_the_reason(
    name: str, own: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is not a folder" in visit(monkeypatch, tmp_path / "none").said
    assert f"There is no profile in “{tmp_path}”" in visit(monkeypatch, tmp_path).said
    replace(own, facts={**own.facts, "model": "/elsewhere/bert"}).save(tmp_path / "gone")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "profile.json").write_text(json.dumps(["another program's"]))
    said = visit(monkeypatch, tmp_path).said
    assert f"{tmp_path / 'gone'}” is a profile of “/elsewhere/bert”, which cannot be opened: " in said
    assert "“/elsewhere/bert” is not a model." in said
    assert f"{tmp_path / 'other' / 'profile.json'}” does not say which model was measured" in said
    monkeypatch.setenv(catalog.ACCESS, "here")  # visitors from elsewhere do not learn the names of folders
    assert str(tmp_path) not in visit(monkeypatch, tmp_path).said


def test_a_folder_of_recipes_alone_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mv.recipes.load("toy").save(tmp_path / "recipes")
    monkeypatch.setenv(PROFILES_VARIABLE, str(tmp_path))
    assert [*iter_open_problems()] == []


def test_files_are_looked_for_however_deep_and_not_in_hidden_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*folders: str) -> Path:
        file = tmp_path.joinpath(*folders, "x.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return file

    deepest, near = made(*"abcdefghij"), made("z")
    made(".hidden")
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    assert find_files(tmp_path, "x.json") == [near, deepest]
    assert find_files(tmp_path / "none", "x.json") == []
    monkeypatch.setattr("mha_viz.files.assets.MAX_FOLDERS", 3)
    assert find_files(tmp_path, "x.json") == [near]


def test_a_server_is_given_recipes_by_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PROFILES_VARIABLE, str(tmp_path / "none"))
    mv.recipes.load("toy").save(tmp_path / "own" / "toy")
    serve.register_recipes(tmp_path / "own")
    assert os.environ[PROFILES_VARIABLE] == os.pathsep.join([str(tmp_path / "own"), str(tmp_path / "none")])
    assert "none”, which MHA_VIZ_PROFILES names, is not a folder." in capsys.readouterr().err
    with pytest.raises(CorpusError, match="holds no readable recipes"):
        serve.register_recipes(tmp_path / "none")
