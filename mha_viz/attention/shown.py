"""Attention as a view shows it."""

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
    """Attention with the special tokens hidden and nothing rescaled: rows no longer sum to 1."""

    queries: TokenizedText
    keys: TokenizedText
    weights: Weights  # [layer, head, query, key]
    hidden: Weights  # [layer, head, query]: share of the row that went to special tokens


@dataclass(frozen=True, eq=False)
class Shown:
    """The numbers behind a picture: some heads of one reading, as a view shows them.

    ``weights[head, row, column]`` belong to ``heads`` in order; ``hidden[head, row]`` is the share of a row that is not
    shown. ``rows`` and ``cols`` are the texts of the units, ``row_index`` and ``col_index`` count them among all units
    of ``queries`` and of ``keys``. ``quantity`` is that of the reading, ``made`` has its steps and then those of the
    view, ``view`` the settings of the picture (unit, special, …).
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


def named_in(quantity: str, head: Head) -> str:
    """The name by which a reading takes one of its maps: "L3H1", or of a quantity with one map per layer "L3"."""
    return f"L{head.layer}" if QUANTITIES[quantity].of_layers else str(head)
