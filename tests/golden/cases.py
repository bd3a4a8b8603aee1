"""The cases of the golden file, and the marks that the static figures draw for them, in the screen's pixels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mha_viz import fonts
from mha_viz.attention import Attention, Head
from mha_viz.drawing import Cells, Curve, Mark, Rect, Text, moved
from mha_viz.figures.heatmap import Matrix, matrix_marks
from mha_viz.figures.links import TOP, link_marks, strand
from mha_viz.figures.theme import LIGHT, palette
from mha_viz.figures.view import View, block, focus, shades, units
from mha_viz.text import Piece, tokenized

FILE = Path(__file__).resolve().parent / "figures.json"
WIDTH = 430
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


def reading() -> Attention:
    """Two sentences in pieces, one long word among them, with weights of four decimals."""
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
    return Attention("made", "", tokenized(TEXT, PAIR, pieces), np.round(weights, 4).astype(np.float32))


def everything() -> dict[str, Any]:
    """The whole file: one reading, and for every view the marks of a heatmap and of links."""
    attention = reading()
    with patch.object(fonts, "width", plain_width), patch.object(fonts, "cut", plain_cut):
        cases = {name: drawn(attention, view) for name, view in VIEWS.items()}
    text = attention.text
    said = {
        "layers": 1,
        "heads": 3,
        "n": len(text),
        "tokens": [t.text for t in text.tokens],
        "segments": [t.segment for t in text.tokens],
        "special": [int(t.special) for t in text.tokens],
        "groups": [list(g) for g in text.groups],
        "words": [t.text for t in text.by_words().tokens],
        "matrices": [[float(str(w)) for w in matrix.ravel()] for matrix in attention.weights[0]],
    }
    theme = {**LIGHT._asdict()}
    return {"width": WIDTH, "open": [h.head for h in HEADS], "theme": theme, "reading": said, "cases": cases}


def plain_width(text: str, size: float, weight: int = 400) -> float:
    """Every letter half its size wide, here and in the test of the browser's side."""
    return 0.5 * size * len(text)


def plain_cut(text: str, size: float, room: float, weight: int = 400) -> str:
    if plain_width(text, size) <= room:
        return text
    fits = max(0, int(room / (0.5 * size)) - 1)
    return text[:fits] + "…"


def drawn(attention: Attention, view: View) -> dict[str, Any]:
    """The marks of one view."""
    axes = units(attention.text, view)
    held = focus(axes, view)
    part = block(attention, HEADS[0], view, axes)
    pixels = palette(LIGHT.ramp)[shades(part.w, view.scale)]
    heat, _ = matrix_marks(Matrix(pixels, axes, held), WIDTH, LIGHT, largest=44)
    strands = [strand(attention, head, view, axes, LIGHT) for head in HEADS]
    ends_and_links, _ = link_marks(strands, axes, held, WIDTH, LIGHT)
    links = moved(ends_and_links[2:], 0, -TOP)  # without the names of the columns, which stand beside the canvas
    return {"view": asdict(view), "heatmap": [said(m) for m in heat], "links": [said(m) for m in links]}


def said(mark: Mark) -> dict[str, Any]:
    """A mark as JSON; numbers to a millionth."""
    if isinstance(mark, Cells):
        place = {"x": mark.x, "y": mark.y, "width": mark.width, "height": mark.height}
        colours = [["#" + bytes(c).hex() for c in row] for row in mark.pixels.tolist()]
        return {"mark": "cells", **_rounded(place), "colours": colours}
    kind = {Text: "text", Curve: "curve", Rect: "rect"}[type(mark)]
    return {"mark": kind, **_rounded(asdict(mark))}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inside) for inside in value]
    return round(float(value), 6) if isinstance(value, int | float) and not isinstance(value, bool) else value
