"""Check what the tokenizer of an untrusted model may do to a text, before any library runs it.

A tokenizer.json is a small program: it replaces, prepends and splits by regular expressions. Six replacements can turn
a sentence into gigabytes, and one expression can run for ever. Only what the supported families actually use is
allowed: steps that cannot grow a text without bound, and expressions with a bounded number of attempts.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from mha_viz.errors import ModelUnsupported, shorten_value

MAX_GROWTH = 8  # factor by which all replacements together may lengthen a text
MAX_GROWTH_WITH_MAP = 2  # as above, with a character map, which lengthens a text by itself
MAX_MAPPED = 24  # characters that replace a single character; the longest replacement in Unicode has 18
MAX_STEPS = 32
MAX_ADDED = 20_000  # tokens added to the vocabulary
MAX_ADDED_CHARACTERS = 1_000_000  # total characters of all added tokens
MAX_PIECE = 1_000  # characters
MAX_PREFIX_CHARACTERS = 16  # of the mark of a piece inside a word, as "##" does
MAX_WORD_CHARACTERS = 200  # characters of the longest word for WordPiece, whose time grows with their square
MAX_AMBIGUITIES = 2  # ambiguous conditions in all expressions together; each takes 1.5 s on very many spaces
MAX_TEMPLATE_ITEMS = 16  # special tokens and texts
MAX_LENGTH = 10_000_000  # length to pad or truncate to; the encoder does neither
MAX_MAP_BYTES = 4_000_000

# Expressions of real families that _SIMPLE_REGEX does not allow. In tests, their time is proportional to the text. They
# are used by Llama 3 and its successors, with digits in threes or singly, by Mistral's later models, and by the app's
# toy models.
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_PUNCTUATION_OR_SPACES = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED_LETTER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_ALLOWED_EXPRESSIONS = frozenset(
    {_WORDS + digits + _PUNCTUATION_OR_SPACES for digits in (r"\p{N}{1,3}", r"\p{N}")}
    | {r"\w+(?=n't\b)|n't\b|'s\b|\w+|[^\w\s]"}
    | {
        rf"{_CASED_LETTER}*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+|{_CASED_LETTER}+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*|\p{{N}}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    }
)
# Alternatives of a few single characters or classes. Only the last of them repeats, so that nothing can match in many
# ways.
_ATOM = r"(?:\\[pP]\{\^?\w{1,20}\}|\\[dDsSwWrnt]|\\[^\w]|\[(?:\\.|[^\[\]\\])+\]|[^\\\[\](){}.*+?|^$])"
_ALTERNATIVE = rf"(?:{_ATOM}\??){{0,6}}{_ATOM}(?:\+|\{{[1-9]\d?(?:,\d{{0,2}})?\}})?(?:\(\?!\\S\)|\$)?"
_SIMPLE_REGEX = re.compile(rf"{_ALTERNATIVE}(?:\|{_ALTERNATIVE}){{0,15}}")
_MAX_EXPRESSION = 4_000  # characters

_TYPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "normalizer": frozenset(
            {"BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend"}
            | {"Replace", "Strip", "StripAccents"}
        ),
        "pre_tokenizer": frozenset(
            {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace", "Punctuation", "Split"}
            | {"UnicodeScripts", "Whitespace", "WhitespaceSplit"}
        ),
        "post_processor": frozenset({"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}),
        "decoder": frozenset(
            {"BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"}
        ),
    }
)
SECTIONS = tuple(_TYPES)

JsonObject = Mapping[str, Any]

MAX_FIELDS = 4_000_000  # maximum number of fields of a message: a few per piece of the largest vocabulary
_FIXED_SIZES = {1: 8, 5: 4}  # bytes of a number, by its wire type
_MAX_VARINT_BITS = 64  # maximum bits of a varint, which has seven bits in each byte


class _DisallowedPart(Exception):
    """A part of the tokenizer is not allowed. Its message completes the sentence "its tokenizer …"."""


def check_tokenizer(tokenizer: JsonObject, label: str) -> None:
    """Check a tokenizer.json. Raises ModelUnsupported for anything that could stop the app."""
    with _convert_errors(label):
        _check_sections(tokenizer)
        _check_model(tokenizer["model"])
        _check_other_parts(tokenizer)


def check_steps(sections: JsonObject, label: str) -> None:
    """Check only the steps of a tokenizer, each section of SECTIONS as in a tokenizer.json. Raises ModelUnsupported."""
    with _convert_errors(label):
        _check_sections(sections)


def check_tokenizer_settings(settings: JsonObject, label: str) -> None:
    """Check a tokenizer_config.json. Raises ModelUnsupported."""
    with _convert_errors(label):
        _check_added_tokens([*(settings.get("added_tokens_decoder") or {}).values()])
        if settings.get("_spm_precompiled_charsmap"):
            _check_encoded_map(settings["_spm_precompiled_charsmap"])


def check_extra_tokens(added_tokens: JsonObject, label: str) -> None:
    """Check an added_tokens.json. Raises ModelUnsupported."""
    with _convert_errors(label):
        _check_added_tokens([{"content": content} for content in added_tokens])


def check_sentencepiece(raw: bytes, label: str) -> None:
    """Check the character map in a SentencePiece model: field 2 of field 3. Raises ModelUnsupported."""
    with _convert_errors(label):
        for spec in (value for number, value in iter_fields(raw) if number == 3 and isinstance(value, bytes)):
            for number, value in iter_fields(spec):
                if number == 2 and value and isinstance(value, bytes):
                    _check_map(value)


@contextmanager
def _convert_errors(label: str) -> Iterator[None]:
    """Turn errors about a tokenizer into ModelUnsupported. ``label``: the model's name in the message."""
    remedy = "Choose a model with the usual tokenizer of its family."
    try:
        yield
    except _DisallowedPart as refusal:
        problem = f"{label}: its tokenizer {refusal}, which could stop the app, so it is not opened."
        raise ModelUnsupported(problem, remedy) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise ModelUnsupported(f"{label} has a tokenizer in an unknown format.", remedy) from None


# ---- steps ----------------------------------------------------------------------------------------------------------


def _check_sections(sections: JsonObject) -> None:
    """Check the steps of all sections."""
    steps = {name: list(flatten_steps(sections.get(name))) for name in SECTIONS}
    ambiguities = 0
    for name, section_steps in steps.items():
        for step in section_steps:
            if step["type"] not in _TYPES[name]:
                raise _DisallowedPart(f"has a {name} of the kind “{step['type'][:40]}”")
            if "pattern" in step:
                ambiguities += _count_ambiguities(step["pattern"])
            if step["type"] == "TemplateProcessing":
                _check_template(step)
    if sum(step["type"] == "ByteLevel" for name in ("normalizer", "pre_tokenizer") for step in steps[name]) > 1:
        raise _DisallowedPart("turns bytes into characters more than once")
    if ambiguities > MAX_AMBIGUITIES:
        raise _DisallowedPart("uses too many regular expressions that look ahead")
    _check_growth(steps["normalizer"])


def flatten_steps(step: Any, depth: int = 0) -> Iterator[JsonObject]:
    """Yield the steps of a section in order, with sequences flattened."""
    if step is None:
        return
    if step["type"] != "Sequence":
        yield step
        return
    keys = ("normalizers", "pretokenizers", "processors", "decoders")
    inner_steps = next((step[key] for key in keys if key in step), None)
    if inner_steps is None:
        raise _DisallowedPart("has a sequence without steps")
    if depth > 3 or len(inner_steps) > MAX_STEPS:
        raise _DisallowedPart("has too many steps")
    for inner_step in inner_steps:
        yield from flatten_steps(inner_step, depth + 1)


def _check_growth(normalizers: list[JsonObject]) -> None:
    """Check by how much the normalizers can lengthen a text."""
    if len(normalizers) > MAX_STEPS:
        raise _DisallowedPart("has too many steps")
    growth, maps = 1.0, 0
    for step in normalizers:
        match step["type"]:
            case "Prepend":
                growth *= 1 + _compute_max_length(step["prepend"])
            case "Replace":
                replaced_length = len(step["pattern"].get("String", "1"))
                growth *= max(1.0, _compute_max_length(step["content"]) / replaced_length)
            case "Precompiled":
                maps += 1
                _check_encoded_map(step["precompiled_charsmap"])
    if maps > 1 or growth > (MAX_GROWTH_WITH_MAP if maps else MAX_GROWTH):
        raise _DisallowedPart("makes a text many times as long")


def _compute_max_length(content: str) -> int:
    """Return the greatest length of a text after a later step that decomposes its characters."""
    return len(unicodedata.normalize("NFKD", content[: 2 * MAX_GROWTH])) + len(content[2 * MAX_GROWTH :])


def _count_ambiguities(pattern: Any) -> int:
    """Return the number of conditions in a pattern that can match in two ways.

    For these, time may grow with the square of the text.
    """
    string, expression = pattern.get("String"), pattern.get("Regex")
    if (expression is None and isinstance(string, str) and string) or expression in _ALLOWED_EXPRESSIONS:
        return 0
    if not isinstance(expression, str) or len(expression) > _MAX_EXPRESSION or not _SIMPLE_REGEX.fullmatch(expression):
        raise _DisallowedPart(f"uses the regular expression “{shorten_value(expression)}”")
    return expression.count("(?!") + expression.count("$") - expression.count(r"\$")


def _check_template(step: JsonObject) -> None:
    """Check that a template does not repeat texts or add very many tokens."""
    for part in ("single", "pair"):
        texts = [item["Sequence"]["id"] for item in step[part] if "Sequence" in item]
        if len(step[part]) > MAX_TEMPLATE_ITEMS or len(set(texts)) != len(texts):
            raise _DisallowedPart("repeats a text")
    for token in step["special_tokens"].values():
        if len(token["ids"]) > MAX_TEMPLATE_ITEMS or len(token["tokens"]) > MAX_TEMPLATE_ITEMS:
            raise _DisallowedPart("puts very many tokens around a text")


def _check_encoded_map(base64_map: Any) -> None:
    """Check a character map as stored in JSON, in base64."""
    if len(base64_map) > 2 * MAX_MAP_BYTES:
        raise _DisallowedPart("has a character map that is too large")
    _check_map(base64.b64decode(base64_map, validate=True))


def _check_map(raw: bytes) -> None:
    """Check a character map.

    It consists of the length of its index in 4 bytes, the index, then the texts, each terminated by a zero byte.
    """
    texts = raw[4 + int.from_bytes(raw[:4], "little") :]
    if len(raw) > MAX_MAP_BYTES:
        raise _DisallowedPart("has a character map that is too large")
    for text in texts.split(b"\0"):
        if len(text) > 4 * MAX_MAPPED or len(unicodedata.normalize("NFKD", text.decode(errors="replace"))) > MAX_MAPPED:
            raise _DisallowedPart("makes a text many times as long")


# ---- everything else ------------------------------------------------------------------------------------------------


def _check_model(model: Any) -> None:
    """Check the vocabulary and its settings."""
    if model.get("type", "BPE") not in ("BPE", "Unigram", "WordLevel", "WordPiece"):
        raise _DisallowedPart("has an unknown kind of vocabulary")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(model.get(name) or "") > MAX_PREFIX_CHARACTERS:
            raise _DisallowedPart("marks the tokens of a word with a long text")
    if (model.get("max_input_chars_per_word") or 0) > MAX_WORD_CHARACTERS:
        raise _DisallowedPart("takes very long words")
    vocabulary = model["vocab"]
    pieces = vocabulary if isinstance(vocabulary, Mapping) else (piece for piece, _ in vocabulary)
    if max(map(len, pieces), default=0) > MAX_PIECE:
        raise _DisallowedPart("has very long tokens")


def _check_other_parts(tokenizer: JsonObject) -> None:
    """Check the added tokens, truncation and padding."""
    _check_added_tokens(tokenizer.get("added_tokens") or [])
    for name in ("truncation", "padding"):
        settings = dict(tokenizer.get(name) or {})
        strategy = settings.pop("strategy", None)
        numbers = [*settings.values(), *(strategy.values() if isinstance(strategy, Mapping) else ())]
        if any(isinstance(value, int | float) and not 0 <= value <= MAX_LENGTH for value in numbers):
            raise _DisallowedPart(f"has a {name} without bound")


def _check_added_tokens(tokens: list[Any]) -> None:
    """Check the number and lengths of added tokens."""
    characters = [len(token["content"]) for token in tokens]
    if len(tokens) > MAX_ADDED or sum(characters) > MAX_ADDED_CHARACTERS or max(characters, default=0) > MAX_PIECE:
        raise _DisallowedPart("adds too many tokens")


def iter_fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a protobuf message.

    A value is an integer, or the bytes of a text, of another message or of a float, as in SentencePiece models. Nothing
    is run or imported. Raises ValueError or IndexError for anything that is not a message.
    """
    position = count = 0
    while position < len(raw):
        count += 1
        if count > MAX_FIELDS:
            raise ValueError("more fields than a vocabulary has")
        tag, position = _read_varint(raw, position)
        wire_type = tag & 7
        if wire_type == 0:
            value, position = _read_varint(raw, position)
            yield tag >> 3, value
            continue
        if wire_type != 2 and wire_type not in _FIXED_SIZES:
            raise ValueError("not protobuf")
        length, position = _read_varint(raw, position) if wire_type == 2 else (_FIXED_SIZES[wire_type], position)
        if position + length > len(raw):
            raise ValueError("cut off")
        yield tag >> 3, raw[position : position + length]
        position += length


def _read_varint(raw: bytes, position: int) -> tuple[int, int]:
    """Read a varint. Return its value and the position after it."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        byte, position = raw[position], position + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number of more than ten bytes")
