"""Recipes of one's own model serve wherever those that come with the app do: given, or in a folder that
MHA_VIZ_PROFILES names, however deep."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.analysis import bundled_data
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.errors import CorpusError, SettingError
from mha_viz.figures.words.known_facts import collect_recipes
from mha_viz.files.assets import PROFILES_VARIABLE, asset_path
from mha_viz.request import Request
from mha_viz.study.corpus_effects import EffectSettings, Measurement

TEXT = "the dog saw the girl"
UNEXPLAINED = Request(text=TEXT, quantity="unexplained")


@pytest.fixture(scope="module")
def name(tiny_folder: Callable[[str], Path]) -> str:
    return str(tiny_folder("bert"))


@pytest.fixture(scope="module")
def own(name: str) -> Recipes:
    return mv.recipes.fit(replace(grammar.corpus(12), name="mine"), name)


@pytest.fixture
def folder(own: Recipes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three folders below the one that the setting names."""
    monkeypatch.setenv(PROFILES_VARIABLE, str(tmp_path / "all"))
    return own.save(tmp_path / "all" / "some" / "model" / "mine")


def test_without_recipes_the_refusal_says_what_to_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = mv.load(name)
    for act in (lambda: mv.read(model, UNEXPLAINED), lambda: mv.ablation_effects(model, TEXT, method="recipe")):
        with pytest.raises(
            SettingError, match=r"no recipes of the heads of .* in the app\. Name the folder that"
        ) as no:
            act()
        assert "--recipes DIR, or MHA_VIZ_PROFILES=DIR" in str(no.value)
    monkeypatch.setenv(PROFILES_VARIABLE, "/nowhere")
    with pytest.raises(SettingError, match=r"in the app or /nowhere\. Name the folder"):
        mv.read(model, UNEXPLAINED)


def test_they_are_found_however_deep_and_are_those_that_are_given(
    name: str, own: Recipes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mv.load(name)
    given = mv.read(model, UNEXPLAINED, recipes=own).weights
    assert np.array_equal(given, mv.quantities.unexplained(model.encode(TEXT), own).weights)
    for named in (folder, *[*folder.parents][:3]):
        monkeypatch.setenv(PROFILES_VARIABLE, f"/nowhere:{named}")
        np.testing.assert_allclose(mv.read(model, UNEXPLAINED).weights, given, atol=1e-6)
    assert [head.head for head in bundled_data.list_head_recipes(model.name, model.revision)] == [
        head.head for head in bundled_data.describe_recipes(own)
    ]
    shape = int(own.facts["layers"]), int(own.facts["heads"])
    assert (
        collect_recipes(model.name, model.revision, shape)
        is collect_recipes(model.name, model.revision, shape)
        is not None
    )


@pytest.mark.usefixtures("folder")
def test_effects_of_heads_by_their_recipes_are_those_of_the_given_ones(name: str, own: Recipes, tmp_path: Path) -> None:
    model, corpus = mv.load(name), grammar.corpus(3, seed=8)
    alone = [mv.ablation_effects(model, TEXT, method="recipe", recipes=one).sentence for one in (own, None)]
    np.testing.assert_allclose(*alone, atol=1e-6)
    other = "the cat slept"
    alone = [
        mv.ablation_effects(model, TEXT, other=other, off_in="both", method="recipe", recipes=one).answer
        for one in (own, None)
    ]
    np.testing.assert_allclose(*alone, atol=1e-6)
    over = [
        mv.corpus_ablation_effects(corpus, ["L0H0"], name, method="recipe", recipes=one).table() for one in (own, None)
    ]
    np.testing.assert_allclose(over[0]["effect"], over[1]["effect"], atol=1e-6)
    assert over[0]["effect"].abs().min() > 0
    with pytest.raises(SettingError, match="Recipes are given, and heads are switched off by zero"):
        mv.corpus_ablation_effects(corpus, ["L0H0"], name, recipes=own)
    # What is taken depends on them: with others, a measurement does not continue from it.
    settings = EffectSettings(Request(off=(mv.Head(0, 0),), method="recipe"), recipes=own)
    run = Measurement(model, corpus, settings, folder=tmp_path / "parts")
    [*run.iter_progress()]
    assert Measurement(model, corpus, settings, folder=tmp_path / "parts").measured_cases.sentences_read == 3
    rows = own.tables["recipes"].assign(rule="everywhere", share=1.0, query_class="all").drop_duplicates()
    others = replace(own, tables={**own.tables, "recipes": rows})
    assert (
        Measurement(
            model, corpus, settings._replace(recipes=others), folder=tmp_path / "parts"
        ).measured_cases.sentences_read
        == 0
    )


def test_those_of_other_weights_are_not_used_and_said(name: str, own: Recipes, folder: Path) -> None:
    model = mv.load(name)
    replace(own, facts={**own.facts, "revision": "0123"}).save(folder)
    with pytest.raises(SettingError, match=rf"in .*mine were measured on other weights \(0123, not {model.revision}\)"):
        mv.read(model, UNEXPLAINED)
    replace(own, facts={**own.facts, "model": "/elsewhere/bert"}).save(folder)
    assert mv.read(model, UNEXPLAINED).quantity == "unexplained", "the same weights under another name"


def test_damaged_ones_are_said_by_who_needs_them_alone(name: str, folder: Path) -> None:
    model = mv.load(name)
    (folder / "recipes.csv").write_text("layer,head\n")
    assert bundled_data.list_head_recipes(model.name, model.revision) == ()
    with pytest.raises(CorpusError, match=r"holds no readable recipes: recipes.csv has changed since it was written"):
        mv.read(model, UNEXPLAINED)
    (folder / "recipes.json").write_text("[1]")
    with pytest.raises(SettingError, match="no recipes of the heads"):
        mv.read(model, UNEXPLAINED)


def test_those_that_come_with_the_app_stay_for_other_models(own: Recipes, folder: Path) -> None:
    toy = mv.load("toy")
    assert bundled_data.find_recipes("toy", toy.revision) is bundled_data.load_bundled_recipes("toy", toy.revision)
    shutil.copytree(asset_path("recipes") / "toy", folder / "toy")
    own_toy = bundled_data.find_recipes("toy", toy.revision)
    assert own_toy is not None
    assert own_toy is not bundled_data.load_bundled_recipes("toy", toy.revision)
    with pytest.raises(SettingError, match=r"recipes of toy in .* were measured on other weights"):
        bundled_data.require_recipes("toy", "elsewhere")


@pytest.mark.parametrize("how", ["option", "setting"])
def test_commands_take_them(
    how: str,
    name: str,
    own: Recipes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, file, corpus = own.save(tmp_path / "own"), tmp_path / "left.npz", tmp_path / "c.conllu"
    corpus.write_text(format_conllu(grammar.corpus(3, seed=8).sentences), "utf-8")
    model = ["--model", name]
    more = ["--recipes", str(folder)] if how == "option" else []
    if how == "setting":
        monkeypatch.setenv(PROFILES_VARIABLE, str(tmp_path))
    assert main(["attention", TEXT, *model, "--quantity", "unexplained", *more, "--out", str(file)]) == 0
    left = mv.quantities.unexplained(mv.load(name).encode(TEXT), own).weights
    np.testing.assert_allclose(mv.load_attention(file).weights, left, atol=1e-6)
    figure = ["figure", "heatmap", TEXT, *model, "--head", "L0H1", "--quantity", "unexplained", *more]
    assert main([*figure, "--out", str(tmp_path / "left.svg")]) == 0
    out = str(tmp_path / "effect.csv")
    assert main(["effect", str(corpus), *model, "--heads", "L0H0", "--method", "recipe", *more, "--out", out]) == 0
    monkeypatch.delenv(PROFILES_VARIABLE, raising=False)
    capsys.readouterr()
    assert main(["effect", str(corpus), *model, "--heads", "L0H0", "--method", "recipe"]) != 0
    assert "(--recipes DIR, or MHA_VIZ_PROFILES=DIR)" in capsys.readouterr().err
    assert main(["effect", str(corpus), *model, "--heads", "L0H0", "--recipes", str(folder)]) != 0
    assert "Recipes are given, and heads are switched off by zero" in capsys.readouterr().err


def test_pages_are_sent_the_sentences_of_recipes_and_the_interval_of_each_explained_share() -> None:
    sent, recipes = collect_recipes("minilm", "", (6, 12)), mv.recipes.load("minilm")
    assert sent is not None
    assert sent["on"] == recipes.where
    chosen, scored = "every 7th sentence of UD English EWT test", "every 6th sentence of UD English GUM dev"
    assert recipes.where == f"{chosen}, scored on {scored}"  # named as in roles
    bounds = recipes.tables["explained"][["other_low", "other_high"]].to_numpy()
    np.testing.assert_allclose([head["interval"] for head in sent["heads"]], bounds, atol=1e-4)
    of_one = replace(recipes, facts={"model": "a", "corpus": "b.conllu"})
    assert of_one.where == "b (its first sentences, as earlier versions read), scored on the odd-numbered sentences"
