"""The place of each shard in its corpus: which sentences, lines and documents come before it."""

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

GOES_ON = "\0"  # stands for the document of sentences whose document began in an earlier shard

Spans = tuple[tuple[int, int], ...]  # a document's number, and its count of consecutive sentences


class Survey(NamedTuple):
    """The contents of a shard. ``documents``: the name of each and the number of its sentences, in order."""

    sentences: int
    lines: int
    documents: tuple[tuple[str, int], ...]
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    has_trees: bool
    has_chains: bool


class Part(NamedTuple):
    """A shard in its corpus. ``start``: where it begins in its file; ``first``: the number of its first sentence;
    ``documents``: the number of each document and its count of sentences; ``prefix``: the prefix that distinguishes
    document names of one file among several, None for a corpus of one file; ``has_chains`` applies to the file."""

    shard: Shard
    kind: str
    start: Start
    first: int
    sentences: int
    documents: Spans
    prefix: str | None
    has_chains: bool


class Layout(NamedTuple):
    """A corpus in parts. ``corpus`` has no sentences; ``documents`` is their number."""

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
    """The documents of a part as rows of its sums: ``local`` holds pairs of a row and its count of sentences;
    ``blocks`` the document of the corpus, or the block of documents, that each row belongs to."""

    local: Spans
    blocks: tuple[int, ...]


def survey(shard: Shard, kind: str) -> Survey:
    """The contents of a shard, independent of its place in the corpus. Raises CorpusError."""
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
    """The parts of a corpus of these files, from a survey of each shard. Raises CorpusError for a corpus without
    sentences or with too many relations."""
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
    """The parts of one file; ``documents`` maps the names of the corpus's documents so far to their numbers."""
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
    """The name that a document of a shard has in its file; a nameless one is named after the number of its first
    sentence, whose place in the shard is ``place``."""
    if document == GOES_ON:
        return start.document
    return f"document {start.sentences + place}" if document == f"document {place}" else document


def _renamed(document: str, prefix: str | None, has_chains: bool) -> str:
    """The name of a document in a corpus of several files (``corpus.sources``)."""
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
    """How many documents, or blocks of neighbouring ones, are counted separately."""
    return most_documents(len(HALVES) * len(DIRECTIONS) * len(relations.names) * heads)


def documents_of(layout: Layout, heads: int) -> Documents:
    """The documents of a corpus for sums with this many heads, grouped as one process would group them."""
    return Documents.numbered((), min(layout.documents, document_limit(layout.relations, heads)))


def rows_of(layout: Layout, part: Part, heads: int) -> Rows:
    """The rows of a part's sums. If the part has few documents, each has a row of its own, which does not depend on the
    rest of the corpus; otherwise, each block of the corpus has one."""
    most = document_limit(layout.relations, heads)
    numbers = np.array([number for number, _ in part.documents], np.int64)
    blocks = numbers * most // layout.documents if layout.documents > most else numbers
    by = numbers if len(np.unique(numbers)) <= most else blocks
    order = {number: row for row, number in enumerate(dict.fromkeys(by.tolist()))}
    local = tuple((order[int(by[at])], count) for at, (_, count) in enumerate(part.documents))
    in_corpus = {row: int(blocks[at]) for at, (row, _) in enumerate(local)}
    return Rows(local, tuple(in_corpus[row] for row in range(len(order))) or (0,))
