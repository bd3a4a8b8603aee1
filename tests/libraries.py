"""The libraries whose recordings are drawn, whose notebooks show drawings or which draw maps of links, and which of them
are not installed (requirements-bench.txt)."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = ("bertviz", "jupyterlab", "marimo", "nnsight", "transformer_lens", "umap")
MISSING = tuple(name for name in LIBRARIES if find_spec(name) is None)
