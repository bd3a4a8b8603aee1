"""Fonts that a page or a preview carries: of a face, the letters that it needs."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from functools import cache, lru_cache

from mha_viz.browser.bundle import FOLDER
from mha_viz.drawing import fonts
from mha_viz.drawing.font_file import Font

ALWAYS = frozenset(map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x100)))) | frozenset("…“”‘’–−")
FAMILY = "mha_viz Sans"  # the licence reserves the name Source for whole fonts
_WEIGHTS = (400, 600)
_COPYRIGHT, _LICENCE, _LICENCE_ADDRESS = 0, 13, 14  # numbers of names in a font file


def page_fonts(texts: Iterable[str]) -> str:
    """The style sheet's rules for the letters of a page: those of its ``texts`` and all that its scripts may write, in
    the first face, with its licence."""
    letters = _signs().union(*texts)
    names = fonts.face(_WEIGHTS[0]).names(_COPYRIGHT, _LICENCE)
    rules = "".join(rule(FAMILY, fonts.face(weight), weight, letters) for weight in _WEIGHTS)
    return f"/* {FAMILY} is a part of Source Sans Pro. {' '.join(names)} */\n{rules}\n"


@cache
def _signs() -> frozenset[str]:
    """Every character in the scripts of drawings."""
    return ALWAYS.union(*(path.read_text("utf-8") for path in FOLDER.rglob("*.js")))


def rule(family: str, font: Font, weight: int, letters: Iterable[str]) -> str:
    """The style sheet's rule that brings a font with these letters under the name ``family``."""
    data = _subset(font, "".join(sorted(c for c in letters if ord(c) in font.glyphs)))
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
