"""Work in a child process: bytes in both directions, limits that hold, and no child that outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mha_viz.errors import Cancelled, CorpusError, Failed, TooLarge, TooSlow
from mha_viz.process import children
from mha_viz.process.children import NICE, Bounds, run
from tests.copies import Copy
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.app

CHILD = "tests.children"
posix = pytest.mark.skipif(os.name != "posix", reason="the system bounds no process")


@pytest.fixture(autouse=True)
def _is_not_held_back(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are as urgent as this process, which waits for them, except where a test looks at that."""
    if "steps_back" not in request.node.name:
        monkeypatch.setattr(children, "_START_CODE", children._START_CODE.replace(f"os.nice({NICE})", "os.nice(0)"))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The children of a test, in order."""
    children: list[subprocess.Popen[bytes]] = []

    class Child(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **how: Any) -> None:
            super().__init__(*args, **how)
            children.append(self)

    monkeypatch.setattr(subprocess, "Popen", Child)
    return children


def order(do: str, **more: Any) -> dict[str, Any]:
    return {"do": do, **more}


def gone(child: subprocess.Popen[bytes]) -> bool:
    """True if the process has ended and was awaited, and its pipes are closed."""
    assert child.stdin is not None
    assert child.stdout is not None
    return child.returncode is not None and child.stdin.closed and child.stdout.closed


def test_bytes_go_there_and_back(begun: list[subprocess.Popen[bytes]]) -> None:
    reports: list[float] = []
    for size in (0, 3_000_000):
        assert run(CHILD, order("echo", bytes="é" * size), Bounds(), reports.append) == ("é" * size).encode()
    assert reports == [0.5, 0.5]
    assert all(map(gone, begun))


@posix
def test_a_child_steps_back_and_is_bounded_before_it_imports() -> None:
    most = run(CHILD, order("bounds"), Bounds(seconds=7, megabytes=700, threads=1))
    assert most == {"DATA": 700_000_000, "CPU": 8, "CORE": 0, "nice": min(19, os.nice(0) + NICE), "threads": "1"}


@posix
def test_a_child_that_needs_too_much_memory_is_ended_in_words(begun: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(TooLarge, match=r"The file needed more than 300 MB of memory\. Split it\."):
        run(CHILD, order("fill", megabytes=400), Bounds(megabytes=300, subject="The file", remedy="Split it."))
    assert gone(begun[0])
    assert len(run(CHILD, order("fill", megabytes=100), Bounds(megabytes=300))) == 10**8


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory another process has")
def test_a_child_that_has_no_memory_left_to_say_so_is_ended_in_the_same_words() -> None:
    with pytest.raises(TooLarge, match=r"more than 300 MB of memory"):
        run(CHILD, order("full"), Bounds(megabytes=300, seconds=PATIENCE))


def test_a_result_that_is_too_large_is_not_read(begun: list[subprocess.Popen[bytes]]) -> None:
    bounds = Bounds(subject="The study", remedy="Split the file.", answer_bytes=2 * 10**6)
    assert len(run(CHILD, order("fill", megabytes=2), bounds)) == 2 * 10**6
    refusal = r"The study has a result of 3 MB; at most 2 are accepted\. Split the file\."
    with pytest.raises(TooLarge, match=refusal):
        run(CHILD, order("fill", megabytes=3), bounds)
    assert gone(begun[1])


@posix
def test_a_library_that_gives_up_without_memory_is_told_as_that() -> None:
    with pytest.raises(TooLarge):
        run(CHILD, order("abort"), Bounds())


def test_a_child_that_holds_its_interpreter_is_ended_at_its_time(begun: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(TooSlow, match=r"The file took longer than 1 s\. Split it\."):
        run(CHILD, order("hold"), Bounds(seconds=1, subject="The file", remedy="Split it."))
    assert gone(begun[0])


@pytest.mark.parametrize("how", ["exit", "cut"])
def test_a_child_that_ends_in_the_middle_says_so(how: str, begun: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(Failed, match="The work ended without a result"):
        run(CHILD, order(how), Bounds())
    assert gone(begun[0])


def test_an_error_of_a_person_comes_back_as_it_is() -> None:
    with pytest.raises(CorpusError) as raised:
        run(CHILD, order("refuse"), Bounds())
    assert (raised.value.problem, raised.value.remedy) == ("line 3: no.", "Mend it.")


def test_a_fault_is_told_without_the_text_that_was_read(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failed, match="The work failed: RuntimeError"):
        run(CHILD, order("fault", text="private"), Bounds())
    log = capfd.readouterr().err
    assert "children.py" in log
    assert "private" not in log


@posix
def test_a_child_that_is_stopped_may_keep_what_it_has(begun: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    file, pid = tmp_path / "kept", tmp_path / "pid"
    with pytest.raises(Cancelled, match="What is done is kept"):
        run(
            CHILD,
            order("keep", file=str(file), pid=str(pid)),
            Bounds(grace_s=60, writable=(str(tmp_path),)),
            cancelled=pid.exists,
        )
    assert file.read_text() == "kept"
    assert gone(begun[0])


def test_a_child_that_does_not_listen_is_killed(begun: list[subprocess.Popen[bytes]]) -> None:
    holds: list[float] = []
    with pytest.raises(Cancelled):
        run(CHILD, order("hold"), Bounds(grace_s=0.2), holds.append, cancelled=lambda: bool(holds))
    assert gone(begun[0])


def test_a_child_that_cannot_begin_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Failed):
        run(CHILD, order("echo", bytes="x" * 10**6), Bounds())


@posix
def test_a_child_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    """A process that is killed with SIGKILL cannot notify its children: they notice that the other end of the pipe is
    closed."""
    file, pid = tmp_path / "kept", tmp_path / "pid"
    parent = Copy(
        lambda: len(
            run(CHILD, order("keep", file=str(file), pid=str(pid)), Bounds(grace_s=9, writable=(str(tmp_path),)))
        ),
        tmp_path / "log",
    )
    until(lambda: pid.exists() and bool(pid.read_text()))
    assert parent.kill() == -signal.SIGKILL
    until(lambda: not _alive(int(pid.read_text())))
    assert file.read_text() == "kept"
    assert "Traceback" not in (tmp_path / "log").read_text()


def _alive(pid: int) -> bool:
    """True while a process runs, but not for a zombie."""
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
