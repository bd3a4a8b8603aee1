"""Tokenizers without character positions: their pieces are found in the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import BertweetTokenizer, PhobertTokenizer, RobertaConfig, RobertaForMaskedLM, RobertaModel

import mha_viz as mv
from mha_viz.errors import ModelUnsupported, TextError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.models.reading.piece_positions import MAX_WORD_CHARACTERS, AlignedTokenizer, find_spans
from tests.tiny_unlisted import write_model

ALIGNED: list[tuple[str, list[str], list[str]]] = [
    ("A cat didn't.", ["A", "cat", "d@@", "id@@", "n't", "."], ["A", "cat", "d", "id", "n't", "."]),
    ("Très bien…", ["tres", "bien@@", "..."], ["Très", "bien", "…"]),
    ("e\u0301a b", ["e@@", "a", "b"], ["e\u0301", "a", "b"]),
    ("“oui”", ['"@@', "oui@@", '"'], ["“", "oui", "”"]),
    ("a zz-y b", ["a", "<unk>", "b"], ["a", "zz-y", "b"]),
    ("a zz yy b", ["a", "<unk>", "<unk>", "b"], ["a", "zz", "yy", "b"]),
    ("by @john, http://t.co.", ["by", "@USER", ",", "HTTPURL", "."], ["by", "@john", ",", "http://t.co", "."]),
    ("I 😂 you", ["I", ":joy_@@", "face:", "you"], ["I", "😂", "😂", "you"]),
    ("le chat", ["le</w>", "ch", "at</w>"], ["le", "ch", "at"]),
    ("le chat", ["▁le", "▁ch", "at"], ["le", "ch", "at"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names", "typed"), ALIGNED, ids=[text for text, *_ in ALIGNED])
def test_each_piece_has_the_span_that_it_stands_for(text: str, names: list[str], typed: list[str]) -> None:
    spans = find_spans(text, names, "<unk>")
    assert spans is not None
    assert [text[start:end] for start, end in spans] == typed


def test_pieces_that_do_not_follow_the_text_have_no_spans() -> None:
    assert find_spans("abc d", ["a@@"]) is None
    assert find_spans("x y", ["x", "y", "z"]) is None
    assert find_spans("a cat", ["a", "dog"], max_rewritten=0) is None
    assert find_spans(". " * 2000, ["."] * 1000 + ["zz"] + ["."] * 1200) is None  # in bounded time


def _build(kind: Any, folder: Path, model_class: Any = RobertaModel, **settings: Any) -> Encoder:
    merges = ["c a", "ca t</w>", "t h", "th e</w>", "s a", "sa t</w>", "@ U", "@U S", "@US E", "@USE R</w>"]
    letters = [letter + mark for letter in "abcdefghijklmnopqrstuvwxyzT'" for mark in ("", "@@")]
    (folder / "bpe.codes").write_text("".join(f"{merge} 9\n" for merge in merges))
    names = ["cat", "the", "sat", "ca@@", "th@@", ".", ",", "@USER", *letters]
    (folder / "vocab.txt").write_text("".join(f"{name} 9\n" for name in names))
    tokenizer = kind(str(folder / "vocab.txt"), str(folder / "bpe.codes"), **settings)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=66, type_vocab_size=1, **sizes)
    write_model(model_class(config), None, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind.__name__} | settings))
    encoder = load_one_stack(from_folder(folder))
    text = "The cat, sat. didn't"
    assert [*encoder.prepare_text(text).ids] == tokenizer(text)["input_ids"]
    return encoder


@pytest.mark.parametrize("kind", [BertweetTokenizer, PhobertTokenizer])
def test_roberta_with_merges_of_words_is_read(kind: Any, tmp_path: Path) -> None:
    encoder = _build(kind, tmp_path)
    text = encoder.encode("The cat, sat.").text
    assert [token.text for token in text.by_words().tokens] == ["<s>", "The", "cat", ",", "sat", ".", "</s>"]
    assert "".join(text.typed(token) for token in text.tokens) == "Thecat,sat."
    pair = encoder.encode("the cat", "it sat").text
    assert [(token.segment, token.text) for token in pair.tokens if not token.special] == [
        (0, "the"), (0, "cat"), (1, "i"), (1, "##t"), (1, "sat")
    ]  # fmt: skip
    assert encoder.encode_words(["The", "cat", "."]).by_words().tokens == ("<s>", "The", "cat", ".", "</s>")
    with pytest.raises(TextError, match="without a space"):
        encoder.encode("a" * (MAX_WORD_CHARACTERS + 1))


def test_a_model_with_merges_of_words_predicts_words(tmp_path: Path) -> None:
    encoder = _build(BertweetTokenizer, tmp_path, RobertaForMaskedLM)
    assert len(mv.predict(encoder, "the <mask> sat.").words) > 1
    assert len(mv.copying_scores(encoder)) == encoder.layers * encoder.heads


def test_a_tokenizer_that_rewrites_users_gives_them_their_place(tmp_path: Path) -> None:
    encoder = _build(BertweetTokenizer, tmp_path, normalization=True)
    assert encoder.encode("the cat @john sat").by_words().tokens == ("<s>", "the", "cat", "@john", "sat", "</s>")


def test_pieces_that_follow_no_text_are_refused_with_a_way_on() -> None:
    class Backwards:
        unk_token = "<unk>"

        def tokenize(self, text: str) -> list[str]:
            return text.split()[::-1]

    with pytest.raises(ModelUnsupported, match="from_tensors"):
        AlignedTokenizer(Backwards(), "own").check()
