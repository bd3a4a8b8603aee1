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


class _Kind(NamedTuple):
    """The recipe for opening a family without transformers.

    Attributes:
        model: builds the model from a config.
        prefix: the prefix of weight names in a model with a head.
        sizes: names of the sizes in the config. Width and number of heads are the second and the fourth.
        eps: name of the epsilon of its norms, and its default.
        usual: settings that transformers assumes; a config with other values is not opened here.
        other_names: the names of ``sizes`` in transformers.
    """

    model: Callable[[Any], Bert | Gpt2]
    prefix: str
    sizes: tuple[str, ...]
    eps: tuple[str, float]
    usual: Mapping[str, Any]
    other_names: Mapping[str, str] = MappingProxyType({})


_COMMON_SETTINGS = MappingProxyType({"is_encoder_decoder": False, "add_cross_attention": False})
_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "bert": _Kind(
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
        "gpt2": _Kind(
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
    stated = read_object(folder / "config.json", MAX_CONFIG_BYTES, name)
    kind = _KINDS.get(stated["model_type"])
    config = None if kind is None or not linear.is_available() else _make_config(kind, stated)
    vocabulary = None if config is None else open_vocabulary(folder, name)
    model = None if kind is None or vocabulary is None else _load_weights(folder, name, kind, config)
    return None if vocabulary is None or model is None else (model, vocabulary)


def _make_config(kind: _Kind, stated: Mapping[str, Any]) -> Any:
    """Return the config with the names of transformers; None if its numbers are incomplete or a setting is unusual."""
    usual, (eps, default_eps) = {**_COMMON_SETTINGS, **kind.usual}, kind.eps
    values = {eps: default_eps, **usual, **stated}
    sizes: list[Any] = [values.get(name) for name in kind.sizes]
    if any(type(size) is not int or size < 1 for size in sizes) or type(values[eps]) is not float:
        return None
    vocabulary, width, _, heads, *_ = sizes
    pad, inner = values.get("pad_token_id", 0), values.get("n_inner")
    is_usual = (
        all(values[name] == value for name, value in usual.items())
        and not stated.keys() & {*_UNSUPPORTED_ENTRIES, *kind.other_names}
        and width % heads == 0
        and (pad is None or (type(pad) is int and 0 <= pad < vocabulary))
        and (inner is None or (type(inner) is int and inner > 0))
    )
    names = {transformers_name: values[name] for transformers_name, name in kind.other_names.items()}
    return SimpleNamespace(**values, **names) if is_usual else None


def _load_weights(folder: Path, name: str, kind: _Kind, config: Any) -> Bert | Gpt2 | None:
    """Return the model with its weights.

    Return None unless all weights are there by name, in float32 and with the right shapes.
    """
    model = kind.model(config)
    shapes = {key: list(weight.shape) for key, weight in model.state_dict().items()}
    weights: dict[str, torch.Tensor] = {}
    for path in list_weight_files(folder, name):
        with safe_open(path, "pt") as file:
            for key in file.offset_keys():
                short = key.removeprefix(kind.prefix)
                if short not in shapes:
                    continue
                stored = file.get_slice(key)
                if short in weights or stored.get_dtype() != "F32" or stored.get_shape() != shapes[short]:
                    return None
                weights[short] = file.get_tensor(key)
    if weights.keys() != shapes.keys():
        return None
    model.load_state_dict(weights, assign=True)
    return model.eval()
