"""Run a server in a separate process; monitor its CPU time, memory, descriptors, threads, children and log."""

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

from benchmarks.server import ROOT, find_free_port

PATIENCE = 60  # seconds
NOTHING_LISTENS = "http://127.0.0.1:9"
LONG_WAIT = "600"  # MHA_VIZ_WAIT in seconds: so long that a busy machine refuses no new visitor


@dataclass(frozen=True)
class MonitoredServer:
    """A server at the address ``url``."""

    url: str
    process: psutil.Process
    log_path: Path

    def cpu(self) -> float:
        """Return the CPU seconds since the start, including those of children, running or ended."""
        total = 0.0
        for process in self._list_processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def megabytes(self) -> float:
        """Return the memory of the server and its children.

        On Linux it is the sum of their PSS, in which shared pages count once; elsewhere the sum of their RSS.
        """
        total = 0
        for process in self._list_processes():
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
        return self.log_path.read_text("utf-8", errors="replace")

    def tracebacks(self) -> int:
        """Count the tracebacks in the log."""
        return self.log().count("Traceback (most recent call")

    def _list_processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def serve_monitored(app: Path | None = None, **environment: str) -> Iterator[MonitoredServer]:
    """Serve the app as `mha-viz serve` does, or the Streamlit script ``app``; yield the server.

    The server runs on a free port, with a separate home and no access to the Hub. Raises RuntimeError if it does not
    answer within PATIENCE.
    """
    port = str(find_free_port())
    serve_command = ["mha_viz.cli", "serve", "--port", port, "--", "--server.headless", "true"]
    command = (
        serve_command
        if app is None
        else ["streamlit", "run", str(app), "--server.port", port, "--server.headless", "true"]
    )
    with tempfile.TemporaryDirectory() as home, (Path(home) / "log").open("wb") as log:
        inherited_environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("MHA_VIZ_", "STREAMLIT_"))
        }
        isolation = {
            **{"HF_ENDPOINT": NOTHING_LISTENS, "HF_HUB_CACHE": home, "MHA_VIZ_HOME": home, "NO_PROXY": "127.0.0.1"},
            "STREAMLIT_LOGGER_ENABLE_RICH": "false",  # tracebacks without boxes around their lines
        }
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=inherited_environment | isolation | {"PYTHONPATH": str(ROOT)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            server = MonitoredServer(f"http://127.0.0.1:{port}", psutil.Process(process.pid), Path(home) / "log")
            _wait_until_healthy(process, server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_healthy(process: subprocess.Popen[bytes], server: MonitoredServer) -> None:
    direct_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), direct_opener.open(f"{server.url}/_stcore/health", timeout=5):
            return
        time.sleep(0.05)
    raise RuntimeError(
        f"The server at {server.url} ended or did not answer within {PATIENCE} s.\n{server.log()[-2000:]}"
    )
