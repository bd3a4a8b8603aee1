"""Write small models with random weights, of families without a row in ``mha_viz.models.families``.

The folders are like those from the Hub; tokenizers are trained on demand.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    BertTokenizer,
    GPT2Tokenizer,
    RobertaTokenizer,
)

from tests.tiny_models import HEADS, LAYERS, ROBERTA, WIDTH, biases, byte_level, wordpiece

_ROUTED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1}
_LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
_WINDOWED = {"layer_types": ["sliding_attention", "sliding_attention", "full_attention"], "sliding_window": 6}
_GROUPED = {"num_key_value_heads": 2}
_HEAD = {"head_dim": 8}

# By "model_type" in config.json: the tokenizer, and the settings of the config besides sizes.
FAMILIES: MappingProxyType[str, tuple[str, dict[str, Any]]] = MappingProxyType(
    {
        "clip_text_model": ("roberta", {}),
        "codegen": ("gpt2", {"rotary_dim": 4}),
        "cohere2": ("gpt2", _GROUPED | _WINDOWED),
        "data2vec-text": ("roberta", {}),
        "deberta": ("bert", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16}),
        "deepseek_v2": ("gpt2", _ROUTED | _LATENT | _HEAD),
        "deepseek_v3": ("gpt2", _ROUTED | _LATENT | _HEAD | {"first_k_dense_replace": 1, "num_key_value_heads": 4}),
        "doge": ("gpt2", _GROUPED | _HEAD),
        "ernie": ("bert", {}),
        "esm": ("bert", {"position_embedding_type": "rotary", "token_dropout": False}),
        "eurobert": ("roberta", _GROUPED | _HEAD),
        "glm4": ("gpt2", _GROUPED | _HEAD),
        "gpt_bigcode": ("gpt2", {"multi_query": True}),
        "granite": ("gpt2", _GROUPED),
        "ibert": ("roberta", {}),
        "hunyuan_v1_dense": ("gpt2", _GROUPED | _HEAD),
        "layoutlm": ("bert", {}),
        "ministral": ("gpt2", _GROUPED | _HEAD | _WINDOWED),
        "ministral3": ("gpt2", _GROUPED | _HEAD),
        "modernbert-decoder": ("gpt2", {"local_attention": 8}),
        "mpt": ("gpt2", {}),
        "olmo": ("gpt2", {}),
        "olmo3": ("gpt2", _GROUPED | _WINDOWED),
        "roberta-prelayernorm": ("roberta", {}),
        "roformer": ("bert", {"embedding_size": 16}),
        "seed_oss": ("gpt2", _GROUPED | _HEAD),
        "smollm3": ("gpt2", _GROUPED),
        "starcoder2": ("gpt2", _GROUPED | {"sliding_window": None}),
        "xglm": ("gpt2", {}),
        "xlm-roberta-xl": ("roberta", {}),
    }
)

_LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
_EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}
_STATES = {"mamba_d_state": 4, "mamba_d_conv": 2, "mamba_dt_rank": 4, "attn_layer_period": 4, "attn_layer_offset": 3}

_GPT_OSS = _GROUPED | _HEAD | {"num_local_experts": 2, "num_experts_per_tok": 1, "layer_types": ["full_attention"] * 3}

# Settings of hybrid models with eight layers, of which only layers 3 and 7 have attention.
HYBRIDS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "jamba": _GROUPED | _STATES | {"num_experts": 2},
        "minimax": _GROUPED | _HEAD | _EXPERTS | {"layer_types": [*["linear_attention"] * 3, "full_attention"] * 2},
        "lfm2": _GROUPED | {"layer_types": ["conv", "conv", "conv", "full_attention"] * 2},
        "qwen3_next": _GROUPED | _HEAD | _LINEAR | _EXPERTS | {"shared_expert_intermediate_size": 16},
    }
)


# Families that cannot be read because of their inputs or outputs in transformers.
REFUSED: MappingProxyType[str, tuple[str, dict[str, Any]]] = MappingProxyType(
    {
        "bros": ("bert", {}),
        "canine": ("bert", {}),
        "lilt": ("roberta", {}),
        "squeezebert": ("bert", {"embedding_size": WIDTH}),
        "tapas": ("bert", {}),
        "yoso": ("bert", {}),
    }
)
# Encoder–decoders that cannot be read, with the settings of their configs.
_TWO_STACKS = {"d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
_TWO_STACKS |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
REFUSED_ENCODER_DECODERS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "led": _TWO_STACKS | {"max_encoder_position_embeddings": 66, "attention_window": [8, 8]},
        "prophetnet": {"hidden_size": WIDTH, "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4}
        | {"num_encoder_layers": 2, "num_decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
    }
)


def _tokenizer(name: str) -> Any:
    if name == "bert":
        return wordpiece(BertTokenizer)
    if name == "roberta":
        return byte_level(RobertaTokenizer, ROBERTA)
    return byte_level(GPT2Tokenizer, ("<|endoftext|>",))


def _config(family: str, tokenizer: Any, more: dict[str, Any]) -> Any:
    """Return a config with the sizes of tests/tiny_models.py, whatever their names in this family."""
    config = AutoConfig.for_model(family)
    sizes = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH}
    sizes |= {"max_position_embeddings": 66, "vocab_size": len(tokenizer)}
    names = {name: config.attribute_map.get(name, name) for name in sizes}
    ends = {f"{end}_token_id": getattr(tokenizer, f"{end}_token_id") for end in ("bos", "eos", "pad")}
    ends = {name: 0 if end is None else end for name, end in ends.items()}
    settings = {names[name]: size for name, size in sizes.items()} | ends
    for name in ("intermediate_size", "ffn_dim", "n_inner"):
        if hasattr(config, name):
            settings[name] = 64
    return AutoConfig.for_model(family, **(settings | {"initializer_range": 0.2} | more))


def build(family: str, folder: Path) -> Path:
    """Write a model of ``family`` into ``folder``: config.json, model.safetensors, tokenizer."""
    others = {name: ("gpt2", more | {"num_hidden_layers": 8}) for name, more in HYBRIDS.items()}
    if family in REFUSED_ENCODER_DECODERS:
        tokenizer, ends = _tokenizer("roberta"), {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
        sizes = ends | {"decoder_start_token_id": 2, "vocab_size": len(tokenizer), "max_position_embeddings": 66}
        config = AutoConfig.for_model(family, **sizes, **REFUSED_ENCODER_DECODERS[family])
        return write_model(AutoModelForSeq2SeqLM.from_config(config), tokenizer, folder)
    tokenizer_name, settings = (FAMILIES | others | REFUSED | {"gpt_oss": ("gpt2", _GPT_OSS)})[family]
    tokenizer = _tokenizer(tokenizer_name)
    return write_model(AutoModel.from_config(_config(family, tokenizer, settings)), tokenizer, folder)


def write_model(model: Any, tokenizer: Any, folder: Path) -> Path:
    """Write a model whose heads differ, with its tokenizer, and return the folder."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
        for bias in biases(model):
            bias.normal_(0, 0.1)
    model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder
