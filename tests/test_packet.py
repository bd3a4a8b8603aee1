"""Packing a reading for the browser: the same numbers after unpacking, in few bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Attention, Head
from mha_viz.errors import UnknownHead
from mha_viz.figures.drawing.theme import THEMES
from mha_viz.figures.layout.packet import (
    THUMB_BYTES,
    OpenHead,
    RankedLink,
    build_packet,
    choose_full_heads,
    compute_thumbnails,
    divide_tokens,
    get_link_weights,
    is_coarse,
    quantise,
)
from mha_viz.figures.layout.view import View, build_block, list_units
from mha_viz.text import Token, TokenizedText, clean
from tests import hostile, lanes
from tests.packets import matrix, unpack
from tests.page_scripts import ask_packet
from tests.readings import make_long_reading, reading

STEP = 8e-6  # the largest error of one weight after packing
ONE_MEGABYTE = 1_000_000
SHAPES = [(6, 12), (12, 12), (24, 16)]


def number(attention: Attention, head: Head) -> int:
    return head.layer * attention.heads + head.head


pieces = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)
readings = st.builds(
    reading, st.integers(1, 2), st.integers(1, 3), pieces, st.just(()) | pieces, st.integers(0, 2**32 - 1)
)


# ---- Packed and unpacked in Python -----------------------------------------------------------------------


@given(readings)
def test_every_weight_comes_back(attention: Attention) -> None:
    header, matrices, _ = unpack(build_packet(attention, [Head(0, 0)]))
    assert header["full"] == list(range(attention.layers * attention.heads))
    for head, cells in matrices.items():
        sent = attention.weights[divmod(head, attention.heads)]
        assert np.abs(cells - sent).max() <= STEP


def test_each_part_of_a_row_has_its_own_scale() -> None:
    cells = np.array([[[0.99, 0.004, 0.006], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]], np.float32)
    scales, levels = quantise(cells, [True, False, False])
    per_row = np.frombuffer(scales, "<f4").reshape(3, 2)
    assert per_row == pytest.approx(np.array([[0.006, 0.99], [0.5, 0.0], [0.0, 1.0]]) / 65535)
    assert np.frombuffer(levels, "<u2").tolist() == [65535, 43690, 65535, 0, 65535, 65535, 65535, 0, 0]


def test_little_that_is_left_is_rescaled_rightly_in_the_browser() -> None:
    first = load_first_reading()
    worst = 0.0
    for unit in ("words", "pieces"):
        expected = (first.by_words() if unit == "words" else first).without_special()
        ask = {
            "packet": build_packet(first, [Head(0, 0)]),
            "ask": "block",
            "view": {"unit": unit, "special": "rescale"},
        }
        for head, answer in enumerate(ask_packet(*[ask | {"head": head} for head in range(72)])):
            worst = max(worst, float(np.abs(matrix(answer) - expected.weights[divmod(head, 12)]).max()))
    assert expected.hidden.max() > 0.999  # the test case exists: nearly the whole of some row is hidden
    assert worst <= 5e-5  # four decimals, however much is hidden


def test_the_header_says_what_was_read() -> None:
    attention = reading(2, 3, (1, 2), (1,))
    header = unpack(build_packet(attention, [Head(1, 2)], start=OpenHead("L1H2", "q1"))).header
    assert (header["model"], header["layers"], header["heads"], header["n"]) == ("tiny", 2, 3, 7)
    assert header["tokens"] == ["[CLS]", "ab", "ab", "ab", "[SEP]", "ab", "[SEP]"]
    assert header["special"] == [1, 0, 0, 0, 1, 0, 1]
    assert header["segments"] == [0, 0, 0, 0, 0, 1, 1]
    assert header["groups"] == [[0], [1], [2, 3], [4], [5], [6]]
    assert header["words"] == ["[CLS]", "ab", "abab", "[SEP]", "ab", "[SEP]"]
    assert header["start"] == {"head": "L1H2", "pin": "q1"}
    assert {m["name"] for m in header["metrics"]} >= {"previous", "entropy"}
    assert all(len(m["values"]) == 6 and m["help"] for m in header["metrics"])
    assert set(header["themes"]) == set(THEMES)


def test_a_number_that_does_not_exist_is_null() -> None:
    token = Token("a", 0, 0, 0, 1)
    alone = Attention("tiny", "", TokenizedText("a", "", (token,)), np.ones((1, 1, 1, 1), np.float32))
    values = {m["name"]: m["values"] for m in unpack(build_packet(alone, [Head(0, 0)])).header["metrics"]}
    assert values["previous"] == [None]
    assert values["same"] == [1.0]


@pytest.mark.parametrize("head", [Head(2, 0), Head(0, 3), Head(-1, 0), Head(0, -1)])
def test_a_head_that_is_not_there(head: Head) -> None:
    with pytest.raises(UnknownHead, match="2 layers × 3 heads"):
        build_packet(reading(2, 3), [head])


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_tokens_arrive_unchanged(text: str) -> None:
    shown_text = clean(text)[:5000]
    token = Token(shown_text, 0, 0, 0, len(shown_text))
    attention = Attention("tiny", "", TokenizedText(shown_text, "", (token,)), np.ones((1, 1, 1, 1), np.float32))
    assert unpack(build_packet(attention, [Head(0, 0)])).header["tokens"] == [shown_text]


def test_a_reading_has_one_key_and_another_text_another_one() -> None:
    attention = reading()
    text = attention.text
    others = [
        Attention("other", "r1", text, attention.weights),
        Attention("tiny", "r2", text, attention.weights),
        Attention("tiny", "r1", TokenizedText(text.text + "x", "", text.tokens), attention.weights),
        Attention("tiny", "r1", TokenizedText(text.text, "x", text.tokens), attention.weights),
        Attention("tiny", "r1", TokenizedText("", text.text, text.tokens), attention.weights),
    ]
    assert attention.key == reading().key
    assert len({a.key for a in (attention, *others)}) == 6


# ---- Few bytes -------------------------------------------------------------------------------------------

LONG = [(6, 12, 256), (6, 12, 512), (12, 12, 512), (24, 16, 256)]  # layers, heads, pieces


@pytest.mark.parametrize(("layers", "heads", "n"), lanes.some(LONG, (6, 12, 512)))
def test_a_long_text_travels_in_less_than_a_megabyte(layers: int, heads: int, n: int) -> None:
    raw = build_packet(make_long_reading(layers, heads, n), [Head(0, 1)])
    assert len(raw) < ONE_MEGABYTE
    assert unpack(raw).thumbs.shape[0] == layers * heads


LARGEST = [(32, 32, 256), (12, 12, 1024)]  # layers, heads, pieces


@pytest.mark.slow  # 604 MB
@pytest.mark.parametrize(("layers", "heads", "n"), LARGEST)
def test_the_largest_readings_travel_in_a_megabyte_and_a_half(layers: int, heads: int, n: int) -> None:
    raw = build_packet(make_long_reading(layers, heads, n), [Head(1, 1), Head(2, 3), Head(2, 4)])
    assert len(raw) < 1_500_000
    assert unpack(raw).thumbs.shape[0] == layers * heads


@pytest.mark.parametrize("n", [774, 775, 1024])
def test_a_large_matrix_takes_a_byte_a_weight(n: int) -> None:
    attention = make_long_reading(1, 2, n)
    raw = build_packet(attention, [Head(0, 1)])
    sent, tops = unpack(raw), attention.weights[0, 1].max(axis=1, keepdims=True)
    assert len(raw) < 1_300_000 + THUMB_BYTES
    assert is_coarse(attention) is sent.header.get("coarse", False) is (n > 774)
    assert (np.abs(sent.matrices[1] - attention.weights[0, 1]) / tops).max() <= (1 / 500 if n > 774 else STEP)


def test_javascript_reads_a_byte_a_weight() -> None:
    attention = make_long_reading(1, 1, 780)
    raw = build_packet(attention, [Head(0, 0)])
    (drawn,) = ask_packet({"packet": raw, "ask": "block", "head": 0, "query": "links=all"})
    assert np.abs(matrix(drawn) - unpack(raw).matrices[0]).max() <= 1e-6


def test_a_signed_matrix_of_one_byte_a_weight_keeps_its_zero() -> None:
    one = make_long_reading(1, 1, 800)
    signed = replace(one, weights=one.weights - one.weights.mean(axis=-1, keepdims=True), quantity="gradient")
    sent = unpack(build_packet(signed, [Head(0, 0)])).matrices[0]
    tops = np.abs(signed.weights[0, 0]).max(axis=1, keepdims=True)
    assert (np.abs(sent - signed.weights[0, 0]) / tops).max() <= 1 / 250


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_thumbnails_together_stay_small(shape: tuple[int, int]) -> None:
    attention = make_long_reading(*shape, 96)
    got = unpack(build_packet(attention, [Head(1, 1)]))
    assert got.thumbs.shape[0] == shape[0] * shape[1]
    assert got.thumbs.size <= THUMB_BYTES


def test_short_texts_bring_all_heads_long_ones_only_what_is_wanted() -> None:
    short, long = make_long_reading(2, 12, 16), make_long_reading(2, 12, 512)
    assert choose_full_heads(short, [Head(1, 2)]) == [Head(layer, h) for layer in range(2) for h in range(12)]
    assert choose_full_heads(long, [Head(1, 2), Head(0, 3)]) == [Head(0, 3), Head(1, 2)]
    assert choose_full_heads(long, [Head(1, 2)] * 3) == [Head(1, 2)]


def test_the_opened_layer_travels_whole_where_it_fits() -> None:
    attention = make_long_reading(12, 12, 100)
    assert choose_full_heads(attention, [Head(5, 7)]) == [Head(5, h) for h in range(12)]
    got = unpack(build_packet(attention, [Head(5, 7)]))
    assert list(got.matrices) == list(range(60, 72))
    assert np.abs(got.matrices[67] - attention.weights[5, 7]).max() <= STEP


def test_thumbnails_hold_the_largest_weight_of_each_patch() -> None:
    attention = make_long_reading(2, 2, 7)
    starts = [0, 1, 4, 6]
    thumbs = np.frombuffer(compute_thumbnails(attention, starts), np.uint8).reshape(2, 2, 4, 4)
    edges = [*starts, 7]
    for (layer, head, row, column), level in np.ndenumerate(thumbs):
        patch = attention.weights[layer, head, edges[row] : edges[row + 1], edges[column] : edges[column + 1]]
        assert level == round(255 * float(np.sqrt(patch.max())))


special_places = st.tuples(st.integers(1, 600), st.sets(st.integers(0, 599), max_size=8))


@given(special_places, st.sampled_from([52, 37, 22]))
def test_bins_cover_every_token_once_and_never_exceed_the_side(places: tuple[int, set[int]], side: int) -> None:
    n, special = places
    tokens = tuple(Token("a", None if i in special else i, 0, None, None) for i in range(n))
    starts, hide = divide_tokens(TokenizedText("", "", tokens), side)
    assert starts[0] == 0
    assert all(a < b for a, b in zip(starts, [*starts[1:], n], strict=True))
    assert len(starts) <= side
    for start, end, hides in zip(starts, [*starts[1:], n], hide, strict=True):
        inside = [i in special for i in range(start, end)]
        assert inside == [True] if hides else not any(inside), "a patch mixes special tokens with others"


# ---- Ranking by a link -----------------------------------------------------------------------------------


def test_the_link_of_two_words_is_the_sum_to_pieces_and_the_mean_from_pieces() -> None:
    attention = reading(2, 3, (1, 2, 3))
    pieces_only = get_link_weights(attention, RankedLink(2, 5, words=False))
    np.testing.assert_array_equal(pieces_only, attention.weights[:, :, 2, 5])
    whole = get_link_weights(attention, RankedLink(query=3, key=5, words=True))
    np.testing.assert_allclose(whole, attention.by_words().weights[:, :, 2, 3], atol=1e-6)


def test_a_long_text_brings_the_link_along_and_a_short_one_needs_none() -> None:
    long = make_long_reading(12, 12, 100)
    link = unpack(build_packet(long, [Head(0, 0)], RankedLink(7, 9, words=False))).header["link"]
    assert (link["query"], link["key"], link["words"]) == (7, 9, False)
    np.testing.assert_allclose(link["weights"], long.weights[:, :, 7, 9].ravel(), atol=1e-5)
    assert "link" not in unpack(build_packet(reading(), [Head(0, 0)], RankedLink(1, 2, words=True))).header


# ---- The same bytes in JavaScript ------------------------------------------------------------------------


def test_javascript_reads_the_same_weights() -> None:
    for attention in (reading(3, 4, (1, 3, 2), (2, 1)), reading(1, 1, (1,))):
        raw = build_packet(attention, [Head(0, 0)])
        heads = [Head(layer, h) for layer in range(attention.layers) for h in range(attention.heads)]
        ask = [{"packet": raw, "ask": "block", "head": number(attention, h), "view": {"unit": "pieces"}} for h in heads]
        for head, answer in zip(heads, ask_packet(*ask), strict=True):
            assert np.abs(matrix(answer) - attention[head]).max() <= STEP
            assert answer["max"] == pytest.approx(float(attention[head].max()), abs=STEP)
            assert np.abs(answer["hidden"]).max() == 0


def test_javascript_finds_the_matrices_beside_a_header_of_any_language() -> None:
    token = Token("ß 動物 👩‍👩‍👧‍👦", 0, 0, 0, 3)
    weights = np.ones((1, 1, 1, 1), np.float32)
    raw = build_packet(Attention("tiny", "", TokenizedText("ß", "", (token,)), weights), [Head(0, 0)])
    header, block = ask_packet({"packet": raw, "ask": "header"}, {"packet": raw, "ask": "block", "head": 0})
    assert header["tokens"] == [token.text]
    assert block["w"] == [1]


VIEWS = [{"unit": unit, "special": special} for unit in ("words", "pieces") for special in ("keep", "hide", "rescale")]


def as_shown(attention: Attention, view: dict[str, str]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Weights and hidden shares of a view, from the data type's own methods."""
    whole = attention.by_words() if view["unit"] == "words" else attention
    if view["special"] == "keep":
        return whole.weights, whole.hidden
    content = whole.without_special() if view["special"] == "rescale" else whole.content()
    return content.weights, content.hidden


@settings(max_examples=6 if lanes.everything else 3)
@given(readings)
def test_javascript_shows_words_and_special_tokens_as_the_data_type_does(attention: Attention) -> None:
    raw = build_packet(attention, [Head(0, 0)])
    heads = range(attention.layers * attention.heads)
    asked = [(view, head) for view in VIEWS for head in heads]
    answers = ask_packet(*[{"packet": raw, "ask": "block", "head": head, "view": view} for view, head in asked])
    for (view, head), answer in zip(asked, answers, strict=True):
        weights, hidden = (a[divmod(head, attention.heads)] for a in as_shown(attention, view))
        error = STEP * len(attention.text)  # each piece in a sum adds its own error
        assert np.abs(matrix(answer) - weights).max() <= 2 * error, (view, head)
        assert np.abs(np.array(answer["hidden"]) - hidden).max() <= error, (view, head)


def test_javascript_filters_the_sides_of_a_pair() -> None:
    attention = reading(2, 2, (1, 2), (3, 1), seed=5)
    ask = {"packet": build_packet(attention, [Head(0, 0)]), "ask": "block", "head": 3}
    views = [{"unit": unit, "side": side} for unit in ("words", "pieces") for side in ("aa", "ab", "ba", "bb")]
    for view, answer in zip(views, ask_packet(*[ask | {"view": view} for view in views]), strict=True):
        whole = attention.by_words() if view["unit"] == "words" else attention
        segment = np.array([t.segment for t in whole.text.tokens])
        rows, columns = (np.flatnonzero(segment == "ab".index(letter)) for letter in view["side"])
        expected = whole.weights[1, 1][np.ix_(rows, columns)]
        assert np.abs(matrix(answer) - expected).max() <= 4 * STEP, view
        assert np.abs(np.array(answer["hidden"]) - (1 - expected.sum(axis=1))).max() <= 9 * STEP, view


def test_javascript_adds_what_was_hidden_before_to_what_a_view_hides() -> None:
    attention = reading(1, 2, (1, 3, 2), (2, 1)).without_special()
    assert "hidden" not in unpack(build_packet(reading(), [Head(0, 0)])).header
    ask = {"packet": build_packet(attention, [Head(0, 0)]), "ask": "block", "head": 1}
    for view, answer in zip(VIEWS, ask_packet(*[ask | {"view": view} for view in VIEWS]), strict=True):
        expected = build_block(attention, Head(0, 1), View(**view), list_units(attention, View(**view)))
        assert np.abs(np.array(answer["hidden"]) - expected.hidden).max() <= 1e-4, view
        assert expected.hidden.min() > 0, view


def test_javascript_leaves_a_single_sentence_whole_whatever_side_is_asked() -> None:
    attention = reading(1, 1, (1, 1))
    raw = build_packet(attention, [Head(0, 0)])
    (answer,) = ask_packet({"packet": raw, "ask": "block", "head": 0, "view": {"side": "ab"}})
    assert matrix(answer).shape == (4, 4)


def test_javascript_spreads_a_row_evenly_that_was_all_on_special_tokens() -> None:
    whole = reading(1, 1, (1, 1))
    weights = np.zeros((1, 1, 4, 4), np.float32)
    weights[..., 0] = 1
    attention = Attention("tiny", "", whole.text, weights)
    raw = build_packet(attention, [Head(0, 0)])
    (answer,) = ask_packet({"packet": raw, "ask": "block", "head": 0, "view": {"special": "rescale"}})
    np.testing.assert_array_equal(matrix(answer), attention.without_special().weights[0, 0])
    assert answer["hidden"] == [1, 1]


def test_javascript_ranks_heads_as_python_does_with_and_without_the_matrices() -> None:
    short, long = reading(3, 4, (1, 2, 3)), make_long_reading(12, 12, 100)
    cases = [
        (attention, RankedLink(query, key, words))
        for words in (True, False)
        for attention, query, key in ((short, 3, 5), (long, 7, 9))
    ]
    asked = [
        {"packet": build_packet(attention, [Head(0, 0)], link), "ask": "ranking"}
        | {"view": {"unit": "words" if link.words else "pieces", "link": {"query": link.query, "key": link.key}}}
        for attention, link in cases
    ]
    for (attention, link), answer in zip(cases, ask_packet(*asked), strict=True):
        expected = get_link_weights(attention, link).ravel()
        assert [a["weight"] for a in answer] == sorted((a["weight"] for a in answer), reverse=True)
        assert {a["head"] for a in answer} == set(range(expected.size))
        assert max(abs(a["weight"] - expected[a["head"]]) for a in answer) <= 3 * STEP


def test_javascript_waits_for_the_server_when_it_lacks_the_link() -> None:
    raw = build_packet(make_long_reading(12, 12, 100), [Head(0, 0)], RankedLink(7, 9, words=True))
    others = [{"unit": "words", "link": {"query": 9, "key": 7}}, {"unit": "pieces", "link": {"query": 7, "key": 9}}]
    assert ask_packet(*[{"packet": raw, "ask": "ranking", "view": view} for view in others]) == [None, None]


def test_javascript_draws_thumbnails_near_the_largest_weight_of_each_patch() -> None:
    attention = make_long_reading(12, 12, 100)
    ask = {"packet": build_packet(attention, [Head(0, 0)]), "ask": "pooled", "head": 77}
    starts, hides = divide_tokens(attention.text, 37)
    pooled = np.maximum.reduceat(np.maximum.reduceat(attention.weights[6, 5], starts, axis=0), starts, axis=1)
    answers = ask_packet(*[ask | {"view": {"special": special}} for special in ("keep", "hide")])
    every, some = list(range(len(starts))), [i for i in range(len(starts)) if not hides[i]]
    for keep, answer in zip((every, some), answers, strict=True):
        expected = pooled[np.ix_(keep, keep)]
        assert matrix(answer).shape == expected.shape
        assert np.abs(np.sqrt(matrix(answer)) - np.sqrt(expected)).max() <= 0.5 / 255 + 1e-6
