"""Library settings for the processes that this program starts: servers, commands and their child processes.

Importing the package changes nothing, so that a notebook keeps its own settings. Code that starts such a process calls
:func:`set_environment`, or passes SETTINGS to it. Do this before the libraries are imported, because they read the
settings only once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from types import MappingProxyType

from mha_viz.errors import SettingError

PACKAGE = Path(__file__).resolve().parent.parent
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from malloc.h
_OUT_OF_MEMORY_WORDS = ("failed to map segment", "allocate memory")
_MAX_THRESHOLD = 32 << 20  # bytes; glibc raises its own threshold up to this limit

SETTINGS = MappingProxyType(
    {
        # Visitors must not use the access tokens of the person who runs the server.
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        # With telemetry, huggingface_hub contacts its server before it answers.
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # oneDNN and PyTorch's interface to it cache half a megabyte of prepared code for each of up to 1,024 shapes
        # (the interface once per thread). Sentences of many lengths have many shapes, and preparing a shape again
        # costs next to nothing.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
        "LRU_CACHE_CAPACITY": "8",
    }
)


def set_environment() -> None:
    """Set SETTINGS as environment variables of this process and its children, unless they already have a value."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def check_docstrings() -> None:
    """Raise SettingError if Python removed the docstrings, which transformers needs to build its classes."""
    if sys.flags.optimize > 1:
        problem = "Python runs with -OO or PYTHONOPTIMIZE=2, but transformers cannot load models without docstrings."
        raise SettingError(problem, "Start it without these options; -O works.")


def build_python_command(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and environment of a Python child process.

    The child finds this package wherever it is. It imports nothing from the current folder, which Python would
    otherwise search first: anyone who can write there could run code as this account.
    """
    search_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # an empty part would be the current folder
    paths = [str(PACKAGE.parent), *filter(None, search_path)]
    return [sys.executable, "-P", *arguments], {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error reports a lack of memory: MemoryError, or the words of PyTorch or the library loader."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY_WORDS)


def keep_memory() -> None:
    """Make glibc keep freed memory for the next allocation, as it learns to do by itself over time.

    Dask starts its workers with a setting (MALLOC_TRIM_THRESHOLD_) that makes every batch request all its memory from
    the system again, zeroed. That adds half the CPU time to a study.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAX_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, 2 * _MAX_THRESHOLD)


def release_memory(includes_frozen: bool = True) -> None:
    """Collect garbage and return free memory to the system if possible, because glibc would otherwise keep it.

    Args:
        includes_frozen: whether to collect frozen objects too. False in a forked process, because visiting
            them would end the sharing of their memory.
    """
    if includes_frozen:
        gc.unfreeze()
    gc.collect()
    gc.freeze()  # the remaining objects are modules and models, which later collections can skip
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
