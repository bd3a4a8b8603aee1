"""Measure the effect of switching heads off over a corpus in one call, in this process or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.analysis.corpus_effects import CorpusEffect
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import AnyHead, Weights
from mha_viz.corpus.sources import Source
from mha_viz.models.getting import catalog
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.request import METHODS, Request
from mha_viz.study.corpus_effects import DEFAULT_SENTENCES, EffectSettings, Measurement
from mha_viz.study.readers import open_measurable
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    from distributed import Client


@with_bar("of the cases")
def corpus_ablation_effects(
    corpus: Source,
    heads: Sequence[AnyHead],
    model: ModelOrName = catalog.DEFAULT,
    *,
    method: str = METHODS[0],
    relation: str = "",
    direction: str = DIRECTIONS[0],
    same_role: Sequence[AnyHead] = (),
    most: int = DEFAULT_SENTENCES,
    means: Source | Weights | None = None,
    recipes: Recipes | None = None,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> CorpusEffect:
    """Measure the effect of switching heads off over a corpus, compared with every other head of their layers.

    The measure depends on the model: the fall of log p of one masked word per sentence; for a causal model, the rise of
    the loss per token; or else 1 − cosine of the sentence vector. With ``relation``, it is log p of each word that a
    head with that role attends from, or 1 − cosine of its last state. Words of several tokens are not masked.

    Args:
        corpus: as for :func:`mha_viz.profile`.
        heads: the heads to switch off, such as "L3H1".
        model: as for :func:`mha_viz.profile`.
        method: the replacement for their outputs: "zero", "mean", "uniform", "recipe", or "resample", the output on
            random sentences of the corpus.
        relation: the relation of the words to measure, such as "nsubj"; "coreference" for the pronouns that have an
            earlier mention in their sentence.
        direction: "dep_to_head" for the dependents of ``relation``, "head_to_dep" or "head_row" for their heads.
        same_role: other heads with the role, which must not be used as controls.
        most: the maximum number of sentences to read of each corpus: of N, every ⌈N / most⌉-th.
        means: another corpus to compute means over or draw sentences from, in place of this one, or the mean outputs
            themselves [layer, head, d_head].
        recipes: as for :func:`mha_viz.ablate`.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        resume: a folder that stores the cases, so that a stopped call can resume.
        progress: True for a bar, or a function that is called after each sentence.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`.

    Returns the effects (:class:`mha_viz.analysis.corpus_effects.CorpusEffect`). Raises CorpusError, also if the corpus
    lacks the relation; SettingError; UnknownHead; ModelError; ClusterError.

    >>> mv.corpus_ablation_effects("grammar", ["L1H1"], "toy", most=20).table()["kind"].tolist()
    ['head', 'control', 'control', 'control']
    """
    encoder = load_one_stack(model, device)
    request = Request(off=ablation.check_heads(encoder, heads), method=method)
    settings = EffectSettings(request, relation, direction, same_role, most, means, recipes)
    run = Measurement(
        encoder, open_measurable(corpus, client), settings, folder=None if resume is None else Path(resume)
    )
    with closing(run.iter_progress()) as reports:
        for state in reports:
            as_callback(progress)(state)
    result = run.result()
    run.discard_partial_results()
    return result
