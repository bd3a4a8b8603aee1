"""The seven experiments of the training lab: small trainings of one attention layer, watched head by head.

The layer reads the language of :mod:`mha_viz.training.tasks`; both answers are read from the sum of the heads' outputs
by one linear map, so that whatever has to be looked up, heads must look up. There is no residual stream and no
feed-forward layer to do the work instead.

``OMP_NUM_THREADS=1 python -m mha_viz.training.experiments --store`` writes the default runs to ``assets/lab``: on
matrices this small a second thread costs more than it brings. Without it this is the child process of
:mod:`mha_viz.training.apart`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mha_viz import apart
from mha_viz.analysis import costs
from mha_viz.analysis.costs import Shape
from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.errors import Cancelled
from mha_viz.training import tasks
from mha_viz.training.attention import (
    RANDOM,
    SAME_ALL,
    SAME_QKV,
    Attended,
    Heads,
    Slices,
    attend,
    begin,
    drawn,
    penalty,
)
from mha_viz.training.record import (
    COUNT,
    CUT,
    EXPERIMENTS,
    IDENTICAL,
    OUTPUT,
    PENALTY,
    REMOVAL,
    Arm,
    Array,
    Removal,
    Result,
    Settings,
    check,
    shapes,
    stored_at,
    to_bytes,
)
from mha_viz.training.record import RANDOM as RANDOM_START
from mha_viz.training.tasks import LETTERS, MARKS, RELATIONS, WORDS, Sentences

BATCH = 32  # sentences of a step; a multiple of 16 lays the numbers of every head out alike in memory
PROBE = 256  # sentences that are measured and never trained on
COMPARED = 32  # of these, for what is compared between every two heads
RATE = 0.01  # of Adam
MOMENTS = {1: 24, 2: 20}  # recorded steps of a run with so many trainings, ...
FEWER_MOMENTS = 12  # ... and of one with more
ORDERS = 50  # random orders in which heads are removed
_TRAINED_ON, _MEASURED_ON, _ORDERS = range(3)  # streams of chance that a seed gives


class Progress(NamedTuple):
    """Where a run stands: steps of all trainings together."""

    step: int
    steps: int

    @property
    def fraction(self) -> float:
        """The share that is done."""
        return self.step / self.steps


Tell = Callable[[Progress], None]
Stop = Callable[[], bool]


@dataclass(frozen=True)
class Reader:
    """A layer of heads with the vectors of letters, marks and places before it and a linear answer behind it."""

    heads: Heads
    letters: Tensor  # [letter, d_model]
    marks: Tensor  # [mark, d_model]
    places: Tensor  # [word, d_model]
    answer: Tensor  # [d_model, relation · letter]

    def learned(self) -> tuple[Tensor, ...]:
        """Everything that training changes."""
        return *self.heads.tensors(), self.letters, self.marks, self.places, self.answer

    def read(self, of: Sentences, slices: Slices) -> Attended:
        """What the heads make of sentences."""
        letters, marks = torch.from_numpy(of.letters), torch.from_numpy(of.marks)
        return attend(self.heads, slices, self.letters[letters] + self.marks[marks] + self.places)

    def answers(self, parts: Tensor) -> Tensor:
        """Logits [sentence, word, relation, letter] from what heads add, ``parts`` [head, sentence · word, d_model]."""
        return (parts.sum(dim=0) @ self.answer).view(-1, WORDS, len(RELATIONS), len(LETTERS))


def reader(shape: Shape, seed: int, start: str = RANDOM) -> Reader:
    """A reader before training; the seed decides everything, and no other chance in the process is touched."""
    generator = torch.Generator().manual_seed(seed)
    d_model = shape.d_model
    heads = begin(shape, generator, start)
    axes = [(len(LETTERS), d_model), (len(MARKS), d_model), (WORDS, d_model), (d_model, len(RELATIONS) * len(LETTERS))]
    letters, marks, places, answer = (drawn(generator, *a, scale=d_model**-0.5).requires_grad_() for a in axes)
    return Reader(heads, letters, marks, places, answer)


def loss_of(logits: Tensor, of: Sentences) -> Tensor:
    """Mean cross-entropy of the answers, in nats."""
    asked = torch.from_numpy(of.answers)
    return functional.cross_entropy(logits.flatten(0, 2), asked.flatten(), ignore_index=-1)


# ---- The experiments ------------------------------------------------------------------------------------


def identical(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """1: every head starts with the same weights, its slice of W_O included."""
    return _result(settings, _trained(settings, tell, stop, start=SAME_ALL))


def output(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """2: W_Q, W_K and W_V are the same for all heads, only the slices of W_O differ."""
    return _result(settings, _trained(settings, tell, stop, start=SAME_QKV))


def random(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """3: every weight is drawn at random; the loss holds nothing that keeps heads apart."""
    return _result(settings, _trained(settings, tell, stop))


def punished(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """4: the same start twice, without and with λ·‖A Aᵀ − I‖_F² in the loss."""
    return _result(settings, _trained(settings, tell, stop, weights=(0.0, settings.weight)))


def count(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """5: one head, two, four, …, with d_k = d_model / h."""
    return _result(settings, _trained(settings, tell, stop))


def cut(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """6: the vector projected in full, cut into chunks with a matrix each or one for all, and into random chunks."""
    return _result(settings, _trained(settings, tell, stop))


def removal(settings: Settings, tell: Tell, stop: Stop) -> Result:
    """7: a trained layer loses head after head, least important first and in random orders."""
    trained = _trained(settings, tell, stop)
    return _result(settings, trained, removed(trained[0][1], settings.seed))


RUNS: Mapping[str, Callable[[Settings, Tell, Stop], Result]] = MappingProxyType(
    {
        IDENTICAL: identical,
        OUTPUT: output,
        RANDOM_START: random,
        PENALTY: punished,
        COUNT: count,
        CUT: cut,
        REMOVAL: removal,
    }
)


def run(settings: Settings, progress: Tell = lambda _: None, cancelled: Stop = lambda: False) -> Result:
    """Run an experiment. The same settings give the same result on the same machine. Raises SettingError, Cancelled."""
    check(settings)
    return RUNS[settings.experiment](settings, progress, cancelled)


def _result(settings: Settings, trained: list[tuple[Arm, Reader]], removal: Removal | None = None) -> Result:
    probe = _probe(settings.seed)
    return Result(settings, probe.words(0), probe.places[0], tuple(arm for arm, _ in trained), removal)


def _trained(
    settings: Settings, tell: Tell, stop: Stop, start: str = RANDOM, weights: tuple[float, ...] = (0.0,)
) -> list[tuple[Arm, Reader]]:
    """Train every layer of a run from the same seed; ``weights``: λ of each, or one for all."""
    layers = shapes(settings)
    of_each = weights if len(weights) == len(layers) else weights * len(layers)
    found = []
    for number, ((label, shape), weight) in enumerate(zip(layers.items(), of_each, strict=True)):

        def report(step: int, done: int = number * settings.steps) -> None:
            if stop():
                raise Cancelled("The training was stopped.", "Run it again.")
            tell(Progress(done + step, len(layers) * settings.steps))

        read = reader(shape, settings.seed, start)
        moments = recorded(settings.steps, MOMENTS.get(len(layers), FEWER_MOMENTS))
        arm = _arm(label, shape, list(_train(read, settings, weight, moments, report)))
        found.append((arm, read))
    return found


def recorded(steps: int, moments: int) -> tuple[int, ...]:
    """Steps that are recorded: close together at first, the last one included. Step 0 is before any update."""
    spread = np.expm1(np.linspace(0, np.log1p(steps), moments)).round().astype(int).tolist()
    return tuple(sorted({0, min(1, steps), *spread, steps}))


def _train(
    read: Reader, settings: Settings, weight: float, moments: tuple[int, ...], report: Callable[[int], None]
) -> Iterator[dict[str, Array | float]]:
    """Adam over fresh sentences; what is measured at every recorded moment, before the update of that step."""
    probe = _probe(settings.seed)
    optimiser = torch.optim.Adam(read.learned(), lr=RATE, foreach=False)  # number by number: equal heads stay equal
    for step in range(settings.steps + 1):
        if step in moments:
            yield {"steps": step, **measured(read, probe)}
        report(step)
        if step == settings.steps:
            return
        batch = tasks.sentences(BATCH, (settings.seed, _TRAINED_ON, step))
        attended = read.read(batch, read.heads.of_each_head())
        objective = loss_of(read.answers(attended.parts), batch)
        if weight:
            objective = objective + weight * penalty(attended.maps)
        optimiser.zero_grad()
        objective.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _probe(seed: int) -> Sentences:
    return tasks.sentences(PROBE, (seed, _MEASURED_ON))


# ---- What is measured -----------------------------------------------------------------------------------


def measured(read: Reader, probe: Sentences) -> dict[str, Array | float]:
    """What :class:`Arm` holds of one moment."""
    slices = read.heads.of_each_head()
    attended = read.read(probe, slices)
    logits = read.answers(attended.parts)
    loss = loss_of(logits, probe)
    gradients = torch.autograd.grad(loss, slices)
    weights = _flat(tuple(w.detach() for w in slices))
    maps = attended.maps.detach()
    with torch.no_grad():
        right, accuracy = marked(logits, probe)
        return {
            "maps": maps[:, 0].numpy().copy(),
            "looks": looks(maps.numpy(), probe.places),
            "weights": cosines(weights),
            **_equality(weights, 3 * slices.query[0].numel()),
            **_rows_compared(maps[:, :COMPARED].numpy()),
            "pulls": cosines(_flat(gradients[:3])),
            "output_pulls": cosines(_flat(gradients[3:])),
            "gradients": np.linalg.norm(_flat(gradients), axis=1),
            "loss": loss.item(),
            "penalty": penalty(maps).item(),
            "accuracy": accuracy,
            "both": right.all(axis=-1).mean(),
        }


def marked(logits: Tensor, probe: Sentences) -> tuple[Array, Array]:
    """Which answers are right [sentence, word but the first, relation], and the share of each relation. Nothing is
    asked of what stands before the first word, so it counts nowhere."""
    right: Array = (logits.argmax(-1).numpy() == probe.answers)[:, 1:]
    return right, right.mean(axis=(0, 1))


def _flat(slices: tuple[Tensor, ...]) -> Array:
    """The slices of every head as one row: [head, number]."""
    joined: Array = torch.cat([w.reshape(len(w), -1) for w in slices], dim=1).numpy()
    return joined


def cosines(rows: Array) -> Array:
    """[row, row]: the cosine of every two rows; 0 where one of them is all zeros."""
    exact = rows.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1)
    unit = exact / np.where(norms > 0, norms, 1.0)[:, None]
    return np.clip(unit @ unit.T, -1, 1)


def _equality(weights: Array, inputs: int) -> dict[str, Array]:
    """The largest difference between two heads' numbers, of the first ``inputs`` (W_Q, W_K, W_V) and of the others
    (W_O), and whether all bits are equal: [head, head] each."""
    difference = np.abs(weights[:, None] - weights[None])
    bits = weights.view(np.int32)
    return {
        "difference": difference[..., :inputs].max(axis=2),
        "output_difference": difference[..., inputs:].max(axis=2),
        "same": (bits[:, None] == bits[None]).all(axis=2),
    }


def _rows_compared(maps: Array) -> dict[str, Array]:
    """Of maps [head, sentence, query, key], for every two heads: Jensen–Shannon divergence and overlap of rows."""
    exact = maps.astype(np.float64).reshape(len(maps), -1, maps.shape[-1])  # [head, row, key]
    own = entropy(exact).mean(axis=1)
    mixed = np.stack([entropy((exact + one) / 2).mean(axis=1) for one in exact])  # [head, head]
    divergence = jensen_shannon(mixed, own[:, None], own[None])
    overlap = np.einsum("arj,brj->ab", exact, exact, optimize=True) / exact.shape[1]
    return {"divergence": divergence, "overlap": overlap}


def looks(maps: Array, places: Array) -> Array:
    """[head, relation]: mean weight that a head gives to the word that the relation points at."""
    found = np.take_along_axis(maps, np.maximum(places, 0)[None], axis=3)  # [head, sentence, word, relation]
    asked = places >= 0
    by_relation = [found[..., r][:, asked[..., r]].mean(axis=1) for r in range(places.shape[-1])]
    return np.stack(by_relation, axis=1)


def _arm(label: str, shape: Shape, moments: list[dict[str, Array | float]]) -> Arm:
    arrays = {name: _narrowed(np.stack([moment[name] for moment in moments])) for name in moments[0]}
    return Arm(label, shape.heads, costs.parameters(shape), costs.multiply_adds(shape, WORDS), **arrays)


def _narrowed(values: Array) -> Array:
    kept = values.astype(np.float32) if values.dtype == np.float64 else values
    kept.flags.writeable = False
    return kept


# ---- Removing heads -------------------------------------------------------------------------------------


def removed(read: Reader, seed: int) -> Removal:
    """Take heads away, their slice of the concatenation set to zero; nothing is trained afterwards."""
    probe = _probe(seed)
    weights = importance(read, probe)
    order = np.argsort(weights, kind="stable")
    with torch.no_grad():
        parts = read.read(probe, read.heads.of_each_head()).parts
        chance = np.random.default_rng((seed, _ORDERS))
        orders = [chance.permutation(len(order)) for _ in range(ORDERS)]
        curves = [_losing(read, probe, parts, one) for one in (order, order[::-1], *orders)]
    return Removal(weights, order, curves[0], curves[1], np.stack(curves[2:]))


def importance(read: Reader, probe: Sentences) -> Array:
    """I_h = E |Att_h · ∂L/∂Att_h| (Michel et al. 2019): per word, on what the head hands to W_O; Euclidean norm 1."""
    attended = read.read(probe, read.heads.of_each_head())
    (gradient,) = torch.autograd.grad(loss_of(read.answers(attended.parts), probe), (attended.contexts,))
    found = (attended.contexts * gradient).sum(dim=2).abs().mean(dim=1).detach().numpy().astype(np.float64)
    return found / max(float(np.linalg.norm(found)), 1e-30)


def _losing(read: Reader, probe: Sentences, parts: Tensor, order: Array) -> Array:
    """[removed + 1]: share of right answers while heads go in this order."""
    return np.array([_share(read, probe, parts[sorted(order[gone:].tolist())]) for gone in range(len(order) + 1)])


def _share(read: Reader, probe: Sentences, parts: Tensor) -> float:
    return float(marked(read.answers(parts), probe)[1].mean())


# ---- The command and the child process -------------------------------------------------------------------


def _store() -> None:
    for name, experiment in EXPERIMENTS.items():
        data = to_bytes(run(experiment.default))
        stored_at(name).parent.mkdir(exist_ok=True)
        stored_at(name).write_bytes(data)
        print(f"{stored_at(name)}: {len(data):,} bytes")


def _asked(order: bytes, tell: apart.Tell, stop: Stop) -> bytes:
    """The run of settings that come as JSON."""

    def progress(so_far: Progress) -> None:
        if so_far.step % 5 == 0:
            tell(so_far.fraction)

    return to_bytes(run(Settings(**json.loads(order)), progress, stop))


if __name__ == "__main__":
    _store() if "--store" in sys.argv else sys.exit(__doc__) if sys.stdin.isatty() else apart.serve(_asked)
