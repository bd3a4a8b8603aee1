"""The effect of switching heads off over a corpus, measured by the workers of a cluster: the same cases in the same
order as in one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import NamedTuple

from mha_viz.attention import Weights
from mha_viz.corpus.sources import Source
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import TextError
from mha_viz.models.encoder import Encoder
from mha_viz.study.cluster.engine import OnCluster
from mha_viz.study.cluster.layout import Layout, Part, corpus_of
from mha_viz.study.cluster.tasks import Model, encoder_of
from mha_viz.study.corpus_effects import SEED, WORD, EffectSettings, Measurement, Taken, built_in_means, single_words
from mha_viz.study.run import Progress


class Order(NamedTuple):
    """A part to measure. ``settings.most``: how many of its sentences; ``chosen``: as for Measurement."""

    part: Part
    annotated: Corpus
    model: Model
    settings: EffectSettings
    chosen: tuple[int, ...] | None


class ClusterMeasurement(Measurement):
    """A measurement by the workers of a cluster; there is a result for the parts that came back so far, in order."""

    def __init__(self, cluster: OnCluster, encoder: Encoder, source: Source | Layout, settings: EffectSettings) -> None:
        self._layout = source if isinstance(source, Layout) else cluster.open(source)
        super().__init__(encoder, self._layout.corpus, *settings)
        self._cluster, self._settings, self._model = cluster, settings, Model.opened_by(encoder)

    def sentences(self) -> Iterator[Progress]:
        """Add one part after the other."""
        parts = [(part, min(part.sentences, self._settings.most - part.first)) for part in self._layout.parts]
        parts = [(part, most) for part, most in parts if most > 0]
        chosen = self._chosen_words(parts) if self.measure == WORD and not self._settings.relation else None
        orders = [
            Order(
                part,
                self._layout.corpus,
                self._model,
                self._settings._replace(most=most),
                None if chosen is None else chosen[number],
            )
            for number, (part, most) in enumerate(parts)
        ]
        total, done = sum(most for _, most in parts), 0
        for (_, most), taken in zip(parts, self._cluster.answers(measure, [(order,) for order in orders]), strict=True):
            self.add(taken)
            done += most
            yield Progress(done, total)

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


def measure(order: Order) -> Taken:
    """The cases of a part. Raises the errors of :func:`mha_viz.effect`."""
    corpus = corpus_of(order.part)
    annotated = order.annotated  # a part may lack a relation that the corpus has
    corpus = replace(corpus, has_trees=annotated.has_trees, has_chains=annotated.has_chains)
    means = _means(order.model) if order.settings.method == "mean" else None
    encoder = encoder_of(order.model)
    run = Measurement(encoder, corpus, *order.settings, first=order.part.first, chosen=order.chosen, means=means)
    for _ in run.sentences():
        pass
    return run.taken()


@lru_cache(maxsize=1)
def _means(model: Model) -> Weights:
    return built_in_means(encoder_of(model))
