"""Search by head: the sentences of a corpus in which a head has its strongest links, filtered by the words at their
ends.

A *link* leads from each word, its query, to the word with the largest weight in its row, its key, without special
tokens and without the diagonal; among equal weights, the first word. Weights are ranked to four digits; among equal
ones, the first sentence comes first. Sentences are read in parts, and only the strongest links and the counts of each
part are stored, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.links import Conditions, Link, Search, coincides
from mha_viz.analysis.syntax import pointers
from mha_viz.attention import AnyHead, Head
from mha_viz.corpus.sources import Source, open_corpus
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.errors import CorpusError, SettingError
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import ModelOrName, one_stack
from mha_viz.study.pointers import word_blocks
from mha_viz.study.run import Progress

__all__ = ["Conditions", "Link", "Search", "search", "searching"]

PART = 400  # sentences that are read before the next ones are split into pieces
MOST = 20  # links that are listed by default
MOST_LISTED = 10_000


def search(
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
    most: int = MOST,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> Search:
    """The sentences of a corpus where a head has its strongest links, with counts of all of them.

    ``corpus`` and ``model`` are as for ``profile``; ``head`` is a name such as "L3H1". The conditions are those of
    :class:`Conditions`. ``most``: the number of sentences to list, one link per sentence; ``progress`` is called after
    each part of the corpus with ``done`` and ``total`` sentences.

    Raises CorpusError, also if the corpus lacks the annotation that a condition needs; UnknownHead; ModelError's
    family.

    >>> mv.search("grammar", "L1H2", "toy", relation="nsubj", dependent_pos="PRON").table()["query"][0]
    'They'
    """
    values = (query_word, query_pos, query_relation, key_word, key_pos, key_relation, relation)
    conditions = Conditions(*values, dependent_word, dependent_pos, governor_word, governor_pos)
    source = open_corpus(corpus)
    encoder = one_stack(model, device)
    *_, last = _reported(searching(encoder, source, head, conditions, most), progress)
    return last


def _reported(parts: Iterator[Search], progress: Callable[[Progress], None] | None) -> Iterator[Search]:
    for part in parts:
        if progress is not None:
            progress(Progress(part.sentences_read, part.sentences))
        yield part


def searching(
    encoder: Encoder, corpus: Corpus | Gap, head: AnyHead, conditions: Conditions, most: int = MOST
) -> Iterator[Search]:
    """The result so far, after each part of a corpus; the last one is complete. Raises the errors of :func:`search`."""
    if isinstance(corpus, Gap):
        raise CorpusError(f"{corpus.name} is a GAP table, which has no sentences.", "Give a treebank or text.")
    if not 1 <= most <= MOST_LISTED:
        raise SettingError(f"most is {most}.", f"List 1 to {MOST_LISTED:,} sentences.")
    chosen = Head.among(head, encoder.layer_numbers, encoder.heads, encoder.name)
    conditions.check(corpus)
    return _searching(encoder, corpus, chosen, conditions, most)


def _searching(encoder: Encoder, corpus: Corpus, head: Head, conditions: Conditions, most: int) -> Iterator[Search]:
    links: list[Link] = []
    counts: Counter[tuple[str, str, str, str]] = Counter()
    read = matches = matching = 0
    for start in range(0, len(corpus.sentences), PART):
        part = corpus.sentences[start : start + PART]
        for number, sentence, best, weights in _pointed(encoder, dataclasses.replace(corpus, sentences=part), head):
            words = np.arange(len(best))
            chosen = words[conditions.mask(sentence)[words, best]]
            read += len(best)
            matches += len(chosen)
            matching += bool(len(chosen))
            for query in chosen.tolist():
                key = int(best[query])
                ends = sentence.words[query].upos, sentence.words[key].upos
                counts[*ends, *coincides(sentence, query, key)] += 1
            if len(chosen):
                query = int(chosen[weights[chosen].argmax()])
                links.append(Link(float(weights[query]), start + number, query, int(best[query]), sentence))
        links = sorted(links, key=lambda link: (-link.weight, link.number))[:most]
        done = min(start + PART, len(corpus.sentences))
        totals = matches, read, matching, done, len(corpus.sentences)
        yield Search(encoder.name, head, corpus.name, conditions, tuple(links), *totals, dict(counts))


def _pointed(
    encoder: Encoder, corpus: Corpus, head: Head
) -> Iterator[tuple[int, Sentence, npt.NDArray[np.intp], npt.NDArray[np.float64]]]:
    """For each sentence that can be read and has at least two words: its number, the sentence, and [word] the word that
    each word points at and the weight, to four digits."""
    for number, block in word_blocks(encoder, corpus, head):
        best = pointers(block).row[0]
        strength = block[0, np.arange(len(best)), best].astype(np.float64).round(4)
        yield number, corpus.sentences[number], best, strength
