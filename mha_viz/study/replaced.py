"""What a model loses if heads are only their recipes: the weights of many heads at once become those that their recipes
predict; beside it, the same heads with their mean outputs, with even attention, and with the recipes of others, and as
many heads at random with their own. How far the sentence vector turns, and what heads still find and the model still
answers: roles, and masked pronouns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.described import shares_of
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.given import given_roles
from mha_viz.analysis.intervals import Documents, with_cases
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.reduce import word_block
from mha_viz.analysis.rules import Numbers, RuleText, prediction
from mha_viz.analysis.syntax import arcs, pointers
from mha_viz.attention import Head, Weights
from mha_viz.corpus.sources import Source
from mha_viz.errors import Cancelled, ModelUnsupported, SettingError
from mha_viz.model_names import short_name
from mha_viz.models import ablation
from mha_viz.models.ablation import Substitute
from mha_viz.models.answers import word_head
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import ModelOrName, as_measured
from mha_viz.request import MASK, Question, Request
from mha_viz.study.corpus_effects import anaphoric
from mha_viz.study.effects import lost_each, values_without
from mha_viz.study.recipes import check_most, check_shape, corpora_of, readable_texts
from mha_viz.study.run import SEED, Progress

if TYPE_CHECKING:
    import pandas as pd

MEAN, EVENLY = "mean", "uniform"
PARTS = (0.25, 0.5, 1.0)  # of the heads, those that are explained best first
METHODS = ("recipe", MEAN, EVENLY, "recipe of another head", "recipe of random heads")
HEADING = ("method", "part", "heads", "sentences", "documents", "lost", "low", "high")
WHOLE = "none"  # no head is replaced
ACCURACY_HEADING = (
    *("method", "part", "heads", "roles", "roles_low", "roles_high", "role_cases", "role_documents"),
    *("pronouns", "pronouns_low", "pronouns_high", "pronoun_cases", "pronoun_documents"),
)
Counts = npt.NDArray[np.int64]  # [..., method, part]; the whole model is part 0 of each method


def replaced(
    recipes: Recipes,
    corpus: Source,
    model: ModelOrName | None = None,
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
    in random order; "recipe of random heads": as "recipe", of as many heads as in the other rows, drawn anew for each
    sentence. ``most``: how many sentences are read.

    Raises as ``recipes`` with recipes in place of a corpus.

    >>> mv.replaced(mv.open_recipes("toy"), "grammar", most=5)["method"].unique()[0]
    'recipe'
    """
    replacing = Replacing.of(recipes, corpus, model, most)
    encoder, texts = replacing.encoder, replacing.texts
    lost = np.empty((len(texts), len(METHODS), len(PARTS)))
    for number, text in replacing.each(progress, cancelled):
        for at, (by, parts) in enumerate(replacing.substitutes(number, text)):
            request = Request(words=text.sentence.forms)
            lost[number, at] = lost_each(encoder, parts, request, lambda *_, by=by: by).sentence
    return _table(lost, [text.sentence.document for text in texts], [len(heads) for heads in replacing.parts])


def replaced_accuracy(
    recipes: Recipes,
    corpus: Source,
    model: ModelOrName | None = None,
    *,
    most: int = 100,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> pd.DataFrame:
    """What heads still find, and the model still answers, when heads are only their recipes: rows as those of
    :func:`mha_viz.replaced`, and a first one for the whole model, in which nothing is replaced.

    ``roles``: how often the heads with a role of syntax in the model's shipped profile are right, over all of its cases
    (``role_cases``), by the weights that they compute from what the replaced heads leave them. ``pronouns``: how often
    the most probable word at a masked pronoun with an antecedent is that pronoun; NaN where there is none, or the model
    is not asked for masked words. Each has its 95 % interval over documents (``roles_low``, ``roles_high``): below five
    documents Wilson's of all cases, which speaks of these documents alone. ``role_documents``: how many have a case; 1
    if the corpus names none. Raises as :func:`mha_viz.replaced`, and SettingError for a model without shipped roles.

    >>> mv.replaced_accuracy(mv.open_recipes("toy"), "grammar", most=5)["method"].unique()[0]
    'none'
    """
    replacing = Replacing.of(recipes, corpus, model, most)
    encoder = replacing.encoder
    roles = [role for role in given_roles(encoder.name) if role.role == "syntax"]
    if not roles:
        raise SettingError(f"No roles of {short_name(encoder.name)} come with the app.", "Choose minilm or toy.")
    units = Documents([text.sentence.document for text in replacing.texts])
    right, cases = (
        np.zeros((2, units.count, len(METHODS), 1 + len(PARTS)), np.int64),
        np.zeros((2, units.count), np.int64),
    )
    for number, text in replacing.each(progress, cancelled):
        unit = units.numbers[number]
        for at, (by, parts) in enumerate(replacing.substitutes(number, text)):
            right[0, unit, at] += _roles_right(encoder, text, roles, [(), *parts], by)
        cases[0, unit] += sum(len(_cases(text, role)) for role in roles)
        for masked, question in _questions(encoder, text):
            for at, (by, parts) in enumerate(replacing.substitutes(number, masked)):
                right[1, unit, at] += _answered(encoder, masked, question, [(), *parts], by)
            cases[1, unit] += 1
    measured = [_accuracies(units, *of_kind) for of_kind in zip(right, cases, strict=True)]
    return _accuracy_table(measured, [0, *map(len, replacing.parts)])


@dataclass(frozen=True)
class Replacing:
    """The heads of a model in the ``parts`` that are replaced, and the ``texts`` on which they are. ``shares``: of the
    rules of each head; ``means``: the mean outputs over the texts."""

    encoder: Encoder
    texts: list[RuleText]
    parts: list[tuple[Head, ...]]
    shares: Numbers
    means: Weights

    @classmethod
    def of(cls, recipes: Recipes, corpus: Source, model: ModelOrName | None, most: int) -> Replacing:
        """Open the model and the corpus. Raises as :func:`replaced`."""
        check_most(most)
        (source,), shares = corpora_of(recipes, corpus), shares_of(recipes)
        encoder = as_measured(recipes.facts, model)
        check_shape(encoder, recipes)
        texts = readable_texts(encoder, source, most)
        means = ablation.Means(encoder)
        means.add([text.sentence.forms for text in texts])
        order = best_first(recipes, encoder.heads)
        parts = [tuple(order[: max(1, round(part * len(order)))]) for part in PARTS]
        return cls(encoder, texts, parts, shares, means.values())

    def each(
        self, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Iterator[tuple[int, RuleText]]:
        """Each text with its number. Raises Cancelled."""
        for number, text in enumerate(self.texts):
            if cancelled():
                raise Cancelled("The study was stopped.", "Start it again to replace heads by their recipes.")
            yield number, text
            progress(Progress(number + 1, len(self.texts)))

    def substitutes(self, number: int, text: RuleText) -> Iterator[tuple[Substitute, list[tuple[Head, ...]]]]:
        """For each of METHODS, what replaces the outputs of heads in a text, and in which parts. ``number``: of the
        text, on which random heads depend."""
        encoder = self.encoder
        shape = encoder.layers, encoder.heads, len(text), len(text)
        predicted = prediction(self.shares, text).astype(np.float32)
        recipe, others = ablation.attending(predicted.reshape(shape)), np.random.default_rng(SEED)
        yield recipe, self.parts
        yield ablation.substitute(encoder, MEAN, self.means), self.parts
        yield ablation.substitute(encoder, EVENLY), self.parts
        yield ablation.attending(predicted[others.permutation(len(predicted))].reshape(shape)), self.parts
        every = np.random.default_rng((SEED, number)).permutation(len(predicted))
        drawn = [Head(*divmod(int(place), encoder.heads)) for place in every]
        yield recipe, [tuple(drawn[: len(part)]) for part in self.parts]


def best_first(recipes: Recipes, heads: int) -> list[Head]:
    """All heads, by what their recipe explains of sentences that it was not fitted to."""
    explained = recipes.tables["explained"]["held_out"].to_numpy()
    return [Head(*divmod(int(place), heads)) for place in np.argsort(-explained, kind="stable")]


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


# ---- What is still right ----------------------------------------------------------------------------------------


def _roles_right(
    encoder: Encoder, text: RuleText, roles: Sequence[Finding], off: Sequence[Sequence[Head]], by: Substitute
) -> Counts:
    """[variant]: in how many cases the heads with roles are right while those of each variant are off."""
    weights = encoder.last_states(text.pieces, ablation.replacing(off, by), len(off))[1].fetched()
    return np.array([_right(text, weights[:, :, at], roles, encoder.heads) for at in range(len(off))])


def _right(text: RuleText, weights: Weights, roles: Sequence[Finding], heads: int) -> int:
    flat = weights.reshape(-1, *weights.shape[2:])
    pointed = pointers(word_block(flat, text.pieces.words))
    return sum(
        arc.right for role in roles for arc in arcs(text.sentence, pointed, role.head.place(heads), *_relation(role))
    )


def _cases(text: RuleText, role: Finding) -> list[int]:
    """The words with a case of a role; each once."""
    relation, direction = _relation(role)
    words = [
        (place, word.head)
        for place, word in enumerate(text.sentence.words)
        if word.head is not None and relation in (word.relation, word.base)
    ]
    return sorted({above for _, above in words}) if direction == "head_row" else [place for place, _ in words]


def _relation(role: Finding) -> tuple[str, str]:
    relation, direction = role.detail.split()
    return relation, direction


def _questions(encoder: Encoder, text: RuleText) -> Iterator[tuple[RuleText, Question]]:
    """The sentence with each anaphoric pronoun masked, and the question for it; none if the model has no answer."""
    mask = encoder.vocabulary.mask_token
    if mask is None or encoder.causal:
        return
    try:
        word_head(encoder)
    except ModelUnsupported:
        return
    for word in anaphoric(text.sentence):
        at, words = text.pieces.words.index(word), text.sentence.words
        masked = (*words[:word], words[word]._replace(form=str(mask)), *words[word + 1 :])
        sentence = dataclasses.replace(text.sentence, words=masked)
        question = Question(MASK, at, words[word].form, text.pieces.ids[at], places=(at,))
        yield RuleText(sentence, encoder.read_words(sentence.forms), text.causal), question


def _answered(
    encoder: Encoder, masked: RuleText, question: Question, off: Sequence[Sequence[Head]], by: Substitute
) -> Counts:
    """[variant]: 1 where the most probable word is the masked one."""
    request = Request(words=masked.sentence.forms, question=question)
    values = values_without(encoder, off, request, lambda *_: by)
    is_right: Counts = (values.argmax(axis=1) == question.piece).astype(np.int64)
    return is_right


def _accuracies(units: Documents, right: Counts, cases: Counts) -> Numbers:
    """[value, method, part] of one kind, from what is right [document, method, part] of the ``cases`` [document]: the
    accuracy, its interval, and how many cases and documents there are."""
    count, flat = cases.sum(), right.reshape(len(right), -1)
    if count:
        values = np.array([flat.sum(axis=0) / count, *units.interval(flat, cases)])
    else:
        values = np.full((3, flat.shape[1]), np.nan)
    of_cases = np.full((2, flat.shape[1]), [[count], [with_cases(cases)]])
    return np.concatenate([values, of_cases]).reshape(-1, *right.shape[1:])


def _accuracy_table(measured: Sequence[Numbers], counts: Sequence[int]) -> pd.DataFrame:
    import pandas as pd

    cells = [(WHOLE, 0.0, 0, 0, 0)]
    cells += [(name, part, counts[at], row, at) for row, name in enumerate(METHODS) for at, part in enumerate(PARTS, 1)]
    rows = [
        (name, part, heads, *(v for of in measured for v in of[:, row, at])) for name, part, heads, row, at in cells
    ]
    table = pd.DataFrame(rows, columns=list(ACCURACY_HEADING))
    return table.astype({name: int for name in ACCURACY_HEADING if name.endswith(("_cases", "_documents"))})
