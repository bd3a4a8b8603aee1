"""Figures in which a head is drawn that is switched off: their captions, and the pictures themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mha_viz as mv
from mha_viz import figures
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import Step, StepData
from mha_viz.figures.drawing.marks import Drawing, Text
from mha_viz.models.reading.encoder import Encoder

TEXT = "The animal didn't cross the street because it was too tired."
ONE = "L3H1 is off: its pattern is computed, its output is not used."
TWO = "L2H4 and L3H1 are off: their patterns are computed, their outputs are not used."


@pytest.fixture(scope="module")
def without(minilm: Encoder) -> Attention:
    return mv.ablate(minilm, ["L3H1", "L2H4"], TEXT)


def test_a_drawn_head_that_is_off_is_said_to_be_computed_and_not_used(without: Attention) -> None:
    for drawn in (figures.heatmap(without, "L3H1"), figures.links(without, heads=["L3H1", "L3H2"])):
        assert f" {ONE} " in drawn.drawing.caption
    assert f" {TWO} " in figures.grid(without).drawing.caption
    assert " is off" not in figures.heatmap(without, "L5H1").drawing.caption
    assert f" {ONE} " in figures.heatmap(without.by_words().only(["L3H1"]), "L0H0").drawing.caption, (
        "its name in the model"
    )


def below(drawing: Drawing) -> list[str]:
    """The texts of a picture that speak of its heads as off, without what is above its cells."""
    return [mark.text for mark in drawing.marks if isinstance(mark, Text) and " not used" in mark.text]


DRAWN: dict[str, Callable[[Attention, str, str], figures.Figure]] = {
    "heatmap": lambda off, head, _: figures.heatmap(off, head, max_height_mm=100),
    "links": lambda off, head, other: figures.links(off, heads=[head, other]),
    "grid": lambda off, head, other: figures.grid(off, layers=[3], heads=[int(head[3:]), int(other[3:])]),
    "compare": lambda off, head, other: figures.compare([(off, head), (off, other)]),
    "compare links": lambda off, head, other: figures.compare([(off, head), (off, other)], kind="links"),
    "difference": lambda off, head, other: figures.difference((off, head), (off, other)),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_the_picture_itself_says_so_for_who_sees_it_without_its_caption(without: Attention, kind: str) -> None:
    drawn = DRAWN[kind](without, "L3H1", "L3H2")
    assert below(drawn.drawing) == ["L3H1 is off: its output is not used"]
    last = max((mark for mark in drawn.drawing.marks if isinstance(mark, Text)), key=lambda mark: mark.y)
    assert last.text == below(drawn.drawing)[0], "below everything else"
    assert last.y + last.size / 2 <= drawn.drawing.height
    assert not drawn.warnings, "there is room for it"
    assert not below(DRAWN[kind](without, "L3H2", "L3H3").drawing)


def test_a_picture_names_up_to_twelve_heads_that_are_off(minilm: Encoder) -> None:
    off = mv.ablate(minilm, ["L3H1", "L2H4"], TEXT)
    assert below(figures.grid(off).drawing) == ["L2H4 and L3H1 are off: their outputs are not used"]
    many = mv.ablate(minilm, [f"L{layer}H{head}" for layer in (1, 2) for head in range(7)], TEXT)
    assert below(figures.grid(many, width_mm=85).drawing) == ["14 heads are off: their outputs are not used"]
    both = figures.compare([(minilm.encode(TEXT), "L3H1"), (off, "L3H1")]).drawing
    assert below(both) == ["Where L3H1 is off, its output is not used"]


def test_of_panels_it_is_said_where_the_same_head_is_off(minilm: Encoder, without: Attention) -> None:
    whole = minilm.encode(TEXT)
    both = figures.compare([(whole, "L3H1"), (without, "L3H1")]).drawing.caption
    assert " Where L3H1 is off, its pattern is computed, its output is not used. " in both
    assert f" {TWO} " in figures.compare([(without, "L2H4"), (without, "L3H1")]).drawing.caption
    assert " Where L3H1 is off, " in figures.difference((without, "L3H1"), (whole, "L3H1")).drawing.caption
    assert " off" not in figures.compare([(whole, "L3H1"), (without, "L5H1")]).drawing.caption


def test_maps_of_layers_are_no_heads_that_are_off(minilm: Encoder) -> None:
    assert " is off" not in figures.heatmap(mv.quantities.rollout(minilm.encode(TEXT)), "L5H0").drawing.caption


def test_over_an_image_it_is_said_too() -> None:
    weights = np.full((2, 2, 7, 7), 1 / 7, np.float32)
    read = Attention.from_tensors(weights, ["[CLS]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"], model="vit")
    off = replace(read, made=(*read.made, Step(StepData("without", heads=(Head(1, 0),), method="zero"))))
    said = "L1H0 is off: its pattern is computed, its output is not used."
    assert below(mv.overlay(off, columns=3, layers=[1]).drawing) == ["L1H0 is off: its output is not used"]
    assert not below(mv.overlay(off, columns=3, layers=[0]).drawing)
    assert said in mv.overlay(off, columns=3, layers=[1]).caption
    assert said not in mv.overlay(off, columns=3, layers=[0]).caption
