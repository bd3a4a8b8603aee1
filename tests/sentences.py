"""Make readings of any sentence without a model: tokens like BERT's, and random weights."""

from __future__ import annotations

import re

import numpy as np

from mha_viz.attention import Attention
from mha_viz.text import Piece, build_text

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
LAYERS, HEADS = 6, 12
MAX_PIECE = 12  # letters


def read(text: str, seed: int = 0) -> Attention:
    """Return a reading of [CLS], the words and punctuation marks of ``text``, and [SEP].

    Long words are split into several subwords.
    """
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    pieces = [Piece("[CLS]", 0, 0, None, 0)]
    for number, (start, end) in enumerate(words):
        for at in range(start, end, MAX_PIECE):
            name = "##" * (at > start) + text[at : min(at + MAX_PIECE, end)]
            pieces.append(Piece(name, at, min(at + MAX_PIECE, end), number, 0))
    pieces.append(Piece("[SEP]", 0, 0, None, 0))
    n = len(pieces)
    rows = np.random.default_rng(seed + len(text)).dirichlet(np.full(n, 0.3), (LAYERS, HEADS, n))
    return Attention("minilm", "", build_text(text, "", pieces), rows.astype(np.float32))
