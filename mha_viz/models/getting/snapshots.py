"""Unpack a model at earlier steps of its training. The weights of all steps are packed in one file in its folder."""

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
from mha_viz.files import digests, temporary_folder
from mha_viz.files.assets import HOME_VARIABLE, storage_folder
from mha_viz.process import is_out_of_memory

FILE = "snapshots.safetensors"
WEIGHTS = "model.safetensors"
_OTHER_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")


@cache
def list_steps(folder: Path) -> tuple[int, ...]:
    """Return the saved steps in a model's folder, in order. Raises ModelBroken if there are none."""
    with _open(folder) as file:
        return tuple(sorted(json.loads((file.metadata() or {}).get("steps", "[]"))))


def unpack(folder: Path, step: int) -> Path:
    """Return the folder of the model at ``step``, which all processes of this account share. Raises ModelBroken.

    If the app's folder (MHA_VIZ_HOME) cannot be written, it is a temporary folder that exists as long as this process.
    """
    if step not in list_steps(folder):
        raise ModelBroken(f"There is no snapshot of step {step}.", f"Choose {', '.join(map(str, list_steps(folder)))}.")
    subfolder = f"{_digest(folder)}-{step}"
    with _lock:  # two simultaneous first visitors share one unpacking
        try:
            return _unpack_into(folder, step, storage_folder() / "snapshots" / subfolder)
        except (OSError, RuntimeError, _get_library_error()):  # no permission, no room, or an account without a home
            try:
                return _unpack_into(folder, step, _get_temporary_folder() / subfolder)
            except (OSError, _get_library_error()) as error:
                disk_error = "the disk is full" if "No space left" in str(error) else ""
                reason = disk_error or (getattr(error, "strerror", None) or "it cannot be written").lower()
                raise ModelBroken(
                    f"Step {step:,} of {folder.name} cannot be unpacked: {reason}.",
                    f"Make room on the disk, or name another folder in {HOME_VARIABLE}.",
                ) from error


_lock = threading.Lock()


def _get_library_error() -> type[Exception]:
    """Return the exception class of the library that writes the weights."""
    from safetensors import SafetensorError  # raised by its writer, also for a full disk

    return SafetensorError


def _unpack_into(folder: Path, step: int, target: Path) -> Path:
    """Unpack a step into the folder ``target`` unless it is already there. Return the folder.

    It is created by a single move, so that it is never seen incomplete.
    """
    if _is_intact(target):
        return target
    from safetensors.numpy import save_file

    with temporary_folder(target.parent) as new_folder:
        with _open(folder) as file:
            names = [n for n in set(file.keys()) if n.startswith(f"{step}/") and not n.endswith(".scale")]
            save_file({name.partition("/")[2]: _read_weight(file, name) for name in names}, new_folder / WEIGHTS)
        for name in _OTHER_FILES:
            shutil.copyfile(folder / name, new_folder / name)
        digests.write(new_folder, {name: digests.digest_file(new_folder / name) for name in (*_OTHER_FILES, WEIGHTS)})
        if target.exists() and not _is_intact(target):  # damaged in the meantime
            shutil.rmtree(target)
        try:
            new_folder.rename(target)
        except OSError:
            if not _is_intact(target):  # otherwise another process was faster
                raise
    return target


def _is_intact(target: Path) -> bool:
    """Return whether a folder contains exactly the files that were unpacked there."""
    try:
        digest_by_name = digests.read(target)
    except (OSError, ValueError):
        return False
    return digest_by_name.keys() == {*_OTHER_FILES, WEIGHTS} and digests.have_digests(target, digest_by_name)


@cache
def _get_temporary_folder() -> Path:
    """Return a temporary folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="mha_viz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _digest(folder: Path) -> str:
    """Return a digest of everything that the unpacked files depend on, so that another version of the app unpacks its
    own.
    """
    digest = hashlib.sha256()
    for name in (FILE, *_OTHER_FILES):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]


def _read_weight(file: Any, name: str) -> Any:
    """Return a weight as float32. It is stored as integers with a scale per row, or unscaled in half precision."""
    weight = file.get_tensor(name).astype("float32")
    scale_name = f"{name}.scale"
    return weight * file.get_tensor(scale_name).astype("float32") if scale_name in set(file.keys()) else weight


def _open(folder: Path) -> Any:
    """Open the file of snapshots. Raises ModelBroken if it cannot be read."""
    from safetensors import safe_open

    try:
        return safe_open(folder / FILE, "np")
    except Exception as error:  # the exception class of the library or of the system
        if is_out_of_memory(error):
            raise
        raise ModelBroken(f"{folder.name} has no readable snapshots.", "Install the app again.") from error
