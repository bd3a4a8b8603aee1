"""Arguments of the wrong kind: every public function answers with an error of the package, in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mha_viz as mv
from mha_viz.models.encoder import Encoder

TEXT = "the dog saw the girl ."
Call = Callable[[Encoder, Path], object]
WRONG: dict[str, tuple[Call, str]] = {
    "replicate": (lambda toy, _: mv.replicate("minilm", "small.conllu"), "is str, not a profile"),
    "report": (lambda toy, _: mv.report("minilm"), "is str, not a profile"),
    "norm_weighted": (lambda toy, _: mv.norm_weighted("minilm", "hi"), "is str, not a loaded model"),
    "gradient_weighted": (lambda toy, _: mv.gradient_weighted("toy", "hi"), "is str, not a loaded model"),
    "a word": (lambda toy, _: mv.gradient_weighted(toy, "the dog [MASK]", word=3), "is int, not a word"),
    "rollout": (lambda toy, _: mv.rollout("x"), "is str, not a reading"),
    "no profiles": (lambda toy, _: mv.side_by_side([]), "No profile was given"),
    "profiles": (lambda toy, _: mv.side_by_side(["x"]), "is str, not a profile"),
    "a tap": (lambda toy, _: toy.through("a", tap=3), "is int, not a tap"),
    "without": (lambda toy, _: mv.without("toy", ["L1H1"], "the dog"), "is str, not a loaded model"),
    "heads": (lambda toy, _: mv.without(toy, 3, "the dog"), "is int, not a list of heads"),
    "a published page": (lambda toy, folder: mv.publish([(toy.encode(TEXT), "L0H1")], folder / "x.pdf"), ".html"),
    "a path": (lambda toy, _: toy.encode(TEXT).save(3), "is int, not a path"),
    "a folder of recipes": (lambda toy, _: mv.open_recipes(3), "is int, not a path"),
    "a folder": (lambda toy, _: mv.open_profile(3), "is int, not a path"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_another_kind_is_refused_in_words(name: str, toy: Encoder, tmp_path: Path) -> None:
    call, words = WRONG[name]
    with pytest.raises(mv.MhaVizError) as caught:
        call(toy, tmp_path)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert not list(tmp_path.iterdir())


def test_one_head_need_not_be_in_a_list(toy: Encoder) -> None:
    alone: Any = "L1H1"
    assert mv.without(toy, alone, TEXT).key == mv.without(toy, ["L1H1"], TEXT).key
