"""How well the toy model answers what a pronoun refers to, with and without some of its heads.

The pronoun is masked, and the answer is right when the most probable word is that pronoun: which one it is, "he",
"she", "it" or "they", follows from its antecedent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.corpus.treebank import Sentence
from mha_viz.models.encoder import Encoder
from mha_viz.request import MASK, Question, Request
from mha_viz.study.corpus_effects import anaphoric
from mha_viz.study.effects import values_without

if TYPE_CHECKING:
    import pandas as pd

HEADING = ("off", "n", "correct", "accuracy", "baseline")


def without_heads(
    encoder: Encoder, seed: int, sentences: int = 500, progress: Callable[[int, int], None] = lambda done, total: None
) -> pd.DataFrame:
    """The accuracy at masked pronouns of newly sampled sentences: with all heads on, without each head, and without
    each whole layer; one row each, as HEADING. The baseline is the most frequent pronoun; NaN when there is no case."""
    import pandas as pd

    layers = [[Head(layer, head) for head in range(encoder.heads)] for layer in range(encoder.layers)]
    alone = {str(head): (head,) for heads in layers for head in heads}
    off = {"none": ()} | alone | {f"layer {layer}": tuple(heads) for layer, heads in enumerate(layers)}
    correct, forms = np.zeros(len(off), np.int64), Counter[str]()
    corpus = grammar.corpus(sentences, seed)
    for done, sentence in enumerate(corpus.sentences, 1):
        for word in anaphoric(sentence):
            correct += _right(encoder, sentence, word, list(off.values()))
            forms[sentence.forms[word].lower()] += 1
        progress(done, len(corpus.sentences))
    n = forms.total()
    baseline = forms.most_common(1)[0][1] / n if n else np.nan
    rows = [
        (name, n, right, right / n if n else np.nan, baseline)
        for name, right in zip(off, correct.tolist(), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(HEADING))


def _right(encoder: Encoder, sentence: Sentence, word: int, off: list[tuple[Head, ...]]) -> np.ndarray:
    """[variant]: 1 where the most probable word is the masked pronoun."""
    read = encoder.read_words(sentence.forms)
    at = read.words.index(word)
    mask = str(encoder.vocabulary.mask_token)
    masked = (*sentence.forms[:word], mask, *sentence.forms[word + 1 :])
    question = Question(MASK, at, sentence.forms[word], read.ids[at], places=(at,))
    values = values_without(encoder, off, Request(question=question, words=masked))
    is_right: np.ndarray = (values.argmax(axis=1) == question.piece).astype(np.int64)
    return is_right
