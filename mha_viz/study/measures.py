"""The measures of a study: for each kind of text, a function that adds a batch of texts to sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from mha_viz.analysis import metrics
from mha_viz.analysis.coreference import Coreference
from mha_viz.analysis.distance import Distances
from mha_viz.analysis.metrics import Patterns
from mha_viz.analysis.pos_rules import RulesByRow, choose_rules, count_paths
from mha_viz.analysis.profile import DEFINITIONS
from mha_viz.analysis.reduce import Batch, RunningSums, reduce_to_words
from mha_viz.analysis.syntax import Relations, Syntax, Tree, join_sentences
from mha_viz.attention import Attention
from mha_viz.corpus.limits import count_every, take_every
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.gap import is_decided, sum_gap_scores
from mha_viz.study.plan import Plan, make_batches, plan
from mha_viz.study.sums import Sums, choose_block_bits, label_block, label_documents
from mha_viz.text import WordPieces

GAP_ROWS = 30  # rows of a GAP table per batch
FORMAT = 2  # version of the sums, which increases when more of them are stored


@dataclass(frozen=True)
class ReadShard:
    """A corpus, or a part of one, as a model reads it.

    Attributes:
        corpus: the sentences.
        plan: their tokens, and lines about left-out text.
        relations: the labels of the corpus.
        first: the number of its first sentence.
        labels: for each sentence the label of its document.
        trees: the trees of annotated sentences, by index in ``corpus``.
        rules: rules by parts of speech, chosen on the whole corpus.
    """

    corpus: Corpus | Gap
    plan: Plan
    relations: Relations
    first: int
    labels: Sequence[str]
    trees: dict[int, Tree]
    rules: RulesByRow = field(default_factory=dict)


class ResamplingUnits(NamedTuple):
    """The units of resampling: which sentences are drawn together.

    Sentences of a document are drawn together or, with ``by_sentence``, each sentence alone. If there are too many
    units, those with the same first ``bits`` of a digest are drawn together.
    """

    by_sentence: bool
    bits: int | None

    @classmethod
    def choose(cls, documents: Sequence[str], cells: int) -> ResamplingUnits:
        """Choose the units for sentences of these documents; single sentences if the corpus names no documents.

        ``cells`` is the number of sums of each document.
        """
        by_sentence = len({*documents}) < 2
        return cls(by_sentence, choose_block_bits(map(str, range(len(documents))) if by_sentence else documents, cells))

    def label(self, number: int, sentence: Sentence) -> str:
        """Return the label of a sentence's unit. ``number`` is its place among the sentences that are read."""
        unit = str(number) if self.by_sentence else sentence.document
        return unit if self.bits is None else label_block(unit, self.bits)


def read_plain_shard(
    encoder: Encoder, corpus: Corpus | Gap, first: int, step: int, units: ResamplingUnits
) -> ReadShard:
    """Return every ``step``-th sentence of a corpus as the model reads it, without annotation and newly numbered."""
    assert isinstance(corpus, Corpus)
    sentences, number_before = tuple(take_every(step, corpus.sentences, first)), count_every(step, first)
    plain_corpus = replace(corpus, sentences=sentences, has_trees=False, has_chains=False, left_out=())
    labels = [units.label(number, sentence) for number, sentence in enumerate(sentences, number_before)]
    return ReadShard(plain_corpus, plan(encoder, plain_corpus, number_before), Relations(()), number_before, labels, {})


def count_measured(shard: ReadShard) -> dict[str, int]:
    """Count the texts, words and tokens of a shard that are measured."""
    if isinstance(shard.corpus, Gap):
        return {"rows": len(shard.corpus.rows), "decided": sum(map(is_decided, shard.corpus.rows))}
    texts = zip(shard.corpus.sentences, shard.plan.sentences, strict=True)
    readable_texts = [(sentence, pieces) for sentence, pieces in texts if pieces is not None]
    return {
        "sentences": len(readable_texts),
        "words": sum(len(sentence.words) for sentence, _ in readable_texts),
        "pieces": sum(len(pieces) for _, pieces in readable_texts),
        "chunks": len(shard.plan.chunks),
        "anaphors": sum(len(chunk.anaphors) for chunk, _ in shard.plan.chunks),
    }


class ShardTexts(NamedTuple):
    """All texts of one kind in a shard.

    Attributes:
        lengths: the number of tokens of each text; 0 if it is left out.
        sentences: the place of each text's first sentence in the shard.
        batches: returns batches of text numbers.
        add: adds a batch to the sums of a pass.
    """

    lengths: Sequence[int]
    sentences: Sequence[int]
    batches: Callable[[Sequence[int], int, int], Sequence[Sequence[int]]]  # (text numbers, heads, tokens)
    add: Callable[[Encoder, ReadShard, Sequence[int], Sums, str], None]


class SumKind(Protocol):
    """The interface of measures that are sums over a corpus."""

    @property
    def has_cases(self) -> bool:
        """Whether cases are recorded as evidence."""

    def definition(self) -> list[object]:
        """Return everything that the sums depend on besides the model and the corpus, as JSON values."""

    def count_sentences(self, count: int, first: int) -> int:
        """Count the sentences to read, of ``count`` sentences; the first sentence has the number ``first``."""

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """Return a corpus, or a part of one, as the model reads it."""

    def texts(self, shard: ReadShard) -> dict[str, ShardTexts]:
        """Return the texts of a shard by kind, in the order in which they are read."""


class ProfileSums(NamedTuple):
    """The sums of a profile.

    ``rules`` are rules by parts of speech, chosen on the whole corpus; None if this is the whole corpus, on which
    they are then chosen.
    """

    has_cases: bool = True
    rules: RulesByRow | None = None

    def definition(self) -> list[object]:
        """Return the versions of definitions and sums, the given rules, and the names of registered measures."""
        rules = [(*key[1], key[0], rule.name) for key, rule in (self.rules or {}).items()]
        return [DEFINITIONS, FORMAT, rules, *(metric.name for metric in metrics.list_corpus_metrics())]

    def count_sentences(self, count: int, _: int) -> int:
        """Return ``count``: all sentences are read."""
        return count

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """Return the corpus with its annotation."""
        if isinstance(corpus, Gap):
            return ReadShard(corpus, Plan((), (), ()), Relations(()), 0, [""] * len(corpus.rows), {})
        relations = Relations(corpus.sentences)
        documents = [sentence.document for sentence in corpus.sentences]
        labels = label_documents(documents, relations, encoder.layers * encoder.heads)
        trees, rules = dict[int, Tree](), self.rules
        if corpus.has_trees:
            rules = choose_rules(count_paths(corpus.sentences[first % 2 :: 2]), relations) if rules is None else rules
            trees = {number: relations.make_tree(sentence, rules) for number, sentence in enumerate(corpus.sentences)}
        return ReadShard(corpus, plan(encoder, corpus, first), relations, first, labels, trees, rules or {})

    def texts(self, shard: ReadShard) -> dict[str, ShardTexts]:
        """Return sentences and chunks, or rows of GAP."""
        return list_texts(shard)


PROFILE_SUMS = ProfileSums()


def list_texts(shard: ReadShard) -> dict[str, ShardTexts]:
    """Return the texts of a shard by kind, in the order in which they are read."""
    if isinstance(shard.corpus, Gap):
        rows = range(len(shard.corpus.rows))
        return {"rows": ShardTexts([1] * len(rows), rows, _batch_rows, add_rows)}
    sentences, chunks = shard.plan.sentences, [text for _, text in shard.plan.chunks]
    starts = [chunk.numbers[0] - shard.first for chunk, _ in shard.plan.chunks]
    return {
        "sentences": ShardTexts(
            _count_tokens(sentences), range(len(sentences)), _make_batcher(sentences), add_sentences
        ),
        "chunks": ShardTexts(_count_tokens(chunks), starts, _make_batcher(chunks), add_chunks),
    }


def _count_tokens(texts: Sequence[WordPieces | None]) -> list[int]:
    return [len(text) if text else 0 for text in texts]


def _make_batcher(texts: Sequence[WordPieces | None]) -> Callable[[Sequence[int], int, int], Sequence[Sequence[int]]]:
    return lambda numbers, heads, size: make_batches(texts, numbers, heads, size)


def _batch_rows(numbers: Sequence[int], heads: int, size: int) -> Sequence[Sequence[int]]:
    return [numbers[start : start + GAP_ROWS] for start in range(0, len(numbers), GAP_ROWS)]


def add_sentences(encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
    """Add the patterns, distances and syntax of whole sentences."""
    numbers = [shard.first + number for number in text_numbers]
    batch = _read_batch(encoder, [shard.plan.sentences[number] for number in text_numbers], numbers)
    patterns, distances = Patterns(sums.heads), Distances(sums.heads)
    patterns.add(batch, distances.add(batch))
    documents = sums.indices("document", [shard.labels[number] for number in text_numbers])
    position = metrics.count_document_maxima(batch, documents, len(sums.documents))
    _store_sums(sums, pass_name, patterns=patterns.sums, distances=distances.sums, position=position)
    if metrics.list_corpus_metrics():
        weights_by_head = batch.weights.reshape(encoder.layers, encoder.heads, *batch.weights.shape[1:])
        readings = [
            Attention(encoder.name, encoder.revision, pieces.tokenized(), weights_by_head[:, :, index])
            for index, pieces in enumerate(batch.pieces)
        ]
        _store_sums(sums, pass_name, measures=metrics.sum_metrics(readings))
    if sums.selection is not None:
        sums.selection.add(batch)
    if shard.trees:
        _add_trees(shard, batch, text_numbers, sums, pass_name)


def _add_trees(shard: ReadShard, batch: Batch, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
    """Add the syntax of the sentences with a tree of at least two words."""
    tree_indices = [index for index, number in enumerate(text_numbers) if len(shard.trees[number].heads) > 1]
    if not tree_indices:
        return
    blocks = [reduce_to_words(batch.weights[:, index], batch.pieces[index].words) for index in tree_indices]
    numbers = [batch.numbers[index] for index in tree_indices]
    sentences = join_sentences(shard.relations, blocks, [shard.trees[text_numbers[index]] for index in tree_indices])
    syntax = Syntax(shard.relations, sums.heads, len(sums.documents))
    documents = sums.indices("document", [shard.labels[text_numbers[index]] for index in tree_indices])
    syntax.add(sentences, numbers, documents)
    _store_sums(sums, pass_name, syntax=syntax.sums)
    if sums.selection is not None:
        sums.selection.add_syntax(sentences, blocks, numbers)


def add_chunks(encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
    """Add the coreference of chunks of several sentences."""
    chunks = [shard.plan.chunks[number] for number in text_numbers]
    batch = _read_batch(encoder, [text for _, text in chunks], text_numbers)
    coreference = Coreference(sums.heads, len(sums.documents))
    for index, (chunk, text) in enumerate(chunks):
        word_weights = reduce_to_words(batch.weights[:, index], text.words)
        (row,) = sums.indices("document", [shard.labels[chunk.numbers[0] - shard.first]])
        coreference.add(word_weights, chunk, row)
        if sums.selection is not None:
            sums.selection.add_coreference(word_weights, chunk)
    _store_sums(sums, pass_name, coreference=coreference.sums)


def add_rows(encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
    """Add the scores of rows of a GAP table."""
    assert isinstance(shard.corpus, Gap)
    _store_sums(sums, pass_name, gap=sum_gap_scores(encoder, shard.corpus, text_numbers))


def _store_sums(sums: Sums, pass_name: str, **sums_by_measure: RunningSums) -> None:
    """Store the arrays of measures under the name of a pass."""
    for measure, arrays in sums_by_measure.items():
        sums.arrays |= {f"{pass_name}/{measure}/{quantity}": array for quantity, array in arrays.items()}


def _read_batch(encoder: Encoder, texts: Sequence[WordPieces | None], numbers: Sequence[int]) -> Batch:
    """Run the model on texts and return their attention as a batch."""
    pieces = tuple(text for text in texts if text is not None)
    weights = encoder.batch(pieces)
    return Batch(weights.reshape(-1, *weights.shape[2:]), pieces, tuple(numbers))


class PassSums(NamedTuple):
    """The sums of one pass by measure; zeros where there was nothing to measure."""

    patterns: RunningSums
    distances: RunningSums
    position: RunningSums
    syntax: RunningSums
    coreference: RunningSums
    gap: RunningSums
    measures: RunningSums

    @classmethod
    def from_sums(cls, sums: Sums, pass_name: str) -> PassSums:
        """Return the pass with this name."""
        heads, documents = sums.heads, len(sums.documents)
        zeros: tuple[RunningSums, ...] = (
            Patterns(heads).sums,
            Distances(heads).sums,
            metrics.make_zero_maxima(heads, documents),
            Syntax(sums.relations, heads, documents).sums,
            Coreference(heads, documents).sums,
            {},
            {},
        )
        return cls(
            *(
                {**arrays, **sums.select(f"{pass_name}/{measure}")}
                for measure, arrays in zip(cls._fields, zeros, strict=True)
            )
        )
