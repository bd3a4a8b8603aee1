"""The effect of switching heads off over a corpus, measured by the workers of a cluster: the same cases in the same
order as in one process.

The cases of each part are stored under a digest of everything they depend on. Unless words are drawn, that does not
include the part's place in the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.corpus_effects import MASKED_WORD
from mha_viz.corpus.sampling import choose_step, count_every, take_every
from mha_viz.corpus.sources import Source
from mha_viz.corpus.treebank import Corpus
from mha_viz.models import ablation
from mha_viz.models.encoder import Encoder
from mha_viz.request import RESAMPLE
from mha_viz.study.cluster import tasks
from mha_viz.study.cluster.engine import OnCluster, warn_unsaved
from mha_viz.study.cluster.layout import Layout, Part, corpus_of
from mha_viz.study.cluster.progress import Reporter
from mha_viz.study.corpus_effects import (
    FORMAT,
    FROM_CORPUS,
    Averages,
    EffectSettings,
    Measurement,
    add_sentence,
    digest_of,
    forms_of,
)
from mha_viz.study.run import Progress
from mha_viz.study.taken import Taken, read_taken


class Cases(NamedTuple):
    """The cases of every ``step``-th sentence of a corpus, of those in a part, as a measure; they are stored with the
    places of their sentences in the part, without documents. ``annotated`` says what the corpus has, since a part may
    lack it; ``drawn``: whether one word of each sentence is."""

    settings: EffectSettings
    step: int
    annotated: Corpus
    drawn: bool

    def sentences(self, part: Part) -> int:
        """How many sentences of the part are read."""
        return count_every(self.step, part.sentences, part.first)

    def depends_on(self, part: Part) -> list[object]:
        """Only where words are drawn, or not all sentences are read, on those before the part."""
        means = self.settings.means
        of = ""
        if isinstance(means, Averages):
            of = tasks.digest(means.sentences if means.values is None else means.values.tolist())
        request, *of_words = self.settings._replace(means=of, most=self.step, recipes=None)
        settings = [request.off, request.method, *of_words, part.first % self.step]
        settings.append(digest_of(self.settings.recipes))
        return [FORMAT, part.shard.digest, part.kind, settings, part.first if self.drawn else None]

    def measured(self, model: tasks.WorkerModel, part: Part) -> Taken:
        """The cases of a part as if it were the whole corpus."""
        corpus, annotated = corpus_of(part), self.annotated
        corpus = replace(corpus, has_trees=annotated.has_trees, has_chains=annotated.has_chains)
        run = Measurement(tasks.encoder_of(model), corpus, self.settings, first=part.first, step=self.step)
        for _ in run.sentences():
            pass
        return replace(run.taken, units=[("", number - part.first) for _, number in run.taken.units])

    def read(self, path: Path, key: str) -> Taken | None:
        """As :func:`mha_viz.study.taken.read_taken`."""
        return read_taken(path, key)


def measure(task: tasks.PartTask) -> Taken:
    """The cases of a part under the documents and numbers that their sentences have in the corpus. Raises the errors of
    :func:`mha_viz.effect`."""
    taken, part = tasks.measure(task), task.part
    assert isinstance(taken, Taken)
    documents = [name for name, count in part.documents for _ in range(count)]
    return replace(taken, units=[(documents[place], part.first + place) for _, place in taken.units])


class ClusterMeasurement(Measurement):
    """A measurement by the workers of a cluster; there is a result for the parts that came back so far, in order. The
    cases of parts are stored in ``folder``, from which later measurements read them."""

    def __init__(
        self,
        cluster: OnCluster,
        encoder: Encoder,
        source: Source | Layout,
        settings: EffectSettings,
        folder: Path | None = None,
    ) -> None:
        self._layout = source if isinstance(source, Layout) else cluster.open(source)
        over = settings.means
        if settings.request.method in FROM_CORPUS and not isinstance(over, Averages | np.ndarray):
            self._over = over if isinstance(over, Layout) else cluster.open(over) if over is not None else self._layout
            over = self._over.corpus
        step = choose_step(self._layout.sentences, max(1, settings.most))
        super().__init__(encoder, self._layout.corpus, settings._replace(means=over), step=step)
        off, same_role = (ablation.existing(encoder, heads) for heads in (settings.request.off, settings.same_role))
        self._settings = settings._replace(request=replace(settings.request, off=off), same_role=same_role)
        self._cluster = cluster
        cluster.folder = folder

    def sentences(self) -> Iterator[Progress]:
        """Add one part after the other, once the mean outputs that heads are replaced by are known."""
        if self._averaged is not None:
            yield from self._average()
        means = self.averages if self._method in FROM_CORPUS else None
        settings = self._settings._replace(means=means, recipes=self.recipes)
        drawn = self.measure == MASKED_WORD and not settings.relation
        cases = Cases(settings, self._step, self._layout.corpus, drawn)
        parts = [part for part in self._layout.parts if cases.sentences(part)]
        todo = self._cluster.tasks_of(self._encoder, parts, cases)
        reporter = Reporter(sum(map(cases.sentences, parts)))
        for arrival in self._cluster.arrivals(measure, [(task,) for task in todo]):
            for taken in arrival.due:
                self.taken.add(taken)
            yield self._cluster.reported(reporter, arrival.future, cases.sentences(parts[arrival.place]))
        warn_unsaved(self.taken.unsaved)

    def _average(self) -> Iterator[Progress]:
        """Take the means that the workers sum, or the sentences that they read."""
        if self._method == RESAMPLE:
            yield from self._draw_from()
            return
        means, model = ablation.Means(self._encoder), tasks.WorkerModel.opened_by(self._encoder)
        step = self.step_over(self._over.sentences)
        counts = self._taken_of_each(step)
        calls = [(part, step, model) for part in counts]
        reporter = Reporter(sum(counts.values()))
        for arrival in self._cluster.arrivals(sum_outputs, calls):
            for outputs, tokens in arrival.due:
                means.add_sums(outputs, tokens)
            yield self._cluster.reported(reporter, arrival.future, counts[calls[arrival.place][0]])
        self.take(Averages(means.values(), self._over.name))

    def _draw_from(self) -> Iterator[Progress]:
        """Take the sentences that others are drawn from."""
        step, sentences = self.step_of_drawn(self._over.sentences), list[tuple[str, ...]]()
        counts = self._taken_of_each(step)
        calls = [(part, step) for part in counts]
        reporter = Reporter(sum(counts.values()))
        for arrival in self._cluster.arrivals(forms_in, calls):
            sentences += [forms for of_part in arrival.due for forms in of_part]
            yield self._cluster.reported(reporter, arrival.future, counts[calls[arrival.place][0]])
        self.take(Averages(over=self._over.name, sentences=tuple(sentences)))

    def _taken_of_each(self, step: int) -> dict[Part, int]:
        """The parts of what means are over of which sentences are read, with how many."""
        counts = {part: count_every(step, part.sentences, part.first) for part in self._over.parts}
        return {part: count for part, count in counts.items() if count}


def forms_in(part: Part, step: int) -> tuple[tuple[str, ...], ...]:
    """The words of every ``step``-th sentence of a corpus, of those in a part."""
    return forms_of(corpus_of(part), step, part.first)


def sum_outputs(part: Part, step: int, model: tasks.WorkerModel) -> tuple[ablation.FloatSums, int]:
    """The sums of the outputs of all heads [layer, head, d_head] over sentences, in float64, and the tokens read."""
    means = ablation.Means(tasks.encoder_of(model))
    for sentence in take_every(step, corpus_of(part).sentences, part.first):
        add_sentence(means, sentence)
    return means.sums
