"""Suffix → the function that writes a drawing in that format: one registry for static figures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mha_viz.drawing.marks import Drawing
from mha_viz.errors import ExportError
from mha_viz.exports.registry import write_bytes


def _svg(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.exports.svg import svg

    return svg(drawing)


def _pdf(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.exports.pdf import pdf

    return pdf(drawing)


def _png(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.exports.png import png

    return png(drawing, dpi)


# A writer's libraries are imported when it is first used.
_WRITERS: dict[str, Callable[[Drawing, int], bytes]] = {".svg": _svg, ".pdf": _pdf, ".png": _png}


def drawing_suffixes() -> tuple[str, ...]:
    """Every suffix that a drawing can be written as."""
    return tuple(_WRITERS)


def drawing_bytes(drawing: Drawing, suffix: str, dpi: int = 300) -> bytes:
    """The file in memory; ``dpi`` applies to .png. Raises ExportError for an unknown suffix."""
    write = _WRITERS.get(suffix.lower())
    if write is None:
        given = f"“{suffix[:40]}” is not a figure format." if suffix else "The file has no suffix."
        raise ExportError(given, f"Use one of {', '.join(_WRITERS)}.")
    return write(drawing, dpi)


def write_drawing(drawing: Drawing, path: str | os.PathLike[str], dpi: int = 300) -> Path:
    """Write ``path`` in the format of its suffix; an existing file is replaced atomically. Raises ExportError."""
    return write_bytes(path, lambda: drawing_bytes(drawing, Path(path).suffix, dpi))
