"""The address of a download does not tell its content to whoever can guess it."""

from __future__ import annotations

import pytest
from streamlit.runtime import memory_media_file_storage as storage

from mha_viz.serving import media_addresses


def address(content: bytes, name: str = "grid.csv") -> str:
    return storage.MemoryMediaFileStorage("/media").load_and_get_id(content, "text/csv", "downloadable", name)  # type: ignore[arg-type]


def test_an_address_depends_on_a_secret_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_calculate_file_id", media_addresses._digest)
    guessed = address(b"a,b\n1,2\n")
    media_addresses.make_unguessable()
    here = address(b"a,b\n1,2\n")
    assert here != guessed
    assert len(here) == 2 * media_addresses.BYTES
    assert here == address(b"a,b\n1,2\n"), "the same file is stored once"
    assert len({here, address(b"a,b\n1,3\n"), address(b"a,b\n1,2\n", "other.csv")}) == 3
    monkeypatch.setattr(media_addresses, "_secret", b"that of another process")
    assert address(b"a,b\n1,2\n") != here
