"""Write an SVG that looks the same everywhere, because it embeds the fonts that it needs.

A browser that shows an SVG as an image loads no other files. The SVG for download embeds no fonts: drawing programs
would not use them, and the file would be ten times as large.
"""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.font_file import Font
from mha_viz.figures.drawing.marks import Drawing, Text
from mha_viz.figures.files.font_subsets import build_font_rule
from mha_viz.figures.files.svg import SVG, render_svg


def render_preview(drawing: Drawing) -> bytes:
    """Return an SVG that contains the fonts of its texts."""
    root = Tree.fromstring(render_svg(drawing))
    style = Tree.Element(f"{{{SVG}}}style")
    style.text = "".join(
        _build_rule(font, weight, letters) for (font, weight), letters in _collect_letters(drawing).items()
    )
    root.insert(0, style)
    content: bytes = Tree.tostring(root, "utf-8")
    return content


def _collect_letters(drawing: Drawing) -> dict[tuple[Font, int], frozenset[str]]:
    """Return the characters used in each font and weight."""
    letters: dict[tuple[Font, int], frozenset[str]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Text):
            for run in fonts.split_runs(mark.text, mark.weight):
                if run.font is not None:
                    key = (run.font, mark.weight)
                    letters[key] = letters.get(key, frozenset()) | frozenset(run.text)
    return letters


def _build_rule(font: Font, weight: int, letters: frozenset[str]) -> str:
    if font == fonts.get_face(weight):
        return build_font_rule("Source Sans 3", font, weight, letters)
    return build_font_rule(font.family.replace("'", ""), font, weight, letters)
