"""Write the numbers behind a figure to a file: the same heads, units and filters as in the picture.

They are a :class:`Shown` for a figure of one reading, :class:`PanelNumbers` for a comparison,
:class:`DifferenceNumbers` for a difference, and a :class:`Table` for a chart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors.numpy import save

from mha_viz.attention import Shown, Weights
from mha_viz.attention.numbers import name_array, name_numbers
from mha_viz.attention.steps import find_model_head
from mha_viz.errors import ExportError
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.files.formats import (
    CELL_COLUMNS,
    ORIGIN_COLUMNS,
    WEIGHT_COLUMNS,
    format_head_cells,
    format_origin,
    quote_cell,
    shorten_floats,
)
from mha_viz.figures.files.registry import drawing_suffixes
from mha_viz.model_names import name_in_column
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES

PANEL_COLUMNS = ("panel", "name", "model")
DIFFERENCE_COLUMNS = (*CELL_COLUMNS, "first", "second", "difference")


class PanelNumbers(NamedTuple):
    """The numbers of each panel of a comparison, and the panels' names, which may be empty."""

    panels: tuple[Shown, ...]
    names: tuple[str, ...]


class DifferenceNumbers(NamedTuple):
    """The numbers of a difference between two heads whose units correspond one to one.

    ``rows`` and ``cols`` name the units.
    """

    first: Shown
    second: Shown
    rows: tuple[str, ...]
    cols: tuple[str, ...]

    @property
    def difference(self) -> Weights:
        """[row, column]: the second minus the first."""
        difference: Weights = self.second.weights[0] - self.first.weights[0]
        return difference


FigureNumbers = Shown | PanelNumbers | DifferenceNumbers | Table
ShownWriter = Callable[[Any, BinaryIO], None]


def encode_shown(numbers: FigureNumbers, suffix: str) -> bytes:
    """Return the numbers as a file in the format of ``suffix``.

    The format is .csv, .npz, .safetensors or .json; for a chart, .csv or .json. Raises ExportError.
    """
    writers = _WRITERS[type(numbers)]
    if suffix.lower() not in writers:
        raise ExportError(f"“{suffix[:40]}” is not a format for these numbers.", f"Use one of {', '.join(writers)}.")
    buffer = BytesIO()
    writers[suffix.lower()](numbers, buffer)
    return buffer.getvalue()


def _write_table(shown: Shown, file: BinaryIO) -> None:
    """Write one row per number, as :func:`mha_viz.figures.files.formats.table`."""
    file.write((",".join((*WEIGHT_COLUMNS, name_numbers(shown.quantity, shown.made), *ORIGIN_COLUMNS)) + "\n").encode())
    for line in _iter_lines(shown):
        file.write(line)


def _iter_lines(shown: Shown, prefix: str = "", empty_cells: tuple[str, str] = ("", "")) -> Iterator[bytes]:
    """Yield the lines of a table, one query at a time.

    Every line starts with ``prefix``; the first line has the origin cells. ``empty_cells``: the empty cells to
    the left and to the right of the number, for the columns of other numbers.
    """
    origin, blank = format_origin(shown)
    left_cells, right_cells = empty_cells
    rows, cols = ([quote_cell(clean(text)) for text in side] for side in (shown.rows, shown.cols))
    keys = [f"{index},{text},{left_cells}" for index, text in zip(shown.col_index, cols, strict=True)]
    for head, matrix in zip(shown.heads, shown.weights, strict=True):
        for index, text, row in zip(shown.row_index, rows, matrix, strict=True):
            start = f"{prefix}{format_head_cells(head, shown)},{index},{text},"
            lines = [f"{start}{key}{w}{right_cells}{blank}\n" for key, w in zip(keys, map(str, row), strict=True)]
            if lines:
                lines[0], origin = lines[0].replace(f"{blank}\n", f"{origin}\n"), blank
            yield "".join(lines).encode()


def _write_npz(shown: Shown, file: BinaryIO) -> None:
    """Write the weights [head, row, column] and the properties of the reading.

    The other arrays are hidden [head, row], heads [head, 2], rows and cols. ``numbers`` is the name of the weights.
    """
    arrays = {name: np.array(value) for name, value in _collect_fields(shown).items()}
    arrays |= {"heads": np.array([list(find_model_head(shown.made, head)) for head in shown.heads], np.int64)}
    np.savez(file, allow_pickle=False, hidden=shown.hidden, **arrays, **{_weights_name(shown): shown.weights})


def _write_safetensors(shown: Shown, file: BinaryIO) -> None:
    """Write two tensors, the weights and hidden, and all other fields as metadata; ``numbers`` names the weights."""
    fields = _collect_fields(shown) | {"heads": _list_names(shown)}
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    tensors = {_weights_name(shown): np.ascontiguousarray(shown.weights), "hidden": np.ascontiguousarray(shown.hidden)}
    file.write(save(tensors, metadata))


def _write_json(shown: Shown, file: BinaryIO) -> None:
    """Write one JSON object. The weights, named by ``numbers``, are nested lists [head][row][column]."""
    fields: dict[str, Any] = _collect_fields(shown) | {"heads": _list_names(shown)}
    fields |= {"hidden": [shorten_floats(rows) for rows in shown.hidden]}
    fields |= {_weights_name(shown): [[shorten_floats(row) for row in matrix] for matrix in shown.weights]}
    file.write((json.dumps(fields, ensure_ascii=False) + "\n").encode())


# ---- Comparisons ----------------------------------------------------------------------------------------


def _write_panels_table(comparison: PanelNumbers, file: BinaryIO) -> None:
    """Write one table in long form, with columns for the number of the panel, from 1, its name and its model.

    Numbers with different names are in separate columns.
    """
    panel_numbers = [name_numbers(shown.quantity, shown.made) for shown in comparison.panels]
    numbers = list(dict.fromkeys(panel_numbers))
    file.write((",".join((*PANEL_COLUMNS, *WEIGHT_COLUMNS, *numbers, *ORIGIN_COLUMNS)) + "\n").encode())
    for count, (shown, name, number_name) in enumerate(zip(*comparison, panel_numbers, strict=True), 1):
        column = numbers.index(number_name)
        prefix = f"{count},{quote_cell(clean(name))},{quote_cell(clean(name_in_column(shown.model)))},"
        for line in _iter_lines(shown, prefix, ("," * column, "," * (len(numbers) - 1 - column))):
            file.write(line)


def _write_panels_npz(comparison: PanelNumbers, file: BinaryIO) -> None:
    """Write the arrays of every panel, named "panel1_weights" and so on."""
    arrays: dict[str, Any] = {}
    for number, (shown, name) in enumerate(zip(*comparison, strict=True), 1):
        fields = {
            **_collect_fields(shown),
            "name": clean(name),
            _weights_name(shown): shown.weights[0],
            "hidden": shown.hidden[0],
        }
        arrays |= {f"panel{number}_{field}": np.array(value) for field, value in fields.items()}
    heads = np.array([list(find_model_head(shown.made, shown.heads[0])) for shown in comparison.panels], np.int64)
    np.savez(file, allow_pickle=False, heads=heads, **arrays)


def _write_panels_safetensors(comparison: PanelNumbers, file: BinaryIO) -> None:
    """Write the tensors of every panel, named "panel1.weights" and "panel1.hidden"; the metadata "panel1" is JSON."""
    tensors: dict[str, Weights] = {}
    metadata: dict[str, str] = {}
    for number, (shown, name) in enumerate(zip(*comparison, strict=True), 1):
        parts = {_weights_name(shown): shown.weights[0], "hidden": shown.hidden[0]}
        tensors |= {f"panel{number}.{field}": np.ascontiguousarray(part) for field, part in parts.items()}
        metadata[f"panel{number}"] = json.dumps({**_head_metadata(shown), "name": clean(name)}, ensure_ascii=False)
    file.write(save(tensors, metadata))


def _write_panels_json(comparison: PanelNumbers, file: BinaryIO) -> None:
    """Write a list of panels; weights are nested lists [row][column]."""
    panels = [
        {
            **_head_metadata(shown),
            "hidden": shorten_floats(shown.hidden[0]),
            _weights_name(shown): [shorten_floats(row) for row in shown.weights[0]],
            "name": clean(name),
        }
        for shown, name in zip(*comparison, strict=True)
    ]
    file.write((json.dumps({"panels": panels}, ensure_ascii=False) + "\n").encode())


# ---- Differences ------------------------------------------------------------------------------------------


def _write_difference_table(diff: DifferenceNumbers, file: BinaryIO) -> None:
    """Write one row per cell: query_index, query_token, key_index, key_token, first, second, difference.

    The first row also states the head and the origin of both sides, as in the table of one head.
    """
    sides = {"first": diff.first, "second": diff.second}
    origin_columns = [f"{side}_{name.removeprefix('of_')}" for side in sides for name in ("head", *ORIGIN_COLUMNS)]
    file.write((",".join((*DIFFERENCE_COLUMNS, *origin_columns)) + "\n").encode())
    origin = "".join(f",{_list_names(shown)[0]}{format_origin(shown)[0]}" for shown in sides.values())
    blank = "," * len(origin_columns)
    rows, cols = ([quote_cell(clean(text)) for text in side] for side in (diff.rows, diff.cols))
    keys = [f"{index},{text}" for index, text in zip(diff.first.col_index, cols, strict=True)]
    matrices = zip(diff.first.weights[0], diff.second.weights[0], diff.difference, strict=True)
    for index, text, matrix_rows in zip(diff.first.row_index, rows, matrices, strict=True):
        numbers = zip(keys, *matrix_rows, strict=True)
        lines = [f"{index},{text},{key},{a},{b},{d}{blank}\n" for key, a, b, d in numbers]
        if lines:
            lines[0], origin = lines[0].replace(f"{blank}\n", f"{origin}\n"), blank
        file.write("".join(lines).encode())


def _collect_matrices(diff: DifferenceNumbers) -> dict[str, Weights]:
    return {
        "first": diff.first.weights[0],
        "second": diff.second.weights[0],
        "difference": diff.difference,
    }


def _collect_metadata(diff: DifferenceNumbers) -> dict[str, Any]:
    """Return the heads and properties of both readings, and the texts of rows and columns."""
    names = {"rows": [clean(text) for text in diff.rows], "cols": [clean(text) for text in diff.cols]}
    sides = {"first": diff.first, "second": diff.second}
    return {
        f"{side}_{name}": value for side, shown in sides.items() for name, value in _head_metadata(shown).items()
    } | names


def _write_difference_npz(diff: DifferenceNumbers, file: BinaryIO) -> None:
    """Write first, second and difference [row, column], rows, cols, and the properties of both readings.

    The properties have names such as "first_model".
    """
    np.savez(
        file,
        allow_pickle=False,
        **_collect_matrices(diff),
        **{name: np.array(v) for name, v in _collect_metadata(diff).items()},
    )


def _write_difference_safetensors(diff: DifferenceNumbers, file: BinaryIO) -> None:
    """Write the tensors first, second and difference; all other fields are metadata."""
    metadata = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in _collect_metadata(diff).items()
    }
    file.write(save({name: np.ascontiguousarray(matrix) for name, matrix in _collect_matrices(diff).items()}, metadata))


def _write_difference_json(diff: DifferenceNumbers, file: BinaryIO) -> None:
    """Write one JSON object; first, second and difference are nested lists [row][column]."""
    matrices = {name: [shorten_floats(row) for row in matrix] for name, matrix in _collect_matrices(diff).items()}
    file.write((json.dumps(_collect_metadata(diff) | matrices, ensure_ascii=False) + "\n").encode())


# ---- Charts -----------------------------------------------------------------------------------------------


def _write_chart_table(table: Table, file: BinaryIO) -> None:
    """Write the rows below the names of their columns; missing numbers are empty."""
    file.write((",".join(map(quote_cell, table.columns)) + "\n").encode())
    for row in table.rows:
        texts = (
            quote_cell(clean(value)) if isinstance(value, str) else "" if value is None else str(value) for value in row
        )
        file.write((",".join(texts) + "\n").encode())


def _write_chart_json(table: Table, file: BinaryIO) -> None:
    """Write one JSON object: the facts about the measurement, and a list of rows, with the column names as keys."""
    rows = [
        {n: clean(v) if isinstance(v, str) else v for n, v in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]
    about = {name: clean(value) for name, value in table.about.items()}
    file.write((json.dumps({**about, "rows": rows}, ensure_ascii=False) + "\n").encode())


_WRITERS: Mapping[type, Mapping[str, ShownWriter]] = MappingProxyType(
    {
        Shown: {".csv": _write_table, ".npz": _write_npz, ".safetensors": _write_safetensors, ".json": _write_json},
        PanelNumbers: {
            ".csv": _write_panels_table,
            ".npz": _write_panels_npz,
            ".safetensors": _write_panels_safetensors,
            ".json": _write_panels_json,
        },
        DifferenceNumbers: {
            ".csv": _write_difference_table,
            ".npz": _write_difference_npz,
            ".safetensors": _write_difference_safetensors,
            ".json": _write_difference_json,
        },
        Table: {".csv": _write_chart_table, ".json": _write_chart_json},
    }
)


def shown_suffixes(kind: type = Shown) -> tuple[str, ...]:
    """Return the suffixes that the numbers of a figure can be saved with; ``kind`` is Table for a chart."""
    return tuple(_WRITERS[kind])


def figure_suffixes() -> tuple[str, ...]:
    """Return every suffix that a figure can be saved with."""
    return (*drawing_suffixes(), ".html", *shown_suffixes())


def _weights_name(shown: Shown) -> str:
    return name_array(shown.quantity, shown.made)


def _list_names(shown: Shown) -> list[str]:
    """Return "L3H1" for each head, or "layer 3" for the map of a whole layer."""
    is_of_layer = QUANTITIES[shown.quantity].of_layers
    heads = [find_model_head(shown.made, head) for head in shown.heads]
    return [f"layer {head.layer}" if is_of_layer else str(head) for head in heads]


def _head_metadata(shown: Shown) -> dict[str, Any]:
    return {"head": _list_names(shown)[0], **_collect_fields(shown)}


def _collect_fields(shown: Shown) -> dict[str, Any]:
    facts = {
        "model": name_in_column(shown.model),
        "revision": shown.revision,
        "text": shown.queries.text,
        "pair": shown.queries.pair,
        **({} if shown.keys is shown.queries else {"keys_text": shown.keys.text, "keys_pair": shown.keys.pair}),
        "quantity": shown.quantity,
        "numbers": _weights_name(shown),
        "made": "; ".join(shown.made),
        **shown.view,
    }
    axes = {
        "rows": [clean(t) for t in shown.rows],
        "cols": [clean(t) for t in shown.cols],
        "row_index": list(shown.row_index),
        "col_index": list(shown.col_index),
    }
    return {name: clean(value) for name, value in facts.items()} | axes
