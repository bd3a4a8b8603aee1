"""The settings and results of the training lab's experiments, and the files of results.

Everything is plain numbers, so reading a result does not need torch.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.errors import ResultUnreadable

Array = npt.NDArray[Any]
FORMAT = 3  # version of the files
MAX_BYTES = 8_000_000  # larger files are not read
RECORDED_WEIGHTS = 32  # maximum number of numbers of each head's W_Q that a run records


@dataclass(frozen=True)
class Settings:
    """The settings of one experiment; equal settings give equal numbers. ``weight`` is λ, the weight of the penalty."""

    experiment: str
    seed: int = 0
    heads: int = 4
    d_model: int = 32
    steps: int = 300
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """One run, that is one training of one layer: S recorded steps, h heads, n words.

    All values are measured on held-out sentences, before the update of that step.

    Attributes:
        steps: [S], the recorded steps.
        maps: attention on the first sentence, [S, h, query, key].
        relation_weights: mean weight on the correct word of each relation, [S, h, relation].
        queries: the first RECORDED_WEIGHTS numbers of a head's W_Q, row by row, or all if there are fewer,
            [S, h, number].
        weight_cosines: cosine of the slices of W_Q, W_K, W_V, W_O concatenated, for each pair of heads, [S, h, h].
        difference: the largest difference between corresponding numbers of W_Q, W_K, W_V, [S, h, h].
        output_difference: the same for W_O, [S, h, h].
        same: whether W_Q, W_K, W_V and W_O are equal to the last bit, [S, h, h].
        divergence: Jensen–Shannon divergence of rows in nats, [S, h, h].
        overlap: mean over rows of the sum of A_a[i, j] · A_b[i, j], [S, h, h].
        gradient_cosines: cosine of the gradients of W_Q, W_K, W_V concatenated, [S, h, h].
        output_gradient_cosines: cosine of the gradients of W_O, [S, h, h].
        gradients: norm of a head's gradient, [S, h].
        loss: the cross-entropy, without the penalty, [S].
        penalty: ‖A Aᵀ − I‖_F², without λ, [S].
        accuracy: [S, relation].
        both: the share of words with both answers right, [S].
        multiply_adds: the number of multiply-adds for one sentence.
    """

    label: str
    heads: int
    parameters: int
    multiply_adds: int
    steps: Array
    maps: Array
    relation_weights: Array
    queries: Array
    weight_cosines: Array
    difference: Array
    output_difference: Array
    same: Array
    divergence: Array
    overlap: Array
    gradient_cosines: Array
    output_gradient_cosines: Array
    gradients: Array
    loss: Array
    penalty: Array
    accuracy: Array
    both: Array

    @property
    def final_accuracy(self) -> float:
        """Accuracy over both relations after the last step."""
        return float(self.accuracy[-1].mean())


@dataclass(frozen=True, eq=False)
class RemovedHeads:
    """Accuracy of a trained layer as its heads are removed.

    Attributes:
        importance: [h] (Michel et al. 2019).
        order: [h], from the least important head on.
        least: accuracy [removed + 1] when the least important heads are removed first.
        most: accuracy [removed + 1] when the most important heads are removed first.
        random: accuracy in random orders, [order, removed + 1].
    """

    importance: Array
    order: Array
    least: Array
    most: Array
    random: Array


@dataclass(frozen=True, eq=False)
class Result:
    """The result of an experiment.

    Attributes:
        settings: of the experiment.
        words: the sentence whose maps are shown.
        places: the position of the correct word, [word, relation]; −1 where there is none.
        runs: one run, or several to compare.
        removal: accuracy as heads are removed, if the experiment removes heads.
    """

    settings: Settings
    words: tuple[str, ...]
    places: Array
    runs: tuple[TrainingRun, ...]
    removal: RemovedHeads | None = None


_HALF_PRECISION = ("maps", "relation_weights", "queries", "overlap", "divergence")  # stored with half precision


def to_bytes(result: Result) -> bytes:
    """Return a result as the bytes of an NPZ file; maps and their comparisons are stored with half precision."""
    arrays: dict[str, Array] = {"places": result.places}
    descriptions: list[dict[str, Any]] = []  # labels and counts
    for number, run in enumerate(result.runs):
        values = {field.name: getattr(run, field.name) for field in fields(run)}
        run_arrays = {name: array for name, array in values.items() if isinstance(array, np.ndarray)}
        arrays |= {
            f"{number}.{name}": array.astype(np.float16) if name in _HALF_PRECISION else array
            for name, array in run_arrays.items()
        }
        descriptions.append({name: value for name, value in values.items() if not isinstance(value, np.ndarray)})
    if result.removal is not None:
        arrays |= {f"removal.{field.name}": getattr(result.removal, field.name) for field in fields(RemovedHeads)}
    header = {"format": FORMAT, "settings": asdict(result.settings), "words": result.words, "runs": descriptions}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> Result:
    """Return the result that :func:`to_bytes` wrote. Raises ResultUnreadable."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError("too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            arrays = {name: _freeze(file[name]) for name in file.files if name != "header"}
        runs = tuple(
            TrainingRun(**description, **_select_prefix(arrays, f"{i}."))
            for i, description in enumerate(header["runs"])
        )
        removal = _select_prefix(arrays, "removal.")
        return Result(
            Settings(**header["settings"]),
            tuple(header["words"]),
            arrays["places"],
            runs,
            RemovedHeads(**removal) if removal else None,
        )
    except Exception as error:
        raise ResultUnreadable(
            "This is no result that the training lab can read.", "Run the experiment again."
        ) from error


def _freeze(values: Array) -> Array:
    """Return values as read-only, with half precision converted to float32."""
    values = values.astype(np.float32) if values.dtype == np.float16 else values
    values.flags.writeable = False
    return values


def _select_prefix(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names have a prefix, by name without the prefix."""
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def choose_recorded_count(runs: int) -> int:
    """Return the approximate number of steps that each of ``runs`` runs of an experiment records."""
    return {1: 24, 2: 20}.get(runs, 12)


def choose_recorded_steps(steps: int, count: int) -> tuple[int, ...]:
    """Choose about ``count`` steps to record, dense at first, including step 0 (before any update) and the last."""
    spaced_steps = np.expm1(np.linspace(0, np.log1p(steps), count)).round().astype(int).tolist()
    return tuple(sorted({0, min(1, steps), *spaced_steps, steps}))
