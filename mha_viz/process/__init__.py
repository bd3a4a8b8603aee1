"""Settings of libraries for a process that is this program's own: a server, a command, the processes they start.

Importing the package sets none of them, so that a notebook keeps its own. Whoever starts such a process calls
:func:`prepare`, or hands SETTINGS to it, before a library reads them: each does so once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from types import MappingProxyType

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_LARGEST_KEPT = 32 << 20  # bytes of an allocation: where glibc's own adjustment ends

SETTINGS = MappingProxyType(
    {
        # Visitors must not use the tokens of the person who runs the server.
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        # Telemetry makes huggingface_hub call home before it answers.
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # oneDNN and PyTorch's bridge to it keep what they prepared for each shape, half a megabyte each, for 1,024
        # shapes (the bridge again for every thread). Sentences of many lengths have many shapes, and preparing one anew
        # costs next to nothing.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
        "LRU_CACHE_CAPACITY": "8",
    }
)


def prepare() -> None:
    """Set them for this process and those it starts, each unless the environment has a value already."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def keep_memory() -> None:
    """Have glibc keep what was freed for the next allocation, as it comes to do by itself. Dask starts its workers with
    a setting (MALLOC_TRIM_THRESHOLD_) by which all that a batch needs is fetched from the system, zeroed, at every
    batch: half as much processor time again for a study."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST_KEPT)


def give_back_memory() -> None:
    """Collect garbage, and return free memory from the allocator to the system, where it can: glibc keeps it
    otherwise."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what remains are modules and models, which later collections can skip
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
