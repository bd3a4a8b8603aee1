"""One browser window of any engine: the actions of a visitor, and the errors that its driver reports."""

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

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Control": "\ue009"}  # WebDriver's codes


class Engine(ABC):
    """A browser that runs in a ``with`` block: ``with Firefox(program, folder) as browser``.

    ``folder`` is its home, so that no user's profile is read or changed; ``folder/downloads`` gets the downloads."""

    min_width = 0  # of its window, in pixels

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
        """Start the browser, set ``version``, and register in ``ends`` how to stop the browser."""

    @abstractmethod
    def open(self, url: str) -> None:
        """Open an address and wait until the page is loaded."""

    @abstractmethod
    def back(self) -> None:
        """Go one step back in the history."""

    @abstractmethod
    def forward(self) -> None:
        """Go one step forward in the history."""

    @abstractmethod
    def resize(self, width: int, height: int) -> None:
        """Set the size of the page in pixels; it is at least ``min_width`` wide."""

    @abstractmethod
    def point(self, x: float, y: float) -> None:
        """Move the pointer to a point, in pixels from the top left corner of the page's window."""

    @abstractmethod
    def press(self) -> None:
        """Click at the position of the pointer."""

    @abstractmethod
    def type(self, *keys: str) -> None:
        """Press and release keys, one after the other: characters, or names in KEYS."""

    @abstractmethod
    def select_all(self) -> None:
        """Select the whole text of the focused field with Ctrl+A."""

    @abstractmethod
    def screenshot(self) -> bytes:
        """Return a screenshot of the window as PNG."""

    @abstractmethod
    def list_errors(self) -> list[str]:
        """Return script errors and failed or refused requests, as far as the driver reports them."""

    @abstractmethod
    def _evaluate(self, expression: str) -> str:
        """Evaluate a JavaScript expression in the page and return its value as text."""

    def run(self, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function in the page and return its result, which is sent as JSON."""
        text = self._evaluate(f"JSON.stringify(({function})(...{json.dumps(arguments)}) ?? null)")
        return json.loads(text)


class ActionsEngine(Engine):
    """An engine whose driver accepts WebDriver's actions for pointer and keys."""

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
        """Point at whole pixels, because not every driver accepts fractions."""
        move = {"type": "pointerMove", "origin": "viewport", "duration": 0}
        self._perform_pointer(*({**move, "x": round(x) + step, "y": round(y)} for step in (1, 0)))

    def press(self) -> None:
        """See Engine."""
        self._perform_pointer({"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def type(self, *keys: str) -> None:
        """See Engine."""
        codes = [KEYS.get(key, key) for key in keys]
        self._perform_keys(*((kind, code) for code in codes for kind in ("keyDown", "keyUp")))

    def select_all(self) -> None:
        """See Engine."""
        control = KEYS["Control"]
        self._perform_keys(("keyDown", control), ("keyDown", "a"), ("keyUp", "a"), ("keyUp", control))


def start_process(
    ends: ExitStack, command: Sequence[str], log: Path, environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Start a process that writes to ``log``. When ``ends`` closes, stop it and all processes that it has started."""
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
    ends.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
