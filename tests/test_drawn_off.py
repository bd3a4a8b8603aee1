"""Captions of figures in which a head is drawn that is switched off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mha_viz as mv
from mha_viz import figure
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import Row, Step
from mha_viz.models.encoder import Encoder

TEXT = "The animal didn't cross the street because it was too tired."
ONE = "L3H1 is off: its pattern is computed, its output is not used."
TWO = "L2H4 and L3H1 are off: their patterns are computed, their outputs are not used."


@pytest.fixture(scope="module")
def without(minilm: Encoder) -> Attention:
    return mv.without(minilm, ["L3H1", "L2H4"], TEXT)


def test_a_drawn_head_that_is_off_is_said_to_be_computed_and_not_used(without: Attention) -> None:
    for drawn in (figure.heatmap(without, "L3H1"), figure.links(without, heads=["L3H1", "L3H2"])):
        assert f" {ONE} " in drawn.drawing.caption
    assert f" {TWO} " in figure.grid(without).drawing.caption
    assert " is off" not in figure.heatmap(without, "L5H1").drawing.caption
    assert f" {ONE} " in figure.heatmap(without.by_words().only(["L3H1"]), "L0H0").drawing.caption, (
        "its name in the model"
    )


def test_of_panels_it_is_said_where_the_same_head_is_off(minilm: Encoder, without: Attention) -> None:
    whole = minilm.encode(TEXT)
    both = figure.compare([(whole, "L3H1"), (without, "L3H1")]).drawing.caption
    assert " Where L3H1 is off, its pattern is computed, its output is not used. " in both
    assert f" {TWO} " in figure.compare([(without, "L2H4"), (without, "L3H1")]).drawing.caption
    assert " Where L3H1 is off, " in figure.difference((without, "L3H1"), (whole, "L3H1")).drawing.caption
    assert " off" not in figure.compare([(whole, "L3H1"), (without, "L5H1")]).drawing.caption


def test_maps_of_layers_are_no_heads_that_are_off(minilm: Encoder) -> None:
    assert " is off" not in figure.heatmap(mv.rollout(minilm.encode(TEXT)), "L5H0").drawing.caption


def test_over_an_image_it_is_said_too() -> None:
    weights = np.full((2, 2, 7, 7), 1 / 7, np.float32)
    read = Attention.from_tensors(weights, ["[CLS]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"], model="vit")
    off = replace(read, made=(*read.made, Step(Row("without", heads=(Head(1, 0),), method="zero"))))
    said = "L1H0 is off: its pattern is computed, its output is not used."
    assert said in mv.over_image(off, columns=3, layers=[1]).caption
    assert said not in mv.over_image(off, columns=3, layers=[0]).caption
