"""Untrusted tokenizers: what the families actually use passes; what grows without bound or never ends is refused."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

from mha_viz.errors import ModelUnsupported
from mha_viz.models.families import FAMILIES
from mha_viz.models.getting import pipeline
from mha_viz.models.getting.catalog import CATALOG
from mha_viz.models.getting.folder import check_folder
from mha_viz.models.getting.hub import find_local_folder
from mha_viz.models.getting.pipeline import (
    check_extra_tokens,
    check_sentencepiece,
    check_tokenizer,
    check_tokenizer_settings,
)
from mha_viz.models.reading.encoder import Encoder
from tests import lanes, tiny_models
from tests.oracles import SENTENCE

VOCABULARY = {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}


def tokenizer(**sections: Any) -> dict[str, Any]:
    return {"model": VOCABULARY, **sections}


def sequence(key: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", key: list(steps)}


def replace(pattern: str, content: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def split(expression: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def charsmap(*texts: str) -> bytes:
    """A character map with an empty index."""
    return struct.pack("<I", 4) + bytes(4) + b"".join(text.encode() + b"\0" for text in texts)


def precompiled(*texts: str) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(*texts)).decode()}


# ---- What families use -----------------------------------------------------------------------------------


# Families whose files name the class that reads them.
CLASSES = {
    "bloom": "GPT2Tokenizer",
    "falcon": "GPT2Tokenizer",
    "llama": "LlamaTokenizer",
    "mistral": "LlamaTokenizer",
    "mixtral": "LlamaTokenizer",
    "olmo2": "GPT2Tokenizer",
    "stablelm": "GPTNeoXTokenizer",
    "modernbert": "GPTNeoXTokenizer",
    "phi3": "LlamaTokenizer",
}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_tokenizer_of_every_family_passes(family: str) -> None:
    """As transformers builds it for a vocabulary."""
    made = getattr(transformers, CLASSES.get(family) or TOKENIZER_MAPPING_NAMES[family])()
    check_tokenizer(json.loads(made.backend_tokenizer.to_str()), family)


def test_the_apps_own_tokenizers_pass() -> None:
    for row in CATALOG.values():
        if row.kind in ("own", "bundled"):
            folder = find_local_folder(row)
            assert folder is not None
            check_folder(folder)


@pytest.mark.parametrize("family", lanes.some([*tiny_models.FAMILIES], *tiny_models.TOKENIZERS))
def test_a_trained_tokenizer_passes(family: str, tiny_folder: Callable[[str], Path]) -> None:
    check_folder(tiny_folder(family))


LONGEST = "صلى الله عليه وسلم"  # what Unicode makes of U+FDFA
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SPACES = replace(" {2,}", " ", "Regex")

# The steps in published files, where they differ from what the classes build.
PUBLISHED: dict[str, dict[str, Any]] = {
    "llama 1 and 2, tinyllama": {
        "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")),
        "pre_tokenizer": None,
        "decoder": sequence(
            "decoders",
            replace("▁", " "),
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ),
    },
    "llama 3": {"pre_tokenizer": sequence("pretokenizers", split(LLAMA3), BYTES)},
    "smollm": {"pre_tokenizer": sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, BYTES)},
    "deepseek-llm": {
        "normalizer": sequence("normalizers"),
        "pre_tokenizer": sequence(
            "pretokenizers",
            *map(
                split,
                (
                    "[\r\n]",
                    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺ𞤀-𞥃]+",
                    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
                    r"\s+$",
                    "[一-龥ࠀ-一가-퟿]+",
                ),
            ),
            {"type": "Digits", "individual_digits": True},
            BYTES,
        ),
    },
    "falcon 3": {
        "pre_tokenizer": sequence(
            "pretokenizers",
            {"type": "Punctuation", "behavior": "Contiguous"},
            BYTES,
            {"type": "Digits", "individual_digits": False},
            split("[0-9][0-9][0-9]"),
        )
    },
    "gpt2 by a regular expression": {"pre_tokenizer": sequence("pretokenizers", split(GPT2), BYTES)},
    "gemma 2": {
        "normalizer": replace(" ", "▁"),
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
        "added_tokens": [{"id": i, "content": "\n" * i} for i in range(1, 32)],
    },
    "modernbert": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": BYTES | {"use_regex": True},
        "added_tokens": [{"id": i, "content": " " * i} for i in range(2, 25)],
    },
    "albert": {
        "normalizer": sequence(
            "normalizers",
            *(replace("``", '"'), replace("''", '"')),
            *({"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
            *(precompiled("a", LONGEST), SPACES, {"type": "NFKD"}, SPACES),
        ),
        "pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, METASPACE),
    },
    "xlm-roberta, camembert": {
        "normalizer": sequence(
            "normalizers",
            precompiled(LONGEST),
            {"type": "Strip", "strip_left": False, "strip_right": True},
            replace(" {2,}", "▁", "Regex"),
        ),
        "pre_tokenizer": METASPACE,
    },
    "sentence-transformers": {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "truncation": {"direction": "Right", "max_length": 128, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 128}, "direction": "Right", "pad_id": 0, "pad_token": "[PAD]"},
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_steps_pass(name: str) -> None:
    check_tokenizer(tokenizer(**PUBLISHED[name]), name)


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_old_vocabulary_files_load_as_before(family: str, tmp_path: Path, tiny_folder: Callable[[str], Path]) -> None:
    for path in tiny_folder(family).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    (tmp_path / "tokenizer.json").unlink()
    if family == "bert":
        (tmp_path / "vocab.txt").write_text("\n".join(sorted(model["vocab"], key=model["vocab"].get)))
    else:
        (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
        (tmp_path / "merges.txt").write_text("\n".join(" ".join(pair) for pair in model["merges"]))
    old, new = Encoder.from_folder(tmp_path), Encoder.from_folder(tiny_folder(family))
    assert old.tokenize(SENTENCE) == new.tokenize(SENTENCE)


# ---- Refusals --------------------------------------------------------------------------------------------

ATTACKS: dict[str, dict[str, Any]] = {
    "six replacements": {"normalizer": sequence("normalizers", *[replace("e", "e" * 40)] * 6)},
    "seven small ones": {"normalizer": sequence("normalizers", *[replace("e", "ee")] * 4)},
    "a long prefix": {"normalizer": {"type": "Prepend", "prepend": "x" * 10_000_000}},
    "a prefix of one that decomposes": {"normalizer": {"type": "Prepend", "prepend": "\ufdfa"}},
    "an empty pattern": {"normalizer": replace("", "x")},
    "any place": {"normalizer": replace("a*", "x", "Regex")},
    "a map to long texts": {"normalizer": precompiled("x" * 1000)},
    "two maps": {"normalizer": sequence("normalizers", precompiled("xx"), precompiled("yy"))},
    "a map and replacements": {"normalizer": sequence("normalizers", precompiled("xx"), replace("x", "xxx"))},
    "a step of another library": {"normalizer": {"type": "Python"}},
    "many steps": {"normalizer": sequence("normalizers", *[{"type": "NFC"}] * 33)},
    "deep steps": {
        "normalizer": sequence(
            "normalizers", *[sequence("normalizers", *[sequence("normalizers", {"type": "NFC"})] * 9)] * 9
        )
    },
    "bytes of bytes": {"pre_tokenizer": sequence("pretokenizers", *[BYTES] * 2)},
    "an expression without end": {"pre_tokenizer": split("(a+)+$|(a|aa)+$")},
    "a product of runs": {"pre_tokenizer": split("a+a+a+b")},
    "many ends": {"pre_tokenizer": sequence("pretokenizers", *[split(r"\s+$")] * 3)},
    "a decoder's expression": {"decoder": replace("(a+)+$", "", "Regex")},
    "a text twice": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
            "pair": [],
            "special_tokens": {},
        }
    },
    "padding": {"padding": {"strategy": {"Fixed": 10**9}}},
    "truncation": {"truncation": {"max_length": 10**18, "stride": 0}},
    "many tokens": {"added_tokens": [{"content": "x"}] * 20_001},
    "long tokens": {"added_tokens": [{"content": "x" * 1_001}]},
    "a long mark inside words": {"model": VOCABULARY | {"continuing_subword_prefix": "#" * 100}},
    "endless words": {"model": VOCABULARY | {"max_input_chars_per_word": 10**9}},
    "a long piece": {"model": VOCABULARY | {"vocab": {"x" * 2000: 0}}},
    "a list for a step": {"normalizer": [1]},
    "a number for a type": {"normalizer": {"type": 3}},
    "no pattern": {"normalizer": {"type": "Replace", "content": "x"}},
    "a map that is no base64": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "é"}},
    "a vocabulary that is a number": {"model": {"type": "BPE", "vocab": 3}},
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_could_stop_the_app_is_refused_in_words(name: str) -> None:
    with pytest.raises(ModelUnsupported, match="“x”") as caught:
        check_tokenizer(tokenizer(**ATTACKS[name]), "“x”")
    assert len(str(caught.value)) < 250
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["six replacements", "a long prefix", "an expression without end"])
def test_a_folder_with_such_a_tokenizer_is_never_opened(
    name: str, tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in tiny_folder("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(content | ATTACKS[name]))
    for opens in ("reading.encoder.open_plain", "reading.opening.open_folder"):
        monkeypatch.setattr(f"mha_viz.models.{opens}", lambda *_: pytest.fail("opened"))
    with pytest.raises(ModelUnsupported):
        Encoder.from_folder(tmp_path)


def test_a_step_that_comes_from_elsewhere_is_refused_too(
    tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever file the library took it from, the resulting tokenizer is checked again."""
    for path in tiny_folder("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    prefix = {"normalizer": {"type": "Prepend", "prepend": "x" * 9}}
    for name, changes in (("tokenizer", prefix), ("tokenizer_config", {"tokenizer_class": "PreTrainedTokenizerFast"})):
        content = json.loads((tmp_path / f"{name}.json").read_text())
        (tmp_path / f"{name}.json").write_text(json.dumps(content | changes))
    monkeypatch.setattr(pipeline, "check_tokenizer", lambda *_: None)
    with pytest.raises(ModelUnsupported, match="many times as long"):
        Encoder.from_folder(tmp_path)


def test_other_files_of_a_tokenizer_are_bounded_too() -> None:
    long = base64.b64encode(charsmap("x" * 1000)).decode()
    for settings in ({"_spm_precompiled_charsmap": long}, {"added_tokens_decoder": {"0": {"content": "x" * 2000}}}):
        with pytest.raises(ModelUnsupported):
            check_tokenizer_settings(settings, "x")
    check_tokenizer_settings({"added_tokens_decoder": {"0": {"content": "[PAD]"}}, "model_max_length": 512}, "x")
    with pytest.raises(ModelUnsupported):
        check_extra_tokens({str(i): i for i in range(20_001)}, "x")
    check_extra_tokens({"<mask>": 3}, "x")


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2]) + struct.pack("<BB", len(value) & 0x7F | 0x80, len(value) >> 7) + value


def test_the_character_map_of_a_sentencepiece_model_is_bounded() -> None:
    piece = field(1, field(1, b"a") + b"\x15\0\0\0\0" + b"\x18\x02")
    good, bad = (field(3, field(1, b"nmt_nfkc") + field(2, charsmap(text))) for text in (LONGEST, "x" * 200))
    check_sentencepiece(piece * 3 + good, "x")
    with pytest.raises(ModelUnsupported, match="many times"):
        check_sentencepiece(piece * 3 + bad, "x")
    for broken in (b"\xff", good[:-2] + b"\xff", b"\x0b"):
        with pytest.raises(ModelUnsupported):
            check_sentencepiece(broken * 2, "x")
