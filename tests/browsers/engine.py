"""One window of a browser of any engine: what a visitor can do, and what the driver reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.waiting import PATIENCE

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Control": "\ue009"}  # as WebDriver writes them


class Engine(ABC):
    """``with Firefox(program, folder) as browser``: an engine in a window; what it downloads lies in ``downloads``.

    ``folder`` is its home, so that nobody's profile is read or changed."""

    least_width = 0  # of its window, in pixels

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        self.log = folder / "log"
        self.version = ""
        self._ends = ExitStack()

    def __enter__(self) -> Engine:
        with ExitStack() as ends:
            self._start(ends)
            self._ends = ends.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.close()

    @abstractmethod
    def _start(self, ends: ExitStack) -> None:
        """Start the browser and set ``version``; ``ends`` gets what ends it."""

    @abstractmethod
    def open(self, url: str) -> None:
        """Go to an address, until the page is loaded."""

    @abstractmethod
    def back(self) -> None:
        """Go one step back in the history."""

    @abstractmethod
    def forward(self) -> None:
        """Go one step forward in the history."""

    @abstractmethod
    def resize(self, width: int, height: int) -> None:
        """Give the page this size in pixels; no less wide than ``least_width``."""

    @abstractmethod
    def point(self, x: float, y: float) -> None:
        """Move the pointer there, in pixels from the corner of the page's window."""

    @abstractmethod
    def press(self) -> None:
        """Press and release the pointer's button where it is."""

    @abstractmethod
    def type(self, *keys: str) -> None:
        """Press and release keys: characters, or names of KEYS."""

    @abstractmethod
    def select_all(self) -> None:
        """Select all of the field that has the focus, with Control and A."""

    @abstractmethod
    def picture(self) -> bytes:
        """Return what is in the window, as PNG."""

    @abstractmethod
    def faults(self) -> list[str]:
        """Return errors of scripts, requests that failed or were refused, as far as the driver tells."""

    @abstractmethod
    def _evaluate(self, expression: str) -> str:
        """Return the text that an expression of JavaScript gives in the page."""

    def run(self, function: str, *arguments: Any) -> Any:
        """Return what a function of JavaScript returns in the page, as JSON."""
        text = self._evaluate(f"JSON.stringify(({function})(...{json.dumps(arguments)}) ?? null)")
        return json.loads(text)


class ByActions(Engine):
    """An engine whose driver takes the actions of WebDriver."""

    @abstractmethod
    def _perform(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Perform actions (W3C, WebDriver, section 15: Actions)."""

    def _perform_pointer(self, *actions: Mapping[str, Any]) -> None:
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        self._perform([{**mouse, "actions": list(actions)}])

    def _perform_keys(self, *actions: tuple[str, str]) -> None:
        self._perform(
            [{"type": "key", "id": "keys", "actions": [{"type": kind, "value": key} for kind, key in actions]}]
        )

    def point(self, x: float, y: float) -> None:
        """Point in whole pixels: not every driver knows parts of one."""
        move = {"type": "pointerMove", "origin": "viewport", "duration": 0}
        self._perform_pointer(*({**move, "x": round(x) + step, "y": round(y)} for step in (1, 0)))

    def press(self) -> None:
        """Press the left button."""
        self._perform_pointer({"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def type(self, *keys: str) -> None:
        """Type one after the other."""
        codes = [KEYS.get(key, key) for key in keys]
        self._perform_keys(*((kind, code) for code in codes for kind in ("keyDown", "keyUp")))

    def select_all(self) -> None:
        """Select by the keys."""
        control = KEYS["Control"]
        self._perform_keys(("keyDown", control), ("keyDown", "a"), ("keyUp", "a"), ("keyUp", control))


def started(
    ends: ExitStack, command: Sequence[str], log: Path, environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Return a process whose output goes to ``log``, until ``ends``: then it and all that it has started end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **options,
        )
    ends.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
