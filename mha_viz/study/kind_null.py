"""Count the syntax roles that are named when another word of the same kind takes the place of the right one.

All draws are counted in one pass over the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from mha_viz.analysis.kind_null import DrawnSyntax
from mha_viz.analysis.profile import DEFINITIONS
from mha_viz.analysis.reduce import reduce_to_words
from mha_viz.analysis.roles import CorrectCounts, iter_candidate_heads, iter_suggested_heads, make_detail
from mha_viz.analysis.syntax import GoldCounts, Relations, find_pointers
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.measures import ReadShard, ShardTexts
from mha_viz.study.plan import make_batches, plan
from mha_viz.study.sums import PASSES, Sums, label_documents

FORMAT = 1  # version of the sums and of how they are measured
NAME = "kinds"  # name of the sums


class KindNullSums(NamedTuple):
    """The counts for the trees as they are and for ``draws`` random draws (:class:`DrawnSyntax`)."""

    draws: int
    seed: int = 0
    by_half: bool = True
    has_cases: bool = False

    def definition(self) -> list[object]:
        """Return all fields, with the versions of definitions and sums."""
        return [NAME, DEFINITIONS, FORMAT, *self]

    def count_sentences(self, count: int, _: int) -> int:
        """Return ``count``: all sentences are read."""
        return count

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """Return the corpus without chains; its documents are labelled as for its profile."""
        assert isinstance(corpus, Corpus)
        plain_corpus, relations = replace(corpus, has_chains=False), Relations(corpus.sentences)
        documents = [sentence.document for sentence in corpus.sentences]
        labels = label_documents(documents, relations, encoder.layers * encoder.heads)
        return ReadShard(plain_corpus, plan(encoder, plain_corpus, first), relations, first, labels, {})

    def texts(self, shard: ReadShard) -> dict[str, ShardTexts]:
        """Return the sentences, batched by length."""
        pieces = shard.plan.sentences
        lengths = [len(text) if text else 0 for text in pieces]
        return {"sentences": ShardTexts(lengths, range(len(lengths)), partial(make_batches, pieces), self._add)}

    def _add(self, encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str) -> None:
        """Add the counts of some sentences."""
        assert isinstance(shard.corpus, Corpus)
        pieces = [text for number in text_numbers if (text := shard.plan.sentences[number])]
        weights = encoder.batch(pieces)  # [layer, head, sentence, query, key]
        head_weights = weights.reshape(sums.heads, *weights.shape[2:])
        drawn_syntax = DrawnSyntax(
            shard.relations, sums.heads, len(sums.documents), self.draws, self.seed, self.by_half
        )
        documents = sums.indices("document", [shard.labels[number] for number in text_numbers])
        for index, (number, document) in enumerate(zip(text_numbers, documents, strict=True)):
            tree = shard.relations.make_tree(shard.corpus.sentences[number])
            if len(tree.heads) > 1:
                pointers = find_pointers(reduce_to_words(head_weights[:, index], pieces[index].words))
                drawn_syntax.add(pointers, tree, shard.first + number, document)
        sums.arrays |= {f"{pass_name}/{NAME}/{quantity}": array for quantity, array in drawn_syntax.sums.items()}


def count_roles(kind: KindNullSums, sums_by_corpus: Sequence[Sums]) -> list[int]:
    """Count the syntax roles that are named by the trees as they are, and by each draw.

    A role counts if all corpora establish it or, if there is only one corpus, if that corpus suggests it.
    """
    roles = [[_name_roles(sums, draw, kind.by_half) for draw in range(kind.draws + 1)] for sums in sums_by_corpus]
    return [len(frozenset.intersection(*draw_roles)) for draw_roles in zip(*roles, strict=True)]


def _name_roles(sums: Sums, draw: int, is_only_corpus: bool) -> frozenset[tuple[int, str]]:
    """Return the roles that one draw names, as pairs of head and detail: suggested roles if ``is_only_corpus``."""
    arrays, relations = sums.select(f"{PASSES[0]}/{NAME}"), sums.relations
    cases = arrays["cases"][:, draw]
    gold = GoldCounts(cases.sum(axis=0), arrays["offset"][draw], cases[0, ..., :0])
    counts = CorrectCounts(relations, gold, sums.resampling_documents, cases, arrays["correct"][:, draw])
    candidates = (iter_suggested_heads if is_only_corpus else iter_candidate_heads)(counts)
    return frozenset(
        (head, make_detail(relations, item.direction, item.row)) for item in candidates for head in item.heads
    )
