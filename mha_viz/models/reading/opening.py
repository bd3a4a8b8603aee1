"""Open a model and its tokenizer in a folder with transformers."""

from __future__ import annotations

import copy
import inspect
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import Any

import torch
from safetensors import safe_open
from transformers import (
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from mha_viz import process
from mha_viz.errors import ModelBroken, ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.families import BY_HAND, ENCODER_DECODERS, FAMILIES, is_listed
from mha_viz.models.getting import pipeline
from mha_viz.models.getting.folder import (
    MAX_CONFIG_BYTES,
    check_parameter_count,
    list_weight_files,
    make_no_attention_error,
    read_object,
)
from mha_viz.models.reading import capture, marian
from mha_viz.models.reading.attention_rewrites import rewrite
from mha_viz.models.reading.piece_positions import AlignedTokenizer
from mha_viz.models.transformers_parts import (
    AttentionInterface,
    AttentionMaskInterface,
    check_family,
    eager_mask,
    transformers_logging,
)
from mha_viz.quotes import quote


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a safetensors file. Indexing reads it, in its own type.

    Once it is converted and dropped, the pages of the file that were read for it are free again. transformers, in
    contrast, keeps each file open until all tensors are loaded.
    """

    path: Path
    name: str

    def __getitem__(self, _: EllipsisType) -> torch.Tensor:
        """Read the tensor, as ``tensor[...]``."""
        with safe_open(self.path, "pt") as file:
            tensor: torch.Tensor = file.get_tensor(self.name)
        return tensor


def find_tensors_to_convert(files: Sequence[Path], dtype: torch.dtype) -> dict[str, StoredTensor]:
    """Return all tensors by name if any of them has another type than ``dtype``; otherwise an empty dictionary.

    Tensors that need no conversion stay in their files, which the system reads where they are needed.
    """
    tensors: dict[str, StoredTensor] = {}
    has_other_dtype = False
    for path in files:
        with safe_open(path, "pt") as file:
            for name in file.offset_keys():
                has_other_dtype = has_other_dtype or file.get_slice(name).get_dtype() not in (
                    _DTYPE_CODES[dtype],
                    *_INTEGER_CODES,
                )
                tensors[name] = StoredTensor(path, name)
    return tensors if has_other_dtype else {}


_DTYPE_CODES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_INTEGER_CODES = ("I64", "I32", "I16", "I8", "U8", "BOOL")  # types of positions and masks, which are kept


_OPTIONAL_WEIGHTS = ("pooler", "lm_head", "cls.")  # weights that attention does not need; they may be missing
# The verbosity of transformers is global, so only one thread at a time changes it.
_verbosity_lock = threading.Lock()


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence transformers inside this block, because this module raises its own errors.

    Afterwards transformers reports as much as before. Raises SettingError if Python runs without docstrings.
    """
    process.check_docstrings()
    with _verbosity_lock:
        level = transformers_logging.get_verbosity()
        shows_bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        try:
            yield
        finally:
            transformers_logging.set_verbosity(level)
            if shows_bars:
                transformers_logging.enable_progress_bar()


AttentionInterface.register(capture.IMPLEMENTATION, capture.capture_attention)
AttentionMaskInterface.register(capture.IMPLEMENTATION, eager_mask)
_LOCAL_ONLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def open_folder(folder: Path, name: str, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """Open a model with one stack of layers and its tokenizer with transformers."""
    config = _read_config(folder, name, MODEL_MAPPING)
    text_config = getattr(config, "text_config", None) or config  # set for models that also read images or sound
    if config.is_encoder_decoder:
        raise ModelUnsupported(
            f"{quote_model(name)} is an encoder–decoder ({config.model_type}) of a family that cannot be drawn.",
            f"These can: {', '.join(ENCODER_DECODERS)}.",
        )
    _check_dtype(text_config.model_type, name, dtype)
    tokenizer = _check_tokenizer(AutoTokenizer.from_pretrained(folder, **_LOCAL_ONLY), name)
    _check_size(AutoModel, folder, config, name)
    model, _ = _load_model(MODEL_MAPPING[type(config)], folder, config, name, dtype)
    if text_config is not config:
        text_models = [
            module
            for module in model.modules()
            if isinstance(module, PreTrainedModel) and type(module.config) is type(text_config)
        ]
        if not text_models or text_models[0] is model:
            raise ModelUnsupported(f"{quote_model(name)} contains no separate model for text.", BY_HAND)
        model = text_models[0]
        model.set_attn_implementation(capture.choose_implementation(text_config.model_type))
    return simplify(model).eval(), tokenizer


def open_tokenizer(folder: Path) -> Any:
    """Open the tokenizer of a folder that was opened before."""
    with silence_transformers():
        return AutoTokenizer.from_pretrained(folder, **_LOCAL_ONLY)


def make_untrained(config: Any, dtype: torch.dtype) -> Any:
    """Return a model with random weights and the sizes in a config."""
    transformers_config = config if isinstance(config, PreTrainedConfig) else AutoConfig.for_model(**vars(config))
    model = AutoModel.from_config(  # type: ignore[no-untyped-call]
        transformers_config,
        attn_implementation=capture.choose_implementation(transformers_config.model_type),
        dtype=dtype,
    )
    return simplify(model.eval())


def _read_config(folder: Path, name: str, mapping: Any) -> Any:
    """Read the config of a model that transformers supports. Raises ModelUnsupported for others."""
    try:
        config = AutoConfig.from_pretrained(folder, **_LOCAL_ONLY)
    except ValueError as error:
        if "model_type" not in str(error) and "model type" not in str(error):
            raise
        family = quote(str(read_object(folder / "config.json", MAX_CONFIG_BYTES, name)["model_type"]))
        problem = f"The installed transformers does not know the family {family} of {quote_model(name)}."
        raise ModelUnsupported(problem, BY_HAND) from error
    if type(config) not in mapping:
        raise ModelUnsupported(
            f"{quote_model(name)} ({config.model_type}) is not a model that reads text and returns attention.", BY_HAND
        )
    text_config = getattr(config, "text_config", None) or config
    check_family(text_config.model_type)
    parts = (text_config, getattr(text_config, "encoder", None), getattr(text_config, "decoder", None))
    if not any(getattr(part, "num_attention_heads", 0) for part in parts):
        raise make_no_attention_error(quote_model(name), text_config.model_type)
    return config


def _check_dtype(family: str, name: str, dtype: torch.dtype) -> None:
    """Raise ModelUnsupported if transformers would round attention weights in a type other than float32."""
    is_rounded = not is_listed(family) or (family in FAMILIES and FAMILIES[family].probabilities)
    if is_rounded and dtype != torch.float32:
        raise ModelUnsupported(
            f"{quote_model(name)} can be read in float32 only: transformers rounds the weights of its family "
            f"({family}) before they can be recorded.",
            "Leave dtype out, or choose another model.",
        )


def _check_size(auto_class: Any, folder: Path, config: Any, name: str) -> None:
    """Raise ModelBroken if the config of a family without a row describes a larger model than the files hold."""
    if is_listed(config.model_type):
        return  # the sizes in its config were checked before
    with torch.device("meta"):
        model = auto_class.from_config(config)
    parameters = sum(weights.numel() for weights in model.parameters())
    check_parameter_count(parameters, folder, quote_model(name), 1)


def open_two_stacks(folder: Path, name: str, dtype: torch.dtype = torch.float32) -> tuple[Any, Any, Any, bool]:
    """Open an encoder–decoder with its language-model head.

    Returns the model, the tokenizers of its source and its target, and whether its files contain everything that
    generation needs.
    """
    config = _read_config(folder, name, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING)
    _check_dtype(config.model_type, name, dtype)
    if not getattr(config, "share_encoder_decoder_embeddings", True):  # Marian
        raise ModelUnsupported(
            f"{quote_model(name)} has a vocabulary for each of its two languages, which cannot be read.",
            "Choose another model.",
        )
    source, target = (_check_tokenizer(tokenizer, name) for tokenizer in _open_two_tokenizers(folder, config, name))
    _check_size(AutoModelForSeq2SeqLM, folder, config, name)
    model, missing = _load_model(AutoModelForSeq2SeqLM, folder, config, name, dtype)
    return model.eval(), source, target, not missing


def _open_two_tokenizers(folder: Path, config: Any, name: str) -> tuple[Any, Any]:
    """Open the tokenizers of source and target, which can be in two languages."""
    if config.model_type == "marian":
        if all((folder / file).is_file() for file in marian.FILES):
            return marian.make_tokenizers(folder, name)
        source = PreTrainedTokenizerFast.from_pretrained(folder, **_LOCAL_ONLY)
    else:
        source = AutoTokenizer.from_pretrained(folder, **_LOCAL_ONLY)
    target = copy.deepcopy(source)
    if hasattr(target, "_switch_to_target_mode"):  # mBART puts a language code around a text
        target._switch_to_target_mode()
    return source, target


def _check_tokenizer(tokenizer: Any, name: str) -> Any:
    """Return a tokenizer whose steps are allowed, replacing the backend of one that gives no character positions."""
    if not tokenizer.is_fast:
        tokenizer.backend_tokenizer = AlignedTokenizer(tokenizer, name)
        tokenizer.backend_tokenizer.check()
        return tokenizer
    backend = tokenizer.backend_tokenizer  # as built from all its files
    steps = {section: getattr(backend, section) for section in pipeline.SECTIONS}
    pipeline.check_steps({k: json.loads(step.__getstate__()) for k, step in steps.items() if step}, quote_model(name))
    return tokenizer


def _load_model(auto_class: Any, folder: Path, config: Any, name: str, dtype: torch.dtype) -> tuple[Any, list[str]]:
    """Load a model. Return it with the names of missing weights that attention does not need."""
    tensors = (
        {}
        if auto_class is AutoModelForSeq2SeqLM
        else find_tensors_to_convert(list_weight_files(folder, quote_model(name)), dtype)
    )
    source: dict[str, Any] = {"state_dict": tensors} if tensors else {"use_safetensors": True}
    model, report = auto_class.from_pretrained(
        None if tensors else folder,
        config=config,
        attn_implementation=capture.choose_implementation(config.model_type),
        dtype=dtype,
        **source,
        output_loading_info=True,
        **_LOCAL_ONLY,
    )
    missing = sorted(k for k in report["missing_keys"] if not any(part in k for part in _OPTIONAL_WEIGHTS))
    if missing:
        raise ModelBroken(
            f"{quote_model(name)} lacks {len(missing)} of its weights, {missing[0]} among them.", "Download it again."
        )
    return model, sorted(report["missing_keys"])


def simplify(model: Any) -> Any:
    """Remove the parts of a model that attention does not need, and make its weights readable for all token pairs."""
    if "add_pooling_layer" in inspect.signature(type(model).__init__).parameters:
        model.pooler = None
    if hasattr(model, "set_attention_type"):  # BigBird itself does this up to the limit in compute_piece_limit
        model.set_attention_type("original_full")
    if model.dtype != model.config.dtype:  # transformers leaves some of XLNet's weights in float32
        model.to(model.config.dtype)
    return rewrite(model)
