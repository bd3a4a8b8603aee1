"""The output of a command: a file, or stdout for a pipe."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from mha_viz.attention import Attention
from mha_viz.errors import ExportError, SettingError
from mha_viz.figures import files
from mha_viz.files.tables import format_csv
from mha_viz.quotes import did_you_mean, make_printable, quote, shorten

if TYPE_CHECKING:
    import pandas as pd

STDOUT = "-"
TABLE_FORMATS = (".csv", ".json")
TEXT_FORMATS = frozenset((".csv", ".json", ".md", ".svg", ".tex", ".html"))
LARGE_BYTES = 100_000_000
BYTES_PER_WEIGHT = {".csv": 24, ".json": 13}  # without token texts; measured on readings of 60 to 500 tokens


@dataclass(frozen=True)
class Destination:
    """Destination of a command's output: a file, or stdout if ``path`` is None. ``suffix`` gives the format."""

    path: Path | None
    suffix: str

    def write(self, make: Callable[[], bytes]) -> None:
        """Write the bytes that ``make`` returns. Raises ExportError."""
        if self.path is not None:
            files.write_bytes(self.path, make)
        else:
            content = make()
            _write_stdout(lambda file: file.write(content))

    def write_attention(self, attention: Attention) -> None:
        """Write a reading incrementally. Raises ExportError."""
        announce_size(attention, self)
        if self.path is not None:
            files.write(attention, self.path, self.suffix)
        else:
            _write_stdout(lambda file: files.write_stream(attention, self.suffix, file))

    def write_table(self, rows: pd.DataFrame) -> None:
        """Write a table as CSV or JSON. Raises ExportError."""
        self.write(lambda: _format_table(rows, self.suffix))

    def report(self, line: str) -> None:
        """Print a line about the output, unless stdout holds the output itself."""
        if self.path is not None:
            print(line)


def _format_table(rows: pd.DataFrame, suffix: str) -> bytes:
    if suffix == ".csv":
        return format_csv(rows).encode()
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    plain_records = [{name: _to_json_value(value) for name, value in record.items()} for record in records]
    return f"{json.dumps(plain_records, indent=1, default=np.generic.item)}\n".encode()


def _to_json_value(value: Any) -> Any:
    """Return a number with nine significant digits, as in a CSV file; None for one that JSON lacks."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return float(f"{value:.9g}") if math.isfinite(value) else None


def parse_table_destination(out: str | None, format_name: str | None) -> Destination | None:
    """Return the destination of a table; None if it is only printed.

    A format without a file means stdout. Raises the errors of :func:`parse_destination`.
    """
    out = out if out is not None else STDOUT if format_name else None
    return None if out is None else parse_destination(out, format_name, TABLE_FORMATS, "a table format")


def write_and_print(destination: Destination | None, table: Callable[[], pd.DataFrame], lines: Iterable[str]) -> None:
    """Write a table to its destination; print the lines with the same content, unless the destination is stdout."""
    if destination is not None:
        destination.write_table(table())
    if destination is None or destination.path is not None:
        print("\n".join(lines))


def parse_destination(
    out: str, format_name: str | None, formats: Iterable[str], kind: str = "a file format"
) -> Destination:
    """Return the destination that ``--out`` and ``--format`` name, checked before anything is computed.

    Raises ExportError for a format that is not in ``formats``, or a path that cannot be written. Raises SettingError
    for two contradicting formats, for stdout without a format, and for binary data on a terminal.
    """
    suffix = _find_suffix(out, format_name)
    if not suffix and Path(out).is_dir():
        example = Path(out) / f"example{next(iter(formats))}"
        raise ExportError(f"{quote(out)} is a folder.", f"Name a file in it, such as {example}.")
    if suffix not in formats:
        problem = f"{quote(suffix)} is not {kind}." if suffix else "The file has no suffix."
        remedy = f"{did_you_mean(suffix, formats)} Use one of {', '.join(formats)}.".strip()
        raise ExportError(problem, remedy)
    if out != STDOUT:
        files.check_place(out)
        return Destination(Path(out), suffix)
    if suffix not in TEXT_FORMATS and sys.stdout is not None and sys.stdout.isatty():
        remedy = f"Redirect it, as in --out - > file{suffix}, or give --out FILE."
        raise SettingError(f"A {suffix} file is binary and would garble the terminal.", remedy)
    return Destination(None, suffix)


def format_suffix(name: str) -> str:
    """Return the suffix for the name of a format: ".svg" for svg, SVG and .svg."""
    return f".{name.strip().lower().lstrip('.')}"


def announce_size(attention: Attention, destination: Destination) -> None:
    """Print on stderr how large the output will be, if it is more than LARGE_BYTES."""
    size = estimate_text_size(attention, destination.suffix)
    if size > LARGE_BYTES:
        name = "stdout" if destination.path is None else shorten(str(destination.path), 200)
        hint = f".npz holds the same in {attention.weights.nbytes / 1e6:,.0f} MB"
        line = f"mha-viz: {name} will hold {attention.weights.size:,} weights, about {size / 1e6:,.0f} MB; {hint}."
        print(make_printable(line, "?"), file=sys.stderr)


def estimate_text_size(attention: Attention, suffix: str) -> int:
    """Estimate the size of a reading as text, in bytes; 0 for binary formats."""
    if suffix not in BYTES_PER_WEIGHT:
        return 0
    token_bytes = sum(
        sum(len(token.text.encode("utf-8", "replace")) for token in text.tokens) / max(1, len(text))
        for text in (attention.queries, attention.keys)
    )
    return round(attention.weights.size * (BYTES_PER_WEIGHT[suffix] + (token_bytes if suffix == ".csv" else 0)))


def _find_suffix(out: str, format_name: str | None) -> str:
    suffix = "" if out == STDOUT else Path(out).suffix.lower()
    if format_name is None:
        if out == STDOUT:
            raise SettingError("stdout has no suffix to set the format.", "Give --format, as in --out - --format csv.")
        return suffix
    wanted_suffix = format_suffix(format_name)
    if suffix and wanted_suffix != suffix:
        problem = f"--format {shorten(wanted_suffix[1:], 40)} contradicts the suffix {shorten(suffix, 40)}."
        raise SettingError(problem, "Leave one of them out.")
    return wanted_suffix


def _write_stdout(write: Callable[[BinaryIO], object]) -> None:
    if sys.stdout is None:
        raise ExportError("stdout is closed.", "Give --out FILE.")
    try:
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ExportError(
            f"stdout cannot be written: {(error.strerror or str(error)).lower()}.", "Free some disk space."
        ) from error
