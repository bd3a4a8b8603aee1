"""A few sentences of a corpus: joined where they were read together, and their annotation in a shorter form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mha_viz.corpus.treebank import Mention, Sentence, Word

SentenceSpan = tuple[int, int]  # the numbers of the first and the last of consecutive sentences


def as_one_sentence(sentences: Sequence[Sentence]) -> Sentence:
    """Consecutive sentences as one sentence with several roots, with all their dependencies and mentions."""
    words: list[Word] = []
    mentions: list[Mention] = []
    for sentence in sentences:
        start = len(words)
        words += [word if word.head is None else word._replace(head=word.head + start) for word in sentence.words]
        mentions += [
            Mention(mention.chain, *(place + start for place in (mention.start, mention.end, mention.word)))
            for mention in sentence.mentions
        ]
    return Sentence(tuple(words), tuple(mentions), sentences[0].document, sentences[0].line)


def shorter(sentence: Sentence, coreference: bool) -> Iterator[Sentence]:
    """The sentence itself, then versions with less and less annotation: without features; for ``coreference``, with
    only the head word of each mention. What is left out is not drawn above the words."""
    yield sentence
    yield replace(sentence, words=tuple(word._replace(features="") for word in sentence.words))
    if coreference:
        numbers = {chain: str(number) for number, chain in enumerate(dict.fromkeys(m.chain for m in sentence.mentions))}
        heads = sorted({(mention.word, numbers[mention.chain]) for mention in sentence.mentions})
        mentions = tuple(Mention(chain, word, word + 1, word) for word, chain in heads)
        yield replace(sentence, words=tuple(Word(word.form) for word in sentence.words), mentions=mentions)


def excerpts(sentences: Sequence[Sentence], spans: Iterable[SentenceSpan]) -> tuple[Sentence, ...]:
    """The sentences of each span, from its first to its last number, joined."""
    return tuple(as_one_sentence(sentences[first : last + 1]) for first, last in spans)
