"""Check what a model folder contains, without any model library.

A folder comes from a download, from the Hugging Face cache or from a user; it is not trusted until the numbers in its
config are within limits, its weights are complete, and it is certain that no code in it would run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from mha_viz.errors import ModelBroken, ModelError, ModelUnsupported
from mha_viz.model_names import quote_model, read_config_name
from mha_viz.models import families
from mha_viz.models.families import (
    BY_HAND,
    ENCODER_DECODERS,
    FAMILIES,
    OTHER_ENCODER_DECODERS,
    Sizes,
    has_weights,
    is_listed,
)
from mha_viz.models.getting import pipeline
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.storage import INDEX_FILE, WEIGHTS_FILE
from mha_viz.quotes import quote
from mha_viz.request import PARTS

SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
TOKENIZERS = (  # any one of these sets of files is enough
    {"tokenizer.json"},
    {"vocab.txt"},
    {"vocab.txt", "bpe.codes"},  # BERTweet, PhoBERT
    {"vocab.json", "merges.txt"},
    {"spiece.model"},
    {"sentencepiece.bpe.model"},
    {"tokenizer.model"},
    {"source.spm", "target.spm", "vocab.json"},  # Marian: one for each language
)
SENTENCEPIECE = frozenset({"spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm", "target.spm"})
SETTINGS = frozenset({"config.json", "generation_config.json", "tokenizer_config.json", "added_tokens.json"})
_CHECKED_FILES = SETTINGS.union({WEIGHTS_FILE, INDEX_FILE}, *TOKENIZERS)
MAX_CONFIG_BYTES = 1_000_000
MAX_TOKENIZER_BYTES = 64_000_000
_MAX_HEADER_BYTES = 4_000_000  # enough for about 40,000 tensors, which take 0.15 s and 26 MB to read
_MAX_INDEX_BYTES = 16_000_000
_MAX_AXES, _MAX_NUMBER = 8, 2**40  # maximum number of axes of a tensor, and largest number in its entry
_DTYPE_BYTES = MappingProxyType(
    {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
    | {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
)

# Families have different names for the same number. All names are checked, whatever the family, because a config may
# contain several. The limits are the largest values that a real model can have.
_SIZES: tuple[Sizes, ...] = tuple(family.sizes for family in FAMILIES.values())
_SIZES += tuple(stack for stacks in ENCODER_DECODERS.values() for stack in stacks)
_SIZES += (Sizes("n_layers", "attention_heads", "emb_dim", positions="max_seq_len"),)  # in families without a row
_LAYERS, _HEADS, _WIDTH, _FEED_FORWARD, _POSITIONS = (
    tuple(dict.fromkeys(names)) for names in zip(*_SIZES, strict=True)
)
_LIMITS = MappingProxyType(
    dict.fromkeys(_LAYERS, 96)
    | dict.fromkeys((*_HEADS, "num_key_value_heads", "num_kv_heads"), 128)
    | dict.fromkeys((*_WIDTH, "embedding_size", "word_embed_proj_dim", "intra_bottleneck_size"), 16_384)
    | dict.fromkeys(_FEED_FORWARD, 131_072)
    | dict.fromkeys(_POSITIONS, 1_000_000)
    | {"vocab_size": 2_000_000, "decoder_vocab_size": 2_000_000, "num_labels": 100_000, "type_vocab_size": 65_536}
    | {"head_dim": 1_024, "d_kv": 1_024, "d_head": 1_024, "relative_attention_num_buckets": 65_536}
    | {"num_hidden_groups": 4, "inner_group_num": 4, "num_feedforward_networks": 16}
    | dict.fromkeys(("num_local_experts", "num_experts"), 16_384)  # large in Doge, where each expert is a row
    | dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 131_072)
    | {"rotary_dim": 1_024, "window_size": 1_000_000}
)
_FAMILY = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,63}", re.IGNORECASE)
NO_ATTENTION = frozenset({"falcon_mamba", "fnet", "hyena", "mamba", "mamba2", "rwkv", "xlstm"})
# For families without a row: the names of numbers by which a model repeats something, and the largest values of these
# and of all other numbers. The size that they describe is compared with the files again when the model is opened.
_REPEAT_NAME = re.compile("(layers?|blocks?|depths?|stages?|experts)$")
_MAX_REPEATS, _MAX_OTHER_NUMBER, _MAX_DEPTH = 1_024, 2**24, 4
# ALBERT shares one stored layer among twelve. No valid model has more parameters than this many times its weights.
_MAX_SHARING = 32
_SPARE_PARAMETERS = 10_000_000

Json = dict[str, Any]
FileStamps = frozenset[tuple[str, int, int, int]]


class Facts(NamedTuple):
    """Facts about a model, read from the files of its folder, and its catalogue row.

    Attributes:
        model: the row.
        causal: whether no token attends to a later one.
        parts: PARTS for an encoder–decoder, empty for one stack of layers.
        heads_per_key: number of heads of a layer that share a key and a value.
        display_name: the model's name in its config.
        weights_only: whether its family has no row, so that only its attention weights can be read.
        attention_layers: number of layers with attention, 0 if the config does not say.
    """

    model: Model
    causal: bool
    parts: tuple[str, ...]
    heads_per_key: int
    display_name: str = ""
    weights_only: bool = False
    attention_layers: int = 0


def check_folder(folder: Path, model: Model | None = None) -> Model:
    """Check a model folder without any model library.

    Returns ``model`` (or a row for the folder) with layers, heads, width and size from its files. Raises ModelBroken
    for damaged or contradictory files, ModelUnsupported for models that cannot be drawn or would run code.
    """
    return inspect_folder(folder, model).model


def inspect_folder(folder: Path, model: Model | None = None, includes_weights: bool = True) -> Facts:
    """Return the facts of a folder that passes :func:`check_folder`.

    Without ``includes_weights``, only its config is checked. Raises the errors of :func:`check_folder`.
    """
    row = model or Model(str(folder), folder.name, kind="folder", path=str(folder.absolute()))
    label = quote_model(row.name)
    try:
        config = read_object(folder / "config.json", MAX_CONFIG_BYTES, label)
        check_config(config, label)
        return _read_config_facts(
            _fill_in_shape(row, config, folder, label) if includes_weights else row, config, label
        )
    except OSError as error:
        raise ModelBroken(f"{label} cannot be read: {error.strerror}.", "Check the folder's permissions.") from error


def select_text_config(config: Json) -> Json:
    """Return the config of the model that reads text, which is nested if the model also reads images or sound."""
    text_config = config.get("text_config")
    return text_config if isinstance(text_config, dict) and not is_listed(config.get("model_type", "")) else config


def _read_config_facts(row: Model, full_config: Json, label: str) -> Facts:
    """Return the facts that follow from a config."""
    config = select_text_config(full_config)
    heads = _find_largest(config, _HEADS)
    try:
        key_heads = families.count_key_heads(SimpleNamespace(**(config | {"num_attention_heads": heads})))
        heads_per_key = heads // key_heads if key_heads else 1  # no number of heads: transformers fills it in
        causal = families.is_causal(SimpleNamespace(**config))
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise ModelBroken(f"{label}: config.json contradicts itself.", "Get the file again.") from error
    family = config.get("model_type", "")
    parts = PARTS if _has_two_stacks(config) else ()
    return Facts(
        row,
        causal,
        parts,
        heads_per_key,
        read_config_name(row.name, full_config),
        not is_listed(family),
        _count_attention_layers(config),
    )


def _count_attention_layers(config: Json) -> int:
    """Return the number of layers with attention in a hybrid model; 0 for a config that does not say."""
    kinds = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(kinds, list):
        return sum(isinstance(kind, str) and has_weights(kind) for kind in kinds)
    period, first = (config.get(f"attn_layer_{name}") for name in ("period", "offset"))  # Jamba
    if type(period) is int and type(first) is int and period > 0 <= first:
        return len(range(first, _find_largest(config, _LAYERS), period))
    return 0


def _has_two_stacks(config: Json) -> bool:
    """Return whether a config describes an encoder–decoder."""
    family = config.get("model_type")
    if family in FAMILIES:
        return False
    return family in ENCODER_DECODERS or family in OTHER_ENCODER_DECODERS or config.get("is_encoder_decoder") is True


Inspector = Callable[[Path, Model, bool], Facts]
_inspector: Inspector = inspect_folder


def set_inspector(inspector: Inspector) -> None:
    """Set the function with which this process inspects folders from now on, such as one that uses a child process."""
    global _inspector
    _inspector = inspector


def run_inspector(folder: Path, model: Model, includes_weights: bool = True) -> Facts:
    """Inspect a folder as :func:`inspect_folder` does, with the function that :func:`set_inspector` set last."""
    return _inspector(folder, model, includes_weights)


def inspect_cached(folder: Path, model: Model) -> Facts:
    """Inspect a folder as :func:`run_inspector` does, for every run of a page: unchanged files are not read again."""
    files = read_stamps(folder)
    if not files:  # missing, or not readable
        return run_inspector(folder, model)
    outcome = _find_outcome(folder, model, files)
    if isinstance(outcome, Facts):
        return outcome
    # Raise a copy, because raising the same error repeatedly adds tracebacks.
    raise type(outcome)(outcome.problem, outcome.remedy)


@lru_cache(maxsize=64)
def _find_outcome(folder: Path, model: Model, files: FileStamps) -> Facts | ModelError:
    """Return the facts of a folder or the error of its inspection; cached while its files are unchanged."""
    try:
        return run_inspector(folder, model)
    except ModelError as error:
        return error.with_traceback(None)


def read_stamps(folder: Path) -> FileStamps:
    """Return name, size in bytes, last change (including permissions, ns) and inode number of each file that a check
    reads.

    Empty if there are none, or the folder cannot be listed.
    """
    try:
        paths = [p for p in folder.iterdir() if (p.name in _CHECKED_FILES or SHARD.fullmatch(p.name)) and p.is_file()]
        stats = [(path.name, path.stat()) for path in paths]
    except OSError:
        return frozenset()
    return frozenset((name, stat.st_size, stat.st_ctime_ns, stat.st_ino) for name, stat in stats)


def _fill_in_shape(row: Model, config: Json, folder: Path, label: str) -> Model:
    """Check the tokenizer and the weights. Return the row with layers, heads, width and size."""
    _check_tokenizer(folder, label)
    files = list_weight_files(folder, label)
    text_config = select_text_config(config)
    check_parameter_count(_estimate_parameters(text_config), folder, label)
    layers, heads, d_model = (_find_largest(text_config, names) for names in (_LAYERS, _HEADS, _WIDTH))
    megabytes = round(sum(f.stat().st_size for f in files) / 1e6)
    return replace(row, layers=layers, heads=heads, d_model=d_model, megabytes=megabytes)


def check_parameter_count(parameters: int, folder: Path, label: str, sharing: int = _MAX_SHARING) -> None:
    """Raise ModelBroken if a config describes many more ``parameters`` than ``sharing`` times the weights."""
    elements = sum(_count_elements(file, label) for file in list_weight_files(folder, label))
    if parameters > sharing * elements + _SPARE_PARAMETERS:
        raise ModelBroken(
            f"{label}: config.json describes about {parameters:,} parameters, the weights hold {elements:,}.",
            "The two do not belong together. Get the folder again.",
        )


def read_object(path: Path, limit: int, label: str) -> Json:
    """Read a JSON object from a file of limited size. Raises ModelBroken."""
    if not path.is_file():  # also avoids opening a pipe, which would block for ever
        raise ModelBroken(
            f"{label} has no {path.name}.", "A model folder holds config.json, a tokenizer and safetensors."
        )
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ModelBroken(f"{label}: {path.name} is larger than {limit:,} bytes.", "Get the file again.")
    return _parse_object(raw, path.name, label)


def _parse_object(raw: bytes, name: str, label: str) -> Json:
    """Parse a JSON object. Raises ModelBroken for anything else."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelBroken(f"{label}: {name} is not a JSON object.", "The file is damaged. Get it again.")
    return value


def check_config(config: Json, label: str) -> None:
    """Check a config. Raises ModelBroken, ModelUnsupported."""
    if "auto_map" in config:
        raise make_custom_code_error(label)
    family = config.get("model_type")
    if not isinstance(family, str) or not _FAMILY.fullmatch(family):
        shown_family = quote(family) if isinstance(family, str) else "no family"
        raise ModelUnsupported(
            f"{label}: its config.json names {shown_family} as model_type, which transformers does not know.", BY_HAND
        )
    if family in NO_ATTENTION:
        raise make_no_attention_error(label, family)
    if "quantization_config" in config:
        raise ModelUnsupported(f"{label} is quantised.", "Choose the version with ordinary weights.")
    if not is_listed(family):
        _check_every_number(config, label)
        return
    for name, limit in _LIMITS.items():
        _check_number(config.get(name), name, limit, label)
    for names in (_LAYERS, _HEADS, _WIDTH, ("vocab_size",)):
        if not _find_largest(config, names):
            raise ModelBroken(f"{label}: config.json has no {names[0]}.", "Get the file again.")


def _check_every_number(config: Json, label: str, depth: int = 0) -> None:
    """Check every number in the config of a family without a row, including nested configs, by its name."""
    for name, value in config.items():
        if isinstance(value, dict):
            if "auto_map" in value:
                raise make_custom_code_error(label)
            if depth == _MAX_DEPTH:
                raise ModelBroken(f"{label}: config.json is nested too deeply.", "Get the file again.")
            _check_every_number(value, label, depth + 1)
        elif name in _LIMITS and name not in _POSITIONS:
            _check_number(value, name, _LIMITS[name], label)
        elif type(value) is int:
            limit = _MAX_REPEATS if _REPEAT_NAME.search(name) else _MAX_OTHER_NUMBER
            if abs(value) > limit:
                _check_number(value, name, limit, label)


def make_no_attention_error(label: str, family: str) -> ModelUnsupported:
    """Return the error for a family without attention."""
    return ModelUnsupported(
        f"{label} has no attention: models of the family {family} mix tokens in another way.",
        "Choose a model with attention heads, such as BERT or GPT-2.",
    )


def _check_number(value: object, name: str, limit: int, label: str) -> None:
    """Raise ModelBroken unless a number of a config is whole and within the limit. None stands for a default."""
    if value is None:  # GPT-2 writes null for "the default"
        return
    if type(value) is not int or not 0 <= value <= limit:
        raise ModelBroken(
            f"{label}: config.json gives {quote(str(value))} for {name}.",
            f"Expected a whole number up to {limit:,}. The file is damaged or not meant for a real model.",
        )


def _find_largest(config: Json, names: tuple[str, ...]) -> int:
    """Return the largest value under any of the names; 0 if there is none."""
    return max(config.get(n) or 0 for n in names)


def _estimate_parameters(config: Json) -> int:
    """Return the approximate number of parameters of a model with this config, without sharing between layers."""
    layers, heads, d = (_find_largest(config, names) for names in (_LAYERS, _HEADS, _WIDTH))
    attention = 4 * d * max(d, heads * _find_largest(config, ("head_dim", "d_kv")))
    feed_forward = 2 * d * (_find_largest(config, _FEED_FORWARD) or 4 * d)
    rows = sum(_find_largest(config, names) for names in (("vocab_size",), _POSITIONS, ("type_vocab_size",)))
    if _has_two_stacks(config):
        return layers * (3 * attention + 2 * feed_forward) + rows * d
    return layers * (attention + feed_forward) + rows * d


def _check_tokenizer(folder: Path, label: str) -> None:
    """Check the files of a tokenizer. Raises ModelBroken, ModelUnsupported."""
    names = {p.name for p in folder.iterdir() if p.is_file()}
    if not has_tokenizer(names):
        raise make_no_tokenizer_error(label)
    for name in sorted(names & set().union(*TOKENIZERS)):
        if (folder / name).stat().st_size > MAX_TOKENIZER_BYTES:
            raise ModelBroken(f"{label}: {name} is larger than {MAX_TOKENIZER_BYTES:,} bytes.", "Get the file again.")
    if "tokenizer_config.json" in names:
        settings = read_object(folder / "tokenizer_config.json", MAX_TOKENIZER_BYTES, label)
        if "auto_map" in settings:
            raise make_custom_code_error(label)
        pipeline.check_tokenizer_settings(settings, label)
    if "tokenizer.json" in names:
        tokenizer = read_object(folder / "tokenizer.json", MAX_TOKENIZER_BYTES, label)
        if not isinstance(tokenizer.get("model"), dict):
            raise ModelBroken(f"{label}: tokenizer.json holds no tokenizer.", "The file is damaged. Get it again.")
        pipeline.check_tokenizer(tokenizer, label)
    if "generation_config.json" in names:
        read_object(folder / "generation_config.json", MAX_CONFIG_BYTES, label)
    if "added_tokens.json" in names:
        pipeline.check_extra_tokens(read_object(folder / "added_tokens.json", MAX_TOKENIZER_BYTES, label), label)
    for name in names & SENTENCEPIECE:
        pipeline.check_sentencepiece((folder / name).read_bytes(), label)


def has_tokenizer(names: Collection[str]) -> bool:
    """Return whether files with these names contain a tokenizer."""
    return any(files <= set(names) for files in TOKENIZERS)


def list_weight_files(folder: Path, label: str) -> list[Path]:
    """Return the safetensors files that transformers will read: one file, or the shards that the index names."""
    if (folder / WEIGHTS_FILE).is_file():
        return [folder / WEIGHTS_FILE]
    if not (folder / INDEX_FILE).is_file():
        raise make_no_safetensors_error(label)
    shards = read_object(folder / INDEX_FILE, _MAX_INDEX_BYTES, label).get("weight_map")
    files = shards.values() if isinstance(shards, dict) else ()
    names = set(files) if all(isinstance(name, str) and SHARD.fullmatch(name) for name in files) else set()
    if not names:
        raise ModelBroken(f"{label}: {INDEX_FILE} does not list the files of the weights.", "Get the file again.")
    missing = sorted(n for n in names if not (folder / n).is_file())
    if missing:
        raise ModelBroken(f"{label}: {missing[0]} is missing.", "Get the folder again.")
    return [folder / n for n in sorted(names)]


def _count_elements(path: Path, label: str) -> int:
    """Count the numbers in a safetensors file.

    The file consists of 8 bytes with the length of the header, the JSON header, then the tensors.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(_MAX_HEADER_BYTES, size - 8):
            raise _make_damaged_error(path, label)
        header = _parse_object(file.read(length), path.name, label)
    tensors = [v for name, v in header.items() if name != "__metadata__"]
    try:
        spans = [_read_span(t) for t in tensors]
    except (TypeError, ValueError, KeyError):
        raise _make_damaged_error(path, label) from None
    if not spans or max(end for _, end, _ in spans) != size - 8 - length:
        raise _make_damaged_error(path, label)
    return sum(elements for _, _, elements in spans)


def _read_span(tensor: Json) -> tuple[int, int, int]:
    """Return begin and end (bytes after the header) and the number of elements of a tensor.

    Raises an exception for an invalid entry.
    """
    begin, end = tensor["data_offsets"]
    shape = tensor["shape"]
    if len(shape) > _MAX_AXES or any(type(n) is not int or not 0 <= n <= _MAX_NUMBER for n in (begin, end, *shape)):
        raise ValueError("negative, not whole or too large")  # multiplying numbers of any length would take minutes
    elements = math.prod(shape)
    if end - begin != elements * _DTYPE_BYTES[tensor["dtype"]]:
        raise ValueError("shape and bytes differ")
    return begin, end, elements


def _make_damaged_error(path: Path, label: str) -> ModelBroken:
    """Return the error for a damaged file."""
    return ModelBroken(f"{label}: {path.name} is cut off or damaged.", "Get the file again.")


def make_custom_code_error(label: str) -> ModelUnsupported:
    """Return the error for a model that brings its own program code."""
    return ModelUnsupported(
        f"{label} brings its own program code (auto_map), which is never run here.",
        "Choose a model of a standard family such as BERT.",
    )


def make_no_tokenizer_error(label: str) -> ModelUnsupported:
    """Return the error for a model without a tokenizer."""
    return ModelUnsupported(f"{label} has no tokenizer.", "It needs tokenizer.json, vocab.txt or a similar file.")


def make_no_safetensors_error(label: str) -> ModelUnsupported:
    """Return the error for a model without weights as safetensors."""
    return ModelUnsupported(
        f"{label} has no {WEIGHTS_FILE}; older weight files can run code and are never opened here.",
        "Choose a model with safetensors, or convert it and choose the folder.",
    )
