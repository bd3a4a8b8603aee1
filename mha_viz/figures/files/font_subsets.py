"""Font subsets embedded in a page or a preview, with only the letters that it needs."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from functools import lru_cache

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.font_file import Font

SANS, SERIF = "mha_viz Sans", "mha_viz Serif"  # the licence reserves the name Source for whole fonts
_FACES: dict[str, Callable[[int], Font]] = {SANS: fonts.get_face, SERIF: fonts.get_serif}
_BASE_BLOCKS = frozenset((0x00, *range(0x20, 0x28)))  # blocks of 256 code points in every subset: Latin and symbols
_WEIGHTS = (400, 600)
_COPYRIGHT, _LICENCE, _LICENCE_URL = 0, 13, 14  # numbers in the table "name" of a font file


def build_page_fonts(texts: Iterable[str]) -> str:
    """Return the CSS rules for the fonts of a page, with their licences.

    The fonts of text and of headings cover the letters of its ``texts`` and all letters that its scripts may write.
    """
    letters = frozenset().union(*texts)
    return "".join(_build_family(name, face, letters) for name, face in _FACES.items())


def _build_family(name: str, face: Callable[[int], Font], letters: Iterable[str]) -> str:
    names = face(_WEIGHTS[0]).names(_COPYRIGHT, _LICENCE)
    rules = "".join(build_font_rule(name, face(weight), weight, letters) for weight in _WEIGHTS)
    return f"/* {name} is a part of {name.replace('mha_viz', 'Source')} Pro. {' '.join(names)} */\n{rules}\n"


def build_font_rule(family: str, font: Font, weight: int, letters: Iterable[str]) -> str:
    """Return the CSS rule that embeds a font with these letters under the name ``family``.

    The fonts of pages contain Latin, symbols, and for any other letter its whole block of 256 code points, so that one
    subset serves nearly all texts: subsetting takes half a second.
    """
    code_points = {ord(letter) for letter in letters}
    if font in (face(weight) for face in _FACES.values()):
        blocks = _BASE_BLOCKS.union(code_point >> 8 for code_point in code_points)
        code_points = {code_point for code_point in font.glyphs if code_point >> 8 in blocks}
    data = _subset_font(font, "".join(map(chr, sorted(code_points & font.glyphs.keys()))))
    source = f"url(data:font/woff;base64,{data})"
    return f"@font-face{{font-family:'{family}';font-weight:{weight};src:{source}}}"


@lru_cache(maxsize=64)
def _subset_font(font: Font, letters: str) -> str:
    """Return the font with these letters only, including joined forms, in base64.

    The same letters give the same bytes.
    """
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    subset = TTFont(font.path, fontNumber=font.number, recalcTimestamp=False)
    notice = [_COPYRIGHT, _LICENCE, _LICENCE_URL]
    options = Options(hinting=False, name_IDs=notice, notdef_outline=True, ignore_missing_unicodes=True)
    options.drop_tables += ["FFTM"]  # FontForge's time stamps, which fontTools would drop with a warning
    subsetter = Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(subset)
    subset.flavor = "woff"
    buffer = io.BytesIO()
    subset.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()
