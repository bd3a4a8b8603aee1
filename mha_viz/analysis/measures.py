"""The numbers per head of one reading, as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.metrics import METRICS, PerHead, measure_all
from mha_viz.attention import Attention
from mha_viz.attention.shown import named_in

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("layer", "head", *METRICS, "normalised_entropy")


def table(attention: Attention) -> pd.DataFrame:
    """One row per head, named "L0H0" and so on, or per layer of rollout, "L0", with the columns COLUMNS."""
    import pandas as pd

    heads = attention.every_head()
    measured = measure_all(attention) | {"normalised_entropy": normalised_entropy(attention)}
    columns = {"layer": [head.layer for head in heads], "head": [head.head for head in heads]}
    return pd.DataFrame(
        columns | {name: values.ravel() for name, values in measured.items()},
        index=pd.Index([named_in(attention.quantity, head) for head in heads], name="name"),
        columns=COLUMNS,
    )


def averages(measured: Sequence[Mapping[str, PerHead]]) -> dict[str, PerHead]:
    """Means over several readings, [layer, head] for each measure. Each reading counts once, whatever its length; a
    reading in which a measure is not defined does not count for that measure. ``measured``: the results of
    ``measure_all``."""
    return {name: _mean(np.stack([one[name] for one in measured])) for name in measured[0]} if measured else {}


def _mean(values: npt.NDArray[np.float64]) -> PerHead:
    """[reading, layer, head] → [layer, head]; NaN if no reading has a number."""
    counted = (~np.isnan(values)).sum(axis=0)
    means: PerHead = np.where(counted > 0, np.nansum(values, axis=0) / np.maximum(counted, 1), np.nan)
    return means


def normalised_entropy(attention: Attention) -> PerHead:
    """The entropy divided by that of uniform attention, ln(keys): 0 if all weight is on one token, 1 if it is spread
    evenly; NaN with a single key."""
    keys = len(attention.keys)
    return METRICS["entropy"].measure(attention) / (math.log(keys) if keys > 1 else math.nan)
