"""Determine properties of a model and its files: device, dtype, maximum text length and identifier of the weights."""

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
from mha_viz.models.getting.storage import COMMIT
from mha_viz.quotes import quote
from mha_viz.request import DTYPES

Device: TypeAlias = "str | torch.device"
DType: TypeAlias = "str | torch.dtype | np.dtype[Any] | type[np.generic]"
MAX_PIECES = 1024  # more pieces cannot be drawn
BYTES_PER_WEIGHT = 4  # bytes per attention weight
_POSITION_LIMIT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len")  # −1 (XLNet) or no entry: no limit


def parse_device(device: Device) -> torch.device:
    """Return PyTorch's device for "cpu", "cuda" or "cuda:1". Raises SettingError for other names and for missing
    devices.
    """
    name = str(device)
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", name):
        raise SettingError(f"{quote(name)} is not a device.", 'Use "cpu", "cuda" or "cuda:1".')
    kind, _, number = name.partition(":")
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("No GPU was found that this PyTorch can use.", 'Use "cpu".')
    count = torch.cuda.device_count()
    if number and int(number) >= count:
        raise SettingError(f"There is no GPU {number}: this PyTorch finds {count}, counted from 0.", 'Use "cuda".')
    return torch.device(name)


def parse_dtype(dtype: DType) -> torch.dtype:
    """Return PyTorch's type for one of DTYPES, given by its name or as a type of PyTorch or NumPy.

    Raises SettingError for another type.
    """
    type_name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    if type_name not in DTYPES:
        raise SettingError(f"dtype is {shorten_value(dtype)!r}.", f"Choose one of {', '.join(DTYPES)}.")
    torch_type: torch.dtype = getattr(torch, type_name)
    return torch_type


def read_config_int(config: Any, key: str) -> int:
    """Return the integer ``key`` of a config, or of its decoder's config if each stack has a config of its own."""
    value = getattr(config, key, None)
    return int(getattr(config.decoder, key) if value is None else value)


def identify_weights(folder: Path) -> str:
    """Return an identifier of the weights.

    It is the commit of a snapshot from the Hub, or else 12 digits of the SHA-256 of the files.
    """
    if folder.parent.name == "snapshots" and COMMIT.fullmatch(folder.name):
        return folder.name
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def compute_piece_limit(model: Any, tokenizer: Any, head_count: int) -> int:
    """Return the maximum number of pieces in a text.

    It is at most MAX_PIECES, the tokenizer's maximum, the number of positions of the model, and the length at which the
    attention weights of its heads, ``head_count`` over all layers, fill MHA_VIZ_WEIGHTS_MB. RoBERTa and similar models
    lose positions up to the padding index. A BigBird with sparse attention computes full attention for up to 5 + 2 ×
    ``num_random_blocks`` blocks of ``block_size`` pieces (704 pieces in the published models); for longer texts it uses
    sparse attention, which has no weight for some queries and keys. Raises SettingError if MHA_VIZ_WEIGHTS_MB is
    invalid.
    """
    config = model.config
    configs = (config, getattr(config, "encoder", None), getattr(config, "decoder", None))
    numbers = [getattr(stack_config, key, None) for stack_config in configs for key in _POSITION_LIMIT_KEYS]
    positions = min((number for number in numbers if type(number) is int and number > 0), default=MAX_PIECES)
    position_table = next((m for n, m in model.named_modules() if n.endswith("position_embeddings")), None)
    padding = getattr(position_table, "padding_idx", None)
    if padding is not None:
        positions -= int(padding) + 1
    if getattr(config, "attention_type", "") == "block_sparse":
        positions = min(positions, (5 + 2 * config.num_random_blocks) * config.block_size)
    max_by_memory = math.isqrt(budget.read_megabytes(budget.WEIGHTS_SETTING) * 2**20 // (BYTES_PER_WEIGHT * head_count))
    return min(MAX_PIECES, max_by_memory, int(positions), int(tokenizer.model_max_length))
