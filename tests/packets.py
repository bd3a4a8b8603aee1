"""Unpack the bytes that are sent to the browser, by a second implementation of their format."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt

from mha_viz.bertviz import HTML


class Unpacked(NamedTuple):
    header: dict[str, Any]
    matrices: dict[int, npt.NDArray[np.float32]]  # head number: [query, key]
    thumbs: npt.NDArray[np.uint8]  # [head number, row, column]


def unpack(raw: bytes) -> Unpacked:
    """Unpack one reading."""
    (length,) = struct.unpack_from("<I", raw)
    header = json.loads(raw[4 : 4 + length].decode())
    assert (4 + length) % 4 == 0
    n, full = header["n"], header["full"]
    keys = header.get("keys", header)
    start = 4 + length + 8 * n * len(full)
    kind = "u1" if header.get("coarse") else "<u2"
    end = start + np.dtype(kind).itemsize * n * keys["n"] * len(full)
    scales = np.frombuffer(raw[4 + length : start], "<f4").reshape(len(full), n, 2)
    levels = np.frombuffer(raw[start:end], kind).reshape(len(full), n, keys["n"])
    zero = np.float32(2 ** (8 * levels.itemsize - 1) if header.get("signed") else 0)
    cells = (levels - zero) * scales[:, :, keys["special"]]
    bins = header.get("bins", {"starts": []})
    sides = [len(axis["starts"]) for axis in (bins, bins.get("keys", bins))]
    thumbs = np.frombuffer(raw[end:], np.uint8).reshape(-1, *sides) if all(sides) else np.zeros((0, 0, 0), np.uint8)
    assert all(sides) or len(raw) == end, "bytes are left over"
    return Unpacked(header, dict(zip(full, cells, strict=True)), thumbs)


def list_pages(html: HTML | None) -> list[str]:
    """Return the pages in the iframes of an HTML object of mha_viz.bertviz."""
    assert html is not None
    return [unescape(source) for source in re.findall(r'<iframe srcdoc="([^"]*)"', html.data)]


def read_page(page: str) -> tuple[Unpacked, dict[str, str]]:
    """Return the reading in a standalone page with one drawing, and the initial settings."""
    embedded = re.search(r'type="application/json">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    content = json.loads(embedded[1])
    planes = zlib.decompress(base64.b64decode(content["packet"]))
    raw, half = bytearray(len(planes)), (len(planes) + 1) // 2
    raw[::2], raw[1::2] = planes[:half], planes[half:]
    return unpack(bytes(raw)), dict(parse_qsl(content["start"]))


def unpack_panels(data: bytes) -> dict[str, Any]:
    """Return the header, with the header of each reading's own packet under ``readings``."""
    header, rest = _split_header(data)
    assert sum(header["sizes"]) == len(rest)
    header["readings"] = []
    for size in header["sizes"]:
        header["readings"].append(_split_header(rest[:size])[0])
        rest = rest[size:]
    return header


def _split_header(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<I", data[:4])
    assert length % 4 == 0
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    return header, data[4 + length :]


def matrix(answer: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Return the weights [query, key] from JavaScript's answer to “block”."""
    return np.array(answer["w"], float).reshape(answer["R"], answer["C"])
