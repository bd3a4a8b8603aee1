"""Check that downloaded files of every format can be opened and contain nothing that runs."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from xml.etree import ElementTree as Tree
from zipfile import ZipFile

import numpy as np
import pypdfium2
import zxingcpp
from PIL import Image
from safetensors.numpy import load as load_tensors

from mha_viz.files.tables import FORMULA_STARTS
from tests.hostile import FOREIGN_HOST

FORMATS = (".svg", ".pdf", ".png", ".html", ".csv", ".npz", ".safetensors", ".json")
TEXTS = ("name", "model", "query_token", "key_token")  # columns of a table that contain typed text
NUMBERS = ("weight", "difference")


def read_code(png: bytes) -> str:
    """Return the content of the only QR code in a picture."""
    (code,) = zxingcpp.read_barcodes(np.array(Image.open(io.BytesIO(png)).convert("L")))
    return str(code.text)


def check_opens(suffix: str, data: bytes) -> None:
    """Open a file with its format's reader, which raises an error if the file is invalid.

    Raises AssertionError for scripts, links and formulas.
    """
    if suffix == ".svg":
        _check_svg(data)
    elif suffix == ".pdf":
        assert pypdfium2.PdfDocument(data)[0].render(scale=0.3).to_pil().size[0] > 10
    elif suffix == ".png":
        Image.open(io.BytesIO(data), formats=["PNG"]).load()
    elif suffix == ".html":
        _check_html(data.decode())
    elif suffix == ".csv":
        _check_csv(data.decode())
    elif suffix == ".npz":
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            assert len([arrays[name] for name in arrays]) > 3
    elif suffix == ".safetensors":
        assert load_tensors(data)
    elif suffix == ".json":
        assert json.loads(data)
    else:
        _check_archive(data)


def _check_svg(data: bytes) -> None:
    elements = list(Tree.fromstring(data).iter())
    assert not {element.tag.rpartition("}")[2] for element in elements} & {
        "script",
        "foreignObject",
        "a",
        "iframe",
        "style",
    }
    for element in elements:
        names = [name.rpartition("}")[2] for name in element.attrib]
        assert not [name for name in names if name.startswith("on")]
        links = [value for name, value in zip(names, element.attrib.values(), strict=True) if name == "href"]
        assert all(link.startswith(("data:", "#")) for link in links)


class _Page(HTMLParser):
    """Collect the tags of a page and the addresses that they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "data", "action", "style")]
        assert not [name for name, _ in attrs if name.startswith("on")]


def _check_html(text: str) -> None:
    assert text.count("<script") == 2  # the page's own script
    page = _Page()
    page.feed(text)
    page.close()
    assert page.tags.count("script") == 2
    assert not {"iframe", "object", "embed", "base", "a", "svg", "s"} & set(page.tags)
    assert FOREIGN_HOST not in "".join(page.loads)


def _check_csv(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    assert rows
    for row in rows:
        assert None not in row, "a line with too many cells"
        assert not [row[name] for name in TEXTS if row.get(name, "").startswith(tuple(FORMULA_STARTS))]
        assert all(np.isfinite(float(row[name])) for name in NUMBERS if name in row)


def _check_archive(data: bytes) -> None:
    with ZipFile(io.BytesIO(data)) as file:
        for name in file.namelist():
            suffix = f".{name.rpartition('.')[2]}"
            if suffix == ".txt":
                assert file.read(name).decode()
            else:
                assert suffix in FORMATS
                check_opens(suffix, file.read(name))
