"""A server in a separate process that is monitored: processor time, memory, descriptors, threads, children, its log."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.served import ROOT, find_free_port

PATIENCE = 60  # seconds
NOTHING_LISTENS = "http://127.0.0.1:9"
LETS_IN = "600"  # MHA_VIZ_WAIT, seconds: a busy machine refuses no newcomer, where refusals are not what is measured


@dataclass(frozen=True)
class Watched:
    """A server at the address ``url``."""

    url: str
    process: psutil.Process
    written: Path

    def cpu(self) -> float:
        """Return the CPU seconds since the start, including those of children, running or ended."""
        total = 0.0
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def megabytes(self) -> float:
        """Return the memory of the server and its children.

        On Linux it is the sum of their PSS, in which shared pages count once; elsewhere the sum of their RSS.
        """
        total = 0
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss if psutil.LINUX else process.memory_info().rss
        return total / 1e6

    def counts(self) -> dict[str, int]:
        """Return the numbers of descriptors and threads of the server, and of its children."""
        return {
            "descriptors": self.process.num_fds(),
            "threads": self.process.num_threads(),
            "children": len(self.process.children(recursive=True)),
        }

    def log(self) -> str:
        """Return the log so far."""
        return self.written.read_text("utf-8", errors="replace")

    def tracebacks(self) -> int:
        """Count the tracebacks in the log."""
        return self.log().count("Traceback (most recent call")

    def _family(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def serve_watched(app: Path | None = None, **environment: str) -> Iterator[Watched]:
    """Serve the app as `mha-viz serve` does, or the Streamlit script ``app``; yield the server.

    It runs on a free port, with a separate home and without a Hub. Raises RuntimeError if it does not answer within
    PATIENCE.
    """
    port = str(find_free_port())
    ours = ["mha_viz.cli", "serve", "--port", port, "--", "--server.headless", "true"]
    command = (
        ours if app is None else ["streamlit", "run", str(app), "--server.port", port, "--server.headless", "true"]
    )
    with tempfile.TemporaryDirectory() as home, (Path(home) / "log").open("wb") as log:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("MHA_VIZ_", "STREAMLIT_"))
        }
        alone = {"HF_ENDPOINT": NOTHING_LISTENS, "HF_HUB_CACHE": home, "MHA_VIZ_HOME": home, "NO_PROXY": "127.0.0.1"}
        alone["STREAMLIT_LOGGER_ENABLE_RICH"] = "false"  # tracebacks without boxes around their lines
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=inherited | alone | {"PYTHONPATH": str(ROOT)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            server = Watched(f"http://127.0.0.1:{port}", psutil.Process(process.pid), Path(home) / "log")
            _await(process, server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(process: subprocess.Popen[bytes], server: Watched) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), direct.open(f"{server.url}/_stcore/health", timeout=5):
            return
        time.sleep(0.05)
    raise RuntimeError(
        f"The server at {server.url} ended or did not answer within {PATIENCE} s.\n{server.log()[-2000:]}"
    )
