"""A model at earlier steps of its training: weights that lie packed in one file beside it, unpacked when asked for."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from mha_viz.errors import ModelBroken

FILE = "snapshots.safetensors"
_OTHERS = ("config.json", "tokenizer.json", "tokenizer_config.json")


@cache
def steps(folder: Path) -> tuple[int, ...]:
    """The steps whose weights are kept in a model's folder, in order. Raises ModelBroken when there are none."""
    with _opened(folder) as file:
        return tuple(sorted(json.loads((file.metadata() or {}).get("steps", "[]"))))


@cache
def unpacked(folder: Path, step: int) -> Path:
    """The model as it was at ``step``, in a folder that lives as long as this process. Raises ModelBroken."""
    if step not in steps(folder):
        raise ModelBroken(f"There is no snapshot of step {step}.", f"Choose {', '.join(map(str, steps(folder)))}.")
    from safetensors.numpy import save_file

    into = Path(tempfile.mkdtemp(prefix="mha_viz-"))
    atexit.register(shutil.rmtree, into, ignore_errors=True)
    with _opened(folder) as file:
        names = [n for n in set(file.keys()) if n.startswith(f"{step}/") and not n.endswith(".scale")]
        save_file({name.partition("/")[2]: _weight(file, name) for name in names}, into / "model.safetensors")
    for name in _OTHERS:
        shutil.copyfile(folder / name, into / name)
    return into


def _weight(file: Any, name: str) -> Any:
    """Whole numbers with one scale a row, or half precision as it is; float32."""
    kept = file.get_tensor(name).astype("float32")
    scaled = f"{name}.scale"
    return kept * file.get_tensor(scaled).astype("float32") if scaled in set(file.keys()) else kept


def _opened(folder: Path) -> Any:
    from safetensors import safe_open

    try:
        return safe_open(folder / FILE, "np")
    except Exception as error:  # the library's own class, or the system's
        raise ModelBroken(f"{folder.name} has no snapshots that can be read.", "Install the app again.") from error
