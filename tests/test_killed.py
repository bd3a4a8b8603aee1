"""A server that is killed with -9 amid its work: its children end, and nothing half-written is used afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mha_viz.assets import HOME
from mha_viz.errors import ExportError
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.study import study
from mha_viz.ui.annotated import built_in
from mha_viz.ui.studies import Studies, sentences_given
from tests.visit import until

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")

STUDY = """
import sys, time
from mha_viz.models import catalog
from mha_viz.ui.studies import Studies, sentences_given
job = Studies().start(catalog.resolve(sys.argv[1]), sentences_given())
while not job.finished:
    print(job.fraction, flush=True)
    time.sleep(0.02)
sys.exit(f"ended before it was killed: {job.error}")
"""
TRAINING = """
import sys, time
from dataclasses import replace
from mha_viz.training.record import COUNT, EXPERIMENTS
from mha_viz.ui.trainings import Trainings
job = Trainings().start(replace(EXPERIMENTS[COUNT].default, steps=EXPERIMENTS[COUNT].most_steps))
while not job.finished:
    job.look()
    print(job.fraction, flush=True)
    time.sleep(0.02)
sys.exit(f"ended before it was killed: {job.error}")
"""


@contextmanager
def killed(script: str, folder: Path, *arguments: str) -> Iterator[list[int]]:
    """Run a process until its work is under way, kill it with -9; gives the children that it had."""
    environment = {**os.environ, HOME: str(folder), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if float(line) > 0.02:
                break
        else:
            raise AssertionError("it ended by itself")
        children = children_of(server.pid)
        server.kill()
        server.wait()
    yield children


def children_of(pid: int) -> list[int]:
    """The processes that a process has begun."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found


def alive(pid: int) -> bool:
    """True while a process runs; one that has ended and that nobody awaited does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_study_of_a_server_that_was_killed_goes_on_after_the_next_start(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path))
    model = catalog.resolve(str(tiny_folder("bert")))
    with killed(STUDY, tmp_path, model.name) as children:
        assert len(children) == 1
        until(lambda: not any(map(alive, children)))
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*.csv"))
    assert not list(tmp_path.rglob("profile.json"))
    assert list(tmp_path.rglob(".*.npz")), "the child kept what it had done"
    desk = Studies()
    assert desk.profile(model, built_in().digest) is None
    assert desk.roles(model) == ()
    again = desk.start(model, sentences_given())
    until(lambda: again.finished)
    profile = desk.profile(model, built_in().digest)
    assert profile is not None
    assert not list(tmp_path.rglob(".*"))
    whole = study(Encoder.from_folder(Path(model.path), name=model.name), built_in())
    assert profile.files() == whole.files()


def test_a_half_written_profile_is_none(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """As a server leaves it that is killed between two tables: the roles are there, profile.json is not."""
    encoder = Encoder.from_folder(tiny_folder("bert"))
    profile = study(encoder, built_in())
    profile.write(tmp_path)
    (tmp_path / "profile.json").unlink()
    assert (tmp_path / "roles.csv").is_file()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mha_viz.ui.profiles.home", lambda: tmp_path.parent)
        patched.setattr("mha_viz.ui.profiles.key", lambda *_: tmp_path.name)
        desk = Studies()
        model = catalog.resolve(str(tiny_folder("bert")))
        assert desk.profile(model, built_in().digest) is None
        assert desk.roles(model) == ()


def test_a_training_ends_with_the_server_that_began_it(tmp_path: Path) -> None:
    with killed(TRAINING, tmp_path) as children:
        assert len(children) == 1
        until(lambda: not any(map(alive, children)))
    assert list(tmp_path.iterdir()) == [], "neither results nor temporary files"


# ---- A disk that is full ------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 kB. Root must be able to mount one in CI; nobody else can, and the skip says so."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        assert os.geteuid() or not os.environ.get("CI"), mounted.stderr
        pytest.skip("no small disk can be mounted here: a full disk was not tried")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_study_on_a_full_disk_says_so_and_leaves_nothing_half_written(
    small_disk: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(small_disk))
    (small_disk / "others").write_bytes(b"x" * 190_000)
    model = catalog.resolve(str(tiny_folder("bert")))
    desk = Studies()
    job = desk.start(model, sentences_given())
    until(lambda: job.finished)
    assert isinstance(job.error, ExportError)
    assert "could not be kept on the server's disk: No space left on device" in str(job.error)
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path.name != "others"]


def test_a_profile_that_the_disk_cannot_take_is_known_until_the_server_ends(
    small_disk: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(small_disk))
    model, desk = catalog.resolve(str(tiny_folder("bert"))), Studies()
    usual = desk._profiles.put

    def fill(key: str, value: object) -> object:
        (small_disk / "others").write_bytes(
            b"x" * (os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize - 8192)
        )
        return usual(key, value)  # type: ignore[arg-type]

    monkeypatch.setattr(desk._profiles, "put", fill)
    job = desk.start(model, sentences_given())
    until(lambda: job.finished)
    assert job.error is None
    assert desk.profile(model, built_in().digest) is not None
    reason = desk.unkept(model, built_in().digest)
    assert "No space left" in str(reason)
    assert not [path for path in small_disk.rglob("*") if path.is_file() and path.name != "others"]
