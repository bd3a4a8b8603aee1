"""A pytest plugin, ``-p tools.recorded_tests --record FILE``: write the result of a test run, with date and commit.

If the name of the file ends in ``.jsonl``, the result is appended to it, one run per line.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from tests.libraries import MISSING

ROOT = Path(__file__).resolve().parent.parent
START = time.monotonic()
INTERVAL = 0.5  # seconds between two checks of the processes
_cpu_seconds: dict[psutil.Process, float] = {}  # CPU seconds of each process at the last check
_ended_cpu_seconds: list[float] = []  # CPU seconds of processes that have ended
_loop_seconds: list[float] = []  # seconds of the same loop before and after the tests: how fast the machine was


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file."""
    parser.addoption("--record", type=Path, metavar="FILE", help="write numbers, date and commit there")


def pytest_configure(config: pytest.Config) -> None:
    """Start measuring the CPU time of all processes.

    The CPU time of a process is not added to its parent's if the parent does not wait for its end, as for the processes
    of a browser.
    """
    if config.getoption("--record") is not None and not hasattr(config, "workerinput"):
        _loop_seconds.append(_time_loop())
        threading.Thread(target=_watch_processes, daemon=True).start()


def _time_loop() -> float:
    start = time.process_time()
    for _ in range(10**7):
        pass
    return time.process_time() - start


def _watch_processes() -> None:
    own_process = psutil.Process()
    while True:
        for process in {own_process, *own_process.children(recursive=True), *_cpu_seconds}:
            with suppress(psutil.NoSuchProcess):
                if process.is_running():  # otherwise another process may have its id
                    _cpu_seconds[process] = sum(process.cpu_times()[:2])
                else:
                    _ended_cpu_seconds.append(_cpu_seconds.pop(process, 0.0))
        time.sleep(INTERVAL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Write the record. Runs in the process that reports, not in its workers."""
    file: Path | None = config.getoption("--record")
    if file is None or hasattr(config, "workerinput"):
        return
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "shuffled": config.getoption("--shuffle"),
        "beside": os.environ.get("BESIDE", ""),
        "not tested with": list(MISSING),
        "exit": int(exitstatus),
        **{kind: len(terminalreporter.stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped")},
        "failures": sorted(r.nodeid for kind in ("failed", "error") for r in terminalreporter.stats.get(kind, ())),
        **_collect_properties(terminalreporter),
        "minutes": round((time.monotonic() - START) / 60, 1),
        "processor minutes": round((sum(list(_cpu_seconds.values())) + sum(_ended_cpu_seconds)) / 60, 1),
        "seconds of ten million empty loops": [round(seconds, 2) for seconds in (*_loop_seconds, _time_loop())],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    is_appended = file.suffix == ".jsonl"
    with file.open("a" if is_appended else "w", encoding="utf-8") as stream:
        stream.write(json.dumps(record, indent=None if is_appended else 1, ensure_ascii=False) + "\n")


def _collect_properties(reporter: pytest.TerminalReporter) -> dict[str, dict[str, dict[str, object]]]:
    """Return what tests recorded about themselves, by test name; empty if nothing was recorded."""
    reports = [report for kind in ("passed", "failed") for report in reporter.stats.get(kind, ())]
    properties = {
        report.nodeid.rpartition("::")[2]: dict(report.user_properties)
        for report in reports
        if getattr(report, "when", "") == "call" and report.user_properties
    }
    return {"recorded": properties} if properties else {}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
