"""Format the names of models: in captions and files so that a reader can look them up, in errors and menus briefly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from mha_viz.quotes import quote

# Ids on the Hugging Face Hub, by the short names of the catalogue.
HUB_IDS: Mapping[str, str] = MappingProxyType(
    {
        "minilm": "sentence-transformers/all-MiniLM-L6-v2",
        "bert-base-uncased": "google-bert/bert-base-uncased",
        "bert-base-cased": "google-bert/bert-base-cased",
        "bert-large-uncased": "google-bert/bert-large-uncased",
        "bert-base-multilingual-cased": "google-bert/bert-base-multilingual-cased",
        "distilbert-base-uncased": "distilbert/distilbert-base-uncased",
        "roberta-base": "FacebookAI/roberta-base",
        "google/electra-small-discriminator": "google/electra-small-discriminator",
        "gpt2": "openai-community/gpt2",
    }
)
OWN_MODELS = ("toy", "repeater")  # trained by this project
# Models whose revision is the SHA-256 of their only file of weights, as the Hub lists it.
_FILE_DIGEST_MODELS = ("minilm",)

MAX_HUB_ID = 96  # characters, the Hub's own limit
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"  # neither part of an id begins or ends with "-" or "."
_HUB_ID = re.compile(rf"(?:{_PART}/)?{_PART}")
_PATH = re.compile(r"[.~]?/|[A-Za-z]:[\\/]")
_CONFIG_NOTE_FORMAT = " ({} by its config)"  # added to a folder's name if the config states another one
_CONFIG_NOTE = re.compile(re.escape(_CONFIG_NOTE_FORMAT).replace(re.escape("{}"), r"\S+") + "$")
_DIGEST = re.compile(r"[0-9a-f]{12}")
DIGEST_LENGTH = 8  # number of characters of a SHA-256 to show; the Hub lists it in full


class ModelName(str):
    """The name by which a model was loaded, which identifies it.

    ``display_name`` is the name to show, if the user or the files of the model's folder give it one.
    """

    display_name: str

    def __new__(cls, name: str, display_name: str = "") -> ModelName:
        model_name = super().__new__(cls, name)
        model_name.display_name = display_name
        return model_name

    def __reduce__(self) -> tuple[type[ModelName], tuple[str, str]]:
        return ModelName, (str(self), self.display_name)


def cite_model(model: str, revision: str = "") -> str:
    """Name a model so that a reader can look it up, with its ``revision`` if one is given.

    Example: "sentence-transformers/all-MiniLM-L6-v2 (weights SHA-256 53aa5117…)". A folder has the name that its user
    or its config gives it, or else its own name.
    """
    name = model.partition("@")[0]
    notes = [format_revision(name, revision)] if revision else []
    if not get_display_name(model) and name in OWN_MODELS:
        notes.insert(0, "mha_viz’s own model")
    citation = get_display_name(model) or name_in_column(model)
    return f"{citation} ({', '.join(notes)})" if notes else citation


def name_in_column(model: str) -> str:
    """Name a model for a column or a field of a file, so that readers can look it up and programs can compare it.

    The name has no notes in it, because the revision has a column of its own.
    """
    name, separator, step = model.partition("@")
    own_name = _CONFIG_NOTE.sub("", get_display_name(model))
    return own_name or (f"{HUB_IDS[name]}{separator}{step}" if name in HUB_IDS else shorten_name(model))


def label_model(model: str) -> str:
    """Name a model in a title, where there is little room: an id of the Hub without its owner."""
    name, separator, step = model.partition("@")
    label = get_display_name(model) or f"{HUB_IDS.get(name, shorten_name(name))}{separator}{step}"
    return label.rpartition("/")[2] if is_hub_id(label.partition("@")[0]) else label


def get_display_name(model: str) -> str:
    """Return the name that a model's user or files give it; empty if they do not."""
    return model.display_name if isinstance(model, ModelName) else ""


def format_revision(model: str, revision: str) -> str:
    """Name a revision of a model: "weights SHA-256 53aa5117…, bfloat16", "revision 86b5e09", "untrained, seed 0".

    Empty if there is no revision.
    """
    if not revision:
        return ""
    digest, comma, dtype = revision.partition(", ")
    if not _DIGEST.fullmatch(digest):
        return revision if revision.startswith(("untrained", "step ")) else f"revision {revision}"
    label = (
        f"SHA-256 {digest[:DIGEST_LENGTH]}…" if model.partition("@")[0] in _FILE_DIGEST_MODELS else f"digest {digest}"
    )
    return f"weights {label}{comma}{dtype}"


def shorten_name(model: str) -> str:
    """Return the name to show where there is little room: for a folder only the last part of its path."""
    parts = [part for part in re.split(r"[\\/]", model) if part] if _PATH.match(model) else []
    return parts[-1] if parts else str(model)


def quote_model(model: str) -> str:
    """Return the short name in quotation marks, for an error."""
    return quote(shorten_name(model))


def is_hub_id(name: str) -> bool:
    """Return whether a name could be an id on the Hub: "name" or "owner/name" in ASCII."""
    is_odd = ".." in name or "--" in name or name.endswith(".git")
    return len(name) <= MAX_HUB_ID and _HUB_ID.fullmatch(name) is not None and not is_odd


def read_config_name(folder: str, config: Mapping[str, object]) -> str:
    """Return the name that the config of a model in a folder gives it; empty if it has none that can be looked up.

    ``name`` is the model's own name. ``_name_or_path`` says from where the files were loaded: for a fine-tuned model,
    that is its base model. So if the folder has another name, both names are given.
    """
    config_name, loaded_name = (
        value if isinstance(value, str) and is_hub_id(value) else ""
        for value in (config.get("name"), config.get("_name_or_path"))
    )
    if config_name or not loaded_name:
        return config_name
    folder_name = shorten_name(folder)
    is_same = folder_name.casefold() == loaded_name.rpartition("/")[2].casefold()
    return loaded_name if is_same else f"{folder_name}{_CONFIG_NOTE_FORMAT.format(loaded_name)}"
