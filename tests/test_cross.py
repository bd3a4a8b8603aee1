"""Attention of one text to another: a small T5 with random weights, compared with transformers' own numbers."""

from __future__ import annotations

import csv
import io
import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load as load_tensors
from transformers import T5Config, T5Model

import mha_viz as mv
from mha_viz.analysis.distance import compute_divergences_from, divergence
from mha_viz.analysis.metrics import measure_all
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError, ShapeError
from mha_viz.figures import files
from mha_viz.figures.layout.difference import compute_difference
from mha_viz.figures.layout.packet import RankedLink, build_packet, get_link_weights
from mha_viz.figures.layout.panels import Panel, find_pins, pack_comparison
from mha_viz.figures.layout.view import View, build_block, compute_shown, list_units
from tests import lanes
from tests.packets import matrix, unpack, unpack_panels
from tests.page_scripts import ask_packet, ask_panels

SOURCE = ["▁The", "▁ani", "mal", "▁was", "▁tired", ".", "</s>"]  # 7 keys
TARGET = ["<pad>", "▁Das", "▁Ti", "er", "▁war"]  # 5 queries
LAYERS, HEADS = 3, 4  # of the decoder; the encoder has 2 layers
STEP = 2e-5


@pytest.fixture(scope="module")
def outputs() -> Any:
    """The output of transformers for the two texts."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 64, "decoder_start_token_id": 0}
    config = T5Config(**sizes, num_layers=2, num_decoder_layers=LAYERS, num_heads=HEADS)
    model = T5Model._from_config(config, attn_implementation="eager").eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)  # heads that attend to some tokens, not evenly to all
    ids, begun = (torch.randint(2, 60, (1, len(names))) for names in (SOURCE, TARGET))
    with torch.inference_mode():
        return model(input_ids=ids, decoder_input_ids=begun, output_attentions=True)


@pytest.fixture(scope="module")
def cross(outputs: Any) -> Attention:
    return Attention.from_tensors(outputs.cross_attentions, TARGET, SOURCE, model="tiny-t5")


# ---- The data type ---------------------------------------------------------------------------------------


def test_weights_are_those_of_transformers(cross: Attention, outputs: Any) -> None:
    assert repr(cross) == "Attention(tiny-t5, 3 layers × 4 heads, 5 queries × 7 keys)"
    for layer, theirs in enumerate(outputs.cross_attentions):
        np.testing.assert_array_equal(cross.weights[layer], theirs[0].numpy())
    assert cross.weights.max() > 0.5


def test_rows_are_of_one_text_and_columns_of_the_other(cross: Attention) -> None:
    assert [t.text for t in cross.queries.tokens] == ["<pad>", "Das", "Ti", "##er", "war"]
    assert [t.text for t in cross.keys.tokens] == ["The", "ani", "##mal", "was", "tired", ".", "</s>"]
    assert (cross.queries.text, cross.keys.text) == ("Das Tier war", "The animal was tired.")
    for ask in (lambda: cross.text, lambda: cross.tokens):
        with pytest.raises(ShapeError, match=r"of two texts, 5 queries and 7 keys. Use \.queries or \.keys"):
            ask()


def test_words_join_the_pieces_of_either_text(cross: Attention) -> None:
    words = cross.by_words()
    assert [t.text for t in words.queries.tokens] == ["<pad>", "Das", "Tier", "war"]
    assert [t.text for t in words.keys.tokens] == ["The", "animal", "was", "tired", ".", "</s>"]
    raw = cross["L1H2"]
    assert words["L1H2"][2, 1] == pytest.approx((raw[2:4, 1] + raw[2:4, 2]).mean(), abs=1e-6)
    assert words.weights.sum(axis=3) == pytest.approx(1, abs=1e-5)
    assert words.by_words() is words


def test_special_tokens_of_both_texts_are_hidden(cross: Attention) -> None:
    alone = cross.without_special()
    assert (len(alone.queries), len(alone.keys)) == (4, 6)
    raw = cross["L0H0"]
    np.testing.assert_allclose(alone["L0H0"], raw[1:, :6] / raw[1:, :6].sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(alone.hidden[0, 0], raw[1:, 6], atol=1e-6)


def test_it_survives_pickling_the_wire_and_a_choice_of_heads(cross: Attention) -> None:
    again = pickle.loads(pickle.dumps(cross))
    packed, arrays = CODEC.pack(cross)
    wired = CODEC.parse(json.loads(json.dumps(packed)), arrays)
    for other in (again, wired):
        assert other.key == cross.key
        assert other.is_cross
    some = cross.only(["L2H3", (0, 1)])
    np.testing.assert_array_equal(some[0, 1], cross[0, 1])
    assert some.keys is cross.keys
    assert not pickle.loads(pickle.dumps(Attention.from_tensors([np.eye(2)[None]], ["a", "b"]))).is_cross


def test_a_text_that_attends_to_an_equal_text_is_not_the_same_as_one_that_attends_to_itself() -> None:
    layer, names = np.full((1, 1, 2, 2), 0.5, np.float32), ["a", "b"]
    alone, two = Attention.from_tensors(layer, names), Attention.from_tensors(layer, names, names)
    assert (alone.is_cross, two.is_cross) == (False, True)
    assert alone.key != two.key


REFUSED: list[tuple[Any, list[str], Any, str]] = [
    ("cross", TARGET, None, "5 queries to 7 keys: cross-attention, a step with a cache, or windows.*as keys="),
    ("cross", TARGET, TARGET, "5 queries × 7 keys, and 5 tokens and 5 keys were given"),
    ("cross", SOURCE, TARGET, "5 queries × 7 keys, and 7 tokens and 5 keys were given"),
    ("cross", TARGET, "abc", "keys is 'abc', which is not a list"),
    ("both stacks", SOURCE, None, "2 stacks of layers were given, of depth 2, 3, where one was expected"),
    ("steps", SOURCE, None, "2 stacks of layers were given, of depth 3.*Attention.from_generated"),
    ("joined", SOURCE, None, "different shapes"),
]


@pytest.mark.parametrize(("what", "tokens", "keys", "message"), REFUSED, ids=[message[:30] for *_, message in REFUSED])
def test_what_is_not_one_stack_over_these_tokens_is_refused(
    outputs: Any, what: str, tokens: list[str], keys: Any, message: str
) -> None:
    given = {
        "cross": outputs.cross_attentions,
        "both stacks": [outputs.encoder_attentions, outputs.decoder_attentions],
        "steps": (outputs.cross_attentions, outputs.cross_attentions),  # as generate() returns
        "joined": outputs.encoder_attentions + outputs.decoder_attentions,
    }[what]
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(given, tokens, keys)


def test_each_stack_by_itself_is_taken(outputs: Any) -> None:
    encoder = Attention.from_tensors(outputs.encoder_attentions, SOURCE)
    decoder = Attention.from_tensors(outputs.decoder_attentions, TARGET)
    assert (encoder.layers, decoder.layers) == (2, LAYERS)
    assert not np.triu(decoder.weights, 1).any()


# ---- Measures --------------------------------------------------------------------------------------------


def test_what_needs_a_diagonal_is_not_defined(cross: Attention) -> None:
    measured = measure_all(cross)
    for name in ("previous", "following", "same"):
        assert np.isnan(measured[name]).all()
    np.testing.assert_allclose(measured["sep"], cross.weights[..., 6].mean(axis=2), atol=1e-6)
    np.testing.assert_allclose(measured["punctuation"], cross.weights[..., 5].mean(axis=2), atol=1e-6)
    assert (measured["cls"] == 0).all()  # the text that is attended to begins with a word
    exact = cross.weights.astype(np.float64)
    entropies = -(exact * np.log(exact)).sum(axis=3).mean(axis=2)
    np.testing.assert_allclose(measured["entropy"], entropies, atol=1e-5)


def test_heads_differ_by_as_many_rows_as_there_are_queries(cross: Attention) -> None:
    p, q = cross["L0H1"].astype(np.float64), cross["L2H0"].astype(np.float64)
    mean = (p + q) / 2
    expected = 0.5 * ((p * np.log(p / mean)).sum(axis=1) + (q * np.log(q / mean)).sum(axis=1)).mean()
    assert compute_divergences_from(cross, Head(0, 1))[2 * HEADS] == pytest.approx(expected, abs=1e-5)


# ---- Views, packets, drawings ------------------------------------------------------------------------------


def test_a_view_takes_rows_from_queries_and_columns_from_keys(cross: Attention) -> None:
    view = View(special="hide")
    rows, cols = list_units(cross, view)
    assert [unit.text for unit in rows] == ["Das", "Tier", "war"]
    assert [unit.text for unit in cols] == ["The", "animal", "was", "tired", "."]
    part = build_block(cross, Head(1, 2), view, list_units(cross, view))
    expected = cross.by_words().content()
    np.testing.assert_allclose(part.w, expected.weights[1, 2], atol=1e-6)
    np.testing.assert_allclose(part.hidden, expected.hidden[1, 2], atol=1e-6)
    numbers = compute_shown(cross, [Head(1, 2)], view)
    assert (numbers.row_index, numbers.col_index) == ((1, 2, 3), (0, 1, 2, 3, 4))


VIEWS = [View(unit=unit, special=special) for unit in ("words", "pieces") for special in ("keep", "hide", "rescale")]


def test_the_page_decodes_what_python_draws(cross: Attention) -> None:
    raw = build_packet(cross, [Head(0, 0)])
    asked = [(view, place, head) for view in VIEWS for place, head in enumerate(cross.every_head())]
    answers = ask_packet(*({"packet": raw, "ask": "block", "head": at, "view": vars(view)} for view, at, _ in asked))
    for (view, _, head), answer in zip(asked, answers, strict=True):
        part = build_block(cross, head, view, list_units(cross, view))
        assert np.abs(matrix(answer) - part.w).max() <= 8 * STEP, view
        assert np.abs(np.array(answer["hidden"]) - part.hidden).max() <= 8 * STEP, view


def test_the_page_ranks_heads_by_a_link_between_the_texts(cross: Attention) -> None:
    links = RankedLink(3, 2, True), RankedLink(3, 2, False)  # of words, and of pieces
    views = [{"unit": unit, "link": {"query": 3, "key": 2}} for unit in ("words", "pieces")]
    packets = [build_packet(cross, [Head(0, 0)], link) for link in links]
    asked = [{"packet": raw, "ask": "ranking", "view": view} for raw, view in zip(packets, views, strict=True)]
    weights = cross[1, 1][2:4, 1:3].sum(axis=1).mean(), cross[1, 1][3, 2]
    for link, weight, answer in zip(links, weights, ask_packet(*asked), strict=True):
        expected = get_link_weights(cross, link).ravel()
        assert expected[5] == pytest.approx(weight)
        assert max(abs(a["weight"] - expected[a["head"]]) for a in answer) <= 4 * STEP


def test_a_pin_counts_tokens_of_its_own_text(cross: Attention) -> None:
    raw = build_packet(cross, [Head(0, 0)])
    pins = {"k6": {"query": None, "key": 6}, "q6": None, "q4k6": {"query": 4, "key": 6}}
    questions = [{"packet": raw, "ask": "view", "query": {"pin": pin}} for pin in pins]
    assert [view["pin"] for view in ask_packet(*questions)] == list(pins.values())
    assert "The column of “tired” is outlined." in cross.heatmap(1, 2, pin="k4").caption
    with pytest.raises(SettingError, match=r"no token 6. Tokens count from 0 to 4"):
        cross.heatmap(1, 2, pin="q6")


def test_a_long_text_travels_as_thumbnails_of_both_axes() -> None:
    n, m = 60, 180
    weights = np.random.default_rng(0).dirichlet(np.full(m, 0.1), (12, 12, n)).astype(np.float32)
    long = Attention.from_tensors(weights, [f"▁a{i}" for i in range(n)], [f"▁b{i}" for i in range(m)])
    raw = build_packet(long, [Head(0, 0)])
    bins = unpack(raw).header["bins"]
    rows, columns = bins["starts"], bins["keys"]["starts"]
    assert (rows[-1] < n, columns[-1] < m, len(rows) < len(columns) or len(columns) < m) == (True, True, True)
    (answer,) = ask_packet({"packet": raw, "ask": "pooled", "head": 17, "view": {}})
    pooled = np.maximum.reduceat(np.maximum.reduceat(long[1, 5], rows, axis=0), columns, axis=1)
    assert np.abs(np.sqrt(matrix(answer)) - np.sqrt(pooled)).max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize(
    ("suffix", "kind"),
    lanes.pair_values([*files.drawing_suffixes(), ".html", *files.shown_suffixes()], ["grid", "heatmap", "links"]),
)
def test_it_is_drawn_and_its_numbers_are_written_in_every_format(cross: Attention, kind: str, suffix: str) -> None:
    figure = cross.grid() if kind == "grid" else getattr(cross, kind)(1, 2)
    assert len(figure.to_bytes(suffix)) > 100
    assert "tiny-t5 reading “Das Tier war” and attending to “The animal was tired.”" in figure.caption


def test_labels_of_a_drawing_are_those_of_either_text(cross: Attention) -> None:
    texts = cross.heatmap(1, 2).drawing.texts()
    assert [t for t in texts if t in ("Tier", "animal", "</s>", "<pad>")] == ["<pad>", "Tier", "animal", "</s>"]
    left = [mark for mark in cross.links(1, 2).drawing.marks if getattr(mark, "anchor", "") == "end"]
    assert {"Das", "Tier", "war"} <= {mark.text for mark in left}
    assert "The" not in {mark.text for mark in left}


def test_tables_and_trees_name_both_texts(cross: Attention) -> None:
    rows = list(csv.DictReader(io.StringIO(files.to_bytes(cross, ".csv").decode())))
    assert len(rows) == cross.weights.size
    assert (rows[12]["query_token"], rows[12]["key_token"]) == ("Das", ".")
    tree = json.loads(files.to_bytes(cross, ".json"))
    assert np.array(tree["weights"], np.float32).shape == cross.weights.shape
    assert [t["text"] for t in tree["keys"]["tokens"]] == [t.text for t in cross.keys.tokens]
    with np.load(io.BytesIO(files.to_bytes(cross, ".npz")), allow_pickle=False) as file:
        assert str(file["keys_text"]) == "The animal was tired."
        assert file["keys_word"].tolist() == [0, 1, 1, 2, 3, 4, -1]
        assert file["tokens"].tolist() == [t.text for t in cross.queries.tokens]
    drawn = json.loads(cross.heatmap(1, 2).to_bytes(".json"))
    assert (drawn["text"], drawn["keys_text"]) == ("Das Tier war", "The animal was tired.")
    assert set(load_tensors(files.to_bytes(cross, ".safetensors"))) == {"weights", "hidden"}


# ---- Comparisons ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other(outputs: Any) -> Attention:
    """The same two texts with a word replaced in each, and other weights."""
    weights = [layer.flip(1) for layer in outputs.cross_attentions]
    target, source = (["▁Hund" if n == "▁Das" else n for n in TARGET], ["▁is" if n == "▁was" else n for n in SOURCE])
    return Attention.from_tensors(weights, target, source, model="tiny-t5")


@pytest.mark.parametrize("suffix", [*files.drawing_suffixes(), ".html", ".csv", ".json"])
def test_heads_are_compared_and_subtracted_in_every_format(cross: Attention, suffix: str) -> None:
    for figure in (mv.compare([(cross, "L0H0"), (cross, "L2H1")]), mv.difference((cross, "L0H0"), (cross, "L2H1"))):
        assert len(figure.to_bytes(suffix)) > 100
        assert "reading “Das Tier war” and attending to “The animal was tired.”" in figure.caption


def test_a_difference_is_that_of_the_two_matrices(cross: Attention, other: Attention) -> None:
    pair = (Panel(cross, Head(0, 1)), Panel(other, Head(2, 0)))
    raw = pack_comparison(pair)
    answers = ask_panels(*({"packet": raw, "ask": "difference", "view": vars(view), "of": [0, 1]} for view in VIEWS))
    for view, answer in zip(VIEWS, answers, strict=True):
        subtracted = compute_difference(*pair, view)
        parts = [build_block(panel.attention, panel.head, view, list_units(panel.attention, view)) for panel in pair]
        np.testing.assert_allclose(subtracted.d, parts[1].w - parts[0].w, atol=1e-6)
        rows, cols = ([one.text for one in side] for side in subtracted.axes)
        assert "Das / Hund" in rows, view
        assert "was / is" in cols, view
        assert (answer["rows"], answer["cols"]) == (rows, cols), view
        assert np.abs(np.array(answer["d"]).reshape(subtracted.d.shape) - subtracted.d).max() <= 16 * STEP, view


def test_the_page_draws_the_panels_that_python_draws(cross: Attention, other: Attention) -> None:
    panels = [Panel(cross, Head(0, 1)), Panel(other, Head(2, 0)), Panel(cross, Head(1, 1))]
    (answer,) = ask_panels({"packet": pack_comparison(panels), "ask": "blocks", "view": {}})
    for panel, drawn in zip(panels, answer, strict=True):
        part = build_block(panel.attention, panel.head, View(), list_units(panel.attention, View()))
        assert (drawn["R"], drawn["C"]) == part.w.shape
        assert np.abs(np.array(drawn["w"]).reshape(part.w.shape) - part.w).max() <= 8 * STEP


def test_what_is_held_in_one_panel_is_held_in_the_others(cross: Attention, other: Attention) -> None:
    panels = [Panel(cross, Head(0, 1)), Panel(other, Head(2, 0))]
    pins = [(pin, at) for pin in ("q1", "k3", "q2k1", "k6", "q6") for at in (0, 1)]
    raw = pack_comparison(panels)
    answers = ask_panels(*({"packet": raw, "ask": "shown", "query": f"pin={pin}&at={at}"} for pin, at in pins))
    for (pin, at), answer in zip(pins, answers, strict=True):
        if pin == "q6":  # there are five queries
            assert answer["pinned"] == [[], []]
            continue
        held = find_pins(panels, View(pin=pin), at)
        for panel, spot, words in zip(panels, held, answer["pinned"], strict=True):
            axes = list_units(panel.attention, View())
            places = [] if spot is None else [(axes.rows, spot.row), (axes.cols, spot.col)]
            assert words == [side[place].text for side, place in places if place is not None], (pin, at)


def test_divergences_are_of_rows_over_the_same_columns(cross: Attention, other: Attention) -> None:
    header = unpack_panels(pack_comparison([Panel(cross, Head(0, 1)), Panel(other, Head(2, 0))]))
    assert header["divergence"][0][1] == pytest.approx(divergence(cross["L0H1"], other["L2H0"]), abs=1e-4)


def test_two_kinds_of_attention_stand_side_by_side_and_are_not_subtracted(cross: Attention, outputs: Any) -> None:
    alone = Attention.from_tensors(outputs.decoder_attentions, TARGET, model="tiny-t5")
    assert len(mv.compare([(cross, "L0H0"), (alone, "L0H0")]).to_bytes(".svg")) > 100
    with pytest.raises(SettingError, match="One leads from one text to another, the other from a text to itself"):
        mv.difference((cross, "L0H0"), (alone, "L0H0")).to_bytes(".svg")
    packed = pack_comparison([Panel(cross, Head(0, 0)), Panel(alone, Head(0, 0))])
    (answer,) = ask_panels({"packet": packed, "ask": "difference", "view": {}, "of": [0, 1]})
    assert answer == {"remedy": None}


def test_columns_travel_only_where_they_differ_from_rows(cross: Attention, outputs: Any) -> None:
    alone = Attention.from_tensors(outputs.decoder_attentions, TARGET)
    assert "columns" not in unpack_panels(pack_comparison([Panel(alone, Head(0, 0))]))
    assert "columns" in unpack_panels(pack_comparison([Panel(cross, Head(0, 0))]))
