"""Run the page's own JavaScript under node and return its answers."""

from __future__ import annotations

import base64
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from tools.node import find_node

_SCRIPTS = Path(__file__).parent / "js"


def ask_packet(*questions: dict[str, Any]) -> list[Any]:
    """Return the answers of geometry.js.

    Each question has ``packet`` (bytes), ``ask`` and its arguments, as in read_packet.mjs.
    """
    return _ask("read_packet.mjs", questions)


def ask_panels(*questions: dict[str, Any]) -> list[Any]:
    """Return the answers of together.js.

    Each question has ``packet`` (bytes), ``ask`` and its arguments, as in read_panels.mjs.
    """
    return _ask("read_panels.mjs", questions)


_node = cache(find_node)  # checks the version of each Node


def _ask(script: str, questions: tuple[dict[str, Any], ...]) -> list[Any]:
    node = _node()
    assert node, "Node 20 or later was not found: pip install -r requirements-dev.txt"
    command = [node, str(_SCRIPTS / script)]
    sent = [q | {"packet": base64.b64encode(q["packet"]).decode()} for q in questions]
    done = subprocess.run(command, input=json.dumps(sent), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers
