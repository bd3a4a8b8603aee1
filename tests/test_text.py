"""Tokens, words and the way back, with pieces written by hand; real tokenizers are tested in test_families.py."""

from __future__ import annotations

import pytest

from mha_viz.text import Piece, Token, TokenizedText, build_text, clean, is_punctuation, make_visible

CLS, SEP = Piece("[CLS]", 0, 0, None, 0), Piece("[SEP]", 0, 0, None, 0)


def pieces(typed: str, *parts: str) -> list[Piece]:
    """One piece per part, in order; every part is a separate word for the tokenizer."""
    made, at = [], 0
    for word, part in enumerate(parts):
        start = typed.index(part, at)
        at = start + len(part)
        made.append(Piece(part, start, at, word, 0))
    return made


def words(typed: str, *parts: str) -> list[str]:
    return [t.text for t in build_text(typed, "", pieces(typed, *parts)).by_words().tokens]


@pytest.mark.parametrize(
    ("typed", "parts", "expected"),
    [
        ("didn't", ("didn", "'", "t"), ["didn't"]),
        ("didn’t", ("didn", "’", "t"), ["didn’t"]),
        ("didn't", ("didn", "'t"), ["didn't"]),
        ("tired.", ("tired", "."), ["tired", "."]),
        ("'quoted'", ("'", "quoted", "'"), ["'", "quoted", "'"]),
        ("dogs' tails", ("dogs", "'", "tails"), ["dogs", "'", "tails"]),
        ("e\u0301's", ("e\u0301", "'", "s"), ["e\u0301's"]),
        ("well-known", ("well", "-", "known"), ["well", "-", "known"]),
        ("wait...", ("wait", ".", ".", "."), ["wait", ".", ".", "."]),
        ("a b", ("a", " b"), ["a", "b"]),
        ("a  b", ("a", " ", " b"), ["a", "b"]),
        ("a [", ("a", " ", "["), ["a", "["]),
        ("漢字", ("漢", "字"), ["漢", "字"]),
        ("well-known", ("well", "-known"), ["well", "-known"]),
        ("x=f(a)", ("x", "=f", "(a", ")"), ["x", "=f", "(a", ")"]),
        ("end.Then", ("end.", "Then"), ["end.", "Then"]),
        ("a+b", ("a", "+", "b"), ["a", "+", "b"]),
        ("a\n\tb", ("a", "\n", "\t", "b"), ["a", "U+000A", "U+0009", "b"]),
        ("go 👍🏽!", ("go", " 👍", "🏽", "!"), ["go", "👍🏽", "!"]),
    ],
)
def test_words(typed: str, parts: tuple[str, ...], expected: list[str]) -> None:
    assert words(typed, *parts) == expected


@pytest.mark.parametrize(
    ("typed", "names", "numbers", "drawn"),
    [
        ("the ordinary", ("the", "ord", "##ina", "##ry"), (0, 1, 1, 1), ["the", "ord", "##ina", "##ry"]),
        ("I didn't", ("i", "did", "'", "t"), (0, 1, 2, 3), ["I", "did", "'", "t"]),  # WordPiece has no mark there
        ("the ordinary.", ("the", "Ġord", "ina", "ry", "."), (0, 1, 1, 1, 2), ["the", "ord", "##ina", "##ry", "."]),
        ("the ordinary", ("▁the", "▁", "ord", "inary"), (0, 1, 1, 1), ["the", "U+0020", "ord", "##inary"]),
        ("I didn't", ("I", "Ġdidn", "'t"), (0, 1, 2), ["I", "didn", "##'t"]),
        ("internationalization", ("intern", "ational", "ization"), (0, 0, 0), ["intern", "##ational", "##ization"]),
        ("ord. inary", ("ord", ".", "Ġin", "ary"), (0, 1, 2, 2), ["ord", ".", "in", "##ary"]),
    ],
)
def test_a_piece_that_continues_its_word_is_drawn_with_one_mark_whatever_the_tokenizer(
    typed: str, names: tuple[str, ...], numbers: tuple[int, ...], drawn: list[str]
) -> None:
    made, at = [], 0
    for name, number in zip(names, numbers, strict=True):
        part = name.lstrip("#Ġ▁") or " "
        start = typed.casefold().index(part.casefold(), at)
        at = start + len(part)
        made.append(Piece(name, start, at, number, 0))
    text = build_text(typed, "", made)
    assert [token.text for token in text.tokens] == drawn
    assert not any(token.text.startswith("##") for token in text.by_words().tokens)


def test_pieces_of_one_word_that_the_tokenizer_keeps_together() -> None:
    typed = "animals."
    parts = [Piece("anim", 0, 4, 0, 0), Piece("##als", 4, 7, 0, 0), Piece(".", 7, 8, 0, 0)]  # SentencePiece's one word
    text = build_text(typed, "", parts)
    assert [t.word for t in text.tokens] == [0, 0, 1]
    assert [t.text for t in text.tokens] == ["anim", "##als", "."]
    assert text.groups == ((0, 1), (2,))


def test_special_tokens_have_no_word_and_no_span() -> None:
    text = build_text("a", "", [CLS, *pieces("a", "a"), SEP])
    assert text.tokens == (
        Token("[CLS]", None, 0, None, None),
        Token("a", 0, 0, 0, 1),
        Token("[SEP]", None, 0, None, None),
    )
    assert [t.special for t in text.tokens] == [True, False, True]
    assert text.without_special().tokens == text.tokens[1:2]
    assert text.by_words().tokens == text.tokens


def test_a_typed_delimiter_keeps_its_span_and_parts_words() -> None:
    typed = "a[SEP]b"
    parts = [Piece("a", 0, 1, 0, 0), Piece("[SEP]", 1, 6, None, 0), Piece("b", 6, 7, 0, 0)]
    text = build_text(typed, "", parts)
    assert [(t.text, t.word, t.start, t.end) for t in text.tokens] == [
        ("a", 0, 0, 1),
        ("[SEP]", None, 1, 6),
        ("b", 1, 6, 7),
    ]


def test_words_count_on_into_the_second_text() -> None:
    parts = [Piece("a", 0, 1, 0, 0), SEP, Piece("b", 0, 1, 0, 1), Piece("c", 2, 3, 1, 1)]
    text = build_text("a", "b c", parts)
    assert [t.word for t in text.tokens] == [0, None, 1, 2]
    assert [t.text for t in text.tokens] == ["a", "[SEP]", "b", "c"]


def test_two_texts_that_touch_without_a_delimiter_are_two_words() -> None:
    text = build_text("a", "b", [Piece("a", 0, 1, 0, 0), Piece("b", 0, 1, 0, 1)])
    assert [t.word for t in text.tokens] == [0, 1]


def test_bytes_of_one_character_are_numbered_and_stay_one_word() -> None:
    parts = [Piece("ð", 0, 1, 0, 0), Piece("Ł", 0, 1, 0, 0), Piece("Ģ", 0, 1, 0, 0)]
    text = build_text("😀", "", parts)
    assert [t.text for t in text.tokens] == ["😀", "😀·2", "😀·3"]
    assert [t.text for t in text.by_words().tokens] == ["😀"]


def test_a_blank_whose_span_was_trimmed_away_gets_it_back() -> None:
    parts = [Piece("a", 0, 1, 0, 0), Piece("Ġ", 2, 2, 1, 0), Piece("b", 2, 3, 1, 0)]
    text = build_text("a b", "", parts)
    assert text.tokens[1] == Token("U+0020", 1, 0, 1, 2)
    assert text.by_words().tokens[1] == Token("b", 1, 0, 2, 3)


def test_a_piece_of_nothing_joins_the_word_it_begins() -> None:
    text = build_text("ab", "", [Piece("▁", 0, 0, 0, 0), Piece("a", 0, 1, 0, 0), Piece("b", 1, 2, 0, 0)])
    assert text.tokens[0] == Token("U+0020", 0, 0, None, None)
    assert text.by_words().tokens == (Token("ab", 0, 0, 0, 2),)


def test_a_blank_that_is_a_piece_ends_the_word_before_it_and_nothing_that_is_a_piece_does_not() -> None:
    parts = [Piece("▁a", 0, 1, 0, 0), Piece("▁", 1, 2, 0, 0), Piece("b", 2, 3, 0, 0)]  # Llama: one word in its own eyes
    assert build_text("a b", "", parts).groups == ((0,), (1, 2))
    parts = [Piece("a", 0, 1, 0, 0), Piece("", 1, 1, 0, 0), Piece("b", 1, 2, 0, 0)]
    assert build_text("ab", "", parts).groups == ((0, 1, 2),)


def test_a_leading_blank_is_not_part_of_the_span() -> None:
    text = build_text("a  b", "", [Piece("a", 0, 1, 0, 0), Piece("Ġb", 1, 4, 1, 0)])
    assert text.tokens[1] == Token("b", 1, 0, 3, 4)


def test_clean_replaces_one_character_by_one() -> None:
    assert clean("a\0b\ud83dc😀") == "a\ufffdb\ufffdc😀"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" a ", "a"), ("\u200b", "U+200B"), ("  ", "U+0020 U+0020"), ("\u0301", "U+0301"), ("e\u0301", "e\u0301")],
)
def test_visible(text: str, expected: str) -> None:
    assert make_visible(text) == expected


@pytest.mark.parametrize(("text", "expected"), [(".", True), ("…", True), ("", False), ("a.", False), ("$", False)])
def test_is_punctuation(text: str, expected: bool) -> None:
    assert is_punctuation(text) is expected


def test_no_text_has_no_groups() -> None:
    assert TokenizedText("", "", ()).groups == ()
