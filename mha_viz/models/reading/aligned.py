"""Tokenizers that are written in Python and give pieces without their places: the places are found by aligning the
pieces with the text, and what results has the part of the interface of the library tokenizers that is used here."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from mha_viz.errors import ModelUnsupported, TextError
from mha_viz.model_names import quote_model
from mha_viz.quotes import quoted

LONGEST_WORD = 500  # characters between blanks: the time of merging grows with their square
MOST_CACHED = 20_000  # words whose pieces a tokenizer remembers
REWRITTEN = 48  # pieces at most that stand for something else than what was typed, such as "HTTPURL" for an address
WORDS_REWRITTEN = 100  # words and marks at most for which they stand
MOST_TRIED = 1_000  # places where text and pieces may agree again
QUOTED = 40
_QUOTES = str.maketrans("‘’“”", "''\"\"")
_MARKS = re.compile(r"^(?:##|[▁Ġ]+)|(?:@@|</w>)$")  # of a piece that continues a word, or begins or ends one
_PROBES = ("A cat didn't sit.", "It is 12 o'clock, isn't it?")

_Span = tuple[int, int]


class Encoding(NamedTuple):
    """The pieces of one or two texts, one entry each, named as by the library tokenizers."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    offsets: list[_Span]
    word_ids: list[int | None]
    sequence_ids: list[int | None]

    def __len__(self) -> int:
        return len(self.ids)


class _Part(NamedTuple):
    """The pieces of one text, without those that are added."""

    names: list[str]
    spans: list[_Span]
    words: list[int]


class AlignedTokenizer:
    """A tokenizer of transformers without places, for texts whose pieces can be found in them."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer, self._name = tokenizer, name

    def no_truncation(self) -> None:
        """Texts are never cut here."""

    def no_padding(self) -> None:
        """Texts are never filled up here."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of pieces."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def to_str(self) -> str:
        """Raise ModelUnsupported: the rules are a program."""
        raise ModelUnsupported(
            f"{quote_model(self._name)} has a tokenizer that is a program, which a web page cannot run.",
            "Leave out --live, or choose another model.",
        )

    def check(self) -> None:
        """Raise ModelUnsupported if the pieces of a sentence cannot be found in it."""
        unknown = self._tokenizer.unk_token
        if any(spans_of_pieces(probe, self._pieces(probe), unknown, rewritten=0) is None for probe in _PROBES):
            raise ModelUnsupported(
                f"{quote_model(self._name)} has a tokenizer without character positions, so its tokens cannot be "
                "placed in the text.",
                "Compute its attention yourself and draw it with mha_viz.Attention.from_tensors(outputs.attentions, "
                "tokens).",
            )

    def encode(self, text: str | Sequence[str], pair: str | None = None, is_pretokenized: bool = False) -> Encoding:
        """Return the pieces of a text and of a second one, or of a list of words. Raises TextError where the pieces
        cannot be found in the text."""
        words = list(text) if is_pretokenized else None
        parts = [self._of_words(words) if words is not None else self._of_text(str(text))]
        parts += [] if pair is None else [self._of_text(pair)]
        numbers = [self._tokenizer.convert_tokens_to_ids(part.names) for part in parts]
        ids: list[int] = self._tokenizer.build_inputs_with_special_tokens(*numbers)
        types = self._tokenizer.create_token_type_ids_from_sequences(*numbers)
        of_piece, after = list[tuple[int, int] | None]([None] * len(ids)), 0
        for segment, part in enumerate(numbers):  # each begins after the one before, and after what is added
            start = next(at for at in range(after, len(ids) + 1) if list(ids[at : at + len(part)]) == list(part))
            after = start + len(part)
            of_piece[start:after] = [(segment, at) for at in range(len(part))]
        return Encoding(
            ids,
            list(types) if len(types) == len(ids) else [0] * len(ids),
            [
                parts[at[0]].names[at[1]] if at else str(self._tokenizer.convert_ids_to_tokens(number))
                for at, number in zip(of_piece, ids, strict=True)
            ],
            [parts[at[0]].spans[at[1]] if at else (0, 0) for at in of_piece],
            [parts[at[0]].words[at[1]] if at else None for at in of_piece],
            [at and at[0] for at in of_piece],
        )

    def _of_text(self, text: str) -> _Part:
        words = [match.span() for match in re.finditer(r"\S+", text)]
        names = self._pieces(text)
        spans = self._spans(text, names)
        begins = [start for start, _ in words]
        return _Part(names, spans, [sum(begin <= start for begin in begins[1:]) for start, _ in spans])

    def _of_words(self, words: Sequence[str]) -> _Part:
        each = [self._pieces(word) for word in words]
        spans = [span for word, names in zip(words, each, strict=True) for span in self._spans(word, names)]
        numbers = [number for number, names in enumerate(each) for _ in names]
        return _Part([name for names in each for name in names], spans, numbers)

    def _pieces(self, text: str) -> list[str]:
        longest = max(text.split(), key=len, default="")
        if len(longest) > LONGEST_WORD:
            raise TextError(
                f"{quoted(longest, QUOTED)} has {len(longest):,} characters without a blank; the tokenizer of "
                f"{quote_model(self._name)} is given at most {LONGEST_WORD}.",
                "Separate words by spaces.",
            )
        remembered = getattr(self._tokenizer, "cache", None)
        if isinstance(remembered, dict) and len(remembered) > MOST_CACHED:
            remembered.clear()
        names: list[str] = self._tokenizer.tokenize(text)
        return names

    def _spans(self, text: str, names: Sequence[str]) -> list[_Span]:
        spans = spans_of_pieces(text, names, self._tokenizer.unk_token)
        if spans is None:
            raise TextError(
                f"The tokenizer of {quote_model(self._name)} rewrites {quoted(text, QUOTED)} so its tokens cannot be "
                "found in it.",
                "Write it in another way.",
            )
        return spans


class _Folded:
    """A text as it is compared: without blanks, case, accents and forms of quotes; with the place of each character."""

    def __init__(self, text: str) -> None:
        self.text = text
        pairs = [(sign, place) for place, character in enumerate(text) for sign in _fold(character)]
        self.signs, self.places = "".join(sign for sign, _ in pairs), [place for _, place in pairs]

    def span(self, start: int, end: int) -> _Span:
        """Return the piece of the text between two places in ``signs``; with the marks that belong to its last
        character."""
        if start == end:
            at = self.places[start] if start < len(self.places) else len(self.text)
            return at, at
        last = self.places[end - 1] + 1
        while last < len(self.text) and unicodedata.category(self.text[last]).startswith("M"):
            last += 1
        return self.places[start], last

    @cached_property
    def boundaries(self) -> list[int]:
        """Places in ``signs`` where a word or a mark of punctuation begins, and the end."""
        joined = [one.isalnum() and two.isalnum() for one, two in pairwise(self.signs)]
        apart = [two > one + 1 for one, two in pairwise(self.places)]
        begins = [
            at
            for at, (is_joined, is_apart) in enumerate(zip(joined, apart, strict=True), 1)
            if is_apart or not is_joined
        ]
        return [*begins, len(self.signs)]


def _fold(written: str) -> str:
    plain = unicodedata.normalize("NFKD", written.translate(_QUOTES)).casefold()
    return "".join(sign for sign in plain if not (sign.isspace() or unicodedata.category(sign).startswith("M")))


def spans_of_pieces(
    text: str, names: Sequence[str], unknown: str | None = None, rewritten: int = REWRITTEN
) -> list[_Span] | None:
    """Return the span in the text of each piece, of which ``names`` are the names; None where they do not follow it.

    Pieces that stand for something else than what was typed, such as a user or an address, at most ``rewritten`` of
    them, share the span of that, up to the first word after which text and pieces agree.
    """
    folded = _Folded(text)
    written = [None if name == unknown else _fold(_MARKS.sub("", name)) for name in names]
    spans: list[_Span] = []
    at = piece = 0
    open_ends: list[tuple[int, int, Iterator[tuple[int, int]]]] = []  # where another end may be tried
    failed = set[tuple[int, int]]()
    for _ in range(MOST_TRIED):
        while piece < len(names) and (signs := written[piece]) is not None and folded.signs.startswith(signs, at):
            spans.append(folded.span(at, at + len(signs)))
            at, piece = at + len(signs), piece + 1
        if piece == len(names) and at == len(folded.signs):
            return spans
        if (at, piece) not in failed:
            failed.add((at, piece))
            most = rewritten if piece < len(names) and written[piece] is not None else REWRITTEN
            open_ends.append((at, piece, _ends(folded, written, at, piece, most)))
        while open_ends:
            at, piece, ends = open_ends[-1]
            if (end := next(ends, None)) is not None:
                break
            open_ends.pop()
        else:
            return None
        del spans[piece:]
        spans += [folded.span(at, end[0])] * (end[1] - piece)
        at, piece = end
    return None


def _ends(folded: _Folded, written: Sequence[str | None], at: int, piece: int, most: int) -> Iterator[tuple[int, int]]:
    """Find where text and pieces may agree again: after the fewest words, and then the fewest pieces."""
    first = bisect_right(folded.boundaries, at)
    for end in folded.boundaries[first : first + WORDS_REWRITTEN]:
        for later in range(piece + 1, min(len(written), piece + most) + 1):
            signs = written[later] if later < len(written) else None
            if (later == len(written)) == (end == len(folded.signs)) and (
                later == len(written) or signs is None or (signs and folded.signs.startswith(signs, end))
            ):
                yield end, later
