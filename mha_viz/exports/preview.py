"""An SVG that looks the same everywhere: it contains the letters that it needs, because a browser that shows it as an
image loads nothing else.

The SVG for download contains no font: drawing programs do not read fonts from there, and it would be ten times as
large.
"""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from xml.etree import ElementTree as Tree

from mha_viz.drawing import fonts
from mha_viz.drawing.font_file import Font
from mha_viz.drawing.marks import Drawing, Text
from mha_viz.exports.svg import SVG, svg

ALWAYS = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("…“”‘’–−")  # the same subset serves most figures


def preview(drawing: Drawing) -> bytes:
    """The bytes of an SVG that contains the fonts of its texts."""
    root = Tree.fromstring(svg(drawing))
    style = Tree.Element(f"{{{SVG}}}style")
    style.text = "".join(_rule(font, weight, letters) for (font, weight), letters in _letters(drawing).items())
    root.insert(0, style)
    written: bytes = Tree.tostring(root, "utf-8")
    return written


def _letters(drawing: Drawing) -> dict[tuple[Font, int], frozenset[str]]:
    """The characters used in each font and strength."""
    letters: dict[tuple[Font, int], frozenset[str]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Text):
            for run in fonts.runs(mark.text, mark.weight):
                if run.font is not None:
                    key = (run.font, mark.weight)
                    letters[key] = letters.get(key, frozenset()) | frozenset(run.text)
    return letters


def _rule(font: Font, weight: int, letters: frozenset[str]) -> str:
    is_ours = font == fonts.face(weight)
    data = _subset(font, "".join(sorted(letters | ALWAYS if is_ours else letters)))
    source = f"url(data:font/ttf;base64,{data})"
    family = "Source Sans 3" if is_ours else font.family.replace("'", "")
    return f"@font-face{{font-family:'{family}';font-weight:{weight};src:{source}}}"


@lru_cache(maxsize=64)
def _subset(font: Font, letters: str) -> str:
    """The font with these letters only, including joined forms, in base64."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    whole = TTFont(font.path, fontNumber=font.number)
    options = Options(hinting=False, name_IDs=[1, 2], notdef_outline=True, ignore_missing_unicodes=True)
    options.drop_tables += ["FFTM"]  # FontForge's times, which fontTools would drop with a warning
    subsetter = Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(whole)
    buffer = io.BytesIO()
    whole.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()
