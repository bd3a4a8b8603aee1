"""Write small encoder–decoders with random weights, one per family, into folders like those from the Hub.

The encoder is smaller than the decoder, so that they cannot be confused.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartTokenizer,
    MarianConfig,
    MBartConfig,
    MBartTokenizer,
    MT5Config,
    PegasusConfig,
    PegasusTokenizer,
    T5Config,
    T5Tokenizer,
)

from mha_viz.models.reading.encoder_decoder import EncoderDecoder
from tests.tiny_models import CORPUS, HEADS, LAYERS, ROBERTA, WIDTH, biases, byte_level, json_of, unigram

ENCODER_LAYERS, ENCODER_HEADS = 2, 2
_T5 = ("<pad>", "</s>", "<unk>")
_PEGASUS = ("<pad>", "</s>", "<mask_1>", "<mask_2>", "<unk>")
_MBART = ("<s>", "<pad>", "</s>", "<unk>")
_GERMAN = "Das Tier überquerte die Straße nicht, denn es war zu müde."


class _MarianTokenizer:
    """Marian's three files: a SentencePiece model for each language, and the ids of all subwords."""

    def __init__(self) -> None:
        self.sides = [_train_unigram(corpus) for corpus in (CORPUS, (_GERMAN,))]
        names = [name for pieces in self.sides for name, _ in pieces]
        self.numbers = {name: number for number, name in enumerate(dict.fromkeys(["</s>", "<unk>", *names, "<pad>"]))}
        self.eos_token_id, self.pad_token_id = 0, len(self.numbers) - 1

    def __len__(self) -> int:
        return len(self.numbers)

    def save_pretrained(self, folder: Path) -> None:
        """Write the three files."""
        for name, pieces in zip(("source.spm", "target.spm"), self.sides, strict=True):
            (folder / name).write_bytes(sentencepiece(pieces))
        (folder / "vocab.json").write_text(json.dumps(self.numbers), "utf-8")


def sentencepiece(pieces: list[tuple[str, float]]) -> bytes:
    """Return the file of a SentencePiece model with these subwords and scores, after <unk>, <s> and </s>."""
    special = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    messages = []
    for name, score, kind in [*special, *((*piece, 1) for piece in pieces)]:
        message = _encode_field(1, name.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind])
        messages.append(_encode_field(1, message))
    return b"".join([*messages, _encode_field(2, bytes([0x18, 1]))])


def _encode_field(number: int, content: bytes) -> bytes:
    """Return a length-delimited protobuf field."""
    length, digits = len(content), []
    while length > 127:
        digits.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *digits, length]) + content


def _train_unigram(corpus: tuple[str, ...]) -> list[tuple[str, float]]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus, trainers.UnigramTrainer(vocab_size=120, unk_token=None))
    return [(piece, score) for piece, score in json_of(tokenizer)["vocab"]]


def _two_stacks(config: Any, tokenizer: Any, sizes: dict[str, int], **generation: Any) -> tuple[Any, Any]:
    """Return a model and its tokenizer.

    ``generation`` are settings of generation_config.json.
    """
    model = AutoModelForSeq2SeqLM.from_config(config(d_model=WIDTH, vocab_size=len(tokenizer), **sizes))
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    return model, tokenizer


def _bart_like(config: Any, tokenizer: Any, **generation: Any) -> tuple[Any, Any]:
    sizes = {"encoder_layers": ENCODER_LAYERS, "decoder_layers": LAYERS, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    sizes |= {"encoder_attention_heads": ENCODER_HEADS, "decoder_attention_heads": HEADS}
    sizes |= {"max_position_embeddings": 64, "pad_token_id": tokenizer.pad_token_id}
    start = {"decoder_start_token_id": generation["decoder_start_token_id"]}
    return _two_stacks(config, tokenizer, sizes | start | {"eos_token_id": tokenizer.eos_token_id}, **generation)


def _t5_like(config: Any) -> tuple[Any, Any]:
    tokenizer = unigram(T5Tokenizer, _T5)
    tokenizer.model_max_length = 64  # the model itself has no limit
    sizes = {"d_kv": 8, "d_ff": 64, "num_layers": ENCODER_LAYERS, "num_decoder_layers": LAYERS, "num_heads": HEADS}
    return _two_stacks(config, tokenizer, sizes, decoder_start_token_id=0)


def _bart() -> tuple[Any, Any]:
    tokenizer = byte_level(BartTokenizer, ROBERTA)
    return _bart_like(BartConfig, tokenizer, decoder_start_token_id=tokenizer.eos_token_id, forced_bos_token_id=0)


def _marian() -> tuple[Any, Any]:
    files = _MarianTokenizer()
    return _bart_like(
        MarianConfig, files, decoder_start_token_id=files.pad_token_id, bad_words_ids=[[files.pad_token_id]]
    )


def _mbart() -> tuple[Any, Any]:
    tokenizer = unigram(MBartTokenizer, _MBART)
    return _bart_like(MBartConfig, tokenizer, decoder_start_token_id=tokenizer.convert_tokens_to_ids("de_DE"))


def _pegasus() -> tuple[Any, Any]:
    return _bart_like(PegasusConfig, unigram(PegasusTokenizer, _PEGASUS), decoder_start_token_id=0)


ENCODER_DECODERS: MappingProxyType[str, Callable[[], tuple[Any, Any]]] = MappingProxyType(
    {
        "bart": _bart,
        "marian": _marian,
        "mbart": _mbart,
        "mt5": partial(_t5_like, MT5Config),
        "pegasus": _pegasus,
        "t5": partial(_t5_like, T5Config),
    }
)


def _list_bad_words(tokenizer: Any) -> list[int]:
    """Return the ids of subwords that must not be generated.

    The tokenizer is trained in a random order, so random weights would sometimes generate a target without a word.
    """
    numbers: dict[str, int] = tokenizer.numbers if isinstance(tokenizer, _MarianTokenizer) else tokenizer.get_vocab()
    return [number for piece, number in numbers.items() if piece[0] == "<" or not re.search("[a-z]", piece)]


def build(family: str, folder: Path, seed: int = 0) -> Path:
    """Write a model of ``family`` into ``folder``, and return the folder.

    The files are config.json, generation_config.json, model.safetensors and those of the tokenizer.
    """
    torch.manual_seed(seed)
    model, tokenizer = ENCODER_DECODERS[family]()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "embed_positions" not in name:
                parameter.normal_(0, 0.3)  # heads attend to some tokens, not evenly to all
        for bias in biases(model):
            bias.normal_(0, 0.1)
        model.get_output_embeddings().weight[_list_bad_words(tokenizer)] = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def ids(encoder: EncoderDecoder, source: str, target: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input of transformers: token ids of the source and the target.

    The source has its special tokens; the target begins with the start token.
    """
    begin = [encoder._generation.start_token]
    target_pieces = encoder._target_vocabulary(target, add_special_tokens=False)
    begin += [0] if encoder.family == "bart" else []  # <s>
    source_ids = encoder.vocabulary(source).input_ids
    return torch.tensor([source_ids]), torch.tensor([begin + target_pieces.input_ids])
