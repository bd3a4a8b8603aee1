"""The processes that --workers starts: what other accounts of the machine reach of them, where they keep files, and
that Ctrl-C is not theirs."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mha_viz.cli import main
from mha_viz.study.cluster.connection import connect, dashboard_link
from tests.cli_runs import assert_one_line

psutil: Any = import_module("psutil")  # Dask needs it; it has no types

pytestmark = pytest.mark.app
PAGES = ("status", "info/main/workers.html", "json/identity.json", "json/counts.json", "metrics", "health")
LISTS = ("", "sitemap.json", "info/main/../../sitemap.json")


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker starts with the main module of this process, which a test that ran a page has replaced by the app."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def family() -> list[Any]:
    """This process and those below it."""
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def answered(port: int, path: str) -> bytes:
    """Return what an HTTP request, as any account of the machine can make one, is answered with; a list of addresses
    that has only its own is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
            body: bytes = answer.read()
            return b"" if body == b'{"paths": ["/sitemap.json"]}' else body
    except (urllib.error.URLError, OSError, ValueError):
        return b""


def listening() -> Iterator[Any]:
    """The addresses at which the processes listen."""
    for one in family():
        yield from (c.laddr for c in one.net_connections() if c.status == psutil.CONN_LISTEN)


def test_nothing_answers_that_nobody_asked_for() -> None:
    before = {*listening()}
    with connect(workers=1) as client:
        assert dashboard_link(client) == ""
        ports = {one.port for one in {*listening()} - before}
        assert {one.ip for one in {*listening()} - before} == {"127.0.0.1"}
        assert ports
        assert not [(port, page) for port in ports for page in (*PAGES, *LISTS) if answered(port, page)]


def test_a_dashboard_answers_at_the_address_that_is_told_and_at_no_other() -> None:
    with connect(workers=1, dashboard=True) as client:
        link = dashboard_link(client)
        with urllib.request.urlopen(link, timeout=10) as answer:
            assert answer.status == 200
        *_, host, secret, _page = link.split("/", 4)
        assert len(secret) >= 32
        ports = {one.port for one in listening()}
        assert int(host.partition(":")[2]) in ports
        assert not [(port, page) for port in ports for page in (*PAGES, *LISTS) if answered(port, page)]
    with connect(workers=1, dashboard=True) as client:
        assert secret not in dashboard_link(client)


def test_scratch_files_are_in_a_folder_of_this_account_alone_that_is_removed() -> None:
    import dask
    from distributed.http.routing import DirectoryHandler

    usual = DirectoryHandler.get

    def folder_of(dask_worker: Any) -> str:
        return str(dask_worker.local_directory)

    folders = []
    for _ in range(2):
        with connect(workers=1) as client:
            (place,) = client.run(folder_of).values()
            own = next(one for one in Path(place).parents if one.name.startswith("mha-viz-"))
            assert stat.S_IMODE(own.stat().st_mode) == 0o700
            assert own.stat().st_uid == os.getuid()
        assert not own.exists()
        folders.append(own)
        assert dask.config.get("temporary-directory") != str(own)
        assert DirectoryHandler.get is usual
    assert folders[0] != folders[1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_ctrl_c_is_not_for_the_workers() -> None:
    """It reaches the whole process group; the command says what is kept, and ends them."""
    with connect(workers=1) as client:
        for one in family()[1:]:
            one.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert [*client.run(int, "7").values()] == [7]


def test_a_dashboard_needs_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "grammar", "--model", "toy", "--out", str(tmp_path / "p"), "--dashboard"]) == 2
    assert_one_line(capsys.readouterr().err, "--dashboard", "--workers N")
