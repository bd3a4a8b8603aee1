"""How names and words are made of pieces: the conventions of vocabularies, with names written by hand. Real tokenizers
are tested in test_handed_over.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz import Attention
from mha_viz.errors import ShapeError
from mha_viz.text import Piece, TokenizedText, build_text, from_names, from_offsets
from mha_viz.text.pieces import BYTE_LETTERS

RIGHT: dict[str, tuple[list[str], list[str], list[str]]] = {  # names of the tokenizer, tokens that are drawn, words
    "line ends in bytes": (
        ["on", "e", "Ċ", "Ċ", "tw", "o"],
        ["on", "##e", "U+000A", "U+000A", "tw", "##o"],
        ["one", "U+000A", "U+000A", "two"],
    ),
    "letters of bytes": (["ĠcafÃ©"], ["café"], ["café"]),
    "letters of bytes, cut in a character": (["Ġna", "Ã", "¯", "ve"], ["na", "##ï", "##ï·2", "##ve"], ["naïve"]),
    "an apostrophe in bytes": (["It", "âĢĻ", "s", "Ġso"], ["It", "##’", "##s", "so"], ["It’s", "so"]),
    "bytes that SentencePiece names": (
        ["▁na", "<0xC3>", "<0xAF>", "ve", "<0x0A>"],
        ["na", "##ï", "##ï·2", "##ve", "U+000A"],
        ["naïve", "U+000A"],
    ),
    "a blank that is a piece": (
        ["▁", "a", "▁hat", "▁", "q", "u", "x"],
        ["U+0020", "a", "hat", "U+0020", "q", "##u", "##x"],
        ["a", "hat", "qux"],
    ),
    "a blank within a piece alone": (
        ["on", "e", "\n\n", "tw", "o", "and▁th", "ree"],
        ["on", "##e", "U+000A U+000A", "tw", "##o", "##and th", "##ree"],
        ["one", "U+000A U+000A", "twoand three"],
    ),
    "a sign like that of a blank, where blanks are written otherwise": (["a", " b▁c"], ["a", "b▁c"], []),
    "such a sign in a piece that continues": (["x", "##y▁z"], ["x", "##y▁z"], ["xy▁z"]),
    "an empty token and a blank": (["The", "", " ", " cat"], ["The", "∅", "U+0020", "cat"], ["The", "∅", "cat"]),
    "ends of words": (["a</w>", "pho", "to</w>"], ["a", "pho", "##to"], ["a", "photo"]),
    "ends of words, in bytes": (["cafÃ©</w>", "pho", "to</w>"], ["café", "pho", "##to"], ["café", "photo"]),
    "words that go on": (["Kat@@", "ze", "@@"], ["Kat", "##ze", "@@"], ["Katze", "@@"]),
    "decoded tokens": (["def", " f", ":", "\n", "\t", "x"], ["def", "f", ":", "U+000A", "U+0009", "x"], []),
    "code in bytes": (["def", "Ġf", ":", "Ċ", "ĉ", "x"], ["def", "f", ":", "U+000A", "U+0009", "x"], []),
    "a line end behind a sign": (["f", "():Ċ", "x"], ["f", "():", "x"], []),
    "a line end of two characters": (["a", "čĊ", "b"], ["a", "U+000D U+000A", "b"], []),
    "special tokens of prompts": (
        ["<|im_start|>", "user", "Ċ", "hi", "<|im_end|>"],
        ["<|im_start|>", "user", "U+000A", "hi", "<|im_end|>"],
        [],
    ),
    "no piece for it": (["▁na", "<unk>", "ve"], ["na", "[UNK]", "ve"], []),
    "one picture of several": (["ðŁ", "ĺĢ", "Ġok"], ["😀", "##😀·2", "ok"], ["😀", "ok"]),
    "bytes of no character": (["Ã", "Ġla"], ["<0xC3>", "la"], []),
    "bytes that are names": (
        ["h", "Ã", "©", " ", "y", "\n", "</s>"],
        ["h", "##é", "##é·2", "U+0020", "y", "U+000A", "</s>"],
        ["hé", "y", "U+000A", "</s>"],
    ),
    "bytes that are names, cut within a character": (
        [*map(chr, "日本".encode()[1:])],
        ["<0x97>", "<0xA5>", "本", "本·2", "本·3"],
        ["<0x97>", "<0xA5>", "本"],
    ),
    "letters that are no bytes": (["ä", "ö", " ", "é"], ["ä", "##ö", "U+0020", "é"], ["äö", "é"]),
    "letters that are letters": (
        ["[CLS]", "Ă", "##Ģ", "Ã", "[SEP]"],
        ["[CLS]", "Ă", "##Ģ", "Ã", "[SEP]"],
        ["[CLS]", "ĂĢ", "Ã", "[SEP]"],
    ),
}


@pytest.mark.parametrize(("names", "tokens", "words"), RIGHT.values(), ids=RIGHT)
def test_names_become_tokens_and_words(names: list[str], tokens: list[str], words: list[str]) -> None:
    text = from_names(names)
    assert [token.drawn for token in text.tokens] == tokens
    assert [token.drawn for token in text.by_words().tokens] == (words or tokens)


SPECIAL = [
    "[CLS]",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[gMASK]",
    "<s>",
    "</s>",
    "<s>NOTUSED",
    "<sop>",
    "<BOS_TOKEN>",
    "<start_of_turn>",
    "<fim_prefix>",
    "<extra_id_0>",
    "<|im_start|>",
    "<｜User｜>",
]
WORDS = [
    "[MASK]",
    "[UNK]",
    "<unk>",
    "<mask>",
    "[1]",
    "[a]",
    "[x_1]",
    "<b>",
    "</td>",
    "<h1>",
    "<0x41>",
    "<tool_call>",
    "en_US",
    "__en__",
    "eng_Latn",
    "[]",
    "<>",
    "<_>",
]


@pytest.mark.parametrize("name", SPECIAL)
def test_special_tokens_are_known_by_the_shapes_of_their_names(name: str) -> None:
    assert [token.special for token in from_names(["a", name, "b"]).tokens] == [False, True, False]


@pytest.mark.parametrize("name", WORDS)
def test_other_names_in_brackets_and_codes_without_an_end_are_words(name: str) -> None:
    assert not any(token.special for token in from_names(["a", name, "b", name]).tokens)


@pytest.mark.parametrize("code", ["eng_Latn", "en_XX", "__en__", "__ast__"])
def test_codes_of_languages_are_special_at_the_ends_of_a_text_alone(code: str) -> None:
    for names in (
        [code, "▁a", "▁b", "</s>"],
        ["▁a", "▁b", "</s>", code],
        ["</s>", code, "▁a", "▁b"],
        [code, "▁a", "▁b"],
    ):
        text = from_names(names)
        assert [name for name, token in zip(names, text.tokens, strict=True) if not token.special] == ["▁a", "▁b"]
        assert text.text == "a b"
    text = from_names(["▁a", code, "▁b", "</s>"])
    assert [token.special for token in text.tokens] == [False, False, False, True]


def test_the_alphabet_of_bytes_is_that_of_gpt2() -> None:
    assert sorted(BYTE_LETTERS.values()) == [*range(256)]
    assert {letter: byte for letter, byte in BYTE_LETTERS.items() if letter in "!~¡¬®ÿĀĠĊġł"} == {
        **{letter: ord(letter) for letter in "!~¡¬®ÿ"},
        **{"Ā": 0, "Ċ": 10, "Ġ": 32, "ġ": 127, "ł": 160},
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_letters_of_bytes_spell_any_text(typed: str) -> None:
    letter_of = {byte: letter for letter, byte in BYTE_LETTERS.items()}
    names = ["Ġ", *(letter_of[byte] for byte in typed.encode())]
    text = from_names(names)
    assert text.text.endswith(typed.replace("\0", "�")[1:])
    assert len(text.tokens) == len(names)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs"]), min_size=1))
def test_bytes_that_are_names_spell_any_text(typed: str) -> None:
    assert from_names([*map(chr, f"é{typed}".encode()), "</s>"]).text == f"é{typed}"


def test_line_ends_and_tabs_are_words_of_their_own() -> None:
    names = ["Q", "Ċ", "ĊĊ", "A", "Ġb", "ĉ", "c"]
    words = from_names(names).by_words()
    assert [word.text for word in words.tokens] == ["Q", "U+000A", "U+000A U+000A", "A", "b", "U+0009", "c"]
    row = np.array([0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1], np.float32)
    attention = Attention.from_tensors([np.tile(row, (1, 7, 1))], names)
    assert attention.by_words().weights[0, 0, -1].tolist() == pytest.approx(row.tolist())


def test_a_mark_of_a_blank_has_no_letter_though_its_span_is_that_of_the_next() -> None:
    pieces = [Piece("▁", 0, 1, 0, 0), Piece("a", 0, 1, 0, 0), Piece("▁", 2, 3, 0, 0), Piece("b", 2, 3, 0, 0)]
    text = build_text("a b", "", pieces)
    assert [(token.text, token.start, token.end) for token in text.tokens] == [
        ("U+0020", None, None),
        ("a", 0, 1),
        ("U+0020", 1, 2),
        ("b", 2, 3),
    ]
    assert [word.text for word in text.by_words().tokens] == ["a", "b"]
    text = build_text("\rx", "", [Piece("▁", 0, 1, 0, 0), Piece("<0x0D>", 0, 1, 0, 0), Piece("x", 1, 2, 0, 0)])
    assert [token.text for token in text.tokens] == ["U+0020", "U+000D", "x"]


def test_an_accent_that_a_tokenizer_composes_stays_with_its_letter() -> None:
    typed = "cafe\u0301 a"
    text = build_text(typed, "", [Piece("caf", 0, 3, 0, 0), Piece("Ã©", 3, 4, 0, 0), Piece("Ġa", 5, 7, 0, 0)])
    assert [token.text for token in text.tokens] == ["caf", "##e\u0301", "a"]
    assert [word.text for word in text.by_words().tokens] == ["cafe\u0301", "a"]


# ---- Names with their places ------------------------------------------------------------------------------------


def drawn(text: TokenizedText) -> tuple[list[str], list[str]]:
    return [token.drawn for token in text.tokens], [token.drawn for token in text.by_words().tokens]


PLACED: dict[str, tuple[str, list[str], list[tuple[int, int]], list[str], list[str]]] = {
    "a word without blanks": ("hello", ["he", "ll", "o"], [(0, 2), (2, 4), (4, 5)], ["he", "##ll", "##o"], ["hello"]),
    "capitals and accents": (
        "Zoë didn't",
        ["[CLS]", "zo", "##e", "didn", "'", "t", "[SEP]"],
        [(0, 0), (0, 2), (2, 3), (4, 8), (8, 9), (9, 10), (0, 0)],
        ["[CLS]", "Zo", "##ë", "didn", "'", "t", "[SEP]"],
        ["[CLS]", "Zoë", "didn't", "[SEP]"],
    ),
    "no piece for it": (
        "a Ω",
        ["[CLS]", "a", "[UNK]", "[SEP]"],
        [(0, 0), (0, 1), (2, 3), (0, 0)],
        ["[CLS]", "a", "[UNK] Ω", "[SEP]"],
        ["[CLS]", "a", "[UNK] Ω", "[SEP]"],
    ),
    "characters that are words to BERT": ("中文", ["中", "文"], [(0, 1), (1, 2)], ["中", "文"], ["中", "文"]),
    "a name of its own, added": (
        "a b",
        ["[RARE]", "a", "b"],
        [(0, 0), (0, 1), (2, 3)],
        ["[RARE]", "a", "b"],
        ["[RARE]", "a", "b"],
    ),
}


@pytest.mark.parametrize(("typed", "names", "offsets", "tokens", "words"), PLACED.values(), ids=PLACED)
def test_places_say_what_names_cannot(
    typed: str, names: list[str], offsets: list[tuple[int, int]], tokens: list[str], words: list[str]
) -> None:
    assert drawn(from_offsets(names, offsets, (typed, ""))) == (tokens, words)
    weights = [np.full((1, len(names), len(names)), 1 / len(names), np.float32)]
    attention = Attention.from_tensors(weights, names, text=typed, offsets=np.array(offsets))
    assert drawn(attention.text) == (tokens, words)
    assert attention.text.text == typed


def test_places_of_a_pair_of_a_batch_and_of_keys() -> None:
    names, offsets = ["<s>", "he", "llo", "</s>", "Wor", "ld"], [(0, 0), (0, 2), (2, 5), (0, 0), (0, 3), (3, 5)]
    read = [1, 1, 1, 0, 1, 1]
    weights = [np.tile(np.array(read, np.float32) / 5, (1, 6, 1))]
    given_too: dict[str, Any] = {"text": ("Hello", "World"), "offsets": [offsets], "sentence_b_start": 4}
    pair = Attention.from_tensors(weights, names, mask=read, **given_too)
    assert drawn(pair.text)[1] == ["<s>", "Hello", "World"]
    assert [token.segment for token in pair.text.tokens] == [0, 0, 0, 1, 1]
    thirds = np.full((1, 1, 3), 1 / 3, np.float32)
    square = np.tile(thirds, (2, 1, 3, 1))
    placed = np.array([offsets[:3]] * 2)
    batch = Attention.from_tensors([square], [names[:3]] * 2, text=["Hello", "HELLO"], offsets=placed)
    assert [drawn(one.text)[1] for one in batch] == [["<s>", "Hello"], ["<s>", "HELLO"]]
    crossed = Attention.from_tensors([thirds], ["x"], names[:3], keys_text="Hello", keys_offsets=offsets[:3])
    assert drawn(crossed.keys)[1] == ["<s>", "Hello"]
    cache = {"blocks.0.attn.hook_pattern": square[0]}
    cached = Attention.from_cache(cache, names[:3], text="Hello", offsets=offsets[:3])
    assert drawn(cached.text)[1] == ["<s>", "Hello"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "ab"}, r"offsets is missing.*return_offsets_mapping"),
        ({"offsets": [(0, 1), (1, 2)]}, r"^text is missing"),
        ({"text": 3, "offsets": [(0, 1), (1, 2)]}, "text is '?3"),
        ({"text": ("a", "b", "c"), "offsets": [(0, 1), (1, 2)]}, "a pair of texts"),
        ({"text": "ab", "offsets": [(0, 1)]}, r"offsets has shape \(1, 2\), for 2 tokens"),
        ({"text": "ab", "offsets": [(0, 1), (1, 3)]}, "offsets has spans that lie outside"),
        ({"text": "ab", "offsets": [(0, 1), (2, 1)]}, "end before they begin"),
        ({"text": "ab", "offsets": [(0, 1), (0.5, 1)]}, "offsets has spans"),
        ({"text": ("a", "b"), "offsets": [(0, 1), (0, 1)]}, "sentence_b_start is missing"),
        ({"text": ("aa", "b"), "offsets": [(0, 1), (0, 2)], "sentence_b_start": 1}, "outside the text"),
    ],
)
def test_places_that_do_not_fit_are_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors([np.full((1, 2, 2), 0.5, np.float32)], ["a", "b"], **options)
