"""How many roles chance would name: trees of other sentences, and the study of a head that knows its trees."""

from __future__ import annotations

from collections import Counter

import pytest

import mha_viz as mv
from mha_viz.analysis.chance import ChanceRoles, by_chance
from mha_viz.corpus import grammar
from mha_viz.corpus.permuted import permuted
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import CorpusError, SettingError


def sentence(forms: str, heads: list[int | None]) -> Sentence:
    words = tuple(Word(form, "X", head, f"to{head}") for form, head in zip(forms, heads, strict=True))
    return Sentence(words, (Mention("1", 0, 1, 0),), document=forms)


THREE = Corpus("three", (sentence("ab", [1, None]), sentence("cde", [None, 0, 1]), sentence("fg", [None, 0])), "")


def test_two_sentences_of_one_length_change_their_trees_and_a_single_one_is_left_out() -> None:
    changed = permuted(THREE, 0).sentences
    assert [one.forms for one in changed] == [("a", "b"), ("f", "g")]
    assert [[word.head for word in one.words] for one in changed] == [[None, 0], [1, None]]
    assert [one.words[0].relation for one in changed] == ["toNone", "to1"]
    assert [(one.document, one.mentions) for one in changed] == [("ab", ()), ("fg", ())]


def test_every_tree_is_there_once_and_none_where_it_was() -> None:
    """As a multiset of trees, over sentences of a length that others have, too."""
    corpus = grammar.corpus(200)
    lengths = Counter(len(one.words) for one in corpus.sentences)
    with_partner = [one for one in corpus.sentences if lengths[len(one.words)] > 1]
    numbered = Corpus("numbered", tuple(_numbered(one, at) for at, one in enumerate(with_partner)), corpus.digest, True)
    changed = permuted(numbered, 3)
    donors = [int(one.words[0].features) for one in changed.sentences]
    assert sorted(donors) == list(range(len(with_partner)))
    assert all(donor != at for at, donor in enumerate(donors))
    assert [one.forms for one in changed.sentences] == [one.forms for one in with_partner]
    assert changed.digest != corpus.digest
    assert permuted(numbered, 3) == changed
    assert permuted(numbered, 4) != changed


def _numbered(one: Sentence, at: int) -> Sentence:
    return Sentence(tuple(word._replace(features=str(at)) for word in one.words), document=one.document)


def test_the_toy_has_more_roles_than_with_trees_of_other_sentences() -> None:
    roles_by_chance = mv.chance_roles(grammar.corpus(120), "toy", draws=2)
    assert roles_by_chance.observed >= 4
    assert max(roles_by_chance.drawn) <= 1
    assert roles_by_chance.p == pytest.approx(1 / 3)


def test_a_role_of_two_corpora_is_one_that_both_establish() -> None:
    corpora = grammar.corpus(120), grammar.corpus(120, seed=5)
    roles_by_chance = mv.chance_roles(corpora[0], "toy", also=corpora[1], draws=1)
    roles = mv.profile(corpora[0], "toy", also=corpora[1]).findings()
    assert roles_by_chance.observed == sum(role.role == "syntax" and role.status == "established" for role in roles) > 2
    assert roles_by_chance.drawn == (0,)


def test_p_counts_the_observed_study_too() -> None:
    assert ChanceRoles(5, (0, 5, 6, 1)).p == pytest.approx(3 / 5)
    assert ChanceRoles(0, (0,)).p == 1


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(SettingError, match="draws is 0"):
        mv.chance_roles("grammar", "toy", draws=0)
    with pytest.raises(CorpusError, match="has no trees"):
        mv.chance_roles("repeats", "toy", draws=1)
