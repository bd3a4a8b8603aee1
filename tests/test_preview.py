"""The preview of a file: the same picture, which contains its letters and loads nothing."""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree as Tree

import numpy as np
from fontTools.ttLib import TTFont

from mha_viz.attention import Attention, Head
from mha_viz.figures import files
from mha_viz.figures.drawing import fonts
from mha_viz.figures.files.font_subsets import _subset_font, build_font_rule
from mha_viz.figures.files.preview import render_preview
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.view import View
from tests import hostile
from tests.readings import reading


def inside(written: bytes) -> dict[str, TTFont]:
    rules = re.findall(
        r"font-family:'([^']*)';font-weight:(\d+);src:url\(data:font/woff;base64,([^)]*)\)", written.decode()
    )
    return {f"{family} {weight}": TTFont(io.BytesIO(base64.b64decode(data))) for family, weight, data in rules}


def test_every_letter_is_inside_in_its_strength() -> None:
    drawing = heatmap(reading(), Head(0, 0), View(pin="q1"))
    embedded = inside(render_preview(drawing))
    assert set(embedded) == {"Source Sans 3 400", "Source Sans 3 600"}
    assert {ord(c) for text in drawing.texts() for c in text} <= set(embedded["Source Sans 3 400"].getBestCmap())


def test_the_same_letters_are_the_same_bytes_and_name_their_licence() -> None:
    written = [
        build_font_rule("a", fonts.get_face(400), 400, "it"),
        _subset_font.cache_clear(),
        build_font_rule("a", fonts.get_face(400), 400, "ti"),
    ]
    assert written[0] == written[2]
    names = inside(str(written[0]).encode())["a 400"]["name"]
    assert "Reserved Font Name" in names.getDebugName(0)
    assert "SIL Open Font License" in names.getDebugName(13)
    assert {record.nameID for record in names.names} == {0, 13, 14}  # not under the reserved name


def test_it_is_the_file_but_for_the_letters() -> None:
    drawing = heatmap(reading(), Head(0, 0))
    root, file = Tree.fromstring(render_preview(drawing)), Tree.fromstring(files.drawing_bytes(drawing, ".svg"))
    root.remove(root[0])
    assert Tree.canonicalize(Tree.tostring(root)) == Tree.canonicalize(Tree.tostring(file))


def test_other_scripts_bring_their_fonts() -> None:
    attention = Attention.from_tensors([[[[0.5, 0.5], [0.5, 0.5]]]], ["مرحبا", "abc"])
    embedded = inside(render_preview(heatmap(attention, Head(0, 0))))
    arabic = fonts.find_font("م")
    assert arabic is not None
    assert ord("م") in embedded[f"{arabic.family} 400"].getBestCmap()


def test_hostile_tokens_bring_nothing_to_load() -> None:
    tokens = [text[:200] for text in hostile.KINDS.values()]
    weights = np.full((1, 1, len(tokens), len(tokens)), 1 / len(tokens))
    written = render_preview(heatmap(Attention.from_tensors(weights, tokens), Head(0, 0)))
    style = Tree.fromstring(written)[0].text or ""
    assert re.sub(r"url\(data:font/woff;base64,[A-Za-z0-9+/=]*\)", "", style).count("url") == 0
    assert "@import" not in style
