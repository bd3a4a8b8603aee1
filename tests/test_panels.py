"""Panels for the browser: the content of the bytes, what corresponds, and that page and figures compute the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mha_viz.analysis.distance import divergence
from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError, UnknownHead
from mha_viz.figures.layout.difference import compute_difference, quantise_levels
from mha_viz.figures.layout.panels import Panel, pack_comparison
from mha_viz.figures.layout.view import View, build_block, list_units, shades
from mha_viz.text import Token, TokenizedText, align, clean
from tests import hostile, lanes
from tests.packets import unpack_panels
from tests.page_scripts import ask_panels
from tests.readings import make_long_reading, reading
from tests.sentences import WIDE, read


@cache
def first() -> Attention:
    return load_first_reading()


def renamed(attention: Attention, **new: str) -> Attention:
    """The same weights as a reading of another model or text."""
    text = attention.text
    typed = TokenizedText(new.get("text", text.text), new.get("pair", text.pair), text.tokens)
    return Attention(new.get("model", attention.model), attention.revision, typed, attention.weights)


def read_from(*words: str, special: bool = True, seed: int = 0) -> Attention:
    """A reading of these words, one piece each."""
    tokens, at = [Token("[CLS]", None, 0, None, None)] if special else [], 0
    for number, word in enumerate(words):
        tokens.append(Token(word, number, 0, at, at + len(word)))
        at += len(word) + 1
    tokens += [Token("[SEP]", None, 0, None, None)] if special else []
    n = len(tokens)
    rows = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), (2, 3, n)).astype(np.float32)
    return Attention("tiny", "r1", TokenizedText(" ".join(words), "", tuple(tokens)), rows)


# ---- The content of the bytes ---------------------------------------------------------------------------


def test_panels_name_their_reading_head_and_name() -> None:
    one, two = reading(2, 3), renamed(reading(2, 3), model="other")
    header = unpack_panels(
        pack_comparison([Panel(one, Head(1, 2), "mine"), Panel(two, Head(0, 0)), Panel(one, Head(0, 1))])
    )
    assert header["panels"] == [
        {"reading": 0, "head": 5, "name": "mine"},
        {"reading": 1, "head": 0, "name": ""},
        {"reading": 0, "head": 1, "name": ""},
    ]
    assert header["editable"] is False
    assert [(r["model"], r["full"]) for r in header["readings"]] == [("tiny", [1, 5]), ("other", [0])]


def test_readings_of_one_text_keep_their_own_weights() -> None:
    one, two = ({"attentions": reading(seed=seed).weights, "tokens": ["a", "b", "c", "d", "e", "f"]} for seed in (1, 2))
    panels = [Panel(Attention.from_tensors(**given), Head(1, 2)) for given in (one, two)]
    packed = pack_comparison(panels)
    assert [p["reading"] for p in unpack_panels(packed)["panels"]] == [0, 1]
    assert unpack_panels(packed)["divergence"][0][1] > 0.01
    first_, second = (answer["w"] for answer in ask_panels({"packet": packed, "ask": "blocks"})[0])
    assert first_ == pytest.approx(one["attentions"][1, 2].ravel(), abs=1e-4)
    assert second == pytest.approx(two["attentions"][1, 2].ravel(), abs=1e-4)


def test_a_reading_stands_beside_itself_without_special_tokens() -> None:
    whole = first()
    panels = [Panel(whole, Head(3, 1)), Panel(whole.without_special(), Head(3, 1)), Panel(whole.by_words(), Head(0, 2))]
    header = unpack_panels(pack_comparison(panels))
    assert [p["reading"] for p in header["panels"]] == [0, 1, 2]
    assert [r["steps"] for r in header["readings"]] == ["", "special hidden", "by words"]
    assert [r["n"] for r in header["readings"]] == [len(p.attention.text) for p in panels]
    assert header["divergence"][0][1] is None  # rows of [CLS] and [SEP] correspond to none
    assert header["divergence"][0][2] is not None


def test_a_reading_says_what_was_read() -> None:
    attention = reading(2, 3, (1, 2), (1,))
    (said_,) = unpack_panels(pack_comparison([Panel(attention, Head(0, 0))]))["readings"]
    assert (said_["text"], said_["pair"], said_["revision"], said_["n"]) == ("ababab", "ab", "revision r1", 7)
    assert said_["spans"] == [None, [0, 2], [2, 4], [4, 6], None, [0, 2], None]
    assert said_["groups"] == [[0], [1], [2, 3], [4], [5], [6]]
    assert said_["words"] == ["[CLS]", "ab", "abab", "[SEP]", "ab", "[SEP]"]
    assert "metrics" not in said_


def test_compared_heads_say_where_their_panels_stand() -> None:
    panels = [Panel(reading(), Head(0, 0)), Panel(reading(), Head(0, 1))]
    assert [p["source"] for p in unpack_panels(pack_comparison(panels, editable=True))["panels"]] == [0, 1]
    some = unpack_panels(pack_comparison(panels, editable=[1, 4]))
    assert some["editable"] is True
    assert [p["source"] for p in some["panels"]] == [1, 4]


def test_no_panels_are_a_comparison_too() -> None:
    header = unpack_panels(pack_comparison([], editable=[]))
    assert (header["panels"], header["readings"], header["divergence"], header["editable"]) == ([], [], [], True)


def test_the_same_panels_give_the_same_bytes_and_others_another_key() -> None:
    def panels(name: str = "") -> list[Panel]:
        return [Panel(reading(), Head(0, 0), name), Panel(reading(), Head(1, 1))]

    assert pack_comparison(panels()) == pack_comparison(panels())
    others = [
        pack_comparison(panels("x")),
        pack_comparison(panels()[::-1]),
        pack_comparison(panels(), editable=True),
        pack_comparison(panels()[:1]),
        pack_comparison(panels()),
    ]
    assert len({unpack_panels(data)["key"] for data in others}) == 5
    other = reading(seed=1)  # the same text and model, other weights
    assert (
        unpack_panels(pack_comparison([Panel(other, Head(0, 0))]))["key"]
        != unpack_panels(pack_comparison([Panel(reading(), Head(0, 0))]))["key"]
    )


def test_a_head_that_is_shown_twice_travels_once() -> None:
    attention = make_long_reading(1, 2, 128)
    once, twice = (pack_comparison([Panel(attention, Head(0, 0))] * count) for count in (1, 2))
    assert len(twice) - len(once) < 1000


@pytest.mark.parametrize("n", lanes.some([160, 512], 160))
def test_sixteen_panels_of_a_long_text_are_bounded(n: int) -> None:
    attention = make_long_reading(2, 8, n)
    one_reading = pack_comparison([Panel(attention, Head(i // 8, i % 8)) for i in range(16)])
    assert len(one_reading) < 16 * 2 * n**2 * 1.03 + 16 * 12 * n
    many = pack_comparison([Panel(renamed(attention, model=f"m{i}"), Head(0, 0)) for i in range(16)])
    assert len(many) < 10e6 * (n / 512) ** 2 + 1e6


@pytest.mark.parametrize("count", [17, 40])
def test_too_many_panels(count: int) -> None:
    with pytest.raises(SettingError, match=f"{count} heads"):
        pack_comparison([Panel(reading(), Head(0, 0))] * count)


@pytest.mark.parametrize("head", [Head(2, 0), Head(0, 3), Head(-1, 0)])
def test_a_head_that_is_not_there(head: Head) -> None:
    with pytest.raises(UnknownHead):
        pack_comparison([Panel(reading(2, 3), Head(0, 0)), Panel(reading(2, 3), head)])


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_tokens_and_names_arrive_unchanged(text: str) -> None:
    shown_text = clean(text)[:5000]
    token = Token(shown_text, 0, 0, 0, len(shown_text))
    attention = Attention("tiny", "", TokenizedText(shown_text, "", (token,)), np.ones((1, 1, 1, 1), np.float32))
    header = unpack_panels(pack_comparison([Panel(attention, Head(0, 0), text[:5000])]))
    assert header["readings"][0]["tokens"] == [shown_text]
    assert header["readings"][0]["text"] == shown_text
    assert header["panels"][0]["name"] == shown_text


# ---- What corresponds -----------------------------------------------------------------------------------


def test_words_of_two_texts_are_aligned_both_ways() -> None:
    one, two = read_from("it", "was", "tired"), read_from("it", "was", "so", "wide")
    header = unpack_panels(pack_comparison([Panel(one, Head(0, 0)), Panel(two, Head(0, 0))]))
    assert header["aligned"] == [[None, [0, 1, 2, None, 5]], [[0, 1, 2, None, None, 4], None]]
    assert header["aligned"][0][1] == list(align(one.text, two.text).matches)
    assert header["compared"] == [["pieces", None], [None, "pieces"]]
    assert header["divergence"] == [[0, None], [None, 0]]


def test_a_replaced_word_is_in_its_place() -> None:
    header = unpack_panels(
        pack_comparison([Panel(read_from("too", "tired"), Head(0, 0)), Panel(read_from("too", "wide"), Head(0, 0))])
    )
    assert header["aligned"][0][1] == header["aligned"][1][0] == [0, 1, None, 3]
    assert header["place"][0][1] == header["place"][1][0] == [0, 1, 2, 3]
    assert header["compared"][0][1] == "pieces"  # each word is one piece in both


def test_divergence_is_by_pieces_where_both_have_the_same_and_else_by_words() -> None:
    a = reading(2, 3, (1, 2, 1))
    cut = list(a.text.tokens)
    cut[2:4] = [Token("abab", 1, 0, 2, 6)]  # the same text, its second word in one piece
    merged = Attention("b", "", TokenizedText(a.text.text, "", tuple(cut)), read_from("a", "b", "c", seed=4).weights)
    header = unpack_panels(pack_comparison([Panel(a, Head(0, 0)), Panel(a, Head(1, 2)), Panel(merged, Head(0, 1))]))
    assert header["compared"] == [["pieces", "words"], ["words", "pieces"]]
    divergences = header["divergence"]
    assert divergences[0][1] == divergences[1][0] == pytest.approx(divergence(a[Head(0, 0)], a[Head(1, 2)]), abs=1e-5)
    by_words = a.by_words()
    assert divergences[1][2] == pytest.approx(divergence(by_words[Head(1, 2)], merged[Head(0, 1)]), abs=1e-5)


# ---- Page and figures compute the same ------------------------------------------------------------------


def test_the_page_subtracts_what_the_figure_subtracts() -> None:
    panels = (Panel(first(), Head(3, 1)), Panel(first(), Head(5, 11)))
    views = [{"unit": u, "special": s} for u in ("words", "pieces") for s in ("keep", "hide", "rescale")]
    ask = {"packet": pack_comparison(panels), "ask": "difference", "of": [0, 1]}
    for view, answer in zip(views, ask_panels(*[ask | {"view": view} for view in views]), strict=True):
        expected = compute_difference(*panels, View(**view))
        assert answer["d"] == pytest.approx(expected.d.ravel(), abs=5e-5), view
        assert answer["rows"] == [u.text for u in expected.axes.rows], view
        top = float(np.abs(expected.d).max())
        difference = np.abs(np.array(answer["shades"]) - quantise_levels(expected.d, top).ravel()).max()
        assert difference <= 1, view  # rounding of the quantised


def test_the_page_labels_replaced_words_as_the_figure_does() -> None:
    panels = (Panel(first(), Head(3, 1)), Panel(read(WIDE), Head(3, 1)))
    (answer,) = ask_panels({"packet": pack_comparison(panels), "ask": "difference", "of": [0, 1]})
    expected = compute_difference(*panels, View())
    assert answer["d"] == pytest.approx(expected.d.ravel(), abs=5e-5)
    assert answer["rows"] == [u.text for u in expected.axes.rows]
    assert "tired / wide" in answer["rows"]


def test_one_scale_on_the_page_and_in_the_figure() -> None:
    panels = [Panel(first(), Head(0, 2)), Panel(first(), Head(5, 11)), Panel(first(), Head(3, 3))]
    scales = ("fixed", "head", "log")
    ask = {"packet": pack_comparison(panels), "ask": "shades"}
    answers = ask_panels(*[ask | {"view": {"special": "hide", "scale": scale}} for scale in scales])
    for scale, shaded in zip(scales, answers, strict=True):
        view = View(special="hide", scale=scale)
        parts = [build_block(p.attention, p.head, view, list_units(p.attention, view)) for p in panels]
        top = max(part.top for part in parts)
        assert len({part.top for part in parts}) == 3  # so that separate scales for the panels would differ
        for answer, part in zip(shaded, parts, strict=True):
            assert np.abs(np.array(answer) - shades(part.w, scale, top).ravel().astype(int)).max() <= 1, scale


def test_no_address_is_an_error() -> None:
    packet = pack_comparison([Panel(reading(), Head(0, 0))])
    queries = [[[n, v] for n, values in query.items() for v in values] for query in hostile.URL_VALUES.values()]
    answers = ask_panels(*[{"packet": packet, "ask": "address", "query": query} for query in queries])
    for fields, name in zip(answers, hostile.URL_VALUES, strict=True):
        assert set(fields) == {"as", "unit", "special", "links", "scale", "diff", "pin", "at"}, name
        assert set(fields.values()) == {None}, name
