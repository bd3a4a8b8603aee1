"""A PDF file as a screen reader sees it: tagged, with a language, a title and a description of the only figure."""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
import pytest

from mha_viz.attention import Head
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import Drawing, Rect
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.difference import difference
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from tests import hostile
from tests.readings import reading

ONE = reading()
FIGURES = {
    "heatmap": heatmap(ONE, Head(1, 2)),
    "transparent": links(ONE, [Head(1, 2), Head(1, 0)], None, Size(transparent=True)),
    "compare": compare([Panel(ONE, Head(1, 2), "first"), Panel(ONE, Head(0, 1))]),
    "difference": difference(Panel(ONE, Head(1, 2)), Panel(ONE, Head(0, 0))),
}


def utf16(read: Callable[..., int], *arguments: Any) -> str:
    """What a function of pdfium writes into a buffer."""
    size = read(*arguments, None, 0)
    buffer = (ctypes.c_ushort * (size // 2))()
    read(*arguments, buffer, size)
    return bytes(buffer).decode("utf-16-le").rstrip("\0")


@contextmanager
def elements(pdf: bytes) -> Iterator[list[Any]]:
    """The structure elements of the only page, outermost first."""
    document = pypdfium2.PdfDocument(pdf)
    page = document[0]  # its tree must not outlive the page
    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    assert tree
    assert pdfium.FPDF_StructTree_CountChildren(tree) == 1
    path = [pdfium.FPDF_StructTree_GetChildAtIndex(tree, 0)]
    while pdfium.FPDF_StructElement_CountChildren(path[-1]) and (
        child := pdfium.FPDF_StructElement_GetChildAtIndex(path[-1], 0)
    ):
        path.append(child)
    yield path
    pdfium.FPDF_StructTree_Close(tree)
    page.close()
    document.close()


def content_of(pdf: bytes) -> bytes:
    """The operators of the page."""
    streams = [
        zlib.decompress(compressed) for compressed in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)endstream", pdf, re.S)
    ]
    (content,) = [stream for stream in streams if b"BDC" in stream]
    return content


@pytest.mark.parametrize("name", FIGURES)
def test_the_file_is_tagged_and_its_one_figure_is_described(name: str) -> None:
    drawing = FIGURES[name]
    written = files.drawing_bytes(drawing, ".pdf")
    document = pypdfium2.PdfDocument(written)
    assert pdfium.FPDFCatalog_IsTagged(document.raw)
    assert utf16(pdfium.FPDFCatalog_GetLanguage, document.raw) == "en"
    assert document.get_metadata_dict()["Title"] == drawing.alt[:200]
    assert b"/DisplayDocTitle true" in written
    with elements(written) as (whole, figure):
        assert utf16(pdfium.FPDF_StructElement_GetType, whole) == "Document"
        assert utf16(pdfium.FPDF_StructElement_GetType, figure) == "Figure"
        assert utf16(pdfium.FPDF_StructElement_GetAltText, figure) == drawing.alt
        assert pdfium.FPDF_StructElement_GetMarkedContentID(figure) == 0


@pytest.mark.parametrize("name", ["heatmap", "transparent"])
def test_everything_on_the_page_is_the_figure_or_an_artifact(name: str) -> None:
    written = files.drawing_bytes(FIGURES[name], ".pdf")
    depth, outside = 0, []
    for line in content_of(written).decode("latin-1").splitlines():
        depth += line.endswith(("BDC", "BMC")) - (line == "EMC")
        outside += [line] * (depth == 0 and bool(re.search(r"(?<![A-Za-z])(re|S|f\*?|B\*?|Tj|Do)$", line)))
    assert depth == 0
    assert not outside
    assert content_of(written).count(b"/Figure <</MCID 0>> BDC") == 1
    assert content_of(written).count(b"/Artifact BMC") == (name == "heatmap")


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_descriptions_are_only_text(text: str) -> None:
    drawing = Drawing(50, 50, (Rect(5, 5, 9, 9, fill="#000000"),), alt=text[:300])
    with elements(files.drawing_bytes(drawing, ".pdf")) as nodes:
        assert len(nodes) == 2
