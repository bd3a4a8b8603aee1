"""Heads that are removed one by one, and the few that change an answer, compared with single passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from mha_viz.analysis.effects import STEP_SENTENCES, Effects, measure_mean_outputs
from mha_viz.analysis.removal import ORDERS, Removal, find_ablation_set, order_heads
from mha_viz.attention import Head
from mha_viz.errors import MeansMissing, SettingError
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process.steps import run_steps
from mha_viz.request import Request
from mha_viz.study import effects as study
from mha_viz.study.effects import compute_margins, find_small_ablation, measure_removal
from tests.tiny_models import HEADS, LAYERS

Tiny = Callable[[str], Encoder]
TEXT = "The animal didn't cross the [MASK] because it was"


@pytest.fixture
def asked(tiny: Tiny) -> Request:
    return Request(text=TEXT, question=answers.make_question(tiny("bert words"), TEXT))


def made(sentence: list[list[float]], answer: list[list[float]]) -> Effects:
    numbers, none = np.array(sentence), np.zeros((0,))
    return Effects(numbers, none, np.array(answer), none, none, none)


def test_orders_of_heads_are_by_their_effect_alone() -> None:
    effects = made([[0.1, 0.4], [0.3, 0.2]], [[4, 3], [2, 1]])
    most = [Head(0, 1), Head(1, 0), Head(1, 1), Head(0, 0)]
    assert order_heads(effects, "most") == tuple(most)
    assert order_heads(effects, "least") == tuple(most[::-1])
    assert order_heads(effects, "most", "answer") == (Head(0, 0), Head(0, 1), Head(1, 0), Head(1, 1))
    shuffled = [order_heads(effects, "random", seed=seed) for seed in range(8)]
    assert {tuple(sorted(each)) for each in shuffled} == {tuple(sorted(most))}
    assert len(set(shuffled)) > 1
    assert order_heads(effects, "random", "answer", 3) == shuffled[3]
    with pytest.raises(SettingError, match="least, most, random"):
        order_heads(effects, "best")


@pytest.mark.parametrize("order", ORDERS)
def test_a_curve_is_what_single_passes_give(order: str, tiny: Tiny, asked: Request) -> None:
    encoder = tiny("bert words")
    heads = order_heads(study.measure_effects(encoder, asked), order, "answer", seed=1)
    done: list[float] = []
    curve = measure_removal(encoder, heads, asked, done.append)
    assert len(curve.sentence) == 1 + LAYERS * HEADS
    assert curve.sentence[0] == curve.answer[0] == curve.score[0] == curve.changed[0] == 0
    assert done[-1] == 1
    for count in (1, 5, LAYERS * HEADS):
        alone = study.measure_changes(encoder, [heads[:count]], asked)
        assert curve.sentence[count] == pytest.approx(alone.sentence[0], abs=1e-6)
        assert curve.answer[count] == pytest.approx(alone.answer[0], abs=1e-5)
        assert curve.score[count] == pytest.approx(alone.score[0], abs=1e-5)
        assert curve.changed[count] == alone.changed[0]


def test_the_first_change_of_an_answer() -> None:
    zeros = np.zeros(4)
    assert Removal((), zeros, zeros, zeros, np.array([0.0, 0, 1, 0])).first_change == 2
    assert Removal((), zeros, zeros, zeros, zeros).first_change is None
    assert Removal((), zeros, zeros, zeros, np.full(4, np.nan)).first_change is None


def test_a_curve_without_a_question_is_of_the_vector_alone(tiny: Tiny) -> None:
    encoder = tiny("bert words")
    every = [Head(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    curve = measure_removal(encoder, every, Request(text=TEXT))
    assert (curve.sentence[1:] > 0).all()
    assert np.isnan(curve.answer).all()
    assert curve.first_change is None


@pytest.mark.parametrize("pieces", [1, 30, 512])
def test_a_curve_does_not_depend_on_the_size_of_a_batch(
    pieces: int, tiny: Tiny, asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tiny("bert words")
    every = [Head(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    whole = measure_removal(encoder, every, asked)
    monkeypatch.setattr("mha_viz.analysis.effects.PIECES", pieces)
    assert np.allclose(measure_removal(encoder, every, asked).answer, whole.answer, atol=1e-5)


# ---- Another answer ----------------------------------------------------------------------------------------------


def test_margins_are_differences_of_log_probabilities(tiny: Tiny, asked: Request) -> None:
    encoder = tiny("bert words")
    values = study.compute_values(encoder, [(), (Head(0, 0),)], asked)
    assert asked.question is not None
    piece = asked.question.piece
    expected = [row[piece] - max(value for at, value in enumerate(row) if at != piece) for row in values]
    assert compute_margins(encoder, [(), (Head(0, 0),)], asked) == pytest.approx(expected, abs=1e-6)
    assert expected[0] > 0  # it is the answer
    with pytest.raises(SettingError, match="No word is asked for"):
        compute_margins(encoder, [()], Request(text=TEXT))


def test_heads_are_found_one_after_the_other(tiny: Tiny) -> None:
    encoder = tiny("bert words")
    first = study.compute_answer(encoder, Request(text=TEXT, question=answers.make_question(encoder, TEXT)))
    wanted = first.words[1]
    request = Request(text=TEXT, question=answers.make_question(encoder, TEXT, word=wanted))
    switched = find_small_ablation(encoder, request)
    assert len(switched.margins) == len(switched.heads) + 1
    assert list(switched.margins) == sorted(switched.margins)
    assert switched.margins[0] < 0
    chosen: tuple[Head, ...] = ()
    for count, head in enumerate(switched.heads, 1):
        every = [Head(layer, number) for layer in range(LAYERS) for number in range(HEADS)]
        values = {
            other: float(compute_margins(encoder, [(*chosen, other)], request)[0])
            for other in every
            if other not in chosen
        }
        assert values[head] == pytest.approx(max(values.values()), abs=1e-5)
        assert switched.margins[count] == pytest.approx(values[head], abs=1e-5)
        chosen = (*chosen, head)
    if switched.is_answer:
        assert study.compute_answer(encoder, replace(request, off=switched.heads)).best[1] == wanted


def test_a_search_ends_when_nothing_helps() -> None:
    every = [Head(0, head) for head in range(4)]
    gains = {Head(0, 0): 0.2, Head(0, 1): 1.0, Head(0, 2): 0.5, Head(0, 3): -1.0}

    def margins_of(start: float) -> Callable[[Sequence[tuple[Head, ...]]], np.ndarray]:
        return lambda sets: np.array([start + sum(gains[head] for head in heads) for heads in sets])

    smallest = run_steps(find_ablation_set(every, 10, margins_of(-1.3)))
    assert (smallest.heads, smallest.is_answer) == ((Head(0, 1), Head(0, 2)), True)
    best = min(
        (heads for count in range(5) for heads in combinations(every, count) if margins_of(-1.3)([heads])[0] > 0),
        key=len,
    )
    assert len(best) == len(smallest.heads)
    smallest = run_steps(find_ablation_set(every, 10, margins_of(-5.0)))
    assert (len(smallest.heads), smallest.is_answer) == (3, False)  # the fourth makes it worse
    assert len(run_steps(find_ablation_set(every, 10, margins_of(-5.0), max_heads=1)).heads) == 1
    assert run_steps(find_ablation_set(every, 10, margins_of(0.5))).heads == ()


@pytest.mark.parametrize("lost", [1, 2])
def test_mean_outputs_are_measured_from_the_first_sentence_again_once_where_they_were_lost(lost: int) -> None:
    measured_parts = list[range]()

    def measure(some: range) -> None:
        measured_parts.append(some)
        if some.start and len([part for part in measured_parts if part.start]) <= lost:
            raise MeansMissing("Lost.")

    steps = measure_mean_outputs(STEP_SENTENCES + 2, measure)
    if lost > 1:
        with pytest.raises(MeansMissing):
            list(steps)
    else:
        assert list(steps) == [0.5, 0.5, 1.0]
    assert measured_parts == 2 * [range(STEP_SENTENCES), range(STEP_SENTENCES, STEP_SENTENCES + 2)]
