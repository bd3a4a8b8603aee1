"""The settings and results of the training lab's experiments, and the files of results. Only numbers: reading a result
needs no torch."""

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
FORMAT = 3
MAX_BYTES = 8_000_000  # the most bytes of a file that is read
STRIP = 32  # numbers of each head's W_Q that a run records


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

    Everything is measured on held-out sentences, before the update of that step: ``steps`` [S]; ``maps``
    [S, h, query, key] of the first sentence; ``relation_weights`` [S, h, relation], mean weight on the correct word of
    each relation; ``queries`` [S, h, number], the first STRIP numbers of a head's W_Q, row by row, or all of fewer.

    For every two heads [S, h, h]: ``weight_cosines``, cosine of their slices of W_Q, W_K, W_V, W_O concatenated;
    ``difference``, the largest difference between two numbers of W_Q, W_K, W_V, and ``output_difference``, of W_O;
    ``same``, whether all four are equal to the last bit; ``divergence``, Jensen–Shannon divergence of their rows in
    nats; ``overlap``, mean over rows of the sum of A_a[i, j] · A_b[i, j]; ``gradient_cosines``, cosine of their
    gradients of W_Q, W_K, W_V concatenated, and ``output_gradient_cosines``, of W_O.

    ``gradients`` [S, h], norm of a head's gradient. For the whole layer [S]: ``loss`` without the penalty, ``penalty``
    without λ, ``accuracy`` [S, relation], ``both``, the share of words with both answers right. ``multiply_adds``: of
    the layer for one sentence.
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
    def right(self) -> float:
        """Accuracy over both relations after the last step."""
        return float(self.accuracy[-1].mean())


@dataclass(frozen=True, eq=False)
class RemovedHeads:
    """Heads removed from a trained layer: ``importance`` [h] (Michel et al. 2019), ``order`` [h] from the least
    important head; accuracy [removed + 1] when the ``least`` important heads go first, when the ``most`` important go
    first, and in ``random`` orders [order, removed + 1]."""

    importance: Array
    order: Array
    least: Array
    most: Array
    random: Array


@dataclass(frozen=True, eq=False)
class Result:
    """The result of an experiment: one run or several that are compared. ``words``: the sentence whose maps are shown;
    ``places`` [word, relation]: the position of the correct word, −1 where there is none."""

    settings: Settings
    words: tuple[str, ...]
    places: Array
    runs: tuple[TrainingRun, ...]
    removal: RemovedHeads | None = None


_HALF = ("maps", "relation_weights", "queries", "overlap", "divergence")  # stored with half precision


def to_bytes(result: Result) -> bytes:
    """A result as the bytes of an NPZ file; maps and their comparisons are stored with half precision."""
    arrays: dict[str, Array] = {"places": result.places}
    descriptions: list[dict[str, Any]] = []  # labels and counts
    for number, run in enumerate(result.runs):
        values = {field.name: getattr(run, field.name) for field in fields(run)}
        stored = {name: v for name, v in values.items() if isinstance(v, np.ndarray)}
        arrays |= {f"{number}.{name}": v.astype(np.float16) if name in _HALF else v for name, v in stored.items()}
        descriptions.append({name: v for name, v in values.items() if not isinstance(v, np.ndarray)})
    if result.removal is not None:
        arrays |= {f"removal.{field.name}": getattr(result.removal, field.name) for field in fields(RemovedHeads)}
    header = {"format": FORMAT, "settings": asdict(result.settings), "words": result.words, "runs": descriptions}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> Result:
    """The result that :func:`to_bytes` wrote. Raises ResultUnreadable."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError("too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            arrays = {name: _frozen(file[name]) for name in file.files if name != "header"}
        runs = tuple(
            TrainingRun(**description, **_part(arrays, f"{i}.")) for i, description in enumerate(header["runs"])
        )
        removal = _part(arrays, "removal.")
        return Result(
            Settings(**header["settings"]),
            tuple(header["words"]),
            arrays["places"],
            runs,
            RemovedHeads(**removal) if removal else None,
        )
    except Exception as error:
        raise ResultUnreadable("This is not a result of the training lab.", "Run the experiment again.") from error


def _frozen(values: Array) -> Array:
    values = values.astype(np.float32) if values.dtype == np.float16 else values
    values.flags.writeable = False
    return values


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def recorded_count(runs: int) -> int:
    """About how many steps are recorded of each run of an experiment with this many runs."""
    return {1: 24, 2: 20}.get(runs, 12)


def recorded_steps(steps: int, count: int) -> tuple[int, ...]:
    """About ``count`` steps to record: close together at first, the last one included. Step 0 is before any update."""
    spread = np.expm1(np.linspace(0, np.log1p(steps), count)).round().astype(int).tolist()
    return tuple(sorted({0, min(1, steps), *spread, steps}))
