"""Describe the model families that can be read, one row per family.

Everything specific to a family, with one stack of layers or two, is in its row. The module imports neither torch nor
transformers, so that menus can open and folders can be checked before those are loaded. A new family needs a row here
and a tiny model in ``tests/tiny_models.py``, whose attention is compared with that of transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

from mha_viz.errors import ModelUnsupported, ShapeError
from mha_viz.model_names import quote_model
from mha_viz.request import CROSS, DECODER

# Either a fact of the family, or the name of an entry in config.json that decides. The prefix "not " negates the entry;
# "name=value" compares the entry with a value.
Setting = bool | str


class Sizes(NamedTuple):
    """Names of the size entries in a family's config.json."""

    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    width: str = "hidden_size"
    feed_forward: str = "intermediate_size"
    positions: str = "max_position_embeddings"


class TwoStacks(NamedTuple):
    """Names of the size entries of both stacks in an encoder–decoder's config.json.

    Each layer of the decoder attends to the target first and to the source second.
    """

    encoder: Sizes
    decoder: Sizes


def layer_index(_: Any, layer: int) -> tuple[int, ...]:
    """Return the indices in a module path for families with one module per layer."""
    return (layer,)


def group_index(config: Any, layer: int) -> tuple[int, ...]:
    """Return the group and the index within the group of an ALBERT layer.

    Groups of layers share their weights, and a group may hold several layers.
    """
    repetition, index = divmod(layer, config.inner_group_num)
    return int(repetition / (config.num_hidden_layers / config.num_hidden_groups)), index


class Family(NamedTuple):
    """Description of a family: the paths of its attention modules and the way it computes attention.

    Attributes:
        holder: path of the module that has the linear layers ``inputs``. "{0}" and "{1}" in a path stand for
            ``numbers(config, layer)``.
        inputs: names of W_Q, W_K and W_V, or of one layer that holds all three side by side.
        output: path of W_O.
        plain: its eager attention is exactly softmax(Q Kᵀ · scaling + mask) V, so it can be computed directly into the
            memory of the result.
        has_bert_layers: its layers are those of BERT, with the same names and in sequence, so they can be run without
            transformers' own loop.
        pre_norm: a layer normalises its input before it passes it to its attention.
        causal: no token attends to a later one.
        parallel: the feed-forward part does not see the output of the attention in the same layer.
        gelu: a linear layer and the activation after it. They become one operation where the activation is the exact
            GELU.
        sizes: names of the size entries in config.json.
        numbers: computes the numbers in a path from the config and the layer.
        opaque_reason: the reason why the steps inside a head cannot be shown; empty if they can be.
        final_norm: path of the module that normalises the last states, in families where the output of a layer's heads,
            times W_O, is added to the input of that module. Empty elsewhere.
        interleaved: one layer holds all three projections group by group: the queries of the heads that share a key,
            then that key and its value, then the next group.
        probabilities: for families whose attention cannot be replaced in transformers, the path below ``holder`` of the
            module that receives the weights before they average values.
        per_head: the name of an argument of ``holder`` that has one row per head of each sentence, in such families.
        rotary: queries and keys are rotated by their positions, using the cosines and sines passed to ``holder``.
        rewritten: transformers has no module for ``probabilities`` either, so this package computes the attention
            (:mod:`mha_viz.models.reading.attention_rewrites`), and the paths lead to its own modules.
        no_words_reason: the reason why a model with weights for words cannot be asked for a word; empty if it can be.
        adjacent: rotation pairs entries 2i and 2i + 1 of queries and keys, not i and i + r/2.
        is_cross: keys and values are computed from the output of another stack.
        sines_first: ``holder`` receives sines before cosines, with one sine and one cosine per pair of entries.
    """

    holder: str
    inputs: tuple[str, ...]
    output: str
    plain: bool = False
    has_bert_layers: bool = False
    pre_norm: Setting = False
    causal: Setting = False
    parallel: Setting = False
    gelu: tuple[str, str] | None = None
    sizes: Sizes = Sizes()
    numbers: Callable[[Any, int], tuple[int, ...]] = layer_index
    opaque_reason: str = ""
    final_norm: str = ""
    interleaved: bool = False
    probabilities: str = ""
    per_head: str = ""
    rotary: Setting = False
    rewritten: bool = False
    no_words_reason: str = ""
    adjacent: bool = False
    is_cross: bool = False
    sines_first: bool = False


_QUERY_KEY_VALUE = ("query", "key", "value")
_QKV_PROJ = ("q_proj", "k_proj", "v_proj")
_SOFT_CAPPING = "it bends large q · k towards a limit before the softmax"
_DISTANCE_BIAS = "it adds a number to q · k that depends on the distance between the two tokens"
_DISENTANGLED = (
    "it adds terms to q · k in which the query and the key are compared with the distance between the two tokens"
)
_BY_DISTANCE_AND_TEXT = (
    "it adds terms to q · k in which the query is compared with the distance between the two tokens, and with whether "
    "both belong to the same text"
)
_NARROW_KEYS = (
    "its queries and keys are made from a narrower vector than its values, so the heads of a layer have no common "
    "input x"
)

_QK_NORM = "it normalises the queries and keys of each head in its own way"
OPAQUE_SETTINGS = MappingProxyType(  # by the entry of config.json that decides
    {"alibi": _DISTANCE_BIAS, "qk_layernorm": _QK_NORM, "use_qk_norm": _QK_NORM}
)

_BERT = Family(
    "encoder.layer.{0}.attention.self",
    _QUERY_KEY_VALUE,
    "encoder.layer.{0}.attention.output.dense",
    plain=True,
    has_bert_layers=True,
    causal="is_decoder",
    gelu=("dense", "intermediate_act_fn"),
)
_BERT_WITH_DROPOUT = _BERT._replace(plain=False, has_bert_layers=False, gelu=None, probabilities="dropout")
_LLAMA = Family(
    "layers.{0}.self_attn",
    _QKV_PROJ,
    "layers.{0}.self_attn.o_proj",
    pre_norm=True,
    causal=True,
    final_norm="norm",
    rotary=True,
)

FAMILIES = MappingProxyType(  # by "model_type" in config.json
    {
        "albert": Family(
            "encoder.albert_layer_groups.{0}.albert_layers.{1}.attention",
            _QUERY_KEY_VALUE,
            "encoder.albert_layer_groups.{0}.albert_layers.{1}.attention.dense",
            plain=True,
            gelu=("ffn", "activation"),
            numbers=group_index,
        ),
        "bert": _BERT,
        "big_bird": _BERT_WITH_DROPOUT,
        "bloom": Family(
            "h.{0}.self_attention",
            ("query_key_value",),
            "h.{0}.self_attention.dense",
            pre_norm=True,
            causal=True,
            sizes=Sizes("n_layer", "n_head", "n_embed"),
            opaque_reason=_DISTANCE_BIAS,
            interleaved=True,
            probabilities="attention_dropout",
            per_head="alibi",
        ),
        "camembert": _BERT,
        "cohere": _LLAMA._replace(parallel=True, adjacent=True),
        "deberta-v2": _BERT_WITH_DROPOUT._replace(
            inputs=("query_proj", "key_proj", "value_proj"), causal=False, opaque_reason=_DISENTANGLED
        ),
        "distilbert": Family(
            "transformer.layer.{0}.attention",
            ("q_lin", "k_lin", "v_lin"),
            "transformer.layer.{0}.attention.out_lin",
            plain=True,
            gelu=("lin1", "activation"),
            sizes=Sizes("n_layers", "n_heads", "dim", "hidden_dim"),
        ),
        "electra": _BERT,
        "falcon": Family(
            "h.{0}.self_attention",
            ("query_key_value",),
            "h.{0}.self_attention.dense",
            pre_norm=True,
            causal=True,
            parallel="parallel_attn",
            gelu=("dense_h_to_4h", "act"),
            sizes=Sizes(feed_forward="ffn_hidden_size"),
            final_norm="ln_f",
            interleaved=True,
            rotary="not alibi",
            rewritten=True,
        ),
        "gemma": _LLAMA._replace(final_norm=""),  # its norm scales by 1 + weight
        # Normalises W_O's output before adding it.
        "gemma2": _LLAMA._replace(final_norm="", opaque_reason=_SOFT_CAPPING),
        "gemma3_text": _LLAMA._replace(final_norm="", causal="not use_bidirectional_attention"),
        "gpt2": Family(
            "h.{0}.attn",
            ("c_attn",),
            "h.{0}.attn.c_proj",
            plain=True,
            pre_norm=True,
            causal=True,
            sizes=Sizes("n_layer", "n_head", "n_embd", "n_inner", "n_positions"),
            final_norm="ln_f",
        ),
        "gpt_neo": Family(
            "h.{0}.attn.attention",
            _QKV_PROJ,
            "h.{0}.attn.attention.out_proj",
            plain=True,
            pre_norm=True,
            causal=True,
            sizes=Sizes("num_layers", "num_heads"),
            final_norm="ln_f",
            rewritten=True,
        ),
        "gpt_neox": Family(
            "layers.{0}.attention",
            ("query_key_value",),
            "layers.{0}.attention.dense",
            pre_norm=True,
            causal=True,
            parallel="use_parallel_residual",
            final_norm="final_layer_norm",
            interleaved=True,
            rotary=True,
        ),
        "gptj": Family(
            "h.{0}.attn",
            _QKV_PROJ,
            "h.{0}.attn.out_proj",
            plain=True,
            pre_norm=True,
            causal=True,
            parallel=True,
            sizes=Sizes("n_layer", "n_head", "n_embd", "n_inner", "n_positions"),
            final_norm="ln_f",
            rotary=True,
            rewritten=True,
            adjacent=True,
            sines_first=True,
        ),
        "llama": _LLAMA,
        "longformer": _BERT._replace(has_bert_layers=False, causal=False, rewritten=True),
        "mistral": _LLAMA,
        "mixtral": _LLAMA,
        "mobilebert": _BERT._replace(plain=False, has_bert_layers=False, causal=False, opaque_reason=_NARROW_KEYS),
        "modernbert": Family("layers.{0}.attn", ("Wqkv",), "layers.{0}.attn.Wo", pre_norm=True, rotary=True),
        "mpnet": Family(
            "encoder.layer.{0}.attention.attn",
            ("q", "k", "v"),
            "encoder.layer.{0}.attention.attn.o",
            opaque_reason=_DISTANCE_BIAS,
            probabilities="dropout",
        ),
        "nomic_bert": _LLAMA._replace(pre_norm=False, causal=False, final_norm=""),
        "olmo2": _LLAMA._replace(pre_norm=False, final_norm=""),  # normalises W_O's output before adding it
        "opt": Family(
            "decoder.layers.{0}.self_attn",
            _QKV_PROJ,
            "decoder.layers.{0}.self_attn.out_proj",
            pre_norm="do_layer_norm_before",
            causal=True,
            sizes=Sizes(feed_forward="ffn_dim"),
            final_norm="decoder.final_layer_norm",
        ),
        "phi": _LLAMA._replace(output="layers.{0}.self_attn.dense", parallel=True, final_norm="final_layernorm"),
        "phi3": _LLAMA._replace(inputs=("qkv_proj",)),
        "qwen2": _LLAMA,
        "qwen2_moe": _LLAMA,
        "qwen3": _LLAMA,
        "qwen3_moe": _LLAMA,
        "roberta": _BERT,
        "stablelm": _LLAMA._replace(parallel="use_parallel_residual"),
        "xlm-roberta": _BERT,
        "xlnet": Family(
            "layer.{0}.rel_attn",
            ("q", "k", "v"),
            "layer.{0}.rel_attn.o",
            plain=True,
            causal="attn_type=uni",
            gelu=("layer_1", "activation_function"),
            sizes=Sizes("n_layer", "n_head", "d_model", "d_inner"),
            opaque_reason=_BY_DISTANCE_AND_TEXT,
            rewritten=True,
            no_words_reason="it was trained to predict words in random orders, with a second stream of vectors that "
            "reading a text does not use",
        ),
    }
)

_BART = TwoStacks(
    Sizes("encoder_layers", "encoder_attention_heads", "d_model", "encoder_ffn_dim"),
    Sizes("decoder_layers", "decoder_attention_heads", "d_model", "decoder_ffn_dim"),
)
_T5 = TwoStacks(
    Sizes("num_layers", "num_heads", "d_model", "d_ff", "n_positions"),
    Sizes("num_decoder_layers", "num_heads", "d_model", "d_ff", "n_positions"),
)

ENCODER_DECODERS = MappingProxyType(  # by "model_type" in config.json
    {"bart": _BART, "marian": _BART, "mbart": _BART, "mt5": _T5, "pegasus": _BART, "t5": _T5}
)

_T5_ENCODER = Family(
    "block.{0}.layer.0.SelfAttention",
    ("q", "k", "v"),
    "block.{0}.layer.0.SelfAttention.o",
    pre_norm=True,
    opaque_reason=_DISTANCE_BIAS,
)
_T5_DECODER = _T5_ENCODER._replace(
    holder="block.{0}.layer.{1}.SelfAttention",
    output="block.{0}.layer.{1}.SelfAttention.o",
    causal=True,
    numbers=lambda _, attention: divmod(attention, 2),
)
_T5_CROSS = _T5_DECODER._replace(
    holder="block.{0}.layer.{1}.EncDecAttention",
    output="block.{0}.layer.{1}.EncDecAttention.o",
    causal=False,
    opaque_reason="",
    is_cross=True,
)

# Encoder–decoders whose scores can be decomposed, by "model_type": the row of the encoder, then those of the decoder's
# two attentions. A decoder layer has two attentions, which are numbered consecutively.
STACKS = MappingProxyType(dict.fromkeys(("mt5", "t5"), (_T5_ENCODER, (_T5_DECODER, _T5_CROSS))))


# Other encoder–decoders. Some of them can be recognised only by their "model_type".
OTHER_ENCODER_DECODERS = frozenset(
    {"bigbird_pegasus", "blenderbot", "blenderbot-small", "encoder-decoder", "fsmt", "led", "longt5", "m2m_100", "mvp"}
    | {"nllb-moe", "pegasus_x", "plbart", "prophetnet", "switch_transformers", "umt5"}
)


BY_HAND = (
    "Compute its attention yourself and draw it with mha_viz.Attention.from_tensors(outputs.attentions, tokens), or "
    "choose another model."
)


def is_listed(family: str) -> bool:
    """Return whether a family has a row here.

    For all other families, only the attention weights can be read (:mod:`mha_viz.models.reading.unlisted_families`).
    """
    return family in FAMILIES or family in ENCODER_DECODERS


def has_weights(kind: str) -> bool:
    """Return whether a layer of this kind, as named in a config's ``layer_types``, has attention weights."""
    return kind == "hybrid" or ("attention" in kind and "linear" not in kind)


def make_weights_only_error(family: str) -> ModelUnsupported:
    """Return the error for requests that need more than the weights of a model without a row."""
    return ModelUnsupported(
        f"For models of the family {family} only the attention weights can be read (weights only), not norms, parts of "
        "a score, predictions, the effect of switching heads off or the steps inside a head.",
        "Look at its weights, or choose a model of a family such as BERT, GPT-2 or Llama.",
    )


def make_cannot_open_error(name: str, reason: str) -> ModelUnsupported:
    """Return the error for a model without a row that a library fails to open for the given ``reason``."""
    return ModelUnsupported(
        f"transformers cannot open {quote_model(name)}{reason}.",
        f"If its files are complete, its family cannot be read here. {BY_HAND}",
    )


def make_no_shares_error(name: str, error: ShapeError, remedy: str) -> ModelUnsupported:
    """Return the error for a model whose attention rows do not sum to 1."""
    problem = f"{error.problem[:1].lower()}{error.problem[1:]}"
    return ModelUnsupported(f"{quote_model(name)} gives no weights that can be drawn: {problem}", remedy)


def find_family(config: Any, attention: int = 0) -> Family:
    """Return the family of a model with one stack, or of one stack of an encoder–decoder.

    ``attention`` is the number of the attention within a decoder. Raises ModelUnsupported for a family without a row.
    """
    if config.model_type in FAMILIES:
        return FAMILIES[config.model_type]
    if config.model_type not in STACKS:
        raise make_weights_only_error(config.model_type)
    encoder, decoder = STACKS[config.model_type]
    return decoder[attention % 2] if config.is_decoder else encoder


def locate_attention(config: Any, attention: int) -> tuple[int, str]:
    """Return the layer of an attention and, in a decoder, whether it is self- or cross-attention.

    The second value is empty outside of the decoder of an encoder–decoder.
    """
    if config.model_type not in STACKS or not config.is_decoder:
        return attention, ""
    return attention // 2, CROSS if find_family(config, attention).is_cross else DECODER


def is_setting_true(setting: Setting, config: Any) -> bool:
    """Return whether a row's setting is true for a model with this config."""
    if isinstance(setting, bool):
        return setting
    name, _, value = setting.removeprefix("not ").partition("=")
    entry = getattr(config, name, False)
    return (entry == value if value else bool(entry)) != setting.startswith("not ")


def is_causal(config: Any) -> bool:
    """Return whether a one-stack model with this config is causal: no token attends to a later one."""
    family = FAMILIES.get(config.model_type)
    return family is not None and is_setting_true(family.causal, config)


def find_opaque_reason(config: Any, attention: int = 0) -> str:
    """Return the reason why the steps inside a head of this model cannot be shown; empty if they can be.

    ``attention`` is as for :func:`find_family`.
    """
    reasons = (reason for setting, reason in OPAQUE_SETTINGS.items() if is_setting_true(setting, config))
    return find_family(config, attention).opaque_reason or next(reasons, "")


def count_key_heads(config: Any) -> int:
    """Return the number of key–value heads per layer. It is smaller than the number of heads if heads share them."""
    heads = int(config.num_attention_heads)
    if config.model_type != "falcon":
        return int(getattr(config, "num_key_value_heads", None) or heads)
    if getattr(config, "new_decoder_architecture", False):
        return int(config.num_kv_heads or heads)
    return 1 if getattr(config, "multi_query", True) else heads


def count_layers(config: Any) -> int:
    """Return the number of attention layers. ALBERT may run several per entry of ``num_hidden_layers``."""
    return int(config.num_hidden_layers) * int(getattr(config, "inner_group_num", 1))
