"""Files and folders that are written atomically."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mha_viz.files import passing_folder, whole_file


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)  # the longest possible name: the incomplete file has a different one
    path.write_bytes(b"before")
    with whole_file(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_what_breaks_off_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def half() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(path) as file:
            file.write(b"content")
        assert os.read(end, 100) == b"content"
    finally:
        os.close(end)
    assert path.is_fifo()
    with pytest.raises(IsADirectoryError), whole_file(tmp_path):
        pass


def test_a_passing_folder_goes_with_what_killed_processes_left(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in ("partial-old", "partial-fresh", "other"):
        (place / name).mkdir(parents=True)
    os.utime(place / "partial-old", (0, 0))
    os.utime(place / "other", (0, 0))
    with passing_folder(place) as folder:
        (folder / "file").write_bytes(b"x")
        assert not (place / "partial-old").exists()
    assert sorted(path.name for path in place.iterdir()) == ["other", "partial-fresh"]


def test_a_folder_that_another_process_deletes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda place, _: iter([place / "partial-gone"]))
    with passing_folder(tmp_path) as folder:
        assert folder.is_dir()


def test_a_passing_folder_can_be_moved_away(tmp_path: Path) -> None:
    with passing_folder(tmp_path) as folder:
        (folder / "file").write_bytes(b"x")
        folder.rename(tmp_path / "kept")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
