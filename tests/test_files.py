"""Files and folders that are written atomically."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from mha_viz.files import (
    MAX_AGE_SECONDS,
    list_unchanged,
    move_into_place,
    record_writes,
    remove_if_stale,
    remove_leftovers,
    temporary_folder,
    write_atomically,
)


def test_a_file_takes_its_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)  # the longest possible name: the incomplete file has a different one
    path.write_bytes(b"before")
    with write_atomically(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_what_breaks_off_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def half() -> None:
        with write_atomically(path) as file:
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
        with write_atomically(path) as file:
            file.write(b"content")
        assert os.read(end, 100) == b"content"
    finally:
        os.close(end)
    assert path.is_fifo()
    with pytest.raises(IsADirectoryError), write_atomically(tmp_path):
        pass


def test_a_passing_folder_goes_with_what_killed_processes_left(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in ("partial-old", "partial-fresh", "other"):
        (place / name).mkdir(parents=True)
    os.utime(place / "partial-old", (0, 0))
    os.utime(place / "other", (0, 0))
    with temporary_folder(place) as folder:
        (folder / "file").write_bytes(b"x")
        assert not (place / "partial-old").exists()
    assert sorted(path.name for path in place.iterdir()) == ["other", "partial-fresh"]


def test_a_folder_that_another_process_deletes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda place, _: iter([place / "partial-gone"]))
    with temporary_folder(tmp_path) as folder:
        assert folder.is_dir()


def test_a_passing_folder_can_be_moved_away(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        (folder / "file").write_bytes(b"x")
        folder.rename(tmp_path / "kept")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


# ---- Clocks that are set ---------------------------------------------------------------------------------------------


def age(path: Path) -> None:
    """Let a file or a folder look as after a jump of the clock by a day and a minute."""
    when = path.stat().st_mtime - MAX_AGE_SECONDS - 60
    os.utime(path, (when, when))


@pytest.mark.parametrize("is_jump", [False, True])
def test_what_is_being_written_is_not_removed_as_old(is_jump: bool, tmp_path: Path) -> None:
    """Whoever opens it anew meets the lock, in this process as in another."""
    with temporary_folder(tmp_path) as folder, write_atomically(tmp_path / "file") as file:
        (written,) = tmp_path.glob(".*.part")
        left = [tmp_path / ".left.part", tmp_path / "partial-left"]
        left[0].touch()
        left[1].mkdir()
        for path in (folder, written, *left) if is_jump else ():
            age(path)
        remove_leftovers(tmp_path)
        with temporary_folder(tmp_path):
            pass
        assert [path.exists() for path in (folder, written, *left)] == [True, True, not is_jump, not is_jump]
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_where_nothing_can_be_held_what_is_old_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are file systems without such locks; and Windows, which has none of these."""
    left = [tmp_path / name for name in (".a.part", ".b.part")]
    for path in left:
        path.touch()
        age(path)

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr("fcntl.flock", refused)
        remove_if_stale(left[0])
    monkeypatch.setattr("mha_viz.files.fcntl", None)
    remove_if_stale(left[1])
    remove_if_stale(tmp_path / "missing")
    assert [*tmp_path.iterdir()] == []


def test_what_was_written_is_known_by_what_was_written(tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "real")
    real = tmp_path.resolve() / "real"
    real.mkdir()
    (real / "before").write_bytes(b"0")
    with record_writes() as record:
        for name in ("a.csv", "b.csv", "below/c.csv", ".sums.npz", ".parts/d.npz", "replaced", "removed"):
            (linked / name).parent.mkdir(exist_ok=True)
            with write_atomically(linked / name) as file:
                file.write(b"1")
            os.utime(linked / name, (0, 0))
        (tmp_path / "moved").write_bytes(b"1")
        move_into_place(tmp_path / "moved", linked / "moved")
        with pytest.raises(IsADirectoryError):
            move_into_place(linked / "a.csv", linked / "below")
        (real / "removed").unlink()
        (tmp_path / "other").write_bytes(b"2")
        (tmp_path / "other").replace(real / "replaced")
    with write_atomically(linked / "later") as file:
        file.write(b"1")
    names = ["a.csv", "b.csv", "below/c.csv", "moved"]
    assert list_unchanged(record, linked) == list_unchanged(record, real) == [real / name for name in names]
    assert list_unchanged(record, linked / "b.csv") == [real / "b.csv"]
    assert list_unchanged(record, real / "before") == list_unchanged(record, tmp_path / "elsewhere") == []
