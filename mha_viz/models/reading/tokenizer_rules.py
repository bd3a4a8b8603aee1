"""Export a tokenizer as data: how it changes characters, separates words and adds special pieces around a text.

A page that runs a model by itself (``browser/live/tokenizer.js``) follows these rules. They are measured on the
tokenizer itself, character by character, because other implementations have other Unicode tables.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tokenizers.pre_tokenizers import WhitespaceSplit

from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.getting.pipeline import flatten_steps
from mha_viz.models.reading.tokenizer import CHARACTERS_PER_PIECE, Tokenizer

_PADDED, _DECOMPOSED = 0, 1  # the character becomes itself between two spaces, or its NFD
_BLANK, _MARK = 0, 1  # the character separates words, or is a word
_SURROGATES = range(0xD800, 0xE000)
# All code points that Unicode has assigned, and the last two of each plane, which are not characters. Between these,
# all code points of a plane are of the same kind: unassigned or private.
_MEASURED_RANGES = (
    range(0x40000),
    range(0xE0000, 0xE1000),
    *(range(plane + 0xFFFE, plane + 0x10000) for plane in range(0x40000, 0x110000, 0x10000)),
)
_UNIFORM_RANGES = (
    *(range(plane, plane + 0xFFFE) for plane in range(0x40000, 0x110000, 0x10000) if plane != 0xE0000),
    range(0xE1000, 0xEFFFE),
)
_BYTE_LEVEL_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # as in ByteLevel
_BATCH_SIZE = 4096  # number of characters that are split in one call

JsonObject = Mapping[str, Any]
CharacterRun = tuple[int, int, "str | int"]  # the first and the last character, and what they become


def export_parts(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the parts of a tokenizer.json that the JavaScript library runs: how texts are split and words are cut.

    Raises ModelUnsupported for a tokenizer that works in another way.
    """
    tokenizer_json: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    _check_reproducible(tokenizer_json, tokenizer.name)
    other_parts: dict[str, Any] = {"normalizer": None, "post_processor": None, "decoder": None, "added_tokens": []}
    return {"model": tokenizer_json["model"], "pre_tokenizer": _make_word_splitter(tokenizer_json), **other_parts}


def export_rules(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return all other fields of ``Rules`` in tokenizer.js. Raises ModelUnsupported as :func:`export_parts`."""
    backend = tokenizer.backend
    tokenizer_json = json.loads(backend.to_str())
    _check_reproducible(tokenizer_json, tokenizer.name)
    byte_level_steps = [step for step in flatten_steps(tokenizer_json["pre_tokenizer"]) if step["type"] == "ByteLevel"]
    probe = backend.encode("a")
    text_positions = [position for position, sequence in enumerate(probe.sequence_ids) if sequence is not None]
    probe_pieces = [{"id": number, "name": name} for number, name in zip(probe.ids, probe.tokens, strict=True)]
    names = ("content", "id", "lstrip", "rstrip")
    return {
        "limit": tokenizer.limit,
        "characters": CHARACTERS_PER_PIECE * tokenizer.limit,
        "unknown": tokenizer.unknown,
        "delimiters": sorted(tokenizer.delimiters),
        "before": probe_pieces[: text_positions[0]],
        "after": probe_pieces[text_positions[-1] + 1 :],
        "added": [{name: added[name] for name in names} for added in tokenizer_json["added_tokens"]],
        "becomes": _find_changed_characters(backend.normalizer),
        "splits": None
        if byte_level_steps
        else list(_merge_runs(_find_separators(backend.pre_tokenizer, tokenizer_json))),
        "bytes": bool(byte_level_steps),
        "blankFirst": any(step["add_prefix_space"] for step in byte_level_steps),
    }


def _make_word_splitter(tokenizer_json: JsonObject) -> JsonObject | None:
    """Return the step that cuts the words separated by :func:`_find_separators`.

    The library's own expressions define white space differently.
    """
    *_, step = flatten_steps(tokenizer_json["pre_tokenizer"])
    if step["type"] != "ByteLevel":
        return dict(step) if step["type"] == "Split" else None
    words = {"type": "Split", "pattern": {"Regex": _BYTE_LEVEL_WORDS}, "behavior": "Isolated", "invert": False}
    byte_level_step = {**step, "add_prefix_space": False, "use_regex": False}
    return {
        "type": "Sequence",
        "pretokenizers": [words, byte_level_step] if step.get("use_regex", True) else [byte_level_step],
    }


def _check_reproducible(tokenizer_json: JsonObject, name: str) -> None:
    """Raise ModelUnsupported for a tokenizer that a page cannot reproduce.

    Its steps must handle each character independently, and be among those of the supported families.
    """
    label, remedy = quote_model(name), "Choose a model with the usual tokenizer of BERT, RoBERTa or GPT-2."
    for step in flatten_steps(tokenizer_json["normalizer"]):
        is_single_character = step["type"] == "Replace" and len(step["pattern"].get("String", "")) == 1
        if not is_single_character and step["type"] not in ("BertNormalizer", "Lowercase", "StripAccents"):
            problem = f"{label}: its tokenizer changes texts in a way ({step['type']}) that a page cannot reproduce."
            raise ModelUnsupported(problem, remedy)
    steps = [step["type"] for step in flatten_steps(tokenizer_json["pre_tokenizer"])]
    if steps not in (["BertPreTokenizer"], ["ByteLevel"], ["WhitespaceSplit", "Split"], ["WhitespaceSplit"]):
        raise ModelUnsupported(f"{label}: its tokenizer splits texts in a way that a page cannot reproduce.", remedy)
    model = tokenizer_json["model"]
    kind = model.get("type", "")
    fits_by_kind = {"BPE": steps == ["ByteLevel"], "WordPiece": model.get("continuing_subword_prefix") == "##"}
    if not fits_by_kind.get(kind, kind == "WordLevel"):
        raise ModelUnsupported(f"{label}: a page cannot split words as its tokenizer does ({kind}).", remedy)
    changes_text = any(flatten_steps(tokenizer_json["normalizer"]))
    if any(added["single_word"] or (added["normalized"] and changes_text) for added in tokenizer_json["added_tokens"]):
        raise ModelUnsupported(f"{label}: its tokenizer adds words of its own.", remedy)


def _find_changed_characters(normalizer: Any) -> list[CharacterRun]:
    """Return the characters that the tokenizer changes."""
    if normalizer is None:
        return []

    def find_replacement(character: str) -> str | int | None:
        """Return the replacement of a character; None if it is unchanged."""
        normalised: str = normalizer.normalize_str(character)
        if normalised == character:
            return None
        if normalised == f" {character} ":
            return _PADDED
        return (
            _DECOMPOSED if len(normalised) > 1 and normalised == unicodedata.normalize("NFD", character) else normalised
        )

    return list(_merge_runs(_iter_changes(find_replacement)))


def _iter_changes(convert: Callable[[str], str | int | None]) -> Iterator[CharacterRun]:
    """Yield the replacement of each character, in order. Unchanged characters are left out."""
    uniform_runs = ((span[0], span[-1], convert(chr(span[len(span) // 2]))) for span in _UNIFORM_RANGES)
    single_runs = (
        (code, code, convert(chr(code))) for codes in _MEASURED_RANGES for code in codes if code not in _SURROGATES
    )
    for first, last, result in sorted((*single_runs, *uniform_runs), key=lambda run: run[0]):
        if result is not None:
            yield first, last, result


def _find_separators(pre_tokenizer: Any, tokenizer_json: JsonObject) -> Iterator[CharacterRun]:
    """Yield the characters that separate words, and the characters that are words by themselves.

    Both kinds are split from the letters on either side.
    """
    first_step, *other_steps = flatten_steps(tokenizer_json["pre_tokenizer"])
    if other_steps:
        assert first_step["type"] == "WhitespaceSplit"
        pre_tokenizer = WhitespaceSplit()
    codes = [code for span in _MEASURED_RANGES for code in span if code not in _SURROGATES]
    codes += [span[len(span) // 2] for span in _UNIFORM_RANGES]
    kinds: dict[int, int] = {}
    for start in range(0, len(codes), _BATCH_SIZE):
        batch = codes[start : start + _BATCH_SIZE]
        pieces = pre_tokenizer.pre_tokenize_str("".join(f"a{chr(code)}a\n" for code in batch))
        ends = dict(span for _, span in pieces)
        for index, code in enumerate(batch):
            if ends[4 * index] == 4 * index + 1:  # the letter before it is alone
                kinds[code] = _MARK if 4 * index + 1 in ends else _BLANK
    return _iter_changes(lambda character: kinds.get(ord(character)))


def _merge_runs(runs: Iterable[CharacterRun]) -> Iterator[CharacterRun]:
    """Merge runs of neighbouring characters with the same replacement."""
    open_run: CharacterRun | None = None
    for first, last, replacement in runs:
        if open_run and open_run[1] + 1 == first and open_run[2] == replacement:
            open_run = (open_run[0], last, replacement)
            continue
        if open_run:
            yield open_run
        open_run = (first, last, replacement)
    if open_run:
        yield open_run
