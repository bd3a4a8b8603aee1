"""A Streamlit server in a separate process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds
# A module that is None here raises ModuleNotFoundError on import.
_START = """import sys
names, sys.argv = sys.argv[1].split(), ["streamlit", *sys.argv[2:]]
sys.modules.update(dict.fromkeys(names))
from {module} import main
main()"""


class Server(NamedTuple):
    """The address of the app, and when its process was started (seconds since 1970)."""

    url: str
    start_time: float


@contextmanager
def serve_app(app: Path, blocked_modules: Sequence[str] = ()) -> Iterator[Server]:
    """Serve ``app`` on a free port, with this project's settings, and yield the server.

    ``blocked_modules``: names of modules whose import fails in the server. Raises RuntimeError if the server does not
    answer within PATIENCE.
    """
    port = find_free_port()
    is_this_app = app == ROOT / "app.py"  # as `mha-viz serve` starts it; any other app as Streamlit does
    start_code = _START.format(module="mha_viz.app.serving.start" if is_this_app else "streamlit.web.cli")
    script = [] if is_this_app else ["run", str(app)]
    command = [sys.executable, "-c", start_code, " ".join(blocked_modules), *script, "--server.port", str(port)]
    start_time = time.time()
    process = subprocess.Popen(
        [*command, "--server.headless", "true"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_healthy(process, f"{url}/_stcore/health")
        yield Server(url, start_time)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"The server at {url} ended or did not answer within {PATIENCE} s.")


def find_free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
