"""Words that a tokenizer has no piece for: drawn as [UNK], with what was typed beneath, on pages and in files."""

from __future__ import annotations

import pytest

from mha_viz.attention import Attention, Head
from mha_viz.figures.drawing.marks import Text
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.labels import draw_label
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.packet import collect_axis_tokens
from mha_viz.figures.layout.view import View, compute_shown, list_units
from mha_viz.models.reading.loading import load_one_stack
from tests.page_session import PageSession

TEXT = "the zebra sleeps ."


@pytest.fixture(scope="module")
def reading() -> Attention:
    return load_one_stack("toy").encode(TEXT)


def lines(text: Text, room: float) -> list[tuple[str, float, float]]:
    return [(one.text, one.size, one.y) for one in draw_label(text, 99, room)]


def test_a_label_has_two_lines_where_there_is_room() -> None:
    unknown = Text(0, 50, "[UNK] zebra", 14, "#000000")
    assert lines(Text(0, 50, "dog", 14, "#000000"), 20) == [("dog", 14, 50)]
    assert lines(unknown, 17) == [("[UNK] zebra", 14, 50)]
    assert lines(unknown, 20) == [("[UNK]", 10, 46), ("zebra", 8, 55)]
    upwards = draw_label(Text(50, 0, "[UNK] zebra", 14, "#000000", turn=90), 99, 20)
    assert [(one.x, one.y) for one in upwards] == [(46, 0), (55, 0)]


@pytest.mark.parametrize("unit", ["words", "pieces"])
def test_a_figure_says_what_the_model_reads_and_what_was_typed(reading: Attention, unit: str) -> None:
    view = View(unit=unit)
    for drawn in (heatmap(reading, Head(1, 1), view), links(reading, [Head(1, 1)], view)):
        texts = [mark.text for mark in drawn.marks if isinstance(mark, Text)]
        assert texts.count("[UNK]") == texts.count("zebra") == 2  # as query and as key
    assert [one.drawn for one in list_units(reading, view).rows] == [
        "[CLS]",
        "the",
        "[UNK] zebra",
        "sleeps",
        ".",
        "[SEP]",
    ]
    assert compute_shown(reading, [Head(1, 1)], view).rows[2] == "zebra"  # numbers keep the words that were typed


def test_who_hears_a_figure_hears_it_too(reading: Attention) -> None:
    described = heatmap(reading, Head(1, 1), View(pin="q2"))
    assert "The row of “[UNK] zebra” is outlined." in described.caption


def test_a_page_gets_the_same_words(reading: Attention) -> None:
    fields = collect_axis_tokens(reading.text)
    assert fields["tokens"] == fields["words"] == ["[CLS]", "the", "[UNK] zebra", "sleeps", ".", "[SEP]"]
    assert "[UNK] typed" not in str(collect_axis_tokens(load_one_stack("toy").encode("[UNK] sleeps .").text))


@pytest.mark.app
def test_inside_a_head_names_the_word_so() -> None:
    visit = PageSession({"text": TEXT, "model": "toy", "pin": "q2"}, page="40_inside_a_head")
    assert "[UNK] zebra" in str([box.options for box in visit.at.selectbox])
