"""The libraries whose recordings are drawn and whose notebooks show drawings, and which of them are not installed
(requirements-bench.txt)."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = ("bertviz", "jupyterlab", "marimo", "nnsight", "transformer_lens")
MISSING = tuple(name for name in LIBRARIES if find_spec(name) is None)
