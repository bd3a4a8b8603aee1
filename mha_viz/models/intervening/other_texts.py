"""The outputs of heads on other texts, at the tokens of a text: of one other text, or of random sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import cycle
from random import Random

import numpy as np
import torch

from mha_viz.attention import Weights
from mha_viz.attention.answers import Numbers
from mha_viz.corpus import grammar
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import SettingError, TextError, check_kind
from mha_viz.model_names import quote_model
from mha_viz.models.reading.capture import Recorded
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.numerals import counted
from mha_viz.quotes import quoted
from mha_viz.request import TEXT
from mha_viz.text import TokenizedText, WordPieces

SEED = 0  # with a text, of the sentences that are drawn for it
SentencesAsWords = Sequence[Sequence[str]]  # given as words


def outputs_for(
    encoder: Encoder,
    method: str,
    read: TextPieces | WordPieces,
    source: str = "",
    sentences: SentencesAsWords = (),
) -> Weights:
    """The outputs of every head that take the place of its own on a text that was ``read``, [layer, n, head, d_head]:
    by the method "text" those on ``source``, by "resample" those on random ones of ``sentences``, by default of the
    built-in ones. Raises as :func:`of_text` and :func:`of_sentences`."""
    if method == TEXT:
        return of_text(encoder, read, source)
    return of_sentences(encoder, read, sentences or _forms_of(grammar.corpus))


@cache
def _forms_of(corpus: Callable[[], Corpus]) -> SentencesAsWords:
    return [sentence.forms for sentence in corpus().sentences]


def of_text(encoder: Encoder, read: TextPieces | WordPieces, source: str) -> Weights:
    """The outputs of every head on ``source``, with the second text of the one that was ``read`` if it has one, at the
    tokens of that text, [layer, n, head, d_head]: token by token if both have equally many, and special ones at the
    same places; otherwise word by word, where a word in other pieces takes the mean over those of its
    counterpart. Raises SettingError for no ``source``, for the text itself, and for one that cannot be aligned; and the
    errors of ``encode``."""
    check_kind(source, str, "a text", "Give the sentence as text.")
    if not source.strip():
        raise SettingError("There is no text to take outputs from.", "Name one (source=, --from).")
    mine, other = read.tokenized(), encoder.pieces(source, read.pair if isinstance(read, TextPieces) else "")
    if tuple(read.ids) == tuple(other.ids):
        raise SettingError(
            f"Both texts are the same to {quote_model(encoder.name)}.",
            "Change a word in one of them, to one that it knows.",
        )
    aligned: Weights = np.einsum("nm,lmhd->lnhd", alignment(mine, other.tokenized()), outputs(encoder, other))
    return aligned.astype(np.float32)


def of_sentences(encoder: Encoder, read: TextPieces | WordPieces, sentences: SentencesAsWords) -> Weights:
    """The outputs of every head on random sentences at the tokens of a text, [layer, n, head, d_head] (resampling, as
    Chan et al. 2022, "Causal scrubbing"): its words take, in order, the outputs at the tokens of one sentence and, if
    that is too short, of the next; special tokens take those of the first. Which sentences these are depends on the
    text and a fixed seed; the sentence itself is not among them. Raises SettingError if none of them can be read."""
    mine, running, ends = np.array(read.tokenized().special), list[Weights](), list[Weights]()
    for drawn in _drawn(encoder, read, sentences):
        theirs, special = outputs(encoder, drawn), np.array(drawn.tokenized().special)
        running.append(theirs[:, ~special])
        ends.append(theirs[:, special])
        if sum(each.shape[1] for each in running) >= (~mine).sum():
            break
    else:
        raise SettingError("There is no other sentence to take outputs from.", "Name a corpus with more sentences.")
    values = np.empty((encoder.layers, len(mine), *running[0].shape[2:]), np.float32)
    values[:, ~mine] = np.concatenate(running, axis=1)[:, : (~mine).sum()]
    first = ends[0] if ends[0].shape[1] else running[0]  # of models whose texts begin and end without special tokens
    values[:, mine] = first[:, np.minimum(np.arange(mine.sum()), first.shape[1] - 1)]
    return values


def _drawn(encoder: Encoder, read: TextPieces | WordPieces, sentences: SentencesAsWords) -> Iterator[WordPieces]:
    """The sentences in random order, and again from the first on, without the text itself and those that the model
    cannot read; none if no sentence is left."""
    ids = tuple(read.ids)
    order = Random(f"{SEED} {ids}").sample(range(len(sentences)), len(sentences))
    usable = False
    for count, number in enumerate(cycle(order)):
        if count == len(order) and not usable:
            return
        try:
            drawn = encoder.read_words(sentences[number])
        except TextError:
            continue
        # The text may be this sentence, maybe cut, or with masked tokens.
        is_same = all(one in (other, encoder.mask) for one, other in zip(ids, drawn.ids, strict=False))
        if drawn.forms and not (is_same and len(ids) <= len(drawn.ids)):
            usable = True
            yield drawn


def outputs(encoder: Encoder, read: TextPieces | WordPieces) -> Weights:
    """The outputs of every layer's heads on a text, [layer, n, head, d_head]."""
    _, tap = encoder.last_states(read, Recorded)
    assert isinstance(tap, Recorded)
    values: Weights = torch.cat(tap.outputs).cpu().numpy()
    return values


def alignment(mine: TokenizedText, theirs: TokenizedText) -> Numbers:
    """[token of the first text, token of the second]: rows sum to 1. Raises SettingError."""
    if mine.special == theirs.special:
        return np.eye(len(mine))
    groups = mine.groups, theirs.groups
    kinds = [[text.special[group[0]] for group in each] for text, each in zip((mine, theirs), groups, strict=True)]
    units = mine.by_words().tokens, theirs.by_words().tokens
    words = [sum(not unit.special and not unit.segment for unit in each) for each in units]
    if words[0] != words[1]:
        raise SettingError(
            f"{quoted(mine.text)} has {counted(words[0], 'word')}, {quoted(theirs.text)} has {words[1]}, punctuation "
            "marks included.",
            "Lengthen the shorter text, or shorten the longer one, until both have equally many.",
        )
    if kinds[0] != kinds[1]:
        raise SettingError(
            f"Special tokens, such as [SEP], are between other words in {quoted(mine.text)} than in "
            f"{quoted(theirs.text)}.",
            "Type them at the same places in both, or leave them out.",
        )
    aligned = np.zeros((len(mine), len(theirs)))
    for pieces, others in zip(*groups, strict=True):
        if len(pieces) == len(others):
            aligned[pieces, others] = 1
        else:
            aligned[np.ix_(pieces, others)] = 1 / len(others)
    return aligned
