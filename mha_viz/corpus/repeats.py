"""The second built-in corpus: random words that are repeated in the same order, so that nothing but an earlier place in
the text tells which word comes next."""

from __future__ import annotations

import hashlib
from random import Random

from mha_viz.corpus import REPEATS
from mha_viz.corpus.lexicon import VOCABULARY
from mha_viz.corpus.treebank import Corpus, Sentence, Word

SHORTEST, LONGEST = 4, 25  # words before the repetition


def corpus(count: int = 400, seed: int = 0) -> Corpus:
    """``count`` sentences without annotation, each of random words of the built-in grammar, once and then again. Equal
    seeds give equal corpora on every machine."""
    rng = Random(f"{REPEATS} {seed}")
    words = [Word(form) for form in sorted({form.lower() for form in VOCABULARY})]
    sentences = []
    for line in range(1, count + 1):
        once = tuple(rng.choices(words, k=rng.randint(SHORTEST, LONGEST)))
        sentences.append(Sentence(once * 2, (), f"sentence {line}", line))
    text = "\n".join(" ".join(sentence.forms) for sentence in sentences)
    return Corpus(REPEATS, tuple(sentences), hashlib.sha256(text.encode()).hexdigest())
