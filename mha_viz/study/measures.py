"""What a study measures: for each kind of text, a function that adds a batch of texts to sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from mha_viz.analysis import metrics
from mha_viz.analysis.coreference import Coreference
from mha_viz.analysis.distance import Distances
from mha_viz.analysis.metrics import Patterns
from mha_viz.analysis.nearest import RuleOfRows, choose_rules, tally
from mha_viz.analysis.profile import DEFINITIONS
from mha_viz.analysis.reduce import Batch, Running, word_block
from mha_viz.analysis.syntax import Relations, Syntax, Tree, joined
from mha_viz.attention import Attention
from mha_viz.corpus.limits import count_every, take_every
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.gap import decided, gap_sums
from mha_viz.study.plan import Plan, batches, plan
from mha_viz.study.sums import Sums, bits_of, block, labels_of
from mha_viz.text import WordPieces

GAP_ROWS = 30  # rows of a GAP table per batch
FORMAT = 2  # version of the sums: increased when others are stored beside them


@dataclass(frozen=True)
class ReadShard:
    """A corpus, or a part of one, as a model reads it. ``first``: the number of its first sentence; ``labels``: for
    each sentence the label of its document; ``trees``: by place, of the annotated sentences; ``rules``: those by parts
    of speech of the whole corpus."""

    corpus: Corpus | Gap
    plan: Plan
    relations: Relations
    first: int
    labels: Sequence[str]
    trees: dict[int, Tree]
    rules: RuleOfRows = field(default_factory=dict)


class DrawnTogether(NamedTuple):
    """Which sentences are drawn together: those of a document or, ``by_sentence``, each alone; of many, as many as have
    the same first ``bits`` of a digest."""

    by_sentence: bool
    bits: int | None

    @classmethod
    def of(cls, documents: Sequence[str], cells: int) -> DrawnTogether:
        """For sentences of these documents, each of which is drawn alone if the corpus names none. ``cells``: how many
        sums each document has."""
        by_sentence = len({*documents}) < 2
        return cls(by_sentence, bits_of(map(str, range(len(documents))) if by_sentence else documents, cells))

    def label(self, number: int, sentence: Sentence) -> str:
        """What a sentence is drawn with. ``number``: its place among those that are read."""
        unit = str(number) if self.by_sentence else sentence.document
        return unit if self.bits is None else block(unit, self.bits)


def plain_shard(encoder: Encoder, corpus: Corpus | Gap, first: int, step: int, drawn: DrawnTogether) -> ReadShard:
    """Every ``step``-th sentence of a corpus, as the model reads them, without their annotation, and numbered anew."""
    assert isinstance(corpus, Corpus)
    some, before = tuple(take_every(step, corpus.sentences, first)), count_every(step, first)
    plain = replace(corpus, sentences=some, has_trees=False, has_chains=False, left_out=())
    labels = [drawn.label(number, one) for number, one in enumerate(some, before)]
    return ReadShard(plain, plan(encoder, plain, before), Relations(()), before, labels, {})


def counts(shard: ReadShard) -> dict[str, int]:
    """How much of a shard is measured."""
    if isinstance(shard.corpus, Gap):
        return {"rows": len(shard.corpus.rows), "decided": sum(map(decided, shard.corpus.rows))}
    texts = zip(shard.corpus.sentences, shard.plan.sentences, strict=True)
    readable = [(sentence, pieces) for sentence, pieces in texts if pieces is not None]
    return {
        "sentences": len(readable),
        "words": sum(len(sentence.words) for sentence, _ in readable),
        "pieces": sum(len(pieces) for _, pieces in readable),
        "chunks": len(shard.plan.chunks),
        "anaphors": sum(len(chunk.anaphors) for chunk, _ in shard.plan.chunks),
    }


class Texts(NamedTuple):
    """One kind of text. ``lengths``: for each text its pieces, 0 if it is left out; ``sentences``: the place of its
    first sentence in the shard."""

    lengths: Sequence[int]
    sentences: Sequence[int]
    batches: Callable[[Sequence[int], int, int], Sequence[Sequence[int]]]  # of the numbers, heads and size
    add: Callable[[Encoder, ReadShard, Sequence[int], Sums, str], None]  # adds a batch to the sums of a pass


class SumKind(Protocol):
    """What is summed over a corpus."""

    @property
    def has_cases(self) -> bool:
        """Whether cases are recorded as evidence."""

    def definition(self) -> list[object]:
        """What the sums depend on besides the model and the corpus, as values that JSON can hold."""

    def sentences(self, count: int, first: int) -> int:
        """How many of ``count`` sentences, of which the first has the number ``first``, are read."""

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """A corpus, or a part of one, as the model reads it."""

    def texts(self, shard: ReadShard) -> dict[str, Texts]:
        """The texts of a shard by kind, in the order in which they are read."""


class OfProfile(NamedTuple):
    """The sums of a profile. ``rules``: those by parts of speech of the whole corpus; None if all of it is at hand, so
    that they are chosen here."""

    has_cases: bool = True
    rules: RuleOfRows | None = None

    def definition(self) -> list[object]:
        """The definitions, the rules that are given, and the measures that others have registered."""
        rules = [(*key[1], key[0], rule.name) for key, rule in (self.rules or {}).items()]
        return [DEFINITIONS, FORMAT, rules, *(metric.name for metric in metrics.over_corpus())]

    def sentences(self, count: int, _: int) -> int:
        """All of them."""
        return count

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """The corpus with its annotation."""
        if isinstance(corpus, Gap):
            return ReadShard(corpus, Plan((), (), ()), Relations(()), 0, [""] * len(corpus.rows), {})
        relations = Relations(corpus.sentences)
        documents = [sentence.document for sentence in corpus.sentences]
        labels = labels_of(documents, relations, encoder.layers * encoder.heads)
        trees, rules = dict[int, Tree](), self.rules
        if corpus.has_trees:
            rules = choose_rules(tally(corpus.sentences[first % 2 :: 2]), relations) if rules is None else rules
            trees = {place: relations.tree(sentence, rules) for place, sentence in enumerate(corpus.sentences)}
        return ReadShard(corpus, plan(encoder, corpus, first), relations, first, labels, trees, rules or {})

    def texts(self, shard: ReadShard) -> dict[str, Texts]:
        """Sentences and chunks, or rows of GAP."""
        return texts_of(shard)


PROFILE = OfProfile()


def texts_of(shard: ReadShard) -> dict[str, Texts]:
    """The texts of a shard by kind, in the order in which they are read."""
    if isinstance(shard.corpus, Gap):
        rows = range(len(shard.corpus.rows))
        return {"rows": Texts([1] * len(rows), rows, _rows, add_rows)}
    sentences, chunks = shard.plan.sentences, [text for _, text in shard.plan.chunks]
    starts = [chunk.numbers[0] - shard.first for chunk, _ in shard.plan.chunks]
    return {
        "sentences": Texts(_lengths(sentences), range(len(sentences)), _batches(sentences), add_sentences),
        "chunks": Texts(_lengths(chunks), starts, _batches(chunks), add_chunks),
    }


def _lengths(texts: Sequence[WordPieces | None]) -> list[int]:
    return [len(text) if text else 0 for text in texts]


def _batches(texts: Sequence[WordPieces | None]) -> Callable[[Sequence[int], int, int], Sequence[Sequence[int]]]:
    return lambda numbers, heads, size: batches(texts, numbers, heads, size)


def _rows(numbers: Sequence[int], heads: int, size: int) -> Sequence[Sequence[int]]:
    return [numbers[start : start + GAP_ROWS] for start in range(0, len(numbers), GAP_ROWS)]


def add_sentences(encoder: Encoder, shard: ReadShard, places: Sequence[int], sums: Sums, name: str) -> None:
    """Patterns, distances and syntax of whole sentences."""
    numbers = [shard.first + place for place in places]
    batch = _read(encoder, [shard.plan.sentences[place] for place in places], numbers)
    patterns, distances = Patterns(sums.heads), Distances(sums.heads)
    patterns.add(batch, distances.add(batch))
    documents = sums.places("document", [shard.labels[place] for place in places])
    position = metrics.maxima_of_documents(batch, documents, len(sums.documents))
    _put(sums, name, patterns=patterns.sums, distances=distances.sums, position=position)
    if metrics.over_corpus():
        of_heads = batch.weights.reshape(encoder.layers, encoder.heads, *batch.weights.shape[1:])
        readings = [
            Attention(encoder.name, encoder.revision, pieces.tokenized(), of_heads[:, :, at])
            for at, pieces in enumerate(batch.pieces)
        ]
        _put(sums, name, measures=metrics.summed(readings))
    if sums.selection is not None:
        sums.selection.add(batch)
    if shard.trees:
        _add_trees(shard, batch, places, sums, name)


def _add_trees(shard: ReadShard, batch: Batch, places: Sequence[int], sums: Sums, name: str) -> None:
    with_tree = [at for at, place in enumerate(places) if len(shard.trees[place].heads) > 1]
    if not with_tree:
        return
    blocks = [word_block(batch.weights[:, at], batch.pieces[at].words) for at in with_tree]
    numbers = [batch.numbers[at] for at in with_tree]
    sentences = joined(shard.relations, blocks, [shard.trees[places[at]] for at in with_tree])
    syntax = Syntax(shard.relations, sums.heads, len(sums.documents))
    syntax.add(sentences, numbers, sums.places("document", [shard.labels[places[at]] for at in with_tree]))
    _put(sums, name, syntax=syntax.sums)
    if sums.selection is not None:
        sums.selection.add_syntax(sentences, blocks, numbers)


def add_chunks(encoder: Encoder, shard: ReadShard, places: Sequence[int], sums: Sums, name: str) -> None:
    """Coreference in chunks of several sentences."""
    chunks = [shard.plan.chunks[place] for place in places]
    batch = _read(encoder, [text for _, text in chunks], places)
    coreference = Coreference(sums.heads, len(sums.documents))
    for at, (chunk, text) in enumerate(chunks):
        block = word_block(batch.weights[:, at], text.words)
        (row,) = sums.places("document", [shard.labels[chunk.numbers[0] - shard.first]])
        coreference.add(block, chunk, row)
        if sums.selection is not None:
            sums.selection.add_coreference(block, chunk)
    _put(sums, name, coreference=coreference.sums)


def add_rows(encoder: Encoder, shard: ReadShard, places: Sequence[int], sums: Sums, name: str) -> None:
    """Rows of a GAP table."""
    assert isinstance(shard.corpus, Gap)
    _put(sums, name, gap=gap_sums(encoder, shard.corpus, places))


def _put(sums: Sums, name: str, **measured: Running) -> None:
    for measure, arrays in measured.items():
        sums.arrays |= {f"{name}/{measure}/{quantity}": array for quantity, array in arrays.items()}


def _read(encoder: Encoder, texts: Sequence[WordPieces | None], numbers: Sequence[int]) -> Batch:
    pieces = tuple(text for text in texts if text is not None)
    weights = encoder.batch(pieces)
    return Batch(weights.reshape(-1, *weights.shape[2:]), pieces, tuple(numbers))


class Pass(NamedTuple):
    """The sums of one pass by measure; zeros where there was nothing to measure."""

    patterns: Running
    distances: Running
    position: Running
    syntax: Running
    coreference: Running
    gap: Running
    measures: Running

    @classmethod
    def of(cls, sums: Sums, name: str) -> Pass:
        """The pass of this name."""
        heads, documents = sums.heads, len(sums.documents)
        zeros: tuple[Running, ...] = (
            Patterns(heads).sums,
            Distances(heads).sums,
            metrics.no_maxima(heads, documents),
            Syntax(sums.relations, heads, documents).sums,
            Coreference(heads, documents).sums,
            {},
            {},
        )
        return cls(*({**arrays, **sums.of(f"{name}/{of}")} for of, arrays in zip(cls._fields, zeros, strict=True)))
