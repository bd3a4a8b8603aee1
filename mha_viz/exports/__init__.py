"""Attention as a file: ``write(attention, "heads.npz")``. One decorated function per format."""

from __future__ import annotations

from mha_viz.exports import formats as _formats  # noqa: F401  (importing registers the formats)
from mha_viz.exports.registry import describe, suffixes, to_bytes, write, writer

__all__ = ["describe", "suffixes", "to_bytes", "write", "writer"]
