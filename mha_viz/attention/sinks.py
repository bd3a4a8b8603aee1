"""Learned sinks, such as those of gpt-oss: each head has a score beside those of the keys, whose share of a row goes to
no token. Transformers returns the rows without it (Agarwal et al. 2025, gpt-oss-120b & gpt-oss-20b Model Card)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mha_viz.attention.foreign_arrays import HALF_TOLERANCE, Weights
from mha_viz.attention.steps import REST_AS_SINK
from mha_viz.errors import ShapeError, shorten_value
from mha_viz.text import Token, TokenizedText

__all__ = ["REST_AS_SINK", "SINK", "add_column", "add_key", "check_setting", "is_key_added"]

SINK = Token("sink", None, 0, None, None)  # the column


def add_key(text: TokenizedText) -> TokenizedText:
    """Return the text with the sink as its last token."""
    return replace(text, tokens=(*text.tokens, SINK))


def is_key_added(queries: TokenizedText, keys: TokenizedText) -> bool:
    """Return whether the keys are the queries and a sink."""
    return keys.tokens == (*queries.tokens, SINK)


def check_setting(sink: object, quantity: str) -> bool:
    """Return whether a sink was asked for. Raises ShapeError for what is neither True nor False, and for numbers that
    leave no share."""
    if not isinstance(sink, bool):
        raise ShapeError(f"sink is {shorten_value(sink)!r}.", "Expected True or False.")
    if sink and quantity != "weight":
        raise ShapeError(
            f"A sink has a share of weights, and quantity is {shorten_value(quantity)!r}.", "Leave out sink."
        )
    return sink


def add_column(weights: Weights, rows: Weights) -> Weights:
    """Return [layer, head, query, key] with a last column: what is left to 1 of ``rows``, which may have more keys.

    A row that rounding to 16 bits made a little larger than 1 leaves 0, and sums to 1 again. Raises ShapeError for a
    row without weights, as those of padding are.
    """
    sums = rows.sum(axis=3, keepdims=True)
    if not sums.all():
        layer, head, row = (int(place[0]) for place in np.nonzero(sums[..., 0] == 0))
        raise ShapeError(
            f"Layer {layer}, head {head}, row {row} has no weight, so that a sink would have all of it.",
            "Leave padding out with mask=inputs['attention_mask'].",
        )
    left = np.maximum(1 - sums, 0)
    is_rounded = (sums > 1) & (sums <= 1 + HALF_TOLERANCE)
    whole: Weights = np.concatenate([np.divide(weights, sums, out=weights.copy(), where=is_rounded), left], axis=3)
    whole.flags.writeable = False
    return whole
