"""Tokens that are handed over have the names and words of a loaded model: tokenizers of eleven kinds, ten texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    GPT2Config,
    GPT2Model,
    GPT2Tokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    T5Tokenizer,
    XLMRobertaTokenizer,
)

import mha_viz as mv
from mha_viz.figures.layout.packet import collect_axis_tokens
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import TokenizedText
from tests.packets import list_pages, read_page
from tests.tiny_models import CORPUS, ROBERTA

TEXTS = (
    "The café's naïve waiter didn't smile, did he?",
    "動物は道を渡らなかった。",
    "the 中文 and the 길 too",
    "שלום עולם, hello",
    "the 👩‍👩‍👧 went home 😀😀!",
    "one\n\ntwo\nand three",
    "def f(x):\n\treturn x_1 + 'a'  # no\n",
    "Q: x\r\n\r\nA: y\t z",
    "“Don’t,” she said — ‘it’s 5€’…",
    "  two   spaces and ½ of x² ™ 👍🏽🇩🇪",
)
# What names alone do not tell: words without blanks in ASCII, other forms of Unicode, the tokenizer's own marks.
HARDER = ("hello", "x_1=f(a)", "cafe\u0301 nai\u0308ve", "a ▁ b Ġ c ##d", "zero\u200bwidth \ufeffmark")
_SPECIAL = ["<unk>", "<s>", "</s>"]
_OF_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _trained(model: Any, before: Any, **options: Any) -> Any:
    """What a model of pieces learned from the texts: its vocabulary, with merges or scores."""
    kind = trainers.UnigramTrainer if isinstance(model, models.Unigram) else trainers.BpeTrainer
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = before
    tokenizer.train_from_iterator((*CORPUS, *TEXTS, *HARDER), kind(show_progress=False, **options))
    return json.loads(tokenizer.to_str())["model"]


def _merged(learned: Any, **options: Any) -> Any:
    merges = [tuple(one) if isinstance(one, list) else tuple(one.split(" ")) for one in learned["merges"]]
    return {"vocab": learned["vocab"], "merges": merges, **options}


def _byte_level(kind: Any, special: list[str]) -> Any:
    before, alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.ByteLevel.alphabet()
    learned = _trained(models.BPE(), before, vocab_size=420, special_tokens=special, initial_alphabet=alphabet)
    return kind(**_merged(learned))


def _qwen() -> Any:
    """Runs of line ends are a piece, also with the signs before them; letters are composed."""
    split = pre_tokenizers.Split(Regex(_OF_QWEN), "isolated")
    before = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet, end = pre_tokenizers.ByteLevel.alphabet(), "<|endoftext|>"
    learned = _trained(models.BPE(), before, vocab_size=420, special_tokens=[end], initial_alphabet=alphabet)
    tokenizer = Tokenizer(models.BPE(**_merged(learned)))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFC(), before
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end)


def _llama() -> Any:
    """The text is not split before; characters that the vocabulary lacks are spelt in bytes."""
    spelt = [f"<0x{byte:02X}>" for byte in range(256)]
    size = {"vocab_size": 300, "limit_alphabet": 20, "special_tokens": [*_SPECIAL, *spelt]}
    learned = _trained(models.BPE(), pre_tokenizers.Metaspace(), **size)
    tokenizer = Tokenizer(models.BPE(**_merged(learned, byte_fallback=True, unk_token="<unk>", fuse_unk=True)))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def _unigram(kind: Any, special: list[str]) -> Any:
    learned = _trained(
        models.Unigram(), pre_tokenizers.Metaspace(), vocab_size=260, special_tokens=special, unk_token="<unk>"
    )
    return kind(vocab=[(piece, score) for piece, score in learned["vocab"]])


def _begun(*before: str) -> Any:
    """Bytes, with special tokens in front of each text."""
    end = "<|endoftext|>"
    tokenizer = Tokenizer(_byte_level(models.BPE, [*before, end]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    numbered = [(name, number) for number, name in enumerate(before)]
    tokenizer.post_processor = processors.TemplateProcessing(single=[*before, "$A"], special_tokens=numbered)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, additional_special_tokens=[*before])


def _of_language(single: list[str]) -> Any:
    """A translator's: the code of the language stands before a text or behind its end."""
    special = [name for name in single if name != "$A"]
    learned = _trained(
        models.Unigram(),
        pre_tokenizers.Metaspace(),
        vocab_size=260,
        special_tokens=["<unk>", *special],
        unk_token="<unk>",
    )
    tokenizer = Tokenizer(models.Unigram([(piece, score) for piece, score in learned["vocab"]], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    numbered = [(name, tokenizer.token_to_id(name)) for name in special]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=numbered)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", additional_special_tokens=special)


KINDS: dict[str, Callable[[], Any]] = {
    "GPT-2": lambda: _byte_level(GPT2Tokenizer, ["<|endoftext|>"]),
    "RoBERTa": lambda: _byte_level(RobertaTokenizer, [*ROBERTA]),
    "Llama": _llama,
    "Qwen": _qwen,
    "XLM-R": lambda: _unigram(XLMRobertaTokenizer, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
    "T5": lambda: _unigram(T5Tokenizer, ["<pad>", "</s>", "<unk>"]),
    "Cohere": lambda: _begun("<BOS_TOKEN>"),
    "GLM": lambda: _begun("[gMASK]", "<sop>"),
    "NLLB": lambda: _of_language(["eng_Latn", "$A", "</s>"]),
    "mBART": lambda: _of_language(["$A", "</s>", "en_XX"]),
    "M2M": lambda: _of_language(["__en__", "$A", "</s>"]),
}
Loaded = Callable[[str], tuple[Encoder, Any]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A small model with a tokenizer of a kind, loaded from a folder, and that tokenizer."""

    @cache
    def load(kind: str) -> tuple[Encoder, Any]:
        folder: Path = tmp_path_factory.mktemp("handed")
        tokenizer = KINDS[kind]()
        torch.manual_seed(0)
        size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128, "vocab_size": len(tokenizer)}
        GPT2Model(GPT2Config(**size, bos_token_id=0, eos_token_id=0)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model = mv.load(folder)
        assert isinstance(model, Encoder)
        return model, tokenizer

    return load


kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
def test_names_alone_give_the_tokens_and_words_of_the_model_that_is_loaded(kind: str, loaded: Loaded) -> None:
    model, tokenizer = loaded(kind)
    for text in TEXTS:
        read = model.encode(text)
        names = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
        assert "<unk>" not in names
        expected = collect_axis_tokens(read.text)
        layers = [*read.weights]
        by_names = mv.Attention.from_tensors(layers, names)
        assert collect_axis_tokens(by_names.text) == expected, text
        assert collect_axis_tokens(by_names.by_words().text) == collect_axis_tokens(read.by_words().text), text
        cached = mv.Attention.from_cache({"blocks.0.attn.hook_pattern": layers[0]}, names)
        assert collect_axis_tokens(cached.text) == expected, text
        (page,) = list_pages(mv.bertviz.head_view(layers, names, html_action="return"))
        header = read_page(page)[0].header
        assert {field: header[field] for field in expected} == expected, text


def placed(text: TokenizedText) -> list[Any]:
    return [text.text, text.tokens, text.by_words().tokens]


@kinds
def test_with_places_it_is_the_same_text(kind: str, loaded: Loaded) -> None:
    model, tokenizer = loaded(kind)
    for text in TEXTS + HARDER:
        read, given = model.encode(text), tokenizer(text, return_offsets_mapping=True)
        names = tokenizer.convert_ids_to_tokens(given.input_ids)
        whole = mv.Attention.from_tensors([*read.weights], names, text=text, offsets=given.offset_mapping)
        assert placed(whole.text) == placed(read.text), text


@pytest.mark.parametrize("kind", ["GPT-2", "RoBERTa", "Llama", "Qwen"])
def test_line_ends_are_words_of_their_own_in_models_that_read_them(kind: str, loaded: Loaded) -> None:
    model, _ = loaded(kind)
    read = model.encode("one\n\ntwo\nand three")
    words = [token for token in read.by_words().text.tokens if not token.special]
    assert [token.text for token in words if not token.text.startswith("U+000A")] == ["one", "two", "and", "three"]
    assert " ".join(token.text for token in words[1:-2]).split() == ["U+000A", "U+000A", "two", "U+000A"]
    two = read.text.groups[read.by_words().text.tokens.index(next(one for one in words if one.text == "two"))]
    assert "".join(read.text.typed(read.text.tokens[i]) for i in two) == "two"
    assert {read.text.typed(token) for token in read.text.tokens} >= {"\n"} or kind == "Qwen"


@pytest.mark.parametrize("kind", ["Llama", "XLM-R", "T5"])
def test_a_blank_that_is_a_piece_is_not_named_after_the_letter_behind_it(kind: str, loaded: Loaded) -> None:
    model, tokenizer = loaded(kind)
    text = "zzz hxq a 9"
    names = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
    tokens = model.encode(text).text.tokens
    alone = [token.text for name, token in zip(names, tokens, strict=True) if name == "▁"]
    assert alone
    assert {*alone} == {"U+0020"}
    assert not any("·" in token.text for token in tokens)
    assert [word.text for word in model.encode(text).by_words().text.tokens if not word.special] == text.split()
