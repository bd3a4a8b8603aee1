"""Compute the outputs of heads on other texts, aligned with the tokens of a text.

The other texts are a given text, or random sentences.
"""

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
from mha_viz.models.reading.capture import RecordingTap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.numerals import counted
from mha_viz.quotes import quote
from mha_viz.request import TEXT
from mha_viz.text import TokenizedText, WordPieces

SEED = 0  # with the text, determines which sentences are drawn
SentencesAsWords = Sequence[Sequence[str]]


def choose_outputs(
    encoder: Encoder,
    method: str,
    pieces: TextPieces | WordPieces,
    source: str = "",
    sentences: SentencesAsWords = (),
) -> Weights:
    """Return the outputs that replace those of every head on a text, [layer, n, head, d_head].

    With the method "text" they are those on ``source``. With "resample" they are those on random ``sentences``, by
    default the built-in ones. Raises the errors of :func:`compute_outputs_on_text` and
    :func:`compute_outputs_on_sentences`.
    """
    if method == TEXT:
        return compute_outputs_on_text(encoder, pieces, source)
    return compute_outputs_on_sentences(encoder, pieces, sentences or _list_words(grammar.corpus))


@cache
def _list_words(corpus: Callable[[], Corpus]) -> SentencesAsWords:
    """Return the words of the sentences of a corpus."""
    return [sentence.forms for sentence in corpus().sentences]


def compute_outputs_on_text(encoder: Encoder, pieces: TextPieces | WordPieces, source: str) -> Weights:
    """Return the outputs of every head on ``source`` at the tokens of ``pieces``, [layer, n, head, d_head].

    If ``pieces`` are those of a pair, ``source`` is read together with the second text of the pair. The texts are
    aligned token by token if both have equally many tokens, with special tokens at the same positions. Otherwise they
    are aligned word by word, and a word that is split differently takes the mean over the tokens of its counterpart.

    Raises SettingError for an empty ``source``, for the text itself, and for a text that cannot be aligned; and the
    errors of ``encode``.
    """
    check_kind(source, str, "a text", "Give the sentence as text.")
    if not source.strip():
        raise SettingError("There is no text to take outputs from.", "Name one (source=, --from).")
    tokens, source_pieces = (
        pieces.tokenized(),
        encoder.pieces(source, pieces.pair if isinstance(pieces, TextPieces) else ""),
    )
    if tuple(pieces.ids) == tuple(source_pieces.ids):
        raise SettingError(
            f"Both texts are the same to {quote_model(encoder.name)}.",
            "Change a word in one of them to another that the model knows.",
        )
    outputs: Weights = np.einsum(
        "nm,lmhd->lnhd", align_texts(tokens, source_pieces.tokenized()), compute_outputs(encoder, source_pieces)
    )
    return outputs.astype(np.float32)


def compute_outputs_on_sentences(
    encoder: Encoder, pieces: TextPieces | WordPieces, sentences: SentencesAsWords
) -> Weights:
    """Return the outputs of every head on random sentences, at the tokens of a text, [layer, n, head, d_head].

    This is resampling as in Chan et al. 2022, "Causal scrubbing". Words take, in order, the outputs at the tokens of
    one sentence and, if that is too short, of the next. Special tokens take those of the first sentence. The sentences
    are determined by the text and a fixed seed; the text itself is not among them. Raises SettingError if none of them
    can be read.
    """
    is_special, word_outputs, special_outputs = np.array(pieces.tokenized().special), list[Weights](), list[Weights]()
    for sentence in _draw_sentences(encoder, pieces, sentences):
        sentence_outputs, is_sentence_special = (
            compute_outputs(encoder, sentence),
            np.array(sentence.tokenized().special),
        )
        word_outputs.append(sentence_outputs[:, ~is_sentence_special])
        special_outputs.append(sentence_outputs[:, is_sentence_special])
        if sum(outputs_part.shape[1] for outputs_part in word_outputs) >= (~is_special).sum():
            break
    else:
        raise SettingError("There is no other sentence to take outputs from.", "Name a corpus with more sentences.")
    values = np.empty((encoder.layers, len(is_special), *word_outputs[0].shape[2:]), np.float32)
    values[:, ~is_special] = np.concatenate(word_outputs, axis=1)[:, : (~is_special).sum()]
    # Some models put no special tokens around a text; take the outputs at words instead.
    outputs = special_outputs[0] if special_outputs[0].shape[1] else word_outputs[0]
    values[:, is_special] = outputs[:, np.minimum(np.arange(is_special.sum()), outputs.shape[1] - 1)]
    return values


def _draw_sentences(
    encoder: Encoder, pieces: TextPieces | WordPieces, sentences: SentencesAsWords
) -> Iterator[WordPieces]:
    """Yield the sentences in random order, repeating them without end.

    The text itself and sentences that the model cannot read are left out. If none remains, nothing is yielded.
    """
    ids = tuple(pieces.ids)
    random_order = Random(f"{SEED} {ids}").sample(range(len(sentences)), len(sentences))
    has_usable = False
    for count, number in enumerate(cycle(random_order)):
        if count == len(random_order) and not has_usable:
            return
        try:
            sentence = encoder.read_words(sentences[number])
        except TextError:
            continue
        # The text may be this very sentence, cut or with masked tokens.
        is_same = all(
            text_id in (sentence_id, encoder.mask) for text_id, sentence_id in zip(ids, sentence.ids, strict=False)
        )
        if sentence.forms and not (is_same and len(ids) <= len(sentence.ids)):
            has_usable = True
            yield sentence


def compute_outputs(encoder: Encoder, pieces: TextPieces | WordPieces) -> Weights:
    """Return the outputs of every layer's heads on a text, [layer, n, head, d_head]."""
    _, tap = encoder.last_states(pieces, RecordingTap)
    assert isinstance(tap, RecordingTap)
    values: Weights = torch.cat(tap.outputs).cpu().numpy()
    return values


def align_texts(first: TokenizedText, second: TokenizedText) -> Numbers:
    """Return the alignment of two texts, [token of the first text, token of the second]; rows sum to 1.

    Raises SettingError.
    """
    if first.special == second.special:
        return np.eye(len(first))
    groups = first.groups, second.groups
    kinds = [[text.special[group[0]] for group in item] for text, item in zip((first, second), groups, strict=True)]
    words_of_texts = first.by_words().tokens, second.by_words().tokens
    words = [sum(not unit.special and not unit.segment for unit in item) for item in words_of_texts]
    if words[0] != words[1]:
        raise SettingError(
            f"{quote(first.text)} has {counted(words[0], 'word')}, {quote(second.text)} has {words[1]}, punctuation "
            "marks included.",
            "Lengthen the shorter text, or shorten the longer one, until both have equally many.",
        )
    if kinds[0] != kinds[1]:
        raise SettingError(
            f"Special tokens, such as [SEP], are between other words in {quote(first.text)} than in "
            f"{quote(second.text)}.",
            "Type them at the same places in both, or leave them out.",
        )
    alignment = np.zeros((len(first), len(second)))
    for pieces, other_pieces in zip(*groups, strict=True):
        if len(pieces) == len(other_pieces):
            alignment[pieces, other_pieces] = 1
        else:
            alignment[np.ix_(pieces, other_pieces)] = 1 / len(other_pieces)
    return alignment
