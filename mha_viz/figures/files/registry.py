"""A registry of the functions that write readings and drawings, by suffix. All files are written here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar

from mha_viz.attention import Attention
from mha_viz.errors import PATH_KIND, ExportError, check_kind
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.files import write_atomically

F = TypeVar("F")
Writer = Callable[[Attention, BinaryIO], None]

_WRITERS: dict[str, Writer] = {}
PLACE_REMEDY = "Choose a folder that exists, is writable and has room."


def writer(suffix: str) -> Callable[[Writer], Writer]:
    """Return a decorator that registers a function for files with this suffix, as in ``@writer(".npz")``."""

    def register(function: Writer) -> Writer:
        if suffix in _WRITERS:
            raise ValueError(f"Two functions write {suffix}: {_WRITERS[suffix].__name__}, {function.__name__}.")
        _WRITERS[suffix] = function
        return function

    return register


def suffixes() -> tuple[str, ...]:
    """Return every suffix that can be written, in the order of registration."""
    return tuple(_WRITERS)


def describe(suffix: str) -> str:
    """Describe the content of a format by the first line of its writer's docstring. Raises ExportError."""
    return (_find_writer(suffix).__doc__ or "").partition("\n")[0]


def write(attention: Attention, path: str | os.PathLike[str], suffix: str | None = None) -> Path:
    """Write ``path`` in the format of its suffix, or of ``suffix``, and return the path.

    An existing file is replaced atomically.

    The bytes are first written to a temporary file next to it, so that a full disk or Ctrl-C leaves the old file
    unchanged. Raises ExportError for an unknown suffix or a place that cannot be written.
    """
    check_kind(path, *PATH_KIND)
    write_format = _find_writer(Path(path).suffix if suffix is None else suffix)
    return _write_file(path, lambda file: write_format(attention, file))


def write_bytes(path: str | os.PathLike[str], make: Callable[[], bytes]) -> Path:
    """Write the bytes that ``make`` returns, such as a picture or a page, like :func:`write`.

    Nothing is written if it raises.
    """
    content = make()
    return _write_file(path, lambda file: file.write(content))


def _write_file(path: str | os.PathLike[str], write_to: Callable[[BinaryIO], object]) -> Path:
    file_path = Path(path)
    try:
        target = file_path.resolve()
        _refuse_folder(target)
        with write_atomically(target) as file:
            write_to(file)
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: NUL in the name; RuntimeError: a link loop
        raise ExportError(_explain_failure(file_path, error), PLACE_REMEDY) from error
    return file_path


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise ExportError unless a file can be written at ``path``; no file is left there."""
    file_path = Path(path)
    try:
        target = file_path.resolve()
        _refuse_folder(target)
        with TemporaryFile(dir=target.parent), suppress(FileNotFoundError):
            target.lstat()  # raises if the name is too long
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(_explain_failure(file_path, error), PLACE_REMEDY) from error


def write_stream(attention: Attention, suffix: str, file: BinaryIO) -> None:
    """Write a reading to an open file. Raises ExportError for an unknown suffix."""
    _find_writer(suffix)(attention, file)


def to_bytes(attention: Attention, suffix: str) -> bytes:
    """Return a reading as a file in memory, for a download button. Raises ExportError for an unknown suffix."""
    buffer = BytesIO()
    write_stream(attention, suffix, buffer)
    return buffer.getvalue()


def _find_writer(suffix: str) -> Writer:
    return _find_by_suffix(_WRITERS, suffix, "file format that can be written")


def _find_by_suffix(writers: Mapping[str, F], suffix: str, kind: str) -> F:
    if suffix.lower() not in writers:
        problem = f"“{suffix[:40]}” is not a {kind}." if suffix else "The file has no suffix."
        raise ExportError(problem, f"Use one of {', '.join(writers)}.")
    return writers[suffix.lower()]


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder")


def _explain_failure(path: Path, error: Exception) -> str:
    """Return the reason on one line; special characters in the name are escaped."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    name = ascii(str(path))[1:-1] if not str(path).isprintable() else str(path)
    return f"{name[:200]} cannot be written: {reason[:1].lower()}{reason[1:]}."


# ---- Drawings -------------------------------------------------------------------------------------------------


def _write_svg(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.figures.files.svg import render_svg

    return render_svg(drawing)


def _write_pdf(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.figures.files.pdf import render_pdf

    return render_pdf(drawing)


def _write_png(drawing: Drawing, dpi: int) -> bytes:
    from mha_viz.figures.files.png import render_png

    return render_png(drawing, dpi)


# Each function imports its libraries when it is first used.
_DRAWING_WRITERS: dict[str, Callable[[Drawing, int], bytes]] = {
    ".svg": _write_svg,
    ".pdf": _write_pdf,
    ".png": _write_png,
}


def drawing_suffixes() -> tuple[str, ...]:
    """Return every suffix that a drawing can be written as."""
    return tuple(_DRAWING_WRITERS)


def drawing_bytes(drawing: Drawing, suffix: str, dpi: int = 300) -> bytes:
    """Return a drawing as a file in memory; ``dpi`` applies to .png. Raises ExportError for an unknown suffix."""
    return _find_by_suffix(_DRAWING_WRITERS, suffix, "figure format")(drawing, dpi)


def write_drawing(drawing: Drawing, path: str | os.PathLike[str], dpi: int = 300) -> Path:
    """Write ``path`` in the format of its suffix; an existing file is replaced atomically. Raises ExportError."""
    return write_bytes(path, lambda: drawing_bytes(drawing, Path(path).suffix, dpi))
