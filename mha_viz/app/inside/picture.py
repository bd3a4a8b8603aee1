"""The numbers of the picture of a head: what each stage between x and the words that the head writes shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.attention.outputs import BIAS, INPUT_EMBEDDINGS, HeadOutput, Written
from mha_viz.attention.parts import GROUPS, ScoreParts
from mha_viz.attention.trace import Trace
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import decimal, percent

MAX_NUMBERS = 512  # numbers of a vector that are sent; of wider vectors, the largest of several beside each other
MAX_KEYS = 4  # vectors of keys that are drawn where values are mixed
Numbers = npt.NDArray[Any]


def build_picture(
    trace: Trace,
    head: int,
    pair: tuple[int, int],
    tokens: Sequence[int],
    theme: Theme,
    parts: ScoreParts | None,
    output: HeadOutput | None,
) -> Mapping[str, Any]:
    """Return the numbers of every stage, for one query and one key.

    Args:
        trace: the intermediate results of the layer.
        head: the number of the head in the layer.
        pair: the numbers of the query and the key.
        tokens: the numbers of the keys that are drawn.
        theme: the colours.
        parts: the parts of the score; None if it cannot be split or is masked.
        output: what the head writes at the query; None if its words cannot be named.
    """
    query, key = pair
    names = [_shorten(trace, token) for token in pair]
    q, k, v = trace.q[head, query], trace.k[head, key], trace.v[head, key]
    weights = trace.weights[head, query]
    strongest = [*np.argsort(-weights, kind="stable")[:MAX_KEYS]]
    moved = [
        _row(_shorten(trace, int(token)), weights[token] * trace.v[head, token], percent(float(weights[token])))
        for token in strongest
        if weights[token] > 0
    ]
    is_seen = not trace.mask[query, key]
    return {
        "names": names,
        "x": [_row(name, trace.x[token]) for name, token in zip(names, pair, strict=True)],
        "projected": [_row(f"q of {names[0]}", q), _row(f"k of {names[1]}", k), _row(f"v of {names[1]}", v)],
        "products": [_row(f"q of {names[0]}", q), _row(f"k of {names[1]}", k), _row("product", q * k)],
        "score": {
            "sum": decimal(float(trace.scores[head, query, key])),
            "scaled": decimal(float(trace.scaled[head, query, key])) if is_seen else "−∞",
            "scale": f"÷ √{trace.d_k}" if trace.has_standard_scaling else f"× {trace.scaling:.2g}",
            "why": [] if parts is None else _sum_reasons(parts),
        },
        "shares": [
            {"token": token, "name": _shorten(trace, token), "weight": float(weights[token])} for token in tokens
        ],
        "moved": [*moved, _row("sum", trace.context[head, query])],
        "layer": [] if output is None else _list_shares(output),
        "written": None if output is None else _describe_words(output, key),
        "signed": list(theme.signed),
    }


def _shorten(trace: Trace, token: int) -> str:
    return trace.text.tokens[token].drawn[:16]


def _row(name: str, numbers: Numbers, value: str = "") -> dict[str, Any]:
    """Return a vector as a row of shades, −100 to 100 of its largest number."""
    if len(numbers) > MAX_NUMBERS:
        groups = np.array_split(numbers, MAX_NUMBERS)
        numbers = np.array([group[np.abs(group).argmax()] for group in groups])
    largest = float(np.abs(numbers).max(initial=0)) or 1.0
    return {"name": name, "value": value, "cells": np.rint(100 * numbers / largest).astype(int).tolist()}


def _sum_reasons(parts: ScoreParts) -> list[dict[str, Any]]:
    """Return what each group of the key's parts adds to the score, above the mean over keys; the largest first."""
    sums = parts.by_group().sum(axis=0)
    values = sorted(((float(sums[group]), group) for group in GROUPS), key=lambda pair: -abs(pair[0]))
    return [{"name": group, "number": value, "value": decimal(value)} for value, group in values]


def _list_shares(output: HeadOutput) -> list[dict[str, Any]]:
    """Return the share of each head in what the layer adds, and that of the bias."""
    names = [str(head) for head in range(len(output.heads) - 1)] + [BIAS]
    return [
        {"name": name, "number": float(share), "value": percent(float(share))}
        for name, share in zip(names, output.heads, strict=True)
    ]


def _describe_words(output: HeadOutput, key: int) -> dict[str, Any]:
    """Return the words that the key's vector and the sum of all move the query towards and away from."""

    def describe(written: Written) -> dict[str, list[str]]:
        return {"towards": list(written.towards), "away": list(written.away)}

    return {
        "key": describe(output.written[key]),
        "share": percent(float(output.shares[key])),
        "whole": describe(output.whole),
        "head": percent(float(output.heads[output.head.head])),
        "is_embedding": output.matrix == INPUT_EMBEDDINGS,
    }
