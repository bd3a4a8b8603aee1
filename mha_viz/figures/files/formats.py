"""One function per file format. All but CSV, a table, write a complete reading: model, revision, text, tokens, weights.

Text is cleaned before writing (`mha_viz.text.clean`): one character stays one character, so spans hold. The first lines
of the writers' docstrings are shown to users.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from mha_viz.attention import Attention, Head, Shown, Weights
from mha_viz.attention.numbers import name_array, name_numbers
from mha_viz.attention.steps import find_model_head
from mha_viz.figures.files.registry import writer
from mha_viz.figures.files.saved_readings import build_heading
from mha_viz.files.tables import escape_formula
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.quotes import shorten
from mha_viz.text import TokenizedText, clean
from mha_viz.view.quantities import QUANTITIES

CELL_COLUMNS = ("query_index", "query_token", "key_index", "key_token")
PLACE_COLUMNS = ("layer", "head", *CELL_COLUMNS)
LONGEST_CELL = 32_000  # characters: spreadsheets hold 32,767 in a cell, Python reads 131,072
ORIGIN_COLUMNS = ("of_model", "quantity", "text", "made")


@writer(".npz")
def npz(attention: Attention, file: BinaryIO) -> None:
    """NumPy arrays: weights, hidden, model, revision, unit, text, pair, and one array per field of the tokens.

    Readable with ``numpy.load(path, allow_pickle=False)``. ``weights`` is float32 [layer, head, query, key]; numbers
    that the model did not compute have another name, such as ``weights_by_words`` or ``norm``, which ``numbers`` says.
    ``tokens`` holds the texts; ``word``, ``start`` and ``end`` are -1 where there is none (special tokens). Of
    cross-attention these are of the queries, and those of the keys follow as ``keys_text``, ``keys_tokens`` and so on.
    ``reading`` is what ``load_attention`` reads: JSON in bytes.
    """
    about = _collect_heading(attention)
    steps, keys = about.pop("made"), about.pop("keys", None)
    arrays = _text_arrays(about)
    arrays |= {f"keys_{name}": array for name, array in _text_arrays(keys).items()} if keys else {}
    arrays |= {
        "made": np.array(steps, dtype=np.str_),
        "reading": np.frombuffer(build_heading(attention).encode(), np.uint8),
    }
    arrays |= {about["numbers"]: attention.weights, "hidden": attention.hidden}
    np.savez(file, allow_pickle=False, **arrays)


def _text_arrays(fields: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the fields of a text, or of a reading, as arrays, with one array per field of the tokens."""
    tokens = fields.pop("tokens")
    arrays = {name: np.array(value) for name, value in fields.items()}
    for name in ("word", "segment", "start", "end"):
        arrays[name] = np.array([-1 if t[name] is None else t[name] for t in tokens], np.int64)
    return arrays | {"tokens": np.array([t["text"] for t in tokens])}


@writer(".safetensors")
def safetensors(attention: Attention, file: BinaryIO) -> None:
    """Two tensors, weights and hidden; model, revision, unit, text, pair and tokens (JSON) in the metadata.

    The first has the name that ``numbers`` says, as in .npz. ``reading`` is what ``load_attention`` reads.
    """
    fields = _collect_heading(attention)
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    tensors = {fields["numbers"]: attention.weights, "hidden": attention.hidden}
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    file.write(save(tensors, metadata | {"reading": build_heading(attention)}))


@writer(".csv")
def table(attention: Attention, file: BinaryIO) -> None:
    """A table in long form, one row a weight, for spreadsheets and data frames.

    Columns: layer, head (empty for rollout, which has one map per layer), query_index, query_token, key_index,
    key_token, weight; and, in the first row, of_model, quantity, text and made: of which model and text the numbers
    are, and what was done to them. Numbers that the model did not compute have another name than weight, which says
    what they are: weight_by_words, weight_rescaled, weight_ablated, norm. Token texts that a spreadsheet would run as a
    formula get a leading apostrophe. Written row by row: 512 tokens and 72 heads are 19 million.
    """
    file.write(
        (",".join((*PLACE_COLUMNS, name_numbers(attention.quantity, attention.made), *ORIGIN_COLUMNS)) + "\n").encode()
    )
    first, blank = format_origin(attention)
    cells, of_keys = ([quote_cell(clean(t.text)) for t in text.tokens] for text in (attention.queries, attention.keys))
    keys = [f"{index},{text}," for index, text in enumerate(of_keys)]
    for head, matrix in _iter_matrices(attention):
        for query, row in enumerate(matrix):
            start = f"{format_place(head, attention)},{query},{cells[query]},"
            lines = [f"{start}{key}{weight}{blank}\n" for key, weight in zip(keys, map(str, row), strict=True)]
            lines[0], first = lines[0].replace(f"{blank}\n", f"{first}\n"), blank
            file.write("".join(lines).encode())


def format_place(head: Head, reading: Attention | Shown) -> str:
    """Return the cells of layer and head, by their numbers in the model.

    Where a map is of a whole layer, the second cell is empty.
    """
    layer, number = find_model_head(reading.made, head)
    return f"{layer}," if QUANTITIES[reading.quantity].of_layers else f"{layer},{number}"


def format_origin(reading: Attention | Shown) -> tuple[str, str]:
    """Return the cells of ORIGIN_COLUMNS for the first row of a table, and for all other rows.

    They are empty after the first row, because a long text in every row would take gigabytes.
    """
    text = " / ".join(filter(None, (reading.queries.text, reading.queries.pair)))
    quantity = name_numbers(reading.quantity, reading.made)
    cells = cite_model(reading.model, reading.revision), quantity, text, "; ".join(reading.made)
    return "".join(f",{quote_cell(shorten(clean(value), LONGEST_CELL))}" for value in cells), "," * len(ORIGIN_COLUMNS)


@writer(".json")
def tree(attention: Attention, file: BinaryIO) -> None:
    """Everything in one object; weights are nested lists (layer, head, query, key), hidden likewise.

    Weights that the model did not compute have the name that ``numbers`` says, as in .npz.
    """
    fields = _collect_heading(attention) | {
        "hidden": [[shorten_floats(row) for row in layer] for layer in attention.hidden]
    }
    file.write(json.dumps(fields, ensure_ascii=False)[:-1].encode())  # [:-1] leaves the object open for the weights
    file.write(f', "{fields["numbers"]}": '.encode())
    for head, matrix in _iter_matrices(attention):
        opening = "[[" if head == (0, 0) else "], [" if head.head == 0 else ", "
        rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in matrix)
        file.write(f"{opening}[{rows}]".encode())
    file.write(b"]]}\n")


def _collect_heading(attention: Attention) -> dict[str, Any]:
    """Return everything in a file besides the numbers, as JSON values."""
    about = {"model": clean(name_in_column(attention.model)), "revision": clean(attention.revision)}
    about |= {"quantity": attention.quantity, "numbers": name_array(attention.quantity, attention.made)}
    keys = {"keys": _text_fields(attention.keys)} if attention.is_cross else {}
    return {**about, "made": [clean(step) for step in attention.made], **_text_fields(attention.queries), **keys}


def _text_fields(text: TokenizedText) -> dict[str, Any]:
    return {
        "unit": text.unit,
        "text": clean(text.text),
        "pair": clean(text.pair),
        "tokens": [
            {"text": clean(t.text), "word": t.word, "segment": t.segment, "start": t.start, "end": t.end}
            for t in text.tokens
        ],
    }


def _iter_matrices(attention: Attention) -> Iterator[tuple[Head, Weights]]:
    for head in attention.every_head():
        yield head, attention[head]


def shorten_floats(row: Weights) -> list[float]:
    """Return the shortest decimals that read back as the same float32: 0.1, not 0.10000000149."""
    return [float(str(value)) for value in row]


def quote_cell(text: str) -> str:
    """Return one CSV cell, quoted where necessary (RFC 4180), never a formula."""
    safe = escape_formula(text)
    return '"' + safe.replace('"', '""') + '"' if any(c in safe for c in ',"\r\n') else safe
