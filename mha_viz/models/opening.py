"""From the files of a folder to a model and a tokenizer, and what these say of themselves."""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from mha_viz.errors import ModelBroken, ModelUnsupported, SettingError
from mha_viz.models import capture, pipeline
from mha_viz.quotes import quoted

MAX_PIECES = 512  # more than this no drawing can show
_UNUSED = ("pooler", "lm_head", "cls.")  # weights that attention does not need; they may be missing
# What transformers reports while it opens a model belongs to its whole process, too: one thread at a time changes it.
_one_opening = threading.Lock()


@contextmanager
def reports_silenced() -> Iterator[None]:
    """What goes wrong is said by this file's own errors; afterwards transformers reports as much as before."""
    with _one_opening:
        level = transformers_logging.get_verbosity()
        bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            transformers_logging.set_verbosity(level)
            if bars:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def torch_device(device: str) -> torch.device:
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError("No GPU was found that this PyTorch can use.", 'Use "cpu".')
    return torch.device(device)


def open_folder(folder: Path, name: str) -> tuple[Any, Any]:
    """Model and tokenizer, as transformers reads them from the folder."""
    local: dict[str, Any] = {"local_files_only": True}
    config = AutoConfig.from_pretrained(folder, **local, trust_remote_code=False)
    if config.is_encoder_decoder:
        raise ModelUnsupported(
            f"{quoted(name)} is an encoder-decoder ({config.model_type}); only one stack of layers can be drawn.",
            "Choose a model such as BERT or GPT-2.",
        )
    tokenizer = AutoTokenizer.from_pretrained(folder, **local, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise ModelUnsupported(f"{quoted(name)} has a tokenizer without character positions.", "Choose another model.")
    backend = tokenizer.backend_tokenizer  # as it came out of all its files
    steps = {section: getattr(backend, section) for section in pipeline.SECTIONS}
    pipeline.check_steps({k: json.loads(step.__getstate__()) for k, step in steps.items() if step}, quoted(name))
    model = _model(folder, config, name)
    return model.eval(), tokenizer


def _model(folder: Path, config: Any, name: str) -> Any:
    model, report = AutoModel.from_pretrained(
        folder,
        config=config,
        attn_implementation=capture.NAME,
        dtype=torch.float32,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    missing = sorted(k for k in report["missing_keys"] if not any(u in k for u in _UNUSED))
    if missing:
        raise ModelBroken(
            f"{quoted(name)} lacks {len(missing)} of its weights, {missing[0]} among them.", "Download it again."
        )
    return simplified(model)


def simplified(model: Any) -> Any:
    """A model without what attention does not need, and with weights for every two tokens."""
    if "add_pooling_layer" in inspect.signature(type(model).__init__).parameters:
        model.pooler = None
    if hasattr(model, "set_attention_type"):  # BigBird; up to 704 pieces it does so by itself
        model.set_attention_type("original_full")
    return model


def weights_digest(folder: Path) -> str:
    """Which weights these are: the commit of a snapshot from the Hub, else 12 digits of the files' SHA-256."""
    if folder.parent.name == "snapshots":
        return folder.name
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def piece_limit(model: Any, tokenizer: Any) -> int:
    """The most pieces the model has positions for. RoBERTa and its like lose those up to the padding index."""
    positions = int(getattr(model.config, "max_position_embeddings", MAX_PIECES))
    table = next((m for n, m in model.named_modules() if n.endswith("position_embeddings")), None)
    padding = getattr(table, "padding_idx", None)
    if padding is not None:
        positions -= int(padding) + 1
    return min(MAX_PIECES, positions, int(tokenizer.model_max_length))
