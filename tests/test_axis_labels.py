"""Check what stands beside the rows and columns of a figure: pieces with the mark that they continue their word, in
every kind and every format; and, where not every label has room, each k-th with a tick, and a note."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import pypdfium2
import pytest

from mha_viz import figures as draw
from mha_viz.attention import Attention
from mha_viz.cli.figure import KINDS
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import CellPicture, Drawing, Rect, Text
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.figure import Figure
from mha_viz.figures.layout.packet import build_packet

NAMES = ["[CLS]", "the", "ord", "##ina", "##ry", "word", "[SEP]"]
PIECES = ("ord", "##ina", "##ry")

# One figure of each kind that the command line draws.
Draw = Callable[..., Figure]
DRAWN: Mapping[str, Draw] = MappingProxyType(
    {
        "heatmap": lambda one, **options: draw.heatmap(one, 0, 0, **options),
        "links": lambda one, **options: draw.links(one, 0, 0, **options),
        "grid": lambda one, **options: draw.grid(one, **options),
        "compare": lambda one, **options: draw.compare([(one, "L0H0"), (one, "L0H1")], **options),
        "difference": lambda one, **options: draw.difference((one, "L0H0"), (one, "L0H1"), **options),
    }
)
WITHOUT_TOKENS = {"grid"}  # its rows are layers, its columns heads; the numbers in its files are those of tokens
MATRICES = tuple(kind for kind in DRAWN if kind not in {"links", *WITHOUT_TOKENS})


def split() -> Attention:
    """A text with a word of three pieces."""
    return Attention.from_tensors(rows(len(NAMES)), NAMES)


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(1).dirichlet(np.full(n, 0.5), (1, 2, n)).astype(np.float32)


def long(n: int = 60) -> Attention:
    return Attention.from_tensors(rows(n), [f"t{number}" for number in range(n)])


def test_every_kind_that_the_command_line_draws_is_tried_here() -> None:
    assert set(DRAWN) == set(KINDS)


# ---- Pieces ------------------------------------------------------------------------------------------------------


def words_in(content: bytes, suffix: str) -> str:
    """The words that a file of this format shows."""
    if suffix == ".pdf":
        return str(pypdfium2.PdfDocument(content)[0].get_textpage().get_text_range())
    if suffix == ".npz":
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return " ".join(str(file[name].tolist()) for name in file.files if file[name].dtype.kind == "U")
    return html.unescape(content.decode("utf-8", "ignore"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_keeps_its_mark_in_every_file_of_every_kind(kind: str) -> None:
    figure = DRAWN[kind](split(), unit="pieces")
    assert {".svg", ".pdf", ".html", ".csv"} <= set(figure.suffixes)
    for suffix in figure.suffixes:
        if suffix == ".html" or (kind in WITHOUT_TOKENS and suffix in files.drawing_suffixes()):
            continue  # a page packs its tokens: the test of packets
        if suffix == ".png":
            assert set(PIECES) <= set(figure.drawing.texts())
            continue
        text = words_in(figure.to_bytes(suffix), suffix)
        for piece in PIECES:
            assert piece in text, suffix
        assert not re.search(r"(?<![#\w])(ina|ry)\b", text.replace("ordinary", "")), suffix


@pytest.mark.parametrize("suffix", files.suffixes())
def test_a_piece_keeps_its_mark_in_every_file_of_a_reading(suffix: str) -> None:
    text = words_in(files.to_bytes(split(), suffix), suffix)
    for piece in PIECES:
        assert piece in text


def test_the_pages_get_pieces_with_their_marks_and_words_without() -> None:
    packed = build_packet(split(), [])
    header = json.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])
    assert header["tokens"] == NAMES
    assert header["words"] == ["[CLS]", "the", "ordinary", "word", "[SEP]"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in WITHOUT_TOKENS])
def test_words_have_no_mark(kind: str) -> None:
    texts = DRAWN[kind](split()).drawing.texts()
    assert "ordinary" in texts
    assert not [text for text in texts if "##" in text]


# ---- Labels that have no room ------------------------------------------------------------------------------------


def labels_of(drawing: Drawing, is_row: bool) -> list[Text]:
    labels = [m for m in drawing.marks if isinstance(m, Text) and re.fullmatch(r"t\d+", m.text)]
    return [m for m in labels if (m.turn == 0) is is_row]


def ticks_of(drawing: Drawing, is_row: bool) -> list[Rect]:
    """The short marks beside a matrix."""
    marks = [m for m in drawing.marks if isinstance(m, Rect) and m.fill == LIGHT.muted]
    return [m for m in marks if (m.width > m.height) is is_row]


@pytest.mark.parametrize("width", [85, 110, 178])
@pytest.mark.parametrize("kind", MATRICES)
def test_where_labels_have_no_room_each_kth_has_one_with_a_tick_and_the_figure_says_so(kind: str, width: float) -> None:
    count = 100
    drawing = DRAWN[kind](long(count), width_mm=width).drawing
    matrices = [m for m in drawing.marks if isinstance(m, CellPicture) and len(m.pixels) == count]
    assert len(matrices) == (2 if kind == "compare" else 1)
    for is_row in (True, False):
        axes = len({m.y for m in matrices}) if is_row else len(matrices)  # those beside each other share their rows
        numbers = [int(m.text[1:]) for m in labels_of(drawing, is_row)]
        every = numbers[1] - numbers[0]
        assert numbers == [*range(0, count, every)] * axes
        ticks = ticks_of(drawing, is_row)
        middles = [m.y + m.height / 2 if is_row else m.x + m.width / 2 for m in ticks]
        assert middles == pytest.approx([m.y if is_row else m.x for m in labels_of(drawing, is_row)], abs=0.01)
        ending = {2: "nd", 3: "rd"}.get(every, "th")
        assert [text for text in drawing.texts() if f"every {every}{ending} token is labelled" in text]
        assert f"Every {every}{ending} token is labelled." in drawing.full_caption


def remedies(drawing: Drawing) -> str:
    """Say what helps where labels are left out; empty if none are."""
    says = (str(note) for note in drawing.notes if "token is labelled." in str(note))
    return next((note.partition("token is labelled. ")[2] for note in says), "")


# A value of each remedy that is great, or small, enough.
GREAT = MappingProxyType({"width_mm": 2000, "max_height_mm": 10_000, "font_pt": 3})


@pytest.mark.parametrize("pin", ["", "q50"])
@pytest.mark.parametrize("size", [(85, 220), (178, 60), (85, 60), (110, 40)])
@pytest.mark.parametrize("kind", MATRICES)
def test_what_a_note_on_labels_advises_helps(kind: str, size: tuple[float, float], pin: str) -> None:
    """All that is to be raised, at once; and no name that changes nothing."""
    given = {"width_mm": size[0], "max_height_mm": size[1], "font_pt": 8, "pin": pin}
    says = remedies(DRAWN[kind](long(), **given).drawing)
    if kind == "heatmap" and pin:
        assert says == ""  # the part around the token
        return
    assert ("With a pin" in says) == (kind == "heatmap")
    if kind == "heatmap":
        assert not remedies(DRAWN[kind](long(), **{**given, "pin": "q50"}).drawing)
    named = [name for name in GREAT if name in says]
    raised = {name: GREAT[name] for name in named if name != "font_pt"}
    assert raised
    assert not remedies(DRAWN[kind](long(), **{**given, **raised}).drawing)
    for name in raised:  # none alone is enough without the others
        others = {other: value for other, value in raised.items() if other != name}
        assert remedies(DRAWN[kind](long(), **{**given, **others}).drawing)
    assert "font_pt" in named
    assert "special" not in says  # this text has none


@pytest.mark.parametrize("kind", MATRICES)
def test_hiding_special_tokens_is_advised_where_it_makes_room_for_all_labels(kind: str) -> None:
    def notes(specials: int, special: str) -> str:
        names = [*["[PAD]"] * specials, *(f"t{i}" for i in range(60 - specials))]
        one = Attention.from_tensors(rows(60), names)
        return remedies(DRAWN[kind](one, width_mm=85, special=special).drawing)

    assert "hide special tokens" in notes(50, "keep")
    assert notes(50, "hide") == ""
    assert "hide special tokens" not in notes(2, "keep")
    assert notes(2, "hide") != ""


@pytest.mark.parametrize("kind", MATRICES)
def test_where_all_labels_have_room_there_is_no_tick_and_no_note(kind: str) -> None:
    drawing = DRAWN[kind](long(12)).drawing
    assert {m.text for m in labels_of(drawing, True)} == {f"t{number}" for number in range(12)}
    assert not ticks_of(drawing, True) + ticks_of(drawing, False)
    assert not [text for text in (*drawing.texts(), drawing.full_caption) if "is named" in text]


@pytest.mark.parametrize("kind", ["heatmap", "difference"])
def test_a_held_token_has_its_label_among_thinned_ones(kind: str) -> None:
    drawing = DRAWN[kind](long(100), pin="q50", width_mm=85).drawing
    assert "t50" in [m.text for m in labels_of(drawing, True)]


@pytest.mark.parametrize("kind", ["heatmap", "links", "compare", "difference"])
@pytest.mark.parametrize("pin", ["q3", "k5", "q3k5"])
def test_words_that_are_not_held_keep_their_colour_in_files(kind: str, pin: str) -> None:
    drawing = DRAWN[kind](long(12), pin=pin).drawing
    colours = {m.colour for m in drawing.marks if isinstance(m, Text) and re.fullmatch(r"t\d+", m.text)}
    assert colours == {LIGHT.ink, LIGHT.accent}
