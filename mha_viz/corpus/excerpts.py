"""Extract a few sentences of a corpus.

Sentences that the model read together are joined, and their annotation can be shortened to fit. An uploaded file is
parsed in a child process, which gets ``spans`` of sentence numbers and ``data``, the bytes of the file, and returns
CoNLL-U with the sentences of each span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from mha_viz.corpus import reading
from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.corpus.uploads import BOUNDS, NEUTRAL_NAME
from mha_viz.errors import CorpusError
from mha_viz.process import children

SentenceSpan = tuple[int, int]  # the numbers of the first and the last of consecutive sentences


def merge_sentences(sentences: Sequence[Sentence]) -> Sentence:
    """Join consecutive sentences into one with several roots, keeping all dependencies and mentions."""
    words: list[Word] = []
    mentions: list[Mention] = []
    for sentence in sentences:
        start = len(words)
        words += [word if word.head is None else word._replace(head=word.head + start) for word in sentence.words]
        mentions += [
            Mention(mention.chain, *(index + start for index in (mention.start, mention.end, mention.word)))
            for mention in sentence.mentions
        ]
    return Sentence(tuple(words), tuple(mentions), sentences[0].document, sentences[0].line)


def iter_reduced_sentences(sentence: Sentence, coreference: bool) -> Iterator[Sentence]:
    """Yield the sentence itself, then versions with less and less annotation.

    First its features are removed; then, for ``coreference``, everything but the head word of each mention. Annotation
    that is left out is not drawn above the words.
    """
    yield sentence
    yield replace(sentence, words=tuple(word._replace(features="") for word in sentence.words))
    if coreference:
        numbers = {chain: str(number) for number, chain in enumerate(dict.fromkeys(m.chain for m in sentence.mentions))}
        heads = sorted({(mention.word, numbers[mention.chain]) for mention in sentence.mentions})
        mentions = tuple(Mention(chain, word, word + 1, word) for word, chain in heads)
        yield replace(sentence, words=tuple(Word(word.form) for word in sentence.words), mentions=mentions)


def extract_excerpts(sentences: Sequence[Sentence], spans: Iterable[SentenceSpan]) -> tuple[Sentence, ...]:
    """Join the sentences of each span, from its first to its last number, into one."""
    return tuple(merge_sentences(sentences[first : last + 1]) for first, last in spans)


CHILD_MODULE = "mha_viz.corpus.excerpts"


def read_excerpts(data: bytes, spans: Sequence[SentenceSpan]) -> dict[SentenceSpan, Sentence]:
    """Read the sentences of an uploaded file, joined by span.

    Raises CorpusError, and the errors of :func:`mha_viz.process.children.run`.
    """
    text = children.run(CHILD_MODULE, {"spans": [*map(tuple, spans)], "data": data}, BOUNDS)
    # Joined only here: one sentence with an invalid tree would cost the others their dependencies.
    sentences = iter(read_conllu(text, NEUTRAL_NAME, is_part=True).sentences)
    return {(first, last): merge_sentences([*islice(sentences, last - first + 1)]) for first, last in spans}


def work(order: dict[str, Any], report: children.ReportProgress, cancelled: children.IsCancelled) -> str:
    """Return the requested sentences as CoNLL-U. Raises CorpusError."""
    corpus = reading.parse_file(order["data"], NEUTRAL_NAME)
    if not isinstance(corpus, Corpus):
        raise CorpusError("A GAP table has no sentences.", "Choose a treebank or plain text.")
    return format_conllu([s for first, last in order["spans"] for s in corpus.sentences[first : last + 1]])


if __name__ == "__main__":
    children.serve(work)
