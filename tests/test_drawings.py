"""Static figures as files: the same marks in every format, any script, any text, and no incomplete file."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree as Tree

import numpy as np
import pypdfium2
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from mha_viz.attention import Attention, Head
from mha_viz.errors import ExportError
from mha_viz.figures import files
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import CellPicture, Curve, Drawing, Rect, Text
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.difference import difference
from mha_viz.figures.layout.grid import grid
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from mha_viz.text import clean
from tests import hostile
from tests.static_figures import FIGURES

SVG = "{http://www.w3.org/2000/svg}"


def labelled(*tokens: str) -> Attention:
    n = len(tokens)
    return Attention.from_tensors([np.full((1, n, n), 1 / n)], tokens)


def rendered(pdf: bytes, scale: float = 1) -> Image.Image:
    return pypdfium2.PdfDocument(pdf)[0].render(scale=scale).to_pil().convert("RGB")


def text_of(pdf: bytes) -> str:
    return str(pypdfium2.PdfDocument(pdf)[0].get_textpage().get_text_range())


# ---- SVG -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_svg_holds_every_mark_where_the_drawing_has_it(name: str) -> None:
    drawing = FIGURES[name]
    root = Tree.fromstring(files.drawing_bytes(drawing, ".svg"))
    assert root.get("width") == f"{drawing.width:.3f}".rstrip("0").rstrip(".") + "pt"
    texts = [m for m in drawing.marks if isinstance(m, Text)]
    elements = root.iter(f"{SVG}text")
    for mark, element in zip(texts, elements, strict=True):
        assert element.text == mark.text
        assert float(element.get("x", "")) == pytest.approx(mark.x, abs=1e-3)
        assert float(element.get("y", "")) == pytest.approx(mark.y + 0.355 * mark.size, abs=0.02 * mark.size)
        assert float(element.get("fill-opacity", "1")) == pytest.approx(mark.opacity, abs=1e-3)
    curves = [m for m in drawing.marks if isinstance(m, Curve)]
    for curve, element in zip(curves, root.iter(f"{SVG}path"), strict=True):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", element.get("d", ""))]
        assert numbers == pytest.approx([n for point in curve.points for n in point], abs=1e-3)
        assert float(element.get("stroke-opacity", "1")) == pytest.approx(curve.opacity, abs=1e-3)


def test_few_cells_are_rectangles_and_many_one_picture() -> None:
    small, large = (np.zeros((n, n, 3), np.uint8) for n in (4, 64))
    for pixels in (small, large):
        pixels[np.arange(len(pixels)), np.arange(len(pixels))] = (18, 92, 161)
    few, many = (Drawing(90, 90, (CellPicture(5, 5, 80, 80, pixels),)) for pixels in (small, large))
    root = Tree.fromstring(files.drawing_bytes(few, ".svg"))
    assert len([r for r in root.iter(f"{SVG}rect") if r.get("fill") == "#125ca1"]) == 4
    root = Tree.fromstring(files.drawing_bytes(many, ".svg"))
    image = next(root.iter(f"{SVG}image"))
    assert image.get("href", "").startswith("data:image/png;base64,")
    assert "pixelated" in image.get("style", "")


def test_svg_says_what_it_shows() -> None:
    drawing = FIGURES["heatmap"]
    written = files.drawing_bytes(drawing, ".svg").decode()
    root = Tree.fromstring(written)
    assert root.findtext(f"{SVG}title") == drawing.alt
    assert root.findtext(f"{SVG}desc") == drawing.caption
    assert "heads: L1H2" in written


# ---- PDF and PNG -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_pdf_and_png_show_the_same_picture(name: str) -> None:
    drawing = FIGURES[name]
    if drawing.background is None:
        drawing = Drawing(drawing.width, drawing.height, drawing.marks, "#ffffff")
    png = Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 144))).convert("RGB")
    pdf = rendered(files.drawing_bytes(drawing, ".pdf"), 2).resize(png.size)
    difference_ = np.abs(np.asarray(png, float) - np.asarray(pdf, float))
    assert difference_.mean() < 4
    blurred = [np.asarray(image.reduce(8), float) for image in (png, pdf)]
    # Nothing is missing or misplaced; lines between cells are exactly one pixel in PNG, one to two in a PDF viewer.
    assert np.abs(blurred[0] - blurred[1]).max() < 60


def test_pdf_has_its_size_its_text_and_its_fonts_inside() -> None:
    drawing = FIGURES["compare"]
    written = files.drawing_bytes(drawing, ".pdf")
    page = pypdfium2.PdfDocument(written)[0]
    assert page.get_size() == pytest.approx((drawing.width, drawing.height), abs=0.01)
    assert "L1H2 (2-3) first" in text_of(written)
    assert b"/FontFile2" in written
    info = pypdfium2.PdfDocument(written).get_metadata_dict()
    assert info["Subject"] == drawing.caption
    assert "heads: L1H2 L1H2" in info["Keywords"]
    assert info["Author"] == "mha_viz"


@pytest.mark.parametrize("name", FIGURES)
def test_every_font_of_a_pdf_is_inside_it(name: str) -> None:
    written = files.drawing_bytes(FIGURES[name], ".pdf")
    assert b"/Type1" not in written
    assert written.count(b"/BaseFont") == written.count(b"/FontFile2")
    assert b"Helvetica" not in written


def test_boxes_in_place_of_letters_take_the_room_that_was_measured(fresh_fonts: Callable[[str], None]) -> None:
    fresh_fonts("")
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    with patch.object(Canvas, "rect") as rect:
        files.drawing_bytes(Drawing(100, 20, (Text(0, 10, family, 10, "#000000"),), background=None), ".pdf")
    assert rect.call_count == 3
    assert fonts.width(family, 10) == pytest.approx(3 * 10 * fonts.BOX_WIDTH)


def test_the_same_figure_is_the_same_file() -> None:
    for suffix in files.drawing_suffixes():
        assert files.drawing_bytes(FIGURES["links"], suffix) == files.drawing_bytes(FIGURES["links"], suffix)


def test_png_has_its_resolution_its_words_and_its_background() -> None:
    for name, mode_clear in (("heatmap", False), ("transparent", True)):
        drawing = FIGURES[name]
        image = Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 200)))
        assert image.size == pytest.approx((drawing.width * 200 / 72, drawing.height * 200 / 72), abs=1)
        assert image.info["dpi"][0] == pytest.approx(200, abs=0.1)
        assert image.text["Description"] == drawing.caption  # type: ignore[attr-defined]
        assert (image.convert("RGBA").getpixel((0, 0))[3] == 0) is mode_clear  # type: ignore[index]


@pytest.mark.app
def test_the_same_figure_is_the_same_file_in_every_process() -> None:
    code = (
        "import hashlib; from mha_viz.figures import files; from tests.static_figures import FIGURES\n"
        "for s in files.drawing_suffixes():\n"
        "  print(hashlib.sha256(files.drawing_bytes(FIGURES['compare'], s)).hexdigest())"
    )
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"  # order of sets
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).resolve().parent.parent,
        env={**os.environ, "PYTHONHASHSEED": other}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = [files.drawing_bytes(FIGURES["compare"], suffix) for suffix in files.drawing_suffixes()]
    assert done.stdout.split() == [hashlib.sha256(written).hexdigest() for written in here]


@pytest.mark.parametrize("dpi", [0, -5, 9, 2401, float("nan"), float("inf")])
def test_a_resolution_that_no_picture_has_is_refused(dpi: float) -> None:
    with pytest.raises(ExportError, match="Expected a number from 10 to 2400"):
        files.drawing_bytes(Drawing(50, 50, ()), ".png", dpi)  # type: ignore[arg-type]


@pytest.mark.parametrize("dpi", [96, 150, 300])
def test_lines_between_cells_are_equally_thick_and_sharp_in_png(dpi: int) -> None:
    pixels = np.zeros((40, 40, 3), np.uint8)
    lines = [Rect(10 + c * 7.3 - 0.3, 10, 0.6, 292, fill="#ffffff") for c in range(1, 40)]
    drawing = Drawing(312, 312, (CellPicture(10, 10, 292, 292, pixels), *lines))
    image = Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", dpi))).convert("L")
    row = np.asarray(image)[image.height // 2]
    assert set(row.tolist()) == {0, 255}
    edges = np.flatnonzero(np.diff(row.astype(int)))[1:-1]  # without the matrix's own
    assert set(np.diff(edges)[::2].tolist()) == {max(1, round(0.6 * dpi / 72))}
    assert len(edges) == 2 * len(lines)


def test_a_picture_beyond_all_bounds_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(ExportError, match="fewer dpi"):
        files.drawing_bytes(Drawing(5000, 5000, ()), ".png", 1200)


def test_cells_keep_sharp_edges_in_every_format() -> None:
    pixels = np.array([[[255, 0, 0], [0, 0, 255]]] * 2, np.uint8)
    drawing = Drawing(40, 40, (CellPicture(0, 0, 40, 40, pixels),))
    for image in (
        Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 144))).convert("RGB"),
        rendered(files.drawing_bytes(drawing, ".pdf"), 2),
    ):
        assert image.getpixel((37, 40)) == (255, 0, 0)
        assert image.getpixel((43, 40)) == (0, 0, 255)


# ---- Scripts ---------------------------------------------------------------------------------------------


def test_right_to_left_and_joined_letters_are_drawn_and_found_again() -> None:
    drawing = heatmap(labelled("שלום", "مرحبا", "naïve", "Привет", "e\u0301"), Head(0, 0))
    assert fonts.describe_missing_fonts(drawing.texts()) == []
    copied = text_of(files.drawing_bytes(drawing, ".pdf"))
    assert "Привет" in copied
    assert "naïve" in copied
    assert {"שלום", "مرحبا"} <= set(copied.split())


@pytest.mark.parametrize(
    "text",
    ["שלום", "مرحبا", "שָׁלוֹם", "مَرْحَبًا", "הכלב לא חצה את הרחוב", "abc שלום def", "שלום! (כן)", "naïve", "x 😀", "𝒳 𝔘x"],
)
def test_text_of_a_pdf_is_copied_and_found_as_it_is_read(text: str) -> None:
    drawing = Drawing(300, 40, (Text(20, 20, text, 20, "#000000"),))
    assert fonts.describe_missing_fonts(drawing.texts()) == []
    page = pypdfium2.PdfDocument(files.drawing_bytes(drawing, ".pdf"))[0].get_textpage()
    copied = page.get_text_range()
    assert unicodedata.normalize("NFC", copied) == unicodedata.normalize("NFC", text)  # marks in any order
    if copied == text and max(text) <= "\uffff":  # this viewer searches no other fonts
        assert page.search(text).get_next() is not None


def test_arabic_letters_are_joined() -> None:
    """With joined letters, مرحبا is narrower than its five single letters."""
    image = rendered(files.drawing_bytes(Drawing(200, 40, (Text(100, 20, "مرحبا", 20, "#000000"),)), ".pdf"), 4)
    columns = np.flatnonzero((np.asarray(image.convert("L")) < 128).any(axis=0)) / 4
    assert columns[-1] - columns[0] < 0.9 * sum(fonts.width(letter, 20) for letter in "مرحبا")


@pytest.mark.parametrize("anchor", ["start", "middle", "end"])
@pytest.mark.parametrize("text", ["animal", "שלום", "مرحبا"])
def test_a_text_stands_where_its_anchor_says(text: str, anchor: str) -> None:
    mark = Text(100, 20, text, 20, "#000000", anchor=anchor)  # type: ignore[arg-type]
    for image in (
        rendered(files.drawing_bytes(Drawing(200, 40, (mark,)), ".pdf"), 2),
        Image.open(io.BytesIO(files.drawing_bytes(Drawing(200, 40, (mark,)), ".png", 144))).convert("RGB"),
    ):
        columns = np.flatnonzero((np.asarray(image.convert("L")) < 128).any(axis=0)) / 2
        at = {"start": columns[0], "middle": (columns[0] + columns[-1]) / 2, "end": columns[-1]}[anchor]
        assert at == pytest.approx(100, abs=3)


@pytest.fixture
def fresh_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets where fonts are searched; the cache of fonts is cleared before and after."""

    def look_in(place: str) -> None:
        monkeypatch.setenv(fonts.FONTS_VARIABLE, place)
        monkeypatch.setattr(fonts, "_list_system_folders", list)
        fonts.clear_caches()

    yield look_in
    monkeypatch.undo()
    fonts.clear_caches()


def square_font(path: Path, letters: str, cff: bool) -> None:
    """A font in which every letter is a black square of 800 units."""
    names = [".notdef", *(f"u{ord(c):X}" for c in letters)]
    builder = FontBuilder(1000, isTTF=not cff)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(c): f"u{ord(c):X}" for c in letters})
    pens = {name: T2CharStringPen(1000, None) if cff else TTGlyphPen(None) for name in names}
    for pen in pens.values():
        pen.moveTo((100, 0))
        for corner in ((100, 800), (900, 800), (900, 0)):
            pen.lineTo(corner)
        pen.closePath()
    if cff:
        builder.setupCFF("Squares", {}, {n: p.getCharString() for n, p in pens.items()}, {})
    else:
        builder.setupGlyf({n: p.glyph() for n, p in pens.items()})
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 100)))
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular", "psName": "Squares-Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.mark.parametrize("cff", [False, True], ids=["glyf", "CFF"])
def test_chinese_is_drawn_where_a_font_has_it(tmp_path: Path, fresh_fonts: Callable[[str], None], cff: bool) -> None:
    square_font(tmp_path / f"squares.{'otf' if cff else 'ttf'}", "猫好", cff)
    fresh_fonts(str(tmp_path))
    drawing = Drawing(60, 40, (Text(10, 20, "猫好", 20, "#000000"),), "#ffffff")
    assert fonts.describe_missing_fonts(drawing.texts()) == []
    assert fonts.width("猫好", 20) == pytest.approx(40)
    for image in (
        rendered(files.drawing_bytes(drawing, ".pdf"), 2),
        Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 144))).convert("RGB"),
    ):
        dark = np.asarray(image.convert("L")) < 128
        assert dark.mean() == pytest.approx(2 * 16 * 16 / (60 * 40), rel=0.1)
    assert "Squares" in files.drawing_bytes(drawing, ".svg").decode()


def test_a_missing_script_is_named_with_what_to_install(fresh_fonts: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font at all")
    fresh_fonts(str(tmp_path))
    sentences = fonts.describe_missing_fonts(["a猫", "猫好", "क", "👩"])
    assert len(sentences) == 3
    assert "CJK ideographs (猫, 好)" in sentences[0]
    assert "Noto Sans CJK" in sentences[0]
    assert "Devanagari" in sentences[1]
    for suffix in files.drawing_suffixes():
        assert files.drawing_bytes(Drawing(60, 40, (Text(10, 20, "猫", 20, "#000000"),)), suffix)


def test_cut_text_fits_and_marks_stay_with_their_letters() -> None:
    whole = "electroencephalographer"
    short = fonts.cut_text(whole, 13, 60)
    assert short.endswith("…")
    assert fonts.width(short, 13) <= 60 < fonts.width(whole, 13)
    assert fonts.cut_text(whole, 13, 500) == whole
    assert fonts.cut_text("ae\u0301" * 30, 13, 50).count("e") == fonts.cut_text("ae\u0301" * 30, 13, 50).count("\u0301")
    assert fonts.cut_text("wide", 13, 0) == "…"


# ---- Invalid input ---------------------------------------------------------------------------------------


def hostile_figures(text: str) -> dict[str, Drawing]:
    """Every figure of a reading whose tokens, words and names are this text."""
    one, two = labelled(text, "x"), labelled("a", text)
    head = Head(0, 0)
    return {
        "heatmap": heatmap(one, head, View(pin="q0")),
        "links": links(one, [head], View(pin="k1")),
        "grid": grid(one),
        "compare": compare([Panel(one, head, text), Panel(two, head)]),
        "compared links": compare([Panel(one, head, text)], kind="links"),
        "difference": difference(Panel(one, head, text), Panel(one, head)),
    }


@pytest.mark.parametrize(("number", "text"), list(enumerate(hostile.KINDS.values())), ids=hostile.KINDS)
def test_hostile_tokens_in_every_format(number: int, text: str) -> None:
    """Every figure as SVG, and alternately as PDF and PNG."""
    for turn, drawing in enumerate(hostile_figures(text[:300]).values()):
        _is_inert(files.drawing_bytes(drawing, ".svg"))
        if (number + turn) % 3 == 0:
            assert rendered(files.drawing_bytes(drawing, ".pdf"), 0.5).size[0] > 10
        elif (number + turn) % 3 == 1:
            assert Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 50))).size[0] > 10


def _is_inert(written: bytes) -> None:
    root = Tree.fromstring(written)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        "svg", "title", "desc", "metadata", "RDF", "Description", "creator", "description", "subject", "g", "rect",
        "text", "path", "image",
    }  # fmt: skip
    for element in root.iter():
        assert not [name for name in element.attrib if name.startswith("on")]
        href = element.get("href", "data:")
        assert href.startswith("data:")


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_words_about_a_figure(text: str) -> None:
    words = text[:300]
    drawing = Drawing(50, 50, (Rect(5, 5, 9, 9, fill="#000000"),), caption=words, alt=words, about={"text": words})
    root = Tree.fromstring(files.drawing_bytes(drawing, ".svg"))
    assert [e.tag for e in root.iter() if e.tag.endswith("script")] == []
    pypdfium2.PdfDocument(files.drawing_bytes(drawing, ".pdf")).get_metadata_dict()
    image = Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", 72)))
    image.load()
    assert image.text["text"] == clean(words)  # type: ignore[attr-defined]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    path.write_text("before")
    assert files.write_drawing(FIGURES["grid"], path) == path
    Tree.fromstring(path.read_bytes())
    with pytest.raises(ExportError, match="not a figure format"):
        files.write_drawing(FIGURES["grid"], tmp_path / "figure.bmp")
    with pytest.raises(ExportError, match="no suffix"):
        files.write_drawing(FIGURES["grid"], tmp_path / "figure")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "such" / "f.svg", tmp_path / "a\0b.svg"):
        with pytest.raises(ExportError, match="cannot be written"):
            files.write_drawing(FIGURES["grid"], path)
    (tmp_path / "folder.pdf").mkdir()
    with pytest.raises(ExportError, match="folder"):
        files.write_drawing(FIGURES["grid"], tmp_path / "folder.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.pdf"]


# ---- matplotlib ------------------------------------------------------------------------------------------


def test_axes_hold_every_mark_and_a_formula_is_only_text() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    drawing = heatmap(labelled(r"$\frac{$", "x"), Head(0, 0))
    axes = files.draw(drawing)
    assert [t.get_text() for t in axes.texts] == list(drawing.texts())
    assert len(axes.images) == len([m for m in drawing.marks if isinstance(m, CellPicture)])
    assert len(axes.patches) == 1 + len([m for m in drawing.marks if isinstance(m, Rect | Curve)])  # 1: the paper
    axes.figure.canvas.draw()
    assert tuple(axes.figure.get_size_inches()) == pytest.approx((drawing.width / 72, drawing.height / 72))
    sizes = [mark.size for mark in drawing.marks if isinstance(mark, Text)]
    assert [t.get_fontsize() for t in axes.texts] == pytest.approx(sizes)
    plt.close("all")


def test_on_somebodys_axes_text_shrinks_with_the_drawing_and_the_rest_of_their_figure_stays() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    dark = FIGURES["dark"]
    figure, (left, other) = plt.subplots(1, 2, figsize=(4, 3))
    before = figure.get_facecolor(), other.get_xlim()
    assert files.draw(dark, left) is left
    assert (figure.get_facecolor(), other.get_xlim()) == before
    assert left.patches[0].get_facecolor() == mpl.colors.to_rgba(dark.background or "")
    figure.canvas.draw()
    share = left.get_window_extent().width / figure.dpi * 72 / dark.width
    sizes = [mark.size * share for mark in dark.marks if isinstance(mark, Text)]
    assert [t.get_fontsize() for t in left.texts] == pytest.approx(sizes, rel=0.01)
    plt.close("all")
