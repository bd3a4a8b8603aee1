"""Answers of a model as numbers: how far apart two of them are, and which words to list."""

from __future__ import annotations

import numpy as np

from mha_viz.attention.answers import Numbers

BEST = 10  # words that are listed


def listed(before: Numbers, after: Numbers, piece: int) -> list[int]:
    """The BEST pieces by log-probability [piece] before, those after that are not among them, and ``piece``, each once;
    among equal ones the first in the vocabulary is chosen."""
    firsts = [np.argsort(-each, kind="stable")[:BEST].tolist() for each in (before, after)]
    return list(dict.fromkeys([*firsts[0], *firsts[1], piece]))


def divergences(before: Numbers, after: Numbers) -> Numbers:
    """KL(before ‖ after) in nats over the last axis, from log-probabilities; clipped so that rounding never makes it
    negative."""
    share = np.exp(before)
    terms = share * (np.where(share > 0, before, 0.0) - np.where(share > 0, after, 0.0))
    nats: Numbers = np.maximum(0.0, terms.sum(axis=-1))
    return nats


def cosines(first: Numbers, second: Numbers) -> Numbers:
    """The cosine over the last axis, in float64; 0 if one of the vectors is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    alike: Numbers = np.clip(np.vecdot(first, second) / np.where(lengths == 0, 1.0, lengths), -1.0, 1.0)
    return alike
