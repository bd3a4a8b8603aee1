"""Nothing is imported from the folder in which the program is started: whoever can write there could run code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mha_viz import process

CANARY = "raise SystemExit('imported from the current folder')\n"
STUDY = """
from mha_viz.study.cluster.connection import connect

if __name__ == "__main__":
    with connect(workers=1) as client:
        print(client.run(int, "7").values())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules that have the names of libraries."""
    for name in ("numpy", "torch", "streamlit", "json", "mha_viz"):
        (tmp_path / f"{name}.py").write_text(CANARY, "utf-8")
    monkeypatch.chdir(tmp_path)
    given = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}{given}")  # as “$PYTHONPATH:more” makes it
    return tmp_path


@pytest.mark.app
def test_a_child_imports_its_libraries_and_this_package_from_where_they_are(folder: Path) -> None:
    command, environment = process.build_python_command("-c", "import numpy, json, mha_viz; print(mha_viz.__file__)")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).parent == process.PACKAGE
    assert "-P" in command
    unsafe = subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True, text=True, check=False)
    assert "imported from the current folder" in unsafe.stderr, "the canary sings"


@pytest.mark.app
def test_the_server_is_such_a_child(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the process with the models: tests/test_reader.py."""
    from mha_viz.cli import main

    called: list[list[str]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        called.append(command)
        assert environment["PYTHONPATH"].startswith(str(process.PACKAGE.parent))
        assert environment["OPENBLAS_NUM_THREADS"] == "1"  # a second thread doubles what a new sentence costs

    monkeypatch.setattr("os.execve", execve)
    for name in ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "")  # what is set below is undone
        monkeypatch.delenv(name)
    main(["serve", "--port", "18599"])
    assert called[0][1:4] == ["-P", "-m", "mha_viz.app.serving"]


def test_so_are_the_workers_of_a_study(folder: Path) -> None:
    """multiprocessing begins them, whose Python would import ``signal`` from the current folder."""
    (folder / "signal.py").write_text(CANARY, "utf-8")
    program = folder.parent / "study.py"
    program.write_text(STUDY, "utf-8")
    path = str(process.PACKAGE.parent)  # without the current folder, as for the command mha-viz
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "dict_values([7])\n", done.stderr
    assert "current folder" not in done.stderr
