"""Where each shard of a corpus stands in it: which sentences, lines and documents come before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.intervals import Documents, most_documents
from mha_viz.analysis.syntax import DIRECTIONS, HALVES, Relations
from mha_viz.corpus.cutting import Cut, Shard, content
from mha_viz.corpus.limits import MAX_LABELS
from mha_viz.corpus.reading import lines_in, read_part
from mha_viz.corpus.stored import plain_name
from mha_viz.corpus.treebank import START, Corpus, Sentence, Start
from mha_viz.errors import CorpusError

GOES_ON = "\0"  # the document of sentences whose document began in an earlier shard

Spans = tuple[tuple[int, int], ...]  # a number, and of how many consecutive sentences


class Survey(NamedTuple):
    """What a shard has. ``documents``: the name of each and the number of its sentences, in order."""

    sentences: int
    lines: int
    documents: tuple[tuple[str, int], ...]
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    has_trees: bool
    has_chains: bool


class Part(NamedTuple):
    """A shard in its corpus. ``start``: where it begins in its file; ``first``: the number of its first sentence;
    ``documents``: the number of each document and of how many sentences; ``prefix``: what makes names of documents
    those of one file among several, None in a corpus of one file; ``has_chains`` is of the file."""

    shard: Shard
    kind: str
    start: Start
    first: int
    sentences: int
    documents: Spans
    prefix: str | None
    has_chains: bool


class Layout(NamedTuple):
    """A corpus in parts. ``corpus`` has no sentences; ``documents`` is how many there are."""

    corpus: Corpus
    relations: Relations
    documents: int
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self.corpus.name

    @property
    def digest(self) -> str:
        """The digest of the corpus."""
        return self.corpus.digest

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return sum(part.sentences for part in self.parts)


class Rows(NamedTuple):
    """The documents of a part as rows of its sums: ``local`` is the row of each and of how many sentences; ``blocks``
    the document, or the block of documents, that each row belongs to in the corpus."""

    local: Spans
    blocks: tuple[int, ...]


def survey(shard: Shard, kind: str) -> Survey:
    """What a shard has, wherever it stands. Raises CorpusError."""
    data = content(shard)
    corpus = read_part(data, kind, Path(shard.path).name, Start(document=GOES_ON))
    relations = Relations(corpus.sentences)
    names = groupby(sentence.document for sentence in corpus.sentences)
    return Survey(
        len(corpus.sentences),
        lines_in(data, kind),
        tuple((name, sum(1 for _ in sentences)) for name, sentences in names),
        relations.names,
        relations.upos,
        corpus.has_trees,
        corpus.has_chains,
    )


def lay_out(name: str, cuts: Sequence[Cut], surveys: Sequence[Sequence[Survey]]) -> Layout:
    """The parts of a corpus of these files, with a survey of each shard. Raises CorpusError for one without a sentence
    and for one with too many relations."""
    every = list(chain.from_iterable(surveys))
    relations = Relations(
        (), {one for each in every for one in each.relations}, {one for each in every for one in each.upos}
    )
    _check(name, relations, sum(one.sentences for one in every))
    documents: dict[str, int] = {}
    parts: list[Part] = []
    first = 0
    for number, (cut, of_file) in enumerate(zip(cuts, surveys, strict=True)):
        prefix = f"{number}:" if len(cuts) > 1 else None
        parts += _parts_of_file(cut, of_file, first, prefix, documents)
        first += sum(one.sentences for one in of_file)
    digests = [cut.digest for cut in cuts]
    digest = digests[0] if len(cuts) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    has_trees, has_chains = any(one.has_trees for one in every), any(one.has_chains for one in every)
    corpus = Corpus(name, (), digest, has_trees, has_chains)
    return Layout(corpus, relations, max(1, len(documents)), tuple(parts))


def _check(name: str, relations: Relations, sentences: int) -> None:
    if not sentences:
        raise CorpusError(f"{name} contains no sentence.", "Expected CoNLL-U, or text with one sentence per line.")
    for labels, kind in ((relations.names, "relations"), (relations.upos, "parts of speech")):
        if len(labels) > MAX_LABELS:
            raise CorpusError(
                f"{name} has {len(labels)} different {kind}; at most {MAX_LABELS} are read, counting subtypes.",
                "A treebank has about 50: check the order of the columns, or merge rare ones.",
            )


def _parts_of_file(
    cut: Cut, surveys: Sequence[Survey], first: int, prefix: str | None, documents: dict[str, int]
) -> Iterator[Part]:
    """The parts of one file; ``documents`` are those of the corpus so far, by name, with their numbers."""
    has_chains = any(one.has_chains for one in surveys)
    start = START
    for shard, one in zip(cut.shards, surveys, strict=True):
        spans, name, place = [], start.document, 0
        for document, count in one.documents:
            name = _name_in_file(document, place, start)
            spans.append((documents.setdefault(_renamed(name, prefix, has_chains), len(documents)), count))
            place += count
        yield Part(shard, cut.kind, start, first, one.sentences, tuple(spans), prefix, has_chains)
        first += one.sentences
        start = Start(start.lines + one.lines, start.sentences + one.sentences, name)


def _name_in_file(document: str, place: int, start: Start) -> str:
    """The name that a document of a shard has in its file; one without a name is called by the number of its first
    sentence, ``place`` in the shard."""
    if document == GOES_ON:
        return start.document
    return f"document {start.sentences + place}" if document == f"document {place}" else document


def _renamed(document: str, prefix: str | None, has_chains: bool) -> str:
    """As a corpus of several files names it (``corpus.sources``)."""
    if prefix is None:
        return document
    return f"{prefix}{document}" if document or has_chains else ""


def corpus_of(part: Part) -> Corpus:
    """The sentences of a part. Raises CorpusError."""
    name = plain_name(Path(part.shard.path))
    corpus = read_part(content(part.shard), part.kind, name, part.start)
    lines = corpus.left_out if part.prefix is None else tuple(f"{name}, {line}" for line in corpus.left_out)
    return replace(corpus, sentences=tuple(_sentences(corpus, part)), left_out=lines)


def _sentences(corpus: Corpus, part: Part) -> Iterator[Sentence]:
    for sentence in corpus.sentences:
        name = _renamed(sentence.document, part.prefix, part.has_chains)
        yield sentence if name == sentence.document else replace(sentence, document=name)


def document_limit(relations: Relations, heads: int) -> int:
    """How many documents, or blocks of neighbouring ones, have counts of their own."""
    return most_documents(len(HALVES) * len(DIRECTIONS) * len(relations.names) * heads)


def documents_of(layout: Layout, heads: int) -> Documents:
    """The documents of a corpus whose sums have this many heads: those that one process would tell apart."""
    return Documents.numbered((), min(layout.documents, document_limit(layout.relations, heads)))


def rows_of(layout: Layout, part: Part, heads: int) -> Rows:
    """The rows of a part's sums. Where it has few documents each has one, which does not depend on the rest of the
    corpus; else each block of the corpus."""
    most = document_limit(layout.relations, heads)
    numbers = np.array([number for number, _ in part.documents], np.int64)
    blocks = numbers * most // layout.documents if layout.documents > most else numbers
    by = numbers if len(np.unique(numbers)) <= most else blocks
    order = {number: row for row, number in enumerate(dict.fromkeys(by.tolist()))}
    local = tuple((order[int(by[at])], count) for at, (_, count) in enumerate(part.documents))
    in_corpus = {row: int(blocks[at]) for at, (row, _) in enumerate(local)}
    return Rows(local, tuple(in_corpus[row] for row in range(len(order))) or (0,))
