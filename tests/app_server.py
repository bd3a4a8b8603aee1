"""Run the real server on a free port, and find Chromium, for tests that use the page like a visitor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from urllib.error import URLError

from tests.ports import find_free_port
from tests.waiting import PATIENCE
from tools.browser import NOT_FOUND, find

ROOT = Path(__file__).resolve().parent.parent
NOTHING_LISTENS = "http://127.0.0.1:9"
HELD = "held"  # while this file exists, long work pauses


class AppServer:
    """``with AppServer(folder) as server``: ``server.url`` is its address; ``server.faults()`` returns its errors."""

    program: tuple[str, ...] = ("mha_viz.app.serving",)  # a module that Python runs, and its arguments

    def __init__(self, folder: Path, *options: str, base: str = "", **environment: str) -> None:
        self._base = f"/{base}" if base else ""
        self.folder = folder
        self._options = options
        self._extra = environment
        self._log = folder / "server.log"
        self._port = find_free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> AppServer:
        address = ["--server.port", str(self._port), "--server.address", "127.0.0.1", "--server.headless", "true"]
        command = [sys.executable, "-m", *self.program, *address, *self._options]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self._environment(), stdout=log, stderr=log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def kill_and_restart(self) -> None:
        """Kill the server with SIGKILL, and start another one at the same address."""
        self.process.kill()
        self.process.wait()
        self.__enter__()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Pause long work after its first report of progress while the block runs."""
        file = self.folder / HELD
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    def log(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def descriptors(self) -> int:
        """Return the number of open file descriptors (Linux only)."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def faults(self) -> list[str]:
        """Return the lines of the log about errors of this program (``process.log``).

        Errors that Streamlit logs itself, when a tab is closed early, do not count.
        """
        marks = re.compile(rf"Traceback \(most recent call|{re.escape(str(ROOT / 'mha_viz'))}| at (?:mha_viz|pages)/")
        return [line.strip() for line in self.log().splitlines() if marks.search(line)]

    def _environment(self) -> dict[str, str]:
        """Return the environment of the server.

        It has no Hub, no proxy for loopback, and none of this user's models or settings of the app or of torch.
        """
        ours = ("MHA_VIZ_", "STREAMLIT_", "TORCHINDUCTOR_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return (
            inherited
            | {"HF_ENDPOINT": NOTHING_LISTENS, "HF_HUB_CACHE": str(self.folder), "NO_PROXY": "127.0.0.1"}
            | {"MHA_VIZ_HOME": str(self.folder)}
            | {"MHA_VIZ_WAIT": "600"}  # on a machine that is busy with tests
            | self._extra
        )

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while not _answers(f"{self.url}{self._base}/_stcore/health"):
            assert self.process.poll() is None, f"The server ended:\n{self.log()}"
            assert time.monotonic() < end, f"The server does not answer:\n{self.log()}"
            time.sleep(0.1)


class PatientServer(AppServer):
    """The server of tests/patient_server.py, for visitors in a browser."""

    program = ("tests.patient_server",)


def find_chromium() -> str:
    """Return the path of a Chromium.

    Tests fail without one, because the page would not be tested.
    """
    path = find()
    assert path, NOT_FOUND
    return path


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as answer:
            return bool(answer.read() == b"ok")
    except (URLError, OSError):
        return False
