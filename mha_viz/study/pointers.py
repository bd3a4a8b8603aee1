"""The word that each head points at from every word of a corpus: small enough to store, and all that evidence needs."""

from __future__ import annotations

from mha_viz.analysis.reduce import word_block
from mha_viz.analysis.syntax import Pointers, pointers
from mha_viz.corpus.treebank import Corpus
from mha_viz.models.encoder import Encoder
from mha_viz.study.plan import batches, plan


def point(encoder: Encoder, corpus: Corpus) -> tuple[Pointers | None, ...]:
    """The pointers of each sentence, in order; None for a sentence that cannot be read or has a single word."""
    texts = plan(encoder, corpus).sentences
    by_sentence: list[Pointers | None] = [None] * len(texts)
    todo = [i for i, text in enumerate(texts) if text and len(corpus.sentences[i].words) > 1]
    for numbers in batches(texts, todo, encoder.layers * encoder.heads):
        pieces = [text for i in numbers if (text := texts[i]) is not None]
        weights = encoder.batch(pieces)
        flat = weights.reshape(-1, *weights.shape[2:])  # [head, sentence, query, key]
        for at, number in enumerate(numbers):
            by_sentence[number] = pointers(word_block(flat[:, at], pieces[at].words))
    return tuple(by_sentence)
