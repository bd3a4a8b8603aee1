"""Profiles on the disk: a limit in bytes, least recently used first, unfinished sums for a day, and a full disk."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mha_viz.analysis.profile import Profile
from mha_viz.app.service import profiles, studies
from mha_viz.app.service.profiles import delete_excess, ensure_folder, mark_used, read_budget
from mha_viz.errors import SettingError
from mha_viz.files import assets

HOUR = 3600


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(assets.HOME_VARIABLE, str(tmp_path))
    monkeypatch.setenv(profiles.SIZE_VARIABLE, "1")
    return tmp_path / "profiles"


def folder(home: Path, name: str, kilobytes: int, hours: float, file: str = "syntax.csv") -> Path:
    """A profile with one file, last used this many hours ago. Its folder's name has 32 digits, like a real one."""
    of = home / name.encode().hex().zfill(32)
    of.mkdir(parents=True)
    (of / file).write_bytes(b"x" * kilobytes * 1000)
    when = time.time() - hours * HOUR
    for path in (of / file, of):
        os.utime(path, (when, when))
    return of


def names(home: Path) -> set[str]:
    return {bytes.fromhex(path.name).lstrip(b"\0").decode() for path in home.iterdir()}


def test_what_was_used_longest_ago_goes_first(home: Path) -> None:
    first = folder(home, "a", 400, 5)
    folder(home, "b", 400, 9)
    folder(home, "c", 400, 1)
    delete_excess()
    assert names(home) == {"a", "c"}
    mark_used(first)
    folder(home, "d", 400, 0.5)
    delete_excess()
    assert names(home) == {"a", "d"}


def test_the_folder_at_work_never_goes(home: Path) -> None:
    work = folder(home, "a", 3_000, 99)
    folder(home, "b", 100, 1)
    delete_excess(work)
    assert names(home) == {"a"}


def test_within_the_budget_everything_stays(home: Path) -> None:
    for number in range(9):
        folder(home, str(number), 90, number)
    delete_excess()
    assert len(names(home)) == 9


def test_sums_that_nobody_finished_go_after_a_day(home: Path) -> None:
    folder(home, "old", 1, 25, ".trained.npz")
    folder(home, "part", 1, 25, ".syntax.csv.77.part")
    folder(home, "new", 1, 23, ".trained.npz")
    done = folder(home, "done", 1, 25, "profile.json")
    work = folder(home, "work", 1, 25, ".trained.npz")
    delete_excess(work)
    assert names(home) == {"new", "done", "work"}
    assert (done / "profile.json").is_file()
    assert (work / ".trained.npz").is_file()


def test_a_home_that_is_not_there_needs_no_tidying(home: Path) -> None:
    delete_excess()
    assert not home.exists()


def refused(path: Path, *_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied", str(path))


def test_where_nothing_can_be_deleted_tidying_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = folder(home, "a", 400, 99, ".trained.npz")
    folder(home, "b", 800, 98)
    folder(home, "c", 700, 1)
    unlink, tried = Path.unlink, []

    def unlink_elsewhere(path: Path, missing_ok: bool = False) -> None:
        tried.append(path)
        (refused if path.parent == first else unlink)(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_elsewhere)
    part = folder(home, "d", 1, 97, ".syntax.csv.77.part")
    delete_excess()
    assert {path.name for path in tried} == {".trained.npz", ".syntax.csv.77.part"}
    assert not part.exists()  # whichever of the two came first
    assert "b" not in names(home)  # the limit holds in any case
    assert "c" in names(home)


@pytest.mark.parametrize("method", ["rglob", "is_dir"])
def test_a_folder_that_cannot_be_read_is_passed_over(home: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(home, "a", 3_000, 99)
    monkeypatch.setattr(Path, method, refused)
    delete_excess()
    assert names(home) == {"a"}


def test_a_link_to_a_folder_elsewhere_is_left_alone(home: Path, tmp_path: Path) -> None:
    elsewhere = folder(tmp_path / "elsewhere", "mine", 3_000, 99)
    home.mkdir()
    (home / elsewhere.name).symlink_to(elsewhere)
    delete_excess()
    assert (elsewhere / "syntax.csv").is_file()


def test_a_folder_that_is_no_profile_is_left_alone(home: Path) -> None:
    other = home / "of somebody else"
    other.mkdir(parents=True)
    (other / "thesis.csv").write_bytes(b"x" * 3_000_000)
    (other / ".old.npz").touch()
    os.utime(other / ".old.npz", (0, 0))
    delete_excess()
    assert len(list(other.iterdir())) == 2


@pytest.mark.parametrize("odd", ["-1", "5 GB", "1e3", "٣", "9" * 12])
def test_a_budget_that_is_no_number_is_named(home: Path, odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(profiles.SIZE_VARIABLE, odd)
    with pytest.raises(SettingError, match=profiles.SIZE_VARIABLE):
        read_budget()


def test_the_usual_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(profiles.SIZE_VARIABLE, raising=False)
    assert read_budget() == 500_000_000
    monkeypatch.setenv(profiles.SIZE_VARIABLE, "0")
    assert read_budget() == 0


def test_where_nothing_can_be_written_there_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ensure_folder(tmp_path / "file" / "below") is None
    assert ensure_folder(tmp_path / "new" / "one") == tmp_path / "new" / "one"


def test_a_class_that_comes_at_once_gets_one_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones would be correct, but every cache of one would be compared with the tables of both, in every visit."""
    studies._read_bundled.cache_clear()
    together = Barrier(8)

    def ask(_: int) -> object:
        together.wait()
        return studies.load_bundled("minilm")

    with ThreadPoolExecutor(8) as class_:
        assert len({id(evidence) for evidence in class_.map(ask, range(8))}) == 1


def test_profiles_are_compared_by_a_digest_that_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = studies.load_bundled("toy")
    assert evidence is not None
    profile = evidence.profiles[0]
    other, another = Profile(profile.facts, profile.tables), Profile(profile.facts, {})
    written: list[Profile] = []
    files = Profile.files
    monkeypatch.setattr(Profile, "files", lambda one: (written.append(one), files(one))[1])
    without = Profile(profile.facts, profile.tables)
    for _ in range(3):
        assert other == without
        assert other != another
    assert len(written) == 3
