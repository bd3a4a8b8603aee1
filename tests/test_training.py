"""The training lab: symmetry to the last bit, gradients by hand, costs counted, what is measured."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mha_viz.analysis.costs import CUTS, Shape, count_multiply_adds, count_parameters
from mha_viz.analysis.distance import divergence
from mha_viz.errors import Cancelled, Failed, SettingError
from mha_viz.lab import lab, record, tasks
from mha_viz.lab.attention import (
    ALL_RANDOM,
    SAME_ALL,
    SAME_QKV,
    attend,
    compute_penalty,
    draw_initial_heads,
    iter_wide_matrices,
)
from mha_viz.lab.experiments import (
    ExperimentProgress,
    compute_cosines,
    compute_importance,
    compute_loss,
    grade,
    make_model,
    measure,
    remove_heads,
    run,
    train,
)
from mha_viz.lab.lab import (
    CURRENT,
    EQUAL_PAIR,
    EXPERIMENTS,
    HEAD_COUNT,
    IDENTICAL,
    OUTPUT,
    PAIR,
    PENALTY,
    SAME_TWO,
    SPLIT_INPUT,
)
from mha_viz.lab.lab import RANDOM as RANDOM_START
from mha_viz.lab.record import Settings, choose_recorded_steps
from mha_viz.lab.statements import count_removable, select_pairs
from mha_viz.lab.tasks import CHANCE, LETTERS, WORDS, draw_sentences
from mha_viz.models.reading.encoder import Encoder
from tests import lanes

pytestmark = pytest.mark.usefixtures("one_thread")


def short(experiment: str, steps: int = 2, **changes: Any) -> Settings:
    """A run of a few steps."""
    return replace(EXPERIMENTS[experiment].default, steps=steps, **changes)


# ---- Symmetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "heads", "steps"), [(32, 4, 200), (48, 3, 20), (64, 8, 20)])
def test_heads_that_start_alike_stay_bit_identical(d_model: int, heads: int, steps: int) -> None:
    training_run = run(
        Settings(IDENTICAL, heads=heads, d_model=d_model, steps=200 if lanes.everything else steps)
    ).runs[0]
    assert training_run.steps[-1] >= steps
    assert training_run.same.all()
    assert not training_run.difference.any()
    assert not training_run.output_difference.any()
    assert np.array_equal(training_run.maps, np.broadcast_to(training_run.maps[:, :1], training_run.maps.shape))
    assert np.ptp(training_run.gradients, axis=1).max() == 0
    if steps == 200:
        assert training_run.loss[-1] < training_run.loss[0] - 0.5  # they have learned something


def test_heads_part_at_the_first_step_when_only_their_slices_of_w_o_differ() -> None:
    training_run = run(short(OUTPUT, steps=1)).runs[0]
    assert training_run.steps.tolist() == [0, 1]
    assert not training_run.difference[0].any()
    assert select_pairs(training_run.output_difference[0]).min() > 0
    assert select_pairs(training_run.difference[1]).min() > 0
    assert select_pairs(training_run.gradient_cosines[0]).max() < 0.999
    assert (
        select_pairs(training_run.output_gradient_cosines[0]).min() > 1 - 1e-6
    )  # all heads pass the same vectors to W_O


def test_a_random_start_is_different_from_the_beginning() -> None:
    training_run = run(short(RANDOM_START, steps=1)).runs[0]
    assert not select_pairs(training_run.same[0]).any()
    assert np.abs(select_pairs(training_run.weight_cosines[0])).max() < 0.3


def test_the_gradient_comes_through_the_heads_own_slice_of_w_o() -> None:
    """d_model 4, two heads, two words: with Y = Σ_h C_h O_h and C_h = A_h V_h, ∂L/∂C_h = G O_hᵀ; all in numpy."""
    heads = draw_initial_heads(Shape(4, 2), torch.Generator().manual_seed(1), SAME_QKV)
    x = torch.randn(1, 2, 4, generator=torch.Generator().manual_seed(2))
    wanted = torch.randn(2, 4, generator=torch.Generator().manual_seed(3))  # G = ∂L/∂Y
    (attend(heads, heads.slice_by_head(), x).head_outputs.sum(0) * wanted).sum().backward()
    X, G = x[0].numpy(), wanted.numpy()  # noqa: N806  [word, d_model]
    for h in range(2):
        q, k, v, o = (w.detach().numpy()[h] for w in heads.tensors())
        scores = X @ q @ (X @ k).T / np.sqrt(2)
        maps = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        to_context = G @ o.T  # through this head's slice only
        to_maps = to_context @ (X @ v).T
        to_scores = maps * (to_maps - (to_maps * maps).sum(1, keepdims=True)) / np.sqrt(2)
        expected = (X.T @ to_scores @ X @ k, X.T @ to_scores.T @ X @ q, X.T @ maps.T @ to_context, (maps @ X @ v).T @ G)
        for weight, by_hand in zip(heads.tensors(), expected, strict=True):
            assert weight.grad is not None
            np.testing.assert_allclose(weight.grad.numpy()[h], by_hand, atol=1e-5)
    assert heads.output.grad is not None
    assert heads.value.grad is not None
    assert torch.equal(heads.output.grad[0], heads.output.grad[1])
    assert not torch.allclose(heads.value.grad[0], heads.value.grad[1])


def test_the_start_that_is_asked_for() -> None:
    for start, alike in (
        (ALL_RANDOM, (False, False)),
        (SAME_QKV, (True, False)),
        (SAME_ALL, (True, True)),
        (SAME_TWO, (False, False)),
    ):
        heads = draw_initial_heads(Shape(16, 4), torch.Generator().manual_seed(0), start)
        same = [all(torch.equal(w[0], one) for one in w) for w in (heads.query, heads.output)]
        assert tuple(same) == alike
    with pytest.raises(SettingError):
        draw_initial_heads(Shape(16, 4), torch.Generator(), "another")


# ---- What a head is worth ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3 if lanes.everything else 1))
def test_two_equal_heads_are_one_head_with_twice_its_slice_of_w_o(seed: int) -> None:
    steps, shape = 300 if lanes.everything else 40, EXPERIMENTS[PAIR].layers(Settings(PAIR))[EQUAL_PAIR]
    model = make_model(shape, seed, SAME_TWO)
    settings = Settings(PAIR, seed=seed, steps=steps)
    (before, after) = train(model, settings, 0.0, (0, steps), lambda _: None)
    assert after["same"][2, 3]
    assert after["same"].sum() == 4 + 2, "no other two are equal"
    assert after["loss"] < before["loss"] - 0.5
    probe = draw_sentences(256, (seed, 1))
    with torch.no_grad():
        parts = model.attend(probe, model.heads.slice_by_head()).head_outputs
        three = torch.stack([parts[0], parts[1], 2 * parts[2]])
        torch.testing.assert_close(model.logits(three, probe), model.logits(parts, probe), atol=1e-4, rtol=1e-4)
        assert (
            grade(model.logits(parts[:3], probe), probe)[1].mean() < grade(model.logits(three, probe), probe)[1].mean()
        )


@pytest.mark.parametrize("seed", range(3 if lanes.everything else 1))
def test_all_heads_are_redundant_where_only_the_current_position_matters(seed: int) -> None:
    result = run(short(CURRENT, steps=300 if lanes.everything else 100, seed=seed))
    removal, training_run = result.removal, result.runs[0]
    assert removal is not None
    assert removal.least[0] > 0.99
    assert removal.least[-1] > 0.99, "with no head at all"
    assert select_pairs(training_run.divergence[-1]).min() > 0.1, "they differ, which serves nothing"
    assert result.places[:, 0].tolist() == list(range(WORDS))
    assert EXPERIMENTS[CURRENT].outcome(result).option == "none"


def test_the_same_task_without_the_residual_connection_needs_its_heads() -> None:
    model = make_model(Shape(32, 4), 0, task=tasks.OWN_LETTER._replace(is_residual=False))
    list(train(model, Settings(CURRENT), 0.0, (0, 100), lambda _: None))
    removal = remove_heads(model, 0)
    assert removal.least[0] > 0.95
    assert removal.least[-1] == pytest.approx(CHANCE, abs=0.03)


# ---- The layer and its cost -------------------------------------------------------------------------------


def test_heads_apart_are_the_papers_wide_matrices() -> None:
    heads = draw_initial_heads(Shape(16, 4), torch.Generator().manual_seed(0))
    x = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(1))
    query, key, value, output = iter_wide_matrices(heads)
    assert query.shape == (16, 16)
    split = [(x @ w).view(3, 5, 4, 4).transpose(1, 2) for w in (query, key, value)]
    joined = torch.nn.functional.scaled_dot_product_attention(*split).transpose(1, 2).reshape(3, 5, 16)
    ours = attend(heads, heads.slice_by_head(), x)
    torch.testing.assert_close(ours.head_outputs.sum(0).view(3, 5, 16), joined @ output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.maps.sum(-1), torch.ones(4, 3, 5))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_costs_are_those_that_can_be_counted(cut: str, heads: int) -> None:
    shape = Shape(16, heads, cut)
    layer = draw_initial_heads(shape, torch.Generator().manual_seed(0))
    assert count_parameters(shape) == sum(w.numel() for w in layer.tensors())
    with FlopCounterMode(display=False) as counter:
        attend(layer, layer.slice_by_head(), torch.zeros(1, 7, 16))
    assert count_multiply_adds(shape, 7) == counter.get_total_flops() / 2


def test_heads_cost_nothing_and_cuts_save() -> None:
    full = {(count_parameters(s), count_multiply_adds(s, 12)) for h in (1, 2, 4, 8, 16) if (s := Shape(64, h))}
    assert full == {(4 * 64 * 64, 12 * 4 * 64 * 64 + 2 * 12 * 12 * 64)}
    sizes = [count_parameters(Shape(64, 8, cut)) for cut in CUTS]
    assert sizes[0] > sizes[3] > sizes[1] > sizes[2]


def test_a_chunk_is_all_that_a_head_of_a_cut_vector_sees() -> None:
    for cut, seen in (("narrow", 4), ("shared", 4), ("overlapping", 8)):
        heads = draw_initial_heads(Shape(16, 4, cut), torch.Generator().manual_seed(0))
        assert heads.columns is not None
        assert heads.columns.shape == (4, seen)
        x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(1))
        elsewhere = sorted(set(range(16)) - set(heads.columns[0].tolist()))
        other = x.clone()
        other[:, :, elsewhere] += 1
        maps = [attend(heads, heads.slice_by_head(), one).maps[0] for one in (x, other)]
        assert torch.equal(*maps)


@pytest.mark.parametrize("shape", [Shape(16, 3), Shape(0, 1), Shape(16, 0), Shape(16, 4, "diagonal")])
def test_layers_that_cannot_be_are_refused(shape: Shape) -> None:
    with pytest.raises(SettingError):
        shape.check()


# ---- The language -----------------------------------------------------------------------------------------


def test_answers_are_the_letters_at_the_two_places() -> None:
    sample = draw_sentences(20, (1,))
    for s in range(20):
        letters, marks = sample.letters[s].tolist(), sample.marks[s].tolist()
        assert all(marks.count(mark) == 2 for mark in marks)
        for i in range(WORDS):
            linked = next(j for j in range(WORDS) if j != i and marks[j] == marks[i])
            assert sample.places[s, i].tolist() == [i - 1, linked]
            assert sample.answers[s, i].tolist() == [letters[i - 1] if i else -1, letters[linked]]
    assert sample.words(0)[0] == LETTERS[sample.letters[0, 0]] + tasks.MARKS[sample.marks[0, 0]]
    assert np.array_equal(sample.letters, draw_sentences(20, (1,)).letters)
    assert not np.array_equal(sample.letters, draw_sentences(20, (2,)).letters)


# ---- What is measured ------------------------------------------------------------------------------------


def test_measures_of_one_moment_are_those_of_their_definitions() -> None:
    model, probe = make_model(Shape(16, 2), 3), draw_sentences(32, (5,))
    values = measure(model, probe)
    attended = model.attend(probe, model.heads.slice_by_head())
    maps = attended.maps.detach().numpy()
    np.testing.assert_array_equal(values["maps"], maps[:, 0])
    of_heads = model.heads.slice_by_head().query.detach().numpy()  # [head, d_model, d_k]
    np.testing.assert_array_equal(values["queries"][1], np.concatenate([of_heads[1, row] for row in range(4)]))
    rows = maps.reshape(2, -1, WORDS)
    assert values["divergence"][0, 1] == pytest.approx(divergence(rows[0], rows[1]), abs=1e-9)
    assert values["overlap"][0, 1] == pytest.approx(float((rows[0] * rows[1]).sum(1).mean()), abs=1e-6)
    grams = np.einsum("hrj,krj->rhk", rows, rows) - np.eye(2)
    assert values["penalty"] == pytest.approx(float((grams**2).sum((1, 2)).mean()), rel=1e-5)
    given = [maps[1, s, i, probe.places[s, i, 1]] for s in range(32) for i in range(WORDS)]
    assert values["relation_weights"][1, 1] == pytest.approx(np.mean(given), rel=1e-5)
    answers = model.logits(attended.head_outputs, probe).argmax(-1).numpy()
    assert values["accuracy"][1] == pytest.approx((answers == probe.answers)[:, 1:, 1].mean())


def test_the_norm_of_a_heads_gradient_is_that_of_its_slices() -> None:
    model, probe = make_model(Shape(16, 2), 3), draw_sentences(8, (5,))
    compute_loss(model.logits(model.attend(probe, model.heads.slice_by_head()).head_outputs, probe), probe).backward()
    slices = [torch.cat([w.grad[h].flatten() for w in model.heads.tensors()]) for h in range(2)]  # type: ignore[index]
    values = measure(model, probe)
    np.testing.assert_allclose(values["gradients"], [one.norm().item() for one in slices], rtol=1e-5)


def test_cosines_of_known_rows() -> None:
    values = compute_cosines(np.array([[1.0, 0], [0, 2], [3, 3], [0, 0]], np.float32))
    np.testing.assert_allclose(values[0], [1, 0, 0.5**0.5, 0], atol=1e-12)


def test_the_penalty_is_nothing_for_heads_that_point_at_different_words() -> None:
    maps = torch.eye(3)[:2].view(2, 1, 1, 3).repeat(1, 4, 3, 1)
    assert compute_penalty(maps).item() == 0
    assert compute_penalty(maps[:1].repeat(2, 1, 1, 1)).item() == 2


def test_importance_is_the_mean_of_absolute_products_per_word() -> None:
    model, probe = make_model(Shape(16, 4), 0), draw_sentences(8, (5,))
    values = compute_importance(model, probe)
    attended = model.attend(probe, model.heads.slice_by_head())
    attended.contexts.retain_grad()
    compute_loss(model.logits(attended.head_outputs, probe), probe).backward()
    assert attended.contexts.grad is not None
    products = (attended.contexts * attended.contexts.grad).detach().numpy()  # [head, word, d_k]
    by_hand = np.abs(products.sum(2)).mean(1)
    np.testing.assert_allclose(values, by_hand / np.linalg.norm(by_hand), rtol=1e-4)
    assert np.linalg.norm(values) == pytest.approx(1)


def test_a_removed_head_is_a_slice_of_the_concatenation_set_to_zero() -> None:
    model = make_model(Shape(16, 4), 0)
    removal = remove_heads(model, 0)
    assert removal.least[0] == removal.most[0] == removal.random[0, 0]
    assert removal.least[-1] == removal.most[-1] == pytest.approx(CHANCE, abs=0.03)
    first = int(removal.order[0])
    with torch.no_grad():
        model.heads.output[first] = 0
        probe = draw_sentences(256, (0, 1))
        logits = model.logits(model.attend(probe, model.heads.slice_by_head()).head_outputs, probe)
    assert removal.least[1] == pytest.approx((logits.argmax(-1).numpy() == probe.answers)[:, 1:].mean())


def test_heads_that_can_go() -> None:
    assert count_removable(np.array([1.0, 0.999, 0.992, 0.8, 0.995])) == 2
    assert count_removable(np.array([0.5, 0.1])) == 0
    assert count_removable(np.array([0.5, 0.5, 0.5])) == 2


# ---- Runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_runs_and_can_be_kept(experiment: str) -> None:
    progress: list[ExperimentProgress] = []
    result = run(short(experiment, d_model=16, heads=4), progress.append)
    assert progress[0].fraction == 0
    assert progress[-1].fraction == 1
    again = record.from_bytes(record.to_bytes(result))
    assert (again.settings, again.words) == (result.settings, result.words)
    for original, loaded in zip(result.runs, again.runs, strict=True):
        for field in fields(original):
            mine, theirs = getattr(original, field.name), getattr(loaded, field.name)
            if isinstance(mine, np.ndarray):
                np.testing.assert_allclose(mine, theirs, atol=2e-3)
            else:
                assert mine == theirs
    assert (again.removal is None) == (result.removal is None)
    answers = EXPERIMENTS[again.settings.experiment].statements(again)
    assert len(answers) >= 3
    assert all("nan" not in s.evidence for s in answers)


def test_the_same_seed_gives_the_same_run_and_touches_no_other_chance() -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first, second, other = (run(short(RANDOM_START, seed=seed)).runs[0] for seed in (1, 1, 2))
    assert np.array_equal(first.loss, second.loss)
    assert np.array_equal(first.maps, second.maps)
    assert not np.array_equal(first.loss, other.loss)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads


def test_both_trainings_of_the_penalty_start_alike_and_only_one_is_punished() -> None:
    free, punished = run(short(PENALTY, steps=40 if lanes.everything else 8, weight=1.0)).runs
    assert np.array_equal(free.maps[0], punished.maps[0])
    assert punished.penalty[-1] < free.penalty[-1]
    same = run(short(PENALTY, steps=3, weight=0.0)).runs
    assert np.array_equal(same[0].loss, same[1].loss)


def test_a_run_is_stopped_in_the_middle() -> None:
    progress: list[ExperimentProgress] = []
    with pytest.raises(Cancelled):
        run(short(IDENTICAL, steps=50), progress.append, lambda: len(progress) == 5)
    assert len(progress) == 5


def test_recorded_steps_begin_closely_and_end_at_the_last() -> None:
    for steps in (1, 2, 5, 300, 2000):
        chosen = choose_recorded_steps(steps, 24)
        assert chosen[:2] == (0, 1)
        assert chosen[-1] == steps
        assert list(chosen) == sorted(set(chosen))
        assert len(chosen) <= 26


@pytest.mark.parametrize(
    ("experiment", "changes", "field"),
    [
        (IDENTICAL, {"heads": 5}, "heads"),
        (IDENTICAL, {"heads": 1}, "heads"),
        (IDENTICAL, {"steps": 0}, "steps"),
        (IDENTICAL, {"steps": 10**9}, "steps"),
        (IDENTICAL, {"seed": -1}, "seed"),
        (PENALTY, {"weight": -0.1}, "weight"),
        (PENALTY, {"weight": float("nan")}, "weight"),
        (HEAD_COUNT, {"d_model": 20}, "d_model"),
        (SPLIT_INPUT, {"d_model": 10**6}, "d_model"),
    ],
)
def test_bad_settings_are_named(experiment: str, changes: dict[str, Any], field: str) -> None:
    settings = replace(EXPERIMENTS[experiment].default, **changes)
    assert list(lab.find_setting_errors(settings)) == [field]
    with pytest.raises(SettingError):
        run(settings)


@pytest.mark.app
def test_a_child_process_gives_the_same_run_while_others_read(minilm: Encoder) -> None:
    progress: list[float] = []
    settings, read = short(OUTPUT, steps=20), minilm.encode("The cat sat.").weights

    def look(fraction: float) -> None:
        progress.append(fraction)
        np.testing.assert_array_equal(minilm.encode("The cat sat.").weights, read)

    there, here = lab.run(settings, look, lambda: False), run(settings)
    assert len(progress) > 2
    assert progress == sorted(progress)
    assert there.settings == settings
    np.testing.assert_allclose(there.runs[0].loss, here.runs[0].loss, rtol=1e-4)


@pytest.mark.app
def test_a_child_process_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Child(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **how: Any) -> None:
            super().__init__(*args, **how)
            begun.append(self)

    monkeypatch.setattr(subprocess, "Popen", Child)
    with pytest.raises(Cancelled):
        lab.run(short(OUTPUT, steps=EXPERIMENTS[OUTPUT].max_steps), lambda _: None, lambda: True)
    (child,) = begun
    assert child.poll() is not None, "the process is gone"
    with pytest.raises(SettingError):
        lab.run(short(OUTPUT, steps=0), lambda _: None, lambda: False)


@pytest.mark.app
@pytest.mark.slow
def test_two_who_train_and_one_who_reads_do_not_disturb_each_other(minilm: Encoder) -> None:
    asked = short(RANDOM_START, seed=1), short(RANDOM_START, seed=2)
    alone, read = [run(settings) for settings in asked], minilm.encode("The cat sat.").weights
    with ThreadPoolExecutor(2) as pool:
        together = [pool.submit(lab.run, settings, lambda _: None, lambda: False) for settings in asked]
        while wait(together, timeout=0.05).not_done:  # polling all the time would take a core from both
            np.testing.assert_array_equal(minilm.encode("The cat sat.").weights, read)
    for one, future in zip(alone, together, strict=True):
        np.testing.assert_allclose(future.result().runs[0].loss, one.runs[0].loss, rtol=1e-5)


def test_a_child_process_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Failed):
        lab.run(short(OUTPUT), lambda _: None, lambda: False)
