"""A drawing as PDF: fonts embedded, text that can be searched and copied, the same bytes for the same drawing.

What reportlab cannot set is drawn as outlines, shaped by HarfBuzz: joined and right-to-left scripts, combining marks,
and fonts with CFF outlines, which it cannot embed. Where the font itself can be embedded, the text lies invisibly on
the outlines, so that it is found and copied all the same.
"""

from __future__ import annotations

import io
import unicodedata
from functools import cache
from typing import Any

import uharfbuzz
from bidi.algorithm import get_display
from fontTools.pens.recordingPen import DecomposingRecordingPen
from PIL import Image
from reportlab.lib.colors import HexColor
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFError, TTFont
from reportlab.pdfgen.canvas import Canvas

from mha_viz import fonts
from mha_viz.drawing import Cells, Curve, Drawing, Mark, Rect, Text
from mha_viz.exports.svg import EDITABLE
from mha_viz.fonts import Font, Run
from mha_viz.text import clean

INVISIBLE = 3  # a text's rendering mode: there for search and copying, not drawn


def pdf(drawing: Drawing) -> bytes:
    """The bytes of a PDF file of one page."""
    buffer = io.BytesIO()
    size = (drawing.width, drawing.height)
    canvas = Canvas(buffer, pagesize=size, invariant=1, pageCompression=1)
    canvas.setTitle(clean(drawing.alt)[:200])
    canvas.setSubject(clean(drawing.caption))
    canvas.setCreator("mha_viz")
    canvas.setKeywords([clean(f"{name}: {value}") for name, value in drawing.about.items()])
    if drawing.background:
        canvas.setFillColor(HexColor(drawing.background))
        canvas.rect(0, 0, *size, stroke=0, fill=1)
    for mark in drawing.marks:
        _draw(canvas, mark, drawing.height)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _draw(canvas: Any, mark: Mark, height: float) -> None:
    """One mark; PDF counts upward from the lower edge."""
    if isinstance(mark, Text):
        _text(canvas, mark, height)
    elif isinstance(mark, Curve):
        (a, b, c, d) = ((x, height - y) for x, y in mark.points)
        _stroke(canvas, mark.colour, mark.opacity, mark.width)
        canvas.bezier(*a, *b, *c, *d)
    elif isinstance(mark, Rect):
        _rectangle(canvas, mark, height)
    elif mark.pixels.shape[0] * mark.pixels.shape[1] <= EDITABLE:
        _cells(canvas, mark, height)
    else:
        picture = ImageReader(Image.fromarray(mark.pixels))
        canvas.drawImage(picture, mark.x, height - mark.y - mark.height, mark.width, mark.height)


def _rectangle(canvas: Any, mark: Rect, height: float) -> None:
    if mark.fill:
        _fill(canvas, mark.fill, mark.opacity)
    if mark.stroke:
        _stroke(canvas, mark.stroke, mark.opacity, mark.stroke_width)
    at = (mark.x, height - mark.y - mark.height, mark.width, mark.height)
    canvas.rect(*at, stroke=int(bool(mark.stroke)), fill=int(bool(mark.fill)))


def _fill(canvas: Any, colour: str, opacity: float) -> None:
    canvas.setFillColor(HexColor(colour))
    canvas.setFillAlpha(opacity)  # after the colour, which brings an opacity of its own


def _stroke(canvas: Any, colour: str, opacity: float, width: float) -> None:
    canvas.setStrokeColor(HexColor(colour))
    canvas.setStrokeAlpha(opacity)
    canvas.setLineWidth(width)


def _cells(canvas: Any, mark: Cells, height: float) -> None:
    """One rectangle a cell, each a hair larger than its cell: readers would else show the paper between them."""
    rows, cols = mark.pixels.shape[:2]
    wide, high = mark.width / cols, mark.height / rows
    canvas.setFillAlpha(1)
    for r, row in enumerate(mark.pixels.tolist()):
        y = height - mark.y - (r + 1) * high
        for c, colour in enumerate(row):
            canvas.setFillColorRGB(*(value / 255 for value in colour))
            more = 0.05 if c + 1 < cols else 0.0
            canvas.rect(mark.x + c * wide, y, wide + more, high + (0.05 if r else 0.0), stroke=0, fill=1)


# ---- Text -----------------------------------------------------------------------------------------------


def _text(canvas: Any, mark: Text, height: float) -> None:
    runs = fonts.runs(_in_order(mark.text), mark.weight)
    widths = [_width(run, mark) for run in runs]
    total = sum(widths)
    first = next((run.font for run in runs if run.font), fonts.face(mark.weight))
    canvas.saveState()
    canvas.translate(mark.x, height - mark.y)
    canvas.rotate(mark.turn)
    canvas.translate(-total * {"start": 0, "middle": 0.5, "end": 1}[mark.anchor], -first.middle * mark.size)
    _fill(canvas, mark.colour, mark.opacity)
    x = 0.0
    for run, width in zip(runs, widths, strict=True):
        _run(canvas, run, x, mark)
        x += width
    canvas.restoreState()


def _width(run: Run, mark: Text) -> float:
    """Letters that are joined or stacked take another width than they do alone."""
    if run.font is None or _is_plain(run.text):
        return fonts.width(run.text, mark.size, mark.weight)
    return float(sum(p.x_advance for p in _shaped(run.text, run.font).glyph_positions)) * mark.size / run.font.em


def _in_order(text: str) -> str:
    """A text as it reads from left to right on paper, stretch by stretch; within a right-to-left stretch the letters
    keep the order of reading, which is what shapes them."""
    if not any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return text
    words = str(get_display(text))
    return _turned(words)


def _turned(shown: str) -> str:
    """Stretches of right-to-left letters, which are in the order of the eye, back in the order of reading."""
    made: list[str] = []
    stretch: list[str] = []
    for character in shown:
        if unicodedata.bidirectional(character) in ("R", "AL", "NSM"):
            stretch.append(character)
            continue
        made += [*reversed(stretch), character]
        stretch = []
    return "".join([*made, *reversed(stretch)])


def _run(canvas: Any, run: Run, x: float, mark: Text) -> None:
    text = "".join(c for c in run.text if unicodedata.category(c) not in ("Cf", "Cc"))
    if run.font is None:
        _boxes(canvas, text, x, mark)
        return
    name = _embedded(run.font) if run.font.outlines == "glyf" else None
    if name is not None and _is_plain(text):
        canvas.setFont(name, mark.size)
        canvas.drawString(x, 0, text)
        return
    _outlines(canvas, run, x, mark.size)
    if name is not None:
        canvas.setFont(name, mark.size)
        canvas.drawString(x, 0, text, mode=INVISIBLE)


def _is_plain(text: str) -> bool:
    """One letter, one shape, from left to right: nothing to be joined, turned or stacked."""
    return all(
        unicodedata.bidirectional(c) not in ("R", "AL") and unicodedata.category(c)[0] != "M" and not _joins(c)
        for c in text
    )


def _joins(character: str) -> bool:
    """True in the blocks of Indic and South-East Asian scripts, whose letters change with their neighbours."""
    return (
        0x0900 <= ord(character) <= 0x0DFF or 0x0E00 <= ord(character) <= 0x109F or 0x1780 <= ord(character) <= 0x17FF
    )


@cache
def _embedded(font: Font) -> str | None:
    """The font's name in reportlab, which embeds the glyphs that are used; None when it cannot read the file."""
    name = f"{font.family}-{abs(hash((font.path, font.number))):x}"
    try:
        pdfmetrics.registerFont(TTFont(name, font.path, subfontIndex=font.number, shapable=False))
    except TTFError:
        return None
    return name


@cache
def _shaper(font: Font) -> Any:
    face = uharfbuzz.Face(uharfbuzz.Blob.from_file_path(font.path), font.number)
    return uharfbuzz.Font(face)


def _shaped(text: str, font: Font) -> Any:
    """Glyphs and their places, from left to right, for a text in the order of reading."""
    buffer = uharfbuzz.Buffer()
    buffer.add_str(text)
    buffer.guess_segment_properties()
    uharfbuzz.shape(_shaper(font), buffer)
    return buffer


def _outlines(canvas: Any, run: Run, x: float, size: float) -> None:
    """The run's glyphs, shaped, as filled shapes."""
    font = run.font or fonts.face(400)
    buffer = _shaped(run.text, font)
    scale = size / font.em
    order, shapes = font.tables.getGlyphOrder(), font.tables.getGlyphSet()
    path = canvas.beginPath()
    pen_x = 0
    for info, position in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
        pen = DecomposingRecordingPen(shapes)
        shapes[order[info.codepoint]].draw(pen)
        at = (x + (pen_x + position.x_offset) * scale, position.y_offset * scale)
        _trace(path, pen.value, at, scale)
        pen_x += position.x_advance
    canvas.drawPath(path, stroke=0, fill=1)


def _trace(path: Any, strokes: Any, at: tuple[float, float], scale: float) -> None:
    """A glyph's recorded pen strokes on a PDF path; quadratic curves become cubic ones."""

    def place(point: Any) -> tuple[float, float]:
        return at[0] + point[0] * scale, at[1] + point[1] * scale

    here = (0.0, 0.0)
    for kind, points in strokes:
        if kind == "moveTo":
            here = place(points[0])
            path.moveTo(*here)
        elif kind == "lineTo":
            here = place(points[0])
            path.lineTo(*here)
        elif kind == "curveTo":
            a, b, here = (place(point) for point in points)
            path.curveTo(*a, *b, *here)
        elif kind == "qCurveTo":
            here = _quadratic(path, here, [None if p is None else place(p) for p in points])
        else:
            path.close()


def _quadratic(path: Any, here: tuple[float, float], points: list[Any]) -> tuple[float, float]:
    """TrueType's chain of off-curve points, with the on-curve points between them implied."""
    if points[-1] is None:  # a contour without a point on it
        points = points[:-1]
        first = _between(points[-1], points[0])
        path.moveTo(*first)
        here, points = first, [*points, first]
    *offs, end = points
    for i, off in enumerate(offs):
        to = end if i + 1 == len(offs) else _between(off, offs[i + 1])
        a = (here[0] + (off[0] - here[0]) * 2 / 3, here[1] + (off[1] - here[1]) * 2 / 3)
        b = (to[0] + (off[0] - to[0]) * 2 / 3, to[1] + (off[1] - to[1]) * 2 / 3)
        path.curveTo(*a, *b, *to)
        here = to
    return here


def _between(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def _boxes(canvas: Any, text: str, x: float, mark: Text) -> None:
    """Where no font has a character: a box, as everywhere."""
    _stroke(canvas, mark.colour, mark.opacity, mark.size / 20)
    for i in range(len(text)):
        side = mark.size * fonts.BOX
        canvas.rect(x + i * side + side * 0.1, 0, side * 0.8, mark.size * 0.7, stroke=1, fill=0)
