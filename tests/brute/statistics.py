"""Sums over words, the best of several options, and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Count = tuple[int, int]  # cases, right answers


def sum_to_words(a: Any, words: Sequence[int | None]) -> Any:
    """Convert one head's [query, key] to [from word, to word]: sum over keys, average over queries."""
    tokens = [[i for i, w in enumerate(words) if w == k] for k in range(1 + max(w for w in words if w is not None))]
    to_words = np.stack([sum(a[:, j] for j in columns) for columns in tokens], axis=1)  # [piece, word]
    return np.stack([sum(to_words[i] for i in rows) / len(rows) for rows in tokens])


def find_best(values: Sequence[float], candidates: Sequence[int]) -> int:
    """Return the index among ``candidates`` with the largest value; the lowest index if several are equal."""
    best = candidates[0]
    for i in candidates:
        if values[i] > values[best] or (values[i] == values[best] and i < best):
            best = i
    return best


def wilson(correct: float, n: float) -> tuple[float, float]:
    z = 1.959963984540054
    p = correct / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def bootstrap(documents: Sequence[Count]) -> tuple[float, float]:
    """Compute the 95% interval over documents, each (right, cases), from 2,000 draws with seed 0."""
    draws = np.random.default_rng(0).integers(0, len(documents), (2000, len(documents)))
    accuracies = []
    for draw in draws.tolist():
        right, n = (sum(documents[number][i] for number in draw) for i in (0, 1))
        if n:
            accuracies.append(right / n)
    accuracies.sort()
    return _percentile(accuracies, 0.025), _percentile(accuracies, 0.975)


def interval(documents: Sequence[Count]) -> tuple[float, float]:
    """Compute the interval of a role over fewer than 60 documents.

    It is Wilson's if fewer than 5 documents have a case, and otherwise the widest of three.
    """
    nonempty = [(right, n) for right, n in documents if n]
    right, n = (sum(counts[i] for counts in nonempty) for i in (0, 1))
    if len(nonempty) < 5:
        return wilson(right, n)
    quantiles = "2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086"
    quantile = [*map(float, quantiles.split())][len(nonempty) - 5]
    without_one = [(right - part) / (n - cases) for part, cases in nonempty]
    variance = sum((other - right / n) ** 2 for other in without_one)
    half = quantile * math.sqrt(variance)
    effective_n = min(n, right / n * (1 - right / n) / variance) if variance else n  # of independent cases
    effective_n *= (1.959963984540054 / quantile) ** 2
    ends = [bootstrap(documents), wilson(right / n * effective_n, effective_n), (right / n - half, right / n + half)]
    return max(0.0, min(low for low, _ in ends)), min(1.0, max(high for _, high in ends))


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
