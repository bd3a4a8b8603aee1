"""The colours of every drawing, on screen and in files, in one place.

Weights use a one-hue sequential ramp whose lightness changes evenly, so that it reads without colour. Differences
diverge from the colour of weight 0 to blue and to orange, which colour-blind readers can distinguish. The heads of a
layer have 16 distinct colours of alternating lightness (hues in OKLCH), which then repeat.

When heads are drawn together, the lines of the second, third and fourth are dashed, because some colours look alike in
greyscale. The grey theme is for print without colour: the two ends of a difference have the same grey there, so cells
below 0 are marked with a minus.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from mha_viz.figures.drawing.marks import Pixels

# Lengths of dashes and gaps in pixels for the first, second, third and fourth head drawn together, then repeated.
DASHES: tuple[tuple[int, ...], ...] = ((), (9, 4), (2, 3), (12, 3, 2, 3))


class Theme(NamedTuple):
    """One colour scheme.

    Attributes:
        ramp: colours from weight 0 to weight 1.
        heads: the colour of head number i % 16.
        signed: colours from difference -1 over 0 to +1.
        ink, muted, accent: for text.
        paper: the background.
        dashes: the dashes of lines of heads that are drawn together, in their order.
        has_minus: whether cells below 0 are marked with a minus, because their colour does not show the sign.
    """

    ramp: tuple[str, ...]
    heads: tuple[str, ...]
    signed: tuple[str, ...]
    ink: str
    muted: str
    accent: str
    paper: str
    dashes: tuple[tuple[int, ...], ...] = DASHES
    has_minus: bool = False


LIGHT = Theme(
    ramp=("#f5f3ee", "#d8ebfb", "#8fc4f1", "#3f8ed3", "#125ca1", "#0c2c5a"),
    heads=(
        "#1762b6", "#c26030", "#006f19", "#9553a4", "#8a5800", "#0097a1", "#9e2b36", "#6b62bf",
        "#626b00", "#bf5884", "#00669d", "#a75c00", "#007c56", "#8e6ac7", "#6f5a00", "#b0486e",
    ),
    signed=("#0c2c5a", "#1f6fb8", "#8fc4f1", "#f5f3ee", "#f3b98a", "#c8611a", "#6b2a06"),
    ink="#1c1b19", muted="#5d6268", accent="#0b5cad", paper="#ffffff",
)  # fmt: skip
DARK = Theme(
    ramp=("#1d2125", "#1a3450", "#1a588f", "#2386ce", "#79c0f1", "#def6ff"),
    heads=(
        "#70adfb", "#fea47c", "#67b36a", "#edb1fb", "#d0a43a", "#43d5dc", "#e47b7c", "#c2bfff",
        "#a8b44b", "#fb9dc2", "#28acdf", "#ffba73", "#3bc59e", "#caacff", "#b1a02e", "#ffa9c7",
    ),
    signed=("#def6ff", "#5fb0ea", "#1a588f", "#1d2125", "#8a4413", "#f08c3e", "#ffe3cc"),
    ink="#ebe8e2", muted="#a3a8ae", accent="#79c0f1", paper="#14171a",
)  # fmt: skip
GREY = Theme(
    ramp=("#f4f4f4", "#d5d5d5", "#acacac", "#7d7d7d", "#484848", "#0f0f0f"),
    heads=(
        "#141414", "#666666", "#2e2e2e", "#747474", "#1c1c1c", "#5a5a5a", "#363636", "#6c6c6c",
        "#0c0c0c", "#606060", "#262626", "#707070", "#424242", "#545454", "#3c3c3c", "#4e4e4e",
    ),
    signed=("#0f0f0f", "#555555", "#acacac", "#f4f4f4", "#acacac", "#555555", "#0f0f0f"),
    ink="#1a1a1a", muted="#5f5f5f", accent="#000000", paper="#ffffff", has_minus=True,
)  # fmt: skip
FONT = "Source Sans, sans-serif"
THEMES = {"light": LIGHT, "dark": DARK, "grey": GREY}


def format_rgba(colour: str, opacity: float = 0.25) -> str:
    """Return a colour in Plotly's form; 0.25 is the opacity of grid lines and of other faint elements."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return colour if opacity == 1 else f"rgba({r},{g},{b},{opacity})"


def choose_ink(colour: str) -> str:
    """Return black or white, whichever is easier to read on ``colour``."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.18 else "#ffffff"


# ---- Shades ----------------------------------------------------------------------------------------------------------


@cache
def palette(stops: tuple[str, ...]) -> Pixels:
    """Return 256 shades between the stops of a ramp: [shade, rgb]. Equal to ``makePalette`` in ``browser/ink.js``."""
    colours = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops]
    shades = np.empty((256, 3), np.uint8)
    for i in range(256):
        position = i / 255 * (len(stops) - 1)
        low, high = colours[math.floor(position)], colours[math.ceil(position)]
        shades[i] = [math.floor(a + (b - a) * (position % 1) + 0.5) for a, b in zip(low, high, strict=True)]
    shades.flags.writeable = False
    return shades
