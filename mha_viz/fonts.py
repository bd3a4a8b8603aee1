"""Type for files: how wide text is, which font has which character, and what no font on this machine has.

The first face is Source Sans Pro, the family of the screen; then DejaVu Sans, which knows Greek, Cyrillic, Hebrew,
Arabic and many signs; then what the system has, searched only when a character needs it. ``MHA_VIZ_FONTS`` may name a
folder or a file to be searched before the system's.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

SETTING = "MHA_VIZ_FONTS"
SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
BOX = 0.6  # the width, in ems, of the box that stands for a character without a font
LISTED = 6  # characters that a warning names

Outlines = Literal["glyf", "CFF", "bitmap"]


@dataclass(frozen=True)
class Font:
    """One face: a file, and its number within a collection."""

    path: str
    number: int = 0

    @cached_property
    def tables(self) -> Any:
        """The font's tables (``fontTools.ttLib.TTFont``), read as they are needed."""
        from fontTools.ttLib import TTFont

        return TTFont(self.path, fontNumber=self.number, lazy=True)

    @cached_property
    def glyphs(self) -> dict[int, str]:
        """Code point → name of its glyph."""
        return dict(self.tables.getBestCmap() or {})

    @cached_property
    def em(self) -> int:
        """Font units in the size of type."""
        return int(self.tables["head"].unitsPerEm)

    @cached_property
    def family(self) -> str:
        """The family's name, as a style sheet would give it."""
        names = self.tables["name"]
        return str(names.getDebugName(16) or names.getDebugName(1) or Path(self.path).stem)

    @cached_property
    def outlines(self) -> Outlines:
        """How its shapes are stored. PDF can embed "glyf" as it is; "bitmap" is emoji in colour."""
        if "glyf" in self.tables:
            return "glyf"
        return "CFF" if "CFF " in self.tables or "CFF2" in self.tables else "bitmap"

    @cached_property
    def middle(self) -> float:
        """Height above the baseline, in ems, of the middle that a browser centres on: (ascent - descent) / 2."""
        line = self.tables["hhea"]
        return float(line.ascent + line.descent) / 2 / self.em

    def advance(self, character: str) -> float:
        """The width of one character, in ems."""
        return float(self.tables["hmtx"][self.glyphs[ord(character)]][0]) / self.em


class Run(NamedTuple):
    """A stretch of text in one font; ``font`` None where no font has its characters."""

    text: str
    font: Font | None


@cache
def face(weight: int) -> Font:
    """The first face, in ordinary or semi-bold strength."""
    files = _package("font_source_sans_pro") / "files"
    return Font(str(files / ("SourceSansPro-Semibold.ttf" if weight >= 600 else "SourceSansPro-Regular.ttf")))


@cache
def second(weight: int) -> Font:
    """DejaVu Sans, which comes with matplotlib (found without importing it)."""
    files = _package("matplotlib") / "mpl-data" / "fonts" / "ttf"
    return Font(str(files / ("DejaVuSans-Bold.ttf" if weight >= 600 else "DejaVuSans.ttf")))


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"The package {name} is not installed; `pip install -r requirements.txt` brings it.")
    return Path(found.submodule_search_locations[0])


@lru_cache(maxsize=20_000)
def font_for(character: str, weight: int = 400) -> Font | None:
    """The first font that has a character; None when no font on this machine does."""
    for font in (face(weight), second(weight)):
        if ord(character) in font.glyphs:
            return font
    return next((font for font in _others() if ord(character) in font.glyphs), None)


@cache
def _others() -> tuple[Font, ...]:
    """Every other font: those of MHA_VIZ_FONTS, then the system's, Noto before others. Broken files are skipped."""
    own = sorted(_files([os.environ[SETTING]])) if os.environ.get(SETTING) else []
    system = sorted(_files(_folders()), key=lambda p: ("Noto" not in p.name, "Regular" not in p.name, p.name))
    return tuple(font for path in [*own, *system] for font in _faces(path))


def _folders() -> list[str]:
    """Where this kind of system keeps its fonts."""
    home = Path.home()
    if sys.platform == "darwin":
        return ["/System/Library/Fonts", "/Library/Fonts", str(home / "Library/Fonts")]
    if os.name == "nt":
        return [str(Path(os.environ.get("WINDIR", r"C:\Windows")) / "Fonts")]
    return ["/usr/share/fonts", "/usr/local/share/fonts", str(home / ".local/share/fonts"), str(home / ".fonts")]


def _files(places: Iterable[str]) -> Iterator[Path]:
    for place in map(Path, places):
        found = [place] if place.is_file() else place.rglob("*") if place.is_dir() else []
        yield from (path for path in found if path.suffix.lower() in SUFFIXES)


def _faces(path: Path) -> Iterator[Font]:
    """The first face of a file; of a collection too, whose faces have the same characters."""
    font = Font(str(path))
    try:
        if font.glyphs and font.em and font.outlines != "bitmap":  # no file format here can hold pictures of letters
            yield font
    except Exception:  # a broken file raises anything, and is no reason not to draw
        return


# ---- Measuring ------------------------------------------------------------------------------------------


@lru_cache(maxsize=50_000)
def width(text: str, size: float, weight: int = 400) -> float:
    """How wide a text is, in the unit of ``size``: the sum of its advances."""
    return sum(_advance(character, weight) for character in text) * size


@lru_cache(maxsize=20_000)
def _advance(character: str, weight: int) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0  # drawn over the character before it, or not at all
    font = font_for(character, weight)
    return font.advance(character) if font else BOX


def cut(text: str, size: float, room: float, weight: int = 400) -> str:
    """The text, or its beginning with "…" that fits into ``room``; marks stay with their letters."""
    if width(text, size, weight) <= room:
        return text
    left = room / size - _advance("…", weight)
    kept = 0
    for i, character in enumerate(text):
        left -= _advance(character, weight)
        if left < 0:
            break
        kept = i + 1
    while kept and kept < len(text) and unicodedata.category(text[kept])[0] == "M":
        kept -= 1
    return text[:kept].rstrip("\u200d") + "…"


def runs(text: str, weight: int = 400) -> list[Run]:
    """The text in stretches of one font, in the order of reading. What has no shape of its own joins its neighbour."""
    found: list[Run] = []
    for character in text:
        loose = unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc")
        before = found[-1].font if found else None
        keeps = before is not None and (loose or character == " ") and ord(character) in before.glyphs
        font = before if keeps or (loose and found) else font_for(character, weight)
        if found and found[-1].font == font:
            found[-1] = Run(found[-1].text + character, font)
        else:
            found.append(Run(character, font))
    return found


def used(texts: Iterable[tuple[str, int]]) -> list[Font]:
    """The fonts that texts of given strengths need, the first face always among them."""
    found = [face(400)]
    found += [run.font for text, weight in texts for run in runs(text, weight) if run.font]
    return list(dict.fromkeys(found))


# ---- What is missing ------------------------------------------------------------------------------------

_ADVICE = {
    "CJK": "Noto Sans CJK",
    "HIRAGANA": "Noto Sans CJK",
    "KATAKANA": "Noto Sans CJK",
    "HANGUL": "Noto Sans CJK",
}


def missing(texts: Iterable[str]) -> list[str]:
    """A plain sentence for each script of which some character has no font here; empty when all is well."""
    lost: dict[str, list[str]] = {}
    for character in dict.fromkeys("".join(texts)):
        if unicodedata.category(character) not in ("Cf", "Cc", "Zs", "Zl", "Zp") and font_for(character) is None:
            lost.setdefault(_script(character), []).append(character)
    return [_said(script, characters) for script, characters in lost.items()]


def _script(character: str) -> str:
    """The first word of a character's name, which is its script for letters: "CJK", "DEVANAGARI"."""
    if unicodedata.category(character) == "So":
        return "EMOJI"
    return unicodedata.name(character, "UNNAMED").split()[0].split("-")[0]


def _said(script: str, characters: list[str]) -> str:
    shown = ", ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in characters[:LISTED])
    more = f" and {len(characters) - LISTED} more" if len(characters) > LISTED else ""
    names = {"CJK": "CJK ideographs", "EMOJI": "these emoji or signs", "UNNAMED": "these characters"}
    what = names.get(script, f"{script.capitalize()} letters")
    font = {"EMOJI": "Noto Emoji"}.get(script) or _ADVICE.get(script, f"Noto Sans {script.capitalize()}")
    advice = f"Install {font}, or name a font file in {SETTING}" if script != "UNNAMED" else f"Name a font in {SETTING}"
    return f"No font on this machine has {what} ({shown}{more}): boxes stand in their place. {advice}."
