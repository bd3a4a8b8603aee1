"""Progress in the terminal: one line that changes, with a bar, or in a file of output a new line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from time import monotonic
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mha_viz.errors import SettingError, shorten_value
from mha_viz.quotes import printable

__all__ = [
    "OrBar",
    "Show",
    "bar",
    "bar_of",
    "bars",
    "called",
    "changing_line",
    "is_in_notebook",
    "one_line",
    "show_shape",
    "with_bar",
]

SECONDS_BETWEEN_LINES = 5.0  # of progress, if stderr is not a terminal
PARTS = 1_000  # of a share that is done

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
OrBar: TypeAlias = Callable[[T], None] | bool
"""Who is told how far some work is: a function, or, with True, people by a bar."""
Show = Callable[[int, int], None]
ShownAs = Callable[[int, int], str]  # what is shown of done and total


def with_bar(unit: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make ``progress=True`` of a function draw a bar on stderr, of ``unit``. Raises SettingError for a progress that
    is neither true, false nor a function."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            import numpy as np

            progress = options.get("progress", False)
            is_given = isinstance(progress, bool | np.bool_)
            if not is_given and not callable(progress):
                raise SettingError(
                    f"progress is {shorten_value(progress)}.",
                    "Give True for a bar, or a function that takes the progress so far.",
                )
            if not (is_given and progress):
                return function(*arguments, **options)
            with bar_of(unit) as options["progress"]:
                return function(*arguments, **options)

        return call

    return decorate


def called(progress: OrBar[T]) -> Callable[[T], None]:
    """Return the function to call with the progress, in a function that :func:`with_bar` decorates."""
    return progress if callable(progress) else lambda _: None


def bar(unit: str) -> AbstractContextManager[Show]:
    """A function that shows progress: as a bar on a terminal, otherwise as lines."""
    return show_shape(*_shapes(unit))


@contextmanager
def bar_of(unit: str) -> Iterator[Callable[[Any], None]]:
    """Show a bar, as :func:`bar` does, of an object with what is ``done`` of the ``total``, or of the share that is
    done."""
    with bar(unit) as show:
        yield lambda so_far: show(*_counts(so_far))


def _counts(so_far: Any) -> tuple[int, int]:
    return (so_far.done, so_far.total) if hasattr(so_far, "total") else (round(PARTS * so_far), PARTS)


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
def show_shape(picture: ShownAs, line: ShownAs) -> Iterator[Show]:
    """A function of done and total: on a terminal one line that changes, elsewhere a new line every few seconds."""
    with changing_line() as show:
        yield _shown(show, picture, line)


def _shown(show: Callable[[str], None], picture: ShownAs, line: ShownAs) -> Show:
    shape = picture if _changes() else line
    return lambda done, total: show(shape(done, total))


@contextmanager
def changing_line() -> Iterator[Callable[[str], None]]:
    """A function that shows a line in place of the previous one if stderr is a terminal; otherwise it prints one every
    few seconds."""
    terminal, printed = _changes(), monotonic()

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


def _changes() -> bool:
    """Tell whether a line can take the place of the one before, as on a terminal and below a cell of a notebook."""
    return sys.stderr.isatty() or is_in_notebook()


def is_in_notebook() -> bool:
    """Tell whether this program runs in a kernel of Jupyter, whose frontend displays what a cell ends in."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def one_line(message: str) -> str:
    """The message without line breaks and control characters, which a typed name may contain."""
    return " ".join(printable(message, " ").split())
