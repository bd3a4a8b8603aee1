"""Input from and output to a terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mha_viz.errors import MissingGlyphWarning, TextError

MAX_STDIN_BYTES = 16_000_000  # far more than any model reads; a pipe may be endless


def stdin() -> str:
    """The text on stdin, without its last line break. Raises TextError."""
    if sys.stdin is None:
        raise TextError("stdin is closed.", "Pipe the text in, or give it as the argument.")
    read = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(read) > MAX_STDIN_BYTES:
        raise TextError(f"stdin has more than {MAX_STDIN_BYTES // 10**6} MB.", "Give one sentence or paragraph.")
    try:
        text = read.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"stdin is not UTF-8 text: byte {error.start} is 0x{read[error.start]:02X}.",
            "Save the text as UTF-8, or convert it, as with iconv -f latin1 -t utf-8.",
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def downloading(name: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows the bytes downloaded so far on one line; silent when stderr is not a terminal."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal:
            so_far = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "asking the Hub"
            print(f"\rDownloading {name}: {so_far}".ljust(79), end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=sys.stderr)


@contextmanager
def bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows progress as a bar on one line; silent when stderr is not a terminal."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal:
            bar = "█" * (30 * done // max(1, total))
            so_far = f"{done} of {total} {unit}" if total < 1000 else f"{100 * done // total} % {unit}"
            print(f"\r{bar:<30} {so_far}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if terminal:
            print(file=sys.stderr)


@contextmanager
def glyph_warnings() -> Iterator[None]:
    """Prints each MissingGlyphWarning on a line of its own, the same one only once."""
    printed: set[str] = set()
    shown_by_python = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, MissingGlyphWarning):
            shown_by_python(message, category, *where, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            print(f"mha-viz: {one_line(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", MissingGlyphWarning)
        warnings.showwarning = show
        yield


def one_line(message: str) -> str:
    """The message without line breaks and control characters, which a typed name may contain."""
    return " ".join("".join(c if c.isprintable() else " " for c in message).split())


def never_fail_on(stream: Any) -> None:
    """Print "?" for characters that a terminal's encoding lacks, instead of raising an error."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
