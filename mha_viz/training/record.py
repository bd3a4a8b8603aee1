"""The settings of the training lab's experiments and their results. Only numbers: reading a result needs no torch."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.costs import CUTS, Shape, undivided
from mha_viz.errors import ResultUnreadable, SettingError
from mha_viz.files.assets import asset
from mha_viz.numerals import counted

IDENTICAL, OUTPUT, RANDOM, PENALTY, COUNT, CUT, REMOVAL = (
    "identical", "output", "random", "penalty", "count", "cut", "removal",
)  # fmt: skip

Field = Literal["seed", "heads", "d_model", "steps", "weight"]
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


class Experiment(NamedTuple):
    """One experiment: its number, its default settings, the settings it uses, and the number of steps that takes about
    half a minute."""

    number: int
    default: Settings
    asks: tuple[Field, ...]
    most_steps: int


_USUAL: tuple[Field, ...] = ("heads", "d_model", "steps", "seed")
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        IDENTICAL: Experiment(1, Settings(IDENTICAL), _USUAL, 1500),
        OUTPUT: Experiment(2, Settings(OUTPUT), _USUAL, 1500),
        RANDOM: Experiment(3, Settings(RANDOM), _USUAL, 1500),
        PENALTY: Experiment(4, Settings(PENALTY, weight=0.3), ("weight", *_USUAL), 800),
        COUNT: Experiment(5, Settings(COUNT, heads=32), ("d_model", "steps", "seed"), 400),
        CUT: Experiment(6, Settings(CUT, heads=8), _USUAL, 500),
        REMOVAL: Experiment(7, Settings(REMOVAL, heads=8, steps=400), _USUAL, 1500),
    }
)
MOST_HEADS, WIDTHS, MOST_WEIGHT, MOST_SEED = 16, (16, 32, 48, 64), 100.0, 2**31 - 1


def experiment_named(name: str | None) -> str:
    """The experiment with this name or number; the first experiment for anything else."""
    by_number = {str(experiment.number): key for key, experiment in EXPERIMENTS.items()}
    return name if name and name in EXPERIMENTS else by_number.get(name or "", IDENTICAL)


def faults(settings: Settings) -> dict[Field, SettingError]:
    """The invalid settings, each with its error; empty when the experiment can be run."""
    experiment = EXPERIMENTS[settings.experiment]
    checks = {
        "seed": _whole("The seed", settings.seed, 0, MOST_SEED),
        "d_model": _width(settings.d_model),
        "steps": _whole("The number of steps", settings.steps, 1, experiment.most_steps),
        "heads": _whole("The number of heads", settings.heads, 2, MOST_HEADS),
        "weight": _weight(settings.weight),
    }
    errors = {name: error for name, error in checks.items() if error is not None and name in experiment.asks}
    if "heads" in experiment.asks and not errors.keys() & {"heads", "d_model"}:
        error = undivided(settings.d_model, settings.heads, 2, MOST_HEADS)
        errors |= {"heads": error} if error else {}
    return {name: errors[name] for name in experiment.asks if name in errors}


def check(settings: Settings) -> None:
    """Raise SettingError for the first invalid setting."""
    for error in faults(settings).values():
        raise error


def _whole(name: str, value: int, least: int, most: int) -> SettingError | None:
    if least <= value <= most:
        return None
    return SettingError(f"{name} is {value}.", f"It can be {least:,} to {most:,}.")


def _width(value: int) -> SettingError | None:
    """Check that d_model is a multiple of 16, so that every head is aligned alike in memory and rounded alike (see
    :mod:`mha_viz.training.attention`)."""
    if value in WIDTHS:
        return None
    return SettingError(f"d_model is {value}.", f"It can be {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]}.")


def _weight(value: float) -> SettingError | None:
    if 0 <= value <= MOST_WEIGHT:
        return None
    reward = "A negative λ would reward heads for being alike. " if value < 0 else ""
    return SettingError(f"λ is {value:g}.", f"{reward}It can be 0 to {MOST_WEIGHT:g}.")


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
        arrays |= {f"{number}.{name}": _stored(name, v) for name, v in values.items() if isinstance(v, np.ndarray)}
        descriptions.append({name: v for name, v in values.items() if not isinstance(v, np.ndarray)})
    if result.removal is not None:
        arrays |= {f"removal.{field.name}": getattr(result.removal, field.name) for field in fields(RemovedHeads)}
    header = {"format": FORMAT, "settings": asdict(result.settings), "words": result.words, "runs": descriptions}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _stored(name: str, values: Array) -> Array:
    return values.astype(np.float16) if name in _HALF else values


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


def stored_at(experiment: str) -> Path:
    """The file that holds the result of an experiment's default settings."""
    return asset("lab") / f"{experiment}.npz"


@cache
def stored(experiment: str) -> Result:
    """The result of an experiment's default settings, shipped with the app. Raises ResultUnreadable."""
    try:
        data = stored_at(experiment).read_bytes()
    except OSError as error:
        raise ResultUnreadable(f"The stored result of “{experiment}” is missing.", "Run the experiment.") from error
    return from_bytes(data)


def shapes(settings: Settings) -> dict[str, Shape]:
    """The layers that an experiment trains, by the label of each run."""
    if settings.experiment == COUNT:
        counts = [2**power for power in range(7) if settings.d_model % 2**power == 0]
        return {_heads(h): Shape(settings.d_model, h) for h in counts if h <= EXPERIMENTS[COUNT].default.heads}
    full = Shape(settings.d_model, settings.heads)
    if settings.experiment == CUT:
        names = ("in full", "chunks", "chunks, shared", "random chunks")
        return {name: full._replace(cut=cut) for name, cut in zip(names, CUTS, strict=True)}
    if settings.experiment == PENALTY:
        return {"without the penalty": full, f"with λ = {settings.weight:g}": full}
    return {_heads(settings.heads): full}


def recorded_count(runs: int) -> int:
    """About how many steps are recorded of each run of an experiment with this many runs."""
    return {1: 24, 2: 20}.get(runs, 12)


def recorded_steps(steps: int, count: int) -> tuple[int, ...]:
    """About ``count`` steps to record: close together at first, the last one included. Step 0 is before any update."""
    spread = np.expm1(np.linspace(0, np.log1p(steps), count)).round().astype(int).tolist()
    return tuple(sorted({0, min(1, steps), *spread, steps}))


def _heads(count: int) -> str:
    return counted(count, "head")


def size(result: Result) -> int:
    """The approximate number of bytes of a result in memory."""
    arrays = [value for run in result.runs for value in vars(run).values() if isinstance(value, np.ndarray)]
    return 10_000 + sum(values.nbytes for values in arrays)
