"""Measure how often a model prefers the better sentence of a minimal pair, and which heads this depends on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from mha_viz.analysis.bundled_data import load_bundled_roles, make_rule_text, predict_attention
from mha_viz.analysis.pairs import MinimalPairs
from mha_viz.analysis.q_values import Numbers
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.rules import RuleText
from mha_viz.attention import AnyHead, Attention, Head, Weights
from mha_viz.corpus.limits import choose_step
from mha_viz.corpus.pairs import Pairs, PairSource, read_pairs
from mha_viz.corpus.treebank import Corpus, Sentence, Word
from mha_viz.errors import CorpusError, SettingError, TextError, list_items
from mha_viz.models.intervening import ablation, other_texts
from mha_viz.models.intervening.sentence_scores import (
    MakeCopySubstitute,
    SentencePieces,
    check_scorable,
    count_shared,
    score_without,
    scores_first_token,
    split_sentence,
)
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.request import METHODS, RECIPE, RESAMPLE, TEXT
from mha_viz.study.cases import CaseKind, Cases, LocalRun, NumberedSentence, collect_cases
from mha_viz.study.corpus_effects import MAX_SAMPLED_SENTENCES, choose_recipes, digest_recipes
from mha_viz.study.effects import check_method
from mha_viz.study.run import Progress

FORMAT = 2  # version of the cases on disk


@with_bar("pairs")
def minimal_pairs(
    model: ModelOrName,
    pairs: PairSource,
    *,
    method: str = METHODS[0],
    heads: Iterable[AnyHead | list[AnyHead]] | None = None,
    means: Weights | None = None,
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> MinimalPairs:
    """Measure how often a model prefers the good sentence of minimal pairs, and which heads this depends on.

    The model prefers the sentence with the higher log p. For a causal model, this is the sum over its tokens, without
    the first one unless the tokenizer puts a token before it; for a model that predicts masked words, it is the
    pseudo-log-likelihood, with each token masked in turn (Salazar et al. 2020). Then each head is switched off alone.

    Args:
        model: a model that predicts words, or a name as for :func:`mha_viz.load`.
        pairs: a file with GOOD, BAD and perhaps KIND per line, separated by tabs; a file of BLiMP (JSON lines);
            "toy-pairs" or "repeater-pairs", which are built in; or a list of (good, bad) or (good, bad, kind).
        method: the replacement for the output of a head that is off: "zero", "mean", "uniform", "recipe" or "resample".
        heads: the heads to switch off, one at a time; by default all. "L0H0+L0H3", or a list of heads, is a set of
            heads that are off together. q-values are over all of these sets.
        means: for "mean", the mean outputs [layer, head, d_head]; by default those over the sentences of the pairs.
        sentences: for "resample", the sentences to draw from, as lists of words; by default the good sentences of the
            pairs. Both sentences of a pair have the same draws if they have the same number of tokens.
        recipes: for "recipe", as for :func:`mha_viz.ablate`.
        resume: a folder that stores the results, so that a stopped call can resume.
        progress: True for a bar, or a function that is called with ``done`` and ``total`` pairs.
        cancelled: returns True to stop the measurement.

    Returns the preferences (:class:`mha_viz.analysis.pairs.MinimalPairs`): ``table()`` has the accuracy of each kind of
    pair, ``heads()`` the changes without each head, which ``stored_in(profile)`` adds to a profile. Raises
    CorpusError; SettingError; UnknownHead; ModelUnsupported for a model that predicts no words, such as sentence
    encoders.

    >>> pairs = mv.minimal_pairs("toy", "toy-pairs")
    >>> needed = pairs.heads("reflexive").query("needed")
    """
    encoder, pair_set = load_one_stack(model), read_pairs(pairs)
    score = check_scorable(encoder)
    ablated_sets = _list_sets(encoder, heads)
    kind = _make_kind(encoder, pair_set, ablated_sets, method, means, sentences, recipes)
    run = LocalRun(encoder, _make_corpus(pair_set), kind, folder=None if resume is None else Path(resume))
    cases = collect_cases(run, as_callback(progress), cancelled)
    if not cases.cases:
        reasons = "a sentence is too long, is a single token, or has a masked one"
        raise CorpusError(f"No pair of {pair_set.name} can be scored: {reasons}.", "Give other sentences.")
    run.discard_partial_results()
    values = np.array(cases.cases)
    return MinimalPairs(
        encoder.name,
        pair_set.name,
        method,
        score if scores_first_token(encoder) else f"{score} without the first token",
        tuple(pair_set.pairs[number] for _, number in cases.units),
        values[:, :2],
        ablated_sets,
        values[:, 2:],
        cases.left_out,
        load_bundled_roles(encoder.name),
        encoder.revision,
    )


@dataclass(frozen=True)
class PairCases(CaseKind):
    """Scores of minimal pairs: log p of both sentences, then the margin without each of the ``ablated_sets``.

    In the corpus, a pair is stored as a sentence of two words; each word is one sentence of the pair.

    Attributes:
        ablated_sets: the heads that are off in turn, alone or as a set.
        method: the replacement for their outputs.
        means: their mean outputs, for "mean".
        sentences: the sentences to draw from, for "resample".
        recipes: the recipes that predict the weights, for "recipe".
    """

    ablated_sets: tuple[tuple[Head, ...], ...]
    method: str
    means: Weights | None = field(default=None, compare=False)
    sentences: tuple[tuple[str, ...], ...] = ()
    recipes: Recipes | None = None

    def definition(self, offset: int) -> list[object]:
        """Return the heads and the method, with digests of large ones."""
        replacements = [[] if self.means is None else self.means.tolist(), self.sentences]
        digests = [hashlib.sha256(json.dumps(replacements).encode()).hexdigest(), digest_recipes(self.recipes)]
        return [FORMAT, "pairs", self.step, self.ablated_sets, self.method, *digests, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the scores of each pair, and count the pairs with a sentence that cannot be scored."""
        cases = Cases(sentences_read=len(numbered_sentences))
        for number, sentence in numbered_sentences:
            try:
                good, bad = (split_sentence(encoder, form) for form in sentence.forms)
                cases.cases.append(self._score(encoder, good, bad))
                cases.units.append((sentence.document, number))
            except TextError:
                cases.left_out += 1
        return cases

    def _score(self, encoder: Encoder, good: SentencePieces, bad: SentencePieces) -> Numbers:
        """Return the values of the case of a pair."""
        is_comparable = encoder.causal and (self.method != RESAMPLE or _have_same_draws(good, bad))
        shared_tokens = count_shared(good, bad) if is_comparable else 0
        substitutes = self._iter_substitutes(encoder, (good, bad))
        scores = [
            score_without(encoder, sentence, self.ablated_sets, substitute, shared_tokens)
            for sentence, substitute in zip((good, bad), substitutes, strict=True)
        ]
        (good_log_p, good_ablated), (bad_log_p, bad_ablated) = scores
        return np.array([good_log_p, bad_log_p, *(good_ablated - bad_ablated)])

    def _iter_substitutes(
        self, encoder: Encoder, pair: tuple[SentencePieces, SentencePieces]
    ) -> Iterator[MakeCopySubstitute]:
        """Yield the replacement for the outputs of heads, for each sentence of a pair."""
        for sentence in pair:
            if self.method == RECIPE:
                yield partial(_predict_copies, encoder, sentence, self.recipes)
                continue
            means = self.means
            if self.method == RESAMPLE:
                draw_source = pair[0] if _have_same_draws(pair[0], sentence) else sentence
                means = other_texts.choose_outputs(encoder, RESAMPLE, draw_source.pieces, "", self.sentences)
            substitute = ablation.make_substitute(encoder, self.method, means)
            yield partial(_ignore_copies, substitute)


def _have_same_draws(first: SentencePieces, second: SentencePieces) -> bool:
    """Return whether two sentences have the same number of tokens, and special ones at the same places."""
    return first.pieces.tokenized().special == second.pieces.tokenized().special


def _ignore_copies(substitute: ablation.Substitute, _: range) -> ablation.Substitute:
    """Return a substitute that is the same for all copies of a sentence."""
    return substitute


def _list_sets(encoder: Encoder, heads: Iterable[AnyHead | list[AnyHead]] | None) -> tuple[tuple[Head, ...], ...]:
    """Return the sets of heads to switch off; most have a single head.

    Raises UnknownHead, and SettingError if there are none.
    """
    if heads is None:
        return tuple((Head(layer, number),) for layer in range(encoder.layers) for number in range(encoder.heads))
    items = [heads] if isinstance(heads, str | Head) else list_items(heads, "heads", "Give ['L3H1', …].")
    sets = [item.split("+") if isinstance(item, str) else item if isinstance(item, list) else [item] for item in items]
    head_sets = tuple(dict.fromkeys(ablation.check_heads(encoder, item) for item in sets))
    if not head_sets or not all(head_sets):
        raise SettingError("No head was named.", "Name one, as in L3H1, or leave heads out for all of them.")
    return head_sets


def _make_kind(
    encoder: Encoder,
    pair_set: Pairs,
    ablated_sets: tuple[tuple[Head, ...], ...],
    method: str,
    means: Weights | None,
    sentences: Sequence[Sequence[str]],
    recipes: Recipes | None,
) -> PairCases:
    """Return the measurement, with the replacement for the outputs of heads. Raises SettingError."""
    arguments = (("means", means is not None, "mean"), ("sentences", len(sentences), RESAMPLE))
    for name, is_given, needed_method in arguments:
        if is_given and method != needed_method:
            problem = f"{name}= goes with the method “{needed_method}”, and this is “{method}”."
            raise SettingError(problem, "Leave one of them out.")
    if method == TEXT:
        raise SettingError("Over pairs, one other text cannot take every sentence’s place.", "Choose resample.")
    step = choose_step(len(pair_set.pairs), MAX_SAMPLED_SENTENCES)
    if method == "mean" and means is None:
        means = _compute_means(encoder, [text for pair in pair_set.pairs[::step] for text in pair[:2]])
    if method == RESAMPLE and not sentences:
        sentences = [pair.good.split() for pair in pair_set.pairs[::step]]
    recipes = choose_recipes(encoder, method, recipes) if method == RECIPE or recipes is not None else None
    if method != RECIPE:
        check_method(encoder, method, means)
    return PairCases(1, ablated_sets, method, means, tuple(map(tuple, sentences)), recipes)


def _compute_means(encoder: Encoder, texts: Sequence[str]) -> Weights:
    """Return the mean outputs over the texts that the model can read, [layer, head, d_head]."""
    means = ablation.Means(encoder)
    for text in texts:
        try:
            split_sentence(encoder, text)
        except TextError:
            continue
        means.add([text])
    return means.values()


def _make_corpus(pair_set: Pairs) -> Corpus:
    """Return pairs as sentences of two words each, in documents by kind."""
    sentences = (Sentence((Word(pair.good), Word(pair.bad)), (), pair.kind, pair.line) for pair in pair_set.pairs)
    return Corpus(pair_set.name, tuple(sentences), pair_set.digest)


def _predict_copies(
    encoder: Encoder, sentence: SentencePieces, recipes: Recipes | None, numbers: range
) -> ablation.Substitute:
    """Return the substitute that attends as recipes predict for each of some copies of a sentence."""
    reading = encoder.encode(sentence.pieces.text)
    text = make_rule_text(reading)
    predicted_weights = [_predict_copy(encoder, reading, text, sentence, number, recipes) for number in numbers]
    return ablation.attend_with(np.stack(predicted_weights, axis=1))


def _predict_copy(
    encoder: Encoder,
    reading: Attention,
    text: RuleText,
    sentence: SentencePieces,
    number: int,
    recipes: Recipes | None,
) -> Weights:
    """Return the weights that recipes predict for one copy of a sentence, [layer, head, query, key]."""
    copy, mask = sentence.copies[number], str(encoder.vocabulary.mask_token)
    if encoder.causal:
        return predict_attention(reading, recipes, text)
    (place,) = copy.places
    pieces, words = text.pieces, list(text.sentence.words)
    ids, names = list(pieces.ids), list(pieces.names)
    ids[place], names[place] = max(ids) + 1, mask
    if (word := pieces.words[place]) is not None:
        words[word] = words[word]._replace(form=mask)
    forms = tuple(item.form for item in words)
    masked_pieces = replace(pieces, forms=forms, names=tuple(names), ids=tuple(ids))
    return predict_attention(reading, recipes, RuleText(Sentence(tuple(words)), masked_pieces, text.causal))
