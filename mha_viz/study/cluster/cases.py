"""Measure cases over a corpus with the workers of a cluster.

The cases are the same, in the same order, as in one process; sums are equal up to rounding. The cases of each part
(:class:`mha_viz.study.cluster.layout.Part`, a shard in its corpus) are stored under a digest of everything that they
depend on. The digest includes the part's offset in the corpus only if the cases depend on sentence numbers, or if not
every sentence is read.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.limits import count_every
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.cases import CaseKind, Cases, LocalRun, read_cases
from mha_viz.study.cluster import tasks
from mha_viz.study.cluster.engine import ClusterEngine, ProgressReporter, warn_unsaved
from mha_viz.study.cluster.layout import Layout, Part, read_part_corpus
from mha_viz.study.run import Progress


class CaseMeasure(NamedTuple):
    """Measures the cases of a part of a corpus, for :mod:`mha_viz.study.cluster.tasks`.

    Stored cases have no documents, and their sentences are numbered within the part.
    """

    kind: CaseKind

    def count_sentences(self, part: Part) -> int:
        """Count the sentences of the part that are read."""
        return count_every(self.kind.step, part.sentences, part.first)

    def list_dependencies(self, part: Part) -> list[object]:
        """Return everything that the cases depend on besides the model.

        The part's offset in the corpus counts only if cases depend on sentence numbers, or if not every sentence is
        read.
        """
        # if not every sentence is read, the offset modulo step decides which ones are
        version, *settings = self.kind.definition(part.first % self.kind.step)
        offset = part.first if self.kind.depends_on_position else None
        return [version, part.shard.digest, part.file_format, settings, offset]

    def measure_part(self, model: tasks.WorkerModel, part: Part) -> Cases:
        """Measure the cases of a part; number their sentences within the part."""
        run = LocalRun(tasks.open_encoder(model), read_part_corpus(part), self.kind, first=part.first)
        for _ in run.iter_progress():
            pass
        return replace(run.cases, units=[("", number - part.first) for _, number in run.cases.units])

    def read(self, path: Path, key: str) -> Cases | None:
        """Read cases as :func:`mha_viz.study.cases.read_cases` does."""
        return read_cases(path, key)


def run_part_task(task: tasks.PartTask) -> Cases:
    """Read or measure the cases of a part; give their sentences the documents and numbers that they have in the corpus.

    Raises the errors of the measure.
    """
    cases, part = tasks.measure(task), task.part
    assert isinstance(cases, Cases)
    sentence_documents = list_documents(part)
    return replace(cases, units=[(sentence_documents[index], part.first + index) for _, index in cases.units])


def list_documents(part: Part) -> list[str]:
    """Return the name of the document of each sentence of a part."""
    return [name for name, count in part.documents for _ in range(count)]


class ClusterRun:
    """A measurement by the workers of a cluster.

    ``cases`` has the cases of the parts that came back so far, in order, as far as the result needs them
    (``CaseKind.reduce``).
    The cases of parts are stored in ``folder``, from which later measurements read them.
    """

    def __init__(
        self, cluster: ClusterEngine, encoder: Encoder, layout: Layout, kind: CaseKind, folder: Path | None = None
    ) -> None:
        self._cluster, self._encoder, self._layout = cluster, encoder, layout
        self._kind, self._folder, self.cases = kind, folder, Cases()

    def iter_progress(self) -> Generator[Progress, None, None]:
        """Add the cases of each part as it finishes, and yield the progress after each.

        Raises ClusterError, and the errors of the tasks.
        """
        self._cluster.folder = self._folder  # where tasks store their results
        measure = CaseMeasure(self._kind)
        parts = [part for part in self._layout.parts if measure.count_sentences(part)]
        part_tasks = self._cluster.make_tasks(self._encoder, parts, measure)
        reporter = ProgressReporter(sum(map(measure.count_sentences, parts)))
        for arrival in self._cluster.iter_arrivals(run_part_task, [(task,) for task in part_tasks]):
            for cases in arrival.results:  # those whose turn in the corpus has come: none, or several
                self.cases.add(cases)
                self.cases = self._kind.reduce(self.cases)
            yield self._cluster.report(reporter, arrival.future, measure.count_sentences(parts[arrival.call_index]))
        warn_unsaved(self.cases.unsaved)

    def discard_partial_results(self) -> None:
        """Do nothing: later measurements read the files of parts."""


@dataclass(frozen=True)
class ClusterCorpus:
    """A corpus that the workers of a cluster read; see :class:`mha_viz.study.cases.MeasurableCorpus`."""

    cluster: ClusterEngine
    layout: Layout
    corpus: Corpus

    @classmethod
    def from_source(cls, cluster: ClusterEngine, source: Any) -> ClusterCorpus:
        """Open a corpus. ``source`` is its layout, or as for :func:`mha_viz.read_corpus`, but only files.

        Raises CorpusError and ClusterError.
        """
        layout = source if isinstance(source, Layout) else cluster.open(source)
        return cls(cluster, layout, layout.corpus)

    @property
    def count(self) -> int:
        """The number of sentences."""
        return self.layout.sentences

    @property
    def documents(self) -> list[str]:
        """The name of the document of each sentence."""
        return [document for part in self.layout.parts for document in list_documents(part)]

    @property
    def relations(self) -> Relations:
        """The labels of relations and parts of speech."""
        return self.layout.relations

    def sentences(self, numbers: Sequence[int]) -> list[Sentence]:
        """Return the sentences with these numbers, which must be sorted, read by workers."""
        # a span includes both its ends
        return [*self.cluster.read_sentences(self.layout, [(number, number) for number in numbers])]

    def run(self, encoder: Encoder, kind: CaseKind, folder: Path | None = None) -> ClusterRun:
        """Return a measurement by the workers, which has not started."""
        return ClusterRun(self.cluster, encoder, self.layout, kind, folder)

    def open(self, source: Any) -> ClusterCorpus:
        """Open another corpus, which the workers read."""
        return self.from_source(self.cluster, source)

    def with_name(self, name: str) -> ClusterCorpus:
        """Return the corpus under another name."""
        return replace(self, corpus=replace(self.corpus, name=name))
