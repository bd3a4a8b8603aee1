"""The work of a child process for tests: cause the fault that the order names."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mha_viz.errors import Cancelled, CorpusError
from mha_viz.process.children import IsCancelled, ReportProgress, serve
from mha_viz.process.confinement import NETWORK, PROCESSES, WRITING

BOUNDS: dict[str, int] = {}  # resource limits at import, before any work
if os.name == "posix":
    import resource

    BOUNDS = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("DATA", "CPU", "CORE")}
    BOUNDS["nice"] = os.nice(0)


def work(order: dict[str, Any], progress: ReportProgress, is_cancelled: IsCancelled) -> object:
    """Do the action ``order["do"]``."""
    print("printed text is not part of the answer")
    match order["do"]:
        case "echo":
            progress(0.5)
            return bytes(order["bytes"].encode())
        case "bounds":
            return BOUNDS | {"threads": os.environ.get("OMP_NUM_THREADS")}
        case "fill":
            return b"x" * (order["megabytes"] * 10**6)
        case "full":  # use all memory without reporting it
            blocks, size = list[bytes](), 2**20
            while size >= 2**12:
                try:
                    blocks.append(bytes(size))
                except MemoryError:
                    size //= 2
            while True:
                pass
        case "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        case "exit":
            os._exit(3)
        case "cut":
            sys.__stdout__.buffer.write(struct.pack("<I", 100) + b"only this")  # type: ignore[union-attr]
            sys.__stdout__.flush()  # type: ignore[union-attr]
            os._exit(0)
        case "fault":
            raise RuntimeError(f"cannot read {order['text']}")
        case "refuse":
            raise CorpusError("line 3: no.", "Mend it.")
        case "hold":  # block the interpreter inside one library call
            progress(0.0)
            sum(range(10**12))
        case "keep":  # work until cancelled, then take time to save the result
            progress(0.25)
            Path(order["pid"]).write_text(str(os.getpid()))
            while not is_cancelled():
                time.sleep(0.01)
            progress(0.75)  # to a parent that may have ended
            Path(order["file"]).write_text("kept")
            raise Cancelled("It was stopped.", "What is done is kept.")
        case "try":
            return attempt(order)
    return b""


# Actions that a confined process must not do; each takes the order, and raises OSError if it is refused.
ATTEMPTS: dict[str, tuple[Callable[[Any], object], ...]] = {
    WRITING: (
        lambda order: Path(order["other"], "b").write_text("b"),
        lambda order: Path(order["other"], "a").write_text("b"),
        lambda order: os.truncate(Path(order["other"], "a"), 0),
        lambda order: Path(order["other"], "c").mkdir(),
        lambda order: Path(order["other"], "a").rename(Path(order["mine"], "a")),
        lambda order: Path(order["other"], "a").unlink(),
        lambda order: Path(order["other"], "a").chmod(0o600),
        lambda order: os.utime(Path(order["other"], "a")),
    ),
    NETWORK: (
        lambda order: socket.create_connection(("127.0.0.1", order["port"])).close(),
        lambda order: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        lambda order: socket.socket(socket.AF_UNIX).close(),
    ),
    PROCESSES: (
        lambda _: os.kill(os.getppid(), 0),
        lambda _: os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid())),
        lambda _: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
        lambda _: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
        lambda _: os.waitpid(os.fork() or os._exit(0), 0),
        lambda _: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda _: _use_shared_memory(),
    )
    if sys.platform == "linux"
    else (),
}


def _use_shared_memory() -> None:
    """Create a segment of System V shared memory, and remove it."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o600)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    libc.shmctl(number, 0, None)


def attempt(order: dict[str, Any]) -> list[str]:
    """Write to the folder "mine", then try all ATTEMPTS; return the kinds of those that were refused."""
    Path(order["mine"], "b").write_text("mine")
    refused = []
    for kind, attempts in ATTEMPTS.items():
        for try_ in attempts:
            try:
                try_(order)
            except OSError:
                refused.append(kind)
    return refused


if __name__ == "__main__":
    serve(work)
