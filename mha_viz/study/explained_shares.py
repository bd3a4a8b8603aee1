"""Sum the attention over a corpus that recipes explain, over even and odd sentences, by document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.bundled_data import MAX_TOKENS
from mha_viz.analysis.intervals import Documents, count_documents_with_cases
from mha_viz.analysis.rules import CLASSES, RULES, Numbers, RuleText, iter_predictions
from mha_viz.attention import Weights
from mha_viz.corpus.limits import count_every
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.measures import ReadShard, ResamplingUnits, ShardTexts, read_plain_shard
from mha_viz.study.plan import make_batches
from mha_viz.study.sums import PASSES, Sums

FORMAT = 2  # version of the sums and of how they are measured
NAME = "explained"  # name of the sums
HALVES = 2  # even and odd sentences, by their numbers among those that are read


class RecipeSums(NamedTuple):
    """The sums of explained attention over every ``step``-th sentence, without those of more than 256 tokens.

    There are separate sums for each of the ``units`` of resampling. ``shares`` has, for each pass, the shares [class,
    head, rule] of each recipe that is applied to its weights.
    """

    step: int
    units: ResamplingUnits
    shares: Mapping[str, Sequence[Numbers]]
    has_cases: bool = False

    def definition(self) -> list[object]:
        """Return everything but the texts, with the names of the rules and digests of the shares."""
        digests = [
            [name, *(hashlib.sha256(shares.tobytes()).hexdigest() for shares in recipes)]
            for name, recipes in self.shares.items()
        ]
        return [NAME, FORMAT, self.step, self.units, [rule.name for rule in RULES], *digests]

    def count_sentences(self, count: int, first: int) -> int:
        """Count every ``step``-th sentence."""
        return count_every(self.step, count, first)

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """Return the sentences without their annotation."""
        return read_plain_shard(encoder, corpus, first, self.step, self.units)

    def texts(self, shard: ReadShard) -> dict[str, ShardTexts]:
        """Return the sentences, batched by length."""
        pieces = [text if text and len(text) <= MAX_TOKENS else None for text in shard.plan.sentences]
        lengths = [len(text) if text else 0 for text in pieces]
        return {"sentences": ShardTexts(lengths, range(len(lengths)), partial(make_batches, pieces), self._add)}

    def _add(self, encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
        """Add the attention that recipes explain in some sentences."""
        shares, heads = self.shares[pass_name], sums.heads
        total = ExplainedSums.zeros(len(sums.documents), len(shares), heads)
        weights = encoder.batch([piece for number in text_numbers if (piece := shard.plan.sentences[number])])
        rows = sums.indices("document", [shard.labels[number] for number in text_numbers])
        for index, (number, row) in enumerate(zip(text_numbers, rows, strict=True)):
            pieces = shard.plan.sentences[number]
            assert pieces is not None
            text = RuleText(shard.corpus.sentences[number], pieces, bool(encoder.causal))  # type: ignore[union-attr]
            text_weights = weights[:, :, index].reshape(heads, *weights.shape[3:])
            total.add((row, (shard.first + number) % HALVES), text, text_weights, shares)
        sums.arrays |= {f"{pass_name}/{NAME}/{quantity}": array for quantity, array in total._asdict().items()}


def count_cells(heads: int, recipes: int) -> int:
    """Return the number of sums per document, for this many heads in all layers and this many recipes."""
    return HALVES * heads * (recipes + 1)


class ExplainedSums(NamedTuple):
    """Sums of the attention that recipes explain, for each document and each half of its sentences.

    Attributes:
        weight: the sum of min(A, P) over all rows, [document, half, recipe, head].
        iou: Σ min / Σ max of each sentence by the first recipe, summed, [document, half, head].
        rows: the number of rows of each class of query word, [document, half, class].
        sentences: the number of sentences, [document, half].
    """

    weight: Numbers
    iou: Numbers
    rows: Numbers
    sentences: Numbers

    @classmethod
    def zeros(cls, documents: int, recipes: int, heads: int) -> ExplainedSums:
        """Return sums without any sentence."""
        shapes = ((recipes, heads), (heads,), (len(CLASSES),), ())
        return cls(*(np.zeros((documents, HALVES, *shape)) for shape in shapes))

    @classmethod
    def from_sums(cls, sums: Sums, recipes: Sequence[int]) -> ExplainedSums:
        """Return the sums of all passes, joined along the axis of recipes.

        ``recipes`` has the number of recipes of each pass.
        """
        total = cls.zeros(len(sums.documents), sum(recipes), sums.heads)
        starts = np.cumsum([0, *recipes])
        for pass_name, start, end in zip(PASSES, starts, starts[1:], strict=False):
            arrays = sums.select(f"{pass_name}/{NAME}")
            total.weight[:, :, start:end] = arrays["weight"]
            if pass_name == PASSES[0]:
                for quantity in ("iou", "rows", "sentences"):
                    getattr(total, quantity)[:] = arrays[quantity]
        return total

    def add(self, cell: tuple[int, int], text: RuleText, weights: Weights, shares: Sequence[Numbers]) -> None:
        """Add a sentence with its attention [head, query, key]. ``cell`` is its document and half."""
        predictions = iter_predictions(shares, text)
        explained = [np.minimum(weights, recipe).sum(axis=(1, 2), dtype=np.float64) for recipe in predictions]
        self.weight[cell] += explained
        self.iou[cell] += explained[0] / (2 * len(text) - explained[0])  # rows of attention sum to 1
        self.rows[cell] += np.bincount(text.classes, minlength=len(CLASSES))
        self.sentences[cell] += 1

    def half(self, number: int) -> ExplainedSums:
        """Return the sums of one half: 0 for the even sentences, 1 for the odd ones."""
        return ExplainedSums(*(array[:, number : number + 1] for array in self))

    def means(self) -> Numbers:
        """Return the explained share of each recipe over all rows, [recipe, head]; NaN without any row."""
        with np.errstate(invalid="ignore"):
            means: Numbers = self.weight.sum(axis=(0, 1)) / self.rows.sum()
        return means

    def interval(self) -> Numbers:
        """Return the 95 % interval of the explained share of the first recipe, over documents, [low and high, head].

        It is NaN if only one document has a sentence.
        """
        return self._interval(self.weight[:, :, 0].sum(axis=1))

    def mean(self) -> Numbers:
        """Return the explained share of the first recipe, averaged over heads, and its interval: [share, low, high]."""
        sums = self.weight[:, :, 0].mean(axis=2, keepdims=True).sum(axis=1)  # [document, 1]
        return np.array([self.means()[0].mean(), *self._interval(sums)[:, 0]])

    def _interval(self, sums: Numbers) -> Numbers:
        documents = Documents.from_numbers((), len(sums))
        return documents.compute_mean_intervals(sums, self.rows.sum(axis=(1, 2)))

    @property
    def documents(self) -> int:
        """The number of documents that have a sentence."""
        return count_documents_with_cases(self.sentences.sum(axis=1))

    def mean_iou(self) -> Numbers:
        """Return Σ min / Σ max averaged over sentences, [head]; NaN without any sentence."""
        with np.errstate(invalid="ignore"):
            mean: Numbers = self.iou.sum(axis=(0, 1)) / self.sentences.sum()
        return mean
