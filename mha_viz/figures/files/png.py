"""Write a drawing as PNG: the SVG, rasterised by resvg.

resvg is used rather than Pillow because it draws the SVG itself (curves, opacity, rotated text) and shapes every
script, in one wheel without system libraries. It gets only the fonts that a drawing needs: searching the system's fonts
would take longer than drawing.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import resvg_py

from mha_viz.errors import ExportError, shorten_value
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import DPI_RANGE, Curve, Drawing, Mark, Polyline, Rect, Text
from mha_viz.figures.files.svg import render_svg
from mha_viz.text import clean

MAX_PIXELS = 50_000_000  # a square of 178 mm at 1,000 dpi; drawing it takes half a gigabyte
MIN_CELL_PIXELS = 60  # minimum pixels per cell at which shapes are drawn faster than an enlarged picture
HEADER = 33  # bytes before the position of inserted chunks: signature and IHDR


def render_png(drawing: Drawing, dpi: int = 300) -> bytes:
    """Return the drawing as a PNG file that contains its resolution, caption and settings.

    Raises ExportError if it would be too large.
    """
    width, height = compute_pixel_size(drawing, dpi)
    texts = [(mark.text, mark.weight) for mark in drawing.marks if isinstance(mark, Text)]
    files = dict.fromkeys(
        font.path for font in (fonts.get_face(400), fonts.get_face(600), *fonts.list_needed_fonts(texts))
    )
    # Snapping rectangles and pictures to whole pixels makes lines between cells equally sharp, and drawing much faster.
    snapped_drawing = replace(drawing, marks=tuple(_snap_mark(mark, dpi / 72) for mark in drawing.marks))
    raster = resvg_py.svg_to_bytes(
        svg_string=render_svg(snapped_drawing, width * height // MIN_CELL_PIXELS, for_rasterising=True).decode(),
        width=width,
        height=height,
        dpi=96,
        skip_system_fonts=True,
        font_files=list(files),
        font_family=fonts.get_face(400).family,
        sans_serif_family=fonts.get_face(400).family,
    )
    per_metre = round(dpi / 0.0254)
    metadata = {"Description": drawing.full_caption, "Software": "mha_viz", **drawing.about}
    chunks = [
        _build_chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        *(_text_chunk(*item) for item in metadata.items()),
    ]
    return bytes(raster[:HEADER]) + b"".join(chunks) + bytes(raster[HEADER:])


def compute_pixel_size(drawing: Drawing, dpi: int) -> tuple[int, int]:
    """Return width and height of the picture. Raises ExportError if it would be too large, before it is drawn."""
    if not isinstance(dpi, int | float) or not DPI_RANGE[0] <= dpi <= DPI_RANGE[1]:
        stated_dpi = repr(shorten_value(dpi)) if isinstance(dpi, str) else shorten_value(dpi)
        raise ExportError(
            f"The resolution is {stated_dpi} dpi.", f"Expected a number from {DPI_RANGE[0]} to {DPI_RANGE[1]}."
        )
    width, height = (max(1, round(length * dpi / 72)) for length in (drawing.width, drawing.height))
    if width * height > MAX_PIXELS:
        raise ExportError(
            f"At {dpi} dpi the picture would have {width:,} × {height:,} pixels.", "Choose fewer dpi, or SVG or PDF."
        )
    return width, height


def _snap_mark(mark: Mark, scale: float) -> Mark:
    """Snap a filled rectangle or a picture to whole pixels; return other marks unchanged."""
    if isinstance(mark, Curve | Polyline | Text) or (isinstance(mark, Rect) and mark.stroke):
        return mark
    (x, width), (y, height) = (_snap_span(mark.x, mark.width, scale), _snap_span(mark.y, mark.height, scale))
    return replace(mark, x=x, y=y, width=width, height=height)


def _snap_span(start: float, length: float, scale: float) -> tuple[float, float]:
    """Return start and length snapped to whole pixels.

    Thin spans keep the same thickness everywhere. For wider spans, both edges are snapped, so that they coincide with
    the edges of the cells.
    """
    if length * scale < 4:
        pixels = max(1, round(length * scale))
        return round((start + length / 2) * scale - pixels / 2) / scale, pixels / scale
    first, last = round(start * scale), round((start + length) * scale)
    return first / scale, (last - first) / scale


def _text_chunk(name: str, value: str) -> bytes:
    """Return an iTXt chunk: a keyword of at most 79 Latin letters, two flags, language, translated keyword, UTF-8."""
    keyword = name.encode("latin-1", "replace")[:79]
    return _build_chunk(b"iTXt", keyword + b"\0\0\0\0\0" + clean(value).encode())


def _build_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
