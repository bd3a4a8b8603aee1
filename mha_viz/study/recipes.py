"""Recipes over a corpus: rules are chosen on its even sentences, and what they explain is measured on the odd ones, and
on another corpus, to which recipes that come with the app can be applied too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.described import ALL, LONGEST, shares_of
from mha_viz.analysis.recipe_tables import HEADINGS, Recipes
from mha_viz.analysis.recipes import Numbers, RecipeChoice, RuleRows
from mha_viz.analysis.rules import CHAINS, CLASSES, EVEN, NAMES, RULES, TAGS, TREES, RuleText
from mha_viz.attention import Weights
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import Cancelled, CorpusError, SettingError, TextError
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import AnyModel, as_measured, one_stack
from mha_viz.study.plan import batches
from mha_viz.study.run import SEED, Progress

MOST = 300  # sentences that are read of each corpus
MOST_READ = 100_000
CELLS = 30_000_000  # weights of all heads, and of all rules, to which a fit is made at once


def recipes(
    corpus: Source | Recipes,
    model: str | AnyModel | None = None,
    *,
    score: Source | None = None,
    most: int = MOST,
    device: str = "cpu",
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Recipes:
    """The recipe of every head: at most six named rules, with shares, and how much of the attention they explain.

    Rules and shares are chosen on the sentences of ``corpus`` with an even number and measured on the others, and on
    the corpus ``score``, if it is given. Rules that need annotation are left out where a corpus has none; plain text is
    enough for the others. In place of a corpus, recipes from ``open_recipes`` or an earlier call are measured on
    ``score``, and nothing is chosen: untrained weights, which have shares of their own, are left out. ``model`` and
    ``device`` are as for ``profile``, ``model`` by default that of the recipes; ``most``: how many sentences are read
    of each corpus; those of more than 256 pieces are left out. ``progress`` is called as the work goes on.

    Raises CorpusError, also where ``score`` lacks the annotation that the recipes need; SettingError, also where they
    are those of a model of another shape; ModelError's family; Cancelled soon after ``cancelled`` returns True.

    >>> mv.recipes("grammar", "toy", most=40).tables["recipes"].columns.tolist()
    ['layer', 'head', 'query_class', 'rule', 'share']
    """
    check_most(most)
    corpora = corpora_of(corpus, score)
    if isinstance(corpus, Recipes):
        return _Study(as_measured(corpus.facts, model, device), corpora, most, progress, cancelled).scored(corpus)
    encoder = one_stack(catalog.DEFAULT if model is None else model, device)
    return _Study(encoder, corpora, most, progress, cancelled).result()


def check_most(most: int) -> None:
    """Raise SettingError for what is not a number of sentences."""
    if not 2 <= most <= MOST_READ:
        raise SettingError(f"{most} is not a number of sentences.", f"Give 2 to {MOST_READ}.")


def corpora_of(source: Source | Recipes, score: Source | None) -> list[Corpus]:
    """The corpora that are read, the one on which recipes are measured last. Raises CorpusError, SettingError."""
    scored = [] if score is None else [open_sentences(score)]
    if isinstance(source, Recipes):
        if score is None:
            raise SettingError(
                "There is no corpus on which the recipes are to be measured.", "Give score=, or --score."
            )
        needs = {RULES[rule].needs for rule in np.flatnonzero(shares_of(source).any(axis=(0, 1)))}
        _check_annotated(scored[0], str(source.facts["corpus"]), bool(needs & {TAGS, TREES}), CHAINS in needs)
        return scored
    corpus = open_sentences(source)
    if scored:
        _check_annotation(corpus, scored[0])
    return [corpus, *scored]


class _Scores(NamedTuple):
    """Of each sentence, in order: how many rows it has, and for each head the sums over them of what is explained by
    its recipe, by even attention, by its best rule, and of untrained weights, [sentence, 4, head]."""

    rows: Numbers
    sums: Numbers

    def half(self, odd: int) -> _Scores:
        """Every second sentence."""
        return _Scores(self.rows[odd::2], self.sums[odd::2])

    def means(self) -> Numbers:
        """[4, head]: over all rows; NaN without any."""
        with np.errstate(invalid="ignore"):
            means: Numbers = self.sums.sum(axis=0) / self.rows.sum()
        return means

    def iou(self) -> Numbers:
        """[head]: Σ min / Σ max of each sentence, averaged over them; rows of attention sum to 1."""
        recipe = self.sums[:, 0]
        if not len(recipe):
            return np.full(recipe.shape[1], np.nan)
        mean: Numbers = (recipe / (2 * self.rows[:, None] - recipe)).mean(axis=0)
        return mean


class _Study:
    """One run: a pass over the sentences that are fitted, and one over all that are scored, with trained and with
    untrained weights."""

    def __init__(
        self,
        encoder: Encoder,
        corpora: Sequence[Corpus],
        most: int,
        progress: Callable[[Progress], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self.encoder, self.corpora = encoder, corpora
        self.models = (encoder, encoder.untrained(SEED))
        self.heads = encoder.layers * encoder.heads
        self.texts = [readable(encoder, corpus, most) for corpus in corpora]
        self._progress, self._cancelled, self._done = progress, cancelled, 0.0
        self._total = 0.0

    def result(self) -> Recipes:
        """The recipes with what they explain. Raises CorpusError, Cancelled."""
        some = self._fitted()
        fit = 2.0 * _pieces(some)  # choosing rules takes about as long as reading twice
        self._total = _pieces(some) + fit + _pieces(some[::2]) + 2 * sum(map(_pieces, self.texts))
        rows, others = (self._rows(self.models[0], some[half::2]) for half in (0, 1))
        before = self._done
        chosen = fitting.choice(rows, others, lambda share: self._report(before + share * fit))
        self._report(before + fit)
        untrained = self._rows(self.models[1], some[::2])
        by_chance = np.where(
            chosen.by_class[None, :, None],
            fitting.refitted(untrained, chosen.shares),
            np.array([fitting.refitted([fitting.joined(untrained)], chosen.shares[:1])[0]] * len(CLASSES)),
        )
        shares = [chosen.shares, _even(self.heads), fitting.alone(chosen.single), by_chance]
        return self._tables(chosen, [self._scores(texts, shares) for texts in self.texts])

    def scored(self, earlier: Recipes) -> Recipes:
        """Recipes that were chosen before, with what they explain of this corpus. Raises CorpusError, SettingError,
        Cancelled."""
        check_shape(self.encoder, earlier)
        shares, texts = shares_of(earlier), self._readable()
        self._total = _pieces(texts)
        singles = [NAMES.index(name) for name in earlier.facts["best_rules"]]
        scores = self._scores(texts, [shares, _even(self.heads), fitting.alone(np.array(singles, np.intp))])
        columns = zip(("other", "even", "best_rule", "iou"), (*scores.means(), scores.iou()), strict=True)
        explained = earlier.tables["explained"].assign(**dict(columns), untrained=np.nan)
        return Recipes({**earlier.facts, **self._read_of("score", 0)}, {**earlier.tables, "explained": explained})

    def _readable(self) -> list[RuleText]:
        """The sentences of the first corpus. Raises CorpusError if there are none."""
        if not self.texts[0]:
            raise CorpusError(f"Nothing of {self.corpora[0].name} can be read.", "Give another corpus.")
        return self.texts[0]

    def _fitted(self) -> list[RuleText]:
        """The first sentences of the corpus, as many as memory has room for. Raises CorpusError if there are none."""
        texts = self._readable()
        room = CELLS // max(self.heads, len(RULES))
        sizes = np.cumsum([len(text) ** 2 for text in texts])
        return texts[: max(1, int((sizes <= room).sum()))]

    def _report(self, done: float) -> None:
        self._done = done
        self._progress(Progress(min(round(done), round(self._total)), round(self._total)))
        if self._cancelled():
            raise Cancelled("The study was stopped.", "Start it again to measure the recipes.")

    def _read(self, encoder: Encoder, texts: Sequence[RuleText]) -> Iterator[tuple[int, Weights]]:
        """As :func:`weights_of`, with progress."""
        for number, weights in weights_of(encoder, texts):
            yield number, weights
            self._report(self._done + len(texts[number]))

    def _rows(self, encoder: Encoder, texts: Sequence[RuleText]) -> list[RuleRows]:
        """The rows by class, in the order of the texts."""
        read = dict(self._read(encoder, texts))
        return fitting.rows_by_class((text, read[number]) for number, text in enumerate(texts))

    def _scores(self, texts: Sequence[RuleText], shares: Sequence[Numbers]) -> _Scores:
        sums = np.zeros((len(texts), len(shares), self.heads))
        for encoder, which in zip(self.models, ([0, 1, 2], [3][: len(shares) - 3]), strict=True):
            for number, weights in self._read(encoder, texts):
                for place in which:
                    predicted = fitting.prediction(shares[place], texts[number])
                    sums[number, place] = np.minimum(weights, predicted).sum(axis=(1, 2))
        return _Scores(np.array([len(text) for text in texts], float), sums)

    def _tables(self, chosen: RecipeChoice, scores: Sequence[_Scores]) -> Recipes:
        import pandas as pd

        even, odd = scores[0].half(0), scores[0].half(1)
        judged = scores[1] if len(scores) > 1 else odd
        other = scores[1].means()[0] if len(scores) > 1 else np.full(self.heads, np.nan)
        columns = [even.means()[0], odd.means()[0], other, *judged.means()[1:], judged.iou()]
        places = [divmod(head, self.encoder.heads) for head in range(self.heads)]
        explained = [(*place, *numbers) for place, numbers in zip(places, zip(*columns, strict=True), strict=True)]
        rows = [row for head, place in enumerate(places) for row in _shares(chosen, head, place)]
        tables = {"recipes": rows, "explained": explained}
        frames = {name: pd.DataFrame(table, columns=list(HEADINGS[name])) for name, table in tables.items()}
        return Recipes(self._facts(chosen), frames)

    def _facts(self, chosen: RecipeChoice) -> dict[str, Any]:
        encoder = self.encoder
        facts: dict[str, Any] = {"model": encoder.name, "revision": encoder.revision}
        facts |= {"layers": encoder.layers, "heads": encoder.heads}
        for number, name in enumerate(("corpus", "score")[: len(self.corpora)]):
            facts |= self._read_of(name, number)
        classes = np.bincount(np.concatenate([text.classes for text in self.texts[0]]), minlength=len(CLASSES))
        return facts | {"classes": classes.tolist(), "best_rules": [NAMES[rule] for rule in chosen.single]}

    def _read_of(self, name: str, number: int) -> dict[str, Any]:
        """What was read of the corpus with this number, under a name."""
        corpus, texts = self.corpora[number], self.texts[number]
        return {name: corpus.name, f"{name}_sha256": corpus.digest, f"{name}_sentences": len(texts)}


def _shares(chosen: RecipeChoice, head: int, place: tuple[int, int]) -> Iterator[tuple[object, ...]]:
    """The rows of a head in the table "recipes"; for each class, the largest share first."""
    for number, name in enumerate(CLASSES if chosen.by_class[head] else (ALL,)):
        shares = chosen.shares[number, head]
        for rule in np.argsort(-shares, kind="stable"):
            if shares[rule] > 0:
                yield (*place, name, RULES[rule].name, shares[rule])


def check_shape(encoder: Encoder, earlier: Recipes) -> None:
    """Raise SettingError if recipes are those of a model with other layers and heads."""
    if (encoder.layers, encoder.heads) != (earlier.facts["layers"], earlier.facts["heads"]):
        problem = f"{encoder.name} has {encoder.layers} × {encoder.heads} heads."
        raise SettingError(problem, f"Give a model like {earlier.facts['model']}, whose recipes these are.")


def weights_of(encoder: Encoder, texts: Sequence[RuleText]) -> Iterator[tuple[int, Weights]]:
    """The attention [head, query, key] of each text with its number, read in batches of one length."""
    heads = encoder.layers * encoder.heads
    for numbers in batches([text.pieces for text in texts], range(len(texts)), heads):
        weights = encoder.batch([texts[number].pieces for number in numbers])
        for at, number in enumerate(numbers):
            yield number, weights[:, :, at].reshape(heads, *weights.shape[3:])


def _pieces(texts: Sequence[RuleText]) -> int:
    return sum(map(len, texts))


def _even(heads: int) -> Numbers:
    return fitting.alone(np.full(heads, EVEN, np.intp))


def readable(encoder: Encoder, corpus: Corpus, most: int) -> list[RuleText]:
    """The first sentences, ``most`` at most, that a model can read, without the longest."""
    return [text for _, text in numbered(encoder, corpus, most)]


def numbered(encoder: Encoder, corpus: Corpus, most: int) -> list[tuple[int, RuleText]]:
    """The same, each with its number in the corpus."""
    texts = []
    for number, sentence in enumerate(corpus.sentences[:most]):
        with suppress(TextError):  # too long, or a word that the tokenizer drops
            texts.append((number, RuleText(sentence, encoder.read_words(sentence.forms), bool(encoder.causal))))
    return [(number, text) for number, text in texts if len(text) <= LONGEST]


def _check_annotation(corpus: Corpus, score: Corpus) -> None:
    """Raise CorpusError unless the second corpus is another one and annotated like the first."""
    if corpus.digest == score.digest:
        raise CorpusError(f"The recipes are from the same corpus, {corpus.name}.", "Name a corpus of another origin.")
    _check_annotated(score, corpus.name, corpus.has_trees, corpus.has_chains)


def _check_annotated(score: Corpus, name: str, trees: bool, chains: bool) -> None:
    """Raise CorpusError if a corpus lacks what recipes from the one with this name need."""
    for what, needed, has in (("trees", trees, score.has_trees), ("coreference chains", chains, score.has_chains)):
        if needed and not has:
            raise CorpusError(
                f"{score.name} has no {what}, which recipes from {name} may need.",
                "Name a corpus with the same annotation.",
            )
