"""Turn the tokens of a tokenizer (pieces) into texts and words, for loaded models and for tokens given by a user.

A vocabulary writes blanks in front of pieces ("Ġthe", "▁the", " the"), or marks the pieces that continue a word
("##ing"), end one ("a</w>") or do not end one ("Kat@@"). Its letters are those of the text, or stand for bytes: "Ã©" is
é, "Ċ" is a line end, and so is "<0x0A>".
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mha_viz.text.characters import (
    LINE_CHARACTERS,
    clean,
    is_accent,
    is_attached,
    is_emoji,
    is_sign,
    is_word_character,
    make_visible,
    strip_blanks,
)

CONTINUATION_MARK = "##"  # before the text of a piece that continues its word
END_MARK = "</w>"
OPEN_MARK = "@@"  # after the text of a piece whose word continues in the next piece
BLANKS = "Ġ▁ "  # prefixes of a piece that begins a word: byte-level, SentencePiece, and decoded
SPECIAL_NAMES = re.compile(  # names in capitals or with several parts; Qwen treats <tool_call> as a word
    r"\[(?!(MASK|UNK)\])/?g?[A-Z]{2,}(_[A-Z]+)*\]|</?s>(NOTUSED)?|<(pad|bos|eos|cls|sep|sop|eod|eop|eot)>"
    r"|</?(?!tool_)[A-Za-z]+(_[A-Za-z0-9]+)+>|<[|｜][^|｜]*[|｜]>"
)
# As in NLLB, mBART and M2M.
LANGUAGE_CODES = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|__([a-z]{2}|ast|ceb|ilo|nso)__")
MASK_NAMES = re.compile(r"\[MASK\]|<mask>")  # masked tokens; each is a word of its own
UNKNOWN = "[UNK]"  # the token that the model reads where the tokenizer has no piece
UNKNOWN_NAMES = (UNKNOWN, "<unk>")
BYTE_NAME = re.compile(r"<0x([0-9A-F]{2})>")  # SentencePiece's name of a byte
EMPTY_NAME = "∅"  # the name of a token that is the empty text
APOSTROPHES = frozenset("'’ʼ＇")
IDEOGRAPHS = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")  # BERT makes each a word
JOINER = "\u200d"  # joins several emoji into one


def _iter_alphabet() -> Iterator[tuple[str, int]]:
    """Yield each byte with its letter in byte-level vocabularies (Radford et al. 2019, section 2.2).

    A byte that is visible in Latin-1 is its own letter; the others have letters in order from U+0100.
    """
    next_letter = 0x100
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or (byte >= 0xA1 and byte != 0xAD):
            yield chr(byte), byte
        else:
            yield chr(next_letter), byte
            next_letter += 1


BYTE_LETTERS = dict(_iter_alphabet())
_BLANK_LETTERS = {ord(letter): chr(byte) for letter, byte in BYTE_LETTERS.items() if byte in b" \t\n\v\f\r"} | {
    0x2581: " "
}


class Piece(NamedTuple):
    """One piece as the tokenizer reports it: its name, its span, and the number of its word.

    ``word`` is the number that the tokenizer gives; if the vocabulary writes blanks, it is the same for all pieces.
    """

    name: str
    start: int
    end: int
    word: int | None  # None for [CLS], [SEP] and similar tokens
    segment: int
    in_vocabulary: bool = True  # False if the tokenizer has no piece for it: [UNK]


# ---- Decoding names ---------------------------------------------------------------------------------------------


class Spelling(NamedTuple):
    """Spelling of texts in a vocabulary.

    ``blanks`` are its letters for blanks, if it has any. Otherwise ``mark`` is the mark of pieces that continue a word,
    end it, or do not end it. ``letters_are_bytes``: each letter of a name stands for a byte. ``pieces_are_bytes``: each
    piece is one byte, and its name is the character with the number of that byte, as in ByT5.
    """

    blanks: str = ""
    mark: str = ""
    letters_are_bytes: bool = False
    pieces_are_bytes: bool = False

    @classmethod
    def detect(cls, names: Sequence[str]) -> Spelling:
        """Detect the spelling from the pieces of a text."""
        text_names = [name for name in names if name and not _has_no_text(name)]
        if _are_single_bytes(names):
            return cls(" ", pieces_are_bytes=True)
        if any(name[0] == "▁" or BYTE_NAME.fullmatch(name) for name in text_names):
            return cls("▁")
        has_end_marks = any(name.endswith(END_MARK) for name in text_names)
        if _are_bytes([name.removesuffix(END_MARK) for name in names]):
            return cls("", END_MARK, True) if has_end_marks else cls("Ġ", "", True)
        blank = next((blank for blank in "Ġ " if any(name[0] == blank for name in text_names)), "")
        if (
            not blank
            and any("▁" in name for name in text_names)
            and not any(_strip_mark(name) != name for name in text_names)
        ):
            return cls("▁")  # Gemma: a text begins without a blank, and a piece may contain one
        has_open_marks = any(name.endswith(OPEN_MARK) and name != OPEN_MARK for name in text_names)
        return (
            cls(blank)
            if blank
            else cls("", END_MARK if has_end_marks else OPEN_MARK if has_open_marks else CONTINUATION_MARK)
        )

    def number_words(self, names: Sequence[str], pair_start: int | None = None) -> list[int | None]:
        """Return the number of each piece's word, as far as marks separate words; None for special tokens."""
        numbers: list[int | None] = []
        count, is_open = 0, False
        for index, (name, is_special) in enumerate(zip(names, _are_special(names), strict=True)):
            if is_special:
                numbers.append(None)
                is_open = False
                continue
            is_continuation = bool(self.blanks) or (
                is_open and (self.mark != CONTINUATION_MARK or _strip_mark(name) != name)
            )
            count += not (is_continuation and index != pair_start)
            numbers.append(count)
            is_open_mark = self.mark == OPEN_MARK  # otherwise, the mark ends a word
            is_open = self.mark == CONTINUATION_MARK or (bool(self.mark) and name.endswith(self.mark) == is_open_mark)
        return numbers

    def decode_piece(self, name: str) -> bytes:
        """Return the text of a piece in UTF-8, without its mark. Never empty."""
        if name in UNKNOWN_NAMES:
            return UNKNOWN.encode()
        if _has_no_text(name):
            return name.encode()
        if self.pieces_are_bytes:
            return name.encode("latin-1")
        if self.mark == CONTINUATION_MARK:
            name = _strip_mark(name)
        elif self.mark and name != self.mark:
            name = name.removesuffix(self.mark)
        if self.letters_are_bytes and name and BYTE_LETTERS.keys() >= {*name}:
            return bytes(BYTE_LETTERS[letter] for letter in name)
        if self.blanks == "▁":
            byte = BYTE_NAME.fullmatch(name)
            return bytes([int(byte[1], 16)]) if byte else _encode_name(name.replace("▁", " "))
        if self.blanks:
            letters = name.lstrip(self.blanks)
            return b" " * (len(name) - len(letters)) + (_encode_name(letters) if letters or not name else b"")
        return _encode_name(name)


UNMARKED = Spelling()  # interprets no marks: every name is a word of its own


def read_names(
    names: Sequence[str], spelling: Spelling, pair_start: int | None = None
) -> tuple[tuple[str, str], list[Piece]]:
    """Decode the names of pieces: return the two texts (the second may be empty) and the pieces with their spans.

    If only marks separate words, these are joined by single spaces.
    """
    numbers = spelling.number_words(names, pair_start)
    buffers = bytearray(), bytearray()
    spans: list[tuple[int, int]] = []
    last_numbers: list[int | None] = [None, None]
    for index, (name, number) in enumerate(zip(names, numbers, strict=True)):
        segment = int(pair_start is not None and index >= pair_start)
        encoded = b"" if number is None else spelling.decode_piece(name)
        if last_numbers[segment] is None and (spelling.blanks == "▁" or encoded.strip()):
            encoded = encoded.removeprefix(b" ")  # SentencePiece adds a blank before a text
        if buffers[segment] and number is not None and number != last_numbers[segment]:
            buffers[segment].extend(b" ")
        last_numbers[segment] = last_numbers[segment] if number is None else number
        spans.append((len(buffers[segment]), len(buffers[segment]) + len(encoded)))
        buffers[segment].extend(encoded)
    (text, text_spans), (pair, pair_spans) = map(_decode, buffers)
    pieces = []
    for index, (name, (start, end), number) in enumerate(zip(names, spans, numbers, strict=True)):
        segment = int(pair_start is not None and index >= pair_start)
        char_spans = pair_spans if segment else text_spans
        position = char_spans[start - 1][1] if start else 0
        span = (
            (0, 0)
            if number is None
            else (char_spans[start][0], char_spans[end - 1][1])
            if end > start
            else (position, position)
        )
        pieces.append(Piece(name, *span, number, segment, name not in UNKNOWN_NAMES))
    return (text, pair), pieces


def read_offsets(
    names: Sequence[str], offsets: Sequence[tuple[int, int]], texts: tuple[str, str], pair_start: int | None = None
) -> list[Piece]:
    """Return the pieces of a text, or of two, from their names and character spans."""
    spelling = Spelling.detect(names)
    numbers = spelling.number_words(names, pair_start)
    pieces = []
    for index, (name, (start, end), number) in enumerate(zip(names, offsets, numbers, strict=True)):
        is_added = number is None or (start == end and bool(name) and not _get_white_space(name))
        segment = int(pair_start is not None and index >= pair_start)
        pieces.append(Piece(name, start, end, None if is_added else number, segment, name not in UNKNOWN_NAMES))
    if any(_belong_to_one_word(*pair, texts) for pair in pairwise(pieces)):
        return [piece._replace(word=None if piece.word is None else 0) for piece in pieces]
    return pieces


def _belong_to_one_word(previous: Piece, piece: Piece, texts: tuple[str, str]) -> bool:
    """Tell whether two pieces meet between letters, although their names make them separate words.

    If so, the vocabulary writes blanks, but the text has none.
    """
    if previous.segment != piece.segment or None in (previous.word, piece.word) or previous.word == piece.word:
        return False
    is_at_ideograph = IDEOGRAPHS.search(texts[piece.segment], max(0, piece.start - 1), piece.start + 1)
    return not is_at_ideograph and _meet_in_letters(previous, piece, texts)


def _has_no_text(name: str) -> bool:
    """Tell whether a name is that of a special token or a mask, which stands for no characters of the text."""
    return bool(SPECIAL_NAMES.fullmatch(name) or MASK_NAMES.fullmatch(name))


def _are_special(names: Sequence[str]) -> list[bool]:
    """Tell which names are those of special tokens.

    Translation models also read language codes. If some name has "▁" or is </s>, as in their vocabularies, a language
    code is special at the ends of a text and next to a special token such as </s>.
    """
    have_special_names = [bool(SPECIAL_NAMES.fullmatch(name)) for name in names]
    if not any("▁" in name or name == "</s>" for name in names):
        return have_special_names
    neighbours = zip([True, *have_special_names], [*have_special_names[1:], True], strict=False)
    return [
        is_named or (any(are_neighbours_special) and bool(LANGUAGE_CODES.fullmatch(name)))
        for name, is_named, are_neighbours_special in zip(names, have_special_names, neighbours, strict=True)
    ]


def _strip_mark(name: str) -> str:
    return (
        name[len(CONTINUATION_MARK) :]
        if name.startswith(CONTINUATION_MARK) and len(name) > len(CONTINUATION_MARK)
        else name
    )


def _encode_name(name: str) -> bytes:
    return (clean(name) or EMPTY_NAME).encode()


def _are_bytes(names: Sequence[str]) -> bool:
    """Tell whether the letters of names stand for bytes.

    They do if a blank or a line end is written as a byte letter, or if the decoded text is UTF-8 with characters beyond
    ASCII, which is very unlikely for ordinary letters.
    """
    runs, is_marked, is_all_bytes = [bytearray()], False, True
    for name in names:
        if _has_no_text(name):
            runs.append(bytearray())  # a text may be truncated within a character
        elif name and BYTE_LETTERS.keys() >= {*name}:
            is_marked |= name[0] == "Ġ" or ("Ċ" in name and not any(map(str.isalnum, name.strip("ĠĊčĉ"))))
            runs[-1].extend(BYTE_LETTERS[letter] for letter in name)
        else:
            runs.append(bytearray())
            is_all_bytes &= not name
    try:
        texts = [_decode_truncated(run) for run in runs]
    except UnicodeDecodeError:
        return is_marked and is_all_bytes
    text = "".join(texts)
    return is_marked or (is_all_bytes and not text.isascii() and all(c >= " " or c in LINE_CHARACTERS for c in text))


def _are_single_bytes(names: Sequence[str]) -> bool:
    """Tell whether each name is one character with the number of a byte, and the decoded text is UTF-8 beyond ASCII."""
    runs = [bytearray()]
    for name in names:
        if _has_no_text(name) or name in UNKNOWN_NAMES:
            runs.append(bytearray())
        elif len(name) == 1 and name <= "\xff":
            runs[-1].append(ord(name))
        else:
            return False
    try:
        return not "".join(map(_decode_truncated, runs)).isascii()
    except UnicodeDecodeError:
        return False


def _decode_truncated(data: bytearray) -> str:
    """Decode bytes whose first and last character may be incomplete. Raises UnicodeDecodeError."""
    return getincrementaldecoder("utf-8")().decode(bytes(data).lstrip(bytes(range(0x80, 0xC0))))


def _decode(data: bytearray) -> tuple[str, list[tuple[int, int]]]:
    """Decode UTF-8; also return for each byte the span of its character. An invalid byte becomes a name like <0xC3>."""
    characters: list[str] = []
    spans: list[tuple[int, int]] = []
    offset = 0
    for character in data.decode("utf-8", "surrogateescape"):
        size = len(character.encode("utf-8", "surrogateescape"))
        is_stray = "\udc80" <= character <= "\udcff"
        characters.append(clean(f"<0x{ord(character) & 0xFF:02X}>" if is_stray else character))
        spans += [(offset, offset + len(characters[-1]))] * size
        offset += len(characters[-1])
    return "".join(characters), spans


# ---- Spans and words -------------------------------------------------------------------------------------------


def adjust_spans(pieces: Sequence[Piece], texts: tuple[str, str]) -> list[Piece]:
    """Adjust the spans of pieces to the characters they stand for.

    Blanks before a piece, which byte-level tokenizers include, are removed. Accents after it, which tokenizers that
    compose letters leave out, are added. A piece that is a blank gets the span of that blank: tokenizers give "▁" the
    span of the following letter, and RoBERTa's "Ġ" no span.
    """
    result = []
    next_starts: list[int | None] = [None, None]  # for each text, where the next piece begins
    limits = [len(text) for text in texts]  # for each text, the start of the next piece that does not overlap
    for piece in reversed(pieces):
        segment, text = piece.segment, texts[piece.segment]
        start, next_start = piece.start, next_starts[segment]
        if piece.word is not None:
            if next_start is not None and next_start >= piece.end:
                limits[segment] = next_start
            piece = _adjust_span(piece, text, limits[segment], start == next_start)
        result.append(piece)
        if start < piece.end or piece.word is not None:
            next_starts[segment] = start
    return result[::-1]


def _adjust_span(piece: Piece, text: str, limit: int, shares_start: bool) -> Piece:
    start, end = piece.start, piece.end
    if _is_blank_mark(piece.name) and (shares_start or text[start:end].strip() not in ("", piece.name)):
        end = start
    if start == end and (blanks := _get_white_space(piece.name)):
        start -= min(len(blanks), start - len(text[:start].rstrip()))
    while start < end < limit and is_accent(text[end]) and not text[end - 1].isspace():
        end += 1
    return piece._replace(start=strip_blanks(text, start, end)[0], end=end)


def _is_blank_mark(name: str) -> bool:
    return bool(name) and not name.strip("▁")


def _get_white_space(name: str) -> str:
    """Return the white space that a name consists of; empty for other names."""
    white_space = name.translate(_BLANK_LETTERS)
    return white_space if white_space.isspace() else ""


def number_words(pieces: Sequence[Piece], texts: tuple[str, str]) -> list[int | None]:
    """Return the number of each piece's word, None for special tokens.

    The pieces must have the spans that :func:`adjust_spans` returns.

    Words are separated by white space and punctuation: "didn't" is one word although BERT splits it into three pieces,
    and the full stop of "tired." is a separate word although SentencePiece keeps it with "tired". An apostrophe belongs
    to a word only between two letters or digits. Every other punctuation mark or sign, including the underscore and a
    leading apostrophe, is a word of its own; several in one piece form a word together. Line ends and tabs are words,
    too, while a blank belongs to the word after it. Adjacent emoji form one word. In addition, the marks of a
    vocabulary without blanks separate words.
    """
    words: list[int | None] = []
    word = -1
    previous: Piece | None = None
    for piece in pieces:
        if piece.word is None:
            words.append(None)
            previous = None
            continue
        word += previous is None or _starts_word(previous, piece, texts[piece.segment])
        words.append(word)
        previous = piece
    return words


def _starts_word(previous: Piece, piece: Piece, text: str) -> bool:
    if piece.segment != previous.segment:
        return True
    if piece.start < previous.end:  # several byte pieces of one character, or an overlap
        return False
    previous_text, gap = text[previous.start : previous.end], text[previous.end : piece.start]
    piece_text = text[piece.start : piece.end]
    if not previous_text.strip():
        return not (_is_blank_mark(previous.name) or LINE_CHARACTERS.isdisjoint(previous_text))
    if (
        gap.strip() != gap
        or previous_text[-1].isspace()
        or any(MASK_NAMES.fullmatch(neighbour.name) for neighbour in (previous, piece))
    ):
        return True
    if _is_in_contraction(previous, piece, text) or is_attached(piece_text[:1] or "a") or previous_text[-1] == JOINER:
        return False
    base = _strip_attached(text, previous)
    if piece_text.isspace() or is_sign(piece_text[:1]) or is_sign(base[-1:]):
        return True
    if base and piece_text and is_emoji(base[-1]) != is_emoji(piece_text[0]):
        return True
    return piece.word != previous.word


def _strip_attached(text: str, piece: Piece) -> str:
    """Return the piece's text without accents and joiners; the character that they belong to if nothing is left."""
    start = piece.start
    while start and all(map(is_attached, text[start : piece.end])):
        start -= 1
    return "".join(character for character in text[start : piece.end] if not is_attached(character))


def _is_in_contraction(previous: Piece, piece: Piece, text: str) -> bool:
    """Return True if the two pieces meet at an apostrophe between letters: didn|'|t, didn|'t."""
    if previous.end != piece.start:
        return False
    for index in (piece.start, piece.start - 1):
        if 0 < index < len(text) - 1 and text[index] in APOSTROPHES:
            return is_word_character(text[index - 1]) and is_word_character(text[index + 1])
    return False


# ---- Drawn texts ------------------------------------------------------------------------------------------------


def make_drawn_texts(pieces: Sequence[Piece], words: Sequence[int | None], texts: tuple[str, str]) -> tuple[str, ...]:
    """Return the text of each piece as it is drawn; ``words`` are their word numbers.

    A piece that continues its word has "##" before it, the mark of WordPiece. This also holds if the tokenizer marks
    the pieces that begin words instead ("Ġ", "▁"): otherwise "ord" or "ina" would read as words. WordPiece's own pieces
    have the mark where their names have it: "did", "'", "t" have none.
    """
    has_begin_marks = any(piece.name[:1] in BLANKS for piece in pieces if piece.name)
    drawn_texts = []
    for i, piece in enumerate(pieces):
        is_continuation = (
            i > 0 and words[i] is not None and words[i] == words[i - 1] and _continues_word(pieces, i, texts)
        )
        is_marked = piece.name.startswith(CONTINUATION_MARK) or (has_begin_marks and piece.name[:1] not in BLANKS)
        is_marked |= not has_begin_marks and _meet_in_letters(pieces[i - 1], piece, texts)
        text = _make_visible_text(pieces, i, texts)
        drawn_texts.append(f"{CONTINUATION_MARK if is_continuation and is_marked and text != UNKNOWN else ''}{text}")
    return tuple(drawn_texts)


def _continues_word(pieces: Sequence[Piece], index: int, texts: tuple[str, str]) -> bool:
    """Tell whether the word has text other than blanks before this piece. Llama's "▁" alone begins a word."""
    previous = pieces[index - 1]
    if previous.end <= previous.start:
        return not _get_white_space(previous.name)
    return bool(texts[previous.segment][previous.start : previous.end].strip())


def _meet_in_letters(previous: Piece, piece: Piece, texts: tuple[str, str]) -> bool:
    """Tell whether two pieces meet between letters or digits.

    WordPiece's pieces never do so without its mark. In a text of one word, the pieces of a vocabulary that marks
    beginnings do.
    """
    text, start = texts[piece.segment], piece.start
    return (
        previous.end == start
        and 0 < start < len(text)
        and is_word_character(text[start - 1])
        and is_word_character(text[start])
    )


def _make_visible_text(pieces: Sequence[Piece], index: int, texts: tuple[str, str]) -> str:
    """Return the typed text of a piece in visible form, or the name of a piece that was not typed."""
    piece = pieces[index]
    text = texts[piece.segment][piece.start : piece.end]
    if piece.word is not None and _is_blank_mark(piece.name) and not text.strip():
        return make_visible(_get_white_space(piece.name))  # the blanks it stands for, whatever white space was typed
    if not text:
        return make_visible(_get_white_space(piece.name)) or piece.name or EMPTY_NAME
    part = 1  # byte-level pieces of one character share its span: number them
    while index >= part and pieces[index - part][1:3] == piece[1:3] and pieces[index - part].segment == piece.segment:
        part += 1
    return make_visible(text) if part == 1 else f"{make_visible(text)}·{part}"
