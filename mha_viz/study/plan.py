"""What will be read, and in which order: sentences of equal length together, so that nothing is padded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mha_viz.analysis.coreference import CHUNK, Chunk, chunk, pack
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import TextError
from mha_viz.models.encoder import Encoder
from mha_viz.text import WordPieces

BATCH = 512  # pieces a pass
CELLS = 11_500_000  # of all heads a pass at most: 46 MB, unless one sentence alone has more


class Plan(NamedTuple):
    """``sentences`` and ``chunks`` as the model reads them, by their number; None for what is left out.
    ``left_out`` says why, one line each."""

    sentences: tuple[WordPieces | None, ...]
    chunks: tuple[tuple[Chunk, WordPieces], ...]
    left_out: tuple[str, ...]


def plan(encoder: Encoder, corpus: Corpus) -> Plan:
    """Every sentence in pieces, and for coreference in chunks of consecutive ones."""
    sentences: list[WordPieces | None] = []
    left_out: list[str] = []
    for number, sentence in enumerate(corpus.sentences):
        try:
            sentences.append(encoder.read_words(sentence.forms))
        except TextError as error:
            sentences.append(None)
            left_out.append(f"line {sentence.line or number + 1}: {error.problem}")
    chunks = tuple(_chunks(encoder, corpus, sentences, left_out))
    return Plan(tuple(sentences), chunks, tuple(left_out))


def _chunks(
    encoder: Encoder, corpus: Corpus, sentences: Sequence[WordPieces | None], left_out: list[str]
) -> Iterator[tuple[Chunk, WordPieces]]:
    if not corpus.has_chains:
        return
    lengths = [None if s is None else sum(word is not None for word in s.words) for s in sentences]
    special = next((len(s) - n for s, n in zip(sentences, lengths, strict=True) if s and n is not None), 0)
    most = min(CHUNK, encoder.limit - special)
    for number, length in enumerate(lengths):
        if length is not None and length > most:
            left_out.append(f"line {corpus.sentences[number].line}: {length} pieces, for coreference at most {most}.")
    for numbers in pack(lengths, [sentence.document for sentence in corpus.sentences], most):
        made = chunk(corpus.sentences, numbers)
        try:
            if made.anaphors:
                yield made, encoder.read_words([word.form for word in made.words])
        except TextError as error:  # together they have more pieces than one by one
            left_out.append(f"line {corpus.sentences[numbers[0]].line}, coreference: {error.problem}")


def batches(
    pieces: Sequence[WordPieces | None], todo: Sequence[int], heads: int, size: int = BATCH
) -> list[tuple[int, ...]]:
    """The numbers in ``todo``, those together whose texts have equally many pieces and special tokens in the same
    places; at most ``size`` pieces a batch, fewer for many ``heads``. Those with most pieces come first: nobody
    waits long for the last."""
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number in todo:
        text = pieces[number]
        if text is not None:
            special = tuple(i for i, word in enumerate(text.words) if word is None)
            alike.setdefault((len(text), special), []).append(number)
    found = []
    for (length, _), numbers in sorted(alike.items(), reverse=True):
        most = max(1, min(size // length, CELLS // (heads * length**2)))
        found += [(length, tuple(numbers[start : start + most])) for start in range(0, len(numbers), most)]
    return [numbers for length, numbers in sorted(found, key=lambda batch: -batch[0] * len(batch[1]))]
