"""JupyterLab and marimo themselves show a grid that answers, in an environment of requirements-bench.txt.

Elsewhere a notebook's test is not there, and the header of the run names what is missing.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.libraries import MISSING
from tests.ports import find_free_port
from tests.waiting import until

CODE = 'import mha_viz as mv\na = mv.load("toy").encode("the girl slept because she was tired .")\na.grid()'
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@contextmanager
def served(folder: Path, *command: str) -> Iterator[str]:
    """The address of a notebook's server, which is started in a folder."""
    port = find_free_port()
    words = [word.format(port=port) for word in command]
    environment = os.environ | {"JUPYTER_CONFIG_DIR": str(folder), "JUPYTER_DATA_DIR": str(folder), "HOME": str(folder)}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-m", *words], cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: _answers(port), every=0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def the_grid_answers(page: Page) -> None:
    """The drawing is there, and the next head is opened."""
    drawing = page.frame_locator("iframe[srcdoc]")
    expect(drawing.locator("h2 code")).to_have_text("L0H0 (1-1)")
    drawing.locator(".grid canvas").press("ArrowRight")
    drawing.locator(".grid canvas").press("Enter")
    expect(drawing.locator("h2 code")).to_have_text("L0H1 (1-2)")


if "jupyterlab" not in MISSING:

    def test_jupyterlab(page: Page, tmp_path: Path) -> None:
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "id": "a",
            "metadata": {},
            "outputs": [],
            "source": CODE,
        }
        notebook = {"cells": [cell], "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / "a.ipynb").write_text(json.dumps(notebook), "utf-8")
        lab = ("jupyterlab", "--no-browser", "--allow-root", "--IdentityProvider.token=", "--ServerApp.port={port}")
        with served(tmp_path, *lab) as address:
            page.goto(f"{address}/lab/tree/a.ipynb")
            page.locator(".jp-Notebook .cm-content").first.click()
            page.keyboard.press("Control+Enter")
            the_grid_answers(page)


if "marimo" not in MISSING:

    def test_marimo(page: Page, tmp_path: Path) -> None:
        indented = CODE.replace("\n", "\n    ")
        source = f"import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    {indented}\n    return\n"
        (tmp_path / "m.py").write_text(source, "utf-8")
        with served(tmp_path, "marimo", "run", "m.py", "--headless", "--no-token", "--port", "{port}") as address:
            page.goto(address)
            the_grid_answers(page)
