"""The saved default runs of the training lab: they equal what the code computes today, their statements, and their
charts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mha_viz.figures.charts import training as charts
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.drawing.theme import DARK, LIGHT
from mha_viz.lab import estimate, lab, record
from mha_viz.lab.experiments import (
    run,
)
from mha_viz.lab.lab import (
    CURRENT,
    EXPERIMENTS,
    HEAD_COUNT,
    IDENTICAL,
    OUTPUT,
    PAIR,
    PENALTY,
    REMOVAL,
    SPLIT_INPUT,
)
from mha_viz.lab.lab import RANDOM as RANDOM_START
from mha_viz.lab.record import Result
from mha_viz.lab.statements import Statement
from mha_viz.lab.tasks import draw_sentences
from mha_viz.numerals import percent
from tests import lanes


def statements_of(result: Result) -> list[Statement]:
    return EXPERIMENTS[result.settings.experiment].statements(result)


pytestmark = pytest.mark.usefixtures("one_thread")

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 1_500_000  # of all stored runs


# ---- Stored runs and what they say --------------------------------------------------------------------------


def test_stored_runs_are_small_and_of_the_default_settings() -> None:
    for name, experiment in EXPERIMENTS.items():
        result = lab.load_stored(name)
        assert result.settings == experiment.default
        assert result.words == draw_sentences(256, (0, 1)).words(0)
        assert [run.heads for run in result.runs] == [s.heads for s in experiment.layers(result.settings).values()]
    assert sum(lab.stored_path(name).stat().st_size for name in EXPERIMENTS) < MOST_BYTES


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_stored_runs_show_what_is_usual(experiment: str) -> None:
    statements = statements_of(lab.load_stored(experiment))
    assert not [s.question for s in statements if s.is_surprising]
    assert not any("nats" in s.evidence for s in statements), "divergences are in percent, as on other pages"


def test_the_recorded_weights_of_heads_begin_equal_only_where_heads_begin_alike() -> None:
    for experiment, begin, end in ((IDENTICAL, True, True), (OUTPUT, True, False), (RANDOM_START, False, False)):
        queries = lab.load_stored(experiment).runs[0].queries
        assert queries.shape[2] == record.RECORDED_WEIGHTS
        assert [bool((queries[at] == queries[at, :1]).all()) for at in (0, -1)] == [begin, end]


def test_a_run_that_does_not_show_it_says_no() -> None:
    result = lab.load_stored(IDENTICAL)
    training_run = result.runs[0]
    same, difference = training_run.same.copy(), training_run.difference.copy()
    same[-1, 0, 1], difference[-1, 0, 1] = False, 1e-7
    first = statements_of(replace(result, runs=(replace(training_run, same=same, difference=difference),)))[0]
    assert not first.answer
    assert first.is_surprising
    assert "1\u00a0·\u00a010⁻⁷" in first.evidence


def changed(experiment: str, number: int = 0, **arrays: Any) -> tuple[Statement, ...]:
    """The statements about a default run with some numbers of one run changed, by functions of the old ones."""
    result = lab.load_stored(experiment)
    runs = list(result.runs)
    runs[number] = replace(runs[number], **{n: new(getattr(runs[number], n).copy()) for n, new in arrays.items()})
    return tuple(statements_of(replace(result, runs=tuple(runs))))


def ones(values: Any) -> Any:
    return np.ones_like(values)


def nothing(values: Any) -> Any:
    return np.zeros_like(values)


@pytest.mark.parametrize(
    ("experiment", "others", "at"),
    [
        (IDENTICAL, {"gradient_cosines": nothing}, 1),
        (IDENTICAL, {"both": ones}, 2),
        (OUTPUT, {"difference": nothing}, 0),
        (OUTPUT, {"gradient_cosines": ones}, 1),
        (OUTPUT, {"output_gradient_cosines": nothing}, 2),
        (OUTPUT, {"divergence": nothing}, 3),
        (RANDOM_START, {"weight_cosines": ones}, 0),
        (RANDOM_START, {"weight_cosines": ones}, 1),
        (RANDOM_START, {"divergence": nothing}, 2),
        (RANDOM_START, {"both": nothing}, 3),
        (HEAD_COUNT, {"accuracy": ones}, 0),
        (HEAD_COUNT, {"relation_weights": ones}, 1),
        (HEAD_COUNT, {"relation_weights": nothing}, 1),
    ],
)
def test_the_opposite_is_said_when_the_numbers_are_others(experiment: str, others: dict[str, Any], at: int) -> None:
    assert changed(experiment, **others)[at].answer is not changed(experiment)[at].answer


@pytest.mark.parametrize(
    ("others", "at", "reason"),
    [
        ({"gradient_cosines": ones}, 1, "only the slices of W_O differ"),
        ({"output_gradient_cosines": nothing}, 2, "all pass the same vectors to W_O"),
    ],
)
def test_the_reason_of_a_yes_does_not_stand_beside_a_no(others: dict[str, Any], at: int, reason: str) -> None:
    assert reason in changed(OUTPUT)[at].evidence
    assert reason not in changed(OUTPUT, **others)[at].evidence


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_what_it_showed_speaks_of_the_run_in_view(experiment: str) -> None:
    result = lab.load_stored(experiment)
    first = lab.compare_with_guess(None, result)
    shown = result.runs[0]
    other = replace(
        shown,
        divergence=0.5 * shown.divergence + 0.01,
        overlap=0.5 * shown.overlap,
        accuracy=0.5 * shown.accuracy,
        difference=0.5 * shown.difference + 0.01,
        same=~shown.same,
        maps=shown.maps * (experiment != RANDOM_START),  # that verdict is read from the maps alone
    )
    removal = result.removal
    lower = None if removal is None else replace(removal, least=0.9 * removal.least**3)
    assert lab.compare_with_guess(None, replace(result, runs=(other, *result.runs[1:]), removal=lower)) != first


@pytest.mark.parametrize(
    ("experiment", "changes", "option"),
    [
        (IDENTICAL, {"same": lambda same: ~same}, "apart"),
        (OUTPUT, {"difference": lambda values: 0 * values}, "never"),
        (OUTPUT, {"difference": lambda values: 0 * values + (np.arange(len(values)) >= 9)[:, None, None]}, "later"),
        (RANDOM_START, {"maps": lambda maps: 0 * maps}, "different"),
        (PENALTY, {"divergence": lambda values: 0 * values + 1}, "less"),
        (PENALTY, {"divergence": lambda values: 0 * values + 0.665}, "same"),
        (HEAD_COUNT, {"accuracy": lambda values: 0 * values + 2}, "one"),
        (SPLIT_INPUT, {"accuracy": lambda values: 0 * values}, "none"),
    ],
)
def test_the_outcome_of_a_prediction_follows_the_numbers(experiment: str, changes: dict[str, Any], option: str) -> None:
    result = lab.load_stored(experiment)
    shown = result.runs[0]
    other = replace(shown, **{name: change(getattr(shown, name)) for name, change in changes.items()})
    outcome = EXPERIMENTS[experiment].outcome
    assert outcome(result).option != option
    assert outcome(replace(result, runs=(other, *result.runs[1:]))).option == option


def test_two_heads_that_do_not_stay_equal_are_two() -> None:
    result = lab.load_stored(PAIR)
    three, four = result.runs
    outcome = EXPERIMENTS[PAIR].outcome
    assert outcome(result).option == "three"
    assert outcome(replace(result, runs=(three, replace(four, same=~four.same)))).option == "four"


def test_how_many_answers_are_lost_without_any_head_decides_the_prediction() -> None:
    result = lab.load_stored(CURRENT)
    assert result.removal is not None
    for last, option in ((1.0, "none"), (0.8, "some"), (0.13, "all")):
        curve = np.array([1.0, 1.0, 1.0, 1.0, last])
        outcome = EXPERIMENTS[CURRENT].outcome(replace(result, removal=replace(result.removal, least=curve)))
        assert outcome.option == option


def test_how_many_heads_can_go_decides_the_prediction_of_removal() -> None:
    result = lab.load_stored(REMOVAL)
    assert result.removal is not None
    heads = result.runs[0].heads
    for spare, option in ((0, "none"), (heads // 2, "half"), (heads, "most")):
        curve = np.where(np.arange(heads + 1) <= spare, 1.0, 0.2)
        outcome = EXPERIMENTS[REMOVAL].outcome(replace(result, removal=replace(result.removal, least=curve)))
        assert outcome.option == option
        assert outcome.evidence.startswith(f"{spare} of {heads} can be removed")


def test_the_estimated_work_grows_with_every_setting_that_takes_time() -> None:
    usual = EXPERIMENTS[REMOVAL].default
    for more in ({"steps": 800}, {"heads": 16}, {"d_model": 64}):
        assert estimate.estimate_seconds(replace(usual, **more)) > estimate.estimate_seconds(usual)
    assert estimate.estimate_seconds(EXPERIMENTS[HEAD_COUNT].default) > 2 * estimate.estimate_seconds(
        EXPERIMENTS[IDENTICAL].default
    )
    assert 0 < estimate.time_probe() < 60


def test_weights_that_point_away_from_each_other_are_different() -> None:
    assert changed(RANDOM_START, weight_cosines=lambda w: -0.7 * np.ones_like(w))[1].answer


def test_removal_by_importance_says_how_many_heads_are_removed() -> None:
    result = lab.load_stored(REMOVAL)
    assert result.removal is not None
    evidence = statements_of(result)[1].evidence
    assert f"With 4 of 8 heads removed, {percent(result.removal.least[4])} of the answers are right" in evidence


def test_a_layer_that_learned_nothing_proves_nothing() -> None:
    result = lab.load_stored(REMOVAL)
    assert result.removal is not None
    guessing = replace(result.removal, least=np.full_like(result.removal.least, 0.125))
    statement = statements_of(replace(result, removal=guessing))[0]
    assert not statement.answer
    assert statement.evidence.startswith("This layer has learned almost nothing")


def test_a_stored_run_is_what_the_code_gives_today() -> None:
    default = EXPERIMENTS[IDENTICAL].default
    settings = default if lanes.everything else replace(default, steps=60)  # the same steps, of which it does the first
    fresh, stored = run(settings).runs[0], lab.load_stored(IDENTICAL).runs[0]
    _, ours, theirs = np.intersect1d(fresh.steps, stored.steps, return_indices=True)
    assert len(ours) >= 5
    np.testing.assert_allclose(fresh.loss[ours], stored.loss[theirs], rtol=1e-4)
    np.testing.assert_allclose(fresh.gradients[ours], stored.gradients[theirs], rtol=1e-3)
    np.testing.assert_allclose(fresh.accuracy[ours], stored.accuracy[theirs], atol=5e-3)
    np.testing.assert_allclose(fresh.maps[ours], stored.maps[theirs], atol=2e-3)


def test_accuracy_is_one_thing_on_the_page() -> None:
    result = lab.load_stored(REMOVAL)
    assert result.removal is not None
    assert result.removal.least[0] == pytest.approx(result.runs[0].final_accuracy, abs=1e-6)


def test_statements_of_the_penalty_follow_the_numbers() -> None:
    result = lab.load_stored(PENALTY)
    swapped = statements_of(replace(result, runs=result.runs[::-1]))
    assert [s.answer for s in swapped[:2]] == [False, False]
    assert all(s.is_surprising for s in swapped[:2])


def test_the_stored_costs_are_equal_for_every_number_of_heads() -> None:
    runs = lab.load_stored(HEAD_COUNT).runs
    assert [run.heads for run in runs] == [1, 2, 4, 8, 16, 32]
    assert len({(run.parameters, run.multiply_adds) for run in runs}) == 1


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"x" * 100, lab.stored_path(IDENTICAL).read_bytes()[:-200]])
def test_files_that_are_no_run_are_refused(data: bytes) -> None:
    with pytest.raises(record.ResultUnreadable):
        record.from_bytes(data)


# ---- Charts -----------------------------------------------------------------------------------------------


def test_curves_mark_the_step_in_view_and_name_first_and_last() -> None:
    training_run = lab.load_stored(IDENTICAL).runs[0]
    steps = training_run.steps.tolist()
    figure = plotly(charts.draw_curves(steps, [charts.TrainingCurve("loss", training_run.loss, 0)], 3, LIGHT, log=True))
    assert figure.layout.shapes[0].x0 == 3
    assert figure.layout.xaxis.ticktext[0] == "0"
    assert figure.layout.xaxis.ticktext[-1] == "300"
    assert plotly(charts.draw_curves([0, 1], [charts.TrainingCurve("zero", np.zeros(2), 0)], 0, DARK, log=True))


def test_removal_is_drawn_as_measured() -> None:
    removal = lab.load_stored(REMOVAL).removal
    assert removal is not None
    figure = plotly(charts.draw_removal_curves(removal.least, removal.most, removal.random, LIGHT))
    shown = {trace.name: trace.y for trace in figure.data}
    assert np.array_equal(shown["least important first"], removal.least)
    np.testing.assert_allclose(shown["at random"], removal.random.mean(0))
    bars = plotly(charts.draw_importance(removal.importance, removal.order, LIGHT)).data[0]
    assert list(bars.y) == sorted(removal.importance.tolist())
