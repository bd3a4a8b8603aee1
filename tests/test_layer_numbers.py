"""Layers keep the numbers that they have in their model, also where a reading has only some of them."""

from __future__ import annotations

import csv
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.analysis.distance import compute_divergences_from
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.unusual_heads import find_active
from mha_viz.app.widgets.head_search import find_by_two_words
from mha_viz.errors import MhaVizError, ShapeError, UnknownHead
from mha_viz.figures import files
from mha_viz.figures.layout.packet import build_packet
from mha_viz.figures.words.known_facts import describe_roles
from tests.packets import unpack

NAMES = ["the", "cat", "sat"]
FOURTH, EIGHTH = (np.random.default_rng(seed).dirichlet(np.ones(3), (1, 2, 3)).astype(np.float32) for seed in (4, 8))


@pytest.fixture
def reading() -> mv.Attention:
    return mv.Attention.from_tensors([FOURTH, EIGHTH], NAMES, layers=[3, 7])


def test_heads_are_named_by_the_numbers_of_their_layers(reading: mv.Attention) -> None:
    assert [str(head) for head in reading.every_head()] == ["L3H0", "L3H1", "L7H0", "L7H1"]
    assert (reading["L7H1"] == EIGHTH[0, 1]).all()
    assert (reading[3, 0] == FOURTH[0, 0]).all()
    assert [*reading.measures().index] == ["L3H0", "L3H1", "L7H0", "L7H1"]
    assert [*reading.measures()["layer"]] == [3, 3, 7, 7]
    assert reading.made == ("of layers 3, 7",)
    with pytest.raises(UnknownHead, match=r"L0H0 does not exist: .* has 2 layers \(3, 7\) × 2 heads"):
        _ = reading["L0H0"]
    for later in (reading.by_words(), reading.without_special()):
        assert later.layer_numbers == (3, 7)


def test_a_cache_and_layers_that_are_none_say_the_numbers_by_themselves(reading: mv.Attention) -> None:
    cache = {"blocks.3.attn.hook_pattern": FOURTH, "blocks.7.attn.hook_pattern": EIGHTH}
    assert mv.Attention.from_cache(cache, NAMES).key == reading.key
    some: list[Any] = [None, None, None, FOURTH, None, None, None, EIGHTH]
    assert mv.Attention.from_tensors(some, NAMES).key == reading.key
    assert mv.Attention.from_tensors(some, [NAMES])[0].key == reading.key


def test_json_holds_the_weights_of_layers_that_do_not_begin_at_0(reading: mv.Attention) -> None:
    fields = json.loads(files.to_bytes(reading, ".json"))
    assert np.allclose(fields["weights"], [FOURTH[0], EIGHTH[0]])


def test_all_layers_in_order_are_numbered_as_before() -> None:
    layers = np.stack([FOURTH, EIGHTH])
    plain = mv.Attention.from_tensors(layers, NAMES)
    assert mv.Attention.from_tensors(layers, NAMES, layers=[0, 1]).key == plain.key
    assert plain.made == ()


@pytest.mark.parametrize("layers", [[3], [3, 7, 9], [7, 3], [3, 3], [-1, 3], [3, 1000], ["3", "7"], 3, [True, 3]])
def test_numbers_that_do_not_fit_are_refused(layers: Any) -> None:
    with pytest.raises(ShapeError, match=r"layers=\[3, 7\]"):
        mv.Attention.from_tensors([FOURTH, EIGHTH], NAMES, layers=layers)


def test_norms_of_a_cache_keep_them_too() -> None:
    cache = {"blocks.3.attn.hook_pattern": FOURTH, "blocks.7.attn.hook_pattern": EIGHTH}
    cache |= {f"blocks.{layer}.attn.hook_v": np.ones((3, 2, 4), np.float32) for layer in (3, 7)}
    norms = mv.Attention.from_cache(cache, NAMES, w_o=np.ones((2, 2, 4, 4), np.float32))
    assert norms.layer_numbers == (3, 7)
    assert norms.quantity == "norm"


def test_pictures_captions_and_files_say_them(reading: mv.Attention, tmp_path: Path) -> None:
    assert "head L7H1 (8-2) of tensors" in reading.heatmap("L7H1").caption
    assert reading.heatmap(7, 1).caption == reading.heatmap("L7H1").caption
    assert "heads 0, 1 of layer 7," in reading.grid(layers=[7]).caption
    reading.grid().save(tmp_path / "grid.svg")
    assert all(f">L{layer}<" in (tmp_path / "grid.svg").read_text() for layer in (3, 7))
    reading.heatmap("L7H1").save(tmp_path / "head.json")
    assert json.loads((tmp_path / "head.json").read_text())["heads"][0] in ([7, 1], "L7H1")
    reading.save(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        assert {row["layer"] for row in csv.DictReader(file)} == {"3", "7"}
    reading.save(tmp_path / "all.npz")
    again = mv.load_attention(tmp_path / "all.npz")
    assert (again.key, again.layer_numbers) == (reading.key, (3, 7))


def test_the_browser_gets_them_with_the_place_of_each_head(reading: mv.Attention) -> None:
    header = unpack(build_packet(reading, [mv.Head(7, 1)])).header
    assert header["layer_numbers"] == [3, 7]
    assert header["full"] == [0, 1, 2, 3]
    assert header["start"]["head"] == "L3H0"
    drawn = (mv.Head(7, 0), mv.Head(7, 1))
    chosen = unpack(build_packet(reading, drawn[:1], is_standalone=True, grid_heads=drawn)).header
    assert (chosen["full"], chosen["drawn"]) == ([2, 3], {"layers": [1], "heads": [0, 1]})


def test_kept_heads_are_named_by_their_layers(reading: mv.Attention) -> None:
    kept = reading.only(["L7H1", "L3H0"])
    assert kept.made == ("of layers 3, 7", "only L7H1, L3H0")
    assert (kept["L0H0"] == EIGHTH[0, 1]).all()
    assert "head L3H0 (4-1) of tensors" in kept.heatmap("L0H1").caption


def test_search_and_roles_say_them(reading: mv.Attention) -> None:
    group = find_by_two_words(("cat", "sat"), reading)
    assert group is not None
    strongest = max(reading.every_head(), key=lambda head: reading[head][1, 2])
    assert group.answers[0].head == strongest
    assert compute_divergences_from(reading, mv.Head(7, 0))[2] == 0
    finding = partial(
        Finding,
        role="position",
        detail="previous",
        score=0.9,
        baseline=0.1,
        gain=0.8,
        n=100,
        low=math.nan,
        high=math.nan,
    )
    role, elsewhere = finding(mv.Head(7, 1)), finding(mv.Head(1, 0))
    assert [said["head"] for said in describe_roles([role, elsewhere], 2, (3, 7)).values()] == [3]
    shows = float(reading["L7H1"][[1, 2], [0, 1]].mean()) > 0.5
    assert find_active([role, elsewhere], reading) == (shows, False)


def test_rollout_needs_every_layer(reading: mv.Attention) -> None:
    with pytest.raises(MhaVizError, match="through all layers of a model"):
        mv.quantities.rollout(reading)
