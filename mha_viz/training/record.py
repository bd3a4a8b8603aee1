"""What a run of the training lab asks for and what it leaves behind. Numbers only: reading one needs no torch."""

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
from mha_viz.assets import asset
from mha_viz.errors import MhaVizError, SettingError

IDENTICAL, OUTPUT, RANDOM, PENALTY, COUNT, CUT, REMOVAL = (
    "identical", "output", "random", "penalty", "count", "cut", "removal",
)  # fmt: skip

Field = Literal["seed", "heads", "d_model", "steps", "weight"]
Array = npt.NDArray[Any]
FORMAT = 1
LARGEST = 8_000_000  # bytes of a file that is read


@dataclass(frozen=True)
class Settings:
    """One run: the same settings give the same numbers. ``weight`` is λ, the weight of the penalty."""

    experiment: str
    seed: int = 0
    heads: int = 4
    d_model: int = 32
    steps: int = 300
    weight: float = 0.0


class Experiment(NamedTuple):
    """One experiment: its number, its default settings, the settings that matter to it, and the most steps that stay
    under half a minute."""

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


def known(name: str | None) -> str:
    """The experiment of this name or number; the first one for anything else."""
    by_number = {str(experiment.number): key for key, experiment in EXPERIMENTS.items()}
    return name if name and name in EXPERIMENTS else by_number.get(name or "", IDENTICAL)


def faults(settings: Settings) -> dict[Field, SettingError]:
    """What is wrong with the settings, at the setting where it is wrong; empty when they can be run."""
    experiment = EXPERIMENTS[settings.experiment]
    checks = {
        "seed": _whole("The seed", settings.seed, 0, MOST_SEED),
        "d_model": _width(settings.d_model),
        "steps": _whole("The number of steps", settings.steps, 1, experiment.most_steps),
        "heads": _whole("The number of heads", settings.heads, 2, MOST_HEADS),
        "weight": _weight(settings.weight),
    }
    found = {name: error for name, error in checks.items() if error is not None and name in experiment.asks}
    if "heads" in experiment.asks and not found.keys() & {"heads", "d_model"}:
        error = undivided(settings.d_model, settings.heads, 2, MOST_HEADS)
        found |= {"heads": error} if error else {}
    return {name: found[name] for name in experiment.asks if name in found}


def check(settings: Settings) -> None:
    """Raise SettingError when the settings cannot be run."""
    for error in faults(settings).values():
        raise error


def _whole(name: str, value: int, least: int, most: int) -> SettingError | None:
    if least <= value <= most:
        return None
    return SettingError(f"{name} is {value}.", f"It can be {least:,} to {most:,}.")


def _width(value: int) -> SettingError | None:
    """Multiples of 16: then the numbers of every head begin at the same place of a cache line, and libraries that
    multiply matrices round alike for all of them (see :mod:`mha_viz.training.attention`)."""
    if value in WIDTHS:
        return None
    return SettingError(f"d_model is {value}.", f"It can be {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]}.")


def _weight(value: float) -> SettingError | None:
    if 0 <= value <= MOST_WEIGHT:
        return None
    reward = "A negative λ would reward heads for being alike. " if value < 0 else ""
    return SettingError(f"λ is {value:g}.", f"{reward}It can be 0 to {MOST_WEIGHT:g}.")


@dataclass(frozen=True, eq=False)
class Arm:
    """One training: S recorded steps, h heads, n words.

    All is measured on sentences that are not trained on, before the update of that step: ``steps`` [S]; ``maps``
    [S, h, query, key] of the first sentence; ``looks`` [S, h, relation], mean weight on the right word of each
    relation.

    Of every two heads [S, h, h]: ``weights``, cosine of their slices of W_Q, W_K, W_V, W_O joined; ``difference``, the
    largest difference between two numbers of W_Q, W_K, W_V, and ``output_difference``, of W_O; ``same``, whether all
    four are equal to the last bit; ``divergence``, Jensen–Shannon of their rows in nats; ``overlap``, mean over rows of
    the sum of A_a[i, j] · A_b[i, j]; ``pulls``, cosine of their gradients of W_Q, W_K, W_V joined, and
    ``output_pulls``, of W_O.

    ``gradients`` [S, h], norm of a head's gradient. Of the whole [S]: ``loss`` without the penalty, ``penalty`` without
    λ, ``accuracy`` [S, relation], ``both``, share of words with both answers right. ``multiply_adds`` are of the layer
    for one sentence.
    """

    label: str
    heads: int
    parameters: int
    multiply_adds: int
    steps: Array
    maps: Array
    looks: Array
    weights: Array
    difference: Array
    output_difference: Array
    same: Array
    divergence: Array
    overlap: Array
    pulls: Array
    output_pulls: Array
    gradients: Array
    loss: Array
    penalty: Array
    accuracy: Array
    both: Array

    @property
    def right(self) -> float:
        """Share of all answers that are right after the last step."""
        return float(self.accuracy[-1].mean())


@dataclass(frozen=True, eq=False)
class Removal:
    """Heads taken away from a trained layer: ``importance`` [h] (Michel et al. 2019), ``order`` [h] from the least
    important; share of right answers [removed + 1]: ``least`` important first, ``most`` important first, and
    ``chance`` [order, removed + 1] in random orders."""

    importance: Array
    order: Array
    least: Array
    most: Array
    chance: Array


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run. ``words``: the sentence that the maps are of, and ``places`` [word, relation]: the word to look
    at, −1 where nothing is asked."""

    settings: Settings
    words: tuple[str, ...]
    places: Array
    arms: tuple[Arm, ...]
    removal: Removal | None = None


class RunUnreadable(MhaVizError):
    """A file is not a finished run of the lab."""


_HALF = ("maps", "looks", "overlap", "divergence")  # stored with three digits


def to_bytes(result: Result) -> bytes:
    """A run as the bytes of an NPZ file; maps and what compares them have three digits there."""
    arrays: dict[str, Array] = {"places": result.places}
    described: list[dict[str, Any]] = []  # labels and counts
    for number, arm in enumerate(result.arms):
        held = {field.name: getattr(arm, field.name) for field in fields(arm)}
        arrays |= {f"{number}.{name}": _stored(name, v) for name, v in held.items() if isinstance(v, np.ndarray)}
        described.append({name: v for name, v in held.items() if not isinstance(v, np.ndarray)})
    if result.removal is not None:
        arrays |= {f"removal.{field.name}": getattr(result.removal, field.name) for field in fields(Removal)}
    header = {"format": FORMAT, "settings": asdict(result.settings), "words": result.words, "arms": described}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _stored(name: str, values: Array) -> Array:
    return values.astype(np.float16) if name in _HALF else values


def from_bytes(data: bytes) -> Result:
    """The run that :func:`to_bytes` wrote. Raises RunUnreadable."""
    try:
        if len(data) > LARGEST:
            raise ValueError("too large")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            arrays = {name: _frozen(file[name]) for name in file.files if name != "header"}
        arms = tuple(_arm(told, _of(arrays, f"{i}.")) for i, told in enumerate(header["arms"]))
        removal = _of(arrays, "removal.")
        return Result(
            Settings(**header["settings"]),
            tuple(header["words"]),
            arrays["places"],
            arms,
            Removal(**removal) if removal else None,
        )
    except Exception as error:
        raise RunUnreadable("This is not a run of the training lab.", "Run the experiment again.") from error


def _arm(told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Arm:
    return Arm(**told, **arrays)


def _frozen(values: Array) -> Array:
    values = values.astype(np.float32) if values.dtype == np.float16 else values
    values.flags.writeable = False
    return values


def _of(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def stored_at(experiment: str) -> Path:
    """The file of an experiment's default run."""
    return asset("lab") / f"{experiment}.npz"


@cache
def stored(experiment: str) -> Result:
    """The default run of an experiment, which comes with the app. Raises RunUnreadable."""
    try:
        data = stored_at(experiment).read_bytes()
    except OSError as error:
        raise RunUnreadable(f"The stored run “{experiment}” is not here.", "Run the experiment.") from error
    return from_bytes(data)


def shapes(settings: Settings) -> dict[str, Shape]:
    """The layers that a run trains, by the label of each arm."""
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


def _heads(count: int) -> str:
    return f"{count} head{'s' if count > 1 else ''}"


def size(result: Result) -> int:
    """Bytes of a run in memory, nearly."""
    arrays = [value for arm in result.arms for value in vars(arm).values() if isinstance(value, np.ndarray)]
    return 10_000 + sum(values.nbytes for values in arrays)
