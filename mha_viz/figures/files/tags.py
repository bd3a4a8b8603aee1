"""Tags for screen readers in PDF files: the page's content is one figure with a description.

reportlab writes no tags, so this module builds the structure tree of ISO 32000-1, 14.7 and 14.8, from reportlab's
objects: a document with one figure. Decoration is marked as an artifact, which is not read aloud.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reportlab.pdfbase.pdfdoc import PDFArray, PDFDictionary, PDFName, PDFString

from mha_viz.figures.drawing.marks import Drawing
from mha_viz.text import clean

LANGUAGE = "en"  # language of the description; tokens may be in any language
VERSION = (1, 7)  # version of PDF
_FIGURE = 0  # the MCID of the figure's content on its page, and the page's key in the parent tree


@contextmanager
def mark_artifact(canvas: Any) -> Iterator[None]:
    """Mark everything drawn inside the block as decoration."""
    yield from _mark_content(canvas, "/Artifact BMC")


@contextmanager
def figure(canvas: Any) -> Iterator[None]:
    """Mark everything drawn inside the block as the figure that :func:`add_tags` describes."""
    yield from _mark_content(canvas, f"/Figure <</MCID {_FIGURE}>> BDC")


def _mark_content(canvas: Any, begin: str) -> Iterator[None]:
    canvas._code.append(begin)
    yield
    canvas._code.append("EMC")


def add_tags(canvas: Any, drawing: Drawing) -> None:
    """Describe the canvas's only page with the drawing's ``alt``. Call this after ``showPage``."""
    document = canvas._doc
    page = document.Pages.pages[0]
    tree, root, leaf = PDFDictionary(), PDFDictionary(), PDFDictionary()
    to_tree, to_root, to_leaf = (document.Reference(part) for part in (tree, root, leaf))
    box = PDFArray([0, 0, drawing.width, drawing.height])
    layout = PDFDictionary({"O": PDFName("Layout"), "Placement": PDFName("Block"), "BBox": box})
    element = {"Type": PDFName("StructElem")}
    leaf.dict |= element | {"S": PDFName("Figure"), "P": to_root, "Pg": document.Reference(page), "K": _FIGURE}
    leaf.dict |= {"Alt": PDFString(clean(drawing.alt)), "A": layout}
    root.dict |= element | {"S": PDFName("Document"), "P": to_tree, "K": PDFArray([to_leaf])}
    parents = PDFDictionary({"Nums": PDFArray([_FIGURE, PDFArray([to_leaf])])})
    tree.dict |= {"Type": PDFName("StructTreeRoot"), "K": PDFArray([to_root]), "ParentTree": parents}
    tree.dict |= {"ParentTreeNextKey": _FIGURE + 1}
    _set_entries(document.Catalog, StructTreeRoot=tree, MarkInfo=PDFDictionary({"Marked": "true"}))
    _set_entries(page, StructParents=_FIGURE, Tabs=PDFName("S"))


def _set_entries(part: Any, **entries: Any) -> None:
    """Add entries to an object of the document, and to the list of names that reportlab writes."""
    part.__NoDefault__ = list(dict.fromkeys([*part.__NoDefault__, *entries]))
    for name, value in entries.items():
        setattr(part, name, value)
