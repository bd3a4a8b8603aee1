"""Weights of a folder that a model reads in another type: one tensor after the other, so that a file is never in memory
as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType

import torch
from safetensors import safe_open


@dataclass(frozen=True)
class Stored:
    """A tensor of a safetensors file. Indexing reads it, in its own type; once it is converted and dropped, the pages
    of the file that were read for it are free again, while transformers keeps each file open until all are loaded."""

    path: Path
    name: str

    def __getitem__(self, everything: EllipsisType) -> torch.Tensor:
        """The tensor: stored[...]."""
        with safe_open(self.path, "pt") as file:
            tensor: torch.Tensor = file.get_tensor(self.name)
        return tensor


def of_other_type(files: Sequence[Path], dtype: torch.dtype) -> dict[str, Stored]:
    """The tensors of all files by name, if one of them has numbers in another type than ``dtype``; otherwise none:
    transformers then leaves them in the files, which the system reads where they are needed."""
    stored: dict[str, Stored] = {}
    is_other = False
    for path in files:
        with safe_open(path, "pt") as file:
            for name in file.offset_keys():
                is_other = is_other or file.get_slice(name).get_dtype() not in (_SHORT[dtype], *_WHOLE)
                stored[name] = Stored(path, name)
    return stored if is_other else {}


_SHORT = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_WHOLE = ("I64", "I32", "I16", "I8", "U8", "BOOL")  # positions and masks, which keep their type
