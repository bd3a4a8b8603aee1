"""Open a plain BERT or GPT-2 from its files alone, without importing transformers (3 s)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import torch
from safetensors import safe_open

from mha_viz.models.getting.folder import MAX_CONFIG_BYTES, list_weight_files, read_object
from mha_viz.models.reading import linear
from mha_viz.models.reading.bert import Bert
from mha_viz.models.reading.gpt2 import Gpt2
from mha_viz.models.reading.vocabulary import Vocabulary, open_vocabulary

__all__ = ["open_plain"]


class _PlainFamily(NamedTuple):
    """How to open a family without transformers.

    Attributes:
        model: builds the model from a config.
        prefix: the prefix of weight names in a model with a head for prediction.
        sizes: names of the sizes in the config. Width and number of heads are the second and the fourth.
        eps: name of the epsilon of its norms, and its default.
        required_settings: settings that this package assumes; a config with other values is not opened here.
        aliases: the common names of transformers for ``sizes``, such as hidden_size.
    """

    model: Callable[[Any], Bert | Gpt2]
    prefix: str
    sizes: tuple[str, ...]
    eps: tuple[str, float]
    required_settings: Mapping[str, Any]
    aliases: Mapping[str, str] = MappingProxyType({})


_COMMON_SETTINGS = MappingProxyType({"is_encoder_decoder": False, "add_cross_attention": False})
_PLAIN_FAMILIES: Mapping[str, _PlainFamily] = MappingProxyType(
    {
        "bert": _PlainFamily(
            Bert,
            "bert.",
            (
                *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
                *("intermediate_size", "max_position_embeddings", "type_vocab_size"),
            ),
            ("layer_norm_eps", 1e-12),
            {"hidden_act": "gelu", "is_decoder": False, "chunk_size_feed_forward": 0}
            | {"position_embedding_type": "absolute"},
        ),
        "gpt2": _PlainFamily(
            Gpt2,
            "transformer.",
            ("vocab_size", "n_embd", "n_layer", "n_head", "n_positions"),
            ("layer_norm_epsilon", 1e-5),
            {"activation_function": "gelu_new", "scale_attn_weights": True, "reorder_and_upcast_attn": False}
            | {"scale_attn_by_inverse_layer_idx": False},
            {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
            | {"max_position_embeddings": "n_positions"},
        ),
    }
)
_UNSUPPORTED_ENTRIES = ("text_config", "pruned_heads", "embedding_size", "quantization_config", "layer_types")


def open_plain(folder: Path, name: str) -> tuple[Bert | Gpt2, Vocabulary] | None:
    """Return the model and the tokenizer of a folder that passed :func:`mha_viz.models.getting.folder.inspect_folder`.

    Return None if transformers has to open it: for other families, and if the files contain settings that are not
    supported here.
    """
    raw_config = read_object(folder / "config.json", MAX_CONFIG_BYTES, name)
    family = _PLAIN_FAMILIES.get(raw_config["model_type"])
    config = None if family is None or not linear.is_available() else _make_config(family, raw_config)
    vocabulary = None if config is None else open_vocabulary(folder, name)
    model = None if family is None or vocabulary is None else _load_weights(folder, name, family, config)
    return None if vocabulary is None or model is None else (model, vocabulary)


def _make_config(family: _PlainFamily, raw_config: Mapping[str, Any]) -> Any:
    """Return the config with the names of transformers; None if its numbers are incomplete or a setting is unusual."""
    required_settings, (eps, default_eps) = {**_COMMON_SETTINGS, **family.required_settings}, family.eps
    values = {eps: default_eps, **required_settings, **raw_config}
    sizes: list[Any] = [values.get(name) for name in family.sizes]
    if any(type(size) is not int or size < 1 for size in sizes) or type(values[eps]) is not float:
        return None
    vocabulary_size, width, _, heads, *_ = sizes
    pad_id, inner_width = values.get("pad_token_id", 0), values.get("n_inner")
    is_supported = (
        all(values[name] == value for name, value in required_settings.items())
        and not raw_config.keys() & {*_UNSUPPORTED_ENTRIES, *family.aliases}
        and width % heads == 0
        and (pad_id is None or (type(pad_id) is int and 0 <= pad_id < vocabulary_size))
        and (inner_width is None or (type(inner_width) is int and inner_width > 0))
    )
    aliases = {alias: values[name] for alias, name in family.aliases.items()}
    return SimpleNamespace(**values, **aliases) if is_supported else None


def _load_weights(folder: Path, name: str, family: _PlainFamily, config: Any) -> Bert | Gpt2 | None:
    """Return the model with its weights.

    Return None unless all weights are there by name, in float32 and with the right shapes.
    """
    model = family.model(config)
    shapes = {key: list(weight.shape) for key, weight in model.state_dict().items()}
    weights: dict[str, torch.Tensor] = {}
    for path in list_weight_files(folder, name):
        with safe_open(path, "pt") as file:
            for key in file.offset_keys():
                short_name = key.removeprefix(family.prefix)
                if short_name not in shapes:
                    continue
                tensor = file.get_slice(key)
                if short_name in weights or tensor.get_dtype() != "F32" or tensor.get_shape() != shapes[short_name]:
                    return None
                weights[short_name] = file.get_tensor(key)
    if weights.keys() != shapes.keys():
        return None
    model.load_state_dict(weights, assign=True)
    return model.eval()
