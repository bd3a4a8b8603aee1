"""Quantities other than the weight: norm-weighted attention compared with loops, rollout with matrices computed by
hand."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch

import mha_viz as mv
from mha_viz.analysis.metrics import METRICS
from mha_viz.app.compare import publish
from mha_viz.app.url import comparison
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.app.widgets.download_panel import parse_view
from mha_viz.attention import Attention, Head
from mha_viz.attention.rollout import rollout
from mha_viz.attention.steps import parse_wordings
from mha_viz.errors import EmptyText, SettingError, ShapeError, UnknownHead
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import Curve, Text
from mha_viz.figures.drawing.theme import LIGHT, palette
from mha_viz.figures.files import load_attention
from mha_viz.figures.files.figure_numbers import encode_shown
from mha_viz.figures.files.formats import ORIGIN_COLUMNS
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.figure_code import write_head_code
from mha_viz.figures.layout.grid import grid
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.packet import build_packet
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import (
    View,
    build_block,
    colour_cells,
    compute_shown,
    describe_range,
    list_units,
    select_links,
)
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.intervening import ablation
from mha_viz.models.intervening.gradients import gradient_weighted
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.request import METHODS, Request
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import choose_default_scale
from tests import lanes
from tests.oracles import load_plain
from tests.packets import unpack, unpack_panels
from tests.page_scripts import ask_packet
from tests.page_session import PageSession
from tests.tiny_models import HEADS, LAYERS, RECORDED, TRACED

COMPARE = "pages/20_compare.py"
SENTENCE = "The animal didn't cross the street because it was too tired."
Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]


def test_one_function_reads_every_quantity() -> None:
    toy, text = mv.load("toy"), "the dog [MASK] the girl ."
    weights = toy.encode(text)
    by_others = {
        "weight": weights,
        "norm": norm_weighted(toy, text),
        "gradient": gradient_weighted(toy, text, word="sees"),
        "rollout": rollout(weights),
        "unexplained": mv.quantities.unexplained(weights),
    }
    assert by_others.keys() == QUANTITIES.keys()
    for quantity, expected in by_others.items():
        request = mv.Request("toy", text, quantity=quantity, word="sees" if quantity == "gradient" else "")
        assert mv.read(toy, request).key == expected.key


def test_what_recipes_leave_is_equal_only_if_the_recipes_are(tmp_path: Path) -> None:
    toy, text = mv.load("toy"), "the dog [MASK] the girl ."
    weights, shipped = toy.encode(text), mv.recipes.load("toy")
    table = shipped.tables["recipes"]
    steep = replace(shipped, tables={**shipped.tables, "recipes": table.assign(share=table["share"] ** 2)})
    left = [mv.quantities.unexplained(weights, recipes) for recipes in (None, shipped, steep)]
    assert left[0].made == ("typed", "unexplained")
    assert len({one.key for one in left}) == 3
    assert left[1] != left[2]
    assert not np.array_equal(left[1].weights, left[2].weights)
    for one, recipes in zip(left[1:], (mv.recipes.load("toy"), steep), strict=True):
        again = mv.read(toy, mv.Request("toy", text, quantity="unexplained"), recipes=recipes)
        assert again == one == load_attention(one.save(tmp_path / f"{one.key[:8]}.npz"))
        assert np.array_equal(again.weights, one.weights)
        assert parse_wordings(map(str.__str__, one.made)) == one.made
        assert parse_wordings(map(str.__str__, one.made))[-1].row == one.made[-1].row
        code = write_head_code(one, "heatmap", [Head(1, 1)], View(), Size(), "figure.svg")
        assert f"mv.load_attention('{one.key[:8]}.npz')" in code
        assert "unexplained by rules that need no annotation (recipes " in one.heatmap("L1H1").caption
    assert "mv.quantities.unexplained(mv.load('toy')" in write_head_code(
        left[0], "heatmap", [Head(1, 1)], View(), Size(), "figure.svg"
    )
    pair = mv.compare([(left[1], "L1H1"), (left[2], "L1H1")])
    panels = unpack_panels(pair.page.packet()) if pair.page else {}
    assert [one["key"] for one in panels["readings"]] == [one.key for one in left[1:]]
    assert not np.array_equal(*(one["L1H1"] for one in left[1:]))


@pytest.mark.parametrize("method", METHODS)
def test_one_function_reads_heads_that_are_off_by_every_method(method: str) -> None:
    toy, text, off = mv.load("toy"), "the dog sees the girl .", (Head(0, 1),)
    source = "the girl sees the dog ." if method == "text" else ""
    reading = mv.read(toy, mv.Request("toy", text, off=off, method=method, source=source))
    whole = toy.encode(text).weights
    assert reading.made[-1].row.method == method
    assert np.array_equal(reading.weights[0], whole[0])
    assert not np.array_equal(reading.weights[1], whole[1])


@pytest.mark.parametrize("family", lanes.some(TRACED, *(name for name in RECORDED if name in TRACED)))
def test_norms_of_every_layer_are_those_of_its_trace(family: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    norms = norm_weighted(encoder, SENTENCE)
    for layer in range(LAYERS):
        trace = encoder.trace(SENTENCE, layer=layer)
        for head in range(HEADS):
            assert np.abs(norms.weights[layer, head] - trace.norm_weighted(head)).max() <= 1e-5


def test_norms_of_heads_that_share_values_are_those_of_a_loop(tiny: Tiny, tiny_folder: Folder) -> None:
    model, tokenizer = load_plain(tiny_folder("llama"))
    values: list[torch.Tensor] = []
    hooks = [
        layer.self_attn.v_proj.register_forward_hook(lambda _, __, output: values.append(output[0]))
        for layer in model.layers
    ]
    with torch.no_grad():
        weights = model(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True).attentions
    for hook in hooks:
        hook.remove()
    norms = norm_weighted(tiny("llama"), SENTENCE)
    width = model.config.head_dim
    shared = HEADS // model.config.num_key_value_heads
    assert shared > 1
    for layer in range(LAYERS):
        w_o = model.layers[layer].self_attn.o_proj.weight.detach()  # [d_model, head · d_head]
        for head in range(HEADS):
            head_values = values[layer][:, head // shared * width :][:, :width]
            lengths = (head_values @ w_o[:, head * width :][:, :width].T).norm(dim=1)
            expected = weights[layer][0, head] * lengths
            assert np.abs(norms.weights[layer, head] - expected.numpy()).max() <= 1e-5


def test_norms_of_given_words_are_of_these_words(minilm: Encoder) -> None:
    words = ("A", "well-known", "man", ".")
    norms = norm_weighted(minilm, "", words=words)
    assert norms.queries == minilm.encode_words(words).queries
    assert norms.made == ("given words", "norm-weighted")
    assert norms.key != norm_weighted(minilm, " ".join(words)).key


def test_norms_of_a_pair_say_what_they_are(minilm: Encoder) -> None:
    norms = norm_weighted(minilm, "It is far.", "Is it?")
    assert (norms.quantity, norms.made) == ("norm", ("typed", "norm-weighted"))
    assert norms.queries == minilm.encode("It is far.", "Is it?").queries
    assert norms.key != minilm.encode("It is far.", "Is it?").key
    assert repr(norms).endswith("norm)")
    with pytest.raises(EmptyText):
        norm_weighted(minilm, " ")


# ---- On Explore ----------------------------------------------------------------------------------------


TEXT = "The cat sat on the mat."
COMPARE = "pages/20_compare.py"


@pytest.mark.app
def test_explore_draws_norms_per_head(minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": TEXT})
    page.view(shown="norm")
    assert (page.url["shown"], page.url["scale"]) == ("norm", "head")
    norms = norm_weighted(minilm, TEXT)
    assert page.shown().header["quantity"] == "norm"
    for number, matrix in page.shown().matrices.items():
        assert np.abs(matrix - norms.weights[divmod(number, 12)]).max() < 1e-3
    assert "Kobayashi et al. 2020" in page.said
    assert page.badges["roles"] == []
    page.view(shown=None)
    assert {"shown", "scale"}.isdisjoint(page.url)
    assert "quantity" not in page.shown().header


@pytest.mark.app
def test_explore_draws_rollout_one_map_per_layer(minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": TEXT, "head": "L3H7", "on": "7.8"})
    page.view(shown="rollout")
    assert page.url["shown"] == "rollout"
    assert {"head", "on"}.isdisjoint(page.url)
    header = page.shown().header
    assert (header["quantity"], header["layers"], header["heads"]) == ("rollout", 6, 1)
    expected = rollout(minilm.encode(TEXT)).weights[5, 0]
    assert np.abs(page.shown().matrices[5] - expected).max() < 1e-4
    page.view(shown="norm")
    assert (page.url["head"], page.url["on"]) == ("L3H7", "7.8")  # the heads that were open before
    page.view(shown="rollout")
    page.at.query_params["model"] = "toy"
    page.at.run()
    page.view(shown=None)
    assert {"head", "on"}.isdisjoint(page.url)  # another model has other heads


CONLLU = "\n".join(
    f"{number}\t{word}\t_\tNOUN\t_\t_\t{0 if number == 3 else 3}\t{'root' if number == 3 else 'dep'}\t_\t_"
    for number, word in enumerate(["A", "well-known", "man"], 1)
)


@pytest.mark.app
@pytest.mark.parametrize("url", [{"shown": "norm"}, {"shown": "rollout"}, {"off": "L0H1"}])
def test_a_pasted_sentence_keeps_its_words_and_obeys(url: dict[str, str], minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": CONLLU, **url})
    header = page.shown().header
    assert header["n"] == len(minilm.encode_words(["A", "well-known", "man"]).queries)
    page.view(pin="q1", **{name: value for name, value in url.items() if name == "shown"})
    assert page.url["pin"] == "q1"
    page.view(shown=None)
    assert "shown" not in page.url


def panels_of(page: PageSession) -> dict[str, Any]:
    return unpack_panels(page._drawn()["mha_compare"].bytes)


@pytest.mark.app
@pytest.mark.parametrize("shown", ["weight", "norm", "rollout"])
def test_heads_are_compared_with_others_switched_off(shown: str, minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": TEXT, "shown": shown})
    page.send("mha_explorer", "compare", {"model": "minilm", "head": "L3H0"})
    page = PageSession({**page.url, "off": "L0H1.L1H2", "how": "uniform"})
    request = page.shown().header.get("request", {})
    page.send("mha_explorer", "compare", {"model": "minilm", "head": "L3H0", **request})
    pins, _ = comparison.read(page.url["tray"])
    assert [(pin.request.off, pin.request.method) for pin in pins] == [
        ((), "zero"), ((Head(0, 1), Head(1, 2)), "uniform") if shown != "norm" else ((), "zero")
    ]  # fmt: skip
    compared = PageSession({"tray": page.url["tray"], "shown": shown}, COMPARE)
    shown_panels = panels_of(compared)
    without = ablation.encode_without(minilm, ["L0H1", "L1H2"], TEXT, method="uniform")
    expected = {"weight": [minilm.encode(TEXT), without], "rollout": [rollout(minilm.encode(TEXT)), rollout(without)]}
    keys = [attention.key for attention in expected.get(shown, [norm_weighted(minilm, TEXT)])]
    assert [reading["key"] for reading in shown_panels["readings"]] == keys


@pytest.mark.app
def test_heads_that_the_model_lacks_are_not_added_to_what_is_compared(no_hub: None) -> None:
    page = PageSession({"text": TEXT, "off": "L9H9"})
    assert "Ignored in this link: off=L9H9." in page.said
    assert "request" not in page.shown().header, "the whole model's reading is drawn"


@pytest.mark.app
def test_a_head_with_others_switched_off_is_opened_and_added_from_compare(no_hub: None) -> None:
    page = PageSession({"text": TEXT, "show": "off", "off": "L0H1", "how": "uniform", "head": "L3H1"}, COMPARE)
    shown_panels = panels_of(page)
    sent = [{"text": TEXT, "pair": "", "model": "minilm", "head": "L3H1", **reading.get("request", {})}
            for reading in shown_panels["readings"]]  # fmt: skip
    for one in sent:
        page.send("mha_compare", "edit", {"action": "pin", "index": 0, **one})
    pins, _ = comparison.read(page.url["tray"])
    assert [(pin.request.off, pin.request.method) for pin in pins] == [((), "zero"), ((Head(0, 1),), "uniform")]


@pytest.mark.app
@pytest.mark.parametrize(("show", "shown"), [("similar", None), ("layer", "norm")])
def test_a_head_is_opened_with_the_quantity_that_was_compared(show: str, shown: str | None, no_hub: None) -> None:
    page = PageSession({"text": TEXT, "show": show, "shown": "norm"}, COMPARE)
    with patch("mha_viz.app.widgets.navigation.open_page") as open_page:
        page.send("mha_compare", "edit", {"action": "open", "text": TEXT, "model": "minilm", "head": "L3H1"})
    assert open_page.call_args.args[0] == "explore"
    assert open_page.call_args.args[1].get("shown") == shown


@pytest.mark.app
def test_a_head_of_a_sentence_that_has_changed_is_not_added(no_hub: None) -> None:
    page = PageSession({"text": TEXT})
    with patch("streamlit.toast") as toast:
        page.send("mha_explorer", "compare", {"model": "minilm", "head": "L3H1", "of": "an earlier one"})
    assert "tray" not in page.url
    toast.assert_called_once_with("The sentence has changed. Press **+ Compare** again once it is drawn.")


@pytest.mark.app
def test_a_head_is_added_before_the_session_has_drawn_anything(no_hub: None) -> None:
    page = PageSession({"text": TEXT})
    del page.at.session_state["explorer_drawn"]
    page.send("mha_explorer", "compare", {"model": "minilm", "head": "L3H1"})
    assert comparison.read(page.url["tray"]) == ((ComparedHead(Request("minilm", TEXT), Head(3, 1)),), True)


@pytest.mark.app
def test_a_compared_head_that_cannot_be_read_can_be_removed(no_hub: None) -> None:
    pins = [
        ComparedHead(Request("minilm", TEXT), Head(3, 1)),
        ComparedHead(Request("minilm", TEXT, off=(Head(9, 9),)), Head(3, 1)),
    ]
    page = PageSession({"tray": comparison.write(pins) or ""}, COMPARE)
    assert "Head 2 of My heads, L3H1 (4-2), cannot be shown." in page.said
    assert len(panels_of(page)["panels"]) == 1
    page.at.button(key="remove_1").click().run()
    page.check()
    assert comparison.read(page.url["tray"]) == ((pins[0],), True)


@pytest.mark.app
@pytest.mark.parametrize("show", ["similar", "models", "off"])
def test_comparisons_of_weights_say_that_they_are(show: str, no_hub: None) -> None:
    words = "My heads, A whole layer and Swap a word can show norm-weighted."
    assert words in PageSession({"text": TEXT, "show": show, "shown": "norm"}, COMPARE).said
    if show == "similar" or lanes.everything:
        assert words not in PageSession({"text": TEXT, "show": show}, COMPARE).said


@pytest.mark.app
@pytest.mark.parametrize(("path", "view"), [(COMPARE, {"show": "similar"}), ("pages/40_inside_a_head.py", {})])
def test_other_pages_read_the_whole_model_s_weights(path: str, view: dict[str, str], no_hub: None) -> None:
    plain = PageSession({"text": TEXT, **view}, path).said
    for url in ({"shown": "rollout", "off": "L3H1"}, {"shown": "norm"}):
        lines = PageSession({"text": TEXT, **view, **url}, path).said.splitlines()
        assert [line for line in lines if "Weights are compared here." not in line] == plain.splitlines()


@pytest.mark.app
def test_a_quantity_that_is_not_known_is_named(no_hub: None) -> None:
    page = PageSession({"text": TEXT, "shown": "mood"})
    assert "Ignored in this link: shown=mood." in page.said
    assert "quantity" not in page.shown().header


@pytest.mark.app
def test_rollout_without_a_head_follows_what_is_left(minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": TEXT, "shown": "rollout", "off": "L0H1"})
    expected = rollout(ablation.encode_without(minilm, ["L0H1"], TEXT)).weights[5, 0]
    assert np.abs(page.shown().matrices[5] - expected).max() < 1e-4
    page = PageSession({"text": TEXT, "shown": "norm", "off": "L0H1"})
    assert "Norm-weighted attention is shown with all heads on." in page.said


# ---- Rollout -------------------------------------------------------------------------------------------


def reading(weights: Any, **more: Any) -> Attention:
    return Attention.from_tensors(np.asarray(weights, np.float32), ["a", "b"], **more)


def test_rollout_of_two_layers_worked_out_by_hand() -> None:
    # Heads of layer 0 have the mean [[.5, .5], [0, 1]], so Â_0 = [[.75, .25], [0, 1]]; Â_1 = [[1, 0], [.5, .5]].
    first = [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]
    second = [[[1, 0], [1, 0]], [[1, 0], [1, 0]]]
    followed = rollout(reading([first, second]))
    assert followed.weights.shape == (2, 1, 2, 2)
    assert followed["L0H0"] == pytest.approx(np.array([[0.75, 0.25], [0, 1]]))
    assert followed["L1H0"] == pytest.approx(np.array([[0.75, 0.25], [0.375, 0.625]]))
    assert (followed.quantity, followed.made[-1]) == ("rollout", "rollout")


def test_rollout_of_a_model_is_the_product_of_its_layers(minilm: Encoder) -> None:
    attention = minilm.encode(SENTENCE)
    n = len(attention.text)
    expected = np.eye(n)
    for layer in attention.weights.astype(float):
        expected = (layer.mean(0) / 2 + np.eye(n) / 2) @ expected
    followed = rollout(attention)
    assert np.abs(followed.weights[-1, 0] - expected).max() < 1e-6
    assert followed.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert followed.key != attention.key
    causal = rollout(reading([[[[1, 0], [0.5, 0.5]]]]))
    assert causal.weights[0, 0, 0, 1] == 0


def test_rollout_needs_whole_weights(minilm: Encoder) -> None:
    for other in (minilm.encode(SENTENCE).without_special(), norm_weighted(minilm, SENTENCE)):
        with pytest.raises(ShapeError, match="Rollout needs the unchanged attention weights"):
            rollout(other)
    with pytest.raises(ShapeError):
        rollout(reading([[[[0.5, 0.5], [1, 0]]]], keys=["x", "y"]))


def test_rollout_follows_the_tokens_of_the_model_and_is_of_a_layer(minilm: Encoder) -> None:
    with pytest.raises(ShapeError, match=r"this reading has words\. Follow first, then group"):
        mv.quantities.rollout(minilm.encode("An unfathomable dog.").by_words())
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    for figure in (followed.heatmap("L5H0"), followed.heatmap("L5"), followed.links(heads=["L5"])):
        assert "layer 5" in figure.caption
        assert "L5H0" not in figure.caption


def test_a_layer_of_rollout_has_a_name_and_its_maps_are_not_called_heads(minilm: Encoder) -> None:
    weights = minilm.encode(SENTENCE)
    followed = mv.quantities.rollout(weights)
    assert np.array_equal(followed["L5"], followed.weights[5, 0])
    assert np.array_equal(followed[" l3 "], followed["L3H0"])
    assert "layer 5" in mv.compare([(followed, "L5"), (followed, "L4")]).caption
    assert f"6 layers, {len(followed.tokens)} tokens, rollout" in repr(followed)
    assert "head" not in repr(followed)
    assert "6 layers × 12 heads" in repr(weights)
    with pytest.raises(UnknownHead, match=r"L6 does not exist: .* 6 layers whose heads are joined\. .*L0 and L5"):
        followed["L6"]
    with pytest.raises(UnknownHead, match="L3H1 does not exist"):
        followed["L3H1"]
    with pytest.raises(UnknownHead, match="“L5” is not the name of a head"):
        weights["L5"]


def test_only_some_layers_of_rollout_are_all_reached_and_saved(minilm: Encoder, tmp_path: Path) -> None:
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    some = followed.only(["L5", "L0"])
    assert np.array_equal(some.weights, followed.weights[[5, 0]])
    assert np.array_equal(some["L1"], followed["L0"])
    figures = [
        some.heatmap("L1"),
        some.links(heads=["L1"]),
        some.grid(),
        mv.compare([(some, "L0"), (some, "L1")]),
    ]
    for number, figure in enumerate(figures):
        assert figure.save(tmp_path / f"{number}.svg").stat().st_size
        assert figure.save(tmp_path / f"{number}.csv").stat().st_size
    mv.publish([(some, "L0"), (some, "L1")], tmp_path / "page.html")
    for suffix in (".npz", ".safetensors"):
        opened = mv.load_attention(some.save(tmp_path / f"some{suffix}"))
        assert (opened.made, opened.key) == (some.made, some.key)
    table = pd.read_csv(some.save(tmp_path / "some.csv"), keep_default_na=False)
    assert [*dict.fromkeys(table["layer"])] == [5, 0]
    assert table["made"][0] == "typed; rollout; only layer 5 (6), layer 0 (1)"
    assert json.loads(encode_shown(compute_shown(some, [Head(0, 0)], View()), ".json"))["heads"] == ["layer 5"]
    with pytest.raises(UnknownHead, match=r"Give a list such as \['L0'\]"):
        followed.only([])


def test_the_heads_that_were_kept_are_called_as_in_the_model(minilm: Encoder) -> None:
    whole = minilm.encode(SENTENCE)
    some = whole.only(["L0H2", "L4H1", "L3H1"]).by_words().only(["L0H2", "L0H0"])
    assert np.array_equal(some["L0H0"], whole.by_words()["L3H1"])
    for figure in (
        some.heatmap("L0H0"),
        some.links("L0H0"),
        mv.compare([(some, "L0H0"), (whole.by_words(), "L0H0")]),
    ):
        assert "L3H1 (4-2)" in figure.caption
        assert figure.drawing.about["heads"].split()[0] == "L3H1"
    names = [mark.text for mark in grid(some).marks if isinstance(mark, Text)]
    assert {"L3H1", "L0H2"} <= {*names}
    assert not {"0", "1", "L0"} & {*names}, "numbers of their places"
    assert "columns: heads" in names
    table = pd.read_csv(io.BytesIO(files.to_bytes(some, ".csv")), keep_default_na=False)
    assert [*table[["layer", "head"]].drop_duplicates().itertuples(index=False, name=None)] == [(3, 1), (0, 2)]
    assert json.loads(encode_shown(compute_shown(some, [Head(0, 1)], View()), ".json"))["heads"] == ["L0H2"]
    assert unpack(build_packet(some, [Head(0, 0)])).header["in_model"] == [[3, 1], [0, 2]]
    with pytest.raises(ShapeError, match="of all heads"):
        mv.quantities.rollout(whole.only(["L0H2"]))


def test_the_layers_that_were_kept_are_called_as_in_the_model(minilm: Encoder) -> None:
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    for some in (followed.only(["L5"]), followed.only(["L1", "L5"]).by_words().only(["L1"])):
        caption = some.heatmap("L0").caption
        assert "Attention matrix: layer 5 (6) of " in caption
        assert "rollout" in caption
        assert "only layer 5 (6)" in caption
        assert "layer 0" not in caption
        assert "H0" not in caption
        assert some.heatmap("L0").drawing.about["heads"] == "L5"
        assert unpack(build_packet(some, [Head(0, 0)])).header["in_model"] == [[5, 0]]
    assert "in_model" not in unpack(build_packet(followed, [Head(0, 0)])).header
    assert {"L5", "L1"} <= {mark.text for mark in grid(followed.only(["L5", "L1"])).marks if isinstance(mark, Text)}
    assert parse_wordings(["only layer 5 (6), layer 0 (1)"]) == followed.only(["L5", "L0"]).made[-1:]
    assert parse_wordings(["only layer 5 (6), layer 0 (1)"])[0].row == followed.only(["L5", "L0"]).made[-1].row
    assert parse_wordings(["only layer 5 (7)"])[0].row.name == "only layer 5 (7)"  # of a reading made by hand


def test_no_figure_of_rollout_speaks_of_heads(minilm: Encoder) -> None:
    weights = minilm.encode(SENTENCE)
    followed, one, two = mv.quantities.rollout(weights), "L4", "L5"
    pair = [(followed, one), (followed, two)]
    some = followed.grid(layers=[4, 5], scale="head")
    figures = [
        followed.heatmap(one, scale="head"),
        followed.links(one, scale="head"),
        followed.grid(scale="head"),
        some,
    ]
    figures += [mv.compare(pair), mv.compare(pair, kind="links"), mv.difference(*pair)]
    for figure in figures:
        svg = figure.to_bytes(".svg").decode()
        drawn = " ".join(re.findall("<(?:title|desc|text)[^>]*>([^<]*)<", svg))
        for words in (figure.caption, drawn):
            assert not re.search(r"\bheads?\b|H0", words.replace("heads of each", "")), words
    assert figures[-1].caption.startswith("Difference of two attention maps: layer 4 (5), layer 5 (6) of ")
    assert figures[4].caption.startswith("Attention maps side by side: layer 4 (5), layer 5 (6) of ")
    assert some.caption.startswith("Attention of chosen layers: layer 4 (5), layer 5 (6), of all 6 layers of ")
    assert "each layer’s largest weight" in some.caption
    assert mv.compare([(weights, "L3H1"), (weights, "L3H2")]).caption.startswith("Attention heads side by side: L3H1")


def test_names_of_rollout_in_tables_and_remedies_are_those_that_it_takes(minilm: Encoder) -> None:
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    table = followed.measures()
    assert [*table.index] == [f"L{layer}" for layer in range(6)]
    assert all(followed[name].shape == followed["L0"].shape for name in table.index)
    with pytest.raises(SettingError, match=r"Give 'L5', or layer=5, head=0, or heads=\['L5'\]"):
        followed.heatmap()
    with pytest.raises(SettingError, match="L4, L5 are in different layers"):
        followed.links(heads=["L4", "L5"])
    assert followed.heatmap(layer=5, head=0).caption == followed.heatmap(heads=["L5"]).caption


def test_a_key_and_a_published_page_call_rollout_by_its_layers(minilm: Encoder) -> None:
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    texts = {mark.text for mark in links(followed, [Head(4, 0), Head(5, 0)]).marks if isinstance(mark, Text)}
    assert {"layer 4 (5)", "layer 5 (6)"} <= texts
    assert not any("L5H0" in text for text in texts)
    panel = Panel(followed, Head(5, 0), "mine")
    assert publish._name_panel(panel) == "layer 5 (6), mine"


def test_what_is_hidden_of_a_rollout_is_not_called_a_head_s_attention(minilm: Encoder) -> None:
    followed = mv.quantities.rollout(minilm.encode(SENTENCE))
    assert "of this layer’s rollout goes to hidden tokens." in followed.heatmap(layer=5, head=0, special="hide").caption
    assert (
        "of this head’s attention goes to hidden tokens."
        in minilm.encode(SENTENCE).heatmap(layer=5, head=0, special="hide").caption
    )


@pytest.mark.parametrize("panel", ["norm", "gradient"])
def test_one_scale_of_colours_is_for_one_quantity(minilm: Encoder, panel: str) -> None:
    other = norm_weighted(minilm, SENTENCE)
    if panel == "gradient":
        other = replace(other, quantity="gradient")
    with pytest.raises(SettingError, match="one colour scale cannot serve several units"):
        mv.compare([(minilm.encode(SENTENCE), "L3H1"), (other, "L3H1")])
    assert mv.compare([(other, "L3H1"), (other, "L3H2")]).caption


def test_a_table_of_another_quantity_says_which_of_which_model_and_text(minilm: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "norms.csv"
    norm_weighted(minilm, "It rains.").save(path)
    first, second = pd.read_csv(path, keep_default_na=False).to_dict("records")[:2]
    assert [*first] == [
        "layer",
        "head",
        "query_index",
        "query_token",
        "key_index",
        "key_token",
        "norm",
        *ORIGIN_COLUMNS,
    ]
    of_model = "sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…)"
    assert [first[name] for name in ORIGIN_COLUMNS] == [of_model, "norm", "It rains.", "typed; norm-weighted"]
    assert [second[name] for name in ORIGIN_COLUMNS] == [""] * 4
    followed = rollout(minilm.encode("It rains."))
    followed.save(path)
    assert set(pd.read_csv(path, keep_default_na=False)["head"]) == {""}  # one map per layer
    assert json.loads(encode_shown(compute_shown(followed, [Head(2, 0)], View()), ".json"))["heads"] == ["layer 2"]


# ---- Gradients on pages --------------------------------------------------------------------------------


MASKED = "the dog [MASK] the girl ."


@pytest.mark.app
def test_explore_draws_gradients_of_an_answer(no_hub: None) -> None:
    page = PageSession({"text": MASKED, "model": "toy"})
    page.view(shown="gradient")
    assert (page.url["shown"], page.url["scale"]) == ("gradient", "head")
    toy = load("toy")
    reading = gradient_weighted(toy, MASKED)
    assert page.shown().header["signed"]
    for number, matrix in page.shown().matrices.items():
        assert np.abs(matrix - reading.weights[divmod(number, 4)]).max() < 1e-4 * np.abs(reading.weights).max()
    question = make_question(toy, MASKED)
    assert f"log p of “{question.word}” at token 3" in page.said
    page.at.text_input(key="word_3").set_value("sees").run()
    page.check()
    assert page.url["word"] == "sees"
    assert "log p of “sees” at token 3" in page.said


@pytest.mark.app
@pytest.mark.parametrize("path", [None, COMPARE])
def test_weights_in_place_of_gradients_are_called_weights(path: str | None, minilm: Encoder, no_hub: None) -> None:
    url = {"text": TEXT, "shown": "gradient", "off": "L0H1", "show": "layer"}
    page = PageSession(url, path)
    assert "The drawing below shows attention weights." in page.said
    if path is None:
        assert page.shown().header["key"] == ablation.encode_without(minilm, ["L0H1"], TEXT).key, "the head stays off"


@pytest.mark.app
def test_compare_says_which_heads_are_off_in_all_its_panels(no_hub: None) -> None:
    pins = [
        ComparedHead(Request("minilm", TEXT, off=(Head(0, 1),), method="uniform"), Head(3, head)) for head in (1, 2)
    ]
    page = PageSession({"tray": comparison.write(pins) or ""}, COMPARE)
    assert "minilm, without L0H1: uniform" in "".join(element.proto.body for element in page.at.get("html"))


@pytest.mark.app
def test_a_gradient_that_cannot_be_asked_for_is_said_once(no_hub: None) -> None:
    page = PageSession({"text": TEXT, "shown": "gradient"})
    assert page.said.count("cannot predict words") == 1
    assert "quantity" not in page.shown().header  # the weights stay
    page.at.text_input(key="second_text_").set_value("A dog lay there.").run()
    page.check()
    assert page.url["second"] == "A dog lay there."
    assert page.shown().header["quantity"] == "gradient"
    assert "the cosine with “A dog lay there.”" in page.said


@pytest.mark.app
def test_compare_draws_other_quantities(minilm: Encoder, no_hub: None) -> None:
    page = PageSession({"text": TEXT, "show": "layer", "head": "L3H1", "shown": "norm", "scale": "head"}, COMPARE)
    assert page.at.selectbox[0].value == "norm"
    assert "Kobayashi et al. 2020" in page.said
    page.at.selectbox[0].set_value("weight").run()
    page.check()
    assert {"shown", "scale"}.isdisjoint(page.url)


@pytest.mark.app
def test_compare_sets_a_head_beside_itself_without_others(no_hub: None) -> None:
    page = PageSession({"text": TEXT, "show": "off", "head": "L5H3", "off": "L2H4"}, COMPARE)
    assert "Second panel: the same head with L2H4 (3-5) switched off (replaced by zeros)." in page.said
    first = PageSession({"text": TEXT, "show": "off", "head": "L0H3"}, COMPARE)
    assert "No head is switched off" in first.said, "nothing comes before the first layer"


# ---- Drawings of signed numbers ------------------------------------------------------------------------


def signed_reading() -> Attention:
    weights = np.array([[[[0.5, -1.0], [0.0, 0.25]]]], np.float32)
    text = reading([[[[1, 0], [0, 1]]]]).text
    return Attention("toy", "", text, weights, quantity="gradient")


def test_numbers_with_a_sign_diverge_from_the_paper() -> None:
    part = build_block(signed_reading(), Head(0, 0), View(scale="head"), list_units(signed_reading(), View()))
    assert part.signed
    assert part.top == 1
    pixels = colour_cells(part, "head", LIGHT)
    stops = palette(LIGHT.signed)
    assert (pixels[0, 1] == stops[1]).all()  # the largest, below 0
    assert (pixels[1, 0] == stops[128]).all()
    assert (pixels[0, 0] == stops[128 + 64]).all()
    assert describe_range("head", [part]) == "0 to ±1.00"


def test_links_of_numbers_with_a_sign_have_two_colours_and_rank_by_size() -> None:
    drawn = signed_reading().links("L0H0", scale="head").drawing
    colours = {mark.colour for mark in drawn.marks if isinstance(mark, Curve)}
    assert colours == {LIGHT.signed[1], LIGHT.signed[-2]}
    assert select_links(signed_reading()["L0H0"], "top1").tolist() == [[False, True], [False, True]]
    assert drawn.alt.endswith("−1.00.")


@pytest.mark.parametrize(("quantity", "scale"), [("weight", "fixed"), ("norm", "head"), ("gradient", "head")])
def test_numbers_that_are_no_shares_have_a_scale_per_head_unless_the_view_states_one(quantity: str, scale: str) -> None:
    reading = replace(signed_reading(), weights=np.full((1, 1, 2, 2), 0.5, np.float32), quantity=quantity)
    raw = build_packet(reading, [Head(0, 0)])
    queries = ("", "scale=fixed", "scale=row")
    asked = [{"packet": raw, "ask": ask, "query": query} for ask in ("view", "address") for query in queries]
    views, addresses = (answers := ask_packet(*asked))[:3], answers[3:]
    assert [view["scale"] for view in views] == [scale, "fixed", "row"]
    assert [one["scale"] for one in addresses] == [None, None if scale == "fixed" else "fixed", "row"]
    figures = [reading.heatmap("L0H0"), reading.links("L0H0"), reading.grid(), mv.compare([(reading, "L0H0")])]
    assert {figure.drawing.about["scale"] for figure in figures} == {scale}
    assert {figure.page.start["scale"] for figure in figures if figure.page} == {scale}
    assert reading.heatmap("L0H0", scale="fixed").drawing.about["scale"] == "fixed"
    assert choose_default_scale(quantity) == parse_view({}).of([reading]).scale == scale


def test_measures_of_numbers_that_are_no_shares_are_plain_numbers_without_entropy() -> None:
    metrics = {one["name"]: one for one in unpack(build_packet(signed_reading(), [Head(0, 0)])).header["metrics"]}
    assert {one["unit"] for one in metrics.values()} == {"number"}
    assert set(metrics) == {*METRICS} - {"entropy"}
    assert metrics["following"]["values"] == [-1.0]
    tiny = replace(signed_reading(), weights=signed_reading().weights * np.float32(1.23456e-7))
    assert unpack(build_packet(tiny, [Head(0, 0)])).header["metrics"][1]["values"] == [-1.2346e-07]


def test_a_packet_keeps_signs() -> None:
    shown = unpack(build_packet(signed_reading(), [Head(0, 0)]))
    assert np.abs(shown.matrices[0] - signed_reading()["L0H0"]).max() < 1e-4


def test_a_reading_of_gradients_is_saved_and_made_again(tmp_path: Path) -> None:
    toy = load("toy")
    reading = gradient_weighted(toy, MASKED, word="sees")
    assert load_attention(reading.save(tmp_path / "gradients.npz")).key == reading.key
    code = write_head_code(reading, "heatmap", [Head(1, 1)], View(scale="head"), Size(), "figure.svg")
    assert "mv.quantities.gradient_weighted(mv.load('toy'), 'the dog [MASK] the girl .', word='sees', place=3)" in code
    by_words = reading.by_words().without_special()
    assert by_words.quantity == "gradient"
    assert (by_words.hidden >= 0).all()
    assert (by_words.hidden <= 1).all()
    with pytest.raises(ShapeError, match="not numbers"):
        Attention("toy", "", reading.queries, np.full_like(reading.weights, np.nan), quantity="gradient")
