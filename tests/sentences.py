"""Make readings of any sentence without a model: tokens as BERT cuts them, and random weights."""

from __future__ import annotations

import re

import numpy as np

from mha_viz.attention import Attention
from mha_viz.text import Piece, build_text

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
LAYERS, HEADS = 6, 12
LONGEST = 12  # letters of a piece


def read(text: str, seed: int = 0) -> Attention:
    """Return a reading of [CLS], the words and punctuation marks of ``text``, and [SEP].

    Long words are split into several subwords.
    """
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    pieces = [Piece("[CLS]", 0, 0, None, 0)]
    for number, (start, end) in enumerate(words):
        for at in range(start, end, LONGEST):
            name = "##" * (at > start) + text[at : min(at + LONGEST, end)]
            pieces.append(Piece(name, at, min(at + LONGEST, end), number, 0))
    pieces.append(Piece("[SEP]", 0, 0, None, 0))
    n = len(pieces)
    rows = np.random.default_rng(seed + len(text)).dirichlet(np.full(n, 0.3), (LAYERS, HEADS, n))
    return Attention("minilm", "", build_text(text, "", pieces), rows.astype(np.float32))
