"""A text from a file or from another process, whose every field is checked."""

from __future__ import annotations

from typing import Any

from mha_viz.errors import TextError, shorten_value
from mha_viz.text.tokens import Cut, Token, TokenizedText


def parse_text(fields: Any) -> TokenizedText:
    """The text from the fields that ``dataclasses.asdict`` gives, also after JSON.

    Raises TextError for anything else: the span of every token must be in the sentence that it names.
    """
    _expect(_is(fields, dict) and set(fields) == set(TokenizedText.__dataclass_fields__), "a text", fields)
    typed = fields["text"], fields["pair"]
    _expect(all(_is(sentence, str) for sentence in typed), "two sentences", typed)
    given, tokens = fields["given"], fields["tokens"]
    _expect(_is(given, list, tuple) and all(_is(word, str) for word in given), "a list of words", given)
    _expect(fields["unit"] in ("pieces", "words"), "pieces or words", fields["unit"])
    _expect(_is(tokens, list, tuple), "a list of tokens", tokens)
    cut = None if fields["cut"] is None else _parse_cut(fields["cut"])
    read = tuple(_parse_token(token, typed) for token in tokens)
    return TokenizedText(*typed, read, cut, fields["unit"], tuple(given))


def _parse_cut(fields: Any) -> Cut:
    _expect(_is(fields, dict) and set(fields) == {"pieces", "limit", "kept", "more"}, "what was cut", fields)
    lengths = fields["kept"]
    _expect(_is(lengths, list, tuple) and len(lengths) == 2, "two numbers of characters", lengths)
    numbers = (fields["pieces"], fields["limit"], *lengths)
    _expect(all(_is(number, int) and number >= 0 for number in numbers), "numbers from 0", numbers)
    _expect(_is(fields["more"], bool), "true or false", fields["more"])
    return Cut(fields["pieces"], fields["limit"], (lengths[0], lengths[1]), fields["more"])


def _parse_token(fields: Any, typed: tuple[str, str]) -> Token:
    names = {"text", "word", "segment", "start", "end", "known"}
    _expect(_is(fields, dict) and set(fields) == names, "a token", fields)
    _expect(_is(fields["text"], str) and _is(fields["known"], bool), "a token", fields)
    word = fields["word"]
    _expect(word is None or (_is(word, int) and word >= 0), "the number of a word", word)
    _expect(_is(fields["segment"], int) and fields["segment"] in (0, 1), "sentence 0 or 1", fields)
    start, end = fields["start"], fields["end"]
    if (start, end) != (None, None):
        _expect(_is(start, int) and _is(end, int), "a span", fields)
        _expect(0 <= start <= end <= len(typed[fields["segment"]]), "a span in its sentence", fields)
    return Token(**fields)


def _is(value: object, *kinds: type) -> bool:
    """True for exactly these types: a bool is not a number here."""
    return type(value) in kinds


def _expect(holds: bool, what: str, given: object) -> None:
    if not holds:
        raise TextError(f"{shorten_value(given, 60)!r} was read where {what} was expected.")
