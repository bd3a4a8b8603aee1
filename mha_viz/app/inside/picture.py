"""Compute the numbers that the picture of a head shows at its stages, from x to the words that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.app.inside.open_stage import OpenStage
from mha_viz.attention.answers import Answer
from mha_viz.attention.outputs import BIAS, INPUT_EMBEDDINGS, HeadOutput, WrittenWords, compute_links
from mha_viz.attention.parts import GROUPS, ScoreParts
from mha_viz.attention.trace import Trace
from mha_viz.numerals import decimal, percent

MAX_NUMBERS = 512  # maximum numbers sent per vector; of a wider one, the largest of each group is sent
MAX_ANSWERS = 3
MAX_KEYS = 4  # maximum number of value vectors drawn at the stage that mixes them
_Vector = npt.NDArray[np.float32]


def build_picture(o: OpenStage, parts: ScoreParts | None, answer: Answer | None) -> Mapping[str, Any]:
    """Return the numbers of every stage, for one query and one key.

    ``parts``: the parts of the score; None if it cannot be split or is masked. ``answer``: the model's answer at the
    query, with and without the head; None if it predicts nothing there.
    """
    trace, head, query, key, output = o.trace, o.head, o.query, o.key, o.output
    names = [_shorten(trace, token) for token in (query, key)]
    q, k, v = trace.q[head, query], trace.k[head, key], trace.v[head, key]
    weights = trace.weights[head, query]
    q_row, k_row = _make_row(f"q of {names[0]}", q), _make_row(f"k of {names[1]}", k)
    strongest_keys = [*np.argsort(-weights, kind="stable")[:MAX_KEYS]]
    terms = {int(token): weights[token] * trace.v[head, token] for token in strongest_keys if weights[token] > 0}
    total = trace.context[head, query]
    largest = max(float(np.abs(vector).max(initial=0)) for vector in (*terms.values(), total))  # all rows share a scale
    moved_rows = [
        _make_row(_shorten(trace, token), vector, percent(float(weights[token])), largest)
        for token, vector in terms.items()
    ]
    is_seen, score = not trace.mask[query, key], float(trace.scores[head, query, key])
    return {
        "names": names,
        "x": [_make_row(name, trace.x[token]) for name, token in zip(names, (query, key), strict=True)],
        "projected": [q_row, k_row, _make_row(f"v of {names[1]}", v)],
        "products": [q_row, k_row, _make_row("product", q * k)],
        "score": {
            "sum": decimal(score),
            "scaled": decimal(float(trace.scaled[head, query, key] if is_seen else score * trace.scaling)),
            "is_masked": not is_seen,
            "scale": f"÷ √{trace.d_k}" if trace.has_standard_scaling else f"× {trace.scaling:.2g}",
            "why": [] if parts is None else _sum_reasons(parts),
            "above": "" if parts is None else decimal(float(parts.above_mean.sum())),
        },
        "shares": [
            {"token": token, "name": _shorten(trace, token), "weight": float(weights[token])} for token in o.tokens
        ],
        "moved": [*moved_rows, _make_row("sum", total, "", largest)],
        "layer": _list_shares(compute_links(trace, head, query).heads),
        "written": output if isinstance(output, str) else _describe_words(output, key),
        "answer": [] if answer is None else _list_answers(answer),
        "signed": list(o.theme.signed),
    }


def _shorten(trace: Trace, token: int) -> str:
    return trace.text.tokens[token].drawn[:16]


def _make_row(name: str, numbers: _Vector, value: str = "", largest: float | None = None) -> dict[str, Any]:
    """Return a vector as a row of shades, −100 to 100 of ``largest``, by default its own largest number."""
    if len(numbers) > MAX_NUMBERS:
        groups = np.array_split(numbers, MAX_NUMBERS)
        numbers = np.array([group[np.abs(group).argmax()] for group in groups])
    largest = largest or float(np.abs(numbers).max(initial=0)) or 1.0
    return {"name": name, "value": value, "cells": np.rint(100 * numbers / largest).astype(int).tolist()}


def _sum_reasons(parts: ScoreParts) -> list[dict[str, Any]]:
    """Return what each group of the key's parts adds to the score, above the mean over keys; the largest first."""
    sums = parts.by_group().sum(axis=0)
    values = sorted(((float(sums[group]), group) for group in GROUPS), key=lambda pair: -abs(pair[0]))
    return [{"name": group, "number": value, "value": decimal(value)} for value, group in values]


def _list_shares(shares: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """Return the shares of the heads and of the bias in the output of the layer."""
    names = [str(head) for head in range(len(shares) - 1)] + [BIAS]
    return [
        {"name": name, "number": share, "value": percent(share)}
        for name, share in zip(names, shares.tolist(), strict=True)
    ]


def _list_answers(answer: Answer) -> list[dict[str, Any]]:
    """Return the most probable words, with their probabilities before and after the head is switched off."""
    word_rows = zip(answer.words, answer.before.tolist(), answer.after.tolist(), strict=True)
    top_rows = sorted(word_rows, key=lambda row: -max(row[1:]))[:MAX_ANSWERS]
    return [
        {
            "name": word,
            "number": probability_before,
            "value": f"{percent(probability_before)} → {percent(probability_after)}",
        }
        for word, probability_before, probability_after in top_rows
    ]


def _describe_words(output: HeadOutput, key: int) -> dict[str, Any]:
    """Return the words that the key's vector and the sum over all keys move the query towards and away from."""

    def describe(predicted_words: WrittenWords) -> dict[str, list[str]]:
        return {"towards": list(predicted_words.towards), "away": list(predicted_words.away)}

    return {
        "key": describe(output.written[key]),
        "share": percent(float(output.shares[key])),
        "whole": describe(output.whole),
        "head": percent(float(output.heads[output.head.head])),
        "is_embedding": output.matrix == INPUT_EMBEDDINGS,
    }
