"""Read input from a terminal or a pipe, and print progress and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mha_viz.errors import EmptyText, MissingGlyphWarning, SumsUnsavedWarning, TextCutWarning, TextError
from mha_viz.process.progress import ShowProgress, bar, bars, one_line, progress_bar, show_formatted, status_line

__all__ = ["bar", "bars", "one_line", "progress_bar", "status_line"]

PRINTED_WARNINGS = (MissingGlyphWarning, SumsUnsavedWarning, TextCutWarning)
MAX_STDIN_BYTES = 16_000_000  # far more than any model reads; a pipe may be endless


def read_stdin() -> str:
    """Read the text on stdin, without its last line break. Raises TextError."""
    if sys.stdin is None:
        raise TextError("stdin is closed.", "Pipe the text in, or give it as the argument.")
    data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(data) > MAX_STDIN_BYTES:
        raise TextError(f"stdin has more than {MAX_STDIN_BYTES // 10**6} MB.", "Give one sentence or paragraph.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"stdin is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02X}.",
            "Save the text as UTF-8, or convert it, as with iconv -f latin1 -t utf-8.",
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def read_text(argument: str) -> str:
    """Return the text of an argument; "-" reads it from stdin. Raises TextError, EmptyText."""
    text = read_stdin() if argument == "-" else argument
    if not text.strip():  # refused before a model is loaded
        problem = "stdin holds no text." if argument == "-" else "Nothing was typed."
        raise EmptyText(problem, "Give a sentence.")
    return text


def show_download(name: str) -> AbstractContextManager[ShowProgress]:
    """Return a context manager that yields a function to show the bytes downloaded so far."""

    def format_line(done: int, total: int) -> str:
        size = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "asking the Hub"
        return f"Downloading {name}: {size}"

    return show_formatted(format_line, format_line)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each warning about missing glyphs, unsaved sums or a truncated text on its own line, and only once."""
    printed: set[str] = set()
    original_showwarning = warnings.showwarning

    def print_warning(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if not issubclass(category, PRINTED_WARNINGS):
            original_showwarning(message, category, *args, **kwargs)
        elif str(message) not in printed:
            printed.add(str(message))
            print(f"mha-viz: {one_line(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in PRINTED_WARNINGS:
            warnings.simplefilter("always", category)
        warnings.showwarning = print_warning
        yield


def replace_unencodable(stream: Any) -> None:
    """Make a stream print "?" for characters that its encoding lacks, instead of raising an error."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
