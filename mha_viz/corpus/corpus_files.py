"""Open the files of a corpus, uncompressed, compressed (.gz, .zst) or Parquet, as a stream of bytes."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from mha_viz.corpus import BUILT_IN, limits
from mha_viz.corpus.pages import StoredPage, iter_pages
from mha_viz.errors import CorpusError, CorpusMissing
from mha_viz.quotes import quote

COMPRESSED = (".gz", ".zst")
PARQUET = ".parquet"
MAGIC_BYTES = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", PARQUET: b"PAR1"}  # at the beginning of a file
# Suffixes of the files that are read from a folder.
SUFFIXES = (".conllu", ".conll", ".conllup", ".cupt", ".txt", ".text", PARQUET)
TEXT_COLUMN = "text"
PROFILE_FILE = "profile.json"  # in the folder of a profile
BLOCK_BYTES = 1 << 20  # bytes that are read at a time
MAX_CELL_BYTES = limits.MAX_BYTES // 2  # maximum bytes of large Parquet cells in memory at a time
MAX_ROWS = 4096  # maximum rows of a Parquet file that are read at a time
MAX_COMPRESSION = 100  # maximum compression ratio of a large row group of a Parquet file; text reaches about 10
REMEDY = f"Name a file, a folder or a pattern, or a built-in corpus: {' or '.join(BUILT_IN)}."
_WILDCARDS = frozenset("*?[")


def find_files(source: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the files that a path, a folder or a pattern such as ``corpus/**/*.txt.gz`` names, sorted by name.

    In a folder, these are the files in it and its subfolders with a suffix in SUFFIXES, compressed or not. Profiles are
    skipped, because their sentences are examples and not a corpus. Raises CorpusMissing, and CorpusError for the folder
    of a profile.
    """
    path, text = Path(source), os.fspath(source)
    if path.is_dir():
        if (path / PROFILE_FILE).is_file():
            raise CorpusError(f"{quote(text)} is a profile, not a corpus.", "Name the corpus that was measured.")
        files = [file for file in path.rglob("*") if is_visible(file.relative_to(path)) and file.is_file()]
        files = [file for file in files if not (file.parent / PROFILE_FILE).is_file()]
    elif path.exists() or not _WILDCARDS & set(text):
        return (path,)
    else:
        pattern_start = next(index for index, part in enumerate(path.parts) if _WILDCARDS & set(part))
        matches = Path(*path.parts[:pattern_start]).glob(str(Path(*path.parts[pattern_start:])))
        files = [file for file in matches if not file.name.startswith(".") and file.is_file()]
    if not files:
        raise CorpusMissing(
            f"{text[:200]} names no file that can be read.", f"{REMEDY} Known suffixes: {', '.join(SUFFIXES)}."
        )
    return tuple(sorted(files))


def is_visible(file: Path) -> bool:
    """Return whether a file, given by its path in a folder, is read as part of the folder; hidden files are not."""
    return not any(part.startswith(".") for part in file.parts) and strip_compression(file).lower().endswith(SUFFIXES)


def strip_compression(file: Path) -> str:
    """Return the name of a file without .gz or .zst."""
    return file.stem if file.suffix.lower() in COMPRESSED else file.name


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file as a stream of decompressed bytes; for Parquet, the cells of its text column, one per line.

    Raises CorpusError.
    """
    try:
        with _open_stream(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise CorpusMissing(f"{str(path)[:200]} cannot be read: it does not exist.", REMEDY) from error
    except (OSError, EOFError, ValueError, zlib.error) as error:  # pyarrow's own errors are ValueErrors
        if isinstance(error, EOFError) or "truncated" in str(error).lower():
            problem = f"{str(path)[:200]} is incomplete: the archive ends too early."
            raise CorpusError(problem, "Copy or download it again.") from error
        reason = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
        raise CorpusError(f"{str(path)[:200]} cannot be read: {reason[:200].lower()}.", REMEDY) from error


def skip_bytes(stream: BinaryIO, count: int) -> None:
    """Skip ``count`` bytes; compressed data is decompressed up to there."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        stream.seek(count)
        return
    while count > 0 and (block := stream.read(min(BLOCK_BYTES, count))):
        count -= len(block)


def _open_stream(path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    if path.is_file() and _is_truncated(path, suffix):
        raise EOFError
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        import pyarrow

        return cast(BinaryIO, pyarrow.input_stream(str(path), compression="zstd"))
    if suffix == PARQUET:
        return cast(BinaryIO, io.BufferedReader(_CellStream(path), BLOCK_BYTES))
    return path.open("rb")


def _is_truncated(path: Path, suffix: str) -> bool:
    """Return whether an archive is truncated.

    A truncated archive has only part of the signature that its format begins with, or lacks the one at the end. The
    libraries report such a file as empty or as not an archive.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if suffix in COMPRESSED:
            return size < len(MAGIC_BYTES[suffix]) and MAGIC_BYTES[suffix].startswith(file.read())
        if suffix != PARQUET or file.read(len(MAGIC_BYTES[suffix])) != MAGIC_BYTES[suffix]:
            return False
        file.seek(-len(MAGIC_BYTES[suffix]), os.SEEK_END)
        return size < 2 * len(MAGIC_BYTES[suffix]) or file.read() != MAGIC_BYTES[suffix]


class _CellStream(io.RawIOBase):
    """The text column of a Parquet file as a stream, one cell per line.

    Each step decompresses about BLOCK_BYTES, or up to MAX_CELL_BYTES in a run of large cells. A cell that many rows
    repeat is stored once.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        column = _find_text_column(pyarrow.parquet.read_schema(path), path)
        self._path, self._name = path, path.name
        self._file = pyarrow.parquet.ParquetFile(path)
        self._dictionary_file = pyarrow.parquet.ParquetFile(path, read_dictionary=[column])
        self._lines = self._read(column)
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._pending:
            line = next(self._lines, None)
            if line is None:
                return 0
            self._pending = memoryview(line)
        count = min(len(buffer), len(self._pending))
        buffer[:count], self._pending = self._pending[:count], self._pending[count:]
        return count

    def _read(self, column: str) -> Iterator[bytes]:
        """Yield the cells as lines."""
        metadata = self._file.metadata
        column_index = metadata.schema.names.index(column)
        for group in range(metadata.num_row_groups):
            chunk, rows = metadata.row_group(group).column(column_index), metadata.row_group(group).num_rows
            pages = self._check_pages(group, rows, chunk)
            is_dictionary = all(page.is_dictionary_encoded for page in pages if page.cells)
            cell_limits = (
                []
                if is_dictionary
                else [page.max_cells(MAX_CELL_BYTES) for page in pages if not page.is_dictionary_encoded]
            )
            batch_rows = max(
                1, min([MAX_ROWS, BLOCK_BYTES * rows // max(1, sum(page.size for page in pages)), *cell_limits])
            )
            file = self._dictionary_file if is_dictionary else self._file  # a dictionary stays in memory
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=[group], columns=[column]):
                cells = batch.column(0).dictionary_encode()  # changes nothing if it is encoded already
                indices = cells.indices.to_pylist()
                used_indices = {*indices} - {None}
                if used_indices and not 0 <= min(used_indices) <= max(used_indices) < len(cells.dictionary):
                    raise ValueError("a cell refers to a text that is missing")
                lines = {index: f"{cells.dictionary[index].as_py() or ''}\n".encode() for index in used_indices}
                for index in indices:
                    yield lines.get(index, b"\n")

    def _check_pages(self, group: int, rows: int, chunk: Any) -> list[StoredPage]:
        """Return the pages of a row group. Raises CorpusError if its cells or its compression ratio are too large.

        They are checked before reading, because a page can only be decompressed as a whole.
        """
        location = f"{self._name}, row group {group + 1}"
        with self._path.open("rb") as file:
            pages = [*iter_pages(file, chunk)]
        size, stored_size = sum(page.size for page in pages), chunk.total_compressed_size
        if size > limits.MAX_STORED_CELL * max(1, rows):
            problem = f"{location}: cells of {size / max(1, rows) / 1e6:,.0f} MB"
            limit = f"at most {limits.MAX_STORED_CELL // 10**6} MB per cell are read"
            raise CorpusError(f"{problem}; {limit}.", "Put each sentence, or each document, into its own row.")
        if size > limits.MAX_BYTES and size > MAX_COMPRESSION * max(1, stored_size):
            problem = f"{location}: {size / 1e6:,.0f} MB in {stored_size / 1e6:,.1f} MB"
            raise CorpusError(f"{problem}, which is implausible for text.", "Write it again with smaller row groups.")
        return pages

    def close(self) -> None:
        if not self.closed and hasattr(self, "_dictionary_file"):
            self._file.close()
            self._dictionary_file.close()
        super().close()


def _find_text_column(schema: Any, path: Path) -> str:
    """Return the column with the text: the one named ``text``, or the only column of strings. Raises CorpusError."""
    columns = [field.name for field in schema if _is_text(field.type)]
    if TEXT_COLUMN in columns:
        return TEXT_COLUMN
    if len(columns) != 1:
        names = f"the text columns {', '.join(columns[:8])}" if columns else "no text column"
        raise CorpusError(f"{path.name} has {names}.", f"Name the column with the sentences {TEXT_COLUMN}.")
    return str(columns[0])


def _is_text(arrow_type: Any) -> bool:
    """Return True for strings, plain or dictionary-encoded (categories of pandas)."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type))
