"""Show progress as a bar in one line of the terminal, or as a new line every few seconds in a log file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from time import monotonic
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mha_viz.errors import SettingError, shorten_value
from mha_viz.quotes import make_printable

__all__ = [
    "ProgressOption",
    "ShowProgress",
    "as_callback",
    "bar",
    "bars",
    "is_in_notebook",
    "one_line",
    "progress_bar",
    "show_formatted",
    "status_line",
    "with_bar",
]

SECONDS_BETWEEN_LINES = 5.0  # seconds between lines of progress when stderr is not a terminal
BAR_STEPS = 1_000  # steps of a bar that shows a fraction

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
ProgressOption: TypeAlias = Callable[[T], None] | bool
"""The type of ``progress=``: a function that is called with the progress, or True to show a bar."""
ShowProgress = Callable[[int, int], None]
FormatProgress = Callable[[int, int], str]  # formats (done, total)


def with_bar(unit: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds ``progress=True`` to a function: a bar on stderr, counted in ``unit``.

    The decorated function raises SettingError for a progress that is neither true, false nor a function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> R:
            import numpy as np

            progress = options.get("progress", False)
            is_boolean = isinstance(progress, bool | np.bool_)
            if not is_boolean and not callable(progress):
                raise SettingError(
                    f"progress is {shorten_value(progress)}.",
                    "Give True for a bar, or a function that takes the progress so far.",
                )
            if not (is_boolean and progress):
                return function(*arguments, **options)
            with progress_bar(unit) as options["progress"]:
                return function(*arguments, **options)

        return call

    return decorate


def as_callback(progress: ProgressOption[T]) -> Callable[[T], None]:
    """Return the function to call with the progress, for use inside a function that :func:`with_bar` decorates."""
    return progress if callable(progress) else lambda _: None


def bar(unit: str) -> AbstractContextManager[ShowProgress]:
    """Return a context manager with a function that shows (done, total): a bar on a terminal, lines elsewhere."""
    return show_formatted(*_make_formats(unit))


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[Any], None]]:
    """Show a bar, as :func:`bar` does; yield a function that takes the progress.

    The progress is an object with ``done`` and ``total``, or the completed fraction.
    """
    with bar(unit) as show:
        yield lambda state: show(*_to_done_and_total(state))


def _to_done_and_total(state: Any) -> tuple[int, int]:
    """Return done and total of a progress object, or of a fraction in BAR_STEPS."""
    return (state.done, state.total) if hasattr(state, "total") else (round(BAR_STEPS * state), BAR_STEPS)


@contextmanager
def bars(*units: str) -> Iterator[tuple[ShowProgress, ...]]:
    """Yield one function like that of :func:`bar` for each of several consecutive tasks, which share one line."""
    with status_line() as show:
        yield tuple(_make_progress_function(show, *_make_formats(unit)) for unit in units)


def _make_formats(unit: str) -> tuple[FormatProgress, FormatProgress]:
    """Return the formats of a bar and of a line for a unit."""

    def format_line(done: int, total: int) -> str:
        return f"{done} of {total} {unit}" if total < 1000 else f"{100 * done // total}% {unit}"

    def format_bar(done: int, total: int) -> str:
        return f"{'█' * (30 * done // max(1, total)):<30} {format_line(done, total)}"

    return format_bar, format_line


@contextmanager
def show_formatted(format_bar: FormatProgress, format_line: FormatProgress) -> Iterator[ShowProgress]:
    """Yield a function that shows (done, total) in two formats, one for a terminal and one for a log.

    On a terminal it updates one line; elsewhere it prints a line every few seconds.
    """
    with status_line() as show:
        yield _make_progress_function(show, format_bar, format_line)


def _make_progress_function(
    show: Callable[[str], None], format_bar: FormatProgress, format_line: FormatProgress
) -> ShowProgress:
    format_progress = format_bar if _can_overwrite() else format_line
    return lambda done, total: show(format_progress(done, total))


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line in place of the previous line.

    If stderr is not a terminal, it prints a new line every few seconds.
    """
    can_overwrite, last_print = _can_overwrite(), monotonic()

    def print_line(line: str) -> None:
        nonlocal last_print
        if can_overwrite:
            print(f"\r{line}".ljust(79), end="", file=sys.stderr, flush=True)
        elif monotonic() - last_print >= SECONDS_BETWEEN_LINES:
            last_print = monotonic()
            print(f"mha-viz: {one_line(line)}", file=sys.stderr, flush=True)

    try:
        yield print_line
    finally:
        if can_overwrite:
            print(file=sys.stderr)


def _can_overwrite() -> bool:
    """Return whether a line can overwrite the previous line, as on a terminal and below a notebook cell."""
    return sys.stderr.isatty() or is_in_notebook()


def is_in_notebook() -> bool:
    """Return whether this program runs in a Jupyter kernel, whose frontend displays the last value of a cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def one_line(message: str) -> str:
    """Return the message without line breaks and control characters, which a typed name may contain."""
    return " ".join(make_printable(message, " ").split())
