"""Fonts for files: the width of text, the font for each character, and the characters that no font on this machine has.

The first face is Source Sans Pro, the family of the screen; then DejaVu Sans, which has Greek, Cyrillic, Hebrew, Arabic
and many symbols; then the fonts of the system, searched only if a character needs them. ``MHA_VIZ_FONTS`` may name
folders or files (separated as in PATH) to be searched before the system's.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from mha_viz.figures.drawing.font_file import Font, stored_outlines

SETTING = "MHA_VIZ_FONTS"
SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
BOX = 0.6  # the width, in ems, of the box that stands for a character without a font
LISTED = 6  # the most characters that a warning names
REMEMBERED = 200  # cache the widths only of texts up to this length, to limit memory
EMPTY = re.compile("LastResort|AdobeBlank|NotDef")  # fonts that show every character as a box or blank


class FontRun(NamedTuple):
    """A stretch of text in one font, in logical order. ``font`` is None if no font has its characters."""

    text: str
    font: Font | None
    leftward: bool = False  # whether the text is read from right to left


@cache
def face(weight: int) -> Font:
    """Return the first face, in regular or semi-bold weight."""
    return _source("Sans", weight)


def serif(weight: int) -> Font:
    """Return the face of headings, as on the app's pages."""
    return _source("Serif", weight)


@cache
def _source(kind: str, weight: int) -> Font:
    files = _package(f"font_source_{kind.lower()}_pro") / "files"
    return Font(str(files / f"Source{kind}Pro-{'Semibold' if weight >= 600 else 'Regular'}.ttf"))


@cache
def second(weight: int) -> Font:
    """Return DejaVu Sans, which is installed with matplotlib and found without importing it."""
    files = _package("matplotlib") / "mpl-data" / "fonts" / "ttf"
    return Font(str(files / ("DejaVuSans-Bold.ttf" if weight >= 600 else "DejaVuSans.ttf")))


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"The package {name} is not installed; `pip install -r requirements.txt` brings it.")
    return Path(spec.submodule_search_locations[0])


@lru_cache(maxsize=20_000)
def font_for(character: str, weight: int = 400) -> Font | None:
    """Return the first font that has a character; None if no font on this machine does."""
    for font in (face(weight), second(weight)):
        if ord(character) in font.glyphs:
            return font
    return next((font for font in _others() if _covers(font, ord(character)) and font.sound), None)


@cache
def _others() -> tuple[Font, ...]:
    """Return all other fonts: first those in MHA_VIZ_FONTS, then the system's.

    Only the first face of a collection is used, since its other faces have the same characters.
    """
    named = sorted(_files(_named_places()))
    return tuple(Font(str(path)) for path in [*named, *sorted(_files(_folders()), key=_preference)])


def _named_places() -> list[Path]:
    return [Path(place) for place in os.environ.get(SETTING, "").split(os.pathsep) if place]


def _preference(path: Path) -> tuple[bool, bool, bool, str]:
    """Return a sort key: Noto before others, upright and regular before slanted and bold."""
    name = path.stem
    special = re.search("Bold|Italic|Oblique|Light|Mono", name) is not None
    return "Noto" not in name, "Regular" not in name, special, name


def _folders() -> list[Path]:
    """Return the folders in which this operating system keeps its fonts."""
    home = Path("~").expanduser()
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    if os.name == "nt":
        windows, local = os.environ.get("WINDIR", r"C:\Windows"), os.environ.get("LOCALAPPDATA", str(home))
        return [Path(windows) / "Fonts", Path(local) / "Microsoft/Windows/Fonts"]
    return [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"]


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        paths = [place] if place.is_file() else place.rglob("*") if place.is_dir() else []
        yield from (path for path in paths if path.suffix.lower() in SUFFIXES and not EMPTY.search(path.stem))


def _covers(font: Font, code: int) -> bool:
    starts, ends = _ranges(font)
    index = bisect_right(starts, code) - 1
    return index >= 0 and code <= ends[index]


@cache
def _ranges(font: Font) -> tuple[array[int], array[int]]:
    """Return first and last code points of the ranges of characters in a font.

    They are stored compactly, because a system may have a thousand fonts.
    """
    from fontTools.ttLib import TTFont

    starts, ends = array("L"), array("L")
    try:
        with Path(font.path).open("rb") as file, TTFont(file, fontNumber=font.number, lazy=True) as tables:
            codes = [] if stored_outlines(tables) == "pictures" else sorted(tables.getBestCmap() or {})
    except Exception:  # as in Font.sound
        return starts, ends
    for code in codes:
        if ends and code == ends[-1] + 1:
            ends[-1] = code
        else:
            starts.append(code)
            ends.append(code)
    return starts, ends


def forget() -> None:
    """Clear all caches, to search for fonts again after ``MHA_VIZ_FONTS`` has changed or a font was installed."""
    for cached in (face, second, _others, _ranges, font_for, _advance, _short_width):
        cached.cache_clear()


# ---- Measuring ------------------------------------------------------------------------------------------


def width(text: str, size: float, weight: int = 400) -> float:
    """Return the width of a text in the unit of ``size``: the sum of its advances."""
    ems = _short_width(text, weight) if len(text) <= REMEMBERED else _sum(text, weight)
    return ems * size


@lru_cache(maxsize=20_000)
def _short_width(text: str, weight: int) -> float:
    return _sum(text, weight)


def _sum(text: str, weight: int) -> float:
    return sum(_advance(character, weight) for character in text)


@lru_cache(maxsize=20_000)
def _advance(character: str, weight: int) -> float:
    character = writable(character)
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0  # drawn over the character before it, or not at all
    font = font_for(character, weight)
    return font.advance(character) if font else BOX


def cut(text: str, size: float, room: float, weight: int = 400) -> str:
    """Shorten a text to fit into ``room``, ending with "…"; combining marks stay with their letters."""
    remaining = room / size  # ems
    dots = _advance("…", weight)
    shown = 0  # the most characters after which "…" still fits
    for i, character in enumerate(text):  # stop at the end of the room: a token may be a million letters long
        remaining -= _advance(character, weight)
        if remaining < 0:
            break
        shown = i + 1 if remaining >= dots else shown
    else:
        return text
    while shown and _clings(text[shown], text[shown - 1]):
        shown -= 1
    return text[:shown] + "…"


def _clings(character: str, previous: str) -> bool:
    """Return whether the two characters must not be separated: combining marks, skin tones, characters joined by a
    zero-width joiner."""
    tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return tone or previous == "\u200d" or character == "\u200d" or unicodedata.category(character)[0] == "M"


# ---- Setting --------------------------------------------------------------------------------------------

_NO_SIGN = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def writable(text: str) -> str:
    """Return the text as all formats write it.

    White space becomes a space, and characters that no file can contain become U+FFFD; the length stays the same.
    """
    return _NO_SIGN.sub(lambda sign: " " if sign[0].isspace() else "\ufffd", text)


def runs(text: str, weight: int = 400) -> list[FontRun]:
    """Split a text into stretches of one font, in logical order.

    Characters without a shape of their own join their neighbours.
    """
    text = writable(text)
    if text.isascii():
        return [FontRun(text, face(weight))] if text else []
    stretches: list[FontRun] = []
    for character in text:
        is_shapeless = unicodedata.category(character) in ("Mn", "Me", "Cf")
        before = stretches[-1].font if stretches else None
        can_stay = before is not None and (is_shapeless or character == " ") and ord(character) in before.glyphs
        font = before if can_stay or (is_shapeless and stretches) else font_for(character, weight)
        if stretches and stretches[-1].font == font:
            stretches[-1] = FontRun(stretches[-1].text + character, font)
        else:
            stretches.append(FontRun(character, font))
    return stretches


def placed(text: str, weight: int = 400) -> list[FontRun]:
    """Split a text into stretches of one font and one direction, in visual order from left to right.

    The first strong character decides the direction of the whole, as in an isolate (U+2068) on a page.
    """
    text = writable(text)
    if not any(unicodedata.bidirectional(c) in _TURNING for c in text):
        return runs(text, weight)
    in_order: list[FontRun] = []
    for stretch, leftward in _stretches(text):
        parts = runs(stretch, weight)
        in_order += [run._replace(leftward=leftward) for run in (reversed(parts) if leftward else parts)]
    return in_order


_TURNING = ("R", "AL", "RLE", "RLO", "RLI")


def _stretches(text: str) -> Iterator[tuple[str, bool]]:
    """Yield stretches from left to right, with whether each is right to left.

    The letters of a right-to-left stretch are in logical order, which shaping needs.
    """
    from bidi import get_display

    shown = _mirrored("".join(c for c in get_display(text) if unicodedata.bidirectional(c) not in _DIRECTING))
    for leftward, letters in groupby(shown, _is_leftward):
        stretch = "".join(letters)
        yield (stretch[::-1], True) if leftward else (stretch, False)


def _is_leftward(character: str) -> bool:
    """Return whether a character is read from right to left: letters, their combining marks, and joiners."""
    kind = unicodedata.bidirectional(character)
    return kind in ("R", "AL") or (kind == "NSM" and "\u0590" <= character <= "\u08ff") or character in "\u200c\u200d"


_DIRECTING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_OPENING, _CLOSING = "([{<«‹“（［｛「『【《〈", ")]}>»›”）］｝」』】》〉"
_MIRROR = dict(zip(_OPENING + _CLOSING, _CLOSING + _OPENING, strict=True))


def _mirrored(shown: str) -> str:
    """Mirror brackets in right-to-left text: pairs that would close before they open, and single brackets without
    left-to-right letters next to them.

    The library orders characters but does not report a direction.
    """
    letters = list(shown)
    opened: list[int] = []
    closed: list[int] = []
    for i, sign in enumerate(shown):
        if sign in _OPENING and closed and shown[closed[-1]] == _MIRROR[sign]:
            letters[closed.pop()], letters[i] = sign, _MIRROR[sign]
        elif sign in _OPENING:
            opened.append(i)
        elif sign in _CLOSING and opened and shown[opened[-1]] == _MIRROR[sign]:
            opened.pop()
        elif sign in _CLOSING:
            closed.append(i)
    for i in (*opened, *closed):
        neighbours = (_strong(shown[:i][::-1]), _strong(shown[i + 1 :]))
        letters[i] = _MIRROR[shown[i]] if "L" not in neighbours and any(neighbours) else shown[i]
    return "".join(letters)


def _strong(text: str) -> str:
    """Return the direction of the first letter or digit: "L", "R", or "" if there is none."""
    kinds = (unicodedata.bidirectional(c) for c in text)
    return next(("R" if kind in ("R", "AL") else "L" for kind in kinds if kind in ("L", "R", "AL", "EN", "AN")), "")


def needed(texts: Iterable[tuple[str, int]]) -> list[Font]:
    """Return the fonts for texts with given weights, always including the first face."""
    fonts = [face(400)]
    fonts += [run.font for text, weight in texts for run in runs(text, weight) if run.font]
    return list(dict.fromkeys(fonts))


# ---- What is missing ------------------------------------------------------------------------------------

_ADVICE = {
    "CJK": "Noto Sans CJK",
    "HIRAGANA": "Noto Sans CJK",
    "KATAKANA": "Noto Sans CJK",
    "HANGUL": "Noto Sans CJK",
}


def missing(texts: Iterable[str]) -> list[str]:
    """Return a sentence for each script with a character that no font here has; empty if there is none."""
    return [_advice_for(script, characters) for script, characters in _without_font(texts).items()]


def boxes(texts: Iterable[str]) -> str:
    """Return the sentence of a caption about characters drawn as boxes; empty if there are none."""
    named = [_named(script, characters) for script, characters in _without_font(texts).items()]
    return f"No font was available for {' and '.join(named)}: boxes are drawn instead." if named else ""


def _without_font(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the characters that no font here has, by script."""
    by_script: dict[str, list[str]] = {}
    for character in dict.fromkeys(writable("".join(texts))):
        if unicodedata.category(character) not in ("Cf", "Zs") and font_for(character) is None:
            by_script.setdefault(_script(character), []).append(character)
    return by_script


def _script(character: str) -> str:
    """Return the first word of a character's name, which is the script of letters: "CJK", "DEVANAGARI"."""
    if unicodedata.category(character) == "So":
        return "EMOJI"
    return unicodedata.name(character, "UNNAMED").split()[0].split("-")[0]


def _named(script: str, characters: list[str]) -> str:
    """Describe the characters of a script, with the first of them listed: "Devanagari letters (क, ख)"."""
    shown = ", ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in characters[:LISTED])
    more = f" and {len(characters) - LISTED} more" if len(characters) > LISTED else ""
    names = {"CJK": "CJK ideographs", "EMOJI": "these emoji or signs", "UNNAMED": "these characters"}
    return f"{names.get(script, f'{script.capitalize()} letters')} ({shown}{more})"


def _advice_for(script: str, characters: list[str]) -> str:
    font = {"EMOJI": "Noto Emoji"}.get(script) or _ADVICE.get(script, f"Noto Sans {script.capitalize()}")
    advice = f"Install {font}, or name a font file in {SETTING}" if script != "UNNAMED" else f"Name a font in {SETTING}"
    if not all(any(_files([place])) for place in _named_places()):
        advice += ", which now names a place without one"
    return f"No font on this machine has {_named(script, characters)}: boxes are drawn instead. {advice}."
