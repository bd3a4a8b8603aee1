"""Static figures of several heads: panels on one scale, what can be compared, and differences."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mha_viz import numerals
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError
from mha_viz.figures.drawing.marks import POINTS_PER_MM, CellPicture, Rect, Text
from mha_viz.figures.drawing.theme import LIGHT, palette
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.difference import compute_difference, difference, quantise_levels
from mha_viz.figures.layout.grid import grid
from mha_viz.figures.layout.heatmap import choose_labelled, heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel, convert_pin, explain_mismatch, pack_comparison, transfer_pin
from mha_viz.figures.layout.view import View, list_units
from mha_viz.text import Cut
from tests.page_scripts import ask_panels
from tests.readings import make_long_reading, reading
from tests.sentences import TIRED, WIDE, read

H = Head(1, 2)


def test_all_panels_share_one_scale() -> None:
    one, two = reading(words=(1, 1), seed=1), reading(words=(1, 1), seed=2)
    drawing = compare([Panel(one, H), Panel(two, H)], View(unit="pieces", scale="head"))
    cells = [m for m in drawing.marks if isinstance(m, CellPicture)][:2]
    top = max(one[H].max(), two[H].max())
    for mark, attention in zip(cells, (one, two), strict=True):
        expected = palette(LIGHT.ramp)[np.rint(attention[H].astype(float) * 255 / float(top)).astype(int)]
        assert (mark.pixels == expected).all()
    assert any(
        f"one scale, 0 to {numerals.format_weight(float(top))}" in m.text for m in drawing.marks if isinstance(m, Text)
    )
    with pytest.raises(SettingError, match="each row its own"):
        compare([Panel(one, H)], View(scale="row"))


@pytest.mark.parametrize("count", [0, 17])
def test_no_panel_and_too_many(count: int) -> None:
    with pytest.raises(SettingError, match="1 to 16"):
        compare([Panel(reading(), H)] * count)


def test_a_difference_by_hand() -> None:
    one, two = reading(seed=1), reading(seed=2)
    subtracted = compute_difference(Panel(one, H), Panel(two, Head(0, 0)), View(unit="pieces"))
    assert subtracted.d == pytest.approx(two[Head(0, 0)] - one[H])
    assert quantise_levels(np.array([-0.5, 0, 0.25, 0.5], np.float32), 0.5).tolist() == [1, 128, 192, 255]
    assert quantise_levels(np.zeros(2, np.float32), 0).tolist() == [128, 128]
    cells = next(m for m in difference(Panel(one, H), Panel(one, H)).marks if isinstance(m, CellPicture))
    assert {tuple(c) for row in cells.pixels.tolist() for c in row} == {tuple(palette(LIGHT.signed)[128].tolist())}


def test_no_difference_has_the_colour_of_no_weight() -> None:
    """Zero has the colour of the background: the middle of the signed ramp is the 0 of the sequential ramp, to within
    one step."""
    assert np.abs(palette(LIGHT.signed)[128].astype(int) - palette(LIGHT.ramp)[0]).max() <= 2


def test_a_replaced_word_is_compared_in_its_place() -> None:
    tired, wide = read(TIRED), read(WIDE)
    subtracted = compute_difference(Panel(tired, Head(3, 1)), Panel(wide, Head(3, 1)), View())
    assert "tired / wide" in [u.text for u in subtracted.axes.rows]
    assert subtracted.d == pytest.approx(wide.by_words()[Head(3, 1)] - tired.by_words()[Head(3, 1)], abs=1e-6)


def test_texts_that_do_not_correspond_are_refused_with_the_reason() -> None:
    tired, other = read(TIRED), read("Cats sleep.")
    with pytest.raises(SettingError, match="differ in number"):
        difference(Panel(tired, Head(0, 0)), Panel(other, Head(0, 0)))
    assert "differ in number" in explain_mismatch(tired, other, View(unit="pieces"))
    longer = read(TIRED.replace("tired", "electroencephalographic"))
    assert "split differently" in explain_mismatch(tired, longer, View(unit="pieces"))
    assert explain_mismatch(tired, longer, View()) == ""
    assert explain_mismatch(tired, read(TIRED.upper()), View()) == ""


def test_a_pin_is_held_in_every_panel_where_the_word_stands() -> None:
    tired, other = read(TIRED), read("Yesterday the animal slept.")
    view = View(pin="q2")  # animal
    at = transfer_pin(tired, other, view)
    assert at is not None
    assert at.row is not None
    assert list_units(other, view).rows[at.row].text == "animal"
    assert transfer_pin(tired, other, View(pin="q10")) is None  # no “it” there
    assert transfer_pin(tired, other, View()) is None


def test_the_pin_counts_tokens_of_the_panel_that_is_named() -> None:
    tired, other = read(TIRED), read("Yesterday the animal slept.")
    panels, view = [Panel(tired, Head(3, 1)), Panel(other, Head(3, 1))], View(pin="q3")
    assert "The row of “animal” is outlined." in compare(panels, view, pin_of=1).caption
    assert "The row of “didn't” is outlined in the panels that have it." in compare(panels, view).caption
    assert compare(panels, view, pin_of=1).about["at"] == "1"
    held = [m.text for m in compare(panels, view, pin_of=1).marks if isinstance(m, Text) and m.colour == LIGHT.accent]
    assert held == ["animal", "animal"]
    assert convert_pin(panels, 0, view, 1) == "q2"
    assert convert_pin(panels, 0, View(pin="q1k3"), 1) == ""  # no “Yesterday” there
    assert convert_pin(panels, 0, View(pin="q4k1"), 0) == "q3k1"  # the first piece of its word
    for wrong in (-1, 2, True, "1", None):
        with pytest.raises(SettingError, match="pin_of"):
            compare(panels, view, pin_of=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("pin_of", [0, 1])
def test_a_difference_of_two_sentences_holds_what_its_caption_says(pin_of: int) -> None:
    panels = [Panel(read(text), Head(3, 1)) for text in (TIRED, WIDE)]
    drawing = difference(panels[0], panels[1], View(pin="q13"), pin_of=pin_of)
    assert f"The row of “{('tired', 'wide')[pin_of]}” is outlined." in drawing.caption
    frames = [m for m in drawing.marks if isinstance(m, Rect) and m.stroke == LIGHT.accent]
    assert len(frames) == 1
    assert [m.text for m in drawing.marks if isinstance(m, Text) and m.colour == LIGHT.accent] == ["tired / wide"]


def test_a_difference_of_one_head_in_two_sentences_says_which_way_round() -> None:
    one, two = (Panel(read(text), Head(3, 1)) for text in (TIRED, WIDE))
    named = "L3H1 (4-2) with “wide” minus L3H1 (4-2) with “tired”"
    assert f"Colour: {named}, " in difference(one, two).caption
    assert named in difference(one, two, None, Size(300)).texts()
    caption = difference(one, Panel(two.attention, Head(0, 2))).caption
    assert "Colour: L0H2 (1-3) with “wide” minus L3H1 (4-2) with “tired”, " in caption


@pytest.mark.parametrize("kind", ["heatmap", "links"])
def test_only_links_are_said_to_be_filtered(kind: Any) -> None:
    drawing = compare([Panel(reading(), H)], View(links="top3"), kind=kind)
    assert ("3 heaviest keys" in drawing.caption) is (kind == "links")
    assert drawing.about["as"] == kind


def test_a_comparison_shows_both_sentences_of_a_pair_whole() -> None:
    pair = reading(pair=(1, 2))
    for draw in (lambda v: compare([Panel(pair, H)], v), lambda v: difference(Panel(pair, H), Panel(pair, H), v)):
        with pytest.raises(SettingError, match="side is 'ab'"):
            draw(View(side="ab"))


def pieced(*pieces: str) -> Attention:
    return Attention.from_tensors([np.full((1, len(pieces), len(pieces)), 1 / len(pieces))], pieces)


CUTS: list[tuple[tuple[str, ...], tuple[str, ...], bool]] = [  # whether their pieces can be subtracted
    (("un", "##able", "x"), ("una", "##ble", "x"), False),  # one word, cut differently
    (("un", "##able", "x"), ("una", "##ble", "y"), False),  # in two sentences
    (("un", "##able", "x"), ("un", "##able", "y"), True),
    (("un", "##able", "x"), ("in", "##ept", "x"), True),  # another word with as many pieces
    (("Un", "##able", "x"), ("un", "##ABLE", "y"), True),
    (("un", "##a", "##ble"), ("un", "##able"), False),
]


def test_pieces_are_subtracted_only_where_the_same_word_is_cut_the_same() -> None:
    pairs = [
        (pieced(*one), pieced(*two)) for first, second, _ in CUTS for one, two in ((first, second), (second, first))
    ]
    fits = [is_fit for *_, is_fit in CUTS for _ in (0, 1)]
    assert [explain_mismatch(*pair, View(unit="pieces")) == "" for pair in pairs] == fits
    assert all(explain_mismatch(*pair, View()) == "" for pair in pairs)
    ask = {"ask": "difference", "view": {"unit": "pieces"}, "of": [0, 1]}
    packets = [pack_comparison([Panel(attention, Head(0, 0)) for attention in pair]) for pair in pairs]
    answers = ask_panels(*[ask | {"packet": packet} for packet in packets])
    assert ["d" in answer for answer in answers] == fits, "the page gives the same answer"


def test_cells_of_a_comparison_have_one_size_whatever_the_sentences() -> None:
    panels = [Panel(reading(words=words), H) for words in ((1, 1), (1,) * 9, (2, 1, 1))]
    cells = [m for m in compare(panels, columns=3).marks if isinstance(m, CellPicture)][:3]
    assert len({round(m.width / m.pixels.shape[1], 6) for m in cells}) == 1
    assert len({round(m.y, 6) for m in cells}) == 1
    drawing = compare(panels, kind="links", columns=3)
    assert len({round(m.y, 6) for m in drawing.marks if isinstance(m, Text) and m.text == "[CLS]"}) == 1


def test_labels_of_rows_stand_once_if_all_panels_have_these_rows() -> None:
    one, other = reading(words=(1, 1, 1)), reading(words=(1, 1))
    rows = {m.text for m in heatmap(one, H).marks if isinstance(m, Text) and m.anchor == "end"} - {"0 to 1"}
    for panels, columns, times in (([one] * 3, 3, 1), ([one] * 3, 2, 2), ([one, other, one], 3, 3)):
        drawing = compare([Panel(panel, H) for panel in panels], columns=columns)
        texts = [m for m in drawing.marks if isinstance(m, Text)]
        named = [m.text for m in texts if m.anchor == "end" and m.text in rows]
        assert named.count("[CLS]") == times
        assert [m.text for m in texts].count("query ↓   key →") == 1
        cells = [m for m in drawing.marks if isinstance(m, CellPicture)][:3]
        titles = [m for m in texts if m.text == "L1H2 (2-3)"]
        assert [m.x for m in titles] == pytest.approx([m.x for m in cells]), "above the cells, not above the labels"
        assert all(m.x + m.width <= drawing.width for m in cells)
    assert "query ↓   key →" not in compare([Panel(one, H)] * 2, kind="links").texts(), "each names its own sides"


@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(4, None, [2, 2]), (5, None, [3, 2]), (4, 4, [4]), (4, 3, [3, 1])]
)
def test_panels_stand_in_even_rows_unless_told(count: int, columns: int | None, rows: list[int]) -> None:
    drawing = compare([Panel(reading(words=(1, 1)), H)] * count, columns=columns)
    tops = [round(m.y, 3) for m in drawing.marks if isinstance(m, CellPicture)][:count]
    assert [tops.count(y) for y in dict.fromkeys(tops)] == rows


def test_a_transparent_comparison_has_no_lines_of_paper() -> None:
    drawn = compare([Panel(reading(words=(1, 1)), H)] * 2, None, Size(transparent=True))
    assert not [m for m in drawn.marks if isinstance(m, Rect) and m.fill == LIGHT.paper and m.opacity == 1]
    assert [m for m in compare([Panel(reading(words=(1, 1)), H)]).marks if isinstance(m, Rect)]


def test_a_comparison_says_which_head_read_which_text() -> None:
    one, two = reading(pair=(1,)), reading(words=(1, 1))
    about = compare([Panel(one, H), Panel(two, Head(0, 0)), Panel(one, Head(0, 1))]).about
    assert json.loads(about["text"]) == [one.text.text, two.text.text, one.text.text]
    assert json.loads(about["pair"]) == [one.text.pair, "", one.text.pair]
    assert (about["model"], about["heads"]) == ("tiny", "L1H2 L0H0 L0H1")


def test_a_caption_says_what_of_a_long_text_was_read() -> None:
    def cut_reading(**typed: Any) -> Attention:
        whole = make_long_reading(1, 1, 512)
        return Attention("minilm", "", replace(whole.text, **typed), whole.weights)

    attention = cut_reading(text="cat sat mat " * 1000, cut=Cut(3002, 512, (2040, 0)))
    for drawing in (heatmap(attention, Head(0, 0)), compare([Panel(attention, Head(0, 0))])):
        assert "(first 512 of 3,002 tokens)" in drawing.caption
        assert len(drawing.caption) < 3000
        assert drawing.about["text"] == attention.text.text[:2040]
        assert drawing.about["read"].startswith("first 512 of")
    pair = cut_reading(text="cat sat mat " * 300, pair="dog lay " * 300, cut=Cut(1502, 512, (1016, 1360)))
    assert len(heatmap(pair, Head(0, 0)).caption) < 4000
    assert "read" not in heatmap(read(TIRED), Head(0, 0)).about


def test_no_figure_says_where_on_this_machine_a_model_lies() -> None:
    local = replace(reading(), model="/srv/secret/own")
    panels = [Panel(local, H), Panel(reading(), H)]
    for drawing in (heatmap(local, H), links(local, [H]), grid(local), compare(panels), difference(*panels)):
        words = f"{drawing.caption} {drawing.alt} {drawing.about} {drawing.texts()}"
        assert "secret" not in words
        assert "own" in words


def test_where_labels_are_crowded_each_third_has_one_and_what_is_held() -> None:
    """The same numbers as in the browser's test."""
    assert choose_labelled(13, 3, None) == {0, 3, 6, 9, 12}
    assert choose_labelled(13, 3, 4) == {0, 4, 9, 12}
    assert choose_labelled(13, 1, 4) == set(range(13))


def test_a_small_matrix_stands_in_the_middle_of_its_page() -> None:
    attention = reading(words=(1, 1))
    drawing = heatmap(attention, H, None, Size(width_mm=178))
    cells = next(mark for mark in drawing.marks if isinstance(mark, CellPicture))
    assert drawing.width == pytest.approx(178 * POINTS_PER_MM)
    assert cells.width / len(attention.text) == pytest.approx(84 * 8 / 13)
    left = min(mark.x for mark in drawing.marks if isinstance(mark, Text) and mark.text.startswith("rows:"))
    assert left > drawing.width / 5
    narrow = heatmap(attention, H, None, Size(width_mm=60))
    assert min(mark.x for mark in narrow.marks if isinstance(mark, Text) and mark.text.startswith("rows:")) < 5
