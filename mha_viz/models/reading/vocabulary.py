"""Open the tokenizer of a BERT or a GPT-2 from its files alone, if they describe the tokenizer that transformers
builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from mha_viz.models.getting.folder import MAX_TOKENIZER_BYTES, read_object

# Classes of tokenizers in transformers: those that rebuild their tokenizer from the vocabulary, and those that read
# tokenizer.json as it is.
_REBUILDING_CLASSES = ("BertTokenizer", "BertTokenizerFast")
_READING_CLASSES = ("TokenizersBackend",)
_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")  # in transformers' order
_DEFAULTS = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
_IGNORED_ENTRIES = {  # entries of tokenizer_config.json that have no effect here
    *("backend", "clean_up_tokenization_spaces", "do_basic_tokenize", "is_local", "local_files_only"),
    *("max_length", "model_max_length", "name_or_path", "padding_side", "special_tokens_map_file", "stride"),
    *("tokenizer_class", "truncation_side", "truncation_strategy"),
}
_READ_ENTRIES = {"do_lower_case", "strip_accents", "tokenize_chinese_chars", "added_tokens_decoder"}
_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


class Vocabulary:
    """A tokenizer with the attribute names of transformers.

    Attributes that are missing here are looked up in the transformers tokenizer of the same folder, which is opened
    then.
    """

    is_fast = True

    def __init__(
        self, folder: Path, backend: Tokenizer, tokens: Mapping[str, str], limit: int, has_types: bool
    ) -> None:
        """Wrap a tokenizer.

        ``tokens``: the special tokens by role. ``limit``: the maximum number of pieces in a text. ``has_types``:
        whether the model receives the types of the pieces.
        """
        self._folder = folder
        self.backend_tokenizer = backend
        self.model_max_length = limit
        self.model_input_names = ["input_ids", *["token_type_ids"] * has_types, "attention_mask"]
        numbers = {role: backend.token_to_id(tokens[role]) if role in tokens else None for role in _ROLES}
        self.all_special_ids = list(dict.fromkeys(n for n in numbers.values() if n is not None))
        self.bos_token_id, self.eos_token_id = numbers["bos"], numbers["eos"]
        self.cls_token_id, self.sep_token_id = numbers["cls"], numbers["sep"]
        self.mask_token_id, self.unk_token_id = numbers["mask"], numbers["unk"]
        self.mask_token = tokens.get("mask")

    @cached_property
    def _full_tokenizer(self) -> Any:
        """The tokenizer of transformers for the same folder."""
        from mha_viz.models.reading.opening import open_tokenizer  # imports transformers: 3 s

        return open_tokenizer(self._folder)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle look these up before the object has attributes
            raise AttributeError(name)
        return getattr(self._full_tokenizer, name)

    def __call__(self, *texts: Any, **options: Any) -> Any:
        """Call the tokenizer of transformers."""
        return self._full_tokenizer(*texts, **options)

    def __len__(self) -> int:
        return self.backend_tokenizer.get_vocab_size()


def open_vocabulary(folder: Path, name: str) -> Vocabulary | None:
    """Return the tokenizer of a folder that passed :func:`mha_viz.models.getting.folder.inspect_folder`.

    Return None if its files contain settings that are not supported here.
    """
    paths = [folder / file for file in ("tokenizer.json", "tokenizer_config.json")]
    if not all(path.is_file() for path in paths) or (folder / "added_tokens.json").exists():
        return None
    tokenizer_json, settings = (read_object(path, MAX_TOKENIZER_BYTES, name) for path in paths)
    class_name, limit = settings.get("tokenizer_class"), settings.get("model_max_length")
    tokens = _find_special_tokens(folder, name, settings, class_name in _REBUILDING_CLASSES)
    if class_name not in (*_REBUILDING_CLASSES, *_READING_CLASSES) or type(limit) is not int or tokens is None:
        return None
    if not _is_plain(tokenizer_json, tokens, settings) or (
        class_name in _REBUILDING_CLASSES and not _matches_built_tokenizer(tokenizer_json, tokens, settings)
    ):
        return None
    return Vocabulary(folder, Tokenizer.from_file(str(paths[0])), tokens, limit, class_name in _REBUILDING_CLASSES)


def _find_special_tokens(
    folder: Path, name: str, settings: Mapping[str, Any], has_defaults: bool
) -> dict[str, str] | None:
    """Return the special tokens by role; None if there are settings that are not supported here."""
    settings_by_key = {f"{role}_token": settings.get(f"{role}_token") for role in _ROLES}
    used_entries = {key for key in settings if settings[key] not in (None, [], {})}
    if used_entries - settings_by_key.keys() - _IGNORED_ENTRIES - _READ_ENTRIES:
        return None
    stated_tokens = {key.removesuffix("_token"): value for key, value in settings_by_key.items() if value is not None}
    tokens = (_DEFAULTS if has_defaults else {}) | stated_tokens
    if (folder / "special_tokens_map.json").is_file():
        token_map = read_object(folder / "special_tokens_map.json", MAX_TOKENIZER_BYTES, name)
        if any(tokens.get(key.removesuffix("_token")) != value for key, value in token_map.items()):
            return None
    return tokens if all(isinstance(token, str) for token in tokens.values()) else None


def _is_plain(tokenizer_json: Mapping[str, Any], tokens: Mapping[str, str], settings: Mapping[str, Any]) -> bool:
    """Return whether the added tokens are exactly the special tokens, and all are in the vocabulary."""
    added_tokens, vocabulary = tokenizer_json.get("added_tokens"), tokenizer_json["model"].get("vocab")
    if not isinstance(added_tokens, list) or not isinstance(vocabulary, dict):
        return False
    by_content = {token["content"]: token for token in added_tokens}
    decoder = {str(token["id"]): {k: token[k] for k in token if k != "id"} for token in added_tokens}
    return (
        {*by_content} == {*tokens.values()}
        and all(
            token == _FLAGS | {"id": vocabulary.get(content), "content": content}
            for content, token in by_content.items()
        )
        and settings.get("added_tokens_decoder", decoder) == decoder
    )


def _matches_built_tokenizer(
    tokenizer_json: Mapping[str, Any], tokens: Mapping[str, str], settings: Mapping[str, Any]
) -> bool:
    """Return whether a file describes the tokenizer that transformers builds from its vocabulary."""
    model = {key: value for key, value in tokenizer_json["model"].items() if key != "vocab"}
    cls, sep, vocabulary = tokens["cls"], tokens["sep"], tokenizer_json["model"]["vocab"]
    special_tokens = {token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]} for token in (cls, sep)}
    single: list[Any] = [
        _make_template_token(cls, 0),
        {"Sequence": {"id": "A", "type_id": 0}},
        _make_template_token(sep, 0),
    ]
    second_text: list[Any] = [{"Sequence": {"id": "B", "type_id": 1}}, _make_template_token(sep, 1)]
    return (
        model
        == {
            "type": "WordPiece",
            "unk_token": tokens["unk"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        }
        and tokenizer_json.get("normalizer")
        == {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        }
        and tokenizer_json.get("pre_tokenizer") == {"type": "BertPreTokenizer"}
        and tokenizer_json.get("post_processor")
        == {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single + second_text,
            "special_tokens": special_tokens,
        }
    )


def _make_template_token(token: str, segment: int) -> dict[str, Any]:
    """Return a special token of a template."""
    return {"SpecialToken": {"id": token, "type_id": segment}}
