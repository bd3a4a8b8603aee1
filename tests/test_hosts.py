"""Starts the app as hosts of Streamlit apps do, and looks at it from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app_server import ROOT, AppServer
from tests.http_answers import SECURITY_HEADERS, ask
from tests.waiting import PATIENCE
from tests.web_session import WebSession, run

pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(sys.platform == "win32", reason="there, a process cannot become another"),
]


class HostServer(AppServer):
    """The app as ``streamlit run app.py`` starts it."""

    program = ("streamlit", "run", "app.py")


def test_streamlit_run_is_as_safe_on_a_network_as_mha_viz_serve(tmp_path: Path) -> None:
    """Headers, old addresses, limits and models are those of :mod:`mha_viz.app.serving`; the process stays the same, so
    that a signal of the host reaches it."""
    given = ("--server.address", "0.0.0.0", "--server.allowedHosts", "127.0.0.1", "--server.allowedHosts", "localhost")
    with HostServer(tmp_path, *given) as server:
        explore = ask(server.url, "/roles")
        assert explore.status == 200
        assert {name for name in SECURITY_HEADERS if name in explore.headers} == {*SECURITY_HEADERS}
        assert "server" not in explore.headers
        assert ask(server.url, "/switch_off?off=L3H1").status == 307
        assert ask(server.url, "/_stcore/metrics").status == 404
        assert ask(server.url, "/roles", Host="other.example").status == 400
        assert "offers only the models on this machine: no folders and no downloads" in server.log()
        run(named_folder(server))
    assert server.process.returncode == 0
    assert server.faults() == []


async def named_folder(server: AppServer) -> None:
    """Ask for a folder of the machine, as a stranger would."""
    async with WebSession(server.url) as session:
        await session.visit(f"model={ROOT}")
        assert any("This server does not offer" in text for text in session.texts), session.texts


def test_another_program_is_told_how_to_start_the_app() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import app"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "mha-viz: This program cannot serve app.py. Run mha-viz serve instead.\n"
