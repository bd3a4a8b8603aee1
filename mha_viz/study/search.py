"""Search a corpus for the sentences in which a head has its strongest links.

Links can be filtered by the words at their ends.

A *link* leads from each word, its query, to the word with the largest weight in its row, its key, without special
tokens and without the diagonal; among equal weights, to the first word. Weights are rounded to four digits for ranking;
among equal ones, the first sentence comes first. Sentences are read in parts, and only the strongest links and the
counts of each part are stored, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mha_viz.analysis.links import Conditions, Link, Search, find_dependency
from mha_viz.analysis.syntax import find_pointers
from mha_viz.attention import AnyHead, Head
from mha_viz.corpus.sources import Source
from mha_viz.errors import SettingError
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.cases import CaseKind, Cases, MeasurableCorpus, NumberedSentence, collect_cases
from mha_viz.study.plan import SENTENCES_AT_ONCE, iter_word_blocks
from mha_viz.study.readers import open_measurable
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Conditions", "Link", "LinkSearch", "Search", "search_links"]

FORMAT = 1  # version of the cases on disk
ALL_LINKS = ("links",)  # label of the count of all links
MATCHING_SENTENCES = ("sentences",)  # label of the count of sentences with a match
MATCH_LABELS = 4  # number of labels by which matches are counted
DEFAULT_LINKS = 20  # links that are listed by default
MAX_LINKS = 10_000


@with_bar("sentences")
def search_links(
    corpus: Source,
    head: AnyHead,
    model: ModelOrName = catalog.DEFAULT,
    *,
    query_word: str = "",
    query_pos: str = "",
    query_relation: str = "",
    key_word: str = "",
    key_pos: str = "",
    key_relation: str = "",
    relation: str = "",
    dependent_word: str = "",
    dependent_pos: str = "",
    governor_word: str = "",
    governor_pos: str = "",
    most: int = DEFAULT_LINKS,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> Search:
    """Find the sentences of a corpus where a head has its strongest links, and count all links.

    Words and parts of speech are compared ignoring case, and "nsubj" includes "nsubj:pass". An empty condition accepts
    anything.

    Args:
        corpus: as for :func:`mha_viz.profile`.
        head: such as "L3H1".
        model: as for :func:`mha_viz.profile`.
        query_word: the word where the link begins.
        query_pos: its part of speech.
        query_relation: its relation to its syntactic head.
        key_word: the word where the link ends.
        key_pos: its part of speech.
        key_relation: its relation to its syntactic head.
        relation: the relation of the dependent and its head (the governor) that the link joins, in either direction.
        dependent_word: the dependent, in such a link.
        dependent_pos: its part of speech.
        governor_word: the governor, in such a link.
        governor_pos: its part of speech.
        most: the number of sentences to list, one link per sentence.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        resume: a folder that stores the links, so that a stopped call can resume.
        progress: True for a bar, or a function that is called after each part of the corpus with ``done`` and ``total``
            sentences.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`.

    Returns the links and the counts (:class:`mha_viz.analysis.links.Search`). Raises CorpusError, also if the corpus
    lacks the annotation that a condition needs; UnknownHead; ModelError.

    >>> mv.roles.search_links("grammar", "L1H2", "toy", relation="nsubj", dependent_pos="PRON").table()["query"][0]
    'They'
    """
    values = (query_word, query_pos, query_relation, key_word, key_pos, key_relation, relation)
    conditions = Conditions(*values, dependent_word, dependent_pos, governor_word, governor_pos)
    folder = None if resume is None else Path(resume)
    search = LinkSearch(load_one_stack(model, device), open_measurable(corpus, client), head, conditions, most, folder)
    collect_cases(search.run, as_callback(progress))
    result = search.result()
    search.run.discard_partial_results()
    return result


@dataclass(frozen=True)
class LinkCases(CaseKind):
    """The links of one head that meet ``conditions``.

    The strongest link of each sentence is a case, with weight, query and key; the ``most`` strongest cases are kept.
    The ``counts`` of the cases are: matches by part of speech of query and key, relation and direction; all links that
    were read; and the sentences with a match.
    """

    size: ClassVar[int] = SENTENCES_AT_ONCE
    head: Head
    conditions: Conditions
    most: int

    def definition(self, offset: int) -> list[object]:
        """Return the head, the conditions and the number of links."""
        return [FORMAT, "links", self.step, self.head, self.conditions, self.most, offset]

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the links in the sentences that can be read and have at least two words."""
        cases = Cases(sentences_read=len(numbered_sentences))
        for index, block in iter_word_blocks(encoder, [sentence for _, sentence in numbered_sentences], self.head):
            (number, sentence), best = numbered_sentences[index], find_pointers(block).row[0]
            words = np.arange(len(best))
            weights = block[0, words, best].astype(np.float64).round(4)
            matches = words[self.conditions.mask(sentence)[words, best]]
            cases.counts[ALL_LINKS] += len(best)
            for query in matches.tolist():
                key = int(best[query])
                ends = sentence.words[query].upos, sentence.words[key].upos
                cases.counts[*ends, *find_dependency(sentence, query, key)] += 1
            if len(matches):
                query = int(matches[weights[matches].argmax()])
                cases.counts[MATCHING_SENTENCES] += 1
                cases.cases.append(np.array([weights[query], query, best[query]]))
                cases.units.append((sentence.document, number))
        return cases

    def reduce(self, cases: Cases) -> Cases:
        """Keep the strongest links; among equal ones, the first."""
        pairs = zip(cases.cases, cases.units, strict=True)
        strongest = sorted(pairs, key=lambda pair: (-pair[0][0], pair[1][1]))[: self.most]
        return replace(cases, cases=[case for case, _ in strongest], units=[unit for _, unit in strongest])


class LinkSearch:
    """A search over a corpus. Its ``run`` reads the corpus; :meth:`result` covers the sentences read so far.

    The search is saved in ``folder``, so that the same search can resume. Raises the errors of :func:`search_links`.
    """

    def __init__(
        self,
        encoder: Encoder,
        source: MeasurableCorpus,
        head: AnyHead,
        conditions: Conditions,
        most: int = DEFAULT_LINKS,
        folder: Path | None = None,
    ) -> None:
        if not 1 <= most <= MAX_LINKS:
            raise SettingError(f"most is {most}.", f"List 1 to {MAX_LINKS:,} sentences.")
        checked_head = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
        conditions.check(source.corpus, source.relations)
        self._encoder, self._source, self._kind = encoder, source, LinkCases(1, checked_head, conditions, most)
        self.run = source.run(encoder, self._kind, folder)

    def result(self) -> Search:
        """Return the result so far, which is complete once all sentences are read."""
        cases, kind = self.run.cases, self._kind
        numbers = sorted(number for _, number in cases.units)
        sentences = dict(zip(numbers, self._source.sentences(numbers), strict=True))
        links = tuple(
            Link(float(weight), number, int(query), int(key), sentences[number])
            for (weight, query, key), (_, number) in zip(cases.cases, cases.units, strict=True)
        )
        counts = {labels: count for labels, count in cases.counts.items() if len(labels) == MATCH_LABELS}
        totals = (
            sum(counts.values()),
            cases.counts[ALL_LINKS],
            cases.counts[MATCHING_SENTENCES],
            cases.sentences_read,
            self._source.count,
        )
        name = self._source.corpus.name
        return Search(self._encoder.name, kind.head, name, kind.conditions, links, *totals, counts)
