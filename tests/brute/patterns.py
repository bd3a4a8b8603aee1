"""Position, delimiters, entropy and the divergence of heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.brute.model import Reading
from tests.brute.statistics import find_best


def measure_position(readings: Sequence[Reading]) -> dict[tuple[int, int], tuple[float, float]]:
    """Compute, by (head, offset), the mean weight, and the share of rows with their maximum, at the offset."""
    shares = {}
    for number in range(len(readings[0].attention)):
        for offset in range(-5, 6):
            mass, rows, hits, cases = 0.0, 0, 0, 0
            for reading in readings:
                a, size = reading.attention[number].tolist(), len(reading.words)
                ordinary = [j for j in range(size) if not reading.ends[j]]
                for i in ordinary:
                    if not 0 <= i + offset < size:
                        continue
                    mass, rows = mass + a[i][i + offset], rows + 1
                    if not reading.ends[i + offset]:
                        cases += 1
                        hits += find_best(a[i], ordinary) == i + offset
            shares[number, offset] = (mass / rows if rows else math.nan, hits / cases if cases else math.nan)
    return shares


def measure_within_word(readings: Sequence[Reading]) -> dict[tuple[int, int], tuple[float, float]]:
    """Compute, by (head, offset), the shares of the mass and of the rows that stay within a word."""
    shares = {}
    for number in range(len(readings[0].attention)):
        for offset in range(-5, 6):
            inside, mass, same, rows = 0.0, 0.0, 0, 0
            for reading in readings:
                a, size = reading.attention[number].tolist(), len(reading.words)
                for i in range(size):
                    if reading.ends[i] or not 0 <= i + offset < size:
                        continue
                    mass, rows = mass + a[i][i + offset], rows + 1
                    if reading.words[i] == reading.words[i + offset]:
                        inside, same = inside + a[i][i + offset], same + 1
            shares[number, offset] = (inside / mass if mass else math.nan, same / rows if rows else math.nan)
    return shares


def measure_delimiter(readings: Sequence[Reading]) -> list[tuple[float, float, float]]:
    """Compute each head's mean weight on [CLS], on [SEP] and on punctuation."""
    means = []
    for number in range(len(readings[0].attention)):
        sums, rows = [0.0, 0.0, 0.0], 0
        for reading in readings:
            for row in reading.attention[number].tolist():
                rows += 1
                for j, weight in enumerate(row):
                    sums[0] += weight * (reading.ends[j] == "cls")
                    sums[1] += weight * (reading.ends[j] == "sep")
                    sums[2] += weight * reading.marks[j]
        means.append((sums[0] / rows, sums[1] / rows, sums[2] / rows))
    return means


def measure_entropy(readings: Sequence[Reading]) -> list[tuple[float, float]]:
    """Compute each head's entropy, in nats and normalised."""
    means = []
    for number in range(len(readings[0].attention)):
        total, rows, shares = 0.0, 0, []
        for reading in readings:
            entropies = [-sum(x * math.log(x) for x in row if x > 0) for row in reading.attention[number].tolist()]
            total, rows = total + sum(entropies), rows + len(entropies)
            shares.append(sum(entropies) / len(entropies) / math.log(len(entropies)))
        means.append((total / rows, sum(shares) / len(shares)))
    return means


def _compute_divergence(p: Any, q: Any) -> Any:
    """Compute the Jensen–Shannon divergence of each row, with each of several heads."""
    middle = (p + q) / 2
    total = 0.0
    for x in (p, q):
        with np.errstate(divide="ignore", invalid="ignore"):
            total = total + np.where(x > 0, x * np.log(x / middle), 0.0).sum(axis=-1) / 2
    return total


def measure_distance(readings: Sequence[Reading]) -> dict[tuple[int, int], float]:
    """Compute the distance of each pair of heads, the lower one first."""
    heads = len(readings[0].attention)
    rows = sum(len(reading.words) for reading in readings)
    means = {}
    for first in range(heads):
        others = range(first + 1, heads)
        totals = sum(_compute_divergence(r.attention[first], r.attention[first + 1 :]).sum(axis=-1) for r in readings)
        means.update({(first, other): float(totals[i]) / rows for i, other in enumerate(others)})
    return means
