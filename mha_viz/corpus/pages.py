"""Read the page headers of a Parquet file without decompressing anything.

The metadata at the end of the file states sizes as well, but these may be false. A page whose own header states a false
size cannot be decompressed.

Headers are in Thrift's compact protocol: https://parquet.apache.org/docs/file-format/data-pages/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

# Paths of field ids in a header.
SIZE, STORED_SIZE = (2,), (3,)  # decompressed and stored
CELLS, ENCODING = ((5, 1), (8, 1)), ((5, 2), (8, 4))  # each in version 1 and 2 of a data page
_MAX_DEPTH = 8  # maximum nesting of structures
_MAX_SIZE = 1 << 31  # above every size that the format allows
_MAX_FIELDS = 1 << 15
_FIXED_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of true, false, a byte, a double
_INT32, _INTEGERS, _BINARY, _STRUCT = 5, (4, 5, 6), 8, 12  # field types
# Encodings that store cells directly, and encodings that refer to a dictionary.
_PLAIN_ENCODINGS, _DICTIONARY_ENCODINGS = (0, 6), (2, 8)


class StoredPage(NamedTuple):
    """A page of a column: its size in bytes when decompressed, its number of cells, and their encoding.

    A dictionary page, whose texts the cells of other pages refer to, has 0 cells.
    """

    size: int
    cells: int
    encoding: int

    @property
    def is_dictionary_encoded(self) -> bool:
        """Whether the cells are indices into the texts of another page."""
        return bool(self.cells) and self.encoding in _DICTIONARY_ENCODINGS

    def max_cells(self, size: int) -> int:
        """Return how many cells take at most ``size`` bytes.

        Each cell is assumed to have the average size on this page. In an encoding where one text may stand for many
        cells, it is assumed to be as large as the whole page.
        """
        return size * (self.cells if self.cells and self.encoding in _PLAIN_ENCODINGS else 1) // max(1, self.size)


def iter_pages(file: BinaryIO, chunk: Any) -> Iterator[StoredPage]:
    """Yield the pages of a column chunk, which pyarrow describes as ``chunk``.

    Raises ValueError for a header that cannot be read.
    """
    position = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < position:
        position = chunk.dictionary_page_offset
    end = position + chunk.total_compressed_size
    while position < end:
        file.seek(position)
        header = _read_structure(file)
        size, stored_size = header.get(SIZE, -1), header.get(STORED_SIZE, -1)
        if not (0 <= size < _MAX_SIZE and 0 <= stored_size < _MAX_SIZE):
            raise ValueError("a page without a size")
        yield StoredPage(size, *(max(header.get(field, 0) for field in fields) for fields in (CELLS, ENCODING)))
        position = file.tell() + stored_size


def _read_structure(file: BinaryIO, path: tuple[int, ...] = ()) -> dict[tuple[int, ...], int]:
    """Read a structure and return its 32-bit integers, nested ones included, by their paths of field ids."""
    if len(path) > _MAX_DEPTH:
        raise ValueError("structures are nested too deeply")
    field, numbers = 0, dict[tuple[int, ...], int]()
    while first_byte := _read_byte(file):
        field_type, delta = first_byte & 15, first_byte >> 4
        field = field + delta if delta else _read_signed(file)
        if not 0 <= field < _MAX_FIELDS:
            raise ValueError("a field without a number")
        if field_type == _STRUCT:
            numbers |= _read_structure(file, (*path, field))
        elif field_type in _INTEGERS:
            number = _read_signed(file)
            if field_type == _INT32:
                numbers[*path, field] = number
        elif field_type in _FIXED_SIZES or field_type == _BINARY:
            file.seek(_FIXED_SIZES[field_type] if field_type in _FIXED_SIZES else _read_varint(file), 1)
        else:
            raise ValueError("a field that no page has")
    return numbers


def _read_signed(file: BinaryIO) -> int:
    value = _read_varint(file)
    return value >> 1 ^ -(value & 1)


def _read_varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _read_byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError("a number of more than 64 bits")


def _read_byte(file: BinaryIO) -> int:
    if not (byte := file.read(1)):
        raise ValueError("the file ends inside the header of a page")
    return byte[0]
