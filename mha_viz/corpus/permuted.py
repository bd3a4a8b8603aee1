"""A corpus whose trees, or chains, belong to other sentences: what it shows of heads, it shows by chance."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

from mha_viz.corpus.treebank import Corpus, Sentence, text_digest


def permuted(corpus: Corpus, seed: int) -> Corpus:
    """The corpus with the annotation of each sentence replaced by that of another with as many words, drawn by
    ``seed``; none keeps its own. Left out are sentences whose number of words no other has, and coreference."""
    sentences, draw = corpus.sentences, random.Random(seed)
    places: dict[int, list[int]] = defaultdict(list)
    donors: dict[int, int] = {}
    for at, sentence in enumerate(sentences):
        places[len(sentence.words)].append(at)
    for alike in places.values():  # sentences of one length form a random circle
        circle = draw.sample(alike, len(alike))
        donors.update(zip(circle, [*circle[1:], circle[0]], strict=True) if len(circle) > 1 else ())
    return replace(
        corpus,
        sentences=tuple(_annotated(sentences[at], sentences[donors[at]]) for at in sorted(donors)),
        digest=text_digest(f"{corpus.digest} with the trees of other sentences {seed}"),
        has_chains=False,
    )


def turned(corpus: Corpus, seed: int) -> Corpus:
    """The corpus with the chains of each document turned along its mentions: each mention belongs to the chain of the
    one a number of places later, drawn by ``seed``, and the last ones to those of the first. How often a chain comes,
    and how close together, stays; which mentions belong together does not. Trees are left out."""
    sentences, draw = list(corpus.sentences), random.Random(seed)
    documents: dict[str, list[int]] = defaultdict(list)
    for at, sentence in enumerate(sentences):
        documents[sentence.document].append(at)
    for places in documents.values():
        chains = [mention.chain for at in places for mention in sentences[at].mentions]
        by = draw.randrange(1, len(chains)) if len(chains) > 1 else 0
        later = iter([*chains[by:], *chains[:by]])
        for at in places:
            mentions = tuple(mention._replace(chain=next(later)) for mention in sentences[at].mentions)
            sentences[at] = replace(sentences[at], mentions=mentions)
    digest = text_digest(f"{corpus.digest} with chains turned {seed}")
    return replace(corpus, sentences=tuple(sentences), digest=digest, has_trees=False)


def _annotated(sentence: Sentence, donor: Sentence) -> Sentence:
    pairs = zip(sentence.words, donor.words, strict=True)
    return replace(sentence, words=tuple(annotated._replace(form=word.form) for word, annotated in pairs), mentions=())
