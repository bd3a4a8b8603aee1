"""How different heads are: the Jensen–Shannon divergence of their rows, in nats.

JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 with H the entropy in nats: 0 for equal rows, ln 2 = 0.693 for rows that
share no key (Lin 1991; for attention heads, Clark et al. 2019, section 6). Mean over all rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Attention, Weights
from mha_viz.errors import ShapeError

Matrix = npt.NDArray[np.float64]


def divergence(first: Weights, second: Weights) -> float:
    """Mean over rows of the Jensen–Shannon divergence of two matrices [query, key], in nats.

    Raises ShapeError when their axes differ.
    """
    if first.shape != second.shape or first.ndim != 2:
        raise ShapeError(f"Matrices with axes {first.shape} and {second.shape} have no common rows and columns.")
    p, q = first.astype(np.float64), second.astype(np.float64)
    each = _entropies((p + q) / 2) - (_entropies(p) + _entropies(q)) / 2
    return float(max(0.0, each.mean()))


def _entropies(rows: Matrix) -> Matrix:
    """Entropy in nats along the last axis; 0 · log 0 = 0."""
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    found: Matrix = -(rows * logs).sum(axis=-1)
    return found
