"""The recipes of heads on the Explore page: their rules over all text, how much they explain of this one, and which
cells each rule predicts."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from mha_viz.analysis import rules
from mha_viz.analysis.described import KIND_OF, LONGEST, HeadRecipe, of_heads, shipped, text_of, unexplained
from mha_viz.attention import Attention, Head
from mha_viz.figures.packet import full_heads
from mha_viz.figures.role_words import KIND_COLOURS


def shown(attention: Attention, wanted: tuple[Head, ...]) -> dict[str, Any] | None:
    """For the explorer: ``on``, the corpus; ``colours`` of kinds of rules; ``rules`` with the cells that each predicts,
    row by row, one bit each, of the heads that are sent in full; ``heads``, the parts of each, largest first, as the
    number of a rule and a share; ``here``, how much each recipe explains of this text. None if the model has none."""
    of_model, heads = shipped(attention.model, attention.revision), of_heads(attention.model, attention.revision)
    if of_model is None or (attention.layers, attention.heads) != (of_model.facts["layers"], of_model.facts["heads"]):
        return None
    is_short = len(attention.queries) <= LONGEST
    full = full_heads(attention, wanted) if is_short else []
    numbers = list(dict.fromkeys(part.rule for head in heads for part in head.parts))
    marks = _marks(attention, {part.rule for head in full for part in heads[head.place(attention.heads)].parts})
    return {
        "on": str(of_model.facts["corpus"]).removesuffix(".conllu"),
        "colours": KIND_COLOURS,
        "rules": [{**_rule(number), "cells": marks.get(number, "")} for number in numbers],
        "heads": [_head(head, numbers) for head in heads],
        "here": _explained(attention) if is_short else None,
    }


def _rule(number: int) -> dict[str, Any]:
    rule = rules.RULES[number]
    return {"name": rule.name, "kind": KIND_OF[rule.kind], "needs": rule.needs}


def _head(head: HeadRecipe, numbers: list[int]) -> dict[str, Any]:
    parts = [[numbers.index(part.rule), round(part.share, 4)] for part in head.parts]
    return {"parts": parts, "explained": round(head.explained, 4), "isEven": head.is_even}


def _marks(attention: Attention, numbers: Iterable[int]) -> dict[int, str]:
    """Which cells each rule predicts, [query, key], one bit each, in base 64."""
    text = text_of(attention)
    cells = {number: rules.matrix(rules.RULES[number], text) > 0 for number in numbers}
    return {number: base64.b64encode(np.packbits(marked).tobytes()).decode() for number, marked in cells.items()}


def _explained(attention: Attention) -> list[float] | None:
    """[head]: the mean over rows of Σ_j min(A[i, j], P[i, j]), which is 1 − Σ_j |A[i, j] − P[i, j]| / 2; None for other
    quantities."""
    if attention.quantity not in ("weight", "unexplained"):
        return None
    left = attention if attention.quantity == "unexplained" else unexplained(attention)
    shares = 1 - np.abs(left.weights).sum(axis=3).mean(axis=2) / 2
    return [round(float(share), 4) for share in shares.ravel()]
