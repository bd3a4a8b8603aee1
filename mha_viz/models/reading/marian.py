"""Build the two tokenizers of a Marian model from its files source.spm, target.spm and vocab.json.

transformers reads them with a library that gives no character positions. Here the pieces and scores of the
SentencePiece model become a tokenizer of the same kind as in all other families, whose piece numbers are those in
vocab.json.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import PreTrainedTokenizerFast

from mha_viz.errors import ModelBroken, ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.getting.pipeline import MAX_ADDED, MAX_ADDED_CHARACTERS, MAX_PIECE, iter_fields

FILES = ("source.spm", "target.spm", "vocab.json")
UNKNOWN, END, PADDING = "<unk>", "</s>", "<pad>"
_TEXT_TYPES = (1, 4)  # types of pieces that stand for text: normal and user-defined
_UNIGRAM = 1  # the type of a model whose pieces have probabilities
_UNUSED_PREFIX = "\uffff"  # occurs in no text; prefix of pieces that this side of the model never reads


class _SentencePiece(NamedTuple):
    """The content of an .spm file.

    Attributes:
        scores: the score of each piece that represents text.
        characters: the character map that is applied to a text before it is split.
    """

    scores: dict[str, float]
    characters: bytes


def make_tokenizers(folder: Path, name: str) -> tuple[Any, Any]:
    """Return the tokenizers of source and target.

    Raises ModelBroken for files that do not fit together, ModelUnsupported for another kind of pieces.
    """
    try:
        pieces = _read_pieces((folder / FILES[2]).read_text("utf-8"))
        source, target = (
            _make_tokenizer(_parse_sentencepiece((folder / file).read_bytes()), pieces) for file in FILES[:2]
        )
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise ModelBroken(
            f"{quote_model(name)}: {', '.join(FILES)} do not fit together, or one is damaged.", "Get the folder again."
        ) from error
    except NotImplementedError as error:
        raise ModelUnsupported(
            f"{quote_model(name)} has a SentencePiece model {error}.", "Choose another model."
        ) from error
    return source, target


def _read_pieces(vocabulary: str) -> list[str]:
    """Return the pieces in vocab.json in the order of their numbers, which are 0, 1, …"""
    number_by_piece = json.loads(vocabulary)
    if not isinstance(number_by_piece, dict) or set(number_by_piece.values()) != set(range(len(number_by_piece))):
        raise ValueError("not a vocabulary")
    if max(map(len, number_by_piece)) > MAX_PIECE or not {UNKNOWN, END, PADDING} <= number_by_piece.keys():
        raise ValueError("odd pieces")
    return sorted(number_by_piece, key=lambda piece: int(number_by_piece[piece]))


def _parse_sentencepiece(raw: bytes) -> _SentencePiece:
    """Parse an .spm file."""
    scores, characters = dict[str, float](), b""
    for number, value in iter_fields(raw):
        if number == 1 and isinstance(value, bytes):
            piece = dict(iter_fields(value))
            if piece.get(3, _TEXT_TYPES[0]) in _TEXT_TYPES:
                scores[_require_bytes(piece[1]).decode()] = struct.unpack("<f", _require_bytes(piece[2]))[0]
        elif number == 2 and isinstance(value, bytes) and dict(iter_fields(value)).get(3, _UNIGRAM) != _UNIGRAM:
            raise NotImplementedError("whose pieces have no probabilities")
        elif number == 3 and isinstance(value, bytes):
            characters = _require_bytes(dict(iter_fields(value)).get(2, b""))
    return _SentencePiece(scores, characters)


def _require_bytes(value: int | bytes) -> bytes:
    """Return the value if it is bytes. Raises TypeError for a number."""
    if not isinstance(value, bytes):
        raise TypeError("a number in place of bytes")
    return value


def _make_tokenizer(model: _SentencePiece, pieces: list[str]) -> Any:
    """Build a tokenizer from a SentencePiece model and the pieces in the order of their numbers."""
    lowest_score = min(model.scores.values())
    codes = [piece for piece in pieces if piece.startswith(">>") and piece.endswith("<<")]  # codes of target languages
    if len(codes) > MAX_ADDED or sum(map(len, codes)) > MAX_ADDED_CHARACTERS:
        raise NotImplementedError("with more codes than there are languages")
    special_pieces = {UNKNOWN, END, PADDING, *codes}
    vocabulary = [
        (piece, model.scores[piece])
        if piece in model.scores
        else (_UNUSED_PREFIX * (piece not in special_pieces) + piece, lowest_score)
        for piece in pieces
    ]
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=pieces.index(UNKNOWN), byte_fallback=False))
    steps = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    character_map = [normalizers.Precompiled(model.characters)] if model.characters else []
    tokenizer.normalizer = normalizers.Sequence([*character_map, *steps])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A $B {END}", special_tokens=[(END, pieces.index(END))]
    )
    tokenizer.add_special_tokens([AddedToken(code, normalized=False) for code in codes])
    tokenizer_class: Any = PreTrainedTokenizerFast
    return tokenizer_class(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        eos_token=END,
        pad_token=PADDING,
        model_input_names=["input_ids", "attention_mask"],
    )
