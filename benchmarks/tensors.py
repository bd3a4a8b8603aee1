"""Attention of any size: softmax of random logits, over invented words of one piece each."""

from __future__ import annotations

import numpy as np

from mha_viz.attention import Attention
from mha_viz.text import Token, TokenizedText

SPREAD = 2.0  # standard deviation of the logits: the rows of some heads are sharp, none is one-hot


def make_random_attention(layers: int, heads: int, n: int, seed: int = 0) -> Attention:
    """Return random weights [layers, heads, n, n] over [CLS], n − 2 words and [SEP]; equal for equal seeds."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((layers, heads, n, n), dtype=np.float32) * np.float32(SPREAD)
    weights = np.exp(logits - logits.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    weights.flags.writeable = False  # there is no other reference: Attention need not copy
    return Attention("random", "", _make_words(n - 2), weights)


def _make_words(count: int) -> TokenizedText:
    words = [f"word{i}" for i in range(count)]
    tokens = [Token("[CLS]", None, 0, None, None)]
    start = 0
    for number, word in enumerate(words):
        tokens.append(Token(word, number, 0, start, start + len(word)))
        start += len(word) + 1
    return TokenizedText(" ".join(words), "", (*tokens, Token("[SEP]", None, 0, None, None)))
