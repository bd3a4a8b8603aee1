"""Small models with random weights, one a family, with tokenizers trained on the spot, in folders as from the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AlbertConfig,
    AlbertModel,
    AlbertTokenizer,
    BertConfig,
    BertModel,
    BertTokenizer,
    DistilBertConfig,
    DistilBertModel,
    DistilBertTokenizer,
    ElectraConfig,
    ElectraModel,
    GPT2Config,
    GPT2Model,
    GPT2Tokenizer,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
)

LAYERS, HEADS, WIDTH = 3, 4, 32

_CORPUS = (
    "The animal didn't cross the street because it was too tired.",
    "A quick brown fox jumps over the lazy dog; isn't that what everybody's typing?",
    "Zoë's café in Zürich sells crème brûlée, 12 pieces for 3.50 each!",
    "動物は道を渡らなかった。 الحيوان не перешло 길 😀 👩‍👩‍👧",
)
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_ALBERT = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")


def _wordpiece(kind: Any) -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(_CORPUS, trainers.WordPieceTrainer(vocab_size=220, special_tokens=list(_BERT)))
    return kind(vocab=tokenizer.get_vocab())


def _byte_level(kind: Any, special: tuple[str, ...]) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=list(special), initial_alphabet=alphabet)
    tokenizer.train_from_iterator(_CORPUS, trainer)
    folder_files = _json(tokenizer)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in folder_files["merges"]]
    return kind(vocab=folder_files["vocab"], merges=merges)


def _unigram(kind: Any) -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=list(_ALBERT), unk_token="<unk>")
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return kind(vocab=[(piece, score) for piece, score in _json(tokenizer)["vocab"]])


def _json(tokenizer: Any) -> Any:
    return json.loads(tokenizer.to_str())["model"]


def _config(kind: Any, tokenizer: Any, **other: Any) -> Any:
    """Weights ten times larger than usual: attention far from uniform, so that a wrong head cannot look right."""
    return kind(vocab_size=len(tokenizer), initializer_range=0.2, **other)


def _bert_like(config: Any, tokenizer: Any, **other: Any) -> Any:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 64}
    return _config(config, tokenizer, **(sizes | {"max_position_embeddings": 64} | other))


def _bert(**other: Any) -> tuple[Any, Any]:
    tokenizer = _wordpiece(BertTokenizer)
    return BertModel(_bert_like(BertConfig, tokenizer, **other)), tokenizer


def _bert_of_shape(layers: int, heads: int) -> tuple[Any, Any]:
    """As many layers and heads as a large model, each as small as can be."""
    return _bert(num_hidden_layers=layers, num_attention_heads=heads, hidden_size=2 * heads)


def _distilbert() -> tuple[Any, Any]:
    tokenizer = _wordpiece(DistilBertTokenizer)
    sizes = {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 64, "max_position_embeddings": 64}
    return DistilBertModel(_config(DistilBertConfig, tokenizer, **sizes)), tokenizer


def _electra() -> tuple[Any, Any]:
    tokenizer = _wordpiece(BertTokenizer)  # ELECTRA's own
    return ElectraModel(_bert_like(ElectraConfig, tokenizer, embedding_size=16)), tokenizer


def _roberta() -> tuple[Any, Any]:
    tokenizer = _byte_level(RobertaTokenizer, _ROBERTA)
    positions = {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": tokenizer.pad_token_id}
    return RobertaModel(_bert_like(RobertaConfig, tokenizer, **positions)), tokenizer


def _albert() -> tuple[Any, Any]:
    tokenizer = _unigram(AlbertTokenizer)
    return AlbertModel(_bert_like(AlbertConfig, tokenizer, embedding_size=16, hidden_act="gelu_new")), tokenizer


def _gpt2() -> tuple[Any, Any]:
    tokenizer = _byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    sizes = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
    return GPT2Model(_config(GPT2Config, tokenizer, **sizes)), tokenizer


FAMILIES: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {
        "bert": _bert,
        "distilbert": _distilbert,
        "roberta": _roberta,
        "electra": _electra,
        "albert": _albert,
        "gpt2": _gpt2,
    }
)
SHAPES: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {f"bert {layers}x{heads}": partial(_bert_of_shape, layers, heads) for layers, heads in ((12, 12), (24, 16))}
)
WITH_PAIRS = tuple(name for name in FAMILIES if name != "gpt2")


def build(family: str, folder: Path, seed: int = 0) -> Path:
    """Write a model of ``family`` (or of SHAPES) into ``folder``: config.json, model.safetensors and the tokenizer."""
    torch.manual_seed(seed)
    model, tokenizer = (FAMILIES | SHAPES)[family]()
    with torch.no_grad():
        for bias in _biases(model):  # they start at zero: an omitted one would not show
            bias.normal_(0, 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _biases(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    return (p for name, p in model.named_parameters() if name.endswith("bias"))
