"""What a model loses if heads are only their recipes: the weights of many heads at once become those that their recipes
predict; beside it, the same heads with their mean outputs, with even attention, and with the recipes of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.described import shares_of
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.recipes import Numbers
from mha_viz.analysis.rules import RuleText
from mha_viz.attention import Head, Weights
from mha_viz.corpus.sources import Source
from mha_viz.errors import Cancelled
from mha_viz.models import ablation
from mha_viz.models.ablation import Substitute
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import AnyModel, as_measured
from mha_viz.study.effects import Case, lost_each
from mha_viz.study.recipes import check_most, check_shape, corpora_of, readable
from mha_viz.study.run import SEED, Progress

if TYPE_CHECKING:
    import pandas as pd

MEAN, EVENLY = "mean", "uniform"
PARTS = (0.25, 0.5, 1.0)  # of the heads, those that are explained best first
METHODS = ("recipe", MEAN, EVENLY, "recipe of another head")
HEADING = ("method", "part", "heads", "sentences", "documents", "lost", "low", "high")


def replaced(
    recipes: Recipes,
    corpus: Source,
    model: str | AnyModel | None = None,
    *,
    most: int = 100,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> pd.DataFrame:
    """How far the sentence vector, the mean of the last layer's states, turns when heads are only their recipes.

    A row for each method and each part of the heads (a quarter, half, all; those that are explained best first):
    ``lost``, 1 − cosine of the vector with and without, averaged over the sentences, with its 95 % interval over
    documents, or over sentences if the corpus names no documents. Methods: "recipe": the weights of a head become those
    that its recipe predicts, and everything after it is computed anew; "mean": its output becomes its mean over these
    sentences; "uniform": its weights become equal; "recipe of another head": as "recipe", with the heads of the model
    in random order. ``most``: how many sentences are read.

    Raises as ``recipes`` with recipes in place of a corpus.

    >>> mv.replaced(mv.open_recipes("toy"), "grammar", most=5)["method"].unique()[0]
    'recipe'
    """
    check_most(most)
    (source,), shares = corpora_of(recipes, corpus), shares_of(recipes)
    encoder = as_measured(recipes.facts, model)
    check_shape(encoder, recipes)
    texts = readable(encoder, source, most)
    means = ablation.Means(encoder)
    means.add([text.sentence.forms for text in texts])
    order = best_first(recipes, encoder.heads)
    counts = [max(1, round(part * len(order))) for part in PARTS]
    lost = np.empty((len(texts), len(METHODS), len(PARTS)))
    for number, text in enumerate(texts):
        if cancelled():
            raise Cancelled("The study was stopped.", "Start it again to replace heads by their recipes.")
        for at, by in enumerate(substitutes(encoder, shares, means.values(), text)):
            case = Replaced("", words=text.sentence.forms, by=by)
            lost[number, at] = lost_each(encoder, [order[:count] for count in counts], case).sentence
        progress(Progress(number + 1, len(texts)))
    return _table(lost, [text.sentence.document for text in texts], counts)


@dataclass(frozen=True)
class Replaced(Case):
    """A sentence given as words; ``by``: what replaces the outputs of heads."""

    by: Substitute | None = None

    def substitute(self, encoder: Encoder, place: int = 0) -> Substitute:
        """What replaces the outputs of the heads."""
        return self.by or super().substitute(encoder, place)


def best_first(recipes: Recipes, heads: int) -> list[Head]:
    """All heads, by what their recipe explains of sentences that it was not fitted to."""
    explained = recipes.tables["explained"]["held_out"].to_numpy()
    return [Head(*divmod(int(place), heads)) for place in np.argsort(-explained, kind="stable")]


def substitutes(encoder: Encoder, shares: Numbers, means: Weights, text: RuleText) -> Iterator[Substitute]:
    """For each of METHODS, what replaces the outputs of heads in a text."""
    shape = encoder.layers, encoder.heads, len(text), len(text)
    predicted = fitting.prediction(shares, text).astype(np.float32)
    yield ablation.attending(predicted.reshape(shape))
    yield ablation.substitute(encoder, MEAN, means)
    yield ablation.substitute(encoder, EVENLY)
    yield ablation.attending(predicted[np.random.default_rng(SEED).permutation(len(predicted))].reshape(shape))


def _table(lost: Numbers, documents: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """``lost`` [sentence, method, part] as rows."""
    import pandas as pd

    units = Documents(documents if any(documents) else [str(number) for number in range(len(lost))])
    values = lost.reshape(len(lost), -1)
    sums = np.zeros((units.count, values.shape[1]))
    np.add.at(sums, units.numbers, values)
    low, high = units.of_means(sums, np.bincount(units.numbers, minlength=units.count))
    cells = [(method, part, count) for method in METHODS for part, count in zip(PARTS, counts, strict=True)]
    numbers = zip(cells, values.mean(axis=0), low, high, strict=True)
    rows = [(*cell, len(lost), units.count, *measured) for cell, *measured in numbers]
    return pd.DataFrame(rows, columns=list(HEADING))
