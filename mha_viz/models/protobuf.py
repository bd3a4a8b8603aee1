"""The wire format of protobuf, as far as a SentencePiece model uses it, read without running or importing anything."""

from __future__ import annotations

from collections.abc import Iterator

_FIXED = {1: 8, 5: 4}  # bytes of a number, by the kind of its field


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number of each field of a message, and what it holds: a whole number, or the bytes of a text, of another
    message or of a float. Raises ValueError or IndexError for what is no message."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(raw, at)
            yield tag >> 3, value
            continue
        if kind != 2 and kind not in _FIXED:
            raise ValueError("not protobuf")
        length, at = _varint(raw, at) if kind == 2 else (_FIXED[kind], at)
        yield tag >> 3, raw[at : at + length]
        at += length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while raw[at] & 0x80:
        value |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | raw[at] << shift, at + 1
