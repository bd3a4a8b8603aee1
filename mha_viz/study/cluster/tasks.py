"""The tasks of a worker: read a part of a corpus, measure it, and return its sums."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from mha_viz import process
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.profile import DEFINITIONS
from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.excerpts import Span, excerpts
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import ClusterError
from mha_viz.models.cores import turn
from mha_viz.models.encoder import Encoder, load
from mha_viz.study.cluster import sums
from mha_viz.study.cluster.layout import Part, Rows, corpus_of
from mha_viz.study.cluster.sums import Sums
from mha_viz.study.run import PASSES, SEED, Run
from mha_viz.version import __version__

FORMAT = 1  # version of the sums on disk

_loading = threading.Lock()


class Model(NamedTuple):
    """A model as a worker opens it: from the folder if that contains the same model, otherwise by its name."""

    name: str
    revision: str
    folder: str
    device: str

    @classmethod
    def opened_by(cls, encoder: Encoder) -> Model:
        """The model that an encoder has open."""
        folder = "" if encoder.folder is None else str(encoder.folder.resolve())
        return cls(encoder.name, encoder.revision, folder, encoder.device)


class Order(NamedTuple):
    """A part to measure. ``number``: its place among the parts; ``relations`` and ``upos`` are those of the corpus;
    ``batch``: the most pieces that are read together; ``folder``: where the sums of parts are stored, "" for
    nowhere."""

    part: Part
    number: int
    rows: Rows
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    model: Model
    passes: tuple[str, ...]
    batch: int
    folder: str

    @property
    def content_key(self) -> str:
        """The digest of everything that the sums of the part depend on: not on the rest of the corpus, except for the
        number of its first sentence and, for one file among several, the file's name."""
        part, model = self.part, self.model
        what = [FORMAT, DEFINITIONS, __version__, SEED, self.passes, model.name, model.revision]
        file = None if part.prefix is None else [part.prefix, Path(part.shard.path).name]
        return digest([*what, part.shard.digest, part.kind, part.start.lines, part.first, self.rows.local, file])

    @property
    def key(self) -> str:
        """The digest of everything that the sums depend on under the labels of the corpus."""
        return digest([self.content_key, self.number, self.relations, self.upos, self.rows.blocks])


def digest(parts: Sequence[object]) -> str:
    """The SHA-256 of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def measure(order: Order) -> Sums:
    """The sums of a part, measured unless they are on disk. Raises CorpusError, ModelError's family, ClusterError."""
    path = Path(order.folder, f"{order.content_key}.npz") if order.folder else None
    part_sums = sums.read(path) if path else None
    model = encoder_of(order.model)
    if part_sums is None:
        part_sums = _measured(order)
        unsaved = why_unsaved(partial(sums.save, part_sums), path)
        counted = {**part_sums.counted, "unsaved": len(unsaved)}
        part_sums = replace(part_sums, unsaved=unsaved, counted=counted)
    relations = Relations((), order.relations, order.upos)
    return sums.placed(part_sums, relations, order.rows.blocks, order.number, model.layers * model.heads)


def _measured(order: Order) -> Sums:
    documents = [row for row, count in order.rows.local for _ in range(count)]
    encoder, untrained = _models(order.model)
    run = Run(
        encoder,
        corpus_of(order.part),
        size=order.batch,
        passes=order.passes,
        first=order.part.first,
        documents=Documents.numbered(documents, len(order.rows.blocks)),
    )
    models = dict(zip(PASSES, (encoder, untrained), strict=True))
    with turn.crew() as workers:
        return sums.sums_of(run, {name: run.measure(name, models[name], workers) for name in order.passes})


def why_unsaved(save: Callable[[Path], None], path: Path | None) -> tuple[str, ...]:
    """Save what was measured of a part. If that fails, returns why: the work continues without saving."""
    if path is None:
        return ()
    try:
        save(path)
        return ()
    except OSError as error:
        return (f"{path.parent}: {error.strerror or error}",)


def read_excerpts(part: Part, spans: Sequence[Span]) -> tuple[Sentence, ...]:
    """The sentences of each span, from its first to its last number, joined. Raises CorpusError."""
    in_part = [(first - part.first, last - part.first) for first, last in spans]
    return excerpts(corpus_of(part).sentences, in_part)


def encoder_of(model: Model) -> Encoder:
    """The trained model, opened once per process."""
    return _models(model)[0]


def _models(model: Model) -> tuple[Encoder, Encoder]:
    with _loading:  # so that the threads of one worker open a model only once
        return _opened(model)


@lru_cache(maxsize=2)
def _opened(model: Model) -> tuple[Encoder, Encoder]:
    process.prepare()
    process.keep_memory()
    if model.folder and Path(model.folder).is_dir():
        encoder = Encoder.from_folder(Path(model.folder), name=model.name, revision=model.revision, device=model.device)
    else:
        encoder = load(model.name, model.device)
    if encoder.revision != model.revision:
        raise ClusterError(
            f"A worker has revision {encoder.revision} of {model.name}, not {model.revision}.",
            "Give all machines the same files of the model.",
        )
    return encoder, encoder.untrained(SEED)
