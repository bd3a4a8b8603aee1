"""Figures of long texts: what is on a page, what is left out, and the notes about it."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz import figures as figure_api
from mha_viz.attention import Attention, Head
from mha_viz.errors import FigureWarning
from mha_viz.figures.drawing.marks import POINTS_PER_MM, CellPicture, Curve, Drawing, Text
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout import PAGE_MM, Size
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.excerpt import cut_excerpts
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import Focus, View
from tests.readings import make_long_reading, reading

H = Head(0, 0)


def diagonal(n: int) -> Attention:
    """Every token attends to the previous one, the first to itself."""
    w = np.eye(n, k=-1)
    w[0, 0] = 1
    return Attention.from_tensors([w[None]], [f"t{i}" for i in range(n)])


def tokens_of(drawing: Drawing) -> list[str]:
    return [text for text in drawing.texts() if re.fullmatch(r"t\d+", text)]


# ---- Which tokens ----------------------------------------------------------------------------------------


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 40), st.integers(1, 4))
def test_columns_hold_no_more_than_fits_and_every_token_of_a_text_that_fits(
    rows: int, cols: int, fit: int, across: int
) -> None:
    parts, notes = cut_excerpts(np.ones((rows, cols)), None, fit, across)
    assert len(parts) <= across
    assert all(len(side) <= fit for part in parts for side in part)
    whole = max(rows, cols) <= fit * across
    for length, ranges in zip((rows, cols), zip(*parts, strict=True), strict=True):
        drawn = [i for part in dict.fromkeys(ranges) for i in part]
        assert drawn == list(range(len(drawn)))  # in order, without gaps, each once
        if whole:
            assert len(drawn) == length
    assert bool(notes) == (max(rows, cols) > fit)


def test_what_is_left_out_is_counted() -> None:
    w = np.zeros((4, 4))
    w[0, 0], w[1, 3], w[3, 3] = 0.5, 0.3, 0.2
    parts, (note,) = cut_excerpts(w, None, 2, 2)
    assert [(list(part.rows), list(part.cols)) for part in parts] == [([0, 1], [0, 1]), ([2, 3], [2, 3])]
    assert note.caption == "The 4 tokens are set in 2 columns; 30.0% of the attention is left out."
    _, (note,) = cut_excerpts(w, None, 2, 1)
    assert note.caption == "The first 2 of 4 tokens are drawn; 50.0% of the attention is left out."


def test_a_window_holds_what_is_held_and_most_of_its_attention() -> None:
    w = np.zeros((20, 20))
    w[15, [1, 2, 9]] = 0.4, 0.35, 0.25
    ((rows, cols),), (note,) = cut_excerpts(w, Focus(15, None), 5, 3)
    assert list(rows) == [13, 14, 15, 16, 17]
    assert {1, 2} <= set(cols)
    assert "Of 20 tokens, 5 on each axis are drawn, around the pinned token; 25.0% of its attention" in note.caption
    ((rows, cols),), (note,) = cut_excerpts(w, Focus(19, 9), 5, 3)
    assert list(rows) == [15, 16, 17, 18, 19]
    assert 9 in cols
    ((rows, cols),), (note,) = cut_excerpts(w, Focus(None, 9), 5, 3)
    assert (15 in rows, 9 in cols) == (True, True)
    assert "; 0.0% of its attention" in note.caption


@pytest.mark.parametrize("focus", [None, Focus(None, 0), Focus(0, None)])
def test_signed_numbers_are_left_out_by_their_sizes(focus: Focus | None) -> None:
    signed = np.array([[-1.0, 2, -3, 4]] * 4)
    assert cut_excerpts(signed, focus, 2, 1) == cut_excerpts(np.abs(signed), focus, 2, 1)


def test_nothing_is_left_out_of_zeros() -> None:
    for focus in (None, Focus(0, None)):
        _, (note,) = cut_excerpts(np.zeros((4, 4)), focus, 2, 1)
        assert "; 0.0% of " in note.caption


def test_heads_whose_signs_differ_do_not_cancel_in_what_is_left_out() -> None:
    w = np.random.default_rng(0).normal(size=(1, 1, 40, 40)).astype(np.float32)
    both = Attention.from_tensors(np.concatenate([w, -w], axis=1), [f"t{i}" for i in range(40)], quantity="gradient")
    sizes = replace(both, weights=np.abs(both.weights))
    notes = [links(a, [H, Head(0, 1)], View(pin="q0"), Size(max_height_mm=60)).notes for a in (both, sizes)]
    assert notes[0] == notes[1] != ()


# ---- On the page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 59, 75, 160])
@pytest.mark.parametrize("width", [85, 178])
def test_links_fit_on_a_page_with_letters_of_the_asked_size(count: int, width: float) -> None:
    drawing = links(diagonal(count), [H], None, Size(width))
    assert drawing.height <= PAGE_MM * POINTS_PER_MM + 0.01
    assert drawing.width == pytest.approx(width * POINTS_PER_MM)
    assert {round(m.size, 3) for m in drawing.marks if isinstance(m, Text) and m.text in tokens_of(drawing)} == {8}
    assert max(m.size for m in drawing.marks if isinstance(m, Text)) == pytest.approx(8)
    assert all(m.y < drawing.height for m in drawing.marks if isinstance(m, Text))
    left_out = count - len(set(tokens_of(drawing)))
    assert (left_out > 0) == ("The first" in drawing.full_caption)


def test_a_long_text_in_columns_has_every_token_and_the_links_inside_them() -> None:
    drawing = links(diagonal(75), [H])
    assert tokens_of(drawing).count("t74") == 2
    assert set(tokens_of(drawing)) == {f"t{i}" for i in range(75)}
    assert len([m for m in drawing.marks if isinstance(m, Curve)]) == 20  # the first of equally strong ones
    assert "The 75 tokens are set in 2 columns." in drawing.full_caption


def test_a_held_token_of_a_long_text_is_in_the_picture_with_its_link() -> None:
    drawing = links(diagonal(160), [H, H], View(pin="q120"))
    held = [m.text for m in drawing.marks if isinstance(m, Text) and m.colour == LIGHT.accent]
    assert held == ["t120"]
    assert "1.000" in drawing.texts()
    assert "around the pinned token; 0.0% of its attention is left out." in drawing.full_caption


def test_a_higher_page_takes_more_and_a_lower_one_less() -> None:
    counts = [len(set(tokens_of(links(diagonal(160), [H], None, Size(85, max_height_mm=mm))))) for mm in (60, 220, 700)]
    assert counts == sorted(set(counts))
    assert counts[-1] == 160


def test_cross_attention_keeps_a_short_side_whole() -> None:
    w = np.full((1, 150, 5), 0.2)
    cross = Attention.from_tensors([w], [f"t{i}" for i in range(150)], keys=["a", "b", "c", "d", "e"])
    drawing = links(cross, [H])
    assert len(set(tokens_of(drawing))) == 150
    assert drawing.texts().count("e") == 3
    assert "set in 3 columns." in drawing.full_caption


# ---- Notes -----------------------------------------------------------------------------------------------


def test_labels_that_are_left_out_of_a_heatmap_are_announced() -> None:
    narrow, wide = (heatmap(diagonal(59), H, None, Size(width)) for width in (85, 178))
    assert len(tokens_of(narrow)) == 2 * 30
    assert narrow.full_caption.endswith("Every 2nd token is labelled.")
    assert len(tokens_of(wide)) == 2 * 59
    assert wide.notes == ()
    assert "is named" not in narrow.caption  # those of the interactive page, which has other labels


def test_a_heatmap_of_a_long_text_shows_what_is_around_the_held_token_with_every_label() -> None:
    size = Size(85, max_height_mm=120)
    whole, drawing = (heatmap(diagonal(160), H, view, size) for view in (None, View(pin="q120")))
    assert len(tokens_of(drawing)) == 2 * 38
    held = [m.text for m in drawing.marks if isinstance(m, Text) and m.colour == LIGHT.accent]
    assert held == ["t120"]
    assert "t119" in drawing.texts()  # to which it attends
    assert "Of 160 tokens, 38 on each axis are drawn, around the pinned token; 0.0% of its" in drawing.full_caption
    assert "is named" not in drawing.full_caption
    (note,) = [note for note in drawing.notes if "around the pinned token" in str(note)]
    assert "raise width_mm and max_height_mm or lower font_pt" in str(note)
    assert "token is labelled." in whole.full_caption
    every, around = (
        next(m for m in d.marks if isinstance(m, CellPicture)).pixels for d in (whole, drawing)
    )  # [row, column]
    assert (every.shape[:2], around.shape[:2]) == ((160, 160), (38, 38))
    assert (around == every[101:139, 82:120]).all()


def test_a_heatmap_is_no_higher_than_its_page() -> None:
    drawing = heatmap(diagonal(12), H, None, Size(300, max_height_mm=120))
    assert drawing.height <= 120 * POINTS_PER_MM
    assert drawing.notes == ()


def test_saving_warns_once_of_each_and_other_formats_do_not(tmp_path: Path) -> None:
    figure = figure_api.heatmap(diagonal(89), 0, 0, width_mm=85, font_pt=5)
    with pytest.warns(FigureWarning) as caught:
        figure.save(tmp_path / "f.svg")
    assert [str(w.message).partition(".")[0] for w in caught] == [
        "Every 2nd token is labelled", "The smallest letters are 3"
    ]  # fmt: skip
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.save(tmp_path / "f.csv")
        figure.save(tmp_path / "f.html")
        figure.to_bytes(".svg")
        figure_api.heatmap(diagonal(12), 0, 0).save(tmp_path / "short.svg")
    page = (tmp_path / "f.html").read_text("utf-8")
    assert "2nd token is labelled" not in page
    assert "2nd token is labelled" in (tmp_path / "f.svg").read_text("utf-8")


@pytest.mark.parametrize(("font_pt", "says"), [(8, False), (6, False), (5, True), (3, True)])
def test_letters_too_small_to_print_are_announced(font_pt: float, says: bool) -> None:
    drawing = heatmap(reading(), Head(1, 2), None, Size(178, font_pt))
    assert any("less than 5 pt is hard to read" in str(note) for note in drawing.notes) is says
    assert drawing.full_caption == drawing.caption  # readers of the figure see it


def test_panels_higher_than_a_page_are_announced() -> None:
    panels = [Panel(make_long_reading(1, 2, 60), H)] * 4
    (note,) = [note for note in compare(panels, kind="links").notes if "mm high" in str(note)]
    assert re.search(r"The figure is \d{3} mm high; at most 220 mm fit\. .*max_height_mm", str(note))
    assert not [note for note in compare(panels[:1], kind="links").notes if "mm high" in str(note)]
