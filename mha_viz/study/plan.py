"""Plan what a study reads and in which order, and read the weights between words.

Batches contain sentences of equal length, so that nothing is padded. The weights between the words of each sentence, or
the word that each head points at, are small enough to store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mha_viz.analysis.coreference import MAX_CHUNK_TOKENS, Chunk, make_chunk, pack_chunks
from mha_viz.analysis.reduce import reduce_to_words
from mha_viz.analysis.syntax import Pointers, find_pointers
from mha_viz.attention import Head, Weights
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.errors import TextError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import WordPieces

DEFAULT_BATCH = 512  # tokens per batch
MAX_CELLS = 11_500_000  # attention weights of all heads per batch, 46 MB; a single sentence may have more
SENTENCES_AT_ONCE = 400  # sentences that are tokenized and read at a time


class Plan(NamedTuple):
    """The texts of a corpus as tokens of the model.

    Attributes:
        sentences: the tokens of each sentence; None if it is left out.
        chunks: the chunks for coreference, with their tokens.
        left_out: lines that say which text is left out and why.
    """

    sentences: tuple[WordPieces | None, ...]
    chunks: tuple[tuple[Chunk, WordPieces], ...]
    left_out: tuple[str, ...]


def plan(encoder: Encoder, corpus: Corpus, first: int = 0) -> Plan:
    """Split every sentence into tokens and, for coreference, pack consecutive sentences into chunks.

    ``first`` is the number of the first sentence, for a part of a corpus.
    """
    encoder.check_no_sinks()
    sentences: list[WordPieces | None] = []
    left_out: list[str] = []
    for number, sentence in enumerate(corpus.sentences):
        try:
            sentences.append(encoder.read_words(sentence.forms))
        except TextError as error:
            sentences.append(None)
            left_out.append(f"line {sentence.line or number + 1}: {error.problem}")
    chunks = tuple(_iter_chunks(encoder, corpus, sentences, left_out, first))
    return Plan(tuple(sentences), chunks, tuple(left_out))


def _iter_chunks(
    encoder: Encoder, corpus: Corpus, sentences: Sequence[WordPieces | None], left_out: list[str], first: int
) -> Iterator[tuple[Chunk, WordPieces]]:
    """Yield the chunks that have anaphors, with their tokens."""
    if not corpus.has_chains:
        return
    lengths = [None if s is None else sum(word is not None for word in s.words) for s in sentences]
    special_count = next((len(s) - n for s, n in zip(sentences, lengths, strict=True) if s and n is not None), 0)
    limit = min(MAX_CHUNK_TOKENS, encoder.limit) - special_count
    for numbers in pack_chunks(lengths, [sentence.document for sentence in corpus.sentences], limit):
        chunk = make_chunk(corpus.sentences, numbers, first)
        try:
            if chunk.anaphors:
                yield chunk, encoder.read_words([word.form for word in chunk.words])
        except TextError as error:  # a chunk can have more tokens than its sentences together
            left_out.append(f"line {corpus.sentences[numbers[0]].line}, coreference: {error.problem}")


def make_batches(
    pieces: Sequence[WordPieces | None], remaining: Sequence[int], heads: int, size: int = DEFAULT_BATCH
) -> list[tuple[int, ...]]:
    """Group the numbers in ``remaining`` into batches of texts of one length with special tokens at the same positions.

    A batch has at most ``size`` tokens, fewer for many ``heads``. The largest batches come first, so that the last ones
    are short.
    """
    numbers_by_shape: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number in remaining:
        text = pieces[number]
        if text is not None:
            special_positions = tuple(i for i, word in enumerate(text.words) if word is None)
            numbers_by_shape.setdefault((len(text), special_positions), []).append(number)
    groups = []
    for (length, _), numbers in sorted(numbers_by_shape.items(), reverse=True):
        count = max(1, min(size // length, MAX_CELLS // (heads * length**2)))
        groups += [(length, tuple(numbers[start : start + count])) for start in range(0, len(numbers), count)]
    return [numbers for length, numbers in sorted(groups, key=lambda batch: -batch[0] * len(batch[1]))]


def find_all_pointers(encoder: Encoder, corpus: Corpus) -> tuple[Pointers | None, ...]:
    """Return the pointers of each sentence, in order; None for a sentence that cannot be read or has a single word."""
    pointers: list[Pointers | None] = [None] * len(corpus.sentences)
    for number, block in iter_word_blocks(encoder, corpus.sentences):
        pointers[number] = find_pointers(block)
    return tuple(pointers)


def iter_word_blocks(
    encoder: Encoder, sentences: Sequence[Sentence], head: Head | None = None
) -> Iterator[tuple[int, Weights]]:
    """Yield the index of each sentence that can be read and has at least two words, and its weights [head, word, word].

    With ``head``, only this head is read.
    """
    texts = plan(encoder, Corpus("", tuple(sentences), "")).sentences
    remaining = [i for i, text in enumerate(texts) if text and len(sentences[i].words) > 1]
    for numbers in make_batches(texts, remaining, encoder.layers * encoder.heads):
        pieces = [text for i in numbers if (text := texts[i]) is not None]
        weights = encoder.batch(pieces)  # [layer, head, sentence, query, key]
        head_weights = weights.reshape(-1, *weights.shape[2:])
        if head is not None:
            head_weights = head_weights[[head.place(encoder.heads, encoder.layer_numbers)]]
        for index, number in enumerate(numbers):
            yield number, reduce_to_words(head_weights[:, index], pieces[index].words)
