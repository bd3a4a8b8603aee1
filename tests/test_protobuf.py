"""Untrusted protobuf messages: damaged or endless ones are refused after reading a bounded part."""

from __future__ import annotations

import pytest

from mha_viz.models.getting import pipeline
from mha_viz.models.getting.pipeline import iter_fields


class Counted(bytes):
    """Bytes that count how often one of them was read."""

    looks = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        Counted.looks += 1
        return super().__getitem__(at)


def test_numbers_texts_and_floats() -> None:
    raw = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d\x00\x00\x80\x3f" + b"\x21" + bytes(8)
    assert list(iter_fields(raw)) == [(1, 150), (2, b"abc"), (3, b"\x00\x00\x80?"), (4, bytes(8))]
    assert list(iter_fields(b"\x08" + b"\xff" * 9 + b"\x01")) == [(1, 2**64 - 1)]


def test_a_number_without_end_is_refused_at_once() -> None:
    Counted.looks = 0
    with pytest.raises(ValueError, match="ten bytes"):
        list(iter_fields(Counted(b"\xff" * 1_000_000)))
    assert Counted.looks <= 10


@pytest.mark.parametrize("raw", [b"\x12\x04abc", b"\x1d\x00\x00\x80", b"\x12\xff\xff\xff\xff\x0f"])
def test_a_field_that_ends_after_the_file_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="cut off"):
        list(iter_fields(raw))


def test_fields_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_FIELDS", 3)
    assert len(list(iter_fields(b"\x08\x01" * 3))) == 3
    with pytest.raises(ValueError, match="more fields"):
        list(iter_fields(b"\x08\x01" * 4))
