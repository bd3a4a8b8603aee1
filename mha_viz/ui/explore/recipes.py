"""The recipes of heads on the Explore page: their rules over all text, how much they explain of this one, and which
cells each rule predicts."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from mha_viz.analysis import rules
from mha_viz.analysis.described import LONGEST, of_heads, text_of, unexplained
from mha_viz.attention import Attention, Head
from mha_viz.figures.known import recipes_of
from mha_viz.figures.packet import full_heads


def shown(attention: Attention, wanted: tuple[Head, ...]) -> dict[str, Any] | None:
    """For the explorer: :func:`mha_viz.figures.known.recipes_of` with ``cells``, which ones each rule predicts, row by
    row, one bit each, of the heads that are sent in full; and ``here``, how much each recipe explains of this text.
    Both are empty for a long text. None if the model has no recipes."""
    sent = recipes_of(attention.model, attention.revision, (attention.layers, attention.heads))
    if sent is None or len(attention.queries) > LONGEST:
        return sent
    heads = of_heads(attention.model, attention.revision)
    full = [heads[head.place(attention.heads)] for head in full_heads(attention, wanted)]
    marks = _marks(attention, {part.rule for head in full for part in head.parts})
    marked = [{**rule, "cells": marks.get(rule["name"], "")} for rule in sent["rules"]]
    return {**sent, "rules": marked, "here": _explained(attention)}


def _marks(attention: Attention, numbers: Iterable[int]) -> dict[str, str]:
    """Which cells each rule predicts, [query, key], one bit each, in base 64, by its name."""
    text = text_of(attention)
    cells = {rules.NAMES[number]: rules.matrix(rules.RULES[number], text) > 0 for number in numbers}
    return {name: base64.b64encode(np.packbits(marked).tobytes()).decode() for name, marked in cells.items()}


def _explained(attention: Attention) -> list[float] | None:
    """[head]: the mean over rows of Σ_j min(A[i, j], P[i, j]), which is 1 − Σ_j |A[i, j] − P[i, j]| / 2; None for other
    quantities."""
    if attention.quantity not in ("weight", "unexplained"):
        return None
    left = attention if attention.quantity == "unexplained" else unexplained(attention)
    shares = 1 - np.abs(left.weights).sum(axis=3).mean(axis=2) / 2
    return [round(float(share), 4) for share in shares.ravel()]
