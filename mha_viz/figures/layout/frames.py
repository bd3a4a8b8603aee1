"""The recording of a training as data for the browser, which ``browser/player`` animates."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.distance import LN2
from mha_viz.figures.drawing.theme import Theme

Array = npt.NDArray[Any]
RELATION_COLOURS = (1, 2, 0)  # indices into Theme.heads for the marks of the first, second and third relation


class HeadMatrix(NamedTuple):
    """A comparison of every two heads, ``values`` [step, head, head], shown from ``low`` to ``high``.

    ``legend``: the meaning of some of the values.
    """

    title: str
    values: Array
    low: float
    high: float
    colours: Literal["share", "signed"]
    legend: tuple[tuple[float, str], ...]


class Flow(NamedTuple):
    """The gradient at each head: its norm [step, head], and its cosine with head 0 [step, head]."""

    norms: Array
    cosines: Array


class Strip(NamedTuple):
    """The first numbers of a matrix of each head, ``numbers`` [step, head, number], drawn over its map.

    The absolute value ``largest`` has the full colour.
    """

    name: str
    numbers: Array
    largest: float


class PlayedCurve(NamedTuple):
    """A curve of a training, ``values`` [step] from 0 to 1."""

    values: Array
    is_faint: bool = False
    is_dashed: bool = False


class Curves(NamedTuple):
    """The curves behind the slider of a training."""

    title: str
    lines: Sequence[PlayedCurve]


class RecordedRow(NamedTuple):
    """The row of maps of one of several trainings, with a note for each step.

    ``is_dashed``: whether its curve is dashed.
    """

    title: str
    notes: Sequence[str]
    is_dashed: bool = False


class Recording(NamedTuple):
    """The recording of one training.

    Attributes:
        key: the name of the recording.
        maps: [step, head, query, key], values from 0 to 1.
        places: [relation, word], the word to look at, -1 if there is none.
        notes: [relation][step], the note for each step.
        labels: names of the steps, if some are not steps of training.
        curves, matrices, flow, strip: further parts of the player.
        off: [step, head], whether a head is removed.
        instruction: the sentence that ends with the relations; ``note`` follows it.
        rows: if the maps are of several trainings, each has a row with an equal number of maps.
        large_heads: the heads whose maps are large; the maps of all others are small. By default, all maps are large.
    """

    key: str
    steps: Sequence[int]
    words: Sequence[str]
    names: Sequence[str]
    maps: Array
    relations: Sequence[str]
    places: Array
    notes: Sequence[Sequence[str]] = ()
    labels: Sequence[str] = ()
    curves: Curves | None = None
    off: Array | None = None
    matrices: Sequence[HeadMatrix] = ()
    flow: Flow | None = None
    flow_title: str = ""
    matrices_title: str = ""
    strip: Strip | None = None
    instruction: str = ""
    note: str = ""
    rows: Sequence[RecordedRow] = ()
    large_heads: Sequence[int] = ()


def build_frames(recording: Recording, step_index: int, theme: Theme) -> dict[str, Any]:
    """Return the data for the browser: all recorded steps of a training, and ``step_index``, the step in view.

    Maps have 256 levels, comparisons three decimals.
    """
    heads_per_row = len(recording.names) // max(1, len(recording.rows))
    return {
        "key": f"{recording.key}|{theme.paper}",
        "steps": [int(step) for step in recording.steps],
        "labels": list(recording.labels) or [f"step {int(step):,}" for step in recording.steps],
        "curves": None if recording.curves is None else _curve_data(recording.curves, theme),
        "off": None if recording.off is None else recording.off.tolist(),
        "at": step_index,
        "words": list(recording.words),
        "asked": recording.instruction,
        "note": recording.note,
        "heads": [
            {"name": name, "colour": theme.heads[h % heads_per_row % len(theme.heads)]}
            for h, name in enumerate(recording.names)
        ],
        "rows": [{"title": row.title, "notes": list(row.notes), "dashed": row.is_dashed} for row in recording.rows],
        "large": [int(head) for head in recording.large_heads],
        "maps": _encode_maps(recording.maps),
        "strip": None if recording.strip is None else _strip_data(recording.strip),
        "marks": [
            {"name": name, "places": places.tolist(), "colour": theme.heads[colour], "notes": list(notes)}
            for name, places, colour, notes in zip(
                recording.relations, recording.places, RELATION_COLOURS, recording.notes, strict=False
            )
        ],
        "titles": {"flow": recording.flow_title, "matrices": recording.matrices_title},
        "matrices": [_matrix_data(matrix) for matrix in recording.matrices],
        "flow": None if recording.flow is None else _flow_data(recording.flow),
        "ramp": list(theme.ramp),
        "signed": list(theme.signed),
    }


def compare_heads(cosines: Array, divergence: Array, gradients: Array) -> tuple[HeadMatrix, ...]:
    """Compare every two heads, [step, head, head] each.

    The comparisons are the cosine of their weights, the divergence of their attention as a share of ln 2, and the
    cosine of their gradients.
    """
    cosine_legend = ((1.0, "same direction"), (0.0, "right angle"), (-1.0, "opposite"))
    divergence_legend = ((0.0, "same rows"), (1.0, "no word in common"))
    return (
        HeadMatrix("Weights, cosine", cosines, -1, 1, "signed", cosine_legend),
        HeadMatrix("Attention, divergence ÷ ln 2", divergence / LN2, 0, 1, "share", divergence_legend),
        HeadMatrix("Gradients, cosine", gradients, -1, 1, "signed", cosine_legend),
    )


def _encode_maps(maps: Array) -> str:
    return base64.b64encode(np.rint(np.clip(maps, 0, 1) * 255).astype(np.uint8).tobytes()).decode()


def scale_losses(losses: Sequence[Array], selected_index: int, other_losses: Sequence[Array] = ()) -> list[PlayedCurve]:
    """Scale loss curves to the range from 0 to 1 by their logarithms; all values are 1 if they are equal.

    Return the curve of training number ``selected_index`` and faint curves of the other trainings. ``other_losses``
    share the scale but are not returned.
    """
    logs = np.log(np.maximum(np.stack([*losses, *other_losses]), np.finfo(np.float32).tiny))
    span = float(np.ptp(logs))
    shares = (logs - logs.min()) / span if span else np.ones_like(logs)
    lines = [PlayedCurve(shares[number], number != selected_index) for number in range(len(losses))]
    return sorted(lines, key=lambda line: not line.is_faint)


def _curve_data(curves: Curves, theme: Theme) -> dict[str, Any]:
    lines = [
        {
            "values": line.values.astype(np.float64).round(3).tolist(),
            "colour": theme.heads[0],
            "faint": line.is_faint,
            "dashed": line.is_dashed,
        }
        for line in curves.lines
    ]
    return {"title": curves.title, "lines": lines}


def _strip_data(strip: Strip) -> dict[str, Any]:
    largest = strip.largest or 1.0
    shares = strip.numbers / largest
    # Square roots make small numbers visible.
    levels = np.rint(128 + np.sign(shares) * np.sqrt(np.abs(shares)) * 127).astype(np.uint8)
    return {
        "name": strip.name,
        "size": strip.numbers.shape[-1],
        "largest": largest,
        "cells": base64.b64encode(levels.tobytes()).decode(),
    }


def _matrix_data(matrix: HeadMatrix) -> dict[str, Any]:
    values = matrix.values.reshape(len(matrix.values), -1)
    return matrix._asdict() | {"values": _round_rows(values, 3)}


def _flow_data(flow: Flow) -> dict[str, Any]:
    return {"norms": _round_rows(flow.norms, 9), "cosines": _round_rows(flow.cosines, 3)}


def _round_rows(values: Array, digits: int) -> list[list[float]]:
    rounded: list[list[float]] = np.round(values.astype(np.float64), digits).tolist()
    return rounded
