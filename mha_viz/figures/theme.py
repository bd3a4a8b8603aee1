"""The colours of every drawing, on screen and in files: one place.

Weights use a one-hue sequential ramp whose lightness changes evenly, so that it reads without colour.
Heads of a layer have 16 distinct colours in alternating lightness (hues in OKLCH); later ones repeat.
"""

from __future__ import annotations

from typing import NamedTuple


class Theme(NamedTuple):
    """One colour scheme. ``ramp``: from weight 0 to weight 1. ``heads``: colour of head number i % 16."""

    ramp: tuple[str, ...]
    heads: tuple[str, ...]


LIGHT = Theme(
    ramp=("#f5f3ee", "#d8ebfb", "#8fc4f1", "#3f8ed3", "#125ca1", "#0c2c5a"),
    heads=(
        "#1762b6", "#c26030", "#006f19", "#9553a4", "#8a5800", "#0097a1", "#9e2b36", "#6b62bf",
        "#626b00", "#bf5884", "#00669d", "#a75c00", "#007c56", "#8e6ac7", "#6f5a00", "#b0486e",
    ),
)  # fmt: skip
DARK = Theme(
    ramp=("#1d2125", "#1a3450", "#1a588f", "#2386ce", "#79c0f1", "#def6ff"),
    heads=(
        "#70adfb", "#fea47c", "#67b36a", "#edb1fb", "#d0a43a", "#43d5dc", "#e47b7c", "#c2bfff",
        "#a8b44b", "#fb9dc2", "#28acdf", "#ffba73", "#3bc59e", "#caacff", "#b1a02e", "#ffa9c7",
    ),
)  # fmt: skip
