"""A model at earlier steps of its training: weights that lie packed in one file beside it, unpacked when asked for."""

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
from mha_viz.files import passing_folder
from mha_viz.files.assets import home

FILE = "snapshots.safetensors"
WEIGHTS = "model.safetensors"
_OTHERS = ("config.json", "tokenizer.json", "tokenizer_config.json")


@cache
def steps(folder: Path) -> tuple[int, ...]:
    """The steps whose weights are kept in a model's folder, in order. Raises ModelBroken when there are none."""
    with _opened(folder) as file:
        return tuple(sorted(json.loads((file.metadata() or {}).get("steps", "[]"))))


def unpacked(folder: Path, step: int) -> Path:
    """The model as it was at ``step``, in a folder that all processes of this account share. Raises ModelBroken.

    Where the app's own folder (MHA_VIZ_HOME) cannot be written, a passing one that lives as long as this process.
    """
    if step not in steps(folder):
        raise ModelBroken(f"There is no snapshot of step {step}.", f"Choose {', '.join(map(str, steps(folder)))}.")
    place = f"{_digest(folder)}-{step}"
    with _lock:  # two first visitors, one unpacking
        try:
            return _put(folder, step, home() / "snapshots" / place)
        except (OSError, RuntimeError):  # no permission, no room, an account without a home
            return _put(folder, step, _passing() / place)


_lock = threading.Lock()


def _put(folder: Path, step: int, into: Path) -> Path:
    """The folder ``into``, made in one move if it is not there, so that half of it is never seen."""
    if _whole(into):
        return into
    from safetensors.numpy import save_file

    with passing_folder(into.parent) as partial:
        with _opened(folder) as file:
            names = [n for n in set(file.keys()) if n.startswith(f"{step}/") and not n.endswith(".scale")]
            save_file({name.partition("/")[2]: _weight(file, name) for name in names}, partial / WEIGHTS)
        for name in _OTHERS:
            shutil.copyfile(folder / name, partial / name)
        if into.exists() and not _whole(into):  # damaged since
            shutil.rmtree(into)
        try:
            partial.rename(into)
        except OSError:
            if not _whole(into):  # else another process was faster
                raise
    return into


def _whole(into: Path) -> bool:
    from safetensors import safe_open

    if not all((into / name).is_file() for name in (*_OTHERS, WEIGHTS)):
        return False
    try:
        with safe_open(into / WEIGHTS, "np"):
            return True
    except Exception:  # the library's own class: cut off
        return False


@cache
def _passing() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mha_viz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _digest(folder: Path) -> str:
    """What the unpacked files depend on, so that another version of the app unpacks its own."""
    digest = hashlib.sha256()
    for name in (FILE, *_OTHERS):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]


def _weight(file: Any, name: str) -> Any:
    """Whole numbers with one scale per row, or half precision as it is; float32."""
    stored = file.get_tensor(name).astype("float32")
    scaled = f"{name}.scale"
    return stored * file.get_tensor(scaled).astype("float32") if scaled in set(file.keys()) else stored


def _opened(folder: Path) -> Any:
    from safetensors import safe_open

    try:
        return safe_open(folder / FILE, "np")
    except Exception as error:  # the library's own class, or the system's
        raise ModelBroken(f"{folder.name} has no snapshots that can be read.", "Install the app again.") from error
