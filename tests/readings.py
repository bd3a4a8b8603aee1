"""Make small readings with random weights for drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mha_viz.attention import Attention
from mha_viz.text import Token, TokenizedText

_SCRIPT = Path(__file__).parent / "js" / "read_packet.mjs"


def reading(
    layers: int = 2, heads: int = 3, words: tuple[int, ...] = (1, 2, 1), pair: tuple[int, ...] = (), seed: int = 0
) -> Attention:
    """Return a reading of [CLS], words with these numbers of subwords, and [SEP]; ``pair`` adds a second sentence.

    Rows are random and sum to 1.
    """
    tokens = [_special("[CLS]", 0), *_words(words, 0, 0), _special("[SEP]", 0)]
    if pair:
        tokens += [*_words(pair, len(words), 1), _special("[SEP]", 1)]
    typed = ["ab" * sum(pieces) for pieces in (words, pair)]
    n = len(tokens)
    rows = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), (layers, heads, n))
    return Attention("tiny", "r1", TokenizedText(typed[0], typed[1], tuple(tokens)), rows.astype(np.float32))


def make_long_reading(layers: int, heads: int, n: int, seed: int = 0) -> Attention:
    """Return a reading of n tokens, including [CLS] and [SEP]; fast for any size."""
    tokens = [_special("[CLS]", 0), *_words((1,) * (n - 2), 0, 0), _special("[SEP]", 0)]
    raw = np.random.default_rng(seed).random((layers, heads, n, n), np.float32)
    raw **= 8
    raw /= raw.sum(axis=3, keepdims=True)
    return Attention("tiny", "r1", TokenizedText("ab" * n, "", tuple(tokens)), raw)


def ducks(seed: int = 0, layers: int = 2, heads: int = 3) -> Attention:
    """Return a reading of "Ducks, +1" and "=x".

    It has a word of two subwords, a special token at each end, and a cell that looks like a formula.
    """
    tokens = (
        Token("[CLS]", None, 0, None, None),
        Token("Duck", 0, 0, 0, 4),
        Token("s", 0, 0, 4, 5),
        Token(",", 1, 0, 5, 6),
        Token("+1", 2, 0, 7, 9),
        Token("[SEP]", None, 0, None, None),
        Token("=x", 3, 1, 0, 2),
        Token("[SEP]", None, 1, None, None),
    )
    text = TokenizedText("Ducks, +1", "=x", tokens)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(len(tokens), 0.3), (layers, heads, len(tokens))).astype(np.float32)
    return Attention("tiny", "rev-1", text, weights)


def _special(name: str, segment: int) -> Token:
    return Token(name, None, segment, None, None)


def _words(pieces: tuple[int, ...], first: int, segment: int) -> list[Token]:
    tokens, start = [], 0
    for word, count in enumerate(pieces, first):
        for _ in range(count):
            tokens.append(Token("ab", word, segment, start, start + 2))
            start += 2
    return tokens
