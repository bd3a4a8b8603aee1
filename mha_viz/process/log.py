"""Rate-limited logging for public servers: short lines, and few enough for a person to read.

A record is one line of at most 500 characters. Error messages may quote a visitor's input, so a line names only the
class of an error and where it was raised. Each visitor may cause one line a second, and all visitors together a burst
of ``MAX_BURST`` and then ``LINES_PER_SECOND`` lines a second.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mha_viz.process import PACKAGE

MAX_LENGTH = 460  # characters of a line; a handler may write the time before it
# Seconds between lines of the same visitor, or of the same place in the code if no visitor is known.
SECONDS_BETWEEN_LINES = 1.0
MAX_BURST, LINES_PER_SECOND = 50, 10  # lines of all visitors and places together: burst, and lines per second
MAX_SOURCES = 4_096  # visitors and places to remember
MAX_FRAMES = 6  # frames of a traceback in a line, the innermost first
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_ROOT = PACKAGE.parent
_OWN_PATHS = (str(PACKAGE), str(_ROOT / "pages"), str(_ROOT / "app.py"))


def limit_records(get_visitor: Callable[[], str] = str) -> None:
    """Limit all log records of this process from now on, whichever library writes them.

    ``get_visitor`` returns the name of the visitor for whom the current thread works; "" if that is not known.
    """
    default_factory, limiter = logging.getLogRecordFactory(), _RateLimiter()

    def make_record(*arguments: Any, **options: Any) -> logging.LogRecord:
        name, level, path, line_number, message, args, exc_info, *function = arguments
        record = default_factory(
            name, level, path, line_number, message, args, None, *function[:1], **{**options, "sinfo": None}
        )
        try:
            text = record.getMessage()
        except Exception:  # a library's wrong format arguments must not end a request
            text = str(message)[:MAX_LENGTH]
        if isinstance(exc_info, tuple) and exc_info[1] is not None:
            text = f"{text[:MAX_LENGTH]} | {describe_error(exc_info[1])}"
        skipped_lines = limiter.count_skipped(get_visitor() or f"{path}:{line_number}")
        if skipped_lines is None:
            record.levelno = -1  # below the level of every handler
        elif skipped_lines:
            text = f"({skipped_lines} lines left out) {text}"
        record.msg, record.args = format_line(text), ()
        return record

    logging.setLogRecordFactory(make_record)
    logging.captureWarnings(True)
    if logging.lastResort:
        logging.getLogger("py.warnings").addHandler(logging.lastResort)
    threading.excepthook = _log_thread_error


def format_line(text: str) -> str:
    """Return a text as one log line: cut to MAX_LENGTH characters, without line breaks and control characters."""
    line = text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"
    return _CONTROL_CHARACTERS.sub(" ", line)


def describe_error(error: BaseException) -> str:
    """Return the class of an error and where it was raised, without its message.

    The text says "Traceback" only for errors of this program, not for those that Streamlit raises because of a value
    that it received.
    """
    frames = [(_shorten_path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own_frames = [
        index for index, (module, _) in enumerate(frames) if module.startswith(("mha_viz/", "pages/", "app.py"))
    ]
    deeper_modules = [module for module, _ in frames[own_frames[-1] :]] if own_frames else []
    is_library_error = any(module.startswith("streamlit/") for module in deeper_modules) and not type(
        error
    ).__module__.startswith("streamlit")
    innermost = " < ".join(f"{module}:{line}" for module, line in frames[: -MAX_FRAMES - 1 : -1])
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        kind += f" ({error.strerror})"
    location = f"{kind} in {innermost}"
    if own_frames:  # put our own frame first, because the end of a long line is cut
        location = f"{kind} at {':'.join(map(str, frames[own_frames[-1]]))} in {innermost}"
    return location if is_library_error or not own_frames else f"Traceback (most recent call first): {location}"


def _shorten_path(path: str) -> str:
    """Return the path of a module relative to the folder of the package or library."""
    if path.startswith(_OWN_PATHS):
        return Path(path).relative_to(_ROOT).as_posix()
    parts = Path(path).parts
    folder_index = max((index for index, part in enumerate(parts) if part in ("site-packages", "lib")), default=-1)
    return "/".join(parts[folder_index + 1 :])


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    """Log the error that ended a thread."""
    if args.exc_value is not None and args.exc_type is not SystemExit:
        logging.getLogger(__name__).error("A thread ended | %s", describe_error(args.exc_value))


class _RateLimiter:
    """Limits the log lines of each visitor and of all visitors together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_lines: dict[str, tuple[float, int]] = {}  # time of the last line, and number of lines skipped since
        self._tokens, self._last_refill = float(MAX_BURST), time.monotonic()

    def count_skipped(self, source: str) -> int | None:
        """Return the number of lines skipped since the last logged line; None if this line must be skipped too."""
        with self._lock:
            now = time.monotonic()
            self._tokens, self._last_refill = (
                min(MAX_BURST, self._tokens + (now - self._last_refill) * LINES_PER_SECOND),
                now,
            )
            last_time, count = self._last_lines.pop(source, (-SECONDS_BETWEEN_LINES, 0))
            is_due = now - last_time >= SECONDS_BETWEEN_LINES and self._tokens >= 1
            self._last_lines[source] = (now, 0) if is_due else (last_time, count + 1)
            while len(self._last_lines) > MAX_SOURCES:
                del self._last_lines[next(iter(self._last_lines))]
            self._tokens -= is_due
            return count if is_due else None
