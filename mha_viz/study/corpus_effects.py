"""Measure the effect of switching heads off over a corpus.

Depending on what the model predicts, this is the effect on masked words, on the loss of a text, or on vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np

from mha_viz.analysis.bundled_data import get_cached_shares, require_recipes
from mha_viz.analysis.corpus_effects import (
    LOSS,
    MASKED_WORD,
    VECTOR,
    WORD_MEASURES,
    CorpusEffect,
    Variant,
    compute_effect_rows,
    list_variants,
)
from mha_viz.analysis.effects import Numbers
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.corpus.limits import choose_step, count_every
from mha_viz.corpus.treebank import Corpus, Gap, Mention, Sentence, Word
from mha_viz.errors import CorpusError, ModelUnsupported, SettingError, TextError
from mha_viz.models.intervening import ablation
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.quotes import quote
from mha_viz.request import MASK, METHODS, RECIPE, RESAMPLE, TEXT, Question, Request
from mha_viz.study.cases import CaseKind, CaseRun, Cases, LocalCorpus, MeasurableCorpus, NumberedSentence
from mha_viz.study.effects import MakeSubstitute, check_method, compute_values, measure_changes, substitute
from mha_viz.study.run import Progress
from mha_viz.text import WordPieces

FORMAT = 4  # version of the cases on disk and of how they are measured
SUMS_FORMAT = 1  # version of the sums of outputs on disk
DEFAULT_SENTENCES = 400  # maximum number of sentences, by default
MAX_SENTENCES = 1_000_000
MAX_SAMPLED_SENTENCES = 400  # the method "resample" draws from at most this many sentences
CORPUS_METHODS = ("mean", RESAMPLE)  # the methods that need a corpus
SEED = 0  # together with a sentence's number, determines which of its words is masked
COREFERENCE = "coreference"  # used in place of a relation


class CorpusReplacements(NamedTuple):
    """Replacements for the outputs of heads that are off, taken from a corpus.

    Attributes:
        values: mean outputs [layer, head, d_head].
        corpus: the name of the corpus, if it has one.
        sentences: the sentences to draw from, in place of ``values``.
    """

    values: Weights | None = None
    corpus: str = ""
    sentences: tuple[tuple[str, ...], ...] = ()


class EffectSettings(NamedTuple):
    """Settings of a measurement: which heads are off and how, and which words of a corpus are measured.

    The corpus takes the place of the request's text. The fields are as for :func:`mha_viz.corpus_ablation_effects`.
    """

    request: Request
    relation: str = ""
    direction: str = DIRECTIONS[0]
    same_role: Sequence[AnyHead] = ()
    most: int = DEFAULT_SENTENCES
    means: Any = None  # a Source, Weights, CorpusReplacements, or the Layout of a cluster
    recipes: Recipes | None = None  # by default the known recipes of the model


# A cache: for an annotated sentence and the heads that are off, the change of the last states, [token].
TokenChanges = dict[tuple[tuple[Word, ...], tuple[Mention, ...]], dict[tuple[Head, ...], Numbers]]


@dataclass(frozen=True)
class EffectCases(CaseKind):
    """The effects of ``variants`` over a corpus. The ``means`` of ``settings`` are CorpusReplacements or None.

    Attributes:
        settings: the heads that are off, the method, and the words that are measured.
        variants: the sets of heads that are off.
        measure: the effect that is measured for the model, such as LOSS.
        states: a cache of changes of last states, shared by measurements with the same method.
    """

    settings: EffectSettings
    variants: tuple[Variant, ...]
    measure: str
    states: TokenChanges = field(default_factory=dict, compare=False, repr=False)

    @property
    def depends_on_position(self) -> bool:
        """Whether one word of each sentence is drawn by the number of the sentence."""
        return self.measure == MASKED_WORD and not self.settings.relation

    def definition(self, offset: int) -> list[object]:
        """Return the settings, with digests of large ones."""
        means, means_digest = self.settings.means, ""
        if isinstance(means, CorpusReplacements):
            values = means.sentences if means.values is None else means.values.tolist()
            means_digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
        request, *word_settings = self.settings._replace(means=means_digest, most=self.step, recipes=None)
        return [FORMAT, request.off, request.method, *word_settings, offset, digest_recipes(self.settings.recipes)]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the values [variant] of each case, and count the words and sentences that cannot be measured."""
        cases, (_, relation, direction, *_) = Cases(sentences_read=len(numbered_sentences)), self.settings
        measure_sentence = {
            MASKED_WORD: self._measure_masked_words,
            LOSS: self._measure_losses,
            VECTOR: self._measure_vectors,
        }[self.measure]
        for number, sentence in numbered_sentences:
            words = _list_queries(sentence, relation, direction) if relation else None
            try:
                for values in measure_sentence(encoder, sentence, number, words):
                    if values is None:
                        cases.left_out += 1
                    else:
                        cases.cases.append(values)
                        cases.units.append((sentence.document, number))
            except TextError:  # too long, or a word that the tokenizer drops
                cases.left_out += 1
        return cases

    # The following methods yield the values of each case of a sentence, in order; None for a word that cannot be
    # measured.

    def _measure_masked_words(
        self, encoder: Encoder, sentence: Sentence, number: int, words: list[int] | None
    ) -> Iterator[Numbers | None]:
        """Yield the fall of log p of masked words."""
        forms = list(sentence.forms)
        pieces = encoder.read_words(forms)
        single_token_words = find_single_token_words(pieces)
        if words is None:
            words = [Random(f"{SEED} {number}").choice(single_token_words)] if single_token_words else []
        yield from [None] * len(set(words) - set(single_token_words))
        for word in (word for word in words if word in single_token_words):
            masked_forms, question = mask_word(encoder, pieces, forms, word)
            request = Request(words=masked_forms, method=self.settings.request.method, question=question)
            values = compute_values(encoder, [(), *self._ablated_sets], request, self._make_substitute(sentence))[
                :, question.piece
            ]
            yield values[0] - values[1:]

    def _measure_losses(
        self, encoder: Encoder, sentence: Sentence, _: int, words: list[int] | None
    ) -> Iterator[Numbers | None]:
        """Yield the rise of the mean loss of a sentence, or of the loss at words."""
        forms = sentence.forms
        pieces = encoder.read_words(forms)
        if len(pieces.ids) < 2:
            return
        replacement = self._make_substitute(sentence)(
            encoder, Request(words=forms, method=self.settings.request.method), 0
        )
        states = [
            encoder.states("", words=forms),
            ablation.compute_states_without(encoder, self._ablated_sets, replacement, "", words=forms),
        ]
        # [variant, n − 1]
        log_probabilities = np.stack(
            [_score_tokens(encoder, variant_states, pieces.ids) for variant_states in np.concatenate(states)]
        )
        if words is None:
            losses = -log_probabilities.mean(axis=1)
            yield losses[1:] - losses[0]
            return
        for word in words:  # the output of a head at a word changes the prediction of the next token
            last_token = max(
                (place for place, number in enumerate(pieces.words) if number == word), default=len(pieces.ids)
            )
            if last_token < log_probabilities.shape[1]:
                yield log_probabilities[0, last_token] - log_probabilities[1:, last_token]
            else:
                yield None

    def _measure_vectors(
        self, encoder: Encoder, sentence: Sentence, _: int, words: list[int] | None
    ) -> Iterator[Numbers | None]:
        """Yield 1 − cosine of the sentence vector, or of the last states of words, before and after."""
        forms = sentence.forms
        request = Request(words=forms, method=self.settings.request.method)
        make_substitute = self._make_substitute(sentence)
        if words is None:
            yield measure_changes(encoder, self._ablated_sets, request, make_substitute).sentence
        if not words:
            return
        changes_by_set = self.states.setdefault((sentence.words, sentence.mentions), {})
        unmeasured_sets = [heads for heads in self._ablated_sets if heads not in changes_by_set]
        if unmeasured_sets:
            token_changes = measure_changes(encoder, unmeasured_sets, request, make_substitute).tokens
            changes_by_set.update(zip(unmeasured_sets, token_changes, strict=True))
        # The change of each token's last state, [variant, token].
        changes = np.stack([changes_by_set[heads] for heads in self._ablated_sets])
        pieces = encoder.read_words(forms).words
        for word in words:
            yield changes[:, [place for place, number in enumerate(pieces) if number == word]].mean(axis=1)

    def _make_substitute(self, gold: Sentence) -> MakeSubstitute:
        """Return the function that replaces the outputs of heads in a sentence."""
        replacements = self.settings.means or CorpusReplacements()
        recipes, sentences = self.settings.recipes, replacements.sentences
        return partial(substitute, means=replacements.values, gold=gold, sentences=sentences, recipes=recipes)

    @property
    def _ablated_sets(self) -> list[tuple[Head, ...]]:
        return [variant.heads for variant in self.variants]


class Measurement:
    """A measurement of a corpus, with a result for the sentences read so far.

    It raises the errors of :func:`mha_viz.corpus_ablation_effects`.

    ``states`` is as for :class:`EffectCases`. Cases are saved in ``folder`` periodically and at the end, so that the
    same measurement can resume.
    """

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus | Gap | MeasurableCorpus,
        settings: EffectSettings,
        *,
        states: TokenChanges | None = None,
        folder: Path | None = None,
    ) -> None:
        request, relation, direction, same_role, most, means, recipes = settings
        source: MeasurableCorpus = LocalCorpus.from_source(corpus) if isinstance(corpus, Corpus | Gap) else corpus
        self._source = source
        _check_settings(source.corpus, relation, direction, most)
        ablated_heads, same_role_heads = (ablation.check_heads(encoder, heads) for heads in (request.off, same_role))
        if not ablated_heads:
            raise SettingError("No head was named.", "Name one, as in L3H1.")
        self._encoder, self._folder = encoder, folder
        self._run, self._sums = cast(CaseRun | None, None), cast(CaseRun | None, None)
        settings = settings._replace(request=replace(request, off=ablated_heads), same_role=same_role_heads, means=None)
        settings = settings._replace(recipes=choose_recipes(encoder, request.method, recipes))
        step, variants = choose_step(source.count, most), list_variants(ablated_heads, same_role_heads, encoder.heads)
        try:
            answers.load_word_head(encoder)
            measure = LOSS if encoder.causal else MASKED_WORD
        except ModelUnsupported:
            measure = VECTOR
        self.kind = EffectCases(step, settings, variants, measure, {} if states is None else states)
        self._replacement_source = self._prepare_replacements(request.method, means)

    def _prepare_replacements(self, method: str, means: Any) -> MeasurableCorpus | None:
        """Return the corpus that must be read first for means or random sentences; None if nothing must be read."""
        if method == TEXT:
            raise SettingError("Over a corpus, one other text cannot take every sentence’s place.", "Choose resample.")
        if method not in CORPUS_METHODS:
            if means is not None:
                method_names = " or ".join(CORPUS_METHODS)
                raise SettingError(
                    f"means go with the method {method_names}, not {quote(method)}.", "Leave one of them out."
                )
            check_method(self._encoder, method, recipes=self.kind.settings.recipes)
            self._start_run(None)
            return None
        if method == RESAMPLE and isinstance(means, np.ndarray):
            raise SettingError("Random sentences cannot be drawn from mean outputs.", "Give a corpus as means.")
        if isinstance(means, CorpusReplacements | np.ndarray):
            self._start_run(means if isinstance(means, CorpusReplacements) else CorpusReplacements(means))
            return None
        return self._source if means is None else self._source.open(means)

    def iter_progress(self) -> Generator[Progress, None, None]:
        """Read the corpus one sentence, or one part, at a time, and yield the progress.

        The means or random sentences are read first.
        """
        done_before = 0
        if (replacement_source := self._replacement_source) is not None:
            max_sentences, count = self.kind.settings.most, replacement_source.count
            if self.kind.settings.request.method == RESAMPLE:
                numbers = range(0, count, choose_step(count, min(max_sentences, MAX_SAMPLED_SENTENCES)))
                forms = tuple(sentence.forms for sentence in replacement_source.sentences(numbers))
                self._start_run(CorpusReplacements(corpus=replacement_source.corpus.name, sentences=forms))
            else:
                step, remaining = choose_step(count, max_sentences), count_every(self.kind.step, self._source.count)
                done_before = count_every(step, count)
                self._sums = sums = replacement_source.run(self._encoder, OutputSums(step), self._folder)
                with closing(sums.iter_progress()) as reports:
                    for state in reports:
                        yield state._replace(total=state.total + remaining)
                self._start_run(
                    CorpusReplacements(compute_means(self._encoder, sums.cases), replacement_source.corpus.name)
                )
        assert self._run is not None
        with closing(self._run.iter_progress()) as reports:
            for state in reports:
                yield state._replace(done=done_before + state.done, total=done_before + state.total)

    def _start_run(self, replacements: CorpusReplacements | None) -> None:
        """Start the measurement with these replacements. Raises SettingError if they do not fit this model."""
        if replacements is not None:
            check_method(self._encoder, self.kind.settings.request.method, replacements.values)
        self._replacement_source, settings = None, self.kind.settings._replace(means=replacements)
        self.kind = replace(self.kind, settings=settings)
        self._run = self._source.run(self._encoder, self.kind, self._folder)

    @property
    def replacements(self) -> CorpusReplacements:
        """Replacements for the outputs of heads that are off, taken from a corpus."""
        return self.kind.settings.means or CorpusReplacements()

    @property
    def measured_cases(self) -> Cases:
        """The cases measured so far."""
        return Cases() if self._run is None else self._run.cases

    def discard_partial_results(self) -> None:
        """Remove the files from which a stopped measurement would resume."""
        for run in (self._sums, self._run):
            if run is not None:
                run.discard_partial_results()

    def result(self) -> CorpusEffect:
        """Return the result for the sentences read so far. Raises CorpusError if nothing was measured."""
        cases, name = self.measured_cases, self._source.corpus.name
        request, relation, direction, *_ = self.kind.settings
        if not cases.cases:
            missing = f"no word that {relation} applies to" if relation else "no sentence that can be measured"
            raise CorpusError(f"{name} has {missing}.", "Name another corpus or relation.")
        documents = len({document for document, _ in cases.units})
        units = [document if documents > 1 else str(number) for document, number in cases.units]
        measure, corpus = self.kind.measure, self.replacements.corpus
        return CorpusEffect(
            self._encoder.name,
            name,
            f"{request.method}{' over ' * bool(corpus)}{corpus}",
            WORD_MEASURES[measure] if relation else measure,
            relation,
            direction if relation not in ("", COREFERENCE) else "",
            len(cases.cases),
            cases.sentences_read,
            self.kind.step,
            documents,
            cases.left_out,
            compute_effect_rows(self.kind.variants, np.array(cases.cases), units, bool(relation)),
        )


def choose_recipes(encoder: Encoder, method: str, recipes: Recipes | None) -> Recipes | None:
    """Return the recipes that a method needs: these, or the known recipes of the model.

    Raises SettingError if there are none, or if recipes are given for another method.
    """
    if method != RECIPE:
        check_method(encoder, METHODS[0] if recipes is None else method, recipes=recipes)
        return None
    return recipes or require_recipes(encoder.name, encoder.revision)


def digest_recipes(recipes: Recipes | None) -> str:
    """Return a digest of the shares of recipes, on which their predictions depend; empty for None."""
    return "" if recipes is None else hashlib.sha256(get_cached_shares(recipes).tobytes()).hexdigest()


class _Edge(NamedTuple):
    dependent: int
    head: int


def _list_queries(sentence: Sentence, relation: str, direction: str) -> list[int]:
    """Return the words that a head with a role attends from, in order and without repetition."""
    if relation == COREFERENCE:
        return list(iter_anaphoric_pronouns(sentence))
    edges = [
        _Edge(number, word.head)
        for number, word in enumerate(sentence.words)
        if word.head is not None and relation in (word.relation, word.base)
    ]
    return sorted({edge.dependent if direction == "dep_to_head" else edge.head for edge in edges})


def _check_settings(corpus: Corpus, relation: str, direction: str, most: int) -> None:
    """Raise CorpusError if the corpus lacks the annotation, and SettingError for settings out of range."""
    if relation == COREFERENCE and not corpus.has_chains:
        raise CorpusError(f"{corpus.name} has no coreference chains.", "Give a corpus with Entity=, or a relation.")
    if relation not in ("", COREFERENCE) and not corpus.has_trees:
        raise CorpusError(f"{corpus.name} has no dependencies.", "Give a treebank, or no relation.")
    if direction not in DIRECTIONS:
        raise SettingError(f"“{direction[:40]}” is not a direction.", f"Choose one of {', '.join(DIRECTIONS)}.")
    if not 1 <= most <= MAX_SENTENCES:
        raise SettingError(f"most is {most}.", f"Read 1 to {MAX_SENTENCES:,} sentences.")


def _score_tokens(encoder: Encoder, states: Weights, ids: Sequence[int]) -> Numbers:
    """Return log p of every token but the first, given those before it, [n − 1], from the last states [n, d_model]."""
    values = answers.compute_log_probabilities(encoder, states[:-1])
    scores: Numbers = values[np.arange(len(ids) - 1), list(ids[1:])]
    return scores


def find_single_token_words(pieces: WordPieces) -> list[int]:
    """Return the words of a sentence that consist of one token and can therefore be masked."""
    return [word for word in range(len(pieces.forms)) if pieces.words.count(word) == 1]


def mask_word(
    encoder: Encoder, pieces: WordPieces, forms: Sequence[str], word: int
) -> tuple[tuple[str, ...], Question]:
    """Return the words with one of them masked, which must be a single token, and the question for it."""
    place, mask = pieces.words.index(word), str(encoder.vocabulary.mask_token)
    question = Question(MASK, place, forms[word], pieces.ids[place], places=(place,))
    return (*forms[:word], mask, *forms[word + 1 :]), question


def iter_anaphoric_pronouns(sentence: Sentence) -> Iterator[int]:
    """Yield the pronouns that have an earlier mention of a chain of theirs in the sentence, as word numbers."""
    earlier_chains: set[str] = set()
    for word in sorted({mention.word for mention in sentence.mentions}):  # a word can be the head of several mentions
        chains = {mention.chain for mention in sentence.mentions if mention.word == word}
        if chains & earlier_chains and sentence.words[word].upos == "PRON":
            yield word
        earlier_chains |= chains


@dataclass(frozen=True)
class OutputSums(CaseKind):
    """The sum of the outputs of every head before W_O over all tokens, and the number of tokens, as one case.

    Sentences of more than ``max_tokens`` tokens are left out.
    """

    max_tokens: int | None = None

    def definition(self, offset: int) -> list[object]:
        """Return the settings that determine which sentences are read."""
        return [SUMS_FORMAT, "outputs", self.step, self.max_tokens, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the sums over some sentences, without those that the model cannot read."""
        means = ablation.Means(encoder)
        for _, sentence in numbered_sentences:
            with suppress(TextError):
                if self.max_tokens is None or len(encoder.read_words(sentence.forms)) <= self.max_tokens:
                    means.add([sentence.forms])
        sums, tokens = means.sums
        case = [np.append(sums, tokens)] if tokens else []
        return Cases(case, [("", numbered_sentences[0][0])] * len(case), len(numbered_sentences))

    def reduce(self, cases: Cases) -> Cases:
        """Return the sum of all cases, added in order."""
        if len(cases.cases) < 2:
            return cases
        total = cases.cases[0]
        for case in cases.cases[1:]:
            total = total + case
        return replace(cases, cases=[total], units=cases.units[:1])


def compute_means(encoder: Encoder, sums: Cases) -> Weights:
    """Return the means of these sums, [layer, head, d_head]. Raises EmptyText if there was no text."""
    means = ablation.Means(encoder)
    for case in sums.cases:
        means.add_sums(case[:-1].reshape(encoder.layers, encoder.heads, -1), int(case[-1]))
    return means.values()
