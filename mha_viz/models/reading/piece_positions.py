"""Find the positions of pieces for tokenizers that are written in Python and do not give them.

The pieces are aligned with the text. :class:`AlignedTokenizer` implements the part of the tokenizers library's
interface that is used here.
"""

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
from mha_viz.quotes import quote

MAX_WORD_CHARACTERS = 500  # maximum characters between blanks; merging time grows with their square
MAX_CACHED_WORDS = 20_000  # maximum number of words whose pieces a tokenizer caches
# Maximum number of consecutive pieces that differ from the text, such as "HTTPURL" for an address.
MAX_REWRITTEN_PIECES = 48
MAX_REWRITTEN_WORDS = 100  # maximum number of words and punctuation marks that such pieces replace
MAX_ATTEMPTS = 1_000  # maximum number of attempts to find where text and pieces agree again
MAX_QUOTED = 40  # maximum number of characters that an error message quotes
_QUOTES = str.maketrans("‘’“”", "''\"\"")
_MARKS = re.compile(r"^(?:##|[▁Ġ]+)|(?:@@|</w>)$")  # mark a piece that begins, continues or ends a word
_PROBES = ("A cat didn't sit.", "It is 12 o'clock, isn't it?")

_Span = tuple[int, int]


class Encoding(NamedTuple):
    """The pieces of one or two texts. Fields have one entry per piece and are named as in the library tokenizers."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    offsets: list[_Span]
    word_ids: list[int | None]
    sequence_ids: list[int | None]

    def __len__(self) -> int:
        return len(self.ids)


class _Part(NamedTuple):
    """The pieces of one text, without added special tokens."""

    names: list[str]
    spans: list[_Span]
    words: list[int]


class AlignedTokenizer:
    """A transformers tokenizer without character positions, for texts in which its pieces can be found."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer, self._name = tokenizer, name

    def no_truncation(self) -> None:
        """Do nothing: texts are never cut here."""

    def no_padding(self) -> None:
        """Do nothing: texts are never padded here."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of some token ids."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def id_to_token(self, piece: int) -> str | None:
        """Return the name of a piece of the vocabulary."""
        name: str | None = self._tokenizer.convert_ids_to_tokens(piece)
        return name

    def get_vocab(self) -> dict[str, int]:
        """Return the number of each piece of the vocabulary by its name."""
        return dict(self._tokenizer.get_vocab())

    def to_str(self) -> str:
        """Raise ModelUnsupported: the rules of this tokenizer are a program."""
        raise ModelUnsupported(
            f"{quote_model(self._name)} has a tokenizer that is a program, which a web page cannot run.",
            "Leave out --live, or choose another model.",
        )

    def check(self) -> None:
        """Raise ModelUnsupported if the pieces of a sentence cannot be found in it."""
        unknown = self._tokenizer.unk_token
        if any(find_spans(probe, self._pieces(probe), unknown, max_rewritten=0) is None for probe in _PROBES):
            raise ModelUnsupported(
                f"{quote_model(self._name)} has a tokenizer without character positions, so its tokens cannot be "
                "placed in the text.",
                "Compute its attention yourself and draw it with mha_viz.Attention.from_tensors(outputs.attentions, "
                "tokens).",
            )

    def encode(self, text: str | Sequence[str], pair: str | None = None, is_pretokenized: bool = False) -> Encoding:
        """Return the pieces of a text and of a second text, or of a list of words.

        Raises TextError if the pieces cannot be found in the text.
        """
        words = list(text) if is_pretokenized else None
        parts = [self._read_words(words) if words is not None else self._read_text(str(text))]
        parts += [] if pair is None else [self._read_text(pair)]
        ids_by_part = [self._tokenizer.convert_tokens_to_ids(part.names) for part in parts]
        ids: list[int] = self._tokenizer.build_inputs_with_special_tokens(*ids_by_part)
        types = self._tokenizer.create_token_type_ids_from_sequences(*ids_by_part)
        sources, search_start = list[tuple[int, int] | None]([None] * len(ids)), 0
        for number, part_ids in enumerate(ids_by_part):  # a text begins after the previous one and after added tokens
            start = next(
                index
                for index in range(search_start, len(ids) + 1)
                if list(ids[index : index + len(part_ids)]) == list(part_ids)
            )
            search_start = start + len(part_ids)
            sources[start:search_start] = [(number, index) for index in range(len(part_ids))]
        return Encoding(
            ids,
            list(types) if len(types) == len(ids) else [0] * len(ids),
            [
                parts[source[0]].names[source[1]] if source else str(self._tokenizer.convert_ids_to_tokens(piece_id))
                for source, piece_id in zip(sources, ids, strict=True)
            ],
            [parts[source[0]].spans[source[1]] if source else (0, 0) for source in sources],
            [parts[source[0]].words[source[1]] if source else None for source in sources],
            [source and source[0] for source in sources],
        )

    def _read_text(self, text: str) -> _Part:
        """Return the pieces of a text."""
        words = [match.span() for match in re.finditer(r"\S+", text)]
        names = self._pieces(text)
        spans = self._spans(text, names)
        word_starts = [start for start, _ in words]
        return _Part(names, spans, [sum(word_start <= start for word_start in word_starts[1:]) for start, _ in spans])

    def _read_words(self, words: Sequence[str]) -> _Part:
        """Return the pieces of a list of words."""
        names_by_word = [self._pieces(word) for word in words]
        spans = [span for word, names in zip(words, names_by_word, strict=True) for span in self._spans(word, names)]
        numbers = [number for number, names in enumerate(names_by_word) for _ in names]
        return _Part([name for names in names_by_word for name in names], spans, numbers)

    def _pieces(self, text: str) -> list[str]:
        """Return the names of the pieces of a text. Raises TextError for very long words."""
        longest = max(text.split(), key=len, default="")
        if len(longest) > MAX_WORD_CHARACTERS:
            raise TextError(
                f"{quote(longest, MAX_QUOTED)} has {len(longest):,} characters without a space; the tokenizer of "
                f"{quote_model(self._name)} is given at most {MAX_WORD_CHARACTERS}.",
                "Separate words with spaces.",
            )
        cache = getattr(self._tokenizer, "cache", None)
        if isinstance(cache, dict) and len(cache) > MAX_CACHED_WORDS:
            cache.clear()
        names: list[str] = self._tokenizer.tokenize(text)
        return names

    def _spans(self, text: str, names: Sequence[str]) -> list[_Span]:
        """Return the spans of pieces in a text. Raises TextError if they cannot be found."""
        spans = find_spans(text, names, self._tokenizer.unk_token)
        if spans is None:
            raise TextError(
                f"The tokenizer of {quote_model(self._name)} rewrites {quote(text, MAX_QUOTED)}, so its tokens "
                "cannot be found in it.",
                "Write it in another way.",
            )
        return spans


class _FoldedText:
    """A text folded for comparison: without blanks, case, accents and variants of quotes.

    ``characters`` are the folded characters, and ``positions`` their positions in the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        pairs = [(character, index) for index, original in enumerate(text) for character in _fold(original)]
        self.characters, self.positions = "".join(character for character, _ in pairs), [index for _, index in pairs]

    def span(self, start: int, end: int) -> _Span:
        """Return the span in the text between two positions in ``characters``, including combining marks of the last
        character.
        """
        if start == end:
            position = self.positions[start] if start < len(self.positions) else len(self.text)
            return position, position
        span_end = self.positions[end - 1] + 1
        while span_end < len(self.text) and unicodedata.category(self.text[span_end]).startswith("M"):
            span_end += 1
        return self.positions[start], span_end

    @cached_property
    def boundaries(self) -> list[int]:
        """Positions in ``characters`` where a word or a punctuation mark begins, and the end."""
        joined = [first.isalnum() and second.isalnum() for first, second in pairwise(self.characters)]
        gaps = [second > first + 1 for first, second in pairwise(self.positions)]
        starts = [
            index
            for index, (is_joined, is_gap) in enumerate(zip(joined, gaps, strict=True), 1)
            if is_gap or not is_joined
        ]
        return [*starts, len(self.characters)]


def _fold(text: str) -> str:
    """Fold a text for comparison: drop blanks, case, accents and variants of quotes."""
    folded = unicodedata.normalize("NFKD", text.translate(_QUOTES)).casefold()
    return "".join(c for c in folded if not (c.isspace() or unicodedata.category(c).startswith("M")))


def find_spans(
    text: str, names: Sequence[str], unknown: str | None = None, max_rewritten: int = MAX_REWRITTEN_PIECES
) -> list[_Span] | None:
    """Locate each piece in the text by its name, and return the spans; None if the pieces do not follow the text.

    Pieces that differ from the typed text, such as a placeholder for a user name or an address, share the span of the
    text that they replace, up to the first word after which text and pieces agree again. There may be at most
    ``max_rewritten`` of them in a row.
    """
    folded = _FoldedText(text)
    folded_names = [None if name == unknown else _fold(_MARKS.sub("", name)) for name in names]
    spans: list[_Span] = []
    position = piece = 0
    choices: list[tuple[int, int, Iterator[tuple[int, int]]]] = []  # choices that can be revised
    dead_ends = set[tuple[int, int]]()
    for _ in range(MAX_ATTEMPTS):
        while (
            piece < len(names)
            and (characters := folded_names[piece]) is not None
            and folded.characters.startswith(characters, position)
        ):
            spans.append(folded.span(position, position + len(characters)))
            position, piece = position + len(characters), piece + 1
        if piece == len(names) and position == len(folded.characters):
            return spans
        if (position, piece) not in dead_ends:
            dead_ends.add((position, piece))
            is_known = piece < len(names) and folded_names[piece] is not None
            max_pieces = max_rewritten if is_known else MAX_REWRITTEN_PIECES
            choices.append((position, piece, _iter_resume_points(folded, folded_names, position, piece, max_pieces)))
        while choices:
            position, piece, resume_points = choices[-1]
            if (resume_point := next(resume_points, None)) is not None:
                break
            choices.pop()
        else:
            return None
        del spans[piece:]
        spans += [folded.span(position, resume_point[0])] * (resume_point[1] - piece)
        position, piece = resume_point
    return None


def _iter_resume_points(
    folded: _FoldedText, folded_names: Sequence[str | None], position: int, piece: int, max_pieces: int
) -> Iterator[tuple[int, int]]:
    """Yield positions where text and pieces may agree again: after the fewest words, and then the fewest pieces."""
    first = bisect_right(folded.boundaries, position)
    for end in folded.boundaries[first : first + MAX_REWRITTEN_WORDS]:
        for next_piece in range(piece + 1, min(len(folded_names), piece + max_pieces) + 1):
            characters = folded_names[next_piece] if next_piece < len(folded_names) else None
            if (next_piece == len(folded_names)) == (end == len(folded.characters)) and (
                next_piece == len(folded_names)
                or characters is None
                or (characters and folded.characters.startswith(characters, end))
            ):
                yield end, next_piece
