"""The cases of the golden file, and the marks that static figures draw for them, in pixels of the screen."""

from __future__ import annotations

import base64
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mha_viz.attention import Attention, Head
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import CellPicture, Curve, Mark, Rect, Text, shift_marks
from mha_viz.figures.drawing.theme import GREY, LIGHT, Theme
from mha_viz.figures.layout import HeatmapLayout, grid_layout
from mha_viz.figures.layout.compare import draw_panels
from mha_viz.figures.layout.difference import build_difference_matrix, compute_difference
from mha_viz.figures.layout.grid import draw_grid_marks
from mha_viz.figures.layout.heatmap import Matrix, compute_label_step, draw_matrix, note_missing_labels
from mha_viz.figures.layout.links import TOP, build_strands, draw_link_marks
from mha_viz.figures.layout.panels import Panel, choose_difference_pin, find_pins, pack_comparison
from mha_viz.figures.layout.view import Axes, Unit, View, build_block, colour_cells, find_focus, list_units
from mha_viz.text import Piece, TokenizedText, build_text

FILE = Path(__file__).resolve().parent / "figures.json"
WIDTH = 430
CELLS = tuple(half / 2 for half in range(4, 2 * 20))  # sizes of cells, pixels
HEADS = (Head(0, 1), Head(0, 2))
TEXT, PAIR = "The electroencephalographer didn't sleep.", "She was tired"
VIEWS = {
    "as it opens": View(),
    "a query held, three links each": View(special="rescale", links="top3", scale="head", pin="q6"),
    "a key held, pieces, logarithmic": View(unit="pieces", special="hide", links="mass0.70", scale="log", pin="k8"),
    "one link held": View(links="min0.10", scale="row", pin="q1k2"),
    "from the first sentence to the second": View(side="ab", links="min0.05", scale="head"),
    "only special tokens are left": View(special="hide", side="bb", links="top1"),
}
# For a text of so many words that only the strongest links are drawn.
CROWDED = {
    "many words, every link": View(),
    "many words, three links each, a scale for each row": View(special="hide", links="top3", scale="row"),
    "many words, a query held": View(scale="head", pin="q5"),
}
WITH_SIGNS = {
    "numbers with a sign, on one scale per head": View(scale="head"),
    "numbers with a sign, the largest three, nothing rescaled": View(special="rescale", links="top3", scale="row"),
    "numbers with a sign, pieces, logarithmic": View(unit="pieces", special="hide", links="min0.10", scale="log"),
}
# For the three panels: the view, the pinned panel, the two that are subtracted.
TOGETHER = {
    "three panels on one scale": (View(scale="head"), 0, None),
    "a word held that two of them have": (View(pin="k6", scale="head", links="top3"), 0, None),
    "a link held in the second, a difference": (View(pin="q6k1", special="hide", links="min0.05"), 1, (0, 1)),
    "a replaced word held, the other way round": (View(pin="k7", scale="log", special="rescale"), 0, (1, 0)),
    "what one panel alone has": (View(pin="q2", unit="pieces"), 2, (0, 1)),
}


def reading() -> Attention:
    """Return the reading of two sentences in subwords, with one long word and weights of four decimals."""
    spans = [(0, 3), (4, 11), (11, 18), (18, 27), (28, 31), (31, 34), (35, 40), (40, 41)]
    words = [0, 1, 1, 1, 2, 2, 3, 4]
    pieces = [Piece("[CLS]", 0, 0, None, 0)]
    pieces += [Piece(TEXT[s:e], s, e, w, 0) for (s, e), w in zip(spans, words, strict=True)]
    pieces += [Piece("[SEP]", 0, 0, None, 0)]
    pieces += [Piece(PAIR[s:e], s, e, 5 + i, 1) for i, (s, e) in enumerate([(0, 3), (4, 7), (8, 13)])]
    pieces += [Piece("[SEP]", 0, 0, None, 1)]
    n = len(pieces)
    whole = np.random.default_rng(7).dirichlet(np.full(n, 0.25), (1, 3, n))
    weights = np.round(whole, 4)
    weights[..., 0] += 1 - weights.sum(axis=-1)
    return Attention("made", "", build_text(TEXT, PAIR, pieces), np.round(weights, 4).astype(np.float32))


def make_crowded_reading() -> Attention:
    """Return the reading of a long text with a special token at either end, which get most of the weight."""
    names = ["[CLS]", *(f"w{number}" for number in range(26)), "[SEP]"]
    n = len(names)
    share = np.array([4, *[0.2] * (n - 2), 4])
    weights = np.round(np.random.default_rng(10).dirichlet(share, (1, 3, n)), 4)
    weights[..., 0] += 1 - weights.sum(axis=-1)
    return Attention.from_tensors(np.round(weights, 4).astype(np.float32), names)


def make_signed_reading() -> Attention:
    """Return the reading of :func:`reading` with signed numbers."""
    numbers = np.round(np.random.default_rng(9).normal(0, 0.2, reading().weights.shape), 4)
    return replace(reading(), weights=numbers.astype(np.float32), quantity="gradient")


def make_panels() -> list[Panel]:
    """Return two readings of one sentence, once with a word replaced, and a head of a shorter sentence."""
    first = reading()
    tokens = list(first.text.tokens)
    tokens[7] = replace(tokens[7], text="dream")
    other_text = TokenizedText(TEXT.replace("sleep", "dream"), PAIR, tuple(tokens))
    reversed_heads = Attention("made", "", other_text, first.weights[:, ::-1, ::-1].copy())
    spans = [(0, 3), (4, 7), (8, 13)]
    pieces = [Piece("[CLS]", 0, 0, None, 0), *(Piece(PAIR[s:e], s, e, i, 0) for i, (s, e) in enumerate(spans))]
    short = np.round(np.random.default_rng(8).dirichlet(np.full(4, 0.5), (1, 3, 4)), 4)
    short[..., 0] += 1 - short.sum(axis=-1)
    shorter = Attention("made", "", build_text(PAIR, "", pieces), np.round(short, 4).astype(np.float32))
    return [Panel(first, HEADS[0]), Panel(reversed_heads, HEADS[1]), Panel(shorter, HEADS[0])]


def build_file() -> dict[str, Any]:
    """Return the content of the file.

    For one reading it has the marks of a heatmap, of links and of the grid in every view, and panels side by side with
    the difference of two.
    """
    attention = reading()
    with patch.object(fonts, "width", plain_width), patch.object(fonts, "cut_text", plain_cut):
        cases = {name: draw_view(attention, view, LIGHT) for name, view in VIEWS.items()}
        signed_cases = {name: draw_view(make_signed_reading(), view, GREY) for name, view in WITH_SIGNS.items()}
        crowded_cases = {
            name: {"view": asdict(view), "links": _links(make_crowded_reading(), view, LIGHT)}
            for name, view in CROWDED.items()
        }
        together = {name: draw_panel_marks(*settings) for name, settings in TOGETHER.items()}
    panels = base64.b64encode(pack_comparison(make_panels())).decode()
    return {
        "width": WIDTH,
        "open": [h.head for h in HEADS],
        "theme": LIGHT._asdict(),
        "grey": GREY._asdict(),  # for signed numbers, whose cells have a minus in this theme
        "reading": _reading(attention),
        "crowded": {"reading": _reading(make_crowded_reading()), "cases": crowded_cases},
        "cases": cases,
        "signed": {"matrices": _list_weights(make_signed_reading()), "cases": signed_cases},
        "panels": panels,
        "weights": [[float(str(w)) for w in p.attention[p.head].ravel()] for p in make_panels()],  # before packing
        "together": together,
        "labelled": [[cell, _labels_at(cell)] for cell in CELLS],
    }


def _labels_at(cell: float) -> list[object]:
    """Return the size of labels for this size of cells, their step, and the note on missing ones."""
    layout = HeatmapLayout(cell, 96, 96, 96 + 100 * cell, 96 + 100 * cell)
    axis = tuple(Unit(str(i), (i,), False, 0) for i in range(100))
    notes = note_missing_labels(layout, (96, 96), [Axes(axis, axis)])
    return [*compute_label_step(layout), notes[0].caption if notes else ""]


def _reading(attention: Attention) -> dict[str, Any]:
    text = attention.text
    return {
        "layers": 1,
        "heads": 3,
        "n": len(text),
        "tokens": [t.text for t in text.tokens],
        "segments": [t.segment for t in text.tokens],
        "special": [int(t.special) for t in text.tokens],
        "groups": [list(g) for g in text.groups],
        "words": [t.text for t in text.by_words().tokens],
        "matrices": _list_weights(attention),
    }


def _list_weights(attention: Attention) -> list[list[float]]:
    return [[float(str(w)) for w in matrix.ravel()] for matrix in attention.weights[0]]


def plain_width(text: str, size: float, weight: int = 400) -> float:
    """Return a width that makes every letter half its size wide, as in the test of the browser's side."""
    return 0.5 * size * len(text)


def plain_cut(text: str, size: float, room: float, weight: int = 400) -> str:
    if plain_width(text, size) <= room:
        return text
    fits = max(0, int(room / (0.5 * size)) - 1)
    return text[:fits] + "…"


def draw_view(attention: Attention, view: View, theme: Theme) -> dict[str, Any]:
    """Return the marks of one view."""
    axes = list_units(attention, view)
    focus = find_focus(axes, view)
    part = build_block(attention, HEADS[0], view, axes)
    matrix = Matrix(colour_cells(part, view.scale, theme), axes, focus, part.w if part.signed else None)
    heat, _ = draw_matrix(matrix, WIDTH, theme, max_cell=44)
    parts = [[build_block(attention, Head(0, head), view, axes) for head in range(attention.heads)]]
    columns = [*map(str, range(attention.heads))]
    grid = draw_grid_marks(parts, grid_layout(WIDTH, 1, attention.heads), view.scale, theme, ["L0"], columns)
    marks = {"heatmap": heat, "grid": grid}
    return {
        "view": asdict(view),
        "links": _links(attention, view, theme),
        **{kind: [as_dict(m) for m in drawing_marks] for kind, drawing_marks in marks.items()},
    }


def _links(attention: Attention, view: View, theme: Theme) -> list[dict[str, Any]]:
    axes = list_units(attention, view)
    strands = build_strands(attention, HEADS, view, axes, theme)
    marks, _ = draw_link_marks(strands, axes, find_focus(axes, view), WIDTH, theme)
    links = shift_marks(marks[2:], 0, -TOP)  # without the names of the columns, which are outside the canvas
    return [as_dict(mark) for mark in links]


def draw_panel_marks(view: View, pin_of: int, diff: tuple[int, int] | None) -> dict[str, Any]:
    """Return the marks of three panels, and of the difference of two of them."""
    panels = make_panels()
    pins = find_pins(panels, view, pin_of, diff)
    case: dict[str, Any] = {"view": asdict(view), "at": pin_of, "diff": diff}
    for kind, skipped in (("heatmap", 0), ("links", 2)):  # the names of the columns are outside the canvas
        drawings = draw_panels(panels, pins, view, kind, WIDTH, LIGHT, max_cell=44)  # type: ignore[arg-type]
        down = -TOP if kind == "links" else 0
        case[kind] = [[as_dict(m) for m in shift_marks(drawing.marks[skipped:], 0, down)] for drawing in drawings]
    if diff is not None:
        two = [panels[i] for i in diff]
        subtracted = compute_difference(two[0], two[1], view)
        side, pin = choose_difference_pin(panels, diff, pin_of, view)
        matrix = build_difference_matrix(subtracted, two[side], replace(view, pin=pin), LIGHT)
        marks, _ = draw_matrix(matrix, WIDTH, LIGHT, max_cell=44)
        case["difference"] = [as_dict(m) for m in marks]
    return case


def as_dict(mark: Mark) -> dict[str, Any]:
    """Return a mark as JSON, with numbers rounded to a millionth."""
    if isinstance(mark, CellPicture):
        place = {"x": mark.x, "y": mark.y, "width": mark.width, "height": mark.height}
        colours = [["#" + bytes(c).hex() for c in row] for row in mark.pixels.tolist()]
        return {"mark": "cells", **_round(place), "colours": colours}
    kind = {Text: "text", Curve: "curve", Rect: "rect"}[type(mark)]
    return {"mark": kind, **_round(asdict(mark))}


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _round(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_round(inside) for inside in value]
    return round(float(value), 6) if isinstance(value, int | float) and not isinstance(value, bool) else value
