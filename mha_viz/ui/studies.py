"""Profiles for the app: those that come with it, those that were measured here, and the measuring itself.

One study runs at a time; visitors who ask for the same one share it. What is finished is kept in a folder, so that a
server that starts again still knows it, and one that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

import streamlit as st

from mha_viz.analysis.profile import Finding, Profile, read_findings, read_profile
from mha_viz.assets import asset
from mha_viz.errors import Busy, Cancelled, MhaVizError, ModelBroken
from mha_viz.models import catalog, hub
from mha_viz.treebank import Corpus, Gap, read
from mha_viz.ui.annotated import built_in
from mha_viz.ui.cache import Shelf, office

HOME = "MHA_VIZ_HOME"  # the folder for what is measured here
WAITING = 8  # studies that may wait
KEPT_BYTES = 200_000_000  # in memory, of each kind
READY = 16  # pieces of evidence whose roles and baselines need not be looked for again
KEPT_FOLDERS = 200  # on the disk; the oldest go
GIVEN = ("ewt", "gum", "gap", "grammar")  # of a shipped profile, in the order in which a table is taken from them


class Evidence(NamedTuple):
    """All that was measured of one model on one corpus, or on the given treebanks together."""

    label: str
    profiles: tuple[Profile, ...]

    def table(self, name: str) -> Any:
        """The table of this name from the first profile that has it; None when none has."""
        return next((p.tables[name] for p in self.profiles if name in p.tables and len(p.tables[name])), None)

    def source(self, name: str) -> Profile | None:
        """The profile that :meth:`table` takes a table from."""
        return next((p for p in self.profiles if name in p.tables and len(p.tables[name])), None)

    def findings(self) -> tuple[Finding, ...]:
        """The roles that were found, each kind in the first profile that has any."""
        return _findings(self)

    def beside(self, finding: Finding) -> str:
        """What the other baselines get right, over all sentences; empty where a role has none."""
        if finding.role == "syntax":
            rules = {"pos": "the nearest part of speech", "untrained": "the best untrained head"}
        elif finding.role == "coreference":
            rules = {"untrained": "the best untrained head"}
        else:
            return ""
        accuracy = _baselines(self).get(finding.detail, {})
        said = [f"{words} {100 * accuracy[rule]:.1f}\u00a0%" for rule, words in rules.items() if rule in accuracy]
        return f"; over all sentences {' and '.join(said)}" if said else ""


@lru_cache(maxsize=READY)
def _findings(evidence: Evidence) -> tuple[Finding, ...]:
    return _united(profile.findings() for profile in evidence.profiles)


@lru_cache(maxsize=READY)
def _baselines(evidence: Evidence) -> dict[str, dict[str, float]]:
    """The accuracy of each baseline, for each detail of a finding: "relation direction", or a kind of mention."""
    accuracy: dict[str, dict[str, float]] = {}
    table = evidence.table("syntax_baselines")
    if table is not None:
        table = table[table["level"].isin(("base", "full"))]
        columns = (table[name] for name in ("relation", "direction", "baseline", "accuracy"))
        for relation, direction, baseline, share in zip(*columns, strict=True):
            accuracy.setdefault(f"{relation} {direction}", {}).setdefault(baseline, share)
    table = evidence.table("coreference_baselines")
    if table is not None:
        for mention, baseline, share in zip(table["mention_type"], table["baseline"], table["accuracy"], strict=True):
            accuracy.setdefault(mention, {})[baseline] = share
    return accuracy


@cache
def given_roles(name: str) -> tuple[Finding, ...]:
    """The roles of a model that comes with the app; read without its tables."""
    folder = next((f for f in _folders(asset("profiles")) if f.name == name), None)
    return _united(read_findings(folder / one) for one in GIVEN if (folder / one).is_dir()) if folder else ()


@cache
def given_corpora(name: str) -> str:
    """What the profile of a model that comes with the app was measured on, in words; read without its tables."""
    folder = next((f for f in _folders(asset("profiles")) if f.name == name), None)
    files = [folder / one / "profile.json" for one in GIVEN] if folder else []
    return _listed([json.loads(file.read_text("utf-8"))["corpus"] for file in files if file.is_file()])


def _united(profiles: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The roles of the first profile, and those of coreference of the others: a treebank without chains knows none."""
    first, *others = profiles
    return (*first, *(f for findings in others for f in findings if f.role == "coreference"))


@cache
def given(name: str) -> Evidence | None:
    """The profile of a model that comes with the app, on the given treebanks; None for other models."""
    folder = next((f for f in _folders(asset("profiles")) if f.name == name), None)
    if folder is None:
        return None
    found = tuple(read_profile(folder / one) for one in GIVEN if (folder / one).is_dir())
    return Evidence(given_corpora(name), found) if found else None


def _folders(above: Path) -> list[Path]:
    return [path for path in above.iterdir() if path.is_dir()] if above.is_dir() else []


class Study:
    """A study under way or done. ``fraction`` is the share that is done; ``finished`` when ``error`` or ``profile`` is
    set. It stops when every visitor who waited for it has let go."""

    def __init__(self, corpus: Corpus | Gap) -> None:
        self.corpus = corpus
        self.fraction = 0.0
        self.profile: Profile | None = None
        self.error: MhaVizError | None = None
        self.holds: WeakSet[Hold] = WeakSet()
        self.stopped = False

    @property
    def finished(self) -> bool:
        """True when nothing more will come."""
        return self.profile is not None or self.error is not None


class Hold:
    """One visitor's wish for a study. A hold that is simply forgotten stops nothing."""

    def __init__(self, study: Study) -> None:
        self.study = study
        study.holds.add(self)

    def let_go(self) -> None:
        """This visitor waits no longer."""
        self.study.holds.discard(self)
        self.study.stopped = not self.study.holds


class Studies:
    """The process-wide desk for studies."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
        self._pointing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pointing")
        self._lock = threading.Lock()
        self._running: dict[str, Study] = {}
        self._profiles: Shelf[str, Profile] = Shelf(KEPT_BYTES, _size)
        self._pointers: Shelf[str, Any] = Shelf(KEPT_BYTES, lambda found: sum(p.row.nbytes * 2 for p in found if p))
        self._failed: Shelf[str, Study] = Shelf(WAITING, lambda _: 1)
        self._corpora: Shelf[str, Corpus | Gap] = Shelf(KEPT_BYTES, lambda corpus: 300 * _words(corpus))
        self._asked: dict[str, Future[Any]] = {}  # pointers under way

    def profile(self, model: catalog.Model, digest: str) -> Profile | None:
        """What was measured of a model on the corpus with this digest, if anything was."""
        key = _key(model, digest)
        kept = self._profiles.get(key)
        if kept is None and (_home() / key / "profile.json").is_file():
            try:
                kept = self._profiles.put(key, read_profile(_home() / key))
            except MhaVizError:  # damaged, or of an older version: measured again when asked for
                return None
        return kept

    def roles(self, model: catalog.Model) -> tuple[Finding, ...]:
        """The roles of a model's heads as far as they are known here; read without pandas or torch."""
        if model.kind in ("bundled", "own"):
            return given_roles(model.name)
        try:
            return read_findings(_home() / _key(model, built_in().digest))
        except MhaVizError:
            return ()

    def measured_on(self, model: catalog.Model) -> str:
        """The corpora that :meth:`roles` speaks of."""
        named = given_corpora(model.name) if model.kind in ("bundled", "own") else ""
        return named or "the built-in sentences"

    def start(self, model: catalog.Model, corpus: Corpus | Gap) -> Hold:
        """Begin a study, or join the one that is under way. Raises Busy when too many wait."""
        key = _key(model, corpus.digest)
        with self._lock:
            study = self._running.get(key)
            if study is None or study.stopped or study.finished:
                if len(self._running) >= WAITING:
                    raise Busy("Too many studies wait on this server.", "Try again in a few minutes.")
                study = self._running[key] = Study(corpus)
                self._worker.submit(self._run, key, study, model, corpus)
            return Hold(study)

    def under_way(self, model: catalog.Model, digest: str) -> Study | None:
        """The study of a model on a corpus that runs or waits now."""
        study = self._running.get(_key(model, digest))
        return None if study is None or study.stopped else study

    def stopping(self, model: catalog.Model, digest: str) -> bool:
        """True from the stop of a study until what it has done is kept."""
        study = self._running.get(_key(model, digest))
        return study is not None and study.stopped

    def failed(self, model: catalog.Model, digest: str) -> Study | None:
        """The last study of a model on a corpus, if it came to no end: its error, and the corpus to start it again."""
        study = self._failed.get(_key(model, digest))
        return study if study is not None and study.profile is None else None

    def _run(self, key: str, study: Study, model: catalog.Model, corpus: Corpus | Gap) -> None:
        from mha_viz.study import Progress  # torch
        from mha_viz.study import study as measure

        def progress(so_far: Progress) -> None:
            study.fraction = so_far.fraction

        try:
            if study.stopped:
                raise Cancelled("The study was stopped before it began.", "Start it again.")
            encoder = office().encoder(model).result()
            folder = _made(_home() / key)
            profile = measure(encoder, corpus, resume=folder, progress=progress, cancelled=lambda: study.stopped)
            if folder:
                profile.write(folder)
            study.profile = self._profiles.put(key, profile)
        except MhaVizError as error:
            study.error = error
        except Exception as error:  # a fault of ours or of a library: the page says so, the server lives on
            study.error = ModelBroken(f"The study failed: {type(error).__name__}: {str(error)[:200]}", "Try again.")
        finally:
            if study.error is not None:
                self._failed.put(key, study)
            with self._lock:
                if self._running.get(key) is study:
                    del self._running[key]

    def pointers(self, model: catalog.Model) -> Future[Any]:
        """Where every head points in every sentence of the built-in corpus."""
        key = _key(model, built_in().digest)
        kept = self._pointers.get(key)
        if kept is not None:
            done: Future[Any] = Future()
            done.set_result(kept)
            return done
        with self._lock:
            asked = self._asked.get(key)
            if asked is None or asked.done():
                asked = self._asked[key] = self._pointing.submit(lambda: self._pointers.put(key, _pointed(model)))
            return asked

    def corpus(self, data: bytes, name: str) -> Corpus | Gap:
        """The corpus in a file, read once. Raises CorpusError."""
        key = hashlib.sha256(data).hexdigest() + name
        return self._corpora.get(key) or self._corpora.put(key, read(data, name))


def _pointed(model: catalog.Model) -> Any:
    from mha_viz.study.pointers import point

    return point(office().encoder(model).result(), built_in())


@st.cache_resource(show_spinner=False)
def studies() -> Studies:
    """The one desk of this process."""
    return Studies()


def _key(model: catalog.Model, digest: str) -> str:
    """A folder's name for a model and a corpus: other weights under the same name are another model."""
    folder = hub.local_folder(model)
    files = sorted(folder.glob("*.safetensors")) if folder else []
    stamp = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((model.name, stamp, digest)).encode()).hexdigest()[:32]


def _home() -> Path:
    return Path(os.environ.get(HOME) or Path("~/.cache/mha_viz").expanduser()) / "profiles"


def _made(folder: Path) -> Path | None:
    """The folder, made if need be; None where nothing can be written: then profiles live in memory only."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = sorted(_folders(folder.parent), key=lambda path: path.stat().st_mtime)
        for old in kept[:-KEPT_FOLDERS]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return None
    return folder


def _size(profile: Profile) -> int:
    tables = (*profile.tables.values(), *profile.control.values())
    return sum(int(table.memory_usage(deep=True).sum()) for table in tables)


def _words(corpus: Corpus | Gap) -> int:
    return len(corpus.rows) * 100 if isinstance(corpus, Gap) else sum(len(s.words) for s in corpus.sentences)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
