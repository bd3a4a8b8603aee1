"""Faults of child processes, for tests: the order says which."""

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

BOUNDS: dict[str, int] = {}  # as they are while the module is imported, before it is served
if os.name == "posix":
    import resource

    BOUNDS = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("DATA", "CPU", "CORE")}
    BOUNDS["nice"] = os.nice(0)


def work(asked: dict[str, Any], tell: ReportProgress, stop: IsCancelled) -> object:
    """Do what the order says."""
    print("what is printed is no answer")
    match asked["do"]:
        case "echo":
            tell(0.5)
            return bytes(asked["bytes"].encode())
        case "bounds":
            return BOUNDS | {"threads": os.environ.get("OMP_NUM_THREADS")}
        case "fill":
            return b"x" * (asked["megabytes"] * 10**6)
        case "full":  # all memory is used, and nothing says so
            held, size = list[bytes](), 2**20
            while size >= 2**12:
                try:
                    held.append(bytes(size))
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
            raise RuntimeError(f"cannot read {asked['text']}")
        case "refuse":
            raise CorpusError("line 3: no.", "Mend it.")
        case "hold":  # holds the interpreter, inside one call of a library
            tell(0.0)
            sum(range(10**12))
        case "keep":  # until told to stop, then takes time to save its work
            tell(0.25)
            Path(asked["pid"]).write_text(str(os.getpid()))
            while not stop():
                time.sleep(0.01)
            tell(0.75)  # to a parent that may have ended
            Path(asked["file"]).write_text("kept")
            raise Cancelled("It was stopped.", "What is done is kept.")
        case "try":
            return attempt(asked)
    return b""


# What a confined process may not do, given its order; each raises OSError where it is refused.
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
        lambda _: _shared_memory(),
    )
    if sys.platform == "linux"
    else (),
}


def _shared_memory() -> None:
    """Make a segment of System V's shared memory, and remove it."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o600)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    libc.shmctl(number, 0, None)


def attempt(order: dict[str, Any]) -> list[str]:
    """Write to the folder "mine", then try everything; returns what was refused."""
    Path(order["mine"], "b").write_text("mine")
    refused = []
    for what, attempts in ATTEMPTS.items():
        for one in attempts:
            try:
                one(order)
            except OSError:
                refused.append(what)
    return refused


if __name__ == "__main__":
    serve(work)
