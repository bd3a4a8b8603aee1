"""The log of a process that strangers use: short lines, and not more of them than a person can read.

A record is one line of at most 500 characters. What an error says may quote what a visitor sent, so a line has only
its kind and where it was raised. Each visitor may cause one line a second, and all of them together ``AT_ONCE`` and
then ``A_SECOND``.
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

LONGEST = 460  # characters of a line, before which a handler may write the time
APART = 1.0  # seconds between two lines of one visitor, or of one place in the code if the visitor is not known
AT_ONCE, A_SECOND = 50, 10  # lines of all visitors and places
MOST = 4_096  # visitors and places that are remembered
PLACES = 6  # of an error: where it was raised, and who called that
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HOME = PACKAGE.parent
_OURS = (str(PACKAGE), str(_HOME / "pages"), str(_HOME / "app.py"))


def bound_records(who: Callable[[], str] = str) -> None:
    """Bound all records of this process from now on, whichever library writes them. ``who`` names the visitor whose
    work the thread does; "" if that is not known."""
    usual, lines = logging.getLogRecordFactory(), _Lines()

    def make(*given: Any, **named: Any) -> logging.LogRecord:
        name, level, path, number, message, args, error, *others = given
        record = usual(name, level, path, number, message, args, None, *others[:1], **{**named, "sinfo": None})
        try:
            text = record.getMessage()
        except Exception:  # a library's mistake is not to end a request
            text = str(message)[:LONGEST]
        if isinstance(error, tuple) and error[1] is not None:
            text = f"{text[:LONGEST]} | {raised(error[1])}"
        left_out = lines.left_out(who() or f"{path}:{number}")
        if left_out is None:
            record.levelno = -1  # below the level of every handler
        elif left_out:
            text = f"({left_out} lines left out) {text}"
        record.msg, record.args = as_line(text), ()
        return record

    logging.setLogRecordFactory(make)
    logging.captureWarnings(True)
    if logging.lastResort:
        logging.getLogger("py.warnings").addHandler(logging.lastResort)
    threading.excepthook = _note_ended


def as_line(text: str) -> str:
    """A text as a line of the log."""
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return _BREAKS.sub(" ", short)


def raised(error: BaseException) -> str:
    """The kind of an error and where it was raised, without what it says. Only one that this program has caused is
    called a traceback: not what Streamlit raised over a value that it was sent."""
    frames = [(_short(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [at for at, (place, _) in enumerate(frames) if place.startswith(("mha_viz/", "pages/", "app.py"))]
    deeper = [place for place, _ in frames[ours[-1] :]] if ours else []
    is_theirs = any(place.startswith("streamlit/") for place in deeper) and not type(error).__module__.startswith(
        "streamlit"
    )
    near = " < ".join(f"{place}:{line}" for place, line in frames[: -PLACES - 1 : -1])
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        kind += f" ({error.strerror})"
    where = f"{kind} in {near}"
    if ours:  # what is left of a long line
        where = f"{kind} at {':'.join(map(str, frames[ours[-1]]))} in {near}"
    return where if is_theirs or not ours else f"Traceback (most recent call first): {where}"


def _short(path: str) -> str:
    """The path of a module below where the package, or the library, lies."""
    if path.startswith(_OURS):
        return Path(path).relative_to(_HOME).as_posix()
    parts = Path(path).parts
    at = max((at for at, part in enumerate(parts) if part in ("site-packages", "lib")), default=-1)
    return "/".join(parts[at + 1 :])


def _note_ended(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and args.exc_type is not SystemExit:
        logging.getLogger(__name__).error("A thread ended | %s", raised(args.exc_value))


class _Lines:
    """Counts the lines of each visitor and of all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}  # when the last line was written, how many were not since
        self._tokens, self._at = float(AT_ONCE), time.monotonic()

    def left_out(self, who: str) -> int | None:
        """How many lines were left out since the last one; None if this one is to be left out, too."""
        with self._lock:
            now = time.monotonic()
            self._tokens, self._at = min(AT_ONCE, self._tokens + (now - self._at) * A_SECOND), now
            last, count = self._last.pop(who, (-APART, 0))
            is_due = now - last >= APART and self._tokens >= 1
            self._last[who] = (now, 0) if is_due else (last, count + 1)
            while len(self._last) > MOST:
                del self._last[next(iter(self._last))]
            self._tokens -= is_due
            return count if is_due else None
