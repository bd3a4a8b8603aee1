"""A page that reads by itself cuts every text into the pieces and words of the library, and has its measures: two
statements of the same rules, held to the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis.metrics import METRICS, measure_all
from mha_viz.errors import EmptyText
from mha_viz.figures.layout.packet import collect_axis_tokens
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.text import Piece, build_text, is_punctuation
from tests import hostile, lanes
from tests.live_pages import ask_node, library, read_rules
from tests.readings import reading

# One for each way of cutting words: by pieces of words, by bytes, and whole.
CUT = ("minilm", "roberta", "toy")
MODELS = (*CUT, "repeater", "bert", "distilbert", "electra", "gpt2")
Model = Callable[[str], Encoder]


@pytest.fixture(scope="module")
def model(minilm: Encoder, tiny: Model) -> Model:
    named = {"minilm": minilm, "toy": load_one_stack("toy"), "repeater": load_one_stack("repeater")}
    return lambda name: named[name] if name in named else tiny(name)


def pieces(model: Encoder, texts: list[str]) -> list[Any]:
    (answers,) = ask_node({"library": library(), **read_rules(model), "texts": texts})
    assert len(answers) == len(texts)
    return list(answers)


def cut(model: Encoder, text: str) -> dict[str, Any] | None:
    """The ids, tokens and words of a text in the library; None if nothing of it is read."""
    try:
        read = model.pieces(text)
    except EmptyText:
        return None
    tokens = read.tokenized()
    marks = [not t.special and is_punctuation(tokens.typed(t).strip()) for t in tokens.tokens]
    return {**collect_axis_tokens(tokens), "ids": list(read.ids), "marks": marks}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", lanes.some(MODELS, *CUT))
def test_hostile_texts_have_the_same_pieces_words_and_special_tokens(model: Model, name: str) -> None:
    expected = {text: one for text in hostile.TEXTS.values() if (one := cut(model(name), text))}
    assert len(expected) > 50
    for one, answer in zip(expected.values(), pieces(model(name), [*expected]), strict=True):
        assert {field: answer[field] for field in one} == one


assigned = st.text(st.characters(exclude_categories=["Cn"]), min_size=1, max_size=12)
often = st.sampled_from(
    [
        " ",
        "'",
        "’",
        ".",
        "a",
        "Don't",
        "[MASK]",
        "<mask>",
        "é",
        "ﬁ",
        "\n",
        "\t",
        "▁",
        "👍🏽",
        "\ufeff",
        "\u200d",
        "中",
        "½",
    ]
)


@pytest.mark.parametrize("name", CUT)
@settings(max_examples=100 if lanes.everything else 3)
@given(texts=st.lists(st.lists(assigned | often, min_size=1, max_size=8).map("".join), min_size=60, max_size=60))
def test_any_text_has_the_same_pieces_and_words(model: Model, name: str, texts: list[str]) -> None:
    expected = {text: one for text in texts if (one := cut(model(name), text))}
    for (text, one), answer in zip(expected.items(), pieces(model(name), [*expected]), strict=True):
        assert {field: answer[field] for field in one} == one, ascii(text)


pieces_cut = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *(" ", "\n", "\t", "\r\n", "a", " b", "don", "'", "’t", ".", "=f", "_", "é", "e\u0301", "\u0301", "中"),
                *("길", "😀", "👍", "🏽", "\u200d", "\ufe0f", "€", "½", "▁", "[MASK]", "\u200b", "Ġ", "[UNK]", ""),
            ]
        ),
        st.sampled_from(["", "Ġ", "▁", "##"]),  # the mark before its name
        st.sampled_from(["as it is", "mark alone", "bytes", "accent left out", "special", "no span"]),
        st.integers(0, 2),  # the word number
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40 if lanes.everything else 3)
@given(st.lists(pieces_cut, min_size=80, max_size=80))
def test_pieces_of_every_vocabulary_are_named_and_joined_alike(texts: list[list[tuple[str, str, str, int]]]) -> None:
    made = []
    for parts in texts:
        at, each = 0, []
        for text, mark, kind, word in parts:
            end = at + len(text)
            number = None if kind == "special" else word
            piece = Piece(mark + text.strip(), at, end - (kind == "accent left out" and len(text) > 1), number, 0)
            if kind == "mark alone":
                each.append(Piece("▁", at, end, number, 0))
            if kind == "bytes":
                each.append(piece)
            each.append(piece._replace(start=end) if kind == "no span" else piece)
            at = end
        made.append(("".join(text for text, *_ in parts), each))
    (answers,) = ask_node(
        {"grouped": [{"text": text, "pieces": [one._asdict() for one in each]} for text, each in made]}
    )
    for (text, each), answer in zip(made, answers, strict=True):
        expected = collect_axis_tokens(build_text(text, "", each))
        assert {field: answer[field] for field in expected} == expected, (text, each)


def test_the_rest_of_a_long_text_is_counted_and_cut(model: Model) -> None:
    toy = model("toy")
    (answer,) = pieces(toy, ["cat " * 60])
    assert (answer["n"], answer["count"]) == (toy.limit, 62)


def test_measures_are_those_of_the_library() -> None:
    attention = reading(2, 3, (1, 2, 3))
    text = attention.queries
    marks = [not t.special and is_punctuation(text.typed(t).strip()) for t in text.tokens]
    marks[2] = True  # no piece of this text is punctuation
    expected = measure_all(attention)
    for head in attention.every_head():
        weights = attention[head]
        order = {"weights": weights.ravel().tolist(), "special": [*map(int, text.special)]}
        ((got),) = ask_node({**order, "marks": marks})
        assert {"previous", "following", "same", "cls", "sep", "entropy"} < got.keys() <= METRICS.keys()
        assert got.pop("punctuation") == pytest.approx(
            float(weights[:, np.array(marks)].sum() / len(weights)), abs=1e-6
        )
        for name, value in got.items():
            assert value == pytest.approx(expected[name][head.layer, head.head], abs=1e-6), name
