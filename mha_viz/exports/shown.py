"""The numbers behind a figure as a file: the same heads, units and filters as the picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import save

from mha_viz.attention import Shown
from mha_viz.errors import ExportError
from mha_viz.exports.formats import COLUMNS, cell, decimals
from mha_viz.text import clean

Writer = Callable[[Shown, BinaryIO], None]


def shown_bytes(shown: Shown, suffix: str) -> bytes:
    """The numbers in the format that ``suffix`` names: .csv, .npz, .safetensors or .json. Raises ExportError."""
    write = _WRITERS.get(suffix.lower())
    if write is None:
        raise ExportError(f"“{suffix[:40]}” is not a format for numbers.", f"Use one of {', '.join(_WRITERS)}.")
    buffer = BytesIO()
    write(shown, buffer)
    return buffer.getvalue()


def _table(shown: Shown, file: BinaryIO) -> None:
    """One row a weight: layer, head, query_index, query_token, key_index, key_token, weight."""
    file.write((",".join(COLUMNS) + "\n").encode())
    rows, cols = ([cell(clean(text)) for text in side] for side in (shown.rows, shown.cols))
    keys = [f"{index},{text}," for index, text in zip(shown.col_index, cols, strict=True)]
    for head, matrix in zip(shown.heads, shown.weights, strict=True):
        for index, text, row in zip(shown.row_index, rows, matrix, strict=True):
            start = f"{head.layer},{head.head},{index},{text},"
            file.write("".join(f"{start}{key}{w}\n" for key, w in zip(keys, map(str, row), strict=True)).encode())


def _arrays(shown: Shown, file: BinaryIO) -> None:
    """weights [head, row, column], hidden [head, row], heads [head, 2], rows, cols, and what the reading is."""
    arrays = {name: np.array(value) for name, value in _heading(shown).items()}
    arrays |= {"heads": np.array([list(head) for head in shown.heads], np.int64)}
    np.savez(file, allow_pickle=False, weights=shown.weights, hidden=shown.hidden, **arrays)


def _tensors(shown: Shown, file: BinaryIO) -> None:
    """weights and hidden; everything else in the metadata."""
    heading = _heading(shown) | {"heads": [str(head) for head in shown.heads]}
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in heading.items()}
    tensors = {"weights": np.ascontiguousarray(shown.weights), "hidden": np.ascontiguousarray(shown.hidden)}
    file.write(save(tensors, metadata))


def _tree(shown: Shown, file: BinaryIO) -> None:
    """One object; weights are nested lists [head][row][column]."""
    heading: dict[str, Any] = _heading(shown) | {"heads": [str(head) for head in shown.heads]}
    heading |= {"hidden": [decimals(rows) for rows in shown.hidden]}
    heading |= {"weights": [[decimals(row) for row in matrix] for matrix in shown.weights]}
    file.write((json.dumps(heading, ensure_ascii=False) + "\n").encode())


_WRITERS: dict[str, Writer] = {".csv": _table, ".npz": _arrays, ".safetensors": _tensors, ".json": _tree}


def shown_suffixes() -> tuple[str, ...]:
    """The suffixes that numbers of a figure can have."""
    return tuple(_WRITERS)


def _heading(shown: Shown) -> dict[str, Any]:
    text = shown.text
    said = {"model": shown.model, "revision": shown.revision, "text": text.text, "pair": text.pair, **shown.view}
    lists = {
        "rows": [clean(t) for t in shown.rows],
        "cols": [clean(t) for t in shown.cols],
        "row_index": list(shown.row_index),
        "col_index": list(shown.col_index),
    }
    return {name: clean(value) for name, value in said.items()} | lists
