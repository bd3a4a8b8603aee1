"""Faults of child processes, for tests: the order says which."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from mha_viz.errors import Cancelled, CorpusError
from mha_viz.process.apart import Stop, Tell, serve

BOUNDS: dict[str, int] = {}  # as they are while the module is imported, before it is served
if os.name == "posix":
    import resource

    BOUNDS = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("DATA", "CPU", "CORE")}
    BOUNDS["nice"] = os.nice(0)


def work(order: bytes, tell: Tell, stop: Stop) -> bytes:
    """Do what the order says."""
    asked = json.loads(order)
    print("what is printed is no answer")
    match asked["do"]:
        case "echo":
            tell(0.5)
            return bytes(asked["bytes"].encode())
        case "bounds":
            return json.dumps(BOUNDS | {"threads": os.environ.get("OMP_NUM_THREADS")}).encode()
        case "fill":
            return b"x" * (asked["megabytes"] * 10**6)
        case "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        case "exit":
            os._exit(3)
        case "cut":
            sys.__stdout__.buffer.write(b'{"bytes": 100}\nonly this')  # type: ignore[union-attr]
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
            Path(asked["file"]).write_text("kept")
            raise Cancelled("It was stopped.", "What is done is kept.")
    return b""


if __name__ == "__main__":
    serve(work)
