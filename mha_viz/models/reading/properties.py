"""Properties of a model and of its files: device, type of its numbers, limit and digest."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from mha_viz.errors import SettingError, shorten_value
from mha_viz.models.getting import budget
from mha_viz.quotes import quoted
from mha_viz.request import DTYPES

DType: TypeAlias = "str | torch.dtype | np.dtype[Any] | type[np.generic]"
MAX_PIECES = 1024  # more than this cannot be drawn
BYTES = 4  # bytes of a weight
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")  # some say −1, XLNet, or nothing: no limit


def torch_device(device: str) -> torch.device:
    """Return PyTorch's name of "cpu", "cuda" or "cuda:1". Raises SettingError for another, and for one that is not
    there."""
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", str(device)):
        raise SettingError(f"{quoted(str(device))} is not a device.", 'Use "cpu", "cuda" or "cuda:1".')
    kind, _, number = device.partition(":")
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("No GPU was found that this PyTorch can use.", 'Use "cpu".')
    if number and int(number) >= torch.cuda.device_count():
        raise SettingError(f"There is no GPU {number}: this PyTorch finds {torch.cuda.device_count()}.", 'Use "cuda".')
    return torch.device(device)


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return PyTorch's type for one of DTYPES, which is given by its name or as a type of PyTorch or NumPy. Raises
    SettingError for another."""
    named = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    if named not in DTYPES:
        raise SettingError(f"dtype is {shorten_value(dtype)!r}.", f"Choose one of {', '.join(DTYPES)}.")
    by_name: torch.dtype = getattr(torch, named)
    return by_name


def own_or_decoder_s(config: Any, number: str) -> int:
    """Return a number of a config, or of its decoder's if each stack has a config of its own."""
    stated = getattr(config, number, None)
    return int(getattr(config.decoder, number) if stated is None else stated)


def weights_digest(folder: Path) -> str:
    """Return an identifier of the weights: the commit of a snapshot from the Hub, or else 12 digits of the SHA-256 of
    the files."""
    if folder.parent.name == "snapshots":
        return folder.name
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def piece_limit(model: Any, tokenizer: Any, heads: int) -> int:
    """Return the most pieces of a text: as many as the model has positions for, if the weights of all its ``heads`` fit
    into MHA_VIZ_WEIGHTS_MB. RoBERTa and similar models lose positions up to the padding index. A BigBird with sparse
    attention computes full attention up to its blocks (704 pieces in the published models) and beyond that something
    that has no weight for every pair. Raises SettingError."""
    config = model.config
    parts = (config, getattr(config, "encoder", None), getattr(config, "decoder", None))
    stated = [getattr(part, each, None) for part in parts for each in _POSITIONS]
    positions = min((number for number in stated if type(number) is int and number > 0), default=MAX_PIECES)
    table = next((m for n, m in model.named_modules() if n.endswith("position_embeddings")), None)
    padding = getattr(table, "padding_idx", None)
    if padding is not None:
        positions -= int(padding) + 1
    if getattr(config, "attention_type", "") == "block_sparse":
        positions = min(positions, (5 + 2 * config.num_random_blocks) * config.block_size)
    most = math.isqrt(budget.megabytes(budget.WEIGHTS_SETTING) * 2**20 // (BYTES * heads))
    return min(MAX_PIECES, most, int(positions), int(tokenizer.model_max_length))
