"""Write a drawing as PDF, with embedded fonts, text that can be searched and copied, and tags for screen readers.

The same drawing gives the same bytes.

Text that reportlab cannot set is drawn as outlines, shaped by HarfBuzz: joined and right-to-left scripts, combining
marks, and fonts with CFF outlines, which it cannot embed. If the font can be embedded, invisible text is placed over
the outlines, so that it can still be searched and copied.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import uharfbuzz
from PIL import Image
from reportlab import rl_config
from reportlab.lib.colors import HexColor
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics, ttfonts
from reportlab.pdfbase.ttfonts import TTFError, TTFont
from reportlab.pdfgen.canvas import Canvas

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.font_file import Font, PenCommand
from mha_viz.figures.drawing.fonts import FontRun
from mha_viz.figures.drawing.marks import CellPicture, Curve, Drawing, Mark, Polyline, Rect, Text
from mha_viz.figures.files import tags
from mha_viz.figures.files.svg import MAX_EDITABLE_CELLS, magnify
from mha_viz.text import clean

INVISIBLE_TEXT = 3  # text rendering mode of text that can be searched and copied but is not drawn
ANCHOR_SHARES = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a text's width that is before its anchor
Transform = tuple[float, float, float, float, float, float]  # x' = ax + cy + e, y' = bx + dy + f

_LOCK = Lock()  # reportlab keeps the fonts of all files, and their subsets, globally


def render_pdf(drawing: Drawing) -> bytes:
    """Return the drawing as a PDF file of one page."""
    with _LOCK:
        saved_settings = rl_config.useA85, ttfonts.makeToUnicodeCMap
        rl_config.useA85 = 0  # ASCII encoding would be a quarter larger, and slow
        ttfonts.makeToUnicodeCMap = _build_character_map
        try:
            return _render_pdf(drawing)
        finally:
            rl_config.useA85, ttfonts.makeToUnicodeCMap = saved_settings


def _render_pdf(drawing: Drawing) -> bytes:
    buffer = io.BytesIO()
    size = (drawing.width, drawing.height)
    first_font = _embed_font(fonts.get_face(400))  # without it, pages select Helvetica, which is not in the file
    options = {"lang": tags.LANGUAGE, "pdfVersion": tags.VERSION}
    canvas = Canvas(buffer, pagesize=size, invariant=1, pageCompression=1, initialFontName=first_font, **options)
    canvas.setViewerPreference("DisplayDocTitle", "true")
    canvas.setTitle(clean(drawing.alt)[:200])
    canvas.setAuthor("mha_viz")
    canvas.setSubject(clean(drawing.full_caption))
    canvas.setCreator("mha_viz")
    canvas.setKeywords([clean(f"{name}: {value}") for name, value in drawing.about.items()])
    if drawing.background:
        with tags.mark_artifact(canvas):
            canvas.setFillColor(HexColor(drawing.background))
            canvas.rect(0, 0, *size, stroke=0, fill=1)
    with tags.figure(canvas):
        for mark in drawing.marks:
            _draw_mark(canvas, mark, drawing.height)
    canvas.showPage()
    tags.add_tags(canvas, drawing)
    canvas.save()
    return buffer.getvalue()


def _draw_mark(canvas: Any, mark: Mark, height: float) -> None:
    """Draw one mark; PDF counts upward from the lower edge."""
    if isinstance(mark, Text):
        _draw_text(canvas, mark, height)
    elif isinstance(mark, Curve):
        (a, b, c, d) = ((x, height - y) for x, y in mark.points)
        _set_stroke(canvas, mark.colour, mark.opacity, mark.width)
        if mark.dash:
            canvas.setDash(list(mark.dash))
        canvas.bezier(*a, *b, *c, *d)
        if mark.dash:
            canvas.setDash()
    elif isinstance(mark, Polyline):
        _draw_polyline(canvas, mark, height)
    elif isinstance(mark, Rect):
        _draw_rectangle(canvas, mark, height)
    elif mark.pixels.shape[0] * mark.pixels.shape[1] <= MAX_EDITABLE_CELLS:
        _draw_cells(canvas, mark, height)
    else:
        picture = ImageReader(Image.fromarray(magnify(mark.pixels)))
        canvas.drawImage(picture, mark.x, height - mark.y - mark.height, mark.width, mark.height)


def _draw_polyline(canvas: Any, mark: Polyline, height: float) -> None:
    path = canvas.beginPath()
    for number, (x, y) in enumerate(mark.points):
        (path.lineTo if number else path.moveTo)(x, height - y)
    if mark.fill:
        path.close()
        _set_fill(canvas, mark.fill, mark.opacity)
    if mark.stroke:
        _set_stroke(canvas, mark.stroke, mark.opacity, mark.stroke_width)
    canvas.setDash(list(mark.dash))
    canvas.setLineJoin(1)
    canvas.drawPath(path, stroke=int(bool(mark.stroke)), fill=int(bool(mark.fill)))
    canvas.setLineJoin(0)
    canvas.setDash()


def _draw_rectangle(canvas: Any, mark: Rect, height: float) -> None:
    if mark.fill:
        _set_fill(canvas, mark.fill, mark.opacity)
    if mark.stroke:
        _set_stroke(canvas, mark.stroke, mark.opacity, mark.stroke_width)
    box = (mark.x, height - mark.y - mark.height, mark.width, mark.height)
    canvas.rect(*box, stroke=int(bool(mark.stroke)), fill=int(bool(mark.fill)))


def _set_fill(canvas: Any, colour: str, opacity: float) -> None:
    canvas.setFillColor(HexColor(colour))
    canvas.setFillAlpha(opacity)  # after the colour, which sets an opacity


def _set_stroke(canvas: Any, colour: str, opacity: float, width: float) -> None:
    canvas.setStrokeColor(HexColor(colour))
    canvas.setStrokeAlpha(opacity)
    canvas.setLineWidth(width)


def _draw_cells(canvas: Any, mark: CellPicture, height: float) -> None:
    """Draw one rectangle per cell, slightly larger than the cell, because viewers would otherwise show gaps."""
    rows, cols = mark.pixels.shape[:2]
    cell_width, cell_height = mark.width / cols, mark.height / rows
    canvas.setFillAlpha(1)
    for r, row in enumerate(mark.pixels.tolist()):
        y = height - mark.y - (r + 1) * cell_height
        for c, colour in enumerate(row):
            canvas.setFillColorRGB(*(value / 255 for value in colour))
            overlap = 0.05 if c + 1 < cols else 0.0
            canvas.rect(
                mark.x + c * cell_width, y, cell_width + overlap, cell_height + (0.05 if r else 0.0), stroke=0, fill=1
            )


# ---- Text -----------------------------------------------------------------------------------------------


def _draw_text(canvas: Any, mark: Text, height: float) -> None:
    runs = fonts.place_runs(mark.text, mark.weight)
    widths = [_measure_run(run, mark) for run in runs]
    first_font = next((run.font for run in runs if run.font), fonts.get_face(mark.weight))
    cos, sin = math.cos(math.radians(mark.turn)), math.sin(math.radians(mark.turn))
    x_offset, y_offset = -sum(widths) * ANCHOR_SHARES[mark.anchor], -first_font.middle * mark.size
    _set_fill(canvas, mark.colour, mark.opacity)
    for run, width in zip(runs, widths, strict=True):
        x, y = mark.x + x_offset * cos - y_offset * sin, height - mark.y + x_offset * sin + y_offset * cos
        _draw_run(canvas, run, (cos, sin, -sin, cos, x, y), width, mark)
        x_offset += width


def _measure_run(run: FontRun, mark: Text) -> float:
    """Return the width of a run, which for joined or stacked letters is not the sum of their widths."""
    if run.font is None or _is_simple(run):
        return fonts.width(run.text, mark.size, mark.weight)
    return float(sum(p.x_advance for p in _shape_run(run).glyph_positions)) * mark.size / run.font.em


def _draw_run(canvas: Any, run: FontRun, matrix: Transform, width: float, mark: Text) -> None:
    if run.font is None:  # boxes for characters that no font has, as in all formats
        canvas.saveState()
        canvas.transform(*matrix)
        _set_stroke(canvas, mark.colour, mark.opacity, mark.size / 20)
        side = mark.size * fonts.BOX_WIDTH
        count = sum(fonts.width(character, 1) > 0 for character in run.text)  # combining marks have no box
        for i in range(count):
            canvas.rect(i * side + side * 0.1, 0, side * 0.8, mark.size * 0.7, stroke=1, fill=0)
        canvas.restoreState()
        return
    name = _embed_font(run.font) if run.font.outlines == "glyf" else None
    if name is not None and _is_simple(run):
        _draw_letters(canvas, run.text, name, matrix, mark.size)
        return
    _draw_outlines(canvas, run, matrix, mark.size)
    if name is not None:
        text = run.text[::-1] if run.is_leftward else run.text  # in visual order: PDF viewers reverse it
        _draw_letters(canvas, text, name, matrix, mark.size, width)


def _draw_letters(
    canvas: Any, text: str, name: str, matrix: Transform, size: float, width: float | None = None
) -> None:
    """Write text with an embedded font; with a ``width`` it is invisible, and as wide as the outlines below it."""
    visible_text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    line = canvas.beginText()
    line.setTextTransform(*matrix)
    line.setFont(name, size)
    if width is not None:
        natural_width = pdfmetrics.stringWidth(visible_text, name, size)
        line.setHorizScale(100 * width / natural_width if width and natural_width else 100)
        line.setTextRenderMode(INVISIBLE_TEXT)
    line.textOut(visible_text)
    if width is not None:  # both settings would persist after the text object
        line.setHorizScale(100)
        line.setTextRenderMode(0)
    canvas.drawText(line)


def _build_character_map(name: str, subset: Sequence[int]) -> str:
    """Return the table that maps each glyph of a font to its character.

    reportlab's own table is wrong beyond U+FFFF: a character is UTF-16, in four or eight hexadecimal digits.
    """
    lines = [f"<{i:02X}> <{chr(code).encode('utf-16-be', 'replace').hex().upper()}>" for i, code in enumerate(subset)]
    return "\n".join(
        [
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo",
            f"<< /Registry ({name})\n/Ordering ({name})\n/Supplement 0\n>> def",
            f"/CMapName /{name} def\n/CMapType 2 def",
            f"1 begincodespacerange\n<00> <{len(subset) - 1:02X}>\nendcodespacerange",
            *(f"{len(part)} beginbfchar\n" + "\n".join(part) + "\nendbfchar" for part in _split_lines(lines, 100)),
            "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend",
        ]
    )


def _split_lines(lines: Sequence[str], max_lines: int) -> Iterator[Sequence[str]]:
    """Split lines into parts of at most ``max_lines`` lines, the limit for one section of the glyph table."""
    return (lines[i : i + max_lines] for i in range(0, len(lines), max_lines))


def _is_simple(run: FontRun) -> bool:
    """Return whether a run is left to right and none of its letters is joined, reordered or stacked."""
    return not run.is_leftward and (run.text.isascii() or _has_simple_letters(run.text))


@lru_cache(maxsize=10_000)
def _has_simple_letters(text: str) -> bool:
    return not any(unicodedata.category(c)[0] == "M" or _is_contextual(c) for c in text)


def _is_contextual(character: str) -> bool:
    """Return whether a character is of an Indic or South-East Asian script.

    The letters of these scripts change with their neighbours.
    """
    return (
        0x0900 <= ord(character) <= 0x0DFF or 0x0E00 <= ord(character) <= 0x109F or 0x1780 <= ord(character) <= 0x17FF
    )


@cache
def _embed_font(font: Font) -> str | None:
    """Return the font's name in reportlab, which embeds the used glyphs; None if it cannot read the file."""
    name = f"{font.path}#{font.number}"
    try:
        pdfmetrics.registerFont(TTFont(name, font.path, subfontIndex=font.number, shapable=False))
    except TTFError:
        return None
    return name


@cache
def _load_shaper(font: Font) -> Any:
    face = uharfbuzz.Face(uharfbuzz.Blob.from_file_path(font.path), font.number)
    return uharfbuzz.Font(face)


@lru_cache(maxsize=2_000)
def _shape_run(run: FontRun) -> Any:
    """Shape a run: return its glyphs and their positions, from left to right."""
    buffer = uharfbuzz.Buffer()
    buffer.add_str(run.text)
    buffer.guess_segment_properties()
    buffer.direction = "rtl" if run.is_leftward else "ltr"
    uharfbuzz.shape(_load_shaper(run.font or fonts.get_face(400)), buffer)
    return buffer


def _draw_outlines(canvas: Any, run: FontRun, matrix: Transform, size: float) -> None:
    """Shape a run and draw its glyphs as filled outlines."""
    font = run.font or fonts.get_face(400)
    buffer = _shape_run(run)
    a, b, c, d = (size / font.em * value for value in matrix[:4])
    e, f = matrix[4:]
    path = canvas.beginPath()
    pen_x = 0
    for info, position in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
        x, y = pen_x + position.x_offset, position.y_offset
        _trace_glyph(path, font.shape(info.codepoint), (a, b, c, d, e + a * x + c * y, f + b * x + d * y))
        pen_x += position.x_advance
    canvas.drawPath(path, stroke=0, fill=1, fillMode=1)


def _trace_glyph(path: Any, commands: Sequence[PenCommand], matrix: Transform) -> None:
    """Add a glyph's outline to a PDF path; quadratic curves become cubic ones."""
    a, b, c, d, e, f = matrix

    def transform(point: Any) -> tuple[float, float]:
        return a * point[0] + c * point[1] + e, b * point[0] + d * point[1] + f

    current = (0.0, 0.0)
    for kind, points in commands:
        if kind == "moveTo":
            current = transform(points[0])
            path.moveTo(*current)
        elif kind == "lineTo":
            current = transform(points[0])
            path.lineTo(*current)
        elif kind == "curveTo":
            first, second, current = (transform(point) for point in points)
            path.curveTo(*first, *second, *current)
        elif kind == "qCurveTo":
            current = _trace_quadratic(path, current, [None if p is None else transform(p) for p in points])
        else:
            path.close()


def _trace_quadratic(path: Any, start: tuple[float, float], points: list[Any]) -> tuple[float, float]:
    """Add a TrueType chain of off-curve points with implied on-curve points in between; return the end point."""
    if points[-1] is None:  # a contour without on-curve points
        points = points[:-1]
        first = _find_midpoint(points[-1], points[0])
        path.moveTo(*first)
        start, points = first, [*points, first]
    *control_points, end = points
    for i, control in enumerate(control_points):
        segment_end = end if i + 1 == len(control_points) else _find_midpoint(control, control_points[i + 1])
        a = (start[0] + (control[0] - start[0]) * 2 / 3, start[1] + (control[1] - start[1]) * 2 / 3)
        b = (
            segment_end[0] + (control[0] - segment_end[0]) * 2 / 3,
            segment_end[1] + (control[1] - segment_end[1]) * 2 / 3,
        )
        path.curveTo(*a, *b, *segment_end)
        start = segment_end
    return start


def _find_midpoint(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
