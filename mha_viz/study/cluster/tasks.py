"""The tasks of a worker: read a part of a corpus, measure it, and return the result, which is stored in a file."""

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
from mha_viz.corpus.excerpts import SentenceSpan, excerpts
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import ClusterError
from mha_viz.model_names import short_name
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load, one_stack
from mha_viz.study import sums
from mha_viz.study.cluster.layout import Part, corpus_of
from mha_viz.study.measures import PROFILE, SumKind
from mha_viz.study.run import SEED, Run
from mha_viz.study.sums import Sums
from mha_viz.version import __version__

FORMAT = 2  # version of the sums on disk

_loading = threading.Lock()


class WorkerModel(NamedTuple):
    """A model as a worker opens it: from the folder if that contains the same model, otherwise by its name."""

    name: str
    revision: str
    folder: str
    device: str
    dtype: str

    @classmethod
    def opened_by(cls, encoder: Encoder) -> WorkerModel:
        """The model that an encoder has open."""
        folder = "" if encoder.folder is None else str(encoder.folder.resolve())
        return cls(encoder.name, encoder.revision, folder, encoder.device, encoder.dtype)


class PartResult(Protocol):
    """What was measured of a part. ``unsaved``: why it could not be saved."""

    unsaved: Counter[str]

    def save(self, path: Path, key: str) -> None:
        """Write it to a file, from which it can be read with the same key. Raises OSError."""


class Measure(Protocol):
    """What is measured of each part of a corpus."""

    def depends_on(self, part: Part) -> list[object]:
        """Everything that the result depends on besides the model, as values that JSON can hold."""

    def measured(self, model: WorkerModel, part: Part) -> PartResult:
        """The result. Raises CorpusError, ModelError's family, ClusterError."""

    def read(self, path: Path, key: str) -> PartResult | None:
        """What the result wrote to a file under this key; None if there is no file, or no complete one."""


class PartTask(NamedTuple):
    """A part to measure. ``folder``: where the results of parts are stored, "" for nowhere."""

    part: Part
    model: WorkerModel
    measure: Measure
    folder: str

    @property
    def key(self) -> str:
        """The digest of everything that the result depends on."""
        return digest([__version__, self.model.name, self.model.revision, self.measure.depends_on(self.part)])


def measure(task: PartTask) -> PartResult:
    """The result of a part, measured unless it is on disk. Raises CorpusError, ModelError's family, ClusterError."""
    path = Path(task.folder, f"{task.key}.npz") if task.folder else None
    result = task.measure.read(path, task.key) if path else None
    if result is None:
        result = task.measure.measured(task.model, task.part)
        try:
            if path:
                result.save(path, task.key)
        except OSError as error:  # the work continues without saving
            result.unsaved = Counter([f"{task.folder}: {error.strerror or error}"])
    return result


class Summing(NamedTuple):
    """The sums of a profile, or of what else is summed. ``batch``: the most pieces that are read together."""

    passes: tuple[str, ...]
    batch: int
    kind: SumKind = PROFILE

    def depends_on(self, part: Part) -> list[object]:
        """Not on the rest of the corpus, except for what comes before the part."""
        return [FORMAT, SEED, self.passes, *part.content, part.number, part.first, *self.kind.definition()]

    def measured(self, model: WorkerModel, part: Part) -> Sums:
        """The sums of the part."""
        models = _models(model)[: len(self.passes)]
        corpus = corpus_of(part)
        return Run(models, corpus, size=self.batch, first=part.first, number=part.number, kind=self.kind).measured()

    def read(self, path: Path, key: str) -> Sums | None:
        """As :func:`mha_viz.study.sums.read`."""
        return sums.read(path, key)


def digest(parts: Sequence[object]) -> str:
    """The SHA-256 of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_excerpts(part: Part, spans: Sequence[SentenceSpan]) -> tuple[Sentence, ...]:
    """The sentences of each span, from its first to its last number, joined. Raises CorpusError."""
    in_part = [(first - part.first, last - part.first) for first, last in spans]
    return excerpts(corpus_of(part).sentences, in_part)


def encoder_of(model: WorkerModel) -> Encoder:
    """The trained model, opened once per process."""
    return _models(model)[0]


def _models(model: WorkerModel) -> tuple[Encoder, Encoder]:
    with _loading:  # so that the threads of one worker open a model only once
        return _opened(model)


@lru_cache(maxsize=2)
def _opened(model: WorkerModel) -> tuple[Encoder, Encoder]:
    process.prepare()
    process.keep_memory()
    if model.folder and Path(model.folder).is_dir():
        facts = {"name": model.name, "revision": model.revision, "device": model.device, "dtype": model.dtype}
        encoder = Encoder.from_folder(Path(model.folder), **facts)
    else:
        encoder = one_stack(load(model.name, model.device, dtype=model.dtype))
    if encoder.revision != model.revision:
        raise ClusterError(
            f"A worker has revision {encoder.revision} of {short_name(model.name)}, not {model.revision}.",
            "Give all machines the same files of the model.",
        )
    return encoder, encoder.untrained(SEED)
