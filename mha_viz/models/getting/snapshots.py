"""A model at earlier steps of its training: weights packed in one file beside it, unpacked on demand."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from mha_viz.errors import ModelBroken
from mha_viz.files import digests, passing_folder
from mha_viz.files.assets import HOME, home
from mha_viz.process import lacks_memory

FILE = "snapshots.safetensors"
WEIGHTS = "model.safetensors"
_OTHERS = ("config.json", "tokenizer.json", "tokenizer_config.json")


@cache
def steps(folder: Path) -> tuple[int, ...]:
    """The saved steps in a model's folder, in order. Raises ModelBroken if there are none."""
    with _opened(folder) as file:
        return tuple(sorted(json.loads((file.metadata() or {}).get("steps", "[]"))))


def unpacked(folder: Path, step: int) -> Path:
    """The model at ``step``, in a folder that all processes of this account share. Raises ModelBroken.

    If the app's folder (MHA_VIZ_HOME) cannot be written, it is a temporary one that exists as long as this process.
    """
    if step not in steps(folder):
        raise ModelBroken(f"There is no snapshot of step {step}.", f"Choose {', '.join(map(str, steps(folder)))}.")
    place = f"{_digest(folder)}-{step}"
    with _lock:  # two first visitors share one unpacking
        try:
            return _put(folder, step, home() / "snapshots" / place)
        except (OSError, RuntimeError, _library_error()):  # no permission, no room, or an account without a home
            try:
                return _put(folder, step, _passing() / place)
            except (OSError, _library_error()) as error:
                full = "the disk is full" if "No space left" in str(error) else ""
                reason = full or (getattr(error, "strerror", None) or "it cannot be written").lower()
                raise ModelBroken(
                    f"Step {step:,} of {folder.name} cannot be unpacked: {reason}.",
                    f"Make room on the disk, or name another folder in {HOME}.",
                ) from error


_lock = threading.Lock()


def _library_error() -> type[Exception]:
    from safetensors import SafetensorError  # of its writer, also for a full disk

    return SafetensorError


def _put(folder: Path, step: int, into: Path) -> Path:
    """The folder ``into``, created by one move if it does not exist, so that it is never seen incomplete."""
    if _whole(into):
        return into
    from safetensors.numpy import save_file

    with passing_folder(into.parent) as partial:
        with _opened(folder) as file:
            names = [n for n in set(file.keys()) if n.startswith(f"{step}/") and not n.endswith(".scale")]
            save_file({name.partition("/")[2]: _weight(file, name) for name in names}, partial / WEIGHTS)
        for name in _OTHERS:
            shutil.copyfile(folder / name, partial / name)
        digests.write(partial, {name: digests.of(partial / name) for name in (*_OTHERS, WEIGHTS)})
        if into.exists() and not _whole(into):  # damaged meanwhile
            shutil.rmtree(into)
        try:
            partial.rename(into)
        except OSError:
            if not _whole(into):  # otherwise another process was faster
                raise
    return into


def _whole(into: Path) -> bool:
    """Whether a folder holds what was unpacked there, to the byte."""
    try:
        written = digests.read(into)
    except (OSError, ValueError):
        return False
    return written.keys() == {*_OTHERS, WEIGHTS} and digests.are_those(into, written)


@cache
def _passing() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mha_viz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _digest(folder: Path) -> str:
    """A digest of what the unpacked files depend on, so that another version of the app unpacks its own."""
    digest = hashlib.sha256()
    for name in (FILE, *_OTHERS):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]


def _weight(file: Any, name: str) -> Any:
    """Integers with one scale per row, or half precision unscaled; as float32."""
    stored = file.get_tensor(name).astype("float32")
    scaled = f"{name}.scale"
    return stored * file.get_tensor(scaled).astype("float32") if scaled in set(file.keys()) else stored


def _opened(folder: Path) -> Any:
    from safetensors import safe_open

    try:
        return safe_open(folder / FILE, "np")
    except Exception as error:  # the exception class of the library or of the system
        if lacks_memory(error):
            raise
        raise ModelBroken(f"{folder.name} has no readable snapshots.", "Install the app again.") from error
