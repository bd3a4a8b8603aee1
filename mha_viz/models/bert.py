"""BERT from its files alone: its modules by the names that they have in transformers, for passes by
:mod:`mha_viz.models.straight`, so that a process that needs nothing else does not import transformers (3 s)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from mha_viz.models import linear
from mha_viz.models.folder import MAX_CONFIG_BYTES, read_object, weight_files
from mha_viz.models.rewritten import eager_attention_forward
from mha_viz.models.vocabulary import Vocabulary, vocabulary_of

__all__ = ["Bert", "eager_attention_forward", "open_bert"]

_FAMILY = "bert"
_PREFIX = "bert."  # of the weights of a model with a head
_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "type_vocab_size"),
)
_DEFAULTS: dict[str, Any] = {  # of transformers; a config with another value is not opened here
    "hidden_act": "gelu",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "position_embedding_type": "absolute",
}


def open_bert(folder: Path, name: str) -> tuple[Bert, Vocabulary] | None:
    """Return model and tokenizer of a folder that passed :func:`mha_viz.models.folder.look_at`; None where transformers
    has to open it: another family, or files that say anything beyond what is looked at here."""
    stated = read_object(folder / "config.json", MAX_CONFIG_BYTES, name)
    config = SimpleNamespace(**{"layer_norm_eps": 1e-12, **_DEFAULTS, **stated})
    if not _is_usual(config) or not linear.available():
        return None
    vocabulary = vocabulary_of(folder, name)
    model = None if vocabulary is None else _filled(folder, name, config)
    return None if vocabulary is None or model is None else (model, vocabulary)


def _is_usual(config: Any) -> bool:
    """Tell whether the numbers of a config are complete, and its settings those of a plain encoder."""
    if config.model_type != _FAMILY or any(getattr(config, name) != value for name, value in _DEFAULTS.items()):
        return False
    sizes = [getattr(config, name, None) for name in _SIZES]
    if any(type(size) is not int or size < 1 for size in sizes) or type(config.layer_norm_eps) is not float:
        return False
    pad = getattr(config, "pad_token_id", 0)
    has_others = any(hasattr(config, name) for name in ("text_config", "pruned_heads", "embedding_size"))
    is_divided = config.hidden_size % config.num_attention_heads == 0
    return is_divided and not has_others and (pad is None or (type(pad) is int and 0 <= pad < config.vocab_size))


def _filled(folder: Path, name: str, config: Any) -> Bert | None:
    """Return the model with its weights; None if they are not all there by their names, in float32 and in their
    shapes."""
    model = Bert(config)
    shapes = {key: list(weight.shape) for key, weight in model.state_dict().items()}
    weights: dict[str, torch.Tensor] = {}
    for path in weight_files(folder, name):
        with safe_open(path, "pt") as file:
            for key in file.offset_keys():
                short = key.removeprefix(_PREFIX)
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


class Bert(nn.Module):
    """The layers of BERT, without the dropout of its training; its weights have no memory yet."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.dtype = torch.float32
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> Any:
        """Name the inputs of a pass, which :class:`mha_viz.models.straight.Straight` runs."""
        raise NotImplementedError

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the table with a vector for each piece of the vocabulary."""
        return self.embeddings.word_embeddings


class _Embeddings(nn.Module):
    """The vectors of the pieces: the sum of the vectors of piece, segment and place, normalised."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = _table(config.vocab_size, width)
        self.position_embeddings = _table(config.max_position_embeddings, width)
        self.token_type_embeddings = _table(config.type_vocab_size, width)
        self.LayerNorm = _norm(config)

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Embed pieces: [sentence, n] → [sentence, n, d_model]."""
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        places = self.position_embeddings.weight[: input_ids.shape[1]]
        x: torch.Tensor = self.LayerNorm(self.word_embeddings(input_ids) + self.token_type_embeddings(types) + places)
        return x


class _Heads(nn.Module):
    """W_Q, W_K and W_V of a layer."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.attention_head_size**-0.5
        self.query, self.key, self.value = (_linear(config.hidden_size, config.hidden_size) for _ in range(3))


def _layer(config: Any) -> nn.Module:
    width, wide = config.hidden_size, config.intermediate_size
    layer = nn.Module()
    layer.attention = nn.Module()
    layer.attention.self = _Heads(config)
    layer.attention.output = _normalising(width, config)
    layer.intermediate = nn.Module()
    layer.intermediate.dense = _linear(width, wide)
    layer.intermediate.intermediate_act_fn = nn.GELU()
    layer.output = _normalising(wide, config)
    return layer


def _normalising(width: int, config: Any) -> nn.Module:
    """Return a linear layer and the norm of what it gives and of what is added to that."""
    module = nn.Module()
    module.dense = _linear(width, config.hidden_size)
    module.LayerNorm = _norm(config)
    return module


def _linear(width: int, wide: int) -> nn.Linear:
    return nn.Linear(width, wide, device="meta")


def _norm(config: Any) -> nn.LayerNorm:
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps, device="meta")


def _table(rows: int, width: int) -> nn.Embedding:
    """Return a table of vectors, of a given weight: filling it with random numbers without memory would import the
    compiler of PyTorch (1.5 s)."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width, device="meta"))
