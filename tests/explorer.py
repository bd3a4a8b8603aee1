"""Readings to draw, and what the drawing's own JavaScript makes of them under node."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from mha_viz.attention import Attention
from mha_viz.text import Token, TokenizedText
from tools.node import find

_SCRIPT = Path(__file__).parent / "js" / "read_packet.mjs"


def reading(
    layers: int = 2, heads: int = 3, words: tuple[int, ...] = (1, 2, 1), pair: tuple[int, ...] = (), seed: int = 0
) -> Attention:
    """[CLS], words of so many pieces, [SEP], and the same for a second sentence; random rows that sum to 1."""
    tokens = [_special("[CLS]", 0), *_words(words, 0, 0), _special("[SEP]", 0)]
    if pair:
        tokens += [*_words(pair, len(words), 1), _special("[SEP]", 1)]
    typed = ["ab" * sum(pieces) for pieces in (words, pair)]
    n = len(tokens)
    rows = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), (layers, heads, n))
    return Attention("tiny", "r1", TokenizedText(typed[0], typed[1], tuple(tokens)), rows.astype(np.float32))


def long_reading(layers: int, heads: int, n: int, seed: int = 0) -> Attention:
    """A reading of n tokens, [CLS] and [SEP] included, cheap to make at any size."""
    tokens = [_special("[CLS]", 0), *_words((1,) * (n - 2), 0, 0), _special("[SEP]", 0)]
    raw = np.random.default_rng(seed).random((layers, heads, n, n), np.float32)
    raw **= 8
    raw /= raw.sum(axis=3, keepdims=True)
    return Attention("tiny", "r1", TokenizedText("ab" * n, "", tuple(tokens)), raw)


def in_node(questions: list[dict[str, Any]]) -> list[Any]:
    """What geometry.js answers. Each question holds ``packet`` (bytes), ``ask`` and its arguments: read_packet.mjs."""
    node = find()
    assert node, "Node 20 or later was not found: pip install -r requirements-dev.txt"
    sent = [q | {"packet": base64.b64encode(q["packet"]).decode()} for q in questions]
    done = subprocess.run([node, str(_SCRIPT)], input=json.dumps(sent), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def _special(name: str, segment: int) -> Token:
    return Token(name, None, segment, None, None)


def _words(pieces: tuple[int, ...], first: int, segment: int) -> list[Token]:
    tokens, at = [], 0
    for word, count in enumerate(pieces, first):
        for _ in range(count):
            tokens.append(Token("ab", word, segment, at, at + 2))
            at += 2
    return tokens
