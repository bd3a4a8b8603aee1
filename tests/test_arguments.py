"""Arguments of the wrong kind: every public function answers with an error of the package, in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.models.reading.encoder import Encoder

TEXT = "the dog saw the girl ."
Call = Callable[[Encoder, Path], object]
WRONG: dict[str, tuple[Call, str]] = {
    "replicate": (lambda toy, _: mv.roles.replicate("minilm", "small.conllu"), "is str, not a profile"),
    "report": (lambda toy, _: mv.roles.report("minilm"), "is str, not a profile"),
    "norm_weighted": (lambda toy, _: mv.quantities.norm_weighted("minilm", "hi"), "is str, not a loaded model"),
    "gradient_weighted": (lambda toy, _: mv.quantities.gradient_weighted("toy", "hi"), "is str, not a loaded model"),
    "a word": (lambda toy, _: mv.quantities.gradient_weighted(toy, "the dog [MASK]", word=3), "is int, not a word"),
    "rollout": (lambda toy, _: mv.quantities.rollout("x"), "is str, not a reading"),
    "no profiles": (lambda toy, _: mv.roles.compare_scores([]), "No profile was given"),
    "profiles": (lambda toy, _: mv.roles.compare_scores(["x"]), "is str, not a profile"),
    "a list of profiles": (lambda toy, _: mv.roles.count_in_runs(None), "is NoneType, not a list."),
    "corpora": (lambda toy, _: mv.roles.profile_all(3, 3), "Corpora and models are lists"),
    "establish": (lambda toy, _: mv.roles.establish("minilm", "toy"), "is str, not a profile"),
    "used_roles": (lambda toy, _: mv.roles.ablate("minilm", "grammar"), "is str, not a profile"),
    "over_image": (lambda toy, _: mv.overlay("x"), "is str, not a reading"),
    "a part of one stack": (lambda toy, _: toy.score_parts(TEXT, "L0H0", 2, 1, part="decoder"), "one stack of layers"),
    "words": (lambda toy, _: toy.encode_words(None), "is NoneType, not a list of words"),
    "some heads": (lambda toy, _: toy.encode(TEXT).only(3), "is '3': int, which is not a list"),
    "heads to publish": (lambda toy, folder: mv.publish(3, folder / "x.html"), "is '3': int, which is not a list"),
    "a title": (lambda toy, folder: mv.publish([(toy.encode(TEXT), "L0H1")], folder / "x.html", title=3), "not a text"),
    "a picture": (lambda toy, _: toy.encode(TEXT).heatmap("L0H1").save(3), "is int, not a path"),
    "a suffix": (lambda toy, _: toy.encode(TEXT).heatmap("L0H1").to_bytes(3), "is int, not the end of a file's name"),
    "a profile's place": (lambda toy, _: mv.load_profile("toy").save(3), "is int, not a path"),
    "the place of recipes": (lambda toy, _: mv.recipes.load("toy").save(3), "is int, not a path"),
    "a tap": (lambda toy, _: toy.through("a", tap=3), "is int, not a tap"),
    "without": (lambda toy, _: mv.ablate("toy", ["L1H1"], "the dog"), "is str, not a loaded model"),
    "heads": (lambda toy, _: mv.ablate(toy, 3, "the dog"), "is '3': int, which is not a list"),
    "a published page": (lambda toy, folder: mv.publish([(toy.encode(TEXT), "L0H1")], folder / "x.pdf"), ".html"),
    "a path": (lambda toy, _: toy.encode(TEXT).save(3), "is int, not a path"),
    "a folder of recipes": (lambda toy, _: mv.recipes.load(3), "is int, not a path"),
    "a folder": (lambda toy, _: mv.load_profile(3), "is int, not a path"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_kind_is_refused_in_words(name: str, toy: Encoder, tmp_path: Path) -> None:
    call, words = WRONG[name]
    with pytest.raises(mv.errors.MhaVizError) as caught:
        call(toy, tmp_path)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert not list(tmp_path.iterdir())


def test_one_head_need_not_be_in_a_list(toy: Encoder) -> None:
    alone: Any = "L1H1"
    assert mv.ablate(toy, alone, TEXT).key == mv.ablate(toy, ["L1H1"], TEXT).key
