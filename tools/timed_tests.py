"""A pytest plugin, ``-p tools.timed_tests``: append the seconds of each test to files that begin with $TIMES."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Generator
from pathlib import Path

import pytest


def _read_clocks() -> tuple[float, float, float]:
    """Return the clock, and the CPU seconds of this process and of its ended children."""
    own, children = (resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.monotonic(), own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write one line per test: its name, its seconds, and the CPU seconds of this process and of its children.

    The system adds the seconds of a child once its parent has waited for it. Those of a server that a module shares
    count for the test after which the server is stopped.
    """
    start_clocks = _read_clocks()
    result = yield
    row = [item.nodeid, *(round(end - start, 4) for end, start in zip(_read_clocks(), start_clocks, strict=True))]
    with Path(f"{os.environ['TIMES']}.{os.getpid()}.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")
    return result
