"""Fonts for files: widths, cuts, fallback, the order of right-to-left text, and broken or missing fonts."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.figures import files
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Drawing, Text
from tests import hostile, lanes

HEBREW, ARABIC = "שלום", "مرحبا"


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets where fonts are searched: the places in the setting, and those of the system."""

    def look(*folders: Path, system: tuple[Path, ...] = ()) -> None:
        monkeypatch.setenv(fonts.FONTS_VARIABLE, os.pathsep.join(map(str, folders)))
        monkeypatch.setattr(fonts, "_list_system_folders", lambda: list(system))
        fonts.clear_caches()

    yield look
    monkeypatch.undo()
    fonts.clear_caches()


def font_file(path: Path, letters: str, family: str) -> Path:
    """A font whose letters are squares."""
    names = [".notdef", *(f"u{ord(c):X}" for c in letters)]
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(c): f"u{ord(c):X}" for c in letters})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupNameTable({"familyName": family, "styleName": "Regular", "psName": family})
    builder.setupOS2()
    builder.setupPost()
    path.parent.mkdir(exist_ok=True)
    builder.save(path)
    return path


# ---- Measuring -------------------------------------------------------------------------------------------


def test_a_width_is_the_sum_of_the_font_files_advances() -> None:
    for weight in (400, 600):
        font = TTFont(fonts.get_face(weight).path)
        glyphs, advances = font.getBestCmap(), font["hmtx"].metrics
        expected = sum(advances[glyphs[ord(c)]][0] for c in "Attention, 0.625") / font["head"].unitsPerEm
        assert fonts.width("Attention, 0.625", 13, weight) == pytest.approx(expected * 13)
    assert fonts.width("Attention", 13, 600) > fonts.width("Attention", 13)
    assert fonts.width("cafe\u0301", 13) == fonts.width("cafe", 13)


@given(st.text(max_size=40), st.floats(0, 200))
def test_a_cut_text_fits_and_is_a_beginning(text: str, room: float) -> None:
    short = fonts.cut_text(text, 10, room)
    if fonts.width(text, 10) <= room:
        assert short == text
    else:
        assert short.endswith("…")
        assert text.startswith(short[:-1])
        assert short == "…" or fonts.width(short, 10) <= room + 1e-6


@pytest.mark.parametrize("text", ["ae\u0301" * 30, "👋🏽" * 30, "👩\u200d👧" * 30, "क्षि" * 30])
def test_no_cut_parts_a_letter_from_its_marks(text: str) -> None:
    for room in range(8, 120, 5):
        beginning = fonts.cut_text(text, 10, room)[:-1]
        rest = text[len(beginning) :]
        assert text == beginning + rest
        assert not beginning.endswith("\u200d")
        assert unicodedata.category(rest[0])[0] != "M"
        assert rest[0] not in ("\u200d", "🏽")


def test_a_million_letters_are_not_all_measured_to_cut_them(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def advance(character: str, weight: int) -> float:
        measured.append(character)
        return 0.5

    monkeypatch.setattr(fonts, "_advance", advance)
    assert fonts.cut_text("a" * 1_000_000, 10, 50) == "a" * 9 + "…"
    assert len(measured) < 20


def test_long_texts_are_not_kept_in_memory() -> None:
    before = fonts._measure_short.cache_info().currsize
    fonts.width("b" * (fonts.MAX_CACHED_LENGTH + 1), 10)
    assert fonts._measure_short.cache_info().currsize == before


# ---- Fallback --------------------------------------------------------------------------------------------


def test_each_character_has_the_first_font_that_knows_it() -> None:
    families = [(run.text, run.font.family if run.font else None) for run in fonts.split_runs(f"it {HEBREW}")]
    assert families == [("it ", "Source Sans Pro"), (HEBREW, "DejaVu Sans")]


def test_the_setting_names_several_places_and_comes_before_the_system(
    search: Callable[..., None], tmp_path: Path
) -> None:
    system = font_file(tmp_path / "system" / "NotoSystem-Regular.ttf", "猫犬", "System")
    one = font_file(tmp_path / "one" / "one.ttf", "猫", "One")
    two = font_file(tmp_path / "two" / "two.ttf", "鳥", "Two")
    search(one.parent, two, system=(system.parent,))
    assert [font.family for c in "猫鳥犬" if (font := fonts.find_font(c))] == ["One", "Two", "System"]


def test_noto_and_regular_come_first(search: Callable[..., None], tmp_path: Path) -> None:
    for name in ("AAA-Regular", "NotoSansX-Bold", "NotoSansX-Regular"):
        font_file(tmp_path / f"{name}.ttf", "猫", name)
    search(system=(tmp_path,))
    font = fonts.find_font("猫")
    assert font is not None
    assert font.family == "NotoSansX-Regular"


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "no metrics", "folder", "every character"])
def test_a_broken_font_is_passed_over(damage: str, search: Callable[..., None], tmp_path: Path) -> None:
    whole = font_file(tmp_path / "whole" / "zz.ttf", "猫", "Whole")
    broken = font_file(tmp_path / "whole" / "aa.ttf", "猫", "Broken")
    if damage == "no metrics":
        tables = TTFont(broken)
        del tables["hhea"], tables["hmtx"]
        tables.save(broken)
    elif damage == "folder":
        broken.unlink()
        broken.mkdir()
    elif damage == "every character":
        broken.rename(broken.with_name("LastResort.ttf"))
    else:
        content = {"empty": b"", "text": b"no font", "cut": broken.read_bytes()[:300]}[damage]
        broken.write_bytes(content)
    search(whole.parent)
    font = fonts.find_font("猫")
    assert font is not None
    assert font.family == "Whole"


def test_what_is_missing_is_said_once_a_script_with_what_to_install(search: Callable[..., None]) -> None:
    search()
    assert fonts.describe_missing_fonts(["The", f"{HEBREW} {ARABIC}", "naïve", "\u200b\ufeff", "a\nb"]) == []
    sentences = fonts.describe_missing_fonts(["猫", "犬" + "一二三四五六", "한", "𐤀"])
    assert len(sentences) == 3
    assert sentences[0].startswith("No font on this machine has CJK ideographs (猫, 犬, 一, 二, 三, 四 and 2 more)")
    assert "Install Noto Sans CJK, or name a font file in MHA_VIZ_FONTS." in sentences[0]
    assert "Hangul letters (한)" in sentences[1]
    assert "Noto Sans Phoenician" in sentences[2]


def test_a_setting_that_names_no_font_is_told(search: Callable[..., None], tmp_path: Path) -> None:
    named = "or name a font file in MHA_VIZ_FONTS, which now names a path without one."
    for place in (tmp_path, tmp_path / "gone"):
        search(place)
        assert named in fonts.describe_missing_fonts(["猫"])[0]
    search(font_file(tmp_path / "letters.ttf", "a", "Letters"))
    assert named not in fonts.describe_missing_fonts(["猫"])[0]


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_any_text_is_measured_cut_ordered_and_judged(text: str) -> None:
    assert fonts.width(text[:5000], 10) >= 0
    assert fonts.width(fonts.cut_text(text, 10, 80), 10) <= 80
    plain = fonts.replace_unwritable(text[:5000])
    assert "".join(run.text for run in fonts.split_runs(text[:5000])) == plain
    assert len(plain) == len(text[:5000])
    drawn = [c for run in fonts.place_runs(text[:5000]) for c in run.text if unicodedata.category(c) != "Cf"]
    shown = [c for c in plain if unicodedata.category(c) != "Cf"]
    assert sorted(drawn) == sorted(shown)
    assert all(sentence.isprintable() for sentence in fonts.describe_missing_fonts([text[:5000]]))


@pytest.mark.app
def test_nothing_slow_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, mha_viz.figures.drawing.fonts; "
        "print({'fontTools', 'matplotlib', 'bidi', 'PIL'} & set(sys.modules) or '')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()


# ---- Order -----------------------------------------------------------------------------------------------

# From left to right in visual order: a stretch in logical order, and "<" if it is read from the right.
ORDERS = {
    "one word": (HEBREW, [(HEBREW, "<")]),
    "a full stop ends on the left": (f"{HEBREW}.", [(".", ""), (HEBREW, "<")]),
    "a number stays a number": (f"{HEBREW} 123", [("123 ", ""), (HEBREW, "<")]),
    "inside a Latin text": (f"abc {HEBREW} def", [("abc ", ""), (HEBREW, "<"), (" def", "")]),
    "brackets around it": (f"({HEBREW})", [("(", ""), (HEBREW, "<"), (")", "")]),
    "one bracket before it": (f"({HEBREW}", [(HEBREW, "<"), (")", "")]),
    "brackets around Latin letters": (f"{ARABIC} (x) 3.5", [("3.5 (x) ", ""), (ARABIC, "<")]),
    "quotes": (f"«{HEBREW}» a", [("a «", ""), (HEBREW, "<"), ("»", "")]),
    "an override": ("file\u202egpj.exe", [("fileexe.jpg", "")]),
    "isolates": (f"\u2067{HEBREW} abc\u2069 def", [("abc ", ""), (HEBREW, "<"), (" def", "")]),
    "marks on Latin letters": (f"e\u0301 {HEBREW}", [("e\u0301 ", ""), (HEBREW, "<")]),
    "marks on Hebrew letters": ("א\u05b8ב", [("א\u05b8ב", "<")]),
}


@pytest.mark.parametrize("text", ORDERS)
def test_text_stands_as_a_page_shows_it(text: str) -> None:
    logical, expected = ORDERS[text]
    parts: list[tuple[str, str]] = []
    for run in fonts.place_runs(logical):  # fonts change within a stretch; only the order matters here
        mark = "<" if run.is_leftward else ""
        if parts and parts[-1][1] == mark == "":
            parts[-1] = (parts[-1][0] + run.text, mark)
        else:
            parts.append((run.text, mark))
    assert parts == expected


@pytest.mark.parametrize(
    "text", ["\u2067שלום\u2069", "\u2066שלום\u2069 x", "\u202bשלום", "שלום\u2069\u2069", "א\u200dב\u200c"]
)
def test_directing_characters_around_right_to_left_letters_do_no_harm(text: str) -> None:
    drawing = Drawing(200, 40, (Text(10, 20, text, 12, "#000000"),))
    for suffix in files.drawing_suffixes():
        assert files.drawing_bytes(drawing, suffix)


@pytest.mark.app
def test_several_threads_write_what_one_writes() -> None:
    letters = f"animal ΔЖ{HEBREW}{ARABIC}e\u0301"

    def written(i: int) -> tuple[bytes, bytes]:
        texts = [Text(10, 15 + 12 * j, letters[(i + j) % 12 :] + letters[: j % 5], 11, "#000000") for j in range(12)]
        drawing = Drawing(200, 170, tuple(texts))
        return files.drawing_bytes(drawing, ".pdf"), files.drawing_bytes(drawing, ".svg")

    count = 24 if lanes.everything else 8
    fonts.clear_caches()  # concurrent threads disturb files that are being read
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(written, range(count)))
    finally:
        sys.setswitchinterval(before)
    assert together == [written(i) for i in range(count)]
