"""The effect of switching heads off over a corpus, measured by the workers of a cluster: the same cases in the same
order as in one process.

The cases of each part are saved under a digest of everything they depend on, which does not include the part's place in
the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from mha_viz.corpus.sources import Source
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import TextError
from mha_viz.files import arrays_in
from mha_viz.models import ablation
from mha_viz.models.encoder import Encoder
from mha_viz.study.cluster import sums
from mha_viz.study.cluster.engine import OnCluster, warn_unsaved
from mha_viz.study.cluster.layout import Layout, Part, corpus_of
from mha_viz.study.cluster.progress import Reporter
from mha_viz.study.cluster.tasks import Model, digest, encoder_of, why_unsaved
from mha_viz.study.corpus_effects import (
    SEED,
    WORD,
    Averages,
    EffectSettings,
    Measurement,
    Taken,
    add_sentence,
    single_words,
)
from mha_viz.study.run import Progress
from mha_viz.version import __version__

FORMAT = 2  # version of the cases on disk and of how they are measured


class Order(NamedTuple):
    """A part to measure. ``settings.most``: how many of its sentences; ``chosen``: as for Measurement; ``folder``:
    where the cases of parts are stored, "" for nowhere."""

    part: Part
    annotated: Corpus
    model: Model
    settings: EffectSettings
    chosen: tuple[int, ...] | None
    folder: str

    @property
    def content_key(self) -> str:
        """The digest of everything that the cases of the part depend on."""
        model, shard, means = self.model, self.part.shard, self.settings.means
        what = [FORMAT, __version__, model.name, model.revision, shard.digest, self.part.kind]
        of = digest(means.values.tolist()) if isinstance(means, Averages) and means.values is not None else ""
        return digest([*what, self.settings._replace(means=of), self.chosen])


class Measured(NamedTuple):
    """What was measured of a part; ``unsaved``: why it could not be saved."""

    taken: Taken
    unsaved: tuple[str, ...]


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
        if settings.method == "mean" and not isinstance(over, Averages | np.ndarray):
            self._over = over if isinstance(over, Layout) else cluster.open(over) if over is not None else self._layout
            over = self._over.corpus
        super().__init__(encoder, self._layout.corpus, *settings._replace(means=over))
        heads, same_role = (ablation.existing(encoder, heads) for heads in (settings.heads, settings.same_role))
        self._settings = settings._replace(heads=heads, same_role=same_role)
        self._cluster, self._model = cluster, Model.opened_by(encoder)
        cluster.folder = folder
        if folder:
            sums.remove_left(folder)

    def sentences(self) -> Iterator[Progress]:
        """Add one part after the other, once the mean outputs that heads are replaced by are known."""
        if self._averaged is not None:
            yield from self._average()
        orders = self._orders()
        reporter = Reporter(sum(order.settings.most for order in orders))
        unsaved: list[str] = []
        for arrival in self._cluster.arrivals(measure, [(order,) for order in orders]):
            for measured in arrival.due:
                self.add(measured.taken)
                unsaved += measured.unsaved
            yield self._cluster.reported(reporter, arrival.future, orders[arrival.place].settings.most)
        warn_unsaved(len(unsaved), unsaved)

    def _average(self) -> Iterator[Progress]:
        """Take the means that the workers sum."""
        means, parts = ablation.Means(self._encoder), self._read_parts(self._over)
        reporter = Reporter(sum(most for _, most in parts))
        calls = [(part, most, self._model) for part, most in parts]
        for arrival in self._cluster.arrivals(sum_outputs, calls):
            for outputs, tokens in arrival.due:
                means.add_sums(outputs, tokens)
            yield self._cluster.reported(reporter, arrival.future, parts[arrival.place][1])
        self.take(Averages(means.values(), self._over.name))

    def _read_parts(self, layout: Layout) -> list[tuple[Part, int]]:
        """The parts of which sentences are read, and of how many."""
        parts = [(part, min(part.sentences, self._settings.most - part.first)) for part in layout.parts]
        return [(part, most) for part, most in parts if most > 0]

    def _orders(self) -> list[Order]:
        parts, settings = (
            self._read_parts(self._layout),
            self._settings._replace(means=self.averages if self.averages.values is not None else None),
        )
        of_words = self.measure == WORD and not self._settings.relation
        chosen = self._chosen_words(parts) if of_words else [None] * len(parts)
        folder = str(self._cluster.folder.resolve()) if self._cluster.folder else ""
        return [
            Order(part, self._layout.corpus, self._model, settings._replace(most=most), words, folder)
            for (part, most), words in zip(parts, chosen, strict=True)
        ]

    def _chosen_words(self, parts: list[tuple[Part, int]]) -> list[tuple[int, ...]]:
        """For each part, which word of each sentence is masked; drawn in the order of the corpus, as in one process."""
        random = Random(SEED)
        calls = [(part, most, self._model) for part, most in parts]
        return [
            tuple(random.choice(range(count)) for count in counts if count)
            for counts in self._cluster.answers(count_single, calls)
        ]


def count_single(part: Part, most: int, model: Model) -> tuple[int, ...]:
    """How many words of each sentence can be masked."""
    encoder = encoder_of(model)
    return tuple(_single(encoder, sentence.forms) for sentence in corpus_of(part).sentences[:most])


def _single(encoder: Encoder, forms: tuple[str, ...]) -> int:
    try:
        return len(single_words(encoder.read_words(list(forms))))
    except TextError:
        return 0


def sum_outputs(part: Part, most: int, model: Model) -> tuple[ablation.Sums, int]:
    """The sums of the outputs of all heads [layer, head, d_head] over sentences, in float64, and the tokens read."""
    means = ablation.Means(encoder_of(model))
    for sentence in corpus_of(part).sentences[:most]:
        add_sentence(means, sentence)
    return means.sums


def measure(order: Order) -> Measured:
    """The cases of a part, measured unless they are on disk. Raises the errors of :func:`mha_viz.effect`."""
    path = Path(order.folder, f"{order.content_key}.npz") if order.folder else None
    taken = _read(path) if path else None
    unsaved: tuple[str, ...] = ()
    if taken is None:
        taken = _measured(order)
        unsaved = why_unsaved(partial(_save, taken), path)
    return Measured(_placed(taken, order.part), unsaved)


def _measured(order: Order) -> Taken:
    """The cases of a part as if it were the whole corpus."""
    corpus = corpus_of(order.part)
    annotated = order.annotated  # a part may lack a relation that the corpus has
    corpus = replace(corpus, has_trees=annotated.has_trees, has_chains=annotated.has_chains)
    run = Measurement(encoder_of(order.model), corpus, *order.settings, chosen=order.chosen)
    for _ in run.sentences():
        pass
    return run.taken()


def _placed(taken: Taken, part: Part) -> Taken:
    """The same cases under the numbers that their documents and sentences have in the corpus."""
    documents = [str(number) for number, count in part.documents for _ in range(count)]
    sentences = [int(sentence) for _, sentence in taken.units]
    return taken._replace(units=tuple((documents[at], str(part.first + at)) for at in sentences))


def _save(taken: Taken, path: Path) -> None:
    """Write the cases of a part. Raises OSError."""
    units = [sentence for _, sentence in taken.units]
    sums.write({"cases": np.array(taken.cases)}, {"units": units, "read": taken.read, "left_out": taken.left_out}, path)


def _read(path: Path) -> Taken | None:
    """What :func:`_save` wrote; None if there is no file, or no complete one."""
    try:
        arrays = arrays_in(path)
        facts = json.loads(str(arrays["facts"]))
        units = tuple(("", sentence) for sentence in facts["units"])
        return Taken(tuple(arrays["cases"]), units, facts["read"], facts["left_out"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
