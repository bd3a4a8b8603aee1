"""Measure the effect of switching heads off for one text: on the model's answer, and on its other heads.

Also find how many heads can be removed before the answer changes, and which few heads change it to a given word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from mha_viz.analysis import effects as analysis
from mha_viz.analysis.bundled_data import get_cached_shares, predict_attention, require_recipes
from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.analysis.effects import Changes, Effects, JointEffect, Numbers
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.removal import MAX_ABLATED_HEADS, AblationSet, Removal, find_ablation_set
from mha_viz.analysis.removal import remove_heads as remove_in_steps
from mha_viz.analysis.rules import RuleText
from mha_viz.attention import Head, Weights
from mha_viz.attention.answers import Answer, compute_cosines, compute_divergences, list_tokens
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import SettingError
from mha_viz.models.intervening import ablation, other_texts
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process.steps import run_steps
from mha_viz.request import COSINE, RECIPE, RESAMPLE, TEXT, Question, Request

SEED = 0  # seed for draws of random directions


OnProgress = Callable[[float], None]
# The type of :func:`substitute` with its optional arguments bound.
MakeSubstitute = Callable[[Encoder, Request, int], ablation.Substitute]


def substitute(
    encoder: Encoder,
    request: Request,
    pass_index: int,
    *,
    means: Weights | None = None,
    gold: Sentence | None = None,
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
) -> ablation.Substitute:
    """Return the replacement for the outputs of heads that are off, in one of the ``passes`` of a request.

    Args:
        encoder: the model.
        request: the text, the question and the method.
        pass_index: the index of the pass.
        means: as for :func:`mha_viz.models.intervening.ablation.make_substitute`.
        gold: the request's words with their annotation, which rules of recipes may need.
        sentences: the sentences that the method "resample" draws from, by default the built-in ones.
        recipes: by default the known recipes of the model.

    Raises the errors of :mod:`mha_viz.models.intervening.other_texts` and
    :func:`mha_viz.analysis.bundled_data.predict_attention`.
    """
    texts, words, method = request.passes[pass_index], () if pass_index else request.words, request.method
    if request.question is not None and not request.question.is_off_in(pass_index):
        return ablation.keep_outputs
    if pass_index and method == TEXT and texts[0] == request.source:  # the outputs would be replaced by themselves
        return ablation.keep_outputs
    if method in (TEXT, RESAMPLE):
        means = other_texts.choose_outputs(encoder, method, encoder.pieces(*texts, words), request.source, sentences)
    elif method == RECIPE:
        rule_text = RuleText(gold, encoder.read_words(words), bool(encoder.causal)) if words and gold else None
        means = predict_attention(encoder.encode_words(words) if words else encoder.encode(*texts), recipes, rule_text)
    return ablation.make_substitute(encoder, method, means)


def check_method(encoder: Encoder, method: str, means: Weights | None = None, recipes: Recipes | None = None) -> None:
    """Raise SettingError unless a method can be used on this model.

    It is raised for an unknown method, for a method whose data is missing for this model, and for recipes given with
    another method.
    """
    if recipes is not None and method != RECIPE:
        raise SettingError(
            f"Recipes are given, and heads are switched off by {method}.",
            'Leave recipes out, or set method="recipe".',
        )
    if method == RECIPE:
        get_cached_shares(recipes or require_recipes(encoder.name, encoder.revision))
    elif method not in (TEXT, RESAMPLE):
        ablation.make_substitute(encoder, method, means)


def measure_part(
    encoder: Encoder,
    layer: int,
    heads: Sequence[int],
    request: Request,
    make_substitute: MakeSubstitute = substitute,
) -> Effects:
    """Return the effects of some heads of one layer: the fields of Effects with one layer and these heads.

    Each text takes one forward pass. Raises the errors of :func:`mha_viz.models.intervening.ablation.run_forked_pass`.
    """
    variants = ablation.ablate_one_by_one(heads)
    full_passes = [ablation.run_full_pass(encoder, *texts) for texts in request.passes]
    forks = [
        ablation.run_forked_pass(encoder, layer, variants, make_substitute(encoder, request, index), *texts)
        for index, texts in enumerate(request.passes)
    ]
    attention = np.zeros((len(heads), encoder.layers, encoder.heads))
    for target_layer, weights in enumerate(forks[0].weights, layer + 1):
        divergences = _compute_divergences(full_passes[0].weights[target_layer], weights)
        attention[:, target_layer] = divergences.T / weights.shape[-1]
    states = [
        np.concatenate([full_pass.states[None], fork.states])
        for full_pass, fork in zip(full_passes, forks, strict=True)
    ]
    changes = _compute_changes(encoder, request.question, states)
    return Effects(*(field[None] for field in (*changes, attention)))


def measure_effects(
    encoder: Encoder,
    request: Request,
    progress: OnProgress = lambda _: None,
    make_substitute: MakeSubstitute = substitute,
) -> Effects:
    """Return the effects of all heads on one text, each head switched off alone.

    ``progress`` is called with the completed fraction; an exception from it ends the work. Raises the errors of
    :func:`measure_part`.
    """
    n = count_tokens(encoder, request)
    steps = analysis.measure_all_effects(
        encoder.layers,
        encoder.heads,
        n,
        lambda layer, heads: measure_part(encoder, layer, heads, request, make_substitute),
    )
    return run_steps(steps, progress)


def measure_together(encoder: Encoder, request: Request, make_substitute: MakeSubstitute = substitute) -> JointEffect:
    """Return the effect of switching off all heads of a request at once.

    For comparison, an equal loss is made in random directions, in DRAWS draws. Raises the errors of
    :func:`mha_viz.models.intervening.ablation.encode_without`.
    """
    steps = analysis.measure_jointly(
        count_tokens(encoder, request),
        lambda: measure_changes(encoder, [request.off], request, make_substitute),
        lambda draws: measure_random_changes(encoder, draws, request, make_substitute),
    )
    return run_steps(steps)


def count_tokens(encoder: Encoder, request: Request) -> int:
    """Return the number of tokens of a request's text, which determines how many variants fit into one batch."""
    return len(encoder.tokenize(*request.texts))


def measure_changes(
    encoder: Encoder,
    variants: Sequence[Collection[Head]],
    request: Request,
    make_substitute: MakeSubstitute = substitute,
) -> Changes:
    """Return the changes in each of ``variants`` (the heads that are off in it), measured in one batch.

    Raises the errors of :func:`mha_viz.models.intervening.ablation.encode_without`.
    """
    ablated_sets = [ablation.check_heads(encoder, heads) for heads in variants]
    return _compute_changes(
        encoder, request.question, _compute_states(encoder, [(), *ablated_sets], request, make_substitute)
    )


def measure_random_changes(
    encoder: Encoder, draws: range, request: Request, make_substitute: MakeSubstitute = substitute
) -> Numbers:
    """Return ``random`` and ``random_answer`` of :func:`measure_together`, for some of the draws: [2, draw]."""
    ablated_heads = ablation.check_heads(encoder, request.off)
    states = [
        np.concatenate(
            [
                ablation.run_full_pass(encoder, *texts).states[None],
                ablation.compute_random_ablation_states(
                    encoder, ablated_heads, make_substitute(encoder, request, index), draws, *texts, SEED
                ),
            ]
        )
        for index, texts in enumerate(request.passes)
    ]
    changes = _compute_changes(encoder, request.question, states)
    return np.stack([changes.sentence, changes.answer])


def compute_answer(encoder: Encoder, request: Request, make_substitute: MakeSubstitute = substitute) -> Answer:
    """Return the model's answer to the question of a request, before and after its heads are switched off at once.

    Raises the errors of :func:`mha_viz.models.intervening.ablation.encode_without`.
    """
    assert request.question is not None
    ablated_heads = ablation.check_heads(encoder, request.off)
    return compare_answers(
        encoder, request.question, _compute_states(encoder, [(), ablated_heads], request, make_substitute)
    )


def compare_answers(encoder: Encoder, question: Question, states: Sequence[Weights]) -> Answer:
    """Compare the answers before and after, from the last states of each text, [before or after, n, d_model]."""
    values = _compute_answers(encoder, question, states)
    if question.kind == COSINE:
        return Answer(question, (), values[:1], values[1:], float(abs(values[1] - values[0])))
    pieces = list_tokens(values[0], values[1], question.piece)
    words = tuple(answers.format_word(encoder, piece) for piece in pieces)
    before, after = np.exp(values[:, pieces])
    return Answer(question, words, before, after, float(compute_divergences(values[0], values[1])))


def compute_values(
    encoder: Encoder,
    variants: Sequence[Collection[Head]],
    request: Request,
    make_substitute: MakeSubstitute = substitute,
) -> Numbers:
    """Return the answer in each of ``variants`` (the heads that are off in it).

    The shape is [variant, piece], log-probabilities of all words, or [variant], cosines. Raises the errors of
    :func:`measure_changes`.
    """
    assert request.question is not None
    ablated_sets = [ablation.check_heads(encoder, heads) for heads in variants]
    return _compute_answers(encoder, request.question, _compute_states(encoder, ablated_sets, request, make_substitute))


def _compute_states(
    encoder: Encoder, variants: Sequence[Collection[Head]], request: Request, make_substitute: MakeSubstitute
) -> list[Weights]:
    """Return the last states [variant, n, d_model] of each text.

    A variant with no head off is a pass of its own, so that its numbers are exactly those of the whole model.
    """
    states = []
    for index, (text, pair) in enumerate(request.passes):
        words = () if index else request.words
        ablated_sets = [heads for heads in variants if heads]
        replacement = make_substitute(encoder, request, index)
        changed_states = iter(
            ablation.compute_states_without(encoder, ablated_sets, replacement, text, pair, words)
            if ablated_sets
            else ()
        )
        full_states = (
            encoder.states(text, pair, words=words) if len(ablated_sets) < len(variants) else np.zeros(1, np.float32)
        )
        states.append(np.stack([next(changed_states) if heads else full_states[0] for heads in variants]))
    return states


def _compute_changes(encoder: Encoder, question: Question | None, states: Sequence[Weights]) -> Changes:
    """Compare each variant with the first one, from the last states of each text, [variant, n, d_model]."""
    tokens = states[0].astype(np.float64)
    vectors, variants = tokens.mean(1), len(tokens) - 1
    answer_change = score_change = is_changed = np.full(variants, np.nan)
    if question is not None:
        values = _compute_answers(encoder, question, states)
        if question.kind == COSINE:
            score_change = values[1:] - values[0]
            answer_change = abs(score_change)
        else:
            answer_change = compute_divergences(values[:1], values[1:])
            score_change = values[1:, question.piece] - values[0, question.piece]
            is_changed = (values[1:].argmax(1) != values[0].argmax()).astype(np.float64)
    return Changes(
        _compute_cosine_distance(vectors[0], vectors[1:]),
        _compute_cosine_distance(tokens[0], tokens[1:]),
        answer_change,
        score_change,
        is_changed,
    )


def _compute_answers(encoder: Encoder, question: Question, states: Sequence[Weights]) -> Numbers:
    """Return the cosine of the two texts, [variant]; or the log-probabilities of all words, [variant, piece]."""
    if question.kind == COSINE:
        return compute_cosines(*(text_states.astype(np.float64).mean(1) for text_states in states))
    return answers.compute_log_probabilities(encoder, states[0][:, question.place])


def _compute_cosine_distance(first: Numbers, second: Numbers) -> Numbers:
    """Return 1 − cos over the last axis; 0 where both vectors are equal, 1 where one of them is zero."""
    distance: Numbers = np.where((first == second).all(-1), 0.0, 1 - compute_cosines(first, second))
    return distance


def _compute_divergences(baseline: Weights, variants: Weights) -> Numbers:
    """Return the divergence of each matrix of ``variants`` from that of the head in ``baseline``, summed over rows.

    ``baseline`` is [head, query, key], ``variants`` [head, variant, query, key], and the result [head, variant].
    """
    baseline_rows, other_rows = baseline.reshape(len(baseline), 1, -1), variants.reshape(*variants.shape[:2], -1)
    mixture_entropies = np.concatenate(
        [entropy((rows + variant_rows) / 2)[None] for rows, variant_rows in zip(baseline_rows, other_rows, strict=True)]
    )
    return jensen_shannon(mixture_entropies, entropy(baseline_rows), entropy(other_rows))


# ---- removal of heads, one by one -----------------------------------------------------------------------------------


def measure_removal(
    encoder: Encoder,
    order: Sequence[Head],
    request: Request,
    progress: OnProgress = lambda _: None,
    make_substitute: MakeSubstitute = substitute,
) -> Removal:
    """Measure what changes while heads are removed in ``order``, one more at each step.

    See :func:`mha_viz.analysis.removal.order_heads`. ``progress`` is called with the completed fraction; an exception
    from it ends the work. Raises the errors of :func:`measure_changes`.
    """
    n = count_tokens(encoder, request)
    steps = remove_in_steps(order, n, lambda variants: measure_changes(encoder, variants, request, make_substitute))
    return run_steps(steps, progress)


def compute_margins(
    encoder: Encoder,
    variants: Sequence[Collection[Head]],
    request: Request,
    make_substitute: MakeSubstitute = substitute,
) -> Numbers:
    """Return log p of the wanted word minus that of the most probable other word, with these heads off, [variant].

    At most :func:`~mha_viz.analysis.effects.count_variants_per_batch` variants are read, in one batch. Raises
    SettingError if no word is wanted.
    """
    question = request.question
    if question is None or question.kind == COSINE:
        raise SettingError("No word is asked for.", "Ask for a word at [MASK], or for the next one.")
    values = compute_values(encoder, variants, request, make_substitute)
    margin: Numbers = values[:, question.piece] - np.delete(values, question.piece, axis=1).max(axis=1)
    return margin


def find_small_ablation(
    encoder: Encoder,
    request: Request,
    max_heads: int = MAX_ABLATED_HEADS,
    progress: OnProgress = lambda _: None,
    make_substitute: MakeSubstitute = substitute,
) -> AblationSet:
    """Greedily find a small set of heads that, switched off together, make the word in question the answer.

    Raises the errors of :func:`compute_margins`.
    """
    all_heads = ablation.check_heads(
        encoder, [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    )
    n = count_tokens(encoder, request)
    steps = find_ablation_set(
        all_heads, n, lambda variants: compute_margins(encoder, variants, request, make_substitute), max_heads
    )
    return run_steps(steps, progress)
