"""Children that read strangers' files reach no network and write nowhere else, where the system can refuse it."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mha_viz import process
from mha_viz.app.service.reader import Reader, starting, verbs
from mha_viz.app.service.reader.__main__ import serve
from mha_viz.process import children, template
from mha_viz.process.confinement import ALL_RIGHTS, NETWORK, PROCESSES, WRITING, find_irremovable_rights
from mha_viz.process.template import Template
from mha_viz.request import Request
from tests.children import ATTEMPTS
from tests.copies import Piped
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.app

CONFINED = "from mha_viz.process.confinement import confine; print(*sorted(confine()))"
READER = """
import json, os, sys
import mha_viz.app.service.reader.__main__ as reader
from tests.children import attempt
order, function, confine, threads = json.loads(sys.argv.pop()), sys.argv.pop(), reader.confine, []

def confine_and_count(writable):
    threads.extend(os.listdir("/proc/self/task") if sys.platform.startswith("linux") else ["one"])
    return confine(writable)

reader.confine = confine_and_count
reader.serve = lambda: print(json.dumps([attempt(order), len(threads)]), flush=True)
getattr(reader, function)()
"""
DOWNLOADING = """
import json, sys
from mha_viz.process.confinement import confine
from tests.children import attempt
order = json.loads(sys.argv.pop())
confine([order["mine"]], network=True)
print(json.dumps(attempt(order)))
"""
STARTING = """
import ctypes, sys
from mha_viz.process import confinement
from mha_viz.app.serving import start
from mha_viz.app.serving.settings import ServerSettings
missing = sys.argv.pop()
confinement.find_irremovable_rights = lambda: frozenset(missing.split())
start.create_app = lambda *_, **__: None
# PR_GET_DUMPABLE
start.inspection.use_child_processes = lambda: sys.exit(print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
start._run({}, ServerSettings())
"""
LANDLOCK, VERSION = 444, 1  # asks the kernel for the version that it has


def output(*arguments: str) -> str:
    """What a Python process prints."""
    command, environment = process.build_python_command("-c", *arguments)
    environment = {**environment, **children.IMPORT_THREADS}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


@cache
def taken() -> set[str]:
    """What ``confine`` reports as taken: on Linux all that the kernel can take, which is asked otherwise."""
    reported = set(output(CONFINED).split())
    if sys.platform.startswith("linux"):
        if ctypes.CDLL(None).syscall(LANDLOCK, None, 0, VERSION) >= 1:
            assert WRITING in reported
        if Path("/proc/sys/kernel/seccomp").is_dir() and platform.machine() in ("x86_64", "aarch64"):
            assert {NETWORK, PROCESSES} <= reported
    assert reported == ALL_RIGHTS - find_irremovable_rights()
    return reported


@pytest.fixture
def order(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Two folders, of which the first is the child's own, and a port that accepts connections."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    (other / "a").write_text("a", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield {"do": "try", "mine": str(mine), "other": str(other), "port": listening.getsockname()[1]}


def assert_refused(refused: list[str], order: dict[str, Any]) -> None:
    """Everything was refused that ``confine`` reports as taken, and nothing else."""
    assert refused == [what for what, attempts in ATTEMPTS.items() for _ in attempts if what in taken()]
    assert Path(order["mine"], "b").read_text("utf-8") == "mine"
    assert WRITING not in taken() or Path(order["other"], "a").read_text("utf-8") == "a"


def test_a_child_can_neither_connect_nor_write_elsewhere(order: dict[str, Any]) -> None:
    bounds = children.Bounds(writable=(order["mine"],))
    assert_refused(children.run("tests.children", order, bounds), order)


def test_a_child_that_downloads_can_connect_but_not_write_elsewhere(order: dict[str, Any]) -> None:
    refused = json.loads(output(DOWNLOADING, json.dumps(order)))
    assert refused == [what for what in (WRITING, PROCESSES) for _ in ATTEMPTS[what] if what in taken()]


def test_the_reader_can_neither_connect_nor_write_elsewhere_nor_can_a_thread_that_began_before(
    order: dict[str, Any],
) -> None:
    refused, threads = json.loads(output(READER, order["mine"], "main", json.dumps(order)))
    assert_refused(refused, order)
    assert threads == 1, "one that begins before the process is confined is not"


@pytest.mark.skipif(not template.is_supported(), reason="this system has no templates")
def test_neither_can_a_reader_that_is_a_copy(order: dict[str, Any]) -> None:
    command, environment = process.build_python_command(
        "-c", READER, order["mine"], "serve_template", json.dumps(order)
    )
    libraries = Template(command, {**environment, **children.IMPORT_THREADS})
    try:
        copy = libraries.copy(PATIENCE)
        refused, threads = json.loads(copy.stdout.read())
        copy.communicate()
    finally:
        libraries.close()
    assert_refused(refused, order)
    assert threads == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the setting and the sentence are Linux's")
def test_a_server_hides_from_other_processes_and_says_what_its_kernel_lacks() -> None:
    assert output(STARTING, "") == "0\n"
    assert "cannot fully sandbox" in output(STARTING, "writing network")
    assert "(missing: network, writing)" in output(STARTING, "writing network")


def test_a_reader_that_ends_is_replaced_by_the_spare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "SPARE_SECONDS", 0.0)
    monkeypatch.setattr(starting, "make_starter", starting.SpareStarter)  # as on systems without templates
    monkeypatch.setattr(starting, "subprocess", SimpleNamespace(PIPE=None, Popen=lambda *_, **__: Piped(serve)))
    reader = Reader()
    starter: Any = reader._starter
    try:
        reader.ask(verbs.read, Request("toy", "The cat sat."))
        first, spare, folder = reader._process, starter._spare, Path(starter.folder)
        assert first is not None
        assert spare is not None
        first.kill()
        until(lambda: first.poll() is not None)
        reader.ask(verbs.read, Request("toy", "The cat sat."))
        assert reader._process is spare
        assert starter._spare not in (None, first, spare)
        assert folder.is_dir()
    finally:
        reader.close()
    assert spare.poll() is not None
    del reader, starter
    assert not folder.exists() or os.name != "posix"
