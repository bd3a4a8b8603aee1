"""List optional libraries (requirements-bench.txt), and which of them are missing."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = ("bertviz", "jupyterlab", "marimo", "nnsight", "transformer_lens", "umap")
MISSING = tuple(name for name in LIBRARIES if find_spec(name) is None)
