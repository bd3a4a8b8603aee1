"""The experiments of the training lab: small trainings of one attention layer, recorded head by head.

The layer learns a task of :mod:`mha_viz.lab.tasks`. One linear map reads the answers from the sum of the head
outputs, so that information can move between words only through attention heads. There is no feed-forward layer, and a
residual connection only if the task has one.

``OMP_NUM_THREADS=1 python -m mha_viz.lab.experiments --store`` writes the results of the default settings to
``assets/lab``; with matrices this small a second thread costs more than it gains. Without ``--store`` this is the child
process of :mod:`mha_viz.lab.lab`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mha_viz.analysis import costs
from mha_viz.analysis.costs import Shape
from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.errors import Cancelled
from mha_viz.lab import tasks
from mha_viz.lab.attention import (
    AttentionOutput,
    Heads,
    Slices,
    attend,
    compute_penalty,
    draw_initial_heads,
    draw_normal,
)
from mha_viz.lab.lab import ALL_RANDOM, EXPERIMENTS, check_settings, stored_path
from mha_viz.lab.record import (
    RECORDED_WEIGHTS,
    Array,
    RemovedHeads,
    Result,
    Settings,
    TrainingRun,
    choose_recorded_count,
    choose_recorded_steps,
    to_bytes,
)
from mha_viz.lab.tasks import LETTERS, MARKS, TWO_RELATIONS, WORDS, LabTask, Sentences
from mha_viz.process import children

BATCH = 32  # sentences per step; a multiple of 16 aligns the numbers of every head alike in memory
HELD_OUT_SENTENCES = 256  # sentences to measure on, never trained on
COMPARED_SENTENCES = 32  # number of held-out sentences on which heads are compared in pairs
LEARNING_RATE = 0.01  # of Adam
RANDOM_ORDERS = 50  # random orders in which heads are removed
_TRAINING, _HELD_OUT, _ORDERS = range(3)  # independent random streams derived from one seed


class ExperimentProgress(NamedTuple):
    """The progress of an experiment: steps of all its runs together."""

    step: int
    steps: int

    @property
    def fraction(self) -> float:
        """The completed fraction, from 0 to 1."""
        return self.step / self.steps


ReportExperiment = Callable[[ExperimentProgress], None]
IsCancelled = Callable[[], bool]


@dataclass(frozen=True)
class SmallModel:
    """One attention layer between embeddings of letter, mark and position and a linear classifier."""

    task: LabTask
    heads: Heads
    letters: Tensor  # [letter, d_model]
    marks: Tensor  # [mark, d_model]
    positions: Tensor  # [word, d_model]
    classifier: Tensor  # [d_model, relation · letter]

    def parameters(self) -> tuple[Tensor, ...]:
        """Return all trainable weights."""
        return *self.heads.tensors(), self.letters, self.marks, self.positions, self.classifier

    def embed(self, sentences: Sentences) -> Tensor:
        """Return the embeddings x [sentence, word, d_model], the input of all heads."""
        letters, marks = torch.from_numpy(sentences.letters), torch.from_numpy(sentences.marks)
        return self.letters[letters] + self.marks[marks] + self.positions

    def attend(self, sentences: Sentences, slices: Slices) -> AttentionOutput:
        """Compute the attention of all heads on sentences."""
        return attend(self.heads, slices, self.embed(sentences))

    def logits(self, head_outputs: Tensor, sentences: Sentences) -> Tensor:
        """Return the logits, [sentence, word, relation, letter], for the ``head_outputs``.

        ``head_outputs`` is [head, sentence · word, d_model]. If the task has a residual connection, the embeddings x
        are added.
        """
        layer_output = head_outputs.sum(dim=0)
        layer_output = layer_output + self.embed(sentences).flatten(0, 1) if self.task.is_residual else layer_output
        return (layer_output @ self.classifier).view(-1, WORDS, len(self.task.relations), len(LETTERS))


def make_model(shape: Shape, seed: int, start: str = ALL_RANDOM, task: LabTask = TWO_RELATIONS) -> SmallModel:
    """Return an untrained model that depends on the seed alone; torch's global generator is not used."""
    generator = torch.Generator().manual_seed(seed)
    d_model = shape.d_model
    heads = draw_initial_heads(shape, generator, start)
    answers = len(task.relations) * len(LETTERS)
    shapes = [(len(LETTERS), d_model), (len(MARKS), d_model), (WORDS, d_model), (d_model, answers)]
    weights = (draw_normal(generator, *sizes, scale=d_model**-0.5).requires_grad_() for sizes in shapes)
    return SmallModel(task, heads, *weights)


def compute_loss(logits: Tensor, sentences: Sentences) -> Tensor:
    """Return the mean cross-entropy of the answers, in nats."""
    answers = torch.from_numpy(sentences.answers)
    return functional.cross_entropy(logits.flatten(0, 2), answers.flatten(), ignore_index=-1)


# ---- The experiments ------------------------------------------------------------------------------------


def run(
    settings: Settings, progress: ReportExperiment = lambda _: None, cancelled: IsCancelled = lambda: False
) -> Result:
    """Run an experiment. Equal settings give equal results on one machine. Raises SettingError and Cancelled."""
    check_settings(settings)
    runs_and_models = _train_runs(settings, progress, cancelled)
    removes_heads = EXPERIMENTS[settings.experiment].removes_heads
    removal = remove_heads(runs_and_models[0][1], settings.seed) if removes_heads else None
    held_out = _draw_held_out(settings.seed, EXPERIMENTS[settings.experiment].task)
    return Result(settings, held_out.words(0), held_out.places[0], tuple(run for run, _ in runs_and_models), removal)


def _train_runs(
    settings: Settings, report: ReportExperiment, cancelled: IsCancelled
) -> list[tuple[TrainingRun, SmallModel]]:
    """Train every layer of an experiment from the same seed."""
    experiment = EXPERIMENTS[settings.experiment]
    layers = experiment.layers(settings)
    runs_and_models = []
    for number, (label, shape) in enumerate(layers.items()):

        def on_step(step: int, steps_before: int = number * settings.steps) -> None:
            if cancelled():
                raise Cancelled("The training was stopped.", "Run it again.")
            report(ExperimentProgress(steps_before + step, len(layers) * settings.steps))

        weight = settings.weight if experiment.is_penalised and number == len(layers) - 1 else 0.0
        start = experiment.starts.get(label, experiment.start)
        model = make_model(shape, settings.seed, start, experiment.task)
        steps = choose_recorded_steps(settings.steps, choose_recorded_count(len(layers)))
        measurements = list(train(model, settings, weight, steps, on_step))
        arrays = dict[str, Array]()
        for name in measurements[0]:
            values = np.stack([step_values[name] for step_values in measurements])
            arrays[name] = values.astype(np.float32) if values.dtype == np.float64 else values
            arrays[name].flags.writeable = False
        parameters, multiply_adds = costs.count_parameters(shape), costs.count_multiply_adds(shape, WORDS)
        runs_and_models.append((TrainingRun(label, shape.heads, parameters, multiply_adds, **arrays), model))
    return runs_and_models


def train(
    model: SmallModel,
    settings: Settings,
    weight: float,
    recorded_steps: tuple[int, ...],
    on_step: Callable[[int], None],
) -> Iterator[dict[str, Array | float]]:
    """Train with Adam on new sentences at every step; yield measurements at recorded steps, before the update."""
    held_out = _draw_held_out(settings.seed, model.task)
    # foreach=False updates each number separately, so that equal heads stay equal
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, foreach=False)
    for step in range(settings.steps + 1):
        if step in recorded_steps:
            yield {"steps": step, **measure(model, held_out)}
        on_step(step)
        if step == settings.steps:
            return
        batch = tasks.draw_sentences(BATCH, (settings.seed, _TRAINING, step), model.task)
        output = model.attend(batch, model.heads.slice_by_head())
        objective = compute_loss(model.logits(output.head_outputs, batch), batch)
        if weight:
            objective = objective + weight * compute_penalty(output.maps)
        optimiser.zero_grad()
        objective.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _draw_held_out(seed: int, task: LabTask) -> Sentences:
    """Return the held-out sentences of a task."""
    return tasks.draw_sentences(HELD_OUT_SENTENCES, (seed, _HELD_OUT), task)


# ---- Measurements ---------------------------------------------------------------------------------------


def measure(model: SmallModel, held_out: Sentences) -> dict[str, Array | float]:
    """Return the values of :class:`TrainingRun` at one step."""
    slices = model.heads.slice_by_head()
    output = model.attend(held_out, slices)
    logits = model.logits(output.head_outputs, held_out)
    loss = compute_loss(logits, held_out)
    gradients = torch.autograd.grad(loss, slices)
    weights = _flatten_slices(tuple(w.detach() for w in slices))
    maps = output.maps.detach()
    with torch.no_grad():
        is_right, accuracy = grade(logits, held_out)
        return {
            "maps": maps[:, 0].numpy().copy(),
            "relation_weights": compute_relation_weights(maps.numpy(), held_out.places),
            "queries": weights[:, : min(RECORDED_WEIGHTS, slices.query[0].numel())].copy(),
            "weight_cosines": compute_cosines(weights),
            **_compare_weights(weights, 3 * slices.query[0].numel()),
            **_compare_maps(maps[:, :COMPARED_SENTENCES].numpy()),
            "gradient_cosines": compute_cosines(_flatten_slices(gradients[:3])),
            "output_gradient_cosines": compute_cosines(_flatten_slices(gradients[3:])),
            "gradients": np.linalg.norm(_flatten_slices(gradients), axis=1),
            "loss": loss.item(),
            "penalty": compute_penalty(maps).item(),
            "accuracy": accuracy,
            "both": is_right.all(axis=-1).mean(),
        }


def grade(logits: Tensor, held_out: Sentences) -> tuple[Array, Array]:
    """Return which answers are right [sentence, word, relation], and the accuracy of each relation.

    The first word is left out, because no word precedes it.
    """
    is_right: Array = (logits.argmax(-1).numpy() == held_out.answers)[:, 1:]
    return is_right, is_right.mean(axis=(0, 1))


def _flatten_slices(slices: tuple[Tensor, ...]) -> Array:
    """Concatenate the slices of every head into one row: [head, number]."""
    rows: Array = torch.cat([w.reshape(len(w), -1) for w in slices], dim=1).numpy()
    return rows


def compute_cosines(rows: Array) -> Array:
    """Return the cosine of every two rows, [row, row]; 0 where a row is all zeros."""
    values = rows.astype(np.float64)
    norms = np.linalg.norm(values, axis=1)
    unit_rows = values / np.where(norms > 0, norms, 1.0)[:, None]
    return np.clip(unit_rows @ unit_rows.T, -1, 1)


def _compare_weights(weights: Array, input_count: int) -> dict[str, Array]:
    """Compare the weights of every two heads, [head, head].

    Return the largest difference between their first ``input_count`` numbers (W_Q, W_K, W_V), the largest difference
    between the other numbers (W_O), and whether all bits are equal.
    """
    difference = np.abs(weights[:, None] - weights[None])
    bits = weights.view(np.int32)
    return {
        "difference": difference[..., :input_count].max(axis=2),
        "output_difference": difference[..., input_count:].max(axis=2),
        "same": (bits[:, None] == bits[None]).all(axis=2),
    }


def _compare_maps(maps: Array) -> dict[str, Array]:
    """Return the mean Jensen–Shannon divergence and overlap of the rows of every two heads, [head, head].

    ``maps`` is [head, sentence, query, key].
    """
    rows = maps.astype(np.float64).reshape(len(maps), -1, maps.shape[-1])  # [head, row, key]
    entropies = entropy(rows).mean(axis=1)  # [head]
    mixture_entropies = np.stack([entropy((rows + other) / 2).mean(axis=1) for other in rows])  # [head, head]
    divergence = jensen_shannon(mixture_entropies, entropies[:, None], entropies[None])
    overlap = np.einsum("arj,brj->ab", rows, rows, optimize=True) / rows.shape[1]
    return {"divergence": divergence, "overlap": overlap}


def compute_relation_weights(maps: Array, places: Array) -> Array:
    """Return each head's mean weight on the correct word of each relation, [head, relation]."""
    weights = np.take_along_axis(maps, np.maximum(places, 0)[None], axis=3)  # [head, sentence, word, relation]
    has_answer = places >= 0
    by_relation = [weights[..., r][:, has_answer[..., r]].mean(axis=1) for r in range(places.shape[-1])]
    return np.stack(by_relation, axis=1)


# ---- Removing heads -------------------------------------------------------------------------------------


def remove_heads(model: SmallModel, seed: int) -> RemovedHeads:
    """Remove heads one by one, in many orders and without retraining, and measure the accuracy.

    A head is removed by zeroing its slice of the concatenation.
    """
    held_out = _draw_held_out(seed, model.task)
    importance = compute_importance(model, held_out)
    order = np.argsort(importance, kind="stable")
    with torch.no_grad():
        head_outputs = model.attend(held_out, model.heads.slice_by_head()).head_outputs
        rng = np.random.default_rng((seed, _ORDERS))
        orders = [rng.permutation(len(order)) for _ in range(RANDOM_ORDERS)]
        curves = list[Array]()  # for each order [removed + 1], the accuracy after removing 0, 1, 2, … heads
        for removal_order in (order, order[::-1], *orders):
            remaining_heads = [sorted(removal_order[count:].tolist()) for count in range(len(removal_order) + 1)]
            grades = [grade(model.logits(head_outputs[heads], held_out), held_out)[1] for heads in remaining_heads]
            curves.append(np.array([float(accuracies.mean()) for accuracies in grades]))
    return RemovedHeads(importance, order, curves[0], curves[1], np.stack(curves[2:]))


def compute_importance(model: SmallModel, held_out: Sentences) -> Array:
    """Return I_h = E |Att_h · ∂L/∂Att_h| (Michel et al. 2019), scaled to Euclidean norm 1.

    The expectation is the mean over words, and Att_h is the head output before W_O.
    """
    output = model.attend(held_out, model.heads.slice_by_head())
    loss = compute_loss(model.logits(output.head_outputs, held_out), held_out)
    (gradient,) = torch.autograd.grad(loss, (output.contexts,))
    values = (output.contexts * gradient).sum(dim=2).abs().mean(dim=1).detach().numpy().astype(np.float64)
    return values / max(float(np.linalg.norm(values)), 1e-30)


# ---- The command and the child process -------------------------------------------------------------------


def _store_defaults() -> None:
    """Run all experiments with their default settings and store the results in ``assets/lab``."""
    for name, experiment in EXPERIMENTS.items():
        data = to_bytes(run(experiment.default))
        stored_path(name).parent.mkdir(exist_ok=True)
        stored_path(name).write_bytes(data)
        print(f"{stored_path(name)}: {len(data):,} bytes")


def _run_request(request: dict[str, Any], report: children.ReportProgress, cancelled: IsCancelled) -> bytes:
    """Run an experiment with the requested settings and return the result as bytes."""

    def progress(state: ExperimentProgress) -> None:
        if state.step % 5 == 0:
            report(state.fraction)

    return to_bytes(run(Settings(**request), progress, cancelled))


if __name__ == "__main__":
    _store_defaults() if "--store" in sys.argv else sys.exit(__doc__) if sys.stdin.isatty() else children.serve(
        _run_request
    )
