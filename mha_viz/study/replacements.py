"""Measure what a model loses if heads are replaced by their recipes.

Many heads at once get the weights that their recipes predict. For comparison, the same heads get their mean outputs,
uniform attention, or the recipes of other heads, and an equal number of random heads get their own recipes.
The measures are how far the sentence vector turns, how often heads with roles are still right, and how often the model
still predicts masked pronouns.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.bundled_data import MAX_TOKENS, load_bundled_roles, make_shares
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.intervals import Documents, count_documents_with_cases
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.reduce import reduce_to_words
from mha_viz.analysis.rules import Numbers, RuleText, predict
from mha_viz.analysis.syntax import find_pointers, list_arcs
from mha_viz.attention import Head, Weights
from mha_viz.corpus.sources import Source
from mha_viz.errors import ModelUnsupported, SettingError
from mha_viz.model_names import shorten_name
from mha_viz.models.intervening import ablation
from mha_viz.models.intervening.ablation import Substitute
from mha_viz.models.reading.answers import load_word_head
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_as_measured
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.request import Question, Request
from mha_viz.study.cases import CaseKind, CaseRun, Cases, MeasurableCorpus, NumberedSentence, collect_cases
from mha_viz.study.corpus_effects import OutputSums, compute_means, iter_anaphoric_pronouns, mask_word
from mha_viz.study.effects import compute_values, measure_changes
from mha_viz.study.readers import open_measurable
from mha_viz.study.recipes import check_most, check_shape, open_corpora
from mha_viz.study.run import SEED, Progress
from mha_viz.study.texts import ReadableTexts, find_readable_index, read_text

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

FORMAT = 1  # version of the cases on disk
PASSES = 3  # over the corpus: find readable sentences, compute mean outputs, measure
MEAN, UNIFORM = "mean", "uniform"
PARTS = (0.25, 0.5, 1.0)  # fractions of the heads that are replaced, the best explained heads first
METHODS = ("recipe", MEAN, UNIFORM, "recipe of another head", "recipe of random heads")
COLUMNS = ("method", "part", "heads", "sentences", "documents", "lost", "low", "high")
NONE_REPLACED = "none"  # no head is replaced
ACCURACY_COLUMNS = (
    *("method", "part", "heads", "roles", "roles_low", "roles_high", "role_cases", "role_documents"),
    *("pronouns", "pronouns_low", "pronouns_high", "pronoun_cases", "pronoun_documents"),
)
Counts = npt.NDArray[np.int64]  # [..., method, part]; the whole model is part 0 of each method


@with_bar("readings")
def ablate_recipes(
    recipes: Recipes,
    corpus: Source,
    model: ModelOrName | None = None,
    *,
    most: int = 100,
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
    client: Client | None = None,
) -> pd.DataFrame:
    """Measure how far the sentence vector turns when heads are replaced by their recipes.

    The vector is the mean of the last layer's states.

    Args:
        recipes: the recipes of the heads, from :func:`mha_viz.recipes.fit` or :func:`mha_viz.recipes.load`.
        corpus: as for :func:`mha_viz.profile`.
        model: as for :func:`mha_viz.profile`, by default that of the recipes.
        most: the maximum number of sentences to read, each in three passes: of N, every ⌈N / most⌉-th.
        resume: a folder that stores the cases, so that a stopped call can resume.
        progress: True for a bar, or a function that is called with ``done`` and ``total`` passes.
        cancelled: returns True to stop the measurement in this process.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`.

    Returns a row for each method and each part of the heads (a quarter, half, all; those that are explained best
    first): ``lost``, 1 − cosine of the vector with and without, averaged over the sentences, with its 95 % interval
    over documents, or over sentences if the corpus names no documents and so counts as one. Methods: "recipe": the
    weights of a head become those that its recipe predicts, and everything after it is computed anew; "mean": its
    output becomes its mean over these sentences; "uniform": its weights become equal; "recipe of another head": as
    "recipe", with the heads of the model in random order; "recipe of random heads": as "recipe", of as many heads as in
    the other rows, drawn anew for each sentence. Raises the errors of :func:`mha_viz.recipes.fit` with recipes in place
    of a corpus.

    >>> mv.recipes.ablate(mv.recipes.load("toy"), "grammar", most=5)["method"].unique()[0]
    'recipe'
    """
    passes = Passes(None if resume is None else Path(resume), as_callback(progress), cancelled)
    study = ReplacementStudy.prepare(recipes, corpus, model, most, client, passes)
    cases = study.cases(VectorCases(*study.settings)).cases
    passes.discard_partial_results()
    changes = np.reshape(cases, (-1, len(METHODS), len(PARTS)))
    return _make_table(changes, study.texts.documents, study.counts)


@with_bar("readings")
def score_recipes(
    recipes: Recipes,
    corpus: Source,
    model: ModelOrName | None = None,
    *,
    most: int = 100,
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
    client: Client | None = None,
) -> pd.DataFrame:
    """Measure how often heads and the model are still right when heads are replaced by their recipes.

    Args:
        recipes: as for :func:`mha_viz.recipes.ablate`.
        corpus: as for :func:`mha_viz.recipes.ablate`.
        model: as for :func:`mha_viz.recipes.ablate`.
        most: as for :func:`mha_viz.recipes.ablate`.
        resume: as for :func:`mha_viz.recipes.ablate`.
        progress: as for :func:`mha_viz.recipes.ablate`.
        cancelled: as for :func:`mha_viz.recipes.ablate`.
        client: as for :func:`mha_viz.recipes.ablate`.

    Returns rows as :func:`mha_viz.recipes.ablate` does, with a first one for the whole model, in which nothing is
    replaced. ``roles``: how often the heads with a role of syntax in the model's bundled profile are right, over all of
    its cases (``role_cases``), by the weights that they compute while other heads are replaced. ``pronouns``:
    how often the most probable word at a masked pronoun with an antecedent is that pronoun; NaN where there is none, or
    the model is not asked for masked words. Each has its 95 % interval over documents (``roles_low``, ``roles_high``):
    below five documents Wilson's of all cases, which describes these documents only. ``role_documents``: how many have
    a case; 1 if the corpus names none. Raises the errors of :func:`ablate_recipes`, and SettingError for a model
    without bundled roles.

    >>> mv.recipes.score(mv.recipes.load("toy"), "grammar", most=5)["method"].unique()[0]
    'none'
    """
    passes = Passes(None if resume is None else Path(resume), as_callback(progress), cancelled)
    study = ReplacementStudy.prepare(recipes, corpus, model, most, client, passes)
    name = study.encoder.name
    roles = tuple(role for role in load_bundled_roles(name) if role.role == "syntax")
    if not roles:
        raise SettingError(f"No roles of {shorten_name(name)} come with the app.", "Choose minilm or toy.")
    answers = study.cases(RightAnswerCases(*study.settings, roles))
    passes.discard_partial_results()
    units = Documents(study.texts.documents)
    indices = {number: index for index, number in enumerate(study.texts.numbers)}
    right_counts = np.zeros((2, units.count, len(METHODS), 1 + len(PARTS)), np.int64)
    case_counts = np.zeros((2, units.count), np.int64)
    for (kind, count, *counts), (_, number) in zip(answers.cases, answers.units, strict=True):
        key = int(kind), units.numbers[indices[number]]
        case_counts[key] += int(count)
        right_counts[key] += np.reshape(counts, right_counts.shape[2:]).astype(np.int64)
    accuracies = [_compute_accuracies(units, *counts) for counts in zip(right_counts, case_counts, strict=True)]
    return _make_accuracy_table(accuracies, [0, *study.counts])


@dataclass(frozen=True)
class ReplacementCases(CaseKind):
    """Cases measured while parts of a model's heads are replaced by their recipes or otherwise.

    Attributes:
        parts: the heads that are replaced, for each of PARTS.
        shares: the shares of the heads' recipes, [class, head, rule].
        means: the mean outputs over the texts.
        unread: the numbers of the sentences that are left out.
    """

    parts: tuple[tuple[Head, ...], ...]
    shares: Numbers
    means: Weights
    unread: tuple[int, ...]

    @property
    def depends_on_position(self) -> bool:
        """Always True: the number of a sentence seeds the draw of random heads."""
        return True

    def definition(self, offset: int) -> list[object]:
        """Return the parts, the unread sentences, and digests of the shares and the means."""
        arrays = [hashlib.sha256(array.tobytes()).hexdigest() for array in (self.shares, self.means)]
        return [FORMAT, type(self).__name__, self.step, self.parts, *arrays, self.unread, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the cases of each text."""
        cases = Cases(sentences_read=len(numbered_sentences))
        for number, sentence in numbered_sentences:
            if (text := read_text(encoder, sentence)) is not None:
                text_cases = [*self.measure_text(encoder, number, text)]
                cases.cases += text_cases
                cases.units += [(sentence.document, number)] * len(text_cases)
        return cases

    def measure_text(self, encoder: Encoder, number: int, text: RuleText) -> Iterator[Numbers]:
        """Return the cases of one text."""
        raise NotImplementedError

    def substitutes(
        self, encoder: Encoder, number: int, text: RuleText
    ) -> Iterator[tuple[Substitute, Sequence[tuple[Head, ...]]]]:
        """Yield, for each of METHODS, the replacement for the outputs of heads in a text, and the parts to replace.

        ``number`` is the sentence's number; the random heads depend on its index among the readable sentences.
        """
        shape = encoder.layers, encoder.heads, len(text), len(text)
        readable_index = find_readable_index(number, self.step, self.unread)
        predicted = predict(self.shares, text).astype(np.float32)
        recipe, rng = ablation.attend_with(predicted.reshape(shape)), np.random.default_rng(SEED)
        yield recipe, self.parts
        yield ablation.make_substitute(encoder, MEAN, self.means), self.parts
        yield ablation.make_substitute(encoder, UNIFORM), self.parts
        yield ablation.attend_with(predicted[rng.permutation(len(predicted))].reshape(shape)), self.parts
        order = np.random.default_rng((SEED, readable_index)).permutation(len(predicted))
        random_heads = [Head(*divmod(int(index), encoder.heads)) for index in order]
        yield recipe, [tuple(random_heads[: len(part)]) for part in self.parts]


@dataclass(frozen=True)
class VectorCases(ReplacementCases):
    """The change of direction of the sentence vector: a case per sentence, [method, part] flattened."""

    def measure_text(self, encoder: Encoder, number: int, text: RuleText) -> Iterator[Numbers]:
        """Return the case of one text."""
        request = Request(words=text.sentence.forms)
        substitutes = self.substitutes(encoder, number, text)
        changes = [
            measure_changes(encoder, parts, request, lambda *_, substitute=substitute: substitute).sentence
            for substitute, parts in substitutes
        ]
        yield np.concatenate(changes)


@dataclass(frozen=True)
class RightAnswerCases(ReplacementCases):
    """Answers that stay right: one case per sentence for its ``roles`` (kind 0), and one per masked pronoun (kind 1).

    Its values are the kind, the number of answers, and the numbers of right ones, [method, whole model and parts]
    flattened.
    """

    roles: tuple[Finding, ...]

    def definition(self, offset: int) -> list[object]:
        """Return the definition, with the roles."""
        return [*super().definition(offset), [(role.head, role.detail) for role in self.roles]]

    def measure_text(self, encoder: Encoder, number: int, text: RuleText) -> Iterator[Numbers]:
        """Return the cases of one text."""
        right = [
            _count_right_roles(encoder, text, self.roles, [(), *parts], substitute)
            for substitute, parts in self.substitutes(encoder, number, text)
        ]
        yield np.concatenate([[0, sum(len(_list_case_words(text, role)) for role in self.roles)], *right]).astype(float)
        for masked_text, question in _iter_questions(encoder, text):
            right = [
                _check_answers(encoder, masked_text, question, [(), *parts], substitute)
                for substitute, parts in self.substitutes(encoder, number, masked_text)
            ]
            yield np.concatenate([[1, 1], *right]).astype(float)


@dataclass
class Passes:
    """The passes over the same sentences, whose cases are saved in ``folder`` until all passes are done."""

    folder: Path | None = None
    progress: Callable[[Progress], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    runs: list[CaseRun] = field(default_factory=list)

    def cases(self, encoder: Encoder, source: MeasurableCorpus, kind: CaseKind) -> Cases:
        """Return the cases of the next pass. Raises Cancelled soon after ``cancelled`` returns True."""
        number, run = len(self.runs), source.run(encoder, kind, self.folder)
        self.runs.append(run)
        return collect_cases(run, lambda state: self.progress(state.scale_to_passes(number, PASSES)), self.cancelled)

    def discard_partial_results(self) -> None:
        """Remove the files from which a stopped study would resume."""
        for run in self.runs:
            run.discard_partial_results()


@dataclass(frozen=True)
class ReplacementStudy:
    """A study before its last pass: the model, the corpus, its readable sentences, and the mean outputs.

    ``settings`` are the fields of :class:`ReplacementCases`.
    """

    encoder: Encoder
    source: MeasurableCorpus
    passes: Passes
    texts: ReadableTexts
    settings: tuple[int, tuple[tuple[Head, ...], ...], Numbers, Weights, tuple[int, ...]]

    @classmethod
    def prepare(
        cls,
        recipes: Recipes,
        corpus: Source,
        model: ModelOrName | None,
        most: int,
        client: Client | None = None,
        passes: Passes | None = None,
    ) -> ReplacementStudy:
        """Open the model and the corpus, and compute the mean outputs, in all ``passes`` but the last.

        Raises the errors of :func:`ablate_recipes`.
        """
        passes = passes or Passes()
        check_most(most)
        source, shares = open_measurable(corpus, client), make_shares(recipes)
        open_corpora(recipes, source.corpus)
        encoder = load_as_measured(recipes.facts, model)
        check_shape(encoder, recipes)
        texts = ReadableTexts.find(encoder, source, most, partial(passes.cases, encoder, source))
        means = compute_means(encoder, passes.cases(encoder, source, OutputSums(texts.step, MAX_TOKENS)))
        order = rank_heads(recipes, encoder.heads)
        parts = tuple(tuple(order[: max(1, round(part * len(order)))]) for part in PARTS)
        return cls(encoder, source, passes, texts, (texts.step, parts, shares, means, texts.unread))

    @property
    def counts(self) -> list[int]:
        """The number of heads in each part."""
        return [*map(len, self.settings[1])]

    def cases(self, kind: ReplacementCases) -> Cases:
        """Return the cases of a kind, in the last pass. Raises Cancelled."""
        return self.passes.cases(self.encoder, self.source, kind)


def rank_heads(recipes: Recipes, heads: int) -> list[Head]:
    """Rank all heads by how well their recipe explains the held-out sentences, best first."""
    explained_shares = recipes.tables["explained"]["held_out"].to_numpy()
    return [Head(*divmod(int(index), heads)) for index in np.argsort(-explained_shares, kind="stable")]


def _make_table(changes: Numbers, documents: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """Return ``changes`` [sentence, method, part] as a table."""
    import pandas as pd

    units = Documents(documents if any(documents) else [str(number) for number in range(len(changes))])
    values = changes.reshape(len(changes), -1)
    sums = np.zeros((units.count, values.shape[1]))
    np.add.at(sums, units.numbers, values)
    low, high = units.compute_mean_intervals(sums, np.bincount(units.numbers, minlength=units.count))
    cells = [(method, part, count) for method in METHODS for part, count in zip(PARTS, counts, strict=True)]
    numbers = zip(cells, values.mean(axis=0), low, high, strict=True)
    document_count = units.count if any(documents) else 1
    rows = [(*cell, len(changes), document_count, *statistics) for cell, *statistics in numbers]
    return pd.DataFrame(rows, columns=list(COLUMNS))


# ---- answers that stay right --------------------------------------------------------------------------------------


def _count_right_roles(
    encoder: Encoder,
    text: RuleText,
    roles: Sequence[Finding],
    ablated_sets: Sequence[Sequence[Head]],
    substitute: Substitute,
) -> Counts:
    """Count the cases in which heads with roles are right while the heads of each variant are off, [variant]."""
    weights = encoder.last_states(text.pieces, ablation.make_ablation_tap(ablated_sets, substitute), len(ablated_sets))[
        1
    ].fetched()
    counts = []
    for variant in range(len(ablated_sets)):
        pointers = find_pointers(
            reduce_to_words(weights[:, :, variant].reshape(-1, *weights.shape[3:]), text.pieces.words)
        )
        questions = [(role.head.place(encoder.heads), *_parse_role(role)) for role in roles]
        arcs = (arc for question in questions for arc in list_arcs(text.sentence, pointers, *question))
        counts.append(sum(arc.is_right for arc in arcs))
    return np.array(counts)


def _list_case_words(text: RuleText, role: Finding) -> list[int]:
    """Return the words with a case of a role, without repetition."""
    relation, direction = _parse_role(role)
    words = [
        (place, word.head)
        for place, word in enumerate(text.sentence.words)
        if word.head is not None and relation in (word.relation, word.base)
    ]
    return sorted({head for _, head in words}) if direction == "head_row" else [place for place, _ in words]


def _parse_role(role: Finding) -> tuple[str, str]:
    """Return the relation and the direction of a role."""
    relation, direction = role.detail.split()
    return relation, direction


def _iter_questions(encoder: Encoder, text: RuleText) -> Iterator[tuple[RuleText, Question]]:
    """Yield the sentence with each anaphoric pronoun masked, and the question for it.

    Yield nothing if the model has no answer.
    """
    if encoder.vocabulary.mask_token is None or encoder.causal:
        return
    try:
        load_word_head(encoder)
    except ModelUnsupported:
        return
    for word in iter_anaphoric_pronouns(text.sentence):
        words = text.sentence.words
        forms, question = mask_word(encoder, text.pieces, text.sentence.forms, word)
        masked_words = (*words[:word], words[word]._replace(form=forms[word]), *words[word + 1 :])
        sentence = dataclasses.replace(text.sentence, words=masked_words)
        yield RuleText(sentence, encoder.read_words(sentence.forms), text.causal), question


def _check_answers(
    encoder: Encoder,
    masked_text: RuleText,
    question: Question,
    ablated_sets: Sequence[Sequence[Head]],
    substitute: Substitute,
) -> Counts:
    """Check whether the most probable word is the masked one. Return 1 or 0, [variant]."""
    request = Request(words=masked_text.sentence.forms, question=question)
    values = compute_values(encoder, ablated_sets, request, lambda *_: substitute)
    is_right: Counts = (values.argmax(axis=1) == question.piece).astype(np.int64)
    return is_right


def _compute_accuracies(units: Documents, right: Counts, cases: Counts) -> Numbers:
    """Return accuracy, interval, and numbers of cases and documents of one kind, [value, method, part].

    ``right`` is [document, method, part], and ``cases`` [document].
    """
    count, right_by_document = cases.sum(), right.reshape(len(right), -1)
    if count:
        values = np.array([right_by_document.sum(axis=0) / count, *units.interval(right_by_document, cases)])
    else:
        values = np.full((3, right_by_document.shape[1]), np.nan)
    case_counts = np.full((2, right_by_document.shape[1]), [[count], [count_documents_with_cases(cases)]])
    return np.concatenate([values, case_counts]).reshape(-1, *right.shape[1:])


def _make_accuracy_table(accuracies_by_kind: Sequence[Numbers], counts: Sequence[int]) -> pd.DataFrame:
    """Return the accuracies of both kinds as a table."""
    import pandas as pd

    cells = [(NONE_REPLACED, 0.0, 0, 0, 0)]
    cells += [
        (name, part, counts[index], row, index)
        for row, name in enumerate(METHODS)
        for index, part in enumerate(PARTS, 1)
    ]
    rows = [
        (name, part, heads, *(value for accuracies in accuracies_by_kind for value in accuracies[:, row, index]))
        for name, part, heads, row, index in cells
    ]
    table = pd.DataFrame(rows, columns=list(ACCURACY_COLUMNS))
    return table.astype({name: int for name in ACCURACY_COLUMNS if name.endswith(("_cases", "_documents"))})
