"""The wire format of protobuf, as far as SentencePiece models use it, read without running or importing anything."""

from __future__ import annotations

from collections.abc import Iterator

MOST_FIELDS = 4_000_000  # the most fields of a message: a few for each piece of the largest vocabulary
_FIXED = {1: 8, 5: 4}  # bytes of a number, by its field type
_BITS = 64  # bytes of a varint, with seven bits in each


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the value of each field of a message: an integer, or the bytes of a text, of another message or of
    a float. Raises ValueError or IndexError for anything that is not a message."""
    at = count = 0
    while at < len(raw):
        count += 1
        if count > MOST_FIELDS:
            raise ValueError("more fields than a vocabulary has")
        tag, at = _varint(raw, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(raw, at)
            yield tag >> 3, value
            continue
        if kind != 2 and kind not in _FIXED:
            raise ValueError("not protobuf")
        length, at = _varint(raw, at) if kind == 2 else (_FIXED[kind], at)
        if at + length > len(raw):
            raise ValueError("cut off")
        yield tag >> 3, raw[at : at + length]
        at += length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _BITS, 7):
        byte, at = raw[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than ten bytes")
