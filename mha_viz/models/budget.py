"""How much disk all downloads together may take, and which of them go first when that is full.

A note beside each model in the Hugging Face cache lists the files that were fetched here; only those are ever counted
or removed, never what another program put there. The time of the note is when the model was fetched or last loaded.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from mha_viz.errors import ModelError, ModelUnsupported, SettingError
from mha_viz.models import storage
from mha_viz.models.catalog import quoted

SETTING = "MHA_VIZ_DOWNLOADS_MB"
DEFAULT_MB = 20_000
NOTE = "mha-viz.json"
FRESH_SECONDS = 600.0  # after that time, in which a process, perhaps another one, may be reading the files


def megabytes(setting: str, default: int) -> int:
    """A number of 10^6 bytes from the environment. Raises SettingError."""
    typed = os.environ.get(setting, "").strip() or str(default)
    if not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= 9 and int(typed)):
        raise SettingError(
            f"{setting} is {quoted(typed)}.", f"Expected a whole number of megabytes, such as {default}."
        )
    return int(typed)


def note(place: Path, commit: str, names: Collection[str], written: Path) -> None:
    """Note in ``place``, a model's folder in the cache, which files are about to be put there; through ``written``."""
    noted = _read(place) | {commit: sorted(names)}
    written.write_text(json.dumps(noted), encoding="utf-8")
    written.replace(place / NOTE)


def opening(folder: Path) -> None:
    """A model is about to be loaded from ``folder``: for a while its files stay."""
    with suppress(OSError):  # not one of ours, or a cache that cannot be written
        os.utime(folder.parent.parent / NOTE)


def loaded(folder: Path, holder: object) -> None:
    """A model was loaded from ``folder``; its files stay as long as ``holder`` lives."""
    with _lock:
        _holders[holder] = folder


@contextmanager
def room_for(size: int, who: str) -> Iterator[None]:
    """Within this block ``size`` bytes may be downloaded; models that were loaded longest ago go first.

    Raises ModelUnsupported for more than is allowed in all, ModelError when all models are in use, SettingError.
    """
    with _lock:
        _make_room(size, who)
        _promised.append(size)
    try:
        yield
    finally:
        with _lock:
            _promised.remove(size)


_lock = threading.Lock()
_promised: list[int] = []  # bytes of the downloads that are under way
_holders: WeakKeyDictionary[object, Path] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Fetched:
    """The files of one model that were fetched here."""

    place: Path
    files: tuple[Path, ...]
    loaded: float  # seconds since 1970

    @property
    def bytes(self) -> int:
        return sum(f.stat().st_size for f in self.files if f.is_file())

    @property
    def in_use(self) -> bool:
        held = set(_holders.values())
        return time.time() - self.loaded < FRESH_SECONDS or any(f.parent in held for f in self.files)

    def remove(self) -> int:
        """Remove the files, config.json first: what lacks it counts as absent. Returns the bytes that this freed.

        Folders go when nothing is left in them.
        """
        before = self.bytes
        with suppress(OSError):  # no permission any more
            for path in sorted(self.files, key=lambda p: p.name != "config.json"):
                path.unlink(missing_ok=True)
            (self.place / NOTE).unlink(missing_ok=True)
        for folder in {f.parent for f in self.files}:
            with suppress(OSError):  # another program's files are in it
                folder.rmdir()
        with suppress(OSError):
            (self.place / "snapshots").rmdir()
            (self.place / "refs" / "main").unlink(missing_ok=True)
            (self.place / "refs").rmdir()
            self.place.rmdir()
        return before - self.bytes


def _make_room(size: int, who: str) -> None:
    limit = megabytes(SETTING, DEFAULT_MB) * 10**6
    if size > limit:
        raise ModelUnsupported(
            f"{who} has {size / 1e6:,.0f} MB, more than all downloads together may take here.",
            "Choose a smaller model.",
        )
    fetched = sorted(_fetched(), key=lambda model: model.loaded)
    taken = sum(model.bytes for model in fetched) + sum(_promised)
    for model in fetched:
        if taken + size > limit and not model.in_use:
            taken -= model.remove()
    if taken + size > limit:
        raise ModelError(
            f"There is no room for {who}: the models that are here are in use.",
            "Try again later, or choose one that is here.",
        )


def _fetched() -> Iterator[_Fetched]:
    for path in storage.root().glob(f"models--*/{NOTE}"):
        place = path.parent
        files = [place / "snapshots" / commit / name for commit, names in _read(place).items() for name in names]
        with suppress(OSError):  # another process has just removed it
            yield _Fetched(place, tuple(f for f in files if not f.is_symlink()), path.stat().st_mtime)


def _read(place: Path) -> dict[str, list[str]]:
    """The note of a model: commit → names of files. What is not a note of ours lists nothing."""
    try:
        noted = json.loads((place / NOTE).read_text(encoding="utf-8"))
        good = {
            commit: [name for name in names if Path(name).name == name]
            for commit, names in noted.items()
            if storage.COMMIT.fullmatch(commit)
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return good
