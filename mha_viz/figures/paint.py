"""The colours of cells: on the one-hue scale for shares and lengths, or on the diverging one for signed numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mha_viz.drawing.marks import Pixels
from mha_viz.figures.theme import Theme, palette
from mha_viz.figures.view import Block, shades


def painted(part: Block, scale: str, theme: Theme, top: float | None = None) -> Pixels:
    """A matrix in the colours of its scale, [row, column, rgb]; ``top`` as for :func:`shades`. For signed numbers, 0
    has the colour of the paper. The same as ``diverging`` in the browser's ``ink.js``."""
    shade = shades(part.w, scale, top)
    if not part.signed:
        return palette(theme.ramp)[shade]
    distance = np.floor(shade.astype(np.float64) * 127 / 255 + 0.5)
    return palette(theme.signed)[(128 + np.sign(part.w) * distance).astype(np.intp)]


def scale_colours(parts: Iterable[Block], theme: Theme) -> tuple[str, ...]:
    """The stops of the colour scale for these parts."""
    return theme.signed if any(part.signed for part in parts) else theme.ramp
