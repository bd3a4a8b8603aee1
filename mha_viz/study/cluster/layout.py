"""The place of each shard in its corpus: how many sentences and lines come before it, and in which document it
begins."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from mha_viz.analysis.nearest import Passed, RuleOfRows, choose_rules, tally
from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.cutting import Shard, ShardedFile, content
from mha_viz.corpus.limits import MAX_LABELS
from mha_viz.corpus.reading import lines_in, read_part
from mha_viz.corpus.stored import plain_name
from mha_viz.corpus.treebank import START, Corpus, PartStart, check_forms, empty_forms
from mha_viz.errors import CorpusError

GOES_ON = "\0"  # stands for the document of sentences whose document began in an earlier shard


Spans = tuple[tuple[str, int], ...]  # a document's name, and its count of consecutive sentences


class Survey(NamedTuple):
    """The contents of a shard. ``documents``: the name of each and the number of its sentences, in order; ``relations``
    and ``upos``: its labels; ``ways``: what rules by parts of speech are chosen by, of its sentences with even numbers
    and of those with odd ones; ``forms``: how many words are not given, and how many there are."""

    sentences: int
    lines: int
    documents: Spans
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    has_trees: bool
    has_chains: bool
    ways: tuple[Counter[Passed], Counter[Passed]]
    forms: tuple[int, int]


class Part(NamedTuple):
    """A shard in its corpus. ``start``: where it begins in its file; ``number``: its place among the shards; ``first``:
    the number of its first sentence; ``documents``: the name of each in the corpus and its count of sentences;
    ``several``: whether the corpus has several files."""

    shard: Shard
    kind: str
    start: PartStart
    number: int
    first: int
    sentences: int
    documents: Spans
    several: bool

    @property
    def content(self) -> tuple[object, ...]:
        """What its sentences, and the lines that are left out, depend on."""
        return self.shard.digest, self.kind, self.start, self.documents, self.several and Path(self.shard.path).name


class Layout(NamedTuple):
    """A corpus in parts. ``corpus`` has no sentences; ``relations``: its labels; ``rules``: those by parts of
    speech."""

    corpus: Corpus
    parts: tuple[Part, ...]
    relations: Relations
    rules: RuleOfRows

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self.corpus.name

    @property
    def sentences(self) -> int:
        """How many there are."""
        return sum(part.sentences for part in self.parts)

    @property
    def digest(self) -> str:
        """The digest of the corpus."""
        return self.corpus.digest


def survey(shard: Shard, kind: str) -> Survey:
    """The contents of a shard, independent of its place in the corpus. Raises CorpusError."""
    data = content(shard)
    corpus = read_part(data, kind, Path(shard.path).name, PartStart(document=GOES_ON, declared=shard.declared))
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
        (tally(corpus.sentences[::2]), tally(corpus.sentences[1::2])),
        empty_forms(corpus),
    )


def lay_out(name: str, cuts: Sequence[ShardedFile], surveys: Sequence[Sequence[Survey]]) -> Layout:
    """The parts of a corpus of these files, from a survey of each shard. Raises CorpusError for a corpus without
    sentences or with too many relations."""
    every = list(chain.from_iterable(surveys))
    _check(name, every)
    parts: list[Part] = []
    first = 0
    for number, (cut, of_file) in enumerate(zip(cuts, surveys, strict=True)):
        prefix = f"{number}:" if len(cuts) > 1 else None
        parts += _parts_of_file(cut, of_file, len(parts), first, prefix)
        first += sum(one.sentences for one in of_file)
    digests = [cut.digest for cut in cuts]
    digest = digests[0] if len(cuts) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    has_trees, has_chains = any(one.has_trees for one in every), any(one.has_chains for one in every)
    relations = Relations((), {n for one in every for n in one.relations}, {t for one in every for t in one.upos})
    corpus = Corpus(name, (), digest, has_trees, has_chains)
    ways: Counter[Passed] = Counter()
    for part, one in zip(parts, every, strict=True):
        ways.update(one.ways[part.first % 2])  # of the sentences with even numbers in the corpus
    return Layout(corpus, tuple(parts), relations, choose_rules(ways, relations))


def _check(name: str, surveys: Sequence[Survey]) -> None:
    if not sum(one.sentences for one in surveys):
        raise CorpusError(f"{name} contains no sentence.", "Expected CoNLL-U, or text with one sentence per line.")
    check_forms(name, *(sum(counts) for counts in zip(*(one.forms for one in surveys), strict=True)))
    relations = {label for one in surveys for label in one.relations}
    upos = {label for one in surveys for label in one.upos}
    for labels, kind in ((relations, "relations"), (upos, "parts of speech")):
        if len(labels) > MAX_LABELS:
            raise CorpusError(
                f"{name} has {len(labels)} different {kind}; at most {MAX_LABELS} are read, counting subtypes.",
                "A treebank has about 50: check the order of the columns, or merge rare ones.",
            )


def _parts_of_file(
    cut: ShardedFile, surveys: Sequence[Survey], number: int, first: int, prefix: str | None
) -> Iterator[Part]:
    has_chains = any(one.has_chains for one in surveys)
    start = START
    for at, (shard, one) in enumerate(zip(cut.shards, surveys, strict=True), number):
        spans, name, place = [], start.document, 0
        for document, count in one.documents:
            name = start.document if document == GOES_ON else document
            if document == f"document {place}":  # nameless: named after the number of its first sentence in the file
                name = f"document {start.sentences + place}"
            alone = prefix is None or not (name or has_chains)
            spans.append((name if alone else f"{prefix}{name}", count))  # as ``corpus.sources`` names it
            place += count
        yield Part(
            shard,
            cut.kind,
            start._replace(declared=shard.declared),
            at,
            first,
            one.sentences,
            tuple(spans),
            prefix is not None,
        )
        first += one.sentences
        start = PartStart(start.lines + one.lines, start.sentences + one.sentences, name)


def corpus_of(part: Part) -> Corpus:
    """The sentences of a part. Raises CorpusError."""
    name = plain_name(Path(part.shard.path))
    corpus = read_part(content(part.shard), part.kind, name, part.start)
    lines = tuple(f"{name}, {line}" if part.several else line for line in corpus.left_out)
    documents = (name for name, count in part.documents for _ in range(count))
    pairs = zip(corpus.sentences, documents, strict=True)
    named = (one if one.document == name else replace(one, document=name) for one, name in pairs)
    return replace(corpus, sentences=tuple(named), left_out=lines)
