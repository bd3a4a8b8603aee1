"""The tasks of a worker: read a part of a corpus, measure it, store the result in a file, and return it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from mha_viz import process
from mha_viz.corpus.excerpts import SentenceSpan, extract_excerpts
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import ClusterError
from mha_viz.model_names import shorten_name
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load, load_one_stack
from mha_viz.study import sums
from mha_viz.study.cluster.layout import Part, read_part_corpus
from mha_viz.study.measures import PROFILE_SUMS, SumKind
from mha_viz.study.run import SEED, StudyRun
from mha_viz.study.sums import Sums
from mha_viz.version import __version__

FORMAT = 2  # version of the sums on disk

_open_lock = threading.Lock()


class WorkerModel(NamedTuple):
    """A model as a worker opens it: from the folder if that contains the same model, otherwise by its name."""

    name: str
    revision: str
    folder: str
    device: str
    dtype: str

    @classmethod
    def from_encoder(cls, encoder: Encoder) -> WorkerModel:
        """Return the model that an encoder has open."""
        folder = "" if encoder.folder is None else str(encoder.folder.resolve())
        return cls(encoder.name, encoder.revision, folder, encoder.device, encoder.dtype)


class PartResult(Protocol):
    """The interface of the results of a part. ``unsaved`` has the reasons why a result could not be saved."""

    unsaved: Counter[str]

    def save(self, path: Path, key: str) -> None:
        """Write the result to a file, from which it can be read with the same key. Raises OSError."""


class Measure(Protocol):
    """The interface of a measure that is computed on each part of a corpus."""

    def list_dependencies(self, part: Part) -> list[object]:
        """Return everything that the result depends on besides the model, as JSON values."""

    def measure_part(self, model: WorkerModel, part: Part) -> PartResult:
        """Measure a part. Raises CorpusError, ModelError, ClusterError."""

    def read(self, path: Path, key: str) -> PartResult | None:
        """Read a result that was saved under this key; None if there is no complete file."""


class PartTask(NamedTuple):
    """A part to measure. ``folder`` is where the results of parts are stored, "" for nowhere."""

    part: Part
    model: WorkerModel
    measure: Measure
    folder: str

    @property
    def key(self) -> str:
        """The digest of everything that the result depends on."""
        return digest_values(
            [__version__, self.model.name, self.model.revision, self.measure.list_dependencies(self.part)]
        )


def measure(task: PartTask) -> PartResult:
    """Read the result of a part from disk, or measure it. Raises CorpusError, ModelError, ClusterError."""
    path = Path(task.folder, f"{task.key}.npz") if task.folder else None
    result = task.measure.read(path, task.key) if path else None
    if result is None:
        result = task.measure.measure_part(task.model, task.part)
        try:
            if path:
                result.save(path, task.key)
        except OSError as error:  # the work continues without saving
            result.unsaved = Counter([f"{task.folder}: {error.strerror or error}"])
    return result


class PartSums(NamedTuple):
    """The measure whose results are sums, of a profile or of another kind.

    ``batch`` is the maximum number of tokens per batch.
    """

    passes: tuple[str, ...]
    batch: int
    kind: SumKind = PROFILE_SUMS

    def list_dependencies(self, part: Part) -> list[object]:
        """Return everything that the sums depend on besides the model: the part, and its place in the corpus."""
        return [FORMAT, SEED, self.passes, *part.content, part.number, part.first, *self.kind.definition()]

    def measure_part(self, model: WorkerModel, part: Part) -> Sums:
        """Measure the sums of the part."""
        models = _open_models(model)[: len(self.passes)]
        corpus = read_part_corpus(part)
        return StudyRun(models, corpus, size=self.batch, first=part.first, number=part.number, kind=self.kind).measure()

    def read(self, path: Path, key: str) -> Sums | None:
        """Read sums as :func:`mha_viz.study.sums.read` does."""
        return sums.read(path, key)


def digest_values(values: Sequence[object]) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def read_excerpts(part: Part, spans: Sequence[SentenceSpan]) -> tuple[Sentence, ...]:
    """Return the sentences of each span, from its first to its last number, joined. Raises CorpusError."""
    part_spans = [(first - part.first, last - part.first) for first, last in spans]
    return extract_excerpts(read_part_corpus(part).sentences, part_spans)


def open_encoder(model: WorkerModel) -> Encoder:
    """Return the trained model, which is opened once per process."""
    return _open_models(model)[0]


def _open_models(model: WorkerModel) -> tuple[Encoder, Encoder]:
    """Return the trained and the untrained model."""
    with _open_lock:  # so that the threads of one worker open a model only once
        return _open_once(model)


@lru_cache(maxsize=2)
def _open_once(model: WorkerModel) -> tuple[Encoder, Encoder]:
    """Open a model, and check that it has the right revision. Raises ClusterError and ModelError."""
    process.set_environment()
    process.keep_memory()
    if model.folder and Path(model.folder).is_dir():
        facts = {"name": model.name, "revision": model.revision, "device": model.device, "dtype": model.dtype}
        encoder = Encoder.from_folder(Path(model.folder), **facts)
    else:
        encoder = load_one_stack(load(model.name, model.device, dtype=model.dtype))
    if encoder.revision != model.revision:
        raise ClusterError(
            f"A worker has revision {encoder.revision} of {shorten_name(model.name)}, not {model.revision}.",
            "Give all machines the same files of the model.",
        )
    return encoder, encoder.untrained(SEED)
