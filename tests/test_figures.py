"""Static figures: what a view shows of a reading, captions and sizes."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mha_viz as mv
from mha_viz import numerals
from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError, UnknownHead
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import POINTS_PER_MM, CellPicture, Curve, Text
from mha_viz.figures.drawing.theme import LIGHT, THEMES, palette
from mha_viz.figures.layout import Size, caption
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.difference import difference
from mha_viz.figures.layout.grid import grid, pool_matrix
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import (
    Block,
    View,
    build_block,
    compute_shown,
    find_focus,
    list_units,
    select_links,
    shades,
)
from mha_viz.files.assets import app_root
from tests import hostile
from tests.readings import make_long_reading, reading
from tests.sentences import TIRED, WIDE, read

H = Head(1, 2)
HEX = r"#[0-9a-f]{6}\b"
PROBLEM = "#b3541e"  # the bar beside what went wrong


@pytest.fixture
def pair_reading() -> Attention:
    return reading(words=(1, 3, 1), pair=(2, 1))


# ---- What a view shows -----------------------------------------------------------------------------------


def test_words_are_those_of_the_reading_by_words(pair_reading: Attention) -> None:
    view = View(unit="words")
    part = build_block(pair_reading, H, view, list_units(pair_reading, view))
    assert part.w == pytest.approx(pair_reading.by_words()[H], abs=1e-6)
    assert part.hidden == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("unit", ["words", "pieces"])
def test_hidden_and_rescaled_are_those_of_the_reading_itself(pair_reading: Attention, unit: str) -> None:
    whole = pair_reading.by_words() if unit == "words" else pair_reading
    for special, expected, hidden in (
        ("hide", whole.content().weights, whole.content().hidden),
        ("rescale", whole.without_special().weights, whole.without_special().hidden),
    ):
        view = View(unit=unit, special=special)
        part = build_block(pair_reading, H, view, list_units(pair_reading, view))
        assert part.w == pytest.approx(expected[H], abs=1e-6)
        assert part.hidden == pytest.approx(hidden[H], abs=1e-6)


def test_a_reading_that_was_rescaled_before_still_says_what_is_hidden(pair_reading: Attention) -> None:
    done = pair_reading.without_special()
    part = build_block(done, H, View(unit="pieces"), list_units(done, View(unit="pieces")))
    assert part.hidden == pytest.approx(done.hidden[H], abs=1e-5)


def test_nothing_is_hidden_of_a_row_of_zeros() -> None:
    weights = np.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype(np.float32)
    weights[..., :4, :] = 0
    attention = replace(reading(), weights=weights, quantity="gradient")
    view = View(unit="pieces", special="hide")
    hidden = build_block(attention, H, view, list_units(attention, view)).hidden
    assert hidden == pytest.approx(attention.without_special().hidden[H])
    assert hidden[:3].tolist() == [0, 0, 0]


def test_one_side_of_a_pair() -> None:
    attention = reading(words=(1, 3, 1), pair=(2, 1))
    view = View(unit="pieces", side="ab", special="hide")
    axes = list_units(attention, view)
    assert {u.segment for u in axes.rows} == {0}
    assert {u.segment for u in axes.cols} == {1}
    part = build_block(attention, H, view, axes)
    assert part.hidden == pytest.approx(1 - part.w.sum(axis=1), abs=1e-6)
    assert list_units(reading(), View(side="ab")) == list_units(reading(), View())  # one sentence has no sides


@given(st.integers(1, 10))
def test_the_heaviest_keys_of_each_query(k: int) -> None:
    w = reading(words=(1,) * 6).weights[0, 0]
    mask = select_links(w, f"top{k}")
    assert (mask.sum(axis=1) == min(k, w.shape[1])).all()
    for row, drawn in zip(w, mask, strict=True):
        assert row[drawn].min() >= row[~drawn].max(initial=0)


def test_links_by_weight_and_by_mass() -> None:
    w = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32)
    assert select_links(w, "min0.30").tolist() == [[True, True, False], [False, False, True]]
    assert select_links(w, "mass0.70").tolist() == [[True, True, False], [False, False, True]]
    assert select_links(w, "mass0.90").tolist() == [[True, True, True], [True, False, True]]
    assert select_links(np.zeros((1, 2), np.float32), "mass0.50").tolist() == [[True, False]]


def test_shades_by_hand() -> None:
    w = np.array([[0.5, 0.25], [0.1, 0.0]], np.float32)
    assert shades(w, "fixed").tolist() == [[128, 64], [26, 0]]
    assert shades(w, "head").tolist() == [[255, 128], [51, 0]]
    assert shades(w, "head", top=1.0).tolist() == shades(w, "fixed").tolist()
    assert shades(w, "row").tolist() == [[255, 128], [255, 0]]
    assert shades(np.array([[1, 0.001, 0.1, 0.0001]], np.float32), "log").tolist() == [[255, 0, 170, 0]]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_in_figures_has_the_colours_of_the_pages(name: str) -> None:
    page = tomllib.loads((app_root() / ".streamlit" / "config.toml").read_text("utf-8"))["theme"][name]
    theme = THEMES[name]
    assert (theme.ink, theme.accent) == (page["textColor"], page["primaryColor"])
    assert theme.ramp[0] == page["secondaryBackgroundColor"], "weight 0"


def test_styles_of_pages_name_no_colour_of_their_own() -> None:
    page = tomllib.loads((app_root() / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
    allowed = set(re.findall(HEX, f"{THEMES}{page}")) | {"#ffffff", PROBLEM}
    package = app_root() / "mha_viz"
    styles = [path for folder in ("app", "browser") for path in (package / folder).rglob("*.*")]
    named = {path.name: re.findall(HEX, path.read_text("utf-8")) for path in styles if path.suffix in (".py", ".css")}
    assert {name: set(colours) - allowed for name, colours in named.items() if set(colours) - allowed} == {}


def test_numbers_are_written_as_on_screen() -> None:
    weights = (0, 0.0004, 0.0005, 0.0625, 1)
    assert list(map(numerals.format_weight, weights)) == ["0.000", "<.001", "0.001", "0.063", "1.000"]
    assert list(map(numerals.percent, (0.0123, 0.62, 1))) == ["1.2%", "62.0%", "100.0%"]


BAD: list[dict[str, Any]] = [
    {"unit": "letters"}, {"special": "rescaled"}, {"links": "top0"}, {"links": "top11"}, {"links": "min1.5"},
    {"scale": "linear"}, {"side": "abc"}, {"pin": "10"}, {"pin": "q12345"}, {"links": 3}, {"unit": "words\n"},
]  # fmt: skip


@pytest.mark.parametrize("settings", BAD, ids=str)
def test_a_setting_that_does_not_exist_is_refused_with_what_does(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="Expected one of"):
        View(**settings)


@pytest.mark.parametrize(
    "size", [{"width_mm": 0}, {"width_mm": math.nan}, {"font_pt": 100}, {"look": "blue"}, {"width_mm": "85"}], ids=str
)
def test_a_size_that_no_page_has_is_refused(size: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="Expected"):
        Size(**size)


def test_a_pin_counts_pieces_and_holds_the_unit_around_them() -> None:
    attention = reading(words=(1, 3, 1))
    assert find_focus(list_units(attention, View(pin="q3")), View(pin="q3")) == (2, None)
    assert find_focus(list_units(attention, View(unit="pieces")), View(unit="pieces", pin="q3k1")) == (3, 1)
    hidden = View(special="hide", pin="q0")
    assert find_focus(list_units(attention, hidden), hidden) is None
    assert find_focus(list_units(attention, View()), View(pin="q99")) is None


def test_the_numbers_of_a_picture(pair_reading: Attention) -> None:
    table = compute_shown(pair_reading, [H, Head(0, 0)], View(special="hide"))
    assert table.weights.shape == (2, 5, 5)
    assert table.rows == table.cols
    assert table.row_index == (1, 2, 3, 5, 6)  # counted among all units, [CLS] is 0


# ---- Figures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 85, 178, 300])
def test_a_figure_is_as_wide_as_it_was_asked_to_be_and_nothing_sticks_out(width: float) -> None:
    attention, size = reading(words=(1, 2, 1, 1)), Size(width_mm=width)
    figures = [heatmap(attention, H, None, size), links(attention, [H], None, size), grid(attention, None, size)]
    figures += [compare([Panel(attention, H)] * 3, None, size)]
    for drawing in figures:
        assert drawing.width == pytest.approx(width * POINTS_PER_MM)
        for mark in drawing.marks:
            if isinstance(mark, CellPicture):
                assert mark.x >= -0.01
                assert mark.x + mark.width <= drawing.width + 0.01
                assert mark.y + mark.height <= drawing.height + 0.01


def test_a_single_map_fits_one_column_and_where_it_has_no_room_two() -> None:
    # In 77 mm are 347 pixels, in 178 mm 812; a name of one letter takes 20, and a row with its label 9.
    short, long, longest = (Attention.from_tensors([np.eye(n)[None]] * 2, ["a"] * n) for n in (30, 45, 300))
    for figure in (mv.figures.heatmap(short, "L0H0"), mv.figures.links(short, "L0H0"), _difference(short)):
        assert figure.drawing.width == pytest.approx(77 * POINTS_PER_MM)
        assert not figure.warnings
    for figure in (mv.figures.heatmap(long, "L0H0"), _difference(long)):
        assert figure.drawing.width == pytest.approx(178 * POINTS_PER_MM)
        assert figure.warnings == (
            "The figure is 178 mm wide, because 77 mm are too narrow for this text. Give width_mm to choose.",
        )
    heads = mv.figures.links(short, heads=["L0H0", "L0H0"])
    for figure in (mv.figures.grid(short), mv.figures.compare([(short, "L0H0")]), heads):
        assert figure.drawing.width == pytest.approx(178 * POINTS_PER_MM)
    assert not mv.figures.heatmap(long, "L0H0", width_mm=178).warnings
    assert mv.figures.heatmap(long, "L0H0", width_mm=77).drawing.width == pytest.approx(77 * POINTS_PER_MM)
    assert mv.figures.heatmap(longest, "L0H0").warnings[1].startswith("Every ")


def _difference(attention: Attention) -> mv.figures.Figure:
    return mv.difference((attention, "L0H0"), (attention, "L1H0"))


def test_labels_have_the_asked_size() -> None:
    drawing = heatmap(reading(), H, None, Size(width_mm=178, font_pt=9))
    assert max(mark.size for mark in drawing.marks if isinstance(mark, Text)) == pytest.approx(9)


def test_the_cells_of_a_heatmap_are_the_weights_on_the_ramp() -> None:
    attention = reading()
    cells = next(m for m in heatmap(attention, H, View(unit="pieces")).marks if isinstance(m, CellPicture))
    expected = palette(LIGHT.ramp)[np.rint(attention[H].astype(float) * 255).astype(int)]
    assert (cells.pixels == expected).all()


def test_transparent_means_no_background_and_no_lines_of_paper() -> None:
    clear = heatmap(reading(), H, None, Size(transparent=True))
    assert clear.background is None
    assert len(clear.marks) < len(heatmap(reading(), H).marks)


@pytest.mark.parametrize("width", [85, 178])
@pytest.mark.parametrize("kind", ["links", "compare"])
def test_the_names_of_the_columns_are_whole_beside_short_tokens(kind: str, width: float) -> None:
    attention = Attention.from_tensors([np.full((1, 3, 3), 1 / 3)], ["a", "b", "c"])
    size = Size(width)
    head = Head(0, 0)
    drawing = (
        links(attention, [head], None, size)
        if kind == "links"
        else compare([Panel(attention, head)], None, size, "links")
    )
    ends = {m.text: m for m in drawing.marks if isinstance(m, Text)}
    assert ends["from (query)"].x - fonts.width("from (query)", ends["from (query)"].size) >= 0
    assert ends["to (key)"].x + fonts.width("to (key)", ends["to (key)"].size) <= drawing.width


def test_links_of_several_heads_say_which_colour_is_which() -> None:
    attention = reading(heads=12)
    heads = [Head(1, head) for head in range(12)]
    drawing = links(attention, heads, None, Size(85))
    names = [m for m in drawing.marks if isinstance(m, Text) and "(2-" in m.text]
    assert [m.text for m in names] == [f"L1H{i} (2-{i + 1})" for i in range(12)]
    samples = [m for m in drawing.marks if isinstance(m, Curve)][-12:]
    assert [m.colour for m in samples] == list(LIGHT.heads[:12])
    assert all(m.x + fonts.width(m.text, m.size) <= drawing.width and m.y < drawing.height for m in names)
    assert not [t for t in links(attention, heads[:1]).texts() if "(2-" in t]


def test_the_strongest_link_is_between_words_and_says_so() -> None:
    w = np.array([[[0.9, 0.1, 0.0], [0.6, 0.1, 0.3], [0.8, 0.2, 0.0]]])
    attention = Attention.from_tensors([w], ["[CLS]", "cat", "sat"])
    sentence = "Strongest link between words: “cat” to “sat”, 0.300."
    assert sentence in heatmap(attention, Head(0, 0)).alt
    assert "“sat” to “cat”, 1.000, rescaled." in heatmap(attention, Head(0, 0), View(special="rescale")).alt
    alone = Attention.from_tensors([np.eye(1)[None]], ["[CLS]"])
    assert "Strongest link: “[CLS]” to “[CLS]”, 1.000." in heatmap(alone, Head(0, 0)).alt


def test_a_difference_says_in_the_picture_what_is_minus_what() -> None:
    one, two = read(TIRED), read(WIDE)
    heads = difference(Panel(one, Head(3, 1)), Panel(one, Head(5, 11))).texts()
    assert {"L5H11 (6-12) minus L3H1 (4-2)", "more in L5H11 (6-12)"} <= set(heads)
    assert "more in L3H1 (4-2)" in heads
    words = difference(Panel(one, Head(3, 1)), Panel(two, Head(3, 1)), None, Size(300)).texts()
    assert "L3H1 (4-2) with “wide” minus L3H1 (4-2) with “tired”" in words
    assert "the second minus the first" in difference(Panel(one, H), Panel(one, H)).texts()


def test_nothing_hidden_is_no_less_than_nothing() -> None:
    assert caption.compute_hidden_share([Block(np.ones((1, 1), np.float32), np.array([-1e-7], np.float32))]) == 0


def test_a_long_text_is_pooled_in_the_grid_so_that_peaks_stay() -> None:
    w = np.zeros((300, 300), np.float32)
    w[123, 277] = 1
    small = pool_matrix(w, 96)
    assert max(small.shape) <= 96
    assert small.max() == 1
    assert (pool_matrix(w[:50, :50], 96) == w[:50, :50]).all()
    drawing = grid(make_long_reading(2, 2, 200))
    assert max(max(m.pixels.shape) for m in drawing.marks if isinstance(m, CellPicture)) <= 96


def test_a_head_that_is_not_there_and_none_at_all() -> None:
    with pytest.raises(UnknownHead):
        heatmap(reading(), Head(9, 9))
    with pytest.raises(SettingError, match="No head"):
        links(reading(), [])


def test_captions_say_model_text_head_what_was_done_and_what_is_hidden() -> None:
    attention = load_first_reading()
    caption = links(attention, [Head(3, 1)], View(special="rescale", links="top3", pin="q10")).caption
    assert "L3H1 (4-2)" in caption
    assert "sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…)" in caption
    assert f"“{TIRED}”" in caption
    assert "3 heaviest keys" in caption
    assert "Only the links from “it” are drawn." in caption
    assert "rows rescaled to sum to 1; " in caption
    view = View(special="rescale")
    gone = build_block(attention, Head(3, 1), view, list_units(attention, view)).hidden.mean()
    assert f"{numerals.percent(float(gone))} of this head’s attention went to hidden tokens" in caption
    about = heatmap(attention, Head(3, 1), View(special="hide")).about
    assert about["heads"] == "L3H1"
    assert about["special"] == "hide"
    assert float(about["hidden"]) == pytest.approx(gone, abs=1e-3)


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_tokens_are_drawn_as_they_are(text: str) -> None:
    attention = Attention.from_tensors([np.full((1, 2, 2), 0.5)] * 2, [text[:300], "x"])
    for drawing in (heatmap(attention, Head(0, 0)), links(attention, [Head(1, 0)]), grid(attention)):
        assert drawing.caption
        assert all(mark.text for mark in drawing.marks if isinstance(mark, Text))


def test_a_grid_of_kept_heads_names_them_as_the_model_does() -> None:
    kept = reading().only(["L1H1", "L1H2"])
    assert mv.figures.grid(kept, heads=[1]).caption.startswith("Attention of chosen heads: L1H2 (2-3), of all 2 heads")
    assert mv.figures.grid(kept.only(["L0H0"])).caption.startswith("Attention of every head: 1 head of")


def test_captions_say_rescaled_only_of_rows_that_were() -> None:
    text = reading()
    norms = replace(text, weights=3 * text.weights, quantity="norm")
    signed = replace(text, weights=text.weights - text.weights.mean(axis=-1, keepdims=True), quantity="gradient")
    for attention, view in (
        (norms.without_special(), View()),
        (signed.without_special(), View()),
        (signed, View(special="rescale")),
    ):
        assert "Special tokens are hidden, nothing is rescaled; " in heatmap(attention, H, view).caption
        assert " goes to hidden tokens" in heatmap(attention, H, view).caption
    for attention, view in ((text.without_special(), View()), (norms, View(special="rescale"))):
        assert "rows rescaled to sum to 1; " in heatmap(attention, H, view).caption
