"""The effect of switching heads off over a corpus, in one call: measured in this process, or by a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from mha_viz.analysis.corpus_effects import CorpusEffect
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import AnyHead, Weights
from mha_viz.corpus.sources import Source, open_corpus
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.models import ablation, catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import ModelOrName, one_stack
from mha_viz.request import METHODS, Request
from mha_viz.study.corpus_effects import MOST, EffectSettings, Measurement
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    from distributed import Client


def effect(
    corpus: Source,
    heads: Sequence[AnyHead],
    model: ModelOrName = catalog.DEFAULT,
    *,
    method: str = METHODS[0],
    relation: str = "",
    direction: str = DIRECTIONS[0],
    same_role: Sequence[AnyHead] = (),
    most: int = MOST,
    means: Source | Weights | None = None,
    recipes: Recipes | None = None,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
    client: Client | None = None,
) -> CorpusEffect:
    """The effect of switching heads off over a corpus, compared with every other head of their layers.

    What is measured depends on the model: how much log p of one masked word per sentence falls; how much the loss of a
    causal model rises, per token; or else 1 − cosine of the sentence vector. With ``relation``, such as "nsubj", the
    words are those that a head with that role attends from: the dependents if ``direction`` is "dep_to_head", otherwise
    their heads; with "coreference", the pronouns that have an earlier mention in their sentence. log p of each of them
    is measured, or 1 − cosine of its last state. Words of several pieces are not masked. ``same_role``: other heads
    with the role, which are not controls.

    ``corpus`` and ``model`` are as for ``profile``; ``method`` is "zero", "mean", "uniform", "recipe", or "resample":
    the output on random sentences of the corpus. ``means``: what the means are over, or random sentences are from,
    another corpus in place of this one, or the mean outputs themselves [layer, head, d_head]. ``recipes``: as for
    :func:`mha_viz.without`. ``most``: how many sentences are read of each corpus, at most: of N, every ⌈N / most⌉-th.
    ``progress`` is called after each sentence. ``client``: a Dask client, whose workers read the files, as for
    ``profile``.

    Raises CorpusError, also if the corpus lacks the relation; SettingError; UnknownHead; ModelError's family;
    ClusterError.

    >>> mv.effect("grammar", ["L1H1"], "toy", most=20).table()["kind"].tolist()
    ['head', 'control', 'control', 'control']
    """
    encoder = one_stack(model, device)
    request = Request(off=ablation.existing(encoder, heads), method=method)
    settings = EffectSettings(request, relation, direction, same_role, most, means, recipes)
    _, measure = measurements(encoder, corpus, client)
    run = measure(settings)
    for done in run.sentences():
        if progress is not None:
            progress(done)
    return run.result()


def measurements(
    encoder: Encoder, corpus: Source, client: Client | None = None, names: Mapping[object, str] = MappingProxyType({})
) -> tuple[Corpus | Gap, Callable[[EffectSettings], Measurement]]:
    """A corpus, without its sentences if workers read them, and the function that begins a measurement of it: by this
    Dask client or, without one, in this process, by one method for all. ``names``: other names of corpora,
    by their digests. Raises CorpusError and ClusterError."""
    if client is None:
        opened = open_corpus(corpus)
        opened = replace(opened, name=names.get(opened.digest, opened.name))
        return opened, partial(Measurement, encoder, opened, states={})
    from mha_viz.study.cluster.effects import ClusterMeasurement  # without Dask, this process measures
    from mha_viz.study.cluster.engine import OnCluster

    cluster = OnCluster(client)
    layout = cluster.open(corpus)
    layout = layout._replace(corpus=replace(layout.corpus, name=names.get(layout.digest, layout.name)))
    return layout.corpus, partial(ClusterMeasurement, cluster, encoder, layout)
