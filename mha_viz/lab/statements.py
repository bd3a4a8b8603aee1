"""Yes-or-no questions about a result of the lab, each answered from its numbers; no answer is fixed in advance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mha_viz.analysis.distance import LN2
from mha_viz.lab.record import Array, Result, TrainingRun
from mha_viz.lab.tasks import CHANCE, TWO_RELATIONS, WORDS
from mha_viz.numerals import counted, decimal, format_divergence, format_small, percent

ALIKE_DIVERGENCE = 0.1 * LN2  # divergence below which two heads attend nearly alike
NOTICED_LOSS = 0.01  # minimum loss of accuracy that counts: one percentage point
FOLLOWED_WEIGHT = 0.75  # mean weight on the correct word above which a head follows a relation
ATTENDED_WEIGHT = 2 / WORDS  # weight above which a head attends to a word: twice that of uniform attention
SAME_COSINE = 0.95  # cosine of weights above which two heads are nearly equal
LEARNED_ACCURACY = CHANCE + 0.1  # accuracy below which a layer has learned almost nothing


RELATIONS = TWO_RELATIONS.relations


class Statement(NamedTuple):
    """A question and a result's answer. ``expected`` is the expected answer, None if either is plausible."""

    question: str
    answer: bool
    evidence: str
    expected: bool | None = True

    @property
    def is_surprising(self) -> bool:
        """Whether the answer differs from the expected one."""
        return self.expected is not None and self.answer != self.expected


def select_pairs(matrix: Array) -> Array:
    """Return the values of all pairs of different heads, [..., pair], from [..., head, head]."""
    first, second = np.triu_indices(matrix.shape[-1], 1)
    values: Array = matrix[..., first, second]
    return values


def list_pairs(heads: int) -> tuple[tuple[int, int], ...]:
    """Return the two heads of each value of :func:`select_pairs`."""
    return tuple((int(a), int(b)) for a, b in zip(*np.triu_indices(heads, 1), strict=True))


def state_identical(result: Result) -> list[Statement]:
    """Return the statements about equal heads."""
    run = result.runs[0]
    last_step = int(run.steps[-1])
    return [
        Statement(
            f"Are the {run.heads} heads bit-identical after {counted(last_step, 'step')}?",
            bool(run.same[-1].all()),
            _describe_difference(
                "All weights of the heads are equal",
                "The largest difference between two of their weights is",
                _find_largest_difference(run),
            ),
        ),
        Statement(
            "Were their gradients the same throughout?",
            bool(select_pairs(run.gradient_cosines).min() > 1 - 1e-4 and np.ptp(run.gradients, axis=1).max() == 0),
            "The smallest cosine of two gradients at a recorded step is "
            f"{decimal(select_pairs(run.gradient_cosines).min(), 4)}. "
            + _describe_difference(
                "Their norms are equal", "Their norms differ by at most", float(np.ptp(run.gradients, axis=1).max())
            ),
        ),
        Statement(
            "Do they share the work, one relation each?",
            bool(run.both[-1] > 0.9),
            f"Every head gives {_describe_weights(run, 0)}. Right answers: {_describe_accuracy(run)}.",
            expected=False,
        ),
    ]


def state_output(result: Result) -> list[Statement]:
    """Return the statements about heads that differ in W_O alone."""
    run = result.runs[0]
    first_update = int(np.flatnonzero(run.steps >= 1)[0])  # index of the first recorded step after an update
    input_cosines, output_cosines = select_pairs(run.gradient_cosines[0]), select_pairs(run.output_gradient_cosines[0])
    are_different = input_cosines.max() < 1 - 1e-4
    are_equal = output_cosines.min() > 1 - 1e-4
    return [
        Statement(
            "Do the heads differ after the first step?",
            bool(select_pairs(run.difference[0]).max() == 0 and select_pairs(run.difference[first_update]).min() > 0),
            _describe_difference(
                "At step 0 all heads have the same W_Q, W_K and W_V",
                "At step 0 the largest difference in W_Q, W_K and W_V between two heads is",
                float(select_pairs(run.difference[0]).max()),
            )
            + f" After step {int(run.steps[first_update]):,} the smallest difference between two heads is "
            f"{_format_difference(select_pairs(run.difference[first_update]).min())}.",
        ),
        Statement(
            "Did their gradients differ at step 0?",
            bool(are_different),
            _describe_cosines("the gradients of W_Q, W_K and W_V of two heads", "at step 0", input_cosines)
            + (": only the slices of W_O differ." if are_different else "."),
        ),
        Statement(
            "Was the gradient of the slices of W_O the same?",
            bool(are_equal),
            f"The smallest cosine at step 0 is {decimal(output_cosines.min(), 4)}"
            + (": all pass the same vectors to W_O." if are_equal else "."),
        ),
        Statement(
            f"Do they attend to different words after {counted(int(run.steps[-1]), 'step')}?",
            bool(select_pairs(run.divergence[-1]).mean() > ALIKE_DIVERGENCE),
            f"Mean divergence of pairs: {format_divergence(select_pairs(run.divergence[first_update]).mean())} at step "
            f"{int(run.steps[first_update]):,}, "
            f"{format_divergence(select_pairs(run.divergence[-1]).mean())} at the end.",
        ),
        _state_specialists(run),
    ]


def state_random(result: Result) -> list[Statement]:
    """Return the statements about heads that start at random."""
    run = result.runs[0]
    initial_cosines, final_cosines = select_pairs(run.weight_cosines[0]), select_pairs(run.weight_cosines[-1])
    divergences = select_pairs(run.divergence[-1])
    pairs = zip(list_pairs(run.heads), divergences, strict=True)
    alike_pairs = [pair for pair, divergence in pairs if divergence < ALIKE_DIVERGENCE]
    pair_names = f": {', '.join(f'H{a} and H{b}' for a, b in alike_pairs[:6])}" if alike_pairs else ""
    return [
        Statement(
            "Are the heads different before training?",
            bool(initial_cosines.max() < SAME_COSINE),
            _describe_cosines("the weights of two heads", "at step 0", initial_cosines) + ".",
        ),
        Statement(
            f"Are they still different after {counted(int(run.steps[-1]), 'step')}?",
            bool(final_cosines.max() < SAME_COSINE),
            _describe_cosines("the weights of two heads", "at the end", final_cosines)
            + "; no term of the loss keeps them apart.",
        ),
        Statement(
            "Do some heads attend nearly alike in the end?",
            bool(alike_pairs),
            f"In the end, {describe_alike_pairs(len(alike_pairs), len(divergences))} a divergence below "
            f"{format_divergence(ALIKE_DIVERGENCE)}{pair_names}; the two most "
            f"alike differ by {format_divergence(float(divergences.min()))} (0% = identical, 100% = no overlap). Heads "
            "with different "
            "weights can still attend alike.",
            expected=None,
        ),
        _state_specialists(run),
    ]


def state_penalty(result: Result) -> list[Statement]:
    """Return the statements about the penalty."""
    plain, penalised = result.runs
    weight = result.settings.weight
    divergences = select_pairs(plain.divergence[-1]).mean(), select_pairs(penalised.divergence[-1]).mean()
    overlaps = select_pairs(plain.overlap[-1]).mean(), select_pairs(penalised.overlap[-1]).mean()
    lost_accuracy = plain.final_accuracy - penalised.final_accuracy
    return [
        Statement(
            "Does the penalty make the heads less alike?",
            bool(divergences[1] > divergences[0] and overlaps[1] < overlaps[0]),
            f"Mean divergence of pairs: {format_divergence(divergences[0])} → {format_divergence(divergences[1])}; "
            "overlap of their rows: "
            f"{overlaps[0]:.3f} → {overlaps[1]:.3f}; ‖A Aᵀ − I‖²: {plain.penalty[-1]:.2f} → "
            f"{penalised.penalty[-1]:.2f}.",
            expected=True if weight else None,
        ),
        Statement(
            "Does it raise the loss?",
            bool(penalised.loss[-1] > plain.loss[-1]),
            f"The loss of the answers ends at {plain.loss[-1]:.5f} without, at {penalised.loss[-1]:.5f} with it.",
            expected=True if weight else None,
        ),
        Statement(
            "Does it cost right answers?",
            bool(lost_accuracy > NOTICED_LOSS),
            f"{percent(plain.final_accuracy)} right without, {percent(penalised.final_accuracy)} with it.",
            expected=None,
        ),
    ]


def state_count(result: Result) -> list[Statement]:
    """Return the statements about the number of heads."""
    single, *others = result.runs
    best, last = max(others, key=lambda run: (run.final_accuracy, -run.heads)), others[-1]
    costs = {(run.parameters, run.multiply_adds) for run in result.runs}
    is_spread = bool(
        single.relation_weights[-1].max() <= FOLLOWED_WEIGHT and single.relation_weights[-1].min() > ATTENDED_WEIGHT
    )
    return [
        Statement(
            "Do several heads answer better than one?",
            bool(best.final_accuracy > single.final_accuracy + NOTICED_LOSS),
            f"One head gives {percent(single.final_accuracy)} right answers, {best.heads} heads give "
            f"{percent(best.final_accuracy)}.",
        ),
        Statement(
            "Does one head spread its attention over both words?",
            is_spread,
            f"It gives {_describe_weights(single, 0)}. Right answers: {_describe_accuracy(single)}; guessing gives "
            f"{percent(CHANCE)}.",
        ),
        Statement(
            "Do they all cost the same?",
            len(costs) == 1,
            f"{single.parameters:,} parameters and {single.multiply_adds:,} multiply-adds for one head; "
            f"{last.parameters:,} and {last.multiply_adds:,} for {last.heads}.",
        ),
        Statement(
            "Can there be too many heads for the width?",
            bool(last.final_accuracy < best.final_accuracy - NOTICED_LOSS),
            f"With {last.heads} heads a query has {counted(result.settings.d_model // last.heads, 'number')}; "
            f"{percent(last.final_accuracy)} of the answers are right after {counted(int(last.steps[-1]), 'step')}.",
            expected=None,
        ),
    ]


def state_cut(result: Result) -> list[Statement]:
    """Return the statements about the ways to cut the vector."""
    full, chunks, shared, overlapping = result.runs
    d_model, heads = result.settings.d_model, result.settings.heads
    input_note = f"each head sees {2 * d_model // heads} of {d_model} numbers"  # twice d_model / heads
    if 2 * d_model // heads >= d_model:
        input_note = f"with {counted(heads, 'head')}, a random chunk is the whole vector"
    return [
        Statement(
            "Do chunks save parameters?",
            chunks.parameters < full.parameters,
            f"{chunks.parameters:,} instead of {full.parameters:,}, and {chunks.multiply_adds:,} multiply-adds instead "
            f"of {full.multiply_adds:,}. Of the parameters, {full.parameters // 4:,} are W_O in both.",
        ),
        Statement(
            "Does that cost right answers?",
            bool(full.final_accuracy - chunks.final_accuracy > NOTICED_LOSS),
            f"{percent(full.final_accuracy)} right when projected in full, {percent(chunks.final_accuracy)} with "
            "chunks.",
            expected=None,
        ),
        Statement(
            "Does sharing one matrix cost more right answers?",
            bool(chunks.final_accuracy - shared.final_accuracy > NOTICED_LOSS),
            f"{percent(shared.final_accuracy)} right with {shared.parameters:,} parameters. Mean divergence of pairs: "
            f"{format_divergence(select_pairs(shared.divergence[-1]).mean())}.",
            expected=None,
        ),
        Statement(
            "Do overlapping random chunks do as well as the whole vector?",
            bool(full.final_accuracy - overlapping.final_accuracy <= NOTICED_LOSS),
            f"{percent(overlapping.final_accuracy)} right with {overlapping.parameters:,} parameters; {input_note}.",
            expected=None,
        ),
    ]


def state_removal(result: Result) -> list[Statement]:
    """Return the statements about removed heads."""
    removal, run = result.removal, result.runs[0]
    assert removal is not None
    removable_count, has_learned = count_removable(removal.least), bool(removal.least[0] > LEARNED_ACCURACY)
    mean_random_count = float(np.mean([count_removable(curve) for curve in removal.random]))
    top_head = int(removal.order[-1])
    return [
        Statement(
            "Can heads be removed without harm?",
            removable_count > 0 and has_learned,
            ("" if has_learned else f"This layer has learned almost nothing: guessing gives {percent(CHANCE)}. ")
            + f"{removable_count} of {run.heads} can, least important first, before accuracy falls by more than one "
            f"point ({percent(removal.least[0])} → {percent(removal.least[removable_count])}).",
        ),
        Statement(
            "Is removal by importance better than at random?",
            bool(removable_count > mean_random_count and removal.least.mean() > removal.random.mean()),
            f"In {len(removal.random)} random orders, {mean_random_count:.1f} on average can be removed. With "
            f"{run.heads // 2} of {run.heads} heads removed, {percent(removal.least[run.heads // 2])} of the answers "
            f"are right by importance, {percent(removal.random[:, run.heads // 2].mean())} at random.",
        ),
        Statement(
            "Does the most important head matter?",
            bool(removal.most[0] - removal.most[1] > NOTICED_LOSS),
            f"Without H{top_head} alone, {percent(removal.most[1])} of the answers are right; it gives "
            f"{_describe_weights(run, top_head)}.",
        ),
    ]


def state_pair(result: Result) -> list[Statement]:
    """Return the statements that compare three heads with four, two of which start equal."""
    three, four = result.runs
    return [
        Statement(
            f"Are the two equal heads bit-identical after {counted(int(four.steps[-1]), 'step')}?",
            bool(four.same[-1, -2, -1]),
            _describe_difference(
                "All their weights are equal", "They differ by at most", _find_largest_difference(four, slice(2, None))
            ),
        ),
        Statement(
            "Do the four answer better than three?",
            bool(four.final_accuracy > three.final_accuracy + NOTICED_LOSS),
            f"Three heads give {percent(three.final_accuracy)} right answers, the four {percent(four.final_accuracy)}.",
            expected=False,
        ),
        Statement(
            "Do they cost more?",
            four.parameters > three.parameters,
            f"{four.parameters:,} parameters, {three.parameters:,} for three.",
        ),
    ]


def state_current(result: Result) -> list[Statement]:
    """Return the statements about heads that a task does not need."""
    removal, run = result.removal, result.runs[0]
    assert removal is not None
    curves = np.vstack([removal.least, removal.most, removal.random])[:, 1:-1]  # without all and none
    mean_divergence = select_pairs(run.divergence[-1]).mean()
    return [
        Statement(
            "Can all heads be removed at once without harm?",
            bool(removal.least[-1] >= removal.least[0] - NOTICED_LOSS and removal.least[0] > LEARNED_ACCURACY),
            f"{percent(removal.least[0])} of the answers are right with all {run.heads} heads, "
            f"{percent(removal.least[-1])} with none.",
        ),
        Statement(
            "Do the heads differ nevertheless?",
            bool(mean_divergence > ALIKE_DIVERGENCE),
            f"Mean divergence of pairs at the end: {format_divergence(mean_divergence)}.",
        ),
        Statement(
            "Can keeping only some of them be worse than keeping none?",
            bool(curves.min() < removal.least[-1] - NOTICED_LOSS),
            f"With only some of them, at worst {percent(curves.min())} of the answers are right.",
            expected=None,
        ),
    ]


def count_removable(curve: Array) -> int:
    """Count the heads that can be removed in this order before accuracy falls by more than NOTICED_LOSS."""
    harmful_counts = np.flatnonzero(curve < curve[0] - NOTICED_LOSS)
    return int(harmful_counts[0]) - 1 if len(harmful_counts) else len(curve) - 1


def _state_specialists(run: TrainingRun) -> Statement:
    """Return the statement on whether different heads follow the two relations."""
    weights = run.relation_weights[-1]  # [head, relation]
    specialists = [int(weights[:, relation].argmax()) for relation in range(len(RELATIONS))]
    return Statement(
        "Do different heads follow the two relations?",
        specialists[0] != specialists[1] and bool(run.both[-1] > 0.9),
        f"{RELATIONS[0].capitalize()}: H{specialists[0]} ({weights[specialists[0], 0]:.2f} of its attention); "
        f"{RELATIONS[1]}: H{specialists[1]} ({weights[specialists[1], 1]:.2f}). Right answers: "
        f"{_describe_accuracy(run)}.",
    )


def _find_largest_difference(run: TrainingRun, heads: slice = slice(None)) -> float:
    """Return the largest difference between the weights of two of these heads, W_O included, after the last step."""
    return float(max(run.difference[-1, heads, heads].max(), run.output_difference[-1, heads, heads].max()))


def _describe_difference(equal_sentence: str, different_sentence: str, difference: float) -> str:
    """Return ``equal_sentence`` if there is no difference, otherwise ``different_sentence`` with the difference."""
    return f"{equal_sentence}." if difference == 0 else f"{different_sentence} {_format_difference(difference)}."


def _format_difference(value: float) -> str:
    """Format a difference with three digits or as a small number."""
    return decimal(value, 3) if value >= 0.001 else format_small(value)


def _describe_cosines(noun_phrase: str, moment: str, values: Array) -> str:
    """Return a phrase such as "Cosines of the weights of two heads at step 0: −0.07 to 0.04", without a full stop.

    For one pair, it gives its cosine; for equal cosines, "all" and the value.
    """
    low, high = decimal(values.min()), decimal(values.max())
    if values.size == 1:
        return f"Cosine of {noun_phrase} {moment}: {low}"
    return f"Cosines of {noun_phrase} {moment}: {f'all {low}' if low == high else f'{low} to {high}'}"


def describe_alike_pairs(count: int, total: int) -> str:
    """Return the subject and verb for some pairs, such as "the two heads have" or "3 of the 6 pairs of heads have"."""
    if total == 1:
        return "the two heads have" if count else "the two heads do not have"
    return f"{count or 'none'} of the {total} pairs of heads {'has' if count < 2 else 'have'}"


def _describe_weights(run: TrainingRun, head: int) -> str:
    """Return a phrase with a head's mean weight on each relation."""
    weights = zip(run.relation_weights[-1, head], RELATIONS, strict=True)
    first, *other_phrases = (f"{weight:.2f}{{}} to {relation}" for weight, relation in weights)
    return " and ".join([first.format(" of its attention"), *(other.format("") for other in other_phrases)])


def _describe_accuracy(run: TrainingRun) -> str:
    """Return a phrase with the accuracy of each relation after the last step."""
    return ", ".join(f"{r} {percent(share)}" for share, r in zip(run.accuracy[-1], RELATIONS, strict=True))
