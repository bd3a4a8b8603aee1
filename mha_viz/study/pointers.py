"""The word that each head points at from every word of a corpus: small enough to store, and all that evidence needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from mha_viz.analysis.reduce import word_block
from mha_viz.analysis.syntax import Pointers, pointers
from mha_viz.attention import Head, Weights
from mha_viz.corpus.treebank import Corpus
from mha_viz.models.encoder import Encoder
from mha_viz.study.plan import batches, plan


def point(encoder: Encoder, corpus: Corpus) -> tuple[Pointers | None, ...]:
    """The pointers of each sentence, in order; None for a sentence that cannot be read or has a single word."""
    by_sentence: list[Pointers | None] = [None] * len(corpus.sentences)
    for number, block in word_blocks(encoder, corpus):
        by_sentence[number] = pointers(block)
    return tuple(by_sentence)


def word_blocks(encoder: Encoder, corpus: Corpus, only: Head | None = None) -> Iterator[tuple[int, Weights]]:
    """For each sentence that can be read and has at least two words, its number and the weights between its words
    [head, word, word], of ``only`` one head if given."""
    texts = plan(encoder, dataclasses.replace(corpus, has_chains=False)).sentences
    todo = [i for i, text in enumerate(texts) if text and len(corpus.sentences[i].words) > 1]
    for numbers in batches(texts, todo, encoder.layers * encoder.heads):
        pieces = [text for i in numbers if (text := texts[i]) is not None]
        weights = encoder.batch(pieces)  # [layer, head, sentence, query, key]
        flat = weights.reshape(-1, *weights.shape[2:])
        if only is not None:
            flat = flat[[only.place(encoder.heads, encoder.layer_numbers)]]
        for at, number in enumerate(numbers):
            yield number, word_block(flat[:, at], pieces[at].words)
