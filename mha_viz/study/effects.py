"""The effect of switching heads off on a model's answer, and on its other heads, for one text; how many heads can be
removed before the answer changes, and which few change it to a given word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from mha_viz.analysis import effects as analysis
from mha_viz.analysis.answers import cosines, divergences, listed
from mha_viz.analysis.described import of_model, predicted
from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.analysis.effects import Changes, Effects, Numbers, Together
from mha_viz.analysis.removal import MOST_SWITCHED, Removal, Switch, switch
from mha_viz.analysis.removal import removal as each_removal
from mha_viz.analysis.rules import RuleText
from mha_viz.attention import Head, Weights
from mha_viz.attention.answers import Answer
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import SettingError
from mha_viz.models import ablation, answers, other_texts
from mha_viz.models.encoder import Encoder
from mha_viz.process.steps import completed
from mha_viz.request import COSINE, RECIPE, RESAMPLE, TEXT, Question

SEED = 0  # draws of random directions


OnProgress = Callable[[float], None]


@dataclass(frozen=True)
class Case:
    """A text, optionally with a second one, and how heads are switched off: ``method`` and ``means`` as in
    :func:`mha_viz.models.ablation.substitute`. ``question``: the question to the model
    (:func:`mha_viz.models.answers.question_about`), if any; heads are off in those of its texts that it says.
    ``words``: the sentence as words, in place of ``text``; only for several heads at once; ``gold``: the same with its
    annotation, which rules of recipes may need. ``source``: the text that
    outputs are taken from by the method "text"; ``sentences``: those that the method "resample" draws from, by default
    the built-in ones."""

    text: str
    pair: str = ""
    method: str = "zero"
    means: Weights | None = None
    question: Question | None = None
    words: Sequence[str] = ()
    gold: Sentence | None = None
    source: str = ""
    sentences: Sequence[Sequence[str]] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts; the second is empty if there is only one."""
        return self.text, self.pair

    @property
    def passes(self) -> list[tuple[str, str]]:
        """The texts that the model reads one after the other: ``texts``, and the texts that they are compared with."""
        other = self.question.other if self.question else ""
        return [self.texts, (other, "")] if other else [self.texts]

    def substitute(self, encoder: Encoder, place: int = 0) -> ablation.Substitute:
        """The output of the heads while they are off, in one of ``passes``. Raises the errors of
        :mod:`mha_viz.models.other_texts` and :func:`mha_viz.analysis.described.predicted`."""
        texts, words, means = self.passes[place], () if place else self.words, self.means
        if self.question is not None and not self.question.is_off_in(place):
            return ablation.unchanged
        if place and self.method == TEXT and texts[0] == self.source:  # its heads have these outputs already
            return ablation.unchanged
        if self.method in (TEXT, RESAMPLE):
            read = encoder.pieces(*texts, words)
            means = other_texts.outputs_for(encoder, self.method, read, self.source, self.sentences)
        elif self.method == RECIPE:
            seen = RuleText(self.gold, encoder.read_words(words), bool(encoder.causal)) if words and self.gold else None
            means = predicted(encoder.encode_words(words) if words else encoder.encode(*texts), text=seen)
        return ablation.substitute(encoder, self.method, means)

    def check(self, encoder: Encoder) -> None:
        """Raise SettingError for an unknown method, and where what it needs of this model is missing."""
        if self.method == RECIPE:
            of_model(encoder.name, encoder.revision)
        elif self.method not in (TEXT, RESAMPLE):
            self.substitute(encoder)


def part(
    encoder: Encoder,
    layer: int,
    heads: Sequence[int],
    case: Case,
) -> Effects:
    """The effects of some heads of one layer: the fields of Effects with one layer and these heads. One pass for each
    text; raises as :func:`mha_viz.models.ablation.forked`."""
    alone = ablation.each_alone(heads)
    wholes = [ablation.whole(encoder, *texts) for texts in case.passes]
    forks = [
        ablation.forked(encoder, layer, alone, case.substitute(encoder, place), *texts)
        for place, texts in enumerate(case.passes)
    ]
    attention = np.zeros((len(heads), encoder.layers, encoder.heads))
    for later, weights in enumerate(forks[0].weights, layer + 1):
        attention[:, later] = _divergences(wholes[0].weights[later], weights).T / weights.shape[-1]
    states = [np.concatenate([one.states[None], fork.states]) for one, fork in zip(wholes, forks, strict=True)]
    changes = _changes(encoder, case, states)
    return Effects(*(field[None] for field in (*changes, attention)))


def effects(
    encoder: Encoder,
    case: Case,
    progress: Callable[[float], None] = lambda _: None,
) -> Effects:
    """The effects of all heads on one text. ``progress`` is called with the share that is done; an exception from it
    ends the work. Raises the errors of :func:`part`."""
    steps = analysis.every_effect(
        encoder.layers, encoder.heads, tokens(encoder, case), lambda layer, heads: part(encoder, layer, heads, case)
    )
    return completed(steps, progress)


def together(
    encoder: Encoder,
    heads: Sequence[Head],
    case: Case,
) -> Together:
    """The effect of switching off several heads at once, beside that of removing as much in random directions (DRAWS
    draws). Raises the errors of :func:`mha_viz.models.ablation.without`."""
    steps = analysis.together(
        tokens(encoder, case),
        lambda: lost(encoder, heads, case),
        lambda draws: lost_at_random(encoder, heads, draws, case),
    )
    return completed(steps)


def tokens(encoder: Encoder, case: Case) -> int:
    """The number of tokens of a case's text, which says how many variants of it fit into one batch."""
    return len(encoder.tokenize(*case.texts))


def lost(
    encoder: Encoder,
    heads: Sequence[Head],
    case: Case,
) -> Changes:
    """The changes with heads off at once: one variant."""
    return lost_each(encoder, [heads], case)


def lost_each(
    encoder: Encoder,
    variants: Sequence[Collection[Head]],
    case: Case,
) -> Changes:
    """The changes in each of ``variants`` (the heads that are off in it); all of them in one batch. Raises the errors
    of :func:`mha_viz.models.ablation.without`."""
    off = [ablation.existing(encoder, heads) for heads in variants]
    return _changes(encoder, case, _states(encoder, [(), *off], case))


def lost_at_random(
    encoder: Encoder,
    heads: Sequence[Head],
    draws: range,
    case: Case,
) -> Numbers:
    """``random`` and ``random_answer`` of :func:`together`, for some of the draws: [2, draw]."""
    off = ablation.existing(encoder, heads)
    states = [
        np.concatenate(
            [
                ablation.whole(encoder, *texts).states[None],
                ablation.states_at_random(encoder, off, case.substitute(encoder, place), draws, *texts, SEED),
            ]
        )
        for place, texts in enumerate(case.passes)
    ]
    changes = _changes(encoder, case, states)
    return np.stack([changes.sentence, changes.answer])


def answer(encoder: Encoder, heads: Sequence[Head], case: Case) -> Answer:
    """The answer of the model to the question of the case, before and after heads are switched off at once. Raises the
    errors of :func:`mha_viz.models.ablation.without`."""
    assert case.question is not None
    off = ablation.existing(encoder, heads)
    return compared(encoder, case.question, _states(encoder, [(), off], case))


def compared(encoder: Encoder, question: Question, states: Sequence[Weights]) -> Answer:
    """The answers from the last states before and after, [2, n, d_model], of each text."""
    values = _answers(encoder, question, states)
    if question.kind == COSINE:
        return Answer(question, (), values[:1], values[1:], float(abs(values[1] - values[0])))
    pieces = listed(values[0], values[1], question.piece)
    words = tuple(answers.word_name(encoder, piece) for piece in pieces)
    before, after = np.exp(values[:, pieces])
    return Answer(question, words, before, after, float(divergences(values[0], values[1])))


def values_without(encoder: Encoder, variants: Sequence[Collection[Head]], case: Case) -> Numbers:
    """The answer in each of ``variants`` (the heads that are off in it): [variant, piece], log-probabilities of all
    words, or [variant], cosines. Raises the errors of :func:`lost_each`."""
    assert case.question is not None
    off = [ablation.existing(encoder, heads) for heads in variants]
    return _answers(encoder, case.question, _states(encoder, off, case))


def _states(encoder: Encoder, variants: Sequence[Collection[Head]], case: Case) -> list[Weights]:
    """The last states [variant, n, d_model] of each text. The whole model runs separately, so that its numbers do not
    change if no head is off."""
    states = []
    for place, (text, pair) in enumerate(case.passes):
        words = () if place else case.words
        off = [heads for heads in variants if heads]
        by = case.substitute(encoder, place)
        changed = iter(ablation.states_without(encoder, off, by, text, pair, words) if off else ())
        whole = encoder.states(text, pair, words=words) if len(off) < len(variants) else np.zeros(1, np.float32)
        states.append(np.stack([next(changed) if heads else whole[0] for heads in variants]))
    return states


def _changes(encoder: Encoder, case: Case, states: Sequence[Weights]) -> Changes:
    """The changes of all variants but the first, compared with the first, from the last states [variant, n, d_model] of
    each text."""
    first = states[0].astype(np.float64)
    vectors, variants = first.mean(1), len(first) - 1
    answer = score = changed = np.full(variants, np.nan)
    if case.question is not None:
        values = _answers(encoder, case.question, states)
        if case.question.kind == COSINE:
            score = values[1:] - values[0]
            answer = abs(score)
        else:
            answer = divergences(values[:1], values[1:])
            score = values[1:, case.question.piece] - values[0, case.question.piece]
            changed = (values[1:].argmax(1) != values[0].argmax()).astype(np.float64)
    return Changes(_apart(vectors[0], vectors[1:]), _apart(first[0], first[1:]), answer, score, changed)


def _answers(encoder: Encoder, question: Question, states: Sequence[Weights]) -> Numbers:
    """[variant]: the cosine of the two texts; or [variant, piece]: the log-probabilities of all words."""
    if question.kind == COSINE:
        return cosines(*(each.astype(np.float64).mean(1) for each in states))
    return answers.log_probabilities(encoder, states[0][:, question.place])


def _apart(first: Numbers, second: Numbers) -> Numbers:
    """1 − cos over the last axis; 0 where both vectors are equal, 1 where one of them is zero."""
    apart: Numbers = np.where((first == second).all(-1), 0.0, 1 - cosines(first, second))
    return apart


def _divergences(first: Weights, others: Weights) -> Numbers:
    """[head, variant]: the divergence of each matrix of ``others`` [head, variant, query, key] from that of the head in
    ``first`` [head, query, key], summed over rows."""
    one, variants = first.reshape(len(first), 1, -1), others.reshape(*others.shape[:2], -1)
    mixed = np.concatenate([entropy((mine + theirs) / 2)[None] for mine, theirs in zip(one, variants, strict=True)])
    return jensen_shannon(mixed, entropy(one), entropy(variants))


# ---- More and more heads off --------------------------------------------------------------------------------------


def removal(encoder: Encoder, order: Sequence[Head], case: Case, progress: OnProgress = lambda _: None) -> Removal:
    """What changes while heads are removed in ``order``, one more at each step
    (:func:`mha_viz.analysis.removal.order_of`). ``progress`` is called with the share that is done; an exception from
    it ends the work. Raises the errors of :func:`lost_each`."""
    steps = each_removal(order, tokens(encoder, case), lambda variants: lost_each(encoder, variants, case))
    return completed(steps, progress)


def margins(encoder: Encoder, variants: Sequence[Collection[Head]], case: Case) -> Numbers:
    """[variant]: log p of the wanted word minus that of the most probable other word, with these heads off: at most
    :func:`~mha_viz.analysis.effects.at_once` of them, read in one batch. Raises SettingError if no word is wanted."""
    question = case.question
    if question is None or question.kind == COSINE:
        raise SettingError("No word is asked for.", "Ask for a word at [MASK], or for the next one.")
    values = values_without(encoder, variants, case)
    margin: Numbers = values[:, question.piece] - np.delete(values, question.piece, axis=1).max(axis=1)
    return margin


def smallest_switch(
    encoder: Encoder, case: Case, most: int = MOST_SWITCHED, progress: OnProgress = lambda _: None
) -> Switch:
    """The smallest set of heads, found greedily, without which the wanted word is the answer. Raises the errors of
    :func:`margins`."""
    every = ablation.existing(
        encoder, [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    )
    steps = switch(every, tokens(encoder, case), lambda variants: margins(encoder, variants, case), most)
    return completed(steps, progress)
