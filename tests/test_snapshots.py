"""Snapshots of the toy model: unpacked once for all processes, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import safetensors.numpy
from safetensors import SafetensorError
from safetensors.numpy import save_file

from mha_viz.errors import ModelBroken
from mha_viz.files.assets import HOME_VARIABLE, asset_path
from mha_viz.models.getting import snapshots
from mha_viz.models.getting.folder import check_folder
from mha_viz.models.getting.snapshots import unpack

pytestmark = pytest.mark.app

TOY = asset_path("toy")
STEP = 400
UNPACK = f"""
import signal, sys, time
from mha_viz.models.getting import snapshots
from mha_viz.files.assets import asset_path
if sys.argv[1:] == ["stay"]:
    def stay(*_): print("there", flush=True); time.sleep(60)
    snapshots.shutil.copyfile = stay
print(snapshots.unpack(asset_path("toy"), {STEP}))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    snapshots._get_temporary_folder.cache_clear()
    yield tmp_path / "home" / "snapshots"
    snapshots._get_temporary_folder.cache_clear()


def test_a_snapshot_is_unpacked_once_for_everybody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partials: list[str] = []
    make = tempfile.mkdtemp

    def count(**options: str) -> str:
        partials.append(make(**options))
        return partials[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", count)
    gate = threading.Barrier(8)

    def ask(_: int) -> Path:
        gate.wait()
        return unpack(TOY, STEP)

    with ThreadPoolExecutor(8) as pool:
        places = set(pool.map(ask, range(8)))
    place = places.pop()
    assert not places
    assert len(partials) == 1
    assert list(home.iterdir()) == [place]
    assert check_folder(place).layers == 2
    other = subprocess.run([sys.executable, "-c", UNPACK], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(place)


def test_nothing_is_left_in_the_temporary_folder(home: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-c", UNPACK, "stay"], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    left = next(home.glob("partial-*"))
    os.utime(left, (0, 0))
    assert check_folder(unpack(TOY, STEP)).layers == 2
    assert not left.exists()


def test_a_damaged_copy_is_made_again(home: Path) -> None:
    place = unpack(TOY, STEP)
    whole = (place / snapshots.WEIGHTS).read_bytes()
    (place / snapshots.WEIGHTS).write_bytes(whole[:-1])
    assert unpack(TOY, STEP) == place
    assert (place / snapshots.WEIGHTS).read_bytes() == whole
    (place / "config.json").unlink()
    assert check_folder(unpack(TOY, STEP)).layers == 2


def test_where_nothing_can_be_kept_a_passing_folder_serves(home: Path, tmp_path: Path) -> None:
    home.parent.write_text("a file where a folder should be")
    place = unpack(TOY, STEP)
    assert (tmp_path / "tmp") in place.parents
    assert check_folder(place).layers == 2
    assert unpack(TOY, STEP) == place


_FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


@pytest.mark.parametrize("error", [SafetensorError(_FULL), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("is_all_full", [False, True], ids=["home", "home and temporary folder"])
def test_a_step_on_a_full_disk(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_all_full: bool
) -> None:
    """The library that writes weights has an error class of its own, which is no OSError."""

    def write(weights: object, path: Path) -> None:
        if is_all_full or home in path.parents:
            raise error
        save_file(weights, path)

    monkeypatch.setattr(safetensors.numpy, "save_file", write)
    if is_all_full:
        with pytest.raises(ModelBroken, match=f"^Step {STEP} of toy cannot be unpacked: the disk is full.") as raised:
            unpack(TOY, STEP)
        assert HOME_VARIABLE in str(raised.value)
    else:
        place = unpack(TOY, STEP)
        assert (tmp_path / "tmp") in place.parents
        assert check_folder(place).layers == 2
    assert not [path for path in home.rglob("*") if path.is_file()]
