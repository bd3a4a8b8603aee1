"""Fonts for files: the width of text, the font for each character, and the characters that no font on this machine has.

The first font is Source Sans Pro, as on screen; the second is DejaVu Sans, which has Greek, Cyrillic, Hebrew, Arabic
and many symbols; the system's fonts are searched only if a character needs them. ``MHA_VIZ_FONTS`` may name folders or
files (separated as in PATH) to search before the system's fonts.
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

from mha_viz.figures.drawing.font_file import Font, detect_outlines

FONTS_VARIABLE = "MHA_VIZ_FONTS"
SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
BOX_WIDTH = 0.6  # the width, in ems, of the box that stands for a character without a font
MAX_LISTED_CHARACTERS = 6  # maximum number of characters that a warning names
MAX_CACHED_LENGTH = 200  # maximum length of texts whose widths are cached, to limit memory
PLACEHOLDER_FONTS = re.compile("LastResort|AdobeBlank|NotDef")  # these draw every character as a box or a blank


class FontRun(NamedTuple):
    """A part of a text in one font, in logical order. ``font`` is None if no font has its characters."""

    text: str
    font: Font | None
    is_leftward: bool = False  # whether the text is read from right to left


@cache
def get_face(weight: int) -> Font:
    """Return the first font, Source Sans Pro, in regular or semi-bold weight."""
    return _source_font("Sans", weight)


def get_serif(weight: int) -> Font:
    """Return the font of headings, as on the app's pages."""
    return _source_font("Serif", weight)


@cache
def _source_font(kind: str, weight: int) -> Font:
    files = _find_package(f"font_source_{kind.lower()}_pro") / "files"
    return Font(str(files / f"Source{kind}Pro-{'Semibold' if weight >= 600 else 'Regular'}.ttf"))


@cache
def get_second_face(weight: int) -> Font:
    """Return DejaVu Sans, which is installed with matplotlib and found without importing it."""
    files = _find_package("matplotlib") / "mpl-data" / "fonts" / "ttf"
    return Font(str(files / ("DejaVuSans-Bold.ttf" if weight >= 600 else "DejaVuSans.ttf")))


def _find_package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"The package {name} is not installed; `pip install -r requirements.txt` brings it.")
    return Path(spec.submodule_search_locations[0])


@lru_cache(maxsize=20_000)
def find_font(character: str, weight: int = 400) -> Font | None:
    """Return the first font that has a character; None if no font on this machine does."""
    for font in (get_face(weight), get_second_face(weight)):
        if ord(character) in font.glyphs:
            return font
    return next(
        (font for font in _list_other_fonts() if _has_character(font, ord(character)) and font.is_readable), None
    )


@cache
def _list_other_fonts() -> tuple[Font, ...]:
    """Return all other fonts: first those in MHA_VIZ_FONTS, then the system's.

    Only the first face of a collection is used, since its other faces have the same characters.
    """
    configured_files = sorted(_iter_files(_list_configured_paths()))
    system_files = sorted(_iter_files(_list_system_folders()), key=_preference_key)
    return tuple(Font(str(path)) for path in [*configured_files, *system_files])


def _list_configured_paths() -> list[Path]:
    return [Path(path) for path in os.environ.get(FONTS_VARIABLE, "").split(os.pathsep) if path]


def _preference_key(path: Path) -> tuple[bool, bool, bool, str]:
    """Return a sort key: Noto before others, upright and regular before slanted and bold."""
    name = path.stem
    is_styled = re.search("Bold|Italic|Oblique|Light|Mono", name) is not None
    return "Noto" not in name, "Regular" not in name, is_styled, name


def _list_system_folders() -> list[Path]:
    """Return the folders in which this operating system keeps its fonts."""
    home = Path("~").expanduser()
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    if os.name == "nt":
        windows, local = os.environ.get("WINDIR", r"C:\Windows"), os.environ.get("LOCALAPPDATA", str(home))
        return [Path(windows) / "Fonts", Path(local) / "Microsoft/Windows/Fonts"]
    return [Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), home / ".local/share/fonts", home / ".fonts"]


def _iter_files(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        paths = [root] if root.is_file() else root.rglob("*") if root.is_dir() else []
        yield from (
            path for path in paths if path.suffix.lower() in SUFFIXES and not PLACEHOLDER_FONTS.search(path.stem)
        )


def _has_character(font: Font, code: int) -> bool:
    starts, ends = _load_ranges(font)
    index = bisect_right(starts, code) - 1
    return index >= 0 and code <= ends[index]


@cache
def _load_ranges(font: Font) -> tuple[array[int], array[int]]:
    """Return first and last code points of the ranges of characters in a font.

    They are stored compactly, because a system may have a thousand fonts.
    """
    from fontTools.ttLib import TTFont

    starts, ends = array("L"), array("L")
    try:
        with Path(font.path).open("rb") as file, TTFont(file, fontNumber=font.number, lazy=True) as tables:
            codes = [] if detect_outlines(tables) == "pictures" else sorted(tables.getBestCmap() or {})
    except Exception:  # fontTools raises any exception for a broken file
        return starts, ends
    for code in codes:
        if ends and code == ends[-1] + 1:
            ends[-1] = code
        else:
            starts.append(code)
            ends.append(code)
    return starts, ends


def clear_caches() -> None:
    """Clear all caches, to search for fonts again after ``MHA_VIZ_FONTS`` has changed or a font was installed."""
    for function in (get_face, get_second_face, _list_other_fonts, _load_ranges, find_font, _advance, _measure_short):
        function.cache_clear()


# ---- Measuring ------------------------------------------------------------------------------------------


def width(text: str, size: float, weight: int = 400) -> float:
    """Return the width of a text in the unit of ``size``: the sum of its advances."""
    ems = _measure_short(text, weight) if len(text) <= MAX_CACHED_LENGTH else _sum_advances(text, weight)
    return ems * size


@lru_cache(maxsize=20_000)
def _measure_short(text: str, weight: int) -> float:
    return _sum_advances(text, weight)


def _sum_advances(text: str, weight: int) -> float:
    return sum(_advance(character, weight) for character in text)


@lru_cache(maxsize=20_000)
def _advance(character: str, weight: int) -> float:
    character = replace_unwritable(character)
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0  # drawn over the character before it, or not at all
    font = find_font(character, weight)
    return font.advance(character) if font else BOX_WIDTH


def cut_text(text: str, size: float, room: float, weight: int = 400) -> str:
    """Shorten a text to fit into ``room``, ending with "…"; combining marks stay with their letters."""
    remaining_room = room / size  # ems
    ellipsis_width = _advance("…", weight)
    length = 0  # maximum number of characters after which "…" still fits
    for i, character in enumerate(text):  # stop at the end of the room: a token may be a million letters long
        remaining_room -= _advance(character, weight)
        if remaining_room < 0:
            break
        length = i + 1 if remaining_room >= ellipsis_width else length
    else:
        return text
    while length and _is_inseparable(text[length], text[length - 1]):
        length -= 1
    return text[:length] + "…"


def _is_inseparable(character: str, previous: str) -> bool:
    """Return whether a line must not be cut between two characters.

    It must not be cut before combining marks and skin tones, and on both sides of a zero-width joiner.
    """
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_skin_tone or previous == "\u200d" or character == "\u200d" or unicodedata.category(character)[0] == "M"


# ---- Runs of one font -----------------------------------------------------------------------------------

_UNWRITABLE = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def replace_unwritable(text: str) -> str:
    """Replace the characters that files cannot contain, as in all formats.

    Control characters that are white space become spaces, and others U+FFFD; the length stays the same.
    """
    return _UNWRITABLE.sub(lambda sign: " " if sign[0].isspace() else "\ufffd", text)


def split_runs(text: str, weight: int = 400) -> list[FontRun]:
    """Split a text into runs of one font, in logical order.

    Characters without a shape of their own join their neighbours.
    """
    text = replace_unwritable(text)
    if text.isascii():
        return [FontRun(text, get_face(weight))] if text else []
    runs: list[FontRun] = []
    for character in text:
        is_shapeless = unicodedata.category(character) in ("Mn", "Me", "Cf")
        last_font = runs[-1].font if runs else None
        can_stay = last_font is not None and (is_shapeless or character == " ") and ord(character) in last_font.glyphs
        font = last_font if can_stay or (is_shapeless and runs) else find_font(character, weight)
        if runs and runs[-1].font == font:
            runs[-1] = FontRun(runs[-1].text + character, font)
        else:
            runs.append(FontRun(character, font))
    return runs


def place_runs(text: str, weight: int = 400) -> list[FontRun]:
    """Split a text into runs of one font and one direction, in visual order from left to right.

    The first strong character decides the direction of the whole text, as in an isolate (U+2068) on a page.
    """
    text = replace_unwritable(text)
    if not any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text):
        return split_runs(text, weight)
    visual_runs: list[FontRun] = []
    for stretch, is_leftward in _iter_stretches(text):
        parts = split_runs(stretch, weight)
        visual_runs += [run._replace(is_leftward=is_leftward) for run in (reversed(parts) if is_leftward else parts)]
    return visual_runs


_RIGHT_TO_LEFT = ("R", "AL", "RLE", "RLO", "RLI")


def _iter_stretches(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of one direction, in visual order, each with whether it is right to left.

    The letters of a right-to-left part are in logical order, which shaping needs.
    """
    from bidi import get_display

    visual_text = _mirror_brackets(
        "".join(c for c in get_display(text) if unicodedata.bidirectional(c) not in _DIRECTION_MARKS)
    )
    for is_leftward, letters in groupby(visual_text, _is_leftward):
        stretch = "".join(letters)
        yield (stretch[::-1], True) if is_leftward else (stretch, False)


def _is_leftward(character: str) -> bool:
    """Return whether a character is read from right to left: letters, their combining marks, and joiners."""
    kind = unicodedata.bidirectional(character)
    return kind in ("R", "AL") or (kind == "NSM" and "\u0590" <= character <= "\u08ff") or character in "\u200c\u200d"


_DIRECTION_MARKS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_OPENING, _CLOSING = "([{<«‹“（［｛「『【《〈", ")]}>»›”）］｝」』】》〉"
_MIRROR = dict(zip(_OPENING + _CLOSING, _CLOSING + _OPENING, strict=True))


def _mirror_brackets(visual_text: str) -> str:
    """Mirror the brackets of right-to-left text, given in visual order.

    The library does not report directions, so right-to-left brackets are recognised as pairs that would close before
    they open, and as single brackets without left-to-right letters next to them.
    """
    letters = list(visual_text)
    open_indices: list[int] = []
    close_indices: list[int] = []
    for i, sign in enumerate(visual_text):
        if sign in _OPENING and close_indices and visual_text[close_indices[-1]] == _MIRROR[sign]:
            letters[close_indices.pop()], letters[i] = sign, _MIRROR[sign]
        elif sign in _OPENING:
            open_indices.append(i)
        elif sign in _CLOSING and open_indices and visual_text[open_indices[-1]] == _MIRROR[sign]:
            open_indices.pop()
        elif sign in _CLOSING:
            close_indices.append(i)
    for i in (*open_indices, *close_indices):
        neighbours = (_find_direction(visual_text[:i][::-1]), _find_direction(visual_text[i + 1 :]))
        letters[i] = _MIRROR[visual_text[i]] if "L" not in neighbours and any(neighbours) else visual_text[i]
    return "".join(letters)


def _find_direction(text: str) -> str:
    """Return the direction of the first letter or digit: "L", "R", or "" if there is none."""
    kinds = (unicodedata.bidirectional(c) for c in text)
    return next(("R" if kind in ("R", "AL") else "L" for kind in kinds if kind in ("L", "R", "AL", "EN", "AN")), "")


def list_needed_fonts(texts: Iterable[tuple[str, int]]) -> list[Font]:
    """Return the fonts for (text, weight) pairs, always including the first font."""
    fonts = [get_face(400)]
    fonts += [run.font for text, weight in texts for run in split_runs(text, weight) if run.font]
    return list(dict.fromkeys(fonts))


# ---- Missing characters ---------------------------------------------------------------------------------

_SCRIPT_FONTS = {
    "CJK": "Noto Sans CJK",
    "HIRAGANA": "Noto Sans CJK",
    "KATAKANA": "Noto Sans CJK",
    "HANGUL": "Noto Sans CJK",
}


def describe_missing_fonts(texts: Iterable[str]) -> list[str]:
    """Return a sentence for each script with a character that no font here has; empty if there is none."""
    return [_write_advice(script, characters) for script, characters in _group_missing(texts).items()]


def describe_boxes(texts: Iterable[str]) -> str:
    """Return the sentence of a caption about characters drawn as boxes; empty if there are none."""
    descriptions = [_describe_characters(script, characters) for script, characters in _group_missing(texts).items()]
    return f"No font was available for {' and '.join(descriptions)}: boxes are drawn instead." if descriptions else ""


def _group_missing(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the characters that no font here has, by script."""
    by_script: dict[str, list[str]] = {}
    for character in dict.fromkeys(replace_unwritable("".join(texts))):
        if unicodedata.category(character) not in ("Cf", "Zs") and find_font(character) is None:
            by_script.setdefault(_find_script(character), []).append(character)
    return by_script


def _find_script(character: str) -> str:
    """Return the first word of a character's name, which is the script of letters: "CJK", "DEVANAGARI"."""
    if unicodedata.category(character) == "So":
        return "EMOJI"
    return unicodedata.name(character, "UNNAMED").split()[0].split("-")[0]


def _describe_characters(script: str, characters: list[str]) -> str:
    """Describe the characters of a script, listing the first few: "Devanagari letters (क, ख)"."""
    examples = ", ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in characters[:MAX_LISTED_CHARACTERS])
    rest = f" and {len(characters) - MAX_LISTED_CHARACTERS} more" if len(characters) > MAX_LISTED_CHARACTERS else ""
    names = {"CJK": "CJK ideographs", "EMOJI": "these emoji or signs", "UNNAMED": "these characters"}
    return f"{names.get(script, f'{script.capitalize()} letters')} ({examples}{rest})"


def _write_advice(script: str, characters: list[str]) -> str:
    font = {"EMOJI": "Noto Emoji"}.get(script) or _SCRIPT_FONTS.get(script, f"Noto Sans {script.capitalize()}")
    advice = (
        f"Install {font}, or name a font file in {FONTS_VARIABLE}"
        if script != "UNNAMED"
        else f"Name a font in {FONTS_VARIABLE}"
    )
    if not all(any(_iter_files([path])) for path in _list_configured_paths()):
        advice += ", which now names a path without one"
    return f"No font on this machine has {_describe_characters(script, characters)}: boxes are drawn instead. {advice}."
