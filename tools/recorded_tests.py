"""A pytest plugin, ``-p tools.recorded_tests --record FILE``: writes what came of the run, with date and commit."""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file."""
    parser.addoption("--record", type=Path, metavar="FILE", help="write numbers, date and commit there")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Only the process that reports has this hook called, not its workers."""
    file: Path | None = config.getoption("--record")
    if file is None:
        return
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "exit": int(exitstatus),
        **{kind: len(terminalreporter.stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped")},
        "failures": sorted(r.nodeid for kind in ("failed", "error") for r in terminalreporter.stats.get(kind, ())),
        "minutes": round((time.monotonic() - BEGAN) / 60, 1),
        "processor minutes": round(sum(s.ru_utime + s.ru_stime for s in spent) / 60, 1),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
