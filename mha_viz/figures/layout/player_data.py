"""Build the data of a recorded training run for the browser, which ``browser/player`` animates."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.distance import LN2
from mha_viz.figures.drawing.theme import Theme

Array = npt.NDArray[Any]
RELATION_COLOURS = (1, 2, 0)  # indices into Theme.heads for the first, second and third relation


class HeadMatrix(NamedTuple):
    """A comparison of each pair of heads.

    Attributes:
        values: [step, head, head].
        low, high: the values at the ends of the colour scale.
        legend: the meaning of some of the values.
    """

    title: str
    values: Array
    low: float
    high: float
    colours: Literal["share", "signed"]
    legend: tuple[tuple[float, str], ...]


class HeadGradients(NamedTuple):
    """The gradient of the loss at each head: its norm, and its cosine with the gradient at head 0, [step, head]."""

    norms: Array
    cosines: Array


class Strip(NamedTuple):
    """The first entries of one weight matrix of each head, drawn above the head's map.

    Attributes:
        name: the name of the matrix.
        entries: [step, head, entry].
        max_abs: the absolute value that is drawn in full colour.
    """

    name: str
    entries: Array
    max_abs: float


class PlayerCurve(NamedTuple):
    """A curve behind the slider of the player, ``values`` [step] from 0 to 1."""

    values: Array
    is_faint: bool = False
    is_dashed: bool = False


class Curves(NamedTuple):
    """The curves behind the slider of the player."""

    title: str
    lines: Sequence[PlayerCurve]


class RecordedRow(NamedTuple):
    """The row of maps of one run, when a recording shows several.

    Attributes:
        notes: the note for each step.
        is_dashed: whether the curve of the run is dashed.
    """

    title: str
    notes: Sequence[str]
    is_dashed: bool = False


class Recording(NamedTuple):
    """The recording of one training run, or of several on the same sentence.

    Attributes:
        key: identifies the recording.
        steps: the numbers of the recorded steps.
        words: the words of the sentence.
        head_names: the name of each head.
        maps: the attention weights, [step, head, query, key], from 0 to 1.
        relations: the names of the relations.
        target_words: [relation, word], the index of the word that each word should attend to; −1 if there is none.
        relation_notes: [relation][step], the note beside a relation at each step; [] for a relation without notes.
        labels: names of the steps, if some are not steps of training.
        curves: the curves behind the slider.
        is_removed: [step, head], whether a head is removed.
        matrices, matrices_title: comparisons of heads, and their title.
        gradients, gradients_title: the gradients at the heads, and their title.
        strip: some weights of each head.
        instruction: the sentence that explains the task; the names of the relations are drawn after it.
        closing_note: a sentence after the instruction.
        rows: if the maps are those of several runs, the row of each; all rows have equally many maps.
        large_heads: the indices of heads with large maps; all other maps are small. By default, all maps are large.
    """

    key: str
    steps: Sequence[int]
    words: Sequence[str]
    head_names: Sequence[str]
    maps: Array
    relations: Sequence[str]
    target_words: Array
    relation_notes: Sequence[Sequence[str]]
    labels: Sequence[str] = ()
    curves: Curves | None = None
    is_removed: Array | None = None
    matrices: Sequence[HeadMatrix] = ()
    gradients: HeadGradients | None = None
    gradients_title: str = ""
    matrices_title: str = ""
    strip: Strip | None = None
    instruction: str = ""
    closing_note: str = ""
    rows: Sequence[RecordedRow] = ()
    large_heads: Sequence[int] = ()


def build_player_data(recording: Recording, step_index: int, theme: Theme) -> dict[str, Any]:
    """Return the player's data: all recorded steps, and ``step_index``, the index of the step in view.

    Maps have 256 levels, comparisons three decimals.
    """
    heads_per_row = len(recording.head_names) // max(1, len(recording.rows))
    return {
        "key": f"{recording.key}|{theme.paper}",
        "steps": [int(step) for step in recording.steps],
        "labels": list(recording.labels) or [f"step {int(step):,}" for step in recording.steps],
        "curves": None if recording.curves is None else _curve_data(recording.curves, theme),
        "off": None if recording.is_removed is None else recording.is_removed.tolist(),
        "at": step_index,
        "words": list(recording.words),
        "asked": recording.instruction,
        "note": recording.closing_note,
        "heads": [
            {"name": name, "colour": theme.heads[h % heads_per_row % len(theme.heads)]}
            for h, name in enumerate(recording.head_names)
        ],
        "rows": [{"title": row.title, "notes": list(row.notes), "dashed": row.is_dashed} for row in recording.rows],
        "large": [int(head) for head in recording.large_heads],
        "maps": _encode_maps(recording.maps),
        "strip": None if recording.strip is None else _strip_data(recording.strip),
        "marks": [
            {"name": name, "places": words.tolist(), "colour": theme.heads[colour], "notes": list(notes)}
            for name, words, colour, notes in zip(
                recording.relations,
                recording.target_words,
                RELATION_COLOURS[: len(recording.relations)],
                recording.relation_notes,
                strict=True,
            )
        ],
        "titles": {"flow": recording.gradients_title, "matrices": recording.matrices_title},
        "matrices": [_matrix_data(matrix) for matrix in recording.matrices],
        "flow": None if recording.gradients is None else _gradient_data(recording.gradients),
        "ramp": list(theme.ramp),
        "signed": list(theme.signed),
    }


def make_head_matrices(weight_cosines: Array, divergence: Array, gradient_cosines: Array) -> tuple[HeadMatrix, ...]:
    """Wrap three comparisons of each pair of heads, each [step, head, head], for display.

    They are the cosine of the heads' weights, the divergence of their attention in nats, which is shown as a share of
    ln 2, and the cosine of their gradients.
    """
    cosine_legend = ((1.0, "same direction"), (0.0, "right angle"), (-1.0, "opposite"))
    divergence_legend = ((0.0, "same rows"), (1.0, "no word in common"))
    return (
        HeadMatrix("Weights, cosine", weight_cosines, -1, 1, "signed", cosine_legend),
        HeadMatrix("Attention, divergence ÷ ln 2", divergence / LN2, 0, 1, "share", divergence_legend),
        HeadMatrix("Gradients, cosine", gradient_cosines, -1, 1, "signed", cosine_legend),
    )


def _encode_maps(maps: Array) -> str:
    return base64.b64encode(np.rint(np.clip(maps, 0, 1) * 255).astype(np.uint8).tobytes()).decode()


def scale_losses(losses: Sequence[Array], selected_index: int, other_losses: Sequence[Array] = ()) -> list[PlayerCurve]:
    """Scale the logarithms of losses to the range from 0 to 1. If all losses are equal, every value is 1.

    Return the curves of ``losses``, [run][step]: faint ones first, then that of the run ``selected_index``.
    ``other_losses`` share the scale but are not returned.
    """
    logs = np.log(np.maximum(np.stack([*losses, *other_losses]), np.finfo(np.float32).tiny))
    span = float(np.ptp(logs))
    scaled_losses = (logs - logs.min()) / span if span else np.ones_like(logs)
    curves = [PlayerCurve(scaled_losses[index], index != selected_index) for index in range(len(losses))]
    return sorted(curves, key=lambda curve: not curve.is_faint)


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
    max_abs = strip.max_abs or 1.0
    scaled = strip.entries / max_abs  # from −1 to 1
    # Square roots make small entries visible.
    levels = np.rint(128 + np.sign(scaled) * np.sqrt(np.abs(scaled)) * 127).astype(np.uint8)
    return {
        "name": strip.name,
        "size": strip.entries.shape[-1],
        "largest": max_abs,
        "cells": base64.b64encode(levels.tobytes()).decode(),
    }


def _matrix_data(matrix: HeadMatrix) -> dict[str, Any]:
    values = matrix.values.reshape(len(matrix.values), -1)
    return matrix._asdict() | {"values": _round_rows(values, 3)}


def _gradient_data(gradients: HeadGradients) -> dict[str, Any]:
    return {"norms": _round_rows(gradients.norms, 9), "cosines": _round_rows(gradients.cosines, 3)}


def _round_rows(values: Array, digits: int) -> list[list[float]]:
    rounded: list[list[float]] = np.round(values.astype(np.float64), digits).tolist()
    return rounded
