"""One function per file format. All but CSV, a table, write a complete reading: model, revision, text, tokens, weights.

Text is cleaned before writing (`mha_viz.text.clean`): one character stays one character, so that spans stay valid. The
first lines of the writers' docstrings are shown to users.
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
from mha_viz.figures.files.saved_readings import build_header
from mha_viz.files.tables import escape_formula
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.quotes import shorten
from mha_viz.text import TokenizedText, clean
from mha_viz.view.quantities import QUANTITIES

CELL_COLUMNS = ("query_index", "query_token", "key_index", "key_token")
WEIGHT_COLUMNS = ("layer", "head", *CELL_COLUMNS)
MAX_CELL_LENGTH = 32_000  # characters: spreadsheets hold 32,767 in a cell, Python reads 131,072
ORIGIN_COLUMNS = ("of_model", "quantity", "text", "made")


@writer(".npz")
def npz(attention: Attention, file: BinaryIO) -> None:
    """NumPy arrays: weights, hidden, model, revision, unit, text, pair, and one array per field of the tokens.

    Readable with ``numpy.load(path, allow_pickle=False)``. ``weights`` is float32 [layer, head, query, key]; derived
    values have another name, such as ``weights_by_words`` or ``norm``, which is stored in ``numbers``. ``tokens`` holds
    the texts of the tokens; ``word``, ``start`` and ``end`` are -1 for special tokens. For cross-attention, these
    describe the queries, and ``keys_text``, ``keys_tokens`` and so on describe the keys. ``reading`` holds the JSON, as
    bytes, that ``load_attention`` reads.
    """
    metadata = _collect_metadata(attention)
    steps, keys = metadata.pop("made"), metadata.pop("keys", None)
    arrays = _text_arrays(metadata)
    arrays |= {f"keys_{name}": array for name, array in _text_arrays(keys).items()} if keys else {}
    arrays |= {
        "made": np.array(steps, dtype=np.str_),
        "reading": np.frombuffer(build_header(attention).encode(), np.uint8),
    }
    arrays |= {metadata["numbers"]: attention.weights, "hidden": attention.hidden}
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

    The name of the first is stored in ``numbers``, as in .npz. ``load_attention`` reads ``reading``.
    """
    fields = _collect_metadata(attention)
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    tensors = {fields["numbers"]: attention.weights, "hidden": attention.hidden}
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    file.write(save(tensors, metadata | {"reading": build_header(attention)}))


@writer(".csv")
def table(attention: Attention, file: BinaryIO) -> None:
    """A table in long form, one row per weight, for spreadsheets and data frames.

    Columns: layer, head (empty for rollout, which has one map per layer), query_index, query_token, key_index,
    key_token, weight; and, in the first row only, of_model, quantity, text and made: the model, the quantity, the text
    and the steps applied. The column of derived values is named after them, not weight: weight_by_words,
    weight_rescaled, weight_ablated, norm. Token texts that a spreadsheet would run as a formula get a leading
    apostrophe. The file is written row by row, because 512 tokens and 72 heads make 19 million rows.
    """
    file.write(
        (",".join((*WEIGHT_COLUMNS, name_numbers(attention.quantity, attention.made), *ORIGIN_COLUMNS)) + "\n").encode()
    )
    origin, blank = format_origin(attention)
    cells, key_cells = (
        [quote_cell(clean(t.text)) for t in text.tokens] for text in (attention.queries, attention.keys)
    )
    keys = [f"{index},{text}," for index, text in enumerate(key_cells)]
    for head, matrix in _iter_matrices(attention):
        for query, row in enumerate(matrix):
            start = f"{format_head_cells(head, attention)},{query},{cells[query]},"
            lines = [f"{start}{key}{weight}{blank}\n" for key, weight in zip(keys, map(str, row), strict=True)]
            lines[0], origin = lines[0].replace(f"{blank}\n", f"{origin}\n"), blank
            file.write("".join(lines).encode())


def format_head_cells(head: Head, reading: Attention | Shown) -> str:
    """Return the cells of layer and head, by their numbers in the model.

    The cell of the head is empty for the map of a whole layer.
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
    return "".join(f",{quote_cell(shorten(clean(value), MAX_CELL_LENGTH))}" for value in cells), "," * len(
        ORIGIN_COLUMNS
    )


@writer(".json")
def tree(attention: Attention, file: BinaryIO) -> None:
    """Everything in one object; weights are nested lists (layer, head, query, key), hidden likewise.

    The name of derived values is stored in ``numbers``, as in .npz.
    """
    fields = _collect_metadata(attention) | {
        "hidden": [[shorten_floats(row) for row in layer] for layer in attention.hidden]
    }
    file.write(json.dumps(fields, ensure_ascii=False)[:-1].encode())  # [:-1] leaves the object open for the weights
    file.write(f', "{fields["numbers"]}": '.encode())
    for count, (head, matrix) in enumerate(_iter_matrices(attention)):
        opening = "[[" if not count else "], [" if head.head == 0 else ", "
        rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in matrix)
        file.write(f"{opening}[{rows}]".encode())
    file.write(b"]]}\n")


def _collect_metadata(attention: Attention) -> dict[str, Any]:
    """Return all fields of a file except the weights and hidden, as JSON values."""
    metadata = {"model": clean(name_in_column(attention.model)), "revision": clean(attention.revision)}
    metadata |= {"quantity": attention.quantity, "numbers": name_array(attention.quantity, attention.made)}
    keys = {"keys": _text_fields(attention.keys)} if attention.is_cross else {}
    return {**metadata, "made": [clean(step) for step in attention.made], **_text_fields(attention.queries), **keys}


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
    safe_text = escape_formula(text)
    return '"' + safe_text.replace('"', '""') + '"' if any(c in safe_text for c in ',"\r\n') else safe_text
