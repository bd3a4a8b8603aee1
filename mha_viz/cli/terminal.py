"""Input from and output to a terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from typing import Any

from mha_viz.errors import EmptyText, MissingGlyphWarning, SumsUnsavedWarning, TextCutWarning, TextError
from mha_viz.quotes import printable

Show = Callable[[int, int], None]
ShownAs = Callable[[int, int], str]  # what is shown of done and total

SECONDS_BETWEEN_LINES = 5.0  # of progress, if stderr is not a terminal
PRINTED = (MissingGlyphWarning, SumsUnsavedWarning, TextCutWarning)
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


def text_of(argument: str) -> str:
    """The text that an argument gives; "-" stands for stdin. Raises TextError, EmptyText."""
    text = stdin() if argument == "-" else argument
    if not text.strip():  # refused before a model is loaded
        problem = "stdin holds no text." if argument == "-" else "Nothing was typed."
        raise EmptyText(problem, "Give a sentence.")
    return text


def downloading(name: str) -> AbstractContextManager[Show]:
    """A function that shows the bytes downloaded so far."""

    def line(done: int, total: int) -> str:
        so_far = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "asking the Hub"
        return f"Downloading {name}: {so_far}"

    return _progress(line, line)


def bar(unit: str) -> AbstractContextManager[Show]:
    """A function that shows progress: as a bar on a terminal, otherwise as lines."""
    return _progress(*_shapes(unit))


@contextmanager
def bar_of_progress(unit: str) -> Iterator[Callable[[Any], None]]:
    """As :func:`bar`, of an object with what is ``done`` of the ``total``."""
    with bar(unit) as show:
        yield lambda so_far: show(so_far.done, so_far.total)


@contextmanager
def bar_of_share(unit: str) -> Iterator[Callable[[float], None]]:
    """As :func:`bar`, of the share that is done."""
    with bar(unit) as show:
        yield lambda share: show(round(1000 * share), 1000)


@contextmanager
def bars(*units: str) -> Iterator[tuple[Show, ...]]:
    """Functions as of :func:`bar`, for work that is done one after the other, in the same line."""
    with changing_line() as show:
        yield tuple(_shown(show, *_shapes(unit)) for unit in units)


def _shapes(unit: str) -> tuple[ShownAs, ShownAs]:
    def line(done: int, total: int) -> str:
        return f"{done} of {total} {unit}" if total < 1000 else f"{100 * done // total}% {unit}"

    def picture(done: int, total: int) -> str:
        return f"{'█' * (30 * done // max(1, total)):<30} {line(done, total)}"

    return picture, line


@contextmanager
def _progress(picture: ShownAs, line: ShownAs) -> Iterator[Show]:
    """A function of done and total: on a terminal one line that changes, elsewhere a new line every few seconds."""
    with changing_line() as show:
        yield _shown(show, picture, line)


def _shown(show: Callable[[str], None], picture: ShownAs, line: ShownAs) -> Show:
    shape = picture if sys.stderr.isatty() else line
    return lambda done, total: show(shape(done, total))


@contextmanager
def changing_line() -> Iterator[Callable[[str], None]]:
    """A function that shows a line in place of the previous one if stderr is a terminal; otherwise it prints one every
    few seconds."""
    terminal, printed = sys.stderr.isatty(), monotonic()

    def print_line(line: str) -> None:
        nonlocal printed
        if terminal:
            print(f"\r{line}".ljust(79), end="", file=sys.stderr, flush=True)
        elif monotonic() - printed >= SECONDS_BETWEEN_LINES:
            printed = monotonic()
            print(f"mha-viz: {one_line(line)}", file=sys.stderr, flush=True)

    try:
        yield print_line
    finally:
        if terminal:
            print(file=sys.stderr)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Prints each warning about a missing glyph or a cut text on a line of its own, and the same warning only once."""
    printed: set[str] = set()
    shown_by_python = warnings.showwarning

    def print_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PRINTED):
            shown_by_python(message, category, *where, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            print(f"mha-viz: {one_line(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in PRINTED:
            warnings.simplefilter("always", category)
        warnings.showwarning = print_warning
        yield


def one_line(message: str) -> str:
    """The message without line breaks and control characters, which a typed name may contain."""
    return " ".join(printable(message, " ").split())


def never_fail_on(stream: Any) -> None:
    """Print "?" for characters that a terminal's encoding lacks, instead of raising an error."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
