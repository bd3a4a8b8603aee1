"""A drawing as PNG: the SVG, rasterised by resvg.

resvg rather than Pillow, because it draws the very SVG (curves, opacity, turned text) and shapes every script itself,
in one wheel without system libraries. It is given only the fonts that a drawing needs: searching the system's would
take longer than drawing.
"""

from __future__ import annotations

import io

import resvg_py
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from mha_viz import fonts
from mha_viz.drawing import Drawing, Text
from mha_viz.errors import ExportError
from mha_viz.exports.svg import svg

MAX_PIXELS = 100_000_000


def png(drawing: Drawing, dpi: int = 300) -> bytes:
    """The bytes of a PNG file with its resolution, caption and settings inside. Raises ExportError when too large."""
    width, height = (max(1, round(length * dpi / 72)) for length in (drawing.width, drawing.height))
    if width * height > MAX_PIXELS:
        raise ExportError(
            f"At {dpi} dpi the picture would have {width:,} × {height:,} pixels.", "Choose fewer dpi, or SVG or PDF."
        )
    texts = [(mark.text, mark.weight) for mark in drawing.marks if isinstance(mark, Text)]
    files = dict.fromkeys(font.path for font in (fonts.face(400), fonts.face(600), *fonts.used(texts)))
    raster = resvg_py.svg_to_bytes(
        svg_string=svg(drawing).decode(),
        width=width,
        height=height,
        dpi=96,
        skip_system_fonts=True,
        font_files=list(files),
        font_family=fonts.face(400).family,
        sans_serif_family=fonts.face(400).family,
    )
    return _described(bytes(raster), drawing, dpi)


def _described(raster: bytes, drawing: Drawing, dpi: int) -> bytes:
    said = PngInfo()
    said.add_itxt("Description", drawing.caption)
    said.add_itxt("Software", "mha_viz")
    for name, value in drawing.about.items():
        said.add_itxt(name, value)
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(raster)) as image:
        image.save(buffer, "PNG", dpi=(dpi, dpi), pnginfo=said, compress_level=4)
    return buffer.getvalue()
