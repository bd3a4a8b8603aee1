"""The command as a process: signals, pipes and terminals; and the server that it starts."""

from __future__ import annotations

import argparse
import asyncio
import errno
import io
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from mha_viz import cli
from mha_viz.cli import attention as attention_command
from mha_viz.cli import main, termination
from mha_viz.cli.terminal import show_download
from mha_viz.files import write_atomically
from tests.cli_runs import ROOT, assert_one_line
from tests.copies import Copy
from tests.ports import find_free_port
from tests.waiting import PATIENCE
from tests.web_session import run

posix = pytest.mark.skipif(os.name == "nt", reason="signals and pipes work otherwise on Windows")


def command(*arguments: str) -> Callable[[], int]:
    """The command as a process runs it: what it raises in order to end is its exit code."""

    def run() -> int:
        try:
            return cli.main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0)

    return run


@pytest.mark.app
@posix
def test_a_command_that_is_told_to_end_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "asked"
    folder.mkdir()

    def endless(args: argparse.Namespace) -> None:
        with write_atomically(folder / "a.csv") as file:
            file.write(b"x")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    def attention() -> int:
        attention_command.run = endless
        return command("attention", "x", "--out", "y.csv")()

    told = Copy(attention, tmp_path / "log")
    assert (told.wait(), told.log.read_text()) == (143, "")
    assert not list(folder.iterdir())


def test_a_terminal_without_the_characters_gets_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert cli.main(["models"]) == 0
    assert b"6 ? 12" in shown.getvalue()


@pytest.mark.app
@posix
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    def models() -> int:
        os.dup2(writing, 1)
        sys.stdout = os.fdopen(1, "w")
        code = command("models")()
        sys.stdout.flush()  # as at the end of a process
        return code

    left = Copy(models, tmp_path / "log")
    os.close(writing)
    assert (left.wait(), left.log.read_text()) == (0, "")


class Interrupted:
    """A standard input from which nothing comes until somebody presses Ctrl-C."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self.buffer = self

    def read(self, size: int) -> bytes:
        os.kill(os.getpid(), signal.SIGINT)
        return os.read(self._pipe, size)


@pytest.mark.app
@pytest.mark.parametrize("module", ["mha_viz.cli", "mha_viz.app.serving"])
def test_a_python_without_docstrings_is_refused_at_the_start(module: str) -> None:
    """From them transformers makes classes when it is imported: every model would be refused with its words on that."""
    command = [sys.executable, "-OO", "-m", module]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    remedy = "Start it without these options; -O works."
    assert ended.stderr.endswith(f"transformers cannot load models without docstrings. {remedy}\n")
    assert_one_line(ended.stderr, "-OO")


@pytest.mark.app
@posix
def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    waiting = os.pipe()  # nobody ever writes to it

    def attention() -> int:
        sys.stdin = Interrupted(waiting[0])  # type: ignore[assignment]
        return command("attention", "-", "--out", "never.npz")()

    stopped = Copy(attention, tmp_path / "log")
    try:
        said = "mha-viz: Stopped. Nothing was written; run the same command again to start over.\n"
        assert (stopped.wait(), stopped.log.read_text()) == (130, said)
    finally:
        for end in waiting:
            os.close(end)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_download("gpt2") as show:
        show(1_000_000, 548_000_000)
    assert capsys.readouterr().err == ""
    reader, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with show_download("gpt2") as show:
            show(0, 0)
            show(1_000_000, 548_000_000)
        shown = ""
        while not shown.endswith("\r\n"):
            shown += os.read(reader, 10_000).decode()
    os.close(reader)
    assert "asking the Hub" in shown
    assert "\rDownloading gpt2: 1 of 548 MB" in shown
    assert shown.endswith("\r\n")


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("PORT", str(taken.getsockname()[1]))
        monkeypatch.delenv("HOST", raising=False)
        assert main(["serve"]) == 2
        assert_one_line(capsys.readouterr().err, "in use", "--port", str(taken.getsockname()[1]))


@pytest.mark.parametrize("setting", ["MHA_VIZ_DISK_MB", "MHA_VIZ_DOWNLOADS_MB", "MHA_VIZ_MAX_MODEL_MB"])
def test_serve_names_a_setting_that_is_no_number_of_megabytes(
    setting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("the server was started"))
    monkeypatch.setenv(setting, "5 GB")
    assert main(["serve"]) == 2
    assert_one_line(capsys.readouterr().err, setting, "5 GB", "megabytes")


@pytest.mark.skipif(os.name == "nt", reason="there a server is a child process")
def test_serve_says_where_other_machines_reach_it_and_an_empty_host_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "500000")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("MHA_VIZ_HOME", str(tmp_path / "file" / "below"))
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "execve", lambda *_: None)
    monkeypatch.setattr("mha_viz.cli.serve._find_address", lambda: "10.0.0.5")
    assert main(["serve", "--host", "0.0.0.0", "--port", "18766"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "Other machines reach this server at http://10.0.0.5:18766\n"
    assert "cannot be written (not a directory)" in printed.err
    assert main(["serve", "--host", " "]) == 2
    assert "The host is empty." in capsys.readouterr().err


@pytest.mark.app
@posix
def test_serve_serves_where_the_environment_says_until_ctrl_c() -> None:
    port = find_free_port()
    command = [sys.executable, "-m", "mha_viz.cli", "serve", "--", "--server.headless", "true"]
    place = os.environ | {"HOST": "127.0.0.1", "PORT": str(port)}
    with subprocess.Popen(command, cwd=ROOT, env=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert _health(port, server) == b"ok"
            run(_ctrl_c_before_a_visitor(port, server))
        finally:
            server.kill()
            output = server.communicate()[0].decode()
    assert server.returncode == 130, output
    assert output.count("mha-viz: Stopped. ") == 1
    assert f"http://127.0.0.1:{port}" in output
    assert "not a valid config option" not in output
    assert "Traceback" not in output


async def _ctrl_c_before_a_visitor(port: int, server: subprocess.Popen[bytes]) -> None:
    async with connect(f"ws://127.0.0.1:{port}/_stcore/stream", proxy=None):
        server.send_signal(signal.SIGINT)
        await asyncio.to_thread(server.wait, PATIENCE)


def _health(port: int, server: subprocess.Popen[bytes]) -> bytes:
    """The body of the health page, as soon as the server answers."""
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=10) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.URLError:
            time.sleep(0.1)
    return b""


@pytest.mark.skipif(os.name == "nt", reason="the Makefile is for Unix; README names the commands for Windows")
def test_make_run_hands_over_host_and_port() -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "run", "HOST=0.0.0.0", "PORT=8600"]
    planned = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=True).stdout
    assert planned.splitlines()[-1].endswith('serve --host "0.0.0.0" --port "8600"')


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libtorch.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
    ids=["of Python", "of a library that is loaded", "of the system"],
)
def test_too_little_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> None:
        raise error

    monkeypatch.setattr("mha_viz.cli.listing.run", run)
    assert main(["models"]) == termination.USAGE
    assert_one_line(capsys.readouterr().err, "too little memory", "ulimit -v")
