"""Convert text, or words, to the pieces that a model reads, and find the position of each piece in the text."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import accumulate
from typing import Any, NamedTuple

from mha_viz.errors import EmptyText, ModelBroken, TextError, check_kind
from mha_viz.model_names import quote_model, shorten_name
from mha_viz.process.log import describe_error
from mha_viz.quotes import quote
from mha_viz.text import Cut, Piece, Spelling, TokenizedText, WordPieces, build_text, clean

MAX_QUOTED = 40  # number of characters quoted from the part that is cut
CHARACTERS_PER_PIECE = 40  # bounds the text given to the tokenizer, whose time grows with the text, not with the limit

_log = logging.getLogger(__name__)


class TextPieces(NamedTuple):
    """A text, and a second one or "", as a model reads them, cut to its limit. The lists have one entry per piece."""

    text: str
    pair: str
    ids: list[int]
    types: list[int]
    pieces: list[Piece]
    cut: Cut | None

    def tokenized(self) -> TokenizedText:
        """Return the text with its tokens."""
        return build_text(self.text, self.pair, self.pieces, self.cut)

    def describe_cut(self, model: str) -> str:
        """Describe how much of the text is within the limit of a model, and where the rest begins; empty if nothing is
        cut.
        """
        cut = self.cut
        if cut is None:
            return ""
        length = f"has {'more than ' * cut.more}{cut.pieces:,}" if cut.pieces > cut.limit else "is very long"
        sentences = [f"{model} reads at most {cut.limit:,} tokens, and the text {length}."]
        for text_name, text, end in zip(("text", "second text"), (self.text, self.pair), cut.kept, strict=True):
            remainder = text[end:].strip()
            if remainder:
                share = f"the first {end:,} of {len(text):,} characters are kept"
                sentences.append(
                    f"Of the {text_name}, {share}; the rest is cut, from {quote(remainder, MAX_QUOTED)} on."
                )
        return " ".join(sentences)


class Tokenizer:
    """The tokenizer of the model ``name``.

    It reads at most ``limit`` pieces, including special ones, and only single texts unless ``pairs`` is set. It does
    not change after creation, so any number of threads may call it.
    """

    def __init__(self, tokenizer: Any, name: str, limit: int, pairs: bool = True) -> None:
        self.name, self.limit = shorten_name(name), limit
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        word_ids = {tokenizer.mask_token_id, tokenizer.unk_token_id}
        boundary_ids = {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id}
        self.delimiters = frozenset((set(tokenizer.all_special_ids) - word_ids) | boundary_ids) - {None}
        # GPT-2's unknown token is its end-of-text token, and it never reads an unknown one.
        self.unknown = None if tokenizer.unk_token_id in boundary_ids else tokenizer.unk_token_id
        self._reads_pairs = pairs and _supports_pairs(self._backend)
        self._blank = _find_word_separator(self._backend)
        self._writes_blanks = bool(Spelling.detect(self._backend.encode("a a").tokens).blanks)
        self.prefix = ""

    def prefixed(self, prefix: str) -> Tokenizer:
        """Return this tokenizer with a ``prefix`` before every text, such as "query: ".

        The pieces of the prefix are special tokens. In a pair, only the first text gets the prefix.
        """
        prefixed_tokenizer = copy(self)
        prefixed_tokenizer.prefix = clean(prefix)
        return prefixed_tokenizer

    @property
    def backend(self) -> Any:
        """The underlying tokenizer of the library tokenizers."""
        return self._backend

    def read(self, text: str, pair: str = "") -> TextPieces:
        """Return the pieces of a text, and of a second text that the model reads with it.

        Text beyond the limit is cut, from the longer of the two first. Raises EmptyText if nothing is left to read,
        TextError for a pair that the model cannot read.
        """
        text, pair = clean(text), clean(pair)
        pair = pair if pair.strip() else ""
        if not text.strip():
            raise EmptyText("Nothing was typed.", "Type a sentence, or choose an example.")
        if pair and not self._reads_pairs:
            raise TextError(f"{self.name} reads one text at a time.", "Leave the second sentence empty.")
        max_characters = CHARACTERS_PER_PIECE * self.limit
        texts = (text[:max_characters], pair[:max_characters]) if pair else (text[:max_characters],)
        encoding = self._encode(self.prefix + texts[0], *texts[1:])
        text_numbers, n_pieces = encoding.sequence_ids, len(encoding)
        kept_indices = range(n_pieces) if n_pieces <= self.limit else _choose_kept_pieces(text_numbers, self.limit)
        pieces = self._make_pieces(encoding, kept_indices)
        for number, part in enumerate(texts):
            if all(piece.end <= piece.start or piece.segment != number for piece in pieces):
                text_name = ("the text", "the second sentence")[number]
                description = f"{text_name} ({len(part):,} characters)" if len(part) > 1 else text_name
                raise EmptyText(
                    f"The tokenizer of {self.name} keeps nothing of {description}.",
                    "It may hold only invisible characters; type at least one word.",
                )
        has_unread_text = len(text) > max_characters or (len(texts) == 2 and len(pair) > max_characters)
        cut = None
        if has_unread_text or n_pieces > self.limit:
            kept_ends = [max((p.end for p in pieces if p.segment == number), default=0) for number in (0, 1)]
            if n_pieces <= self.limit:  # only the number of characters was too large
                kept_ends = [len(texts[0]), len(texts[1]) if len(texts) == 2 else 0]
            cut = Cut(n_pieces, self.limit, (kept_ends[0], kept_ends[1]), has_unread_text)
        ids, types = encoding.ids, encoding.type_ids  # each access creates a new list
        return TextPieces(text, pair, [ids[i] for i in kept_indices], [types[i] for i in kept_indices], pieces, cut)

    def read_words(self, forms: Sequence[str]) -> WordPieces:
        """Return the pieces of a sentence that is given as words, such as a sentence of a treebank.

        Raises TextError if it has more pieces than the model reads, or a word of which the tokenizer keeps nothing.
        """
        if isinstance(forms, str):
            raise TextError("The words are one string.", "Give a list of words, or use encode.")
        check_kind(forms, Collection, "a list of words", "Give one, or use encode.")
        characters = sum(len(form) for form in forms if isinstance(form, str))
        max_characters = CHARACTERS_PER_PIECE * self.limit
        # Check this before tokenizing, which takes longer for long text.
        if len(forms) > self.limit or characters > max_characters:
            most = f"{self.limit:,} words" if len(forms) > self.limit else f"{max_characters:,} characters"
            raise TextError(
                f"{len(forms):,} words of {characters:,} characters; {self.name} reads {self.limit} tokens.",
                f"Shorten the sentence to at most {most}.",
            )
        forms, prefix_words = [clean(form) for form in forms], self.prefix.split()
        if not any(form.strip() for form in forms):
            raise EmptyText("The sentence has no word.", "Give at least one.")
        spaced_words = [self._blank * (i > 0) + form for i, form in enumerate((*prefix_words, *forms))]
        encoding = self._encode(spaced_words, is_pretokenized=True)
        if len(encoding) > self.limit:
            raise TextError(f"{len(encoding)} tokens; {self.name} reads {self.limit}.", "Shorten the sentence.")
        # Words of the prefix get negative numbers here.
        numbers = [None if word is None else word - len(prefix_words) for word in encoding.word_ids]
        ids = tuple(encoding.ids)
        lost_words = set(range(len(forms))).difference(numbers)
        if lost_words:
            word = min(lost_words)
            raise TextError(
                f"The tokenizer of {self.name} keeps nothing of word {word + 1}, {quote(forms[word])}.",
                "Leave it out.",
            )
        words = tuple(None if number is None or number < 0 else number for number in numbers)
        names = [
            name if number is None or number >= 0 else _make_readable_name(prefix_words[number][slice(*span)], name)
            for name, number, span in zip(encoding.tokens, numbers, encoding.offsets, strict=True)
        ]
        in_vocabulary = tuple(word is None or token != self.unknown for word, token in zip(words, ids, strict=True))
        spans = self._compute_spans(forms, words, encoding.offsets, bool(prefix_words))
        return WordPieces(tuple(forms), tuple(names), ids, tuple(encoding.type_ids), words, spans, in_vocabulary)

    def _compute_spans(
        self, forms: Sequence[str], words: Sequence[int | None], offsets: Sequence[tuple[int, int]], has_prefix: bool
    ) -> tuple[tuple[int, int], ...]:
        """Return the span of each piece in the words joined by single spaces, from its span in its word.

        ``has_prefix``: whether a prefix comes before the first word.
        """
        word_starts = list(accumulate((len(form) + 1 for form in forms), initial=0))
        blank = len(self._blank)  # offset before every word except the very first
        spans = []
        for word, (start, end) in zip(words, offsets, strict=True):
            if word is None:
                spans.append((0, 0))
                continue
            word_start, word_end = word_starts[word], word_starts[word + 1] - 1
            shift = word_start - blank * (has_prefix or word > 0)
            spans.append((max(word_start, shift + start), min(word_end, shift + end)))
        return tuple(spans)

    def _encode(self, *texts: Any, **options: Any) -> Any:
        """Encode with the underlying tokenizer, turning its panics into errors."""
        with convert_panics(self.name):
            return self._backend.encode(*texts, **options)

    def _make_pieces(self, encoding: Any, kept_indices: Sequence[int]) -> list[Piece]:
        """Return the kept pieces of an encoding, with positions in the text without the prefix."""
        ids, names, spans, words = encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids
        text_numbers = encoding.sequence_ids
        pieces: list[Piece] = []
        segment = 0
        for i in kept_indices:
            if text_numbers[i] is None:  # added by the tokenizer: belongs to the text before it
                pieces.append(Piece(names[i], 0, 0, None, segment))
                continue
            segment = text_numbers[i]
            word = None if ids[i] in self.delimiters else 0 if self._writes_blanks else words[i]
            start, end = spans[i]
            if segment == 0 and self.prefix:
                if end <= len(self.prefix):
                    pieces.append(Piece(_make_readable_name(self.prefix[start:end], names[i]), 0, 0, None, segment))
                    continue
                start, end = max(0, start - len(self.prefix)), end - len(self.prefix)
            pieces.append(Piece(names[i], start, end, word, segment, ids[i] != self.unknown))
        return pieces


@contextmanager
def convert_panics(name: str) -> Iterator[None]:
    """Turn a panic in a Rust library into an error.

    A panic is not an Exception, so every handler of the app and the command line would miss it.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        _log.warning("%s: %s", quote_model(name), describe_error(error))  # its message may quote the text
        problem = f"The tokenizer or the weights of {quote_model(name)} crashed the library that reads them."
        raise ModelBroken(problem, "Try another text, or another model.") from None


def _make_readable_name(text: str, name: str) -> str:
    """Return the text of a prefix's piece, or the name of the piece if that text is blank."""
    return text.strip() or name


def _supports_pairs(tokenizer: Any) -> bool:
    """Return whether the tokenizer puts a separator between two texts; GPT-2 simply joins them."""
    text_numbers = tokenizer.encode("a", "a").sequence_ids
    return 1 in text_numbers and None in text_numbers[: text_numbers.index(1)]


def _find_word_separator(tokenizer: Any) -> str:
    """Return the prefix with which a word of a list is tokenized as in a text: a space for byte-level tokenizers."""
    ids_with_blank = tokenizer.encode(["a", " b"], is_pretokenized=True).ids
    ids_without_blank = tokenizer.encode(["a", "b"], is_pretokenized=True).ids
    return " " if tokenizer.encode("a b").ids == ids_with_blank != ids_without_blank else ""


def _choose_kept_pieces(text_numbers: list[int | None], limit: int) -> list[int]:
    """Return the indices of the pieces to keep: special ones, and the beginning of each text.

    The longer text is cut first.
    """
    lengths = [text_numbers.count(0), text_numbers.count(1)]
    room = max(0, limit - text_numbers.count(None))
    shorter = min(*lengths, room // 2)
    lengths_kept = [room - shorter, shorter] if lengths[0] > lengths[1] else [shorter, room - shorter]
    indices, piece_counts = [], [0, 0]
    for index, number in enumerate(text_numbers):
        if number is None or piece_counts[number] < lengths_kept[number]:
            indices.append(index)
        if number is not None:
            piece_counts[number] += 1
    return indices
