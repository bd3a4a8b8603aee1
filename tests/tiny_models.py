"""Write small models with random weights, one per family, with tokenizers, into folders like those from the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AlbertConfig,
    AlbertModel,
    AlbertTokenizer,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    BertModel,
    BertTokenizer,
    BigBirdConfig,
    BigBirdModel,
    BigBirdTokenizer,
    BloomConfig,
    BloomModel,
    CamembertConfig,
    CamembertModel,
    CamembertTokenizer,
    CohereConfig,
    CohereModel,
    CohereTokenizer,
    DebertaV2Config,
    DebertaV2Model,
    DebertaV2Tokenizer,
    DistilBertConfig,
    DistilBertModel,
    DistilBertTokenizer,
    ElectraConfig,
    ElectraModel,
    FalconConfig,
    FalconModel,
    Gemma2Config,
    Gemma2Model,
    Gemma3TextConfig,
    Gemma3TextModel,
    GemmaConfig,
    GemmaModel,
    GemmaTokenizer,
    GPT2Config,
    GPT2Model,
    GPT2Tokenizer,
    GPTJConfig,
    GPTJModel,
    GPTNeoConfig,
    GPTNeoModel,
    GPTNeoXConfig,
    GPTNeoXModel,
    GPTNeoXTokenizer,
    LlamaConfig,
    LlamaModel,
    LlamaTokenizer,
    LongformerConfig,
    LongformerModel,
    MistralConfig,
    MistralModel,
    MixtralConfig,
    MixtralModel,
    MobileBertConfig,
    MobileBertModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizer,
    NomicBertConfig,
    NomicBertModel,
    Olmo2Config,
    Olmo2Model,
    OPTConfig,
    OPTModel,
    Phi3Config,
    Phi3Model,
    PhiConfig,
    PhiModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2Model,
    Qwen2MoeConfig,
    Qwen2MoeModel,
    Qwen2Tokenizer,
    Qwen3Config,
    Qwen3Model,
    Qwen3MoeConfig,
    Qwen3MoeModel,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
    StableLmConfig,
    StableLmModel,
    XLMRobertaConfig,
    XLMRobertaModel,
    XLMRobertaTokenizer,
    XLNetConfig,
    XLNetModel,
    XLNetTokenizer,
)

from mha_viz.models import families

LAYERS, HEADS, WIDTH = 3, 4, 32

CORPUS = (
    "The animal didn't cross the street because it was too tired.",
    "A quick brown fox jumps over the lazy dog; isn't that what everybody's typing?",
    "Zoë's café in Zürich sells crème brûlée, 12 pieces for 3.50 each!",
    "動物は道を渡らなかった。 الحيوان не перешло 길 😀 👩‍👩‍👧",
)
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_ALBERT = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_XLM = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_LLAMA = ("<unk>", "<s>", "</s>")
_GEMMA = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
_MPNET = ("<s>", "<pad>", "</s>", "[UNK]", "<mask>")
_BIG_BIRD = ("<pad>", "</s>", "<s>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_XLNET = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
_NEOX = ("<|endoftext|>", "<|padding|>")


def wordpiece(kind: Any, special: tuple[str, ...] = _BERT) -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=220, special_tokens=list(special)))
    return kind(vocab=tokenizer.get_vocab())


def byte_level(kind: Any, special: tuple[str, ...]) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=list(special), initial_alphabet=alphabet)
    return _train_bpe(kind, tokenizer, trainer)


def _byte_fallback(kind: Any, special: tuple[str, ...]) -> Any:
    """Return a tokenizer that writes spaces as "▁", and characters that its vocabulary lacks as bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    return _train_bpe(kind, tokenizer, trainers.BpeTrainer(vocab_size=450, special_tokens=[*special, *byte_tokens]))


def _train_bpe(kind: Any, tokenizer: Tokenizer, trainer: Any) -> Any:
    """Train a byte-pair tokenizer and return it as the transformers class ``kind``."""
    tokenizer.train_from_iterator(CORPUS, trainer)
    trained = json_of(tokenizer)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in trained["merges"]]
    return kind(vocab=trained["vocab"], merges=merges)


def _modernbert_tokenizer() -> Any:
    """Return ModernBERT's tokenizer: byte-level subwords with BERT's special tokens."""
    backend = byte_level(GPT2Tokenizer, _BERT).backend_tokenizer
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ends)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=inputs, **dict(zip(names, _BERT, strict=True))
    )


def unigram(kind: Any, special: tuple[str, ...], *steps: Any, unknown: str = "<unk>") -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=list(special), unk_token=unknown)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return kind(vocab=[(piece, score) for piece, score in json_of(tokenizer)["vocab"]])


def json_of(tokenizer: Any) -> Any:
    return json.loads(tokenizer.to_str())["model"]


def _config(kind: Any, tokenizer: Any, **other: Any) -> Any:
    """Return a config whose initial weights are ten times as large as usual.

    This makes attention far from uniform, so that a wrong head cannot look right.
    """
    return kind(vocab_size=len(tokenizer), initializer_range=0.2, **other)


def _bert_like(config: Any, tokenizer: Any, **other: Any) -> Any:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 64}
    return _config(config, tokenizer, **(sizes | {"max_position_embeddings": 64} | other))


def _bert(**other: Any) -> tuple[Any, Any]:
    tokenizer = wordpiece(BertTokenizer)
    return BertModel(_bert_like(BertConfig, tokenizer, **other)), tokenizer


def _bert_of_shape(layers: int, heads: int) -> tuple[Any, Any]:
    """Return a model with many layers and heads, each as small as possible."""
    return _bert(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=2 * heads)


def _distilbert() -> tuple[Any, Any]:
    tokenizer = wordpiece(DistilBertTokenizer)
    sizes = {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 64, "max_position_embeddings": 64}
    return DistilBertModel(_config(DistilBertConfig, tokenizer, **sizes)), tokenizer


def _electra() -> tuple[Any, Any]:
    tokenizer = wordpiece(BertTokenizer)  # ELECTRA's own
    return ElectraModel(_bert_like(ElectraConfig, tokenizer, embedding_size=16)), tokenizer


def _roberta_like(model: Any, config: Any, tokenizer: Any) -> tuple[Any, Any]:
    positions = {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": tokenizer.pad_token_id}
    return model(_bert_like(config, tokenizer, **positions)), tokenizer


def _roberta() -> tuple[Any, Any]:
    return _roberta_like(RobertaModel, RobertaConfig, byte_level(RobertaTokenizer, ROBERTA))


def _camembert() -> tuple[Any, Any]:
    return _roberta_like(CamembertModel, CamembertConfig, unigram(CamembertTokenizer, _XLM))


def _xlm_roberta() -> tuple[Any, Any]:
    return _roberta_like(XLMRobertaModel, XLMRobertaConfig, unigram(XLMRobertaTokenizer, _XLM))


def _mobilebert() -> tuple[Any, Any]:
    tokenizer = wordpiece(BertTokenizer)  # MobileBERT's own
    narrow = {"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 2}
    return MobileBertModel(_bert_like(MobileBertConfig, tokenizer, **narrow)), tokenizer


def _modernbert() -> tuple[Any, Any]:
    tokenizer = _modernbert_tokenizer()
    ends = {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
    special = {f"{name}_token_id": ends["sep_token_id"] for name in ("bos", "eos")} | {"pad_token_id": 0} | ends
    window = {"local_attention": 8, "initializer_cutoff_factor": 100.0}
    config = _bert_like(ModernBertConfig, tokenizer, **special, **window)
    return ModernBertModel(config), tokenizer


def _albert() -> tuple[Any, Any]:
    plain = (normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase())
    tokenizer = unigram(AlbertTokenizer, _ALBERT, *plain)
    return AlbertModel(_bert_like(AlbertConfig, tokenizer, embedding_size=16, hidden_act="gelu_new")), tokenizer


def _gpt2() -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    sizes = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
    return GPT2Model(_config(GPT2Config, tokenizer, **sizes)), tokenizer


def _opt(**other: Any) -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    sizes = {"ffn_dim": 64, "word_embed_proj_dim": WIDTH}
    return OPTModel(_bert_like(OPTConfig, tokenizer, **(sizes | other))), tokenizer


def _llama() -> tuple[Any, Any]:
    tokenizer = _byte_fallback(LlamaTokenizer, _LLAMA)
    return LlamaModel(_bert_like(LlamaConfig, tokenizer, num_key_value_heads=2)), tokenizer


def _gemma2() -> tuple[Any, Any]:
    tokenizer = _byte_fallback(GemmaTokenizer, _GEMMA)
    sizes = {"num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 8}
    return Gemma2Model(_bert_like(Gemma2Config, tokenizer, **sizes, attn_logit_softcapping=5.0)), tokenizer


def _llama_like(model: Any, config: Any, tokenizer: Any, **other: Any) -> tuple[Any, Any]:
    special = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    return model(_bert_like(config, tokenizer, **({"num_key_value_heads": 2} | special | other))), tokenizer


def _mistral() -> tuple[Any, Any]:
    return _llama_like(MistralModel, MistralConfig, _byte_fallback(LlamaTokenizer, _LLAMA), sliding_window=8)


def _qwen2() -> tuple[Any, Any]:
    return _llama_like(Qwen2Model, Qwen2Config, byte_level(Qwen2Tokenizer, ("<|endoftext|>",)))


def _qwen3() -> tuple[Any, Any]:
    return _llama_like(Qwen3Model, Qwen3Config, byte_level(Qwen2Tokenizer, ("<|endoftext|>",)), head_dim=16)


def _gemma() -> tuple[Any, Any]:
    return _llama_like(GemmaModel, GemmaConfig, _byte_fallback(GemmaTokenizer, _GEMMA), head_dim=8)


def _gemma3() -> tuple[Any, Any]:
    window = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
    tokenizer = _byte_fallback(GemmaTokenizer, _GEMMA)
    return _llama_like(Gemma3TextModel, Gemma3TextConfig, tokenizer, head_dim=8, query_pre_attn_scalar=8, **window)


def _phi() -> tuple[Any, Any]:
    return _llama_like(PhiModel, PhiConfig, byte_level(GPT2Tokenizer, ("<|endoftext|>",)))


def _phi3() -> tuple[Any, Any]:
    positions = {"original_max_position_embeddings": 64}
    return _llama_like(Phi3Model, Phi3Config, _byte_fallback(LlamaTokenizer, _LLAMA), **positions)


def _gpt_neox(**other: Any) -> tuple[Any, Any]:
    tokenizer = byte_level(GPTNeoXTokenizer, _NEOX)
    return GPTNeoXModel(_bert_like(GPTNeoXConfig, tokenizer, **other)), tokenizer


def _gptj() -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    sizes = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64, "rotary_dim": 4}
    return GPTJModel(_config(GPTJConfig, tokenizer, **sizes)), tokenizer


def _gpt_neo() -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    sizes = {"hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "max_position_embeddings": 64}
    window = {"window_size": 8, "attention_types": [[["global", "local", "global"], 1]]}
    return GPTNeoModel(_config(GPTNeoConfig, tokenizer, **sizes, **window)), tokenizer


def _cohere(**other: Any) -> tuple[Any, Any]:
    tokenizer = byte_level(CohereTokenizer, ("<PAD>", "<UNK>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"))
    return _llama_like(CohereModel, CohereConfig, tokenizer, **other)


def _olmo2() -> tuple[Any, Any]:
    return _llama_like(Olmo2Model, Olmo2Config, byte_level(GPT2Tokenizer, ("<|endoftext|>",)))


def _stablelm(**other: Any) -> tuple[Any, Any]:
    return _llama_like(StableLmModel, StableLmConfig, byte_level(GPT2Tokenizer, ("<|endoftext|>",)), **other)


def _mixtral() -> tuple[Any, Any]:
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8}
    return _llama_like(MixtralModel, MixtralConfig, _byte_fallback(LlamaTokenizer, _LLAMA), **experts)


def _qwen_moe(model: Any, config: Any, **other: Any) -> tuple[Any, Any]:
    """Return a model in which every layer has four experts, two of which are used for each token."""
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    tokenizer = byte_level(Qwen2Tokenizer, ("<|endoftext|>",))
    return _llama_like(model, config, tokenizer, **experts, **other)


def _qwen2_moe() -> tuple[Any, Any]:
    window = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}
    return _qwen_moe(Qwen2MoeModel, Qwen2MoeConfig, shared_expert_intermediate_size=16, **window)


def _qwen3_moe() -> tuple[Any, Any]:
    return _qwen_moe(Qwen3MoeModel, Qwen3MoeConfig, head_dim=16)


def _bloom() -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    tokenizer.model_max_length = 64  # the model itself has no limit
    sizes = {"hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    return BloomModel(_config(BloomConfig, tokenizer, **sizes)), tokenizer


def _mpnet() -> tuple[Any, Any]:
    tokenizer = wordpiece(MPNetTokenizer, _MPNET)
    return MPNetModel(_bert_like(MPNetConfig, tokenizer, max_position_embeddings=66)), tokenizer


def _deberta() -> tuple[Any, Any]:
    special = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    tokenizer = unigram(DebertaV2Tokenizer, special, unknown="[UNK]")
    published_settings = {
        "relative_attention": True,
        "position_buckets": 16,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    }
    return DebertaV2Model(_bert_like(DebertaV2Config, tokenizer, **published_settings)), tokenizer


def _big_bird() -> tuple[Any, Any]:
    tokenizer = unigram(BigBirdTokenizer, _BIG_BIRD)
    return BigBirdModel(_bert_like(BigBirdConfig, tokenizer, attention_type="original_full")), tokenizer


def _nomic_bert() -> tuple[Any, Any]:
    tokenizer = wordpiece(BertTokenizer)
    return NomicBertModel(_bert_like(NomicBertConfig, tokenizer)), tokenizer


def _falcon(**other: Any) -> tuple[Any, Any]:
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    return FalconModel(_bert_like(FalconConfig, tokenizer, **({"ffn_hidden_size": 64} | other))), tokenizer


def _xlnet(**other: Any) -> tuple[Any, Any]:
    tokenizer = unigram(XLNetTokenizer, _XLNET)
    tokenizer.model_max_length = 64  # the model itself has no limit
    sizes = {"d_model": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "d_inner": 64}
    return XLNetModel(_config(XLNetConfig, tokenizer, **(sizes | other))), tokenizer


def _longformer(**other: Any) -> tuple[Any, Any]:
    tokenizer = byte_level(RobertaTokenizer, ROBERTA)
    positions = {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": tokenizer.pad_token_id}
    windows = {"attention_window": [8, 16, 4]}
    return LongformerModel(_bert_like(LongformerConfig, tokenizer, **(positions | windows | other))), tokenizer


FAMILIES: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {
        "bert": _bert,
        "distilbert": _distilbert,
        "roberta": _roberta,
        "electra": _electra,
        "albert": _albert,
        "gpt2": _gpt2,
        "camembert": _camembert,
        "xlm-roberta": _xlm_roberta,
        "mobilebert": _mobilebert,
        "modernbert": _modernbert,
        "opt": _opt,
        "llama": _llama,
        "gemma2": _gemma2,
        "big_bird": _big_bird,
        "bloom": _bloom,
        "cohere": _cohere,
        "deberta-v2": _deberta,
        "falcon": _falcon,
        "gemma": _gemma,
        "gemma3_text": _gemma3,
        "gpt_neo": _gpt_neo,
        "gpt_neox": _gpt_neox,
        "gptj": _gptj,
        "longformer": _longformer,
        "mistral": _mistral,
        "mixtral": _mixtral,
        "mpnet": _mpnet,
        "nomic_bert": _nomic_bert,
        "olmo2": _olmo2,
        "phi": _phi,
        "phi3": _phi3,
        "qwen2": _qwen2,
        "qwen2_moe": _qwen2_moe,
        "qwen3": _qwen3,
        "qwen3_moe": _qwen3_moe,
        "stablelm": _stablelm,
        "xlnet": _xlnet,
    }
)
# One family for each kind of tokenizer above: normalisation, model and special tokens.
TOKENIZERS = (
    *("albert", "bert", "big_bird", "deberta-v2", "gemma", "gpt2", "gpt_neox", "llama", "mpnet", "qwen2", "roberta"),
    *("xlm-roberta", "xlnet"),
)
# One family for each way of recording attention: in straight passes, computed here with and without transformers'
# loop, by the family's own function with and without shared keys, by hooks, and rewritten.
RECORDED = ("albert", "bert", "bloom", "deberta-v2", "falcon", "gpt2", "llama", "longformer", "opt", "xlnet")
WORDLESS = tuple(name for name in FAMILIES if families.FAMILIES[name].no_words_reason)
TRACED = tuple(
    name for name in FAMILIES if not families.FAMILIES[name].opaque_reason
)  # families whose steps can be shown
CAUSAL = tuple(name for name in FAMILIES if families.FAMILIES[name].causal in (True, "not use_bidirectional_attention"))
# Variants of families, with the settings by which they differ.
OTHERS = MappingProxyType(
    {
        "opt behind": partial(_opt, do_layer_norm_before=False),
        "gpt_neox in turn": partial(_gpt_neox, use_parallel_residual=False),
        "falcon in groups": partial(_falcon, new_decoder_architecture=True, num_kv_heads=2),
        "falcon of two norms": partial(_falcon, multi_query=False, parallel_attn=False, bias=True),
        "falcon by distance": partial(_falcon, multi_query=False, parallel_attn=False, bias=True, alibi=True),
        "cohere of normed heads": partial(_cohere, use_qk_norm=True),
        "stablelm in parallel": partial(_stablelm, use_parallel_residual=True, use_qkv_bias=True),
        "stablelm of normed heads": partial(_stablelm, qk_layernorm=True),
        "xlnet to the left": partial(_xlnet, attn_type="uni"),
    }
)
SHAPES: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {f"bert {layers}x{heads}": partial(_bert_of_shape, layers, heads) for layers, heads in ((12, 12), (24, 16))}
)


def _make_word_model(family: str) -> tuple[Any, Any]:
    """Return a model that predicts masked or next words."""
    base, tokenizer = FAMILIES[family]()
    kind: Any = AutoModelForCausalLM if family in CAUSAL else AutoModelForMaskedLM
    return kind.from_config(base.config), tokenizer


ANSWERING: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {f"{family} words": partial(_make_word_model, family) for family in FAMILIES if family not in WORDLESS}
)
WITH_PAIRS = tuple(name for name in FAMILIES if name not in CAUSAL)


def build(family: str, folder: Path, seed: int = 0) -> Path:
    """Write a model named in FAMILIES, SHAPES, OTHERS or ANSWERING into ``folder``, and return the folder.

    The files are config.json, model.safetensors and those of the tokenizer.
    """
    torch.manual_seed(seed)
    model, tokenizer = (FAMILIES | SHAPES | OTHERS | ANSWERING)[family]()
    with torch.no_grad():
        for bias in biases(model):  # they are initially zero, so that a missing one would go unnoticed
            bias.normal_(0, 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def biases(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    return (p for name, p in model.named_parameters() if name.endswith("bias"))


def save_model(model: Any, folder: Path) -> Path:
    """Write ``model`` with random weights, and GPT-2's kind of tokenizer, and return the folder."""
    torch.manual_seed(1)
    tokenizer = byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
