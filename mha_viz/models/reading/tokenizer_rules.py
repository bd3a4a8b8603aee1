"""A tokenizer as data: what becomes of every character, what separates words, and the pieces around a text.

A page that reads by itself (``browser/live/tokenizer.js``) follows these rules. They are measured on the tokenizer
itself, character by character, because another implementation of it has other tables of Unicode.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tokenizers.pre_tokenizers import WhitespaceSplit

from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.getting.pipeline import flat
from mha_viz.models.reading.tokenizer import CHARACTERS_PER_PIECE, Tokenizer

_PADDED, _DECOMPOSED = 0, 1  # a character between two spaces, and its NFD
_BLANK, _MARK = 0, 1  # separates words; is a word
_SURROGATES = range(0xD800, 0xE000)
# Everything that Unicode has assigned, and the last two of each plane, which are no characters. Between these, a plane
# holds characters of one kind: unassigned ones, or private ones.
_MEASURED = (
    range(0x40000),
    range(0xE0000, 0xE1000),
    *(range(plane + 0xFFFE, plane + 0x10000) for plane in range(0x40000, 0x110000, 0x10000)),
)
_ALIKE = (
    *(range(plane, plane + 0xFFFE) for plane in range(0x40000, 0x110000, 0x10000) if plane != 0xE0000),
    range(0xE1000, 0xEFFFE),
)
_BYTE_LEVEL_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # of ByteLevel
_TOGETHER = 4096  # characters that are split in one call

JsonObject = Mapping[str, Any]
CharacterRun = tuple[int, int, "str | int"]  # the first and the last character, and what they become


def parts(tokenizer: Tokenizer) -> dict[str, Any]:
    """The parts of a tokenizer.json that the library for JavaScript runs: how a text is split and a word cut.

    Raises ModelUnsupported for a tokenizer that works in another way.
    """
    written: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    _check(written, tokenizer.name)
    rest: dict[str, Any] = {"normalizer": None, "post_processor": None, "decoder": None, "added_tokens": []}
    return {"model": written["model"], "pre_tokenizer": _cutting(written), **rest}


def rules(tokenizer: Tokenizer) -> dict[str, Any]:
    """Everything else that ``Rules`` of tokenizer.js names. Raises ModelUnsupported as :func:`parts`."""
    backend = tokenizer.backend
    written = json.loads(backend.to_str())
    _check(written, tokenizer.name)
    by_bytes = [step for step in flat(written["pre_tokenizer"]) if step["type"] == "ByteLevel"]
    probe = backend.encode("a")
    inside = [place for place, sequence in enumerate(probe.sequence_ids) if sequence is not None]
    around = [{"id": number, "name": name} for number, name in zip(probe.ids, probe.tokens, strict=True)]
    names = ("content", "id", "lstrip", "rstrip")
    return {
        "limit": tokenizer.limit,
        "characters": CHARACTERS_PER_PIECE * tokenizer.limit,
        "unknown": tokenizer.unknown,
        "delimiters": sorted(tokenizer.delimiters),
        "before": around[: inside[0]],
        "after": around[inside[-1] + 1 :],
        "added": [{name: added[name] for name in names} for added in written["added_tokens"]],
        "becomes": _becomes(backend.normalizer),
        "splits": None if by_bytes else list(_runs(_splits(backend.pre_tokenizer, written))),
        "bytes": bool(by_bytes),
        "blankFirst": any(step["add_prefix_space"] for step in by_bytes),
    }


def _cutting(written: JsonObject) -> JsonObject | None:
    """How words are cut that :func:`_splits` has separated. The library's own expressions have another notion of white
    space."""
    *_, step = flat(written["pre_tokenizer"])
    if step["type"] != "ByteLevel":
        return dict(step) if step["type"] == "Split" else None
    words = {"type": "Split", "pattern": {"Regex": _BYTE_LEVEL_WORDS}, "behavior": "Isolated", "invert": False}
    in_bytes = {**step, "add_prefix_space": False, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [words, in_bytes] if step.get("use_regex", True) else [in_bytes]}


def _check(written: JsonObject, name: str) -> None:
    """Raise ModelUnsupported for a tokenizer whose steps do not look at each character alone, or that has others than
    those of the families."""
    who, remedy = quote_model(name), "Choose a model with the usual tokenizer of BERT, RoBERTa or GPT-2."
    for step in flat(written["normalizer"]):
        one = step["type"] == "Replace" and len(step["pattern"].get("String", "")) == 1
        if not one and step["type"] not in ("BertNormalizer", "Lowercase", "StripAccents"):
            problem = f"{who}: its tokenizer changes texts in a way ({step['type']}) that a page cannot follow."
            raise ModelUnsupported(problem, remedy)
    steps = [step["type"] for step in flat(written["pre_tokenizer"])]
    if steps not in (["BertPreTokenizer"], ["ByteLevel"], ["WhitespaceSplit", "Split"], ["WhitespaceSplit"]):
        raise ModelUnsupported(f"{who}: its tokenizer splits texts in a way that a page cannot follow.", remedy)
    model = written["model"]
    kind = model.get("type", "")
    fits = {"BPE": steps == ["ByteLevel"], "WordPiece": model.get("continuing_subword_prefix") == "##"}
    if not fits.get(kind, kind == "WordLevel"):
        raise ModelUnsupported(f"{who}: a page cannot cut words as its tokenizer does ({kind}).", remedy)
    changed = any(flat(written["normalizer"]))
    if any(added["single_word"] or (added["normalized"] and changed) for added in written["added_tokens"]):
        raise ModelUnsupported(f"{who}: its tokenizer adds words of its own.", remedy)


def _becomes(normalizer: Any) -> list[CharacterRun]:
    """The characters that the tokenizer changes."""
    if normalizer is None:
        return []

    def becomes(character: str) -> str | int | None:
        made: str = normalizer.normalize_str(character)
        if made == character:
            return None
        if made == f" {character} ":
            return _PADDED
        return _DECOMPOSED if len(made) > 1 and made == unicodedata.normalize("NFD", character) else made

    return list(_runs(_of_each(becomes)))


def _of_each(what: Callable[[str], str | int | None]) -> Iterator[CharacterRun]:
    """What each character becomes, in order; characters that stay are left out."""
    alike = ((span[0], span[-1], what(chr(span[len(span) // 2]))) for span in _ALIKE)
    each = ((code, code, what(chr(code))) for plane in _MEASURED for code in plane if code not in _SURROGATES)
    for first, last, made in sorted((*each, *alike), key=lambda run: run[0]):
        if made is not None:
            yield first, last, made


def _splits(pre_tokenizer: Any, written: JsonObject) -> Iterator[CharacterRun]:
    """Which characters separate words, and which are words: those that stand apart from the letters beside them."""
    first, *others = flat(written["pre_tokenizer"])
    if others:
        assert first["type"] == "WhitespaceSplit"
        pre_tokenizer = WhitespaceSplit()
    codes = [code for plane in _MEASURED for code in plane if code not in _SURROGATES]
    codes += [span[len(span) // 2] for span in _ALIKE]
    kinds: dict[int, int] = {}
    for start in range(0, len(codes), _TOGETHER):
        together = codes[start : start + _TOGETHER]
        pieces = pre_tokenizer.pre_tokenize_str("".join(f"a{chr(code)}a\n" for code in together))
        ends = dict(span for _, span in pieces)
        for at, code in enumerate(together):
            if ends[4 * at] == 4 * at + 1:  # the letter before it is alone
                kinds[code] = _MARK if 4 * at + 1 in ends else _BLANK
    return _of_each(lambda character: kinds.get(ord(character)))


def _runs(made: Iterable[CharacterRun]) -> Iterator[CharacterRun]:
    """Neighbours that become the same, together."""
    open_run: CharacterRun | None = None
    for first, last, becomes in made:
        if open_run and open_run[1] + 1 == first and open_run[2] == becomes:
            open_run = (open_run[0], last, becomes)
            continue
        if open_run:
            yield open_run
        open_run = (first, last, becomes)
    if open_run:
        yield open_run
