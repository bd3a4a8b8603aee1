"""Lay out a corpus in shards: find where in the corpus and in which document each shard begins."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from mha_viz.analysis.pos_rules import GoldPath, RulesByRow, choose_rules, count_paths
from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.corpus_files import strip_compression
from mha_viz.corpus.cutting import Shard, ShardedFile, read_shard
from mha_viz.corpus.limits import MAX_LABELS
from mha_viz.corpus.reading import count_lines, read_part
from mha_viz.corpus.treebank import FILE_START, Corpus, PartStart, check_withheld_words, count_empty_forms
from mha_viz.errors import CorpusError

UNKNOWN_DOCUMENT = "\0"  # placeholder for the name of a document that began in an earlier shard


Spans = tuple[tuple[str, int], ...]  # (name of a document, number of its consecutive sentences)


class Survey(NamedTuple):
    """The contents of a shard.

    Attributes:
        sentences, lines: the number of each.
        documents: the name of each document and its number of sentences, in order.
        relations, upos: the labels of relations and parts of speech.
        has_trees, has_chains: whether it has trees, and coreference chains.
        path_counts: the counts from which rules by parts of speech are chosen, of even and of odd sentences.
        form_counts: the number of missing words, and of all words.
    """

    sentences: int
    lines: int
    documents: Spans
    relations: tuple[str, ...]
    upos: tuple[str, ...]
    has_trees: bool
    has_chains: bool
    path_counts: tuple[Counter[GoldPath], Counter[GoldPath]]
    form_counts: tuple[int, int]


class Part(NamedTuple):
    """A shard in its corpus.

    Attributes:
        shard: the shard.
        file_format: the format of its file.
        start: the lines and sentences before it in its file, and its first document.
        number: its place among the shards.
        first: the number of its first sentence.
        sentences: the number of sentences.
        documents: the name of each document in the corpus and its number of sentences.
        multi_file: whether the corpus has several files.
    """

    shard: Shard
    file_format: str
    start: PartStart
    number: int
    first: int
    sentences: int
    documents: Spans
    multi_file: bool

    @property
    def content(self) -> tuple[object, ...]:
        """Everything that its sentences, and the lines about left-out text, depend on."""
        file_name = self.multi_file and Path(self.shard.path).name
        return self.shard.digest, self.file_format, self.start, self.documents, file_name


class Layout(NamedTuple):
    """A corpus in parts.

    Attributes:
        corpus: the corpus without its sentences.
        parts: its shards.
        relations: its labels.
        rules: its rules by parts of speech.
    """

    corpus: Corpus
    parts: tuple[Part, ...]
    relations: Relations
    rules: RulesByRow

    @property
    def name(self) -> str:
        """The name of the corpus."""
        return self.corpus.name

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return sum(part.sentences for part in self.parts)

    @property
    def digest(self) -> str:
        """The digest of the corpus."""
        return self.corpus.digest


def survey_shard(shard: Shard, kind: str) -> Survey:
    """Return the contents of a shard, independent of its place in the corpus. Raises CorpusError."""
    data = read_shard(shard)
    start = PartStart(document=UNKNOWN_DOCUMENT, declarations=shard.declarations)
    corpus = read_part(data, kind, Path(shard.path).name, start)
    relations = Relations(corpus.sentences)
    names = groupby(sentence.document for sentence in corpus.sentences)
    return Survey(
        len(corpus.sentences),
        count_lines(data),
        tuple((name, sum(1 for _ in sentences)) for name, sentences in names),
        relations.names,
        relations.upos,
        corpus.has_trees,
        corpus.has_chains,
        (count_paths(corpus.sentences[::2]), count_paths(corpus.sentences[1::2])),
        count_empty_forms(corpus),
    )


def lay_out(name: str, files: Sequence[ShardedFile], surveys: Sequence[Sequence[Survey]]) -> Layout:
    """Return the parts of a corpus of these files, from a survey of each shard.

    Raises CorpusError for a corpus without sentences or with too many relations.
    """
    all_surveys = list(chain.from_iterable(surveys))
    _check_surveys(name, all_surveys)
    parts: list[Part] = []
    first = 0
    for number, (file, file_surveys) in enumerate(zip(files, surveys, strict=True)):
        prefix = f"{number}:" if len(files) > 1 else None
        parts += _iter_parts(file, file_surveys, len(parts), first, prefix)
        first += sum(survey.sentences for survey in file_surveys)
    digests = [file.digest for file in files]
    digest = digests[0] if len(files) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    has_trees, has_chains = (
        any(survey.has_trees for survey in all_surveys),
        any(survey.has_chains for survey in all_surveys),
    )
    names = {name for survey in all_surveys for name in survey.relations}
    relations = Relations((), names, {tag for survey in all_surveys for tag in survey.upos})
    corpus = Corpus(name, (), digest, has_trees, has_chains)
    path_counts: Counter[GoldPath] = Counter()
    for part, survey in zip(parts, all_surveys, strict=True):
        path_counts.update(survey.path_counts[part.first % 2])  # of the sentences with even numbers in the corpus
    return Layout(corpus, tuple(parts), relations, choose_rules(path_counts, relations))


def _check_surveys(name: str, surveys: Sequence[Survey]) -> None:
    """Raise CorpusError for a corpus without sentences, with too many missing words, or with too many labels."""
    if not sum(survey.sentences for survey in surveys):
        raise CorpusError(f"{name} contains no sentence.", "Expected CoNLL-U, or text with one sentence per line.")
    form_counts = zip(*(survey.form_counts for survey in surveys), strict=True)
    check_withheld_words(name, *map(sum, form_counts))
    relations = {label for survey in surveys for label in survey.relations}
    upos = {label for survey in surveys for label in survey.upos}
    for labels, kind in ((relations, "relations"), (upos, "parts of speech")):
        if len(labels) > MAX_LABELS:
            raise CorpusError(
                f"{name} has {len(labels)} different {kind}; at most {MAX_LABELS} are read, counting subtypes.",
                "A treebank has about 50: check the order of the columns, or merge rare ones.",
            )


def _iter_parts(
    file: ShardedFile, surveys: Sequence[Survey], number: int, first: int, prefix: str | None
) -> Iterator[Part]:
    """Yield the shards of one file as parts; ``number`` and ``first`` are those of the first shard and sentence."""
    has_chains = any(survey.has_chains for survey in surveys)
    start = FILE_START
    for shard_number, (shard, survey) in enumerate(zip(file.shards, surveys, strict=True), number):
        spans, name, offset = [], start.document, 0
        for document, count in survey.documents:
            name = start.document if document == UNKNOWN_DOCUMENT else document
            if document == f"document {offset}":  # nameless: named after the number of its first sentence in the file
                name = f"document {start.sentences + offset}"
            keeps_name = prefix is None or not (name or has_chains)
            spans.append((name if keeps_name else f"{prefix}{name}", count))  # as ``corpus.sources`` names it
            offset += count
        yield Part(
            shard,
            file.kind,
            start._replace(declarations=shard.declarations),
            shard_number,
            first,
            survey.sentences,
            tuple(spans),
            prefix is not None,
        )
        first += survey.sentences
        start = PartStart(start.lines + survey.lines, start.sentences + survey.sentences, name)


def read_part_corpus(part: Part) -> Corpus:
    """Read the sentences of a part. Raises CorpusError."""
    name = strip_compression(Path(part.shard.path))
    corpus = read_part(read_shard(part.shard), part.file_format, name, part.start)
    lines = tuple(f"{name}, {line}" if part.multi_file else line for line in corpus.left_out)
    documents = (name for name, count in part.documents for _ in range(count))
    pairs = zip(corpus.sentences, documents, strict=True)
    sentences = (item if item.document == name else replace(item, document=name) for item, name in pairs)
    return replace(corpus, sentences=tuple(sentences), left_out=lines)
