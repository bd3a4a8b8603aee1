"""The conditions and the results of a search for links.

Conditions apply to both ends of a link; results are the strongest matches and their counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.syntax import Relations
from mha_viz.attention import Head
from mha_viz.corpus.conllu import read_conllu
from mha_viz.corpus.treebank import Corpus, Sentence, Word
from mha_viz.errors import CorpusError
from mha_viz.quotes import did_you_mean, join_names, quote

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("weight_by_words", "query", "key", "query_pos", "key_pos", "relation", "direction", "number", "sentence")
TOTALS = ("matches", "links_read", "matching_sentences", "sentences_read", "sentences")
MAX_LISTED = 12  # maximum number of names that an error lists
TO_HEAD, TO_DEPENDENT = "dep_to_head", "head_row"  # directions of syntax that use the largest weight of a row


class Conditions(NamedTuple):
    """Conditions on the ends of a link. An empty field accepts anything.

    ``query_…`` and ``key_…`` are about the words at which the link begins and ends; ``…_relation`` is a word's relation
    to its syntactic head. ``relation``, ``dependent_…`` and ``governor_…`` require that the link joins a dependent and
    its head, the governor, in either direction. Words and parts of speech are compared ignoring case, and "nsubj"
    includes "nsubj:pass".
    """

    query_word: str = ""
    query_pos: str = ""
    query_relation: str = ""
    key_word: str = ""
    key_pos: str = ""
    key_relation: str = ""
    relation: str = ""
    dependent_word: str = ""
    dependent_pos: str = ""
    governor_word: str = ""
    governor_pos: str = ""

    def mask(self, sentence: Sentence) -> npt.NDArray[np.bool_]:
        """Return [query, key], True for the pairs of words that meet all conditions."""
        words = sentence.words
        query, key, dependent, governor = (
            np.array([self._is_met_by(end, word) for word in words], bool)
            for end in ("query", "key", "dependent", "governor")
        )
        is_match: npt.NDArray[np.bool_] = query[:, None] & key
        if any(self[6:]):
            edges = np.zeros(is_match.shape, bool)
            for number, word in enumerate(words):
                if word.head is not None and _has_relation(word, self.relation):
                    edges[number, word.head] = dependent[number] and governor[word.head]
            is_match &= edges | edges.T
        return is_match

    def _is_met_by(self, end: str, word: Word) -> bool:
        """Return True if a word meets the conditions on one end."""
        return (
            _meets_condition(word.form, getattr(self, f"{end}_word"))
            and _meets_condition(word.upos, getattr(self, f"{end}_pos"))
            and _has_relation(word, getattr(self, f"{end}_relation", ""))
        )

    def check(self, corpus: Corpus, relations: Relations) -> None:
        """Raise CorpusError if the corpus cannot meet the conditions.

        It may lack the annotation that they need, or the relations or parts of speech that they name. ``relations`` has
        the labels of the corpus.
        """
        used_fields = {name for name, value in self._asdict().items() if value and not name.endswith("_word")}
        used_fields |= {name for name in ("dependent_word", "governor_word") if getattr(self, name)}
        has_tags = corpus.has_trees or any(relations.upos)
        needs_tree = used_fields - {"query_pos", "key_pos"}
        for fields, annotation in (
            (not corpus.has_trees and needs_tree, "dependencies"),
            (not has_tags and used_fields, "tags"),
        ):
            if fields:
                name = min(fields)
                raise CorpusError(
                    f"{corpus.name} has no {annotation}, so {name} cannot be searched for.", "Give CoNLL-U."
                )
        self._check_names(corpus, "_pos", {tag.casefold(): tag for tag in relations.upos if tag})
        self._check_names(corpus, "relation", {name: name for name in (*relations.names, *relations.bases)})

    def _check_names(self, corpus: Corpus, ending: str, names: Mapping[str, str]) -> None:
        """Raise CorpusError if a field with this ending names something that is not in ``names``."""
        for field, value in self._asdict().items():
            if field.endswith(ending) and value and (value.casefold() if ending == "_pos" else value) not in names:
                remedy = (
                    did_you_mean(value, names.values()) or f"It has {join_names(sorted(names.values())[:MAX_LISTED])}."
                )
                raise CorpusError(f"{corpus.name} has no word with {field} {quote(value)}.", remedy)


def _meets_condition(value: str, condition: str) -> bool:
    """Return True if a value equals the condition, ignoring case, or if the condition is empty."""
    return not condition or value.casefold() == condition.casefold()


def _has_relation(word: Word, condition: str) -> bool:
    """Return True if a word has a relation, with or without its subtype, or if the condition is empty."""
    return not condition or (word.head is not None and condition in (word.relation, word.base))


class Link(NamedTuple):
    """The strongest link of a sentence that meets the conditions, from the word ``query`` to the word ``key``.

    ``weight`` is by words: the sum over the subwords of the key, the mean over those of the query. ``number`` is the
    sentence's number in the corpus, from 0.
    """

    weight: float
    number: int
    query: int
    key: int
    sentence: Sentence

    @property
    def relation(self) -> tuple[str, str]:
        """The dependency that the link coincides with, and "dep_to_head" or "head_row"; empty if there is none."""
        return find_dependency(self.sentence, self.query, self.key)


def find_dependency(sentence: Sentence, query: int, key: int) -> tuple[str, str]:
    """Return the relation and the direction of the dependency between two words; empty texts if there is none."""
    words = sentence.words
    if words[query].head == key:
        return words[query].relation, TO_HEAD
    return (words[key].relation, TO_DEPENDENT) if words[key].head == query else ("", "")


@dataclass(frozen=True, eq=False, repr=False)
class Search:
    """The results of a search, complete or partial.

    Attributes:
        links: the strongest links, one per sentence, strongest first.
        matches: the number of ``links_read`` that meet the conditions.
        matching_sentences: the number of ``sentences_read`` with a match.
        sentences: the number of sentences in the corpus.
        counts: matches by part of speech of query and key, relation, and direction.
    """

    model: str
    head: Head
    corpus: str
    conditions: Conditions
    links: tuple[Link, ...]
    matches: int
    links_read: int
    matching_sentences: int
    sentences_read: int
    sentences: int
    counts: Mapping[tuple[str, ...], int]

    def table(self) -> pd.DataFrame:
        """Return a table with one row per link and the columns COLUMNS.

        They are the weight by words, query, key, their parts of speech, the relation and direction of the dependency
        that the link coincides with, the number of the sentence, and the sentence.
        """
        import pandas as pd

        rows: list[tuple[Any, ...]] = []
        for link in self.links:
            query, key = (link.sentence.words[word] for word in (link.query, link.key))
            forms = " ".join(link.sentence.forms)
            rows.append((link.weight, query.form, key.form, query.upos, key.upos, *link.relation, link.number, forms))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def table_of_counts(self) -> pd.DataFrame:
        """Return the number of matches by parts of speech, relation and direction, most frequent first."""
        import pandas as pd

        sorted_counts = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        columns = ["query_pos", "key_pos", "relation", "direction", "links"]
        return pd.DataFrame([(*key, count) for key, count in sorted_counts], columns=columns)

    def __repr__(self) -> str:
        return f"Search({self.model} {self.head} on {self.corpus}, {self.matches} links)"


# ---- As JSON, for another process ----------------------------------------------------------------------------------


def pack_search(search: Search) -> dict[str, Any]:
    """Return the part of a result that a page shows, as JSON values."""
    from mha_viz.corpus.conllu import format_conllu

    return {
        **{name: getattr(search, name) for name in TOTALS},
        "counts": [[*key, count] for key, count in search.counts.items()],
        "links": [[link.weight, link.number, link.query, link.key] for link in search.links],
        "text": format_conllu([link.sentence for link in search.links]),
    }


def unpack_links(result: Mapping[str, Any]) -> tuple[Link, ...]:
    """Return the links of a packed result."""
    sentences = read_conllu(result["text"]).sentences if result["text"] else ()
    return tuple(
        Link(weight, number, query, key, sentence)
        for (weight, number, query, key), sentence in zip(result["links"], sentences, strict=True)
    )
