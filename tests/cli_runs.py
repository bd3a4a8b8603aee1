"""Run the command line in a separate process or with another standard input, and check its error messages."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(
    *arguments: str, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mha_viz.cli", *arguments]
    env = {**os.environ, **(environment or {})}
    return subprocess.run(command, input=given, cwd=ROOT, capture_output=True, check=False, env=env)


def stdin(data: bytes) -> io.TextIOWrapper:
    """Return a standard input that contains ``data``."""
    return io.TextIOWrapper(io.BytesIO(data), "utf-8")


def assert_one_line(stderr: str, *words: str) -> None:
    stderr = re.sub(r"^mha-viz: Downloading .*\n", "", stderr, flags=re.MULTILINE)  # may appear on a slow machine
    assert stderr.startswith("mha-viz: ")
    assert stderr.count("\n") == 1
    assert stderr.endswith("\n")
    assert "Traceback" not in stderr
    assert all(word in stderr for word in words), stderr
