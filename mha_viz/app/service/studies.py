"""Provide profiles to pages: load bundled ones, find those measured on this server, and measure new ones.

Child processes read files and measure models. They store partial sums in a folder, so that a stopped study can
continue. Finished profiles are stored too, so that they survive a restart of the server.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mha_viz.analysis.bundled_data import list_bundled_corpora, list_bundled_folders, load_bundled_roles, merge_roles
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import FACTS_FILE, Profile, parse_profile, read_findings, read_profile
from mha_viz.analysis.repeats import DecoderHeads
from mha_viz.analysis.syntax import Pointers
from mha_viz.analysis.unusual_heads import Habits, load_bundled_habits, read_habits
from mha_viz.app.service import profiles
from mha_viz.app.service.caches import BoundedCache, Once, cache_results, get_model_service
from mha_viz.app.service.jobs import Job, Task, get_queue
from mha_viz.app.service.profiles import delete_excess
from mha_viz.app.service.reader import verbs
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.corpus import uploads
from mha_viz.corpus.excerpts import SentenceSpan, read_excerpts
from mha_viz.corpus.treebank import Sentence
from mha_viz.corpus.uploads import NEUTRAL_NAME, StudyCorpus, count_words
from mha_viz.errors import CorpusError, ExportError, MhaVizError, ModelUnreachable
from mha_viz.models.getting import catalog, hub
from mha_viz.process import children
from mha_viz.process.messages import estimate_size
from mha_viz.process.steps import Steps, map_in_steps, split_range
from mha_viz.quotes import join_names

CHILD_MODULE = "mha_viz.study.child"
SENTENCES_PER_STEP = 50  # built-in sentences per step
UNWRITTEN_BYTES = 200_000_000  # maximum size of profiles that could not be written to disk
IDLE_UNWRITTEN_BYTES = 20_000_000  # maximum size of these profiles once all visitors have left
CORPUS_BYTES = 60_000_000  # maximum size of measured corpora, and of excerpts from them
BYTES_PER_WORD = 500  # memory of an annotated word
MAX_WORDS = 100_000  # maximum words of a corpus on a public server
GRACE_S = 20.0  # seconds in which a stopped study can save its partial sums
BUILT_IN = ("the built-in sentences",)  # the corpora of a model that was measured on this server
CACHED_RESULTS = 16  # Evidence objects whose roles and baselines are cached


class Evidence(NamedTuple):
    """The measurements of a model on a corpus, or on all treebanks of its bundled profiles.

    Attributes:
        label: the name of the corpus or corpora.
        profiles: the profiles, one per corpus.
        repeats: the measurements of a causal model on repeated random tokens, if they were made.
    """

    label: str
    profiles: tuple[Profile, ...]
    repeats: DecoderHeads | None = None

    def table(self, name: str) -> Any:
        """Return the table ``name`` of the first profile that has it with at least one row; None if none has."""
        return next((p.tables[name] for p in self.profiles if name in p.tables and len(p.tables[name])), None)

    def find_profile(self, name: str) -> Profile | None:
        """Return the first profile that has the table ``name`` with at least one row; None if none has."""
        return next((p for p in self.profiles if name in p.tables and len(p.tables[name])), None)

    def findings(self) -> tuple[Finding, ...]:
        """Return all roles: each kind from the first profile that has any, then those found on repeated tokens only."""
        return _merge_findings(self)


@cache_results(CACHED_RESULTS)
def _merge_findings(evidence: Evidence) -> tuple[Finding, ...]:
    roles = merge_roles(profile.findings() for profile in evidence.profiles)
    known_roles = {(f.head, f.role, f.detail) for f in roles}
    repeat_roles = evidence.repeats.findings() if evidence.repeats else ()
    return (*roles, *(f for f in repeat_roles if (f.head, f.role, f.detail) not in known_roles))


_bundled_lock = threading.Lock()


def load_bundled(name: str) -> Evidence | None:
    """Return the bundled profiles of a model that comes with the app; None for other models.

    All callers get the same object, so that results computed from it can be cached without comparing its tables.
    """
    with _bundled_lock:
        return _read_bundled(name)


@cache
def _read_bundled(name: str) -> Evidence | None:
    profiles_of_model = tuple(map(read_profile, list_bundled_folders(name)))
    return Evidence(join_names(list_bundled_corpora(name)), profiles_of_model) if profiles_of_model else None


def make_built_in_corpus() -> StudyCorpus:
    """Return the built-in sentences as a corpus that can be measured."""
    corpus = load_built_in_corpus()
    return StudyCorpus(*BUILT_IN, corpus.digest, count_words(corpus))


class UnwrittenProfile(NamedTuple):
    """A profile that could not be written to disk and exists only in memory, with the error."""

    profile: Profile
    error: MhaVizError


class _ServerState:
    """The server's caches other than the results of jobs.

    They hold profiles that could not be written to disk and, until all visitors have left, measured corpora and
    excerpts from uploaded files.
    """

    def __init__(self) -> None:
        delete_excess()
        self.unwritten_profiles = BoundedCache[str, UnwrittenProfile](
            UNWRITTEN_BYTES, lambda unwritten: profiles.count_bytes(unwritten.profile), IDLE_UNWRITTEN_BYTES
        )
        self.measured_corpora = BoundedCache[str, StudyCorpus](CORPUS_BYTES, estimate_size)
        self.excerpts = BoundedCache[str, Mapping[SentenceSpan, Sentence]](
            CORPUS_BYTES, lambda sentences: 1000 + sum(BYTES_PER_WORD * len(s.words) for s in sentences.values())
        )


get_server_state = Once(_ServerState)


# ---- Files ----------------------------------------------------------------------------------------------


def find_parsed_corpus(data: bytes, name: str) -> StudyCorpus | None:
    """Return the corpus in a file if it is cached, else None. Raises the CorpusError that parsing it raised."""
    key = _make_file_key(data, name)
    content, failed_job = get_queue("file").results.get(key), get_queue("file").find_failed(key)
    if content is None and failed_job is not None and isinstance(failed_job.error, CorpusError):
        raise failed_job.error
    return content


def start_parsing(data: bytes, name: str) -> Job:
    """Start parsing a file, or join the job that does. Then :func:`find_parsed_corpus` returns the corpus.

    Raises Busy.
    """
    key = _make_file_key(data, name)
    return get_queue("file").submit(key, name, lambda job: uploads.parse_in_child(data, name, job.is_stopped))


# ---- Profiles -------------------------------------------------------------------------------------------


def find_profile(model: catalog.Model, digest: str) -> Profile | None:
    """Return the profile of a model on the corpus with this digest; None if it was not measured."""
    key = profiles.make_key(model, digest)
    folder, unwritten_profile = profiles.get_root_folder() / key, get_server_state().unwritten_profiles.get(key)
    profile = unwritten_profile.profile if unwritten_profile else get_queue("study").results.get(key)
    if profile is None and (folder / FACTS_FILE).is_file():
        try:
            profile = get_queue("study").results.put(key, read_profile(folder))
        except MhaVizError:  # damaged or of an older version: measured again on request
            return None
    if profile is not None:
        profiles.mark_used(folder)
    return profile


def find_write_error(model: catalog.Model, digest: str) -> MhaVizError | None:
    """Return the error if a profile could not be written to disk and is only in memory, else None."""
    unwritten_profile = get_server_state().unwritten_profiles.get(profiles.make_key(model, digest))
    return unwritten_profile.error if unwritten_profile else None


def load_reference_evidence(model: catalog.Model) -> Evidence | None:
    """Return the profiles that a model's roles come from: the bundled ones, else the one of the built-in sentences.

    None if neither exists. Raises the errors of :func:`find_profile`.
    """
    bundled_evidence = load_bundled(model.name) if model.kind in ("bundled", "own") else None
    if bundled_evidence is not None:
        return bundled_evidence
    profile = find_profile(model, load_built_in_corpus().digest)
    return None if profile is None else Evidence(*BUILT_IN, (profile,))


class RoleSummary(NamedTuple):
    """A model's roles in short.

    Attributes:
        roles: the roles of its heads.
        corpora: the corpora on which they were measured.
        is_measured: whether the model was measured.
        habits: the usual behaviour of its heads over the corpus of the profile.
    """

    roles: tuple[Finding, ...] = ()
    corpora: tuple[str, ...] = ()
    is_measured: bool = False
    habits: Habits = MappingProxyType({})


def summarise(model: catalog.Model) -> RoleSummary:
    """Return the stored summary of a model's heads, read without pandas or torch. Damaged profiles are skipped."""
    if model.kind in ("bundled", "own"):
        corpora = list_bundled_corpora(model.name)
        return RoleSummary(
            load_bundled_roles(model.name), corpora or BUILT_IN, bool(corpora), load_bundled_habits(model.name)
        )
    folder = profiles.get_root_folder() / profiles.make_key(model, load_built_in_corpus().digest)
    roles: tuple[Finding, ...] | None = None
    habits: Habits = {}
    with suppress(MhaVizError):
        roles = read_findings(folder) if (folder / FACTS_FILE).is_file() else None
    with suppress(MhaVizError):
        habits = read_habits(folder)
    return RoleSummary(roles or (), BUILT_IN, roles is not None, habits)


# ---- Measuring ------------------------------------------------------------------------------------------


def start(model: catalog.Model, corpus: StudyCorpus) -> Job:
    """Start a study, or join it if it is running or waiting.

    Raises CorpusError if the corpus has more words than a public server measures, and Busy if this visitor has another
    study or too many are waiting.
    """
    if catalog.is_hosted() and corpus.words > MAX_WORDS:
        raise CorpusError(
            f"This file has {corpus.words:,} words; this server measures at most {MAX_WORDS:,}.",
            "Split it, or measure it on your own machine: mha-viz profile.",
        )
    key = profiles.make_key(model, corpus.digest)
    job = get_queue("study").submit(key, f"{model.label} on {corpus.name}", partial(_measure, key, model, corpus))
    get_server_state().measured_corpora.put(key, corpus._replace(name=NEUTRAL_NAME) if corpus.data else corpus)
    return job


def find_running(model: catalog.Model, digest: str) -> Job | None:
    """Return the running or waiting study of a model on a corpus, submitted by any visitor; None if there is none."""
    return get_queue("study").find_running(profiles.make_key(model, digest))


def is_stopping(model: catalog.Model, digest: str) -> bool:
    """Return whether a study was stopped and is still saving its partial sums."""
    return get_queue("study").is_stopping(profiles.make_key(model, digest))


def find_failure(model: catalog.Model, digest: str) -> tuple[MhaVizError, StudyCorpus] | None:
    """Return why the last study of a model on a corpus failed, and the corpus to restart it with.

    None if it did not fail. An uploaded file comes without its name, which only the visitor who uploaded it may see.
    """
    key = profiles.make_key(model, digest)
    job, corpus = get_queue("study").find_failed(key), get_server_state().measured_corpora.get(key)
    return (job.error, corpus) if job and job.error and corpus else None


def _measure(key: str, model: catalog.Model, corpus: StudyCorpus, job: Job) -> Profile:
    folder = hub.find_local_folder(model)
    if folder is None:
        raise ModelUnreachable(f"The files of {model.label} are not on this machine.", "Open the model in Explore.")
    sums_folder = profiles.ensure_folder(profiles.get_root_folder() / key)
    delete_excess(sums_folder)
    child_request = {
        "folder": str(folder),
        "name": model.name,
        "revision": hub.BUNDLE_SHA256.get(model.path, "")[:12],
        "sums": str(sums_folder) if sums_folder else None,
        "data": corpus.data,
    }
    bounds = _make_bounds(folder)._replace(writable=(str(sums_folder),) if sums_folder else ())
    profile = parse_profile(
        children.run(CHILD_MODULE, child_request, bounds, job.report_progress, cancelled=job.is_stopped)
    )
    get_queue("study").results.put(key, profile)  # before writing, so that a failure does not lose it
    try:
        if sums_folder is None:
            raise ExportError("The folder of profiles cannot be written.")
        profile.write(sums_folder)
        get_server_state().unwritten_profiles.drop(key)
    except ExportError as error:
        get_server_state().unwritten_profiles.put(key, UnwrittenProfile(profile, error))
    delete_excess(sums_folder)
    return profile


def load_excerpts(model: catalog.Model, digest: str, spans: Sequence[SentenceSpan]) -> Mapping[SentenceSpan, Sentence]:
    """Return sentences of an uploaded file; empty if the file is no longer stored.

    The caller must make sure that the visitor has that file. Raises CorpusError.
    """
    key = profiles.make_key(model, digest)
    corpus, sentences = find_measured_corpus(model, digest), get_server_state().excerpts.get(key)
    if sentences is None and corpus is not None:
        sentences = get_server_state().excerpts.put(key, read_excerpts(corpus.data, spans))
    return sentences or {}


def find_measured_corpus(model: catalog.Model, digest: str) -> StudyCorpus | None:
    """Return an uploaded file that was measured, without its name, as long as it is stored; None otherwise.

    Only for visitors who have that file.
    """
    corpus = get_server_state().measured_corpora.get(profiles.make_key(model, digest))
    return corpus if corpus is not None and corpus.data else None


# ---- Where heads point ----------------------------------------------------------------------------------


def make_pointers_task(model: catalog.Model) -> Task[tuple[Pointers | None, ...]]:
    """Return the task that finds where every head points in the built-in sentences."""
    key, label = profiles.make_key(model, load_built_in_corpus().digest), "Reading the built-in sentences"
    return Task("pointers", key, model.label, label, lambda: read_pointers(model))


def read_pointers(model: catalog.Model) -> Steps[tuple[Pointers | None, ...]]:
    """Find where every head points in the built-in sentences, a few sentences per step.

    Other requests to the model wait for at most one step.
    """
    sentences = split_range(0, len(load_built_in_corpus().sentences), SENTENCES_PER_STEP)
    parts = yield from map_in_steps(
        sentences,
        lambda numbers: get_model_service().ask(verbs.find_pointers, model.name, numbers.start, numbers.stop).result(),
    )
    return tuple(chain.from_iterable(parts))


def _make_bounds(folder: Path) -> children.Bounds:
    """Return the limits of a study.

    On the visitor's own machine: all cores, low priority, no time limit. On a public server: half of the cores, and ten
    minutes at a time. The model is in memory twice, trained and untrained, each with packed copies.
    """
    if not catalog.is_hosted():
        return children.Bounds(threads=0, grace_s=GRACE_S, subject="The study", answer_bytes=10**9)
    weight_bytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return children.Bounds(
        seconds=600,
        megabytes=3_000 + 6 * weight_bytes // 10**6,
        threads=max(1, (os.cpu_count() or 1) // 2),
        grace_s=GRACE_S,
        subject="The study",
        remedy="Finished parts are saved; start it again to continue.",
    )


def _make_file_key(data: bytes, name: str) -> str:
    return hashlib.sha256(data).hexdigest() + name
