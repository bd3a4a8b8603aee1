"""Compare recipes of the same model that were chosen on different corpora."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mha_viz.analysis.bundled_data import average_shares, make_shares
from mha_viz.analysis.recipe_tables import HEADINGS, STABILITY, Recipes
from mha_viz.analysis.rules import NAMES, Numbers
from mha_viz.corpus.sources import Source
from mha_viz.errors import SettingError
from mha_viz.model_names import shorten_name
from mha_viz.models.reading.loading import ModelOrName, load_as_measured
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.recipes import DEFAULT_SENTENCES, check_most, check_shape, choose_shares
from mha_viz.study.run import Progress


@with_bar("of the sentences")
def compare_recipes(
    recipes: Recipes,
    other: Source | Recipes,
    model: ModelOrName | None = None,
    *,
    most: int = DEFAULT_SENTENCES,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> Recipes:
    """Compare recipes with those from another corpus.

    Shares are averaged over the classes of query word, as often as each occurs in the corpus of ``recipes``.

    Args:
        recipes: from :func:`mha_viz.recipes.fit` or :func:`mha_viz.recipes.load`.
        other: the corpus, on which recipes are chosen as :func:`mha_viz.recipes.fit` does, without measuring explained
            shares; or recipes of the same model that were chosen before.
        model: as for :func:`mha_viz.profile`, by default the model of ``recipes``.
        most: the maximum number of sentences to read, as for :func:`mha_viz.recipes.fit`.
        device: as for :func:`mha_viz.load`, where the model is loaded.
        progress: as for :func:`mha_viz.recipes.fit`.
        cancelled: as for :func:`mha_viz.recipes.fit`.

    Returns the recipes with the table ``stability``, one row per head and corpus. ``overlap``: Σ_r min(β_r, β'_r), 1
    for equal shares; ``rule`` and ``other_rule``: the rules with the largest shares; ``same``: whether they are
    equal; ``rules_in_common``: the share of the rules of either recipe that both have. Raises the errors of
    :func:`mha_viz.recipes.fit`, and SettingError for recipes of another model.

    >>> both = mv.recipes.compare(mv.recipes.load("toy"), mv.recipes.load("toy"))
    >>> both.tables["stability"][["overlap", "same"]].mean().tolist()
    [1.0, 1.0]
    """
    check_most(most)
    if isinstance(other, Recipes):
        names = [(item.facts["model"], item.facts.get("revision")) for item in (recipes, other)]
        if names[0] != names[1]:
            problem = f"The recipes are of {shorten_name(names[0][0])} ({names[0][1]}) and {shorten_name(names[1][0])} "
            raise SettingError(f"{problem}({names[1][1]}).", "Give recipes of the same model.")
        corpus, other_shares = str(other.facts["corpus"]), make_shares(other)
    else:
        encoder = load_as_measured(recipes.facts, model, device)
        check_shape(encoder, recipes)
        corpus, other_shares = choose_shares(encoder, other, most, as_callback(progress), cancelled)
    return _add_stability(recipes, corpus, other_shares)


def _add_stability(recipes: Recipes, corpus: str, other_shares: Numbers) -> Recipes:
    """Add a comparison to the recipes' table ``stability``.

    ``other_shares`` [class, head, rule] are the shares that were chosen on another corpus.
    """
    import pandas as pd

    # [head, rule]
    mean_shares, other_means = (average_shares(recipes, shares) for shares in (make_shares(recipes), other_shares))
    overlap = np.minimum(mean_shares, other_means).sum(axis=1)
    largest_rules = [shares.argmax(axis=1) for shares in (mean_shares, other_means)]
    common_counts, union_counts = (
        combine(mean_shares, other_means).sum(axis=1) for combine in (np.logical_and, np.logical_or)
    )
    rows = [
        (corpus, *divmod(head, int(recipes.facts["heads"])), overlap[head], NAMES[a], NAMES[b], bool(a == b), share)
        for head, (a, b, share) in enumerate(zip(*largest_rules, common_counts / union_counts, strict=True))
    ]
    table = pd.DataFrame(rows, columns=list(HEADINGS[STABILITY]))
    if (old_table := recipes.tables.get(STABILITY)) is not None:
        table = pd.concat([old_table[old_table["corpus"] != corpus], table], ignore_index=True)
    return replace(recipes, tables={**recipes.tables, STABILITY: table})
