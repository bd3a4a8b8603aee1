"""Attention as a view displays it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mha_viz.attention.foreign_arrays import Weights
from mha_viz.attention.steps import Step
from mha_viz.heads import Head
from mha_viz.text import TokenizedText
from mha_viz.view.quantities import QUANTITIES


class Content(NamedTuple):
    """Attention without special tokens and without rescaling, so rows no longer sum to 1."""

    queries: TokenizedText
    keys: TokenizedText
    weights: Weights  # [layer, head, query, key]
    hidden: Weights  # [layer, head, query]: share of the row that went to special tokens


@dataclass(frozen=True, eq=False)
class Shown:
    """The numbers behind a picture: some heads of one reading, as a view shows them.

    Attributes:
        quantity: the quantity of the reading.
        made: the steps of the reading, then the steps of the view.
        heads: the heads, in order.
        weights: [head, row, column].
        hidden: [head, row], the share of the row that is not shown.
        rows, cols: the texts of the units.
        row_index, col_index: the numbers of these units among all units of ``queries`` and of ``keys``.
        view: the settings of the picture (unit, special, …).
    """

    model: str
    revision: str
    queries: TokenizedText
    keys: TokenizedText
    quantity: str
    made: tuple[Step, ...]
    heads: tuple[Head, ...]
    weights: Weights
    hidden: Weights
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    row_index: tuple[int, ...]
    col_index: tuple[int, ...]
    view: Mapping[str, str]


def name_map(quantity: str, head: Head) -> str:
    """Return the name of a map of a reading: "L3H1" or, if the quantity has one map per layer, "L3"."""
    return f"L{head.layer}" if QUANTITIES[quantity].of_layers else str(head)
