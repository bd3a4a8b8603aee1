"""Fonts that a page or a preview carries: of a face, the letters that it needs."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from functools import lru_cache

from mha_viz.drawing import fonts
from mha_viz.drawing.font_file import Font

FAMILY = "mha_viz Sans"  # the licence reserves the name Source for whole fonts
_ALWAYS = frozenset((0x00, *range(0x20, 0x28)))  # blocks of 256 characters: Latin, and signs
_WEIGHTS = (400, 600)
_COPYRIGHT, _LICENCE, _LICENCE_ADDRESS = 0, 13, 14  # numbers of names in a font file


def page_fonts(texts: Iterable[str]) -> str:
    """The style sheet's rules for the letters of a page: those of its ``texts`` and all that its scripts may write, in
    the first face, with its licence."""
    letters = frozenset().union(*texts)
    names = fonts.face(_WEIGHTS[0]).names(_COPYRIGHT, _LICENCE)
    rules = "".join(rule(FAMILY, fonts.face(weight), weight, letters) for weight in _WEIGHTS)
    return f"/* {FAMILY} is a part of Source Sans Pro. {' '.join(names)} */\n{rules}\n"


def rule(family: str, font: Font, weight: int, letters: Iterable[str]) -> str:
    """The style sheet's rule that brings a font with these letters under the name ``family``. The first face comes with
    Latin, with signs, and with the whole block of 256 of any other letter: choosing takes half a second, and so one
    choice serves nearly all texts."""
    wanted = {ord(letter) for letter in letters}
    if font == fonts.face(weight):
        blocks = _ALWAYS.union(point >> 8 for point in wanted)
        wanted = {point for point in font.glyphs if point >> 8 in blocks}
    data = _subset(font, "".join(map(chr, sorted(wanted & font.glyphs.keys()))))
    source = f"url(data:font/woff;base64,{data})"
    return f"@font-face{{font-family:'{family}';font-weight:{weight};src:{source}}}"


@lru_cache(maxsize=64)
def _subset(font: Font, letters: str) -> str:
    """The font with these letters only, including joined forms, in base64: the same bytes for the same letters."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    whole = TTFont(font.path, fontNumber=font.number, recalcTimestamp=False)
    notice = [_COPYRIGHT, _LICENCE, _LICENCE_ADDRESS]
    options = Options(hinting=False, name_IDs=notice, notdef_outline=True, ignore_missing_unicodes=True)
    options.drop_tables += ["FFTM"]  # FontForge's times, which fontTools would drop with a warning
    subsetter = Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(whole)
    whole.flavor = "woff"
    buffer = io.BytesIO()
    whole.save(buffer)
    return base64.b64encode(buffer.getvalue()).decode()
