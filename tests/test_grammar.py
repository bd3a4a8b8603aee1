"""Generated sentences: trees are valid, every pronoun is unambiguous, and no fixed distance explains a relation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.grammar import corpus, sample_sentence
from mha_viz.corpus.lexicon import VOCABULARY
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word

SEEDS = st.integers(0, 2**32)
DIGEST = "d4bfdb400bee6c661127c32e0b33cab2a89ba501b431e6ba8c615ac73c264c67"


@pytest.fixture(scope="module")
def many() -> Corpus:
    return corpus(2000, seed=1)


def anaphors(sentence: Sentence) -> list[tuple[Mention, list[Mention]]]:
    """Each mention of a known entity, with all mentions before it."""
    mentions = sorted(sentence.mentions, key=lambda mention: mention.word)
    before = [(m, [e for e in mentions if e.word < m.word]) for m in mentions]
    return [(m, earlier) for m, earlier in before if m.chain in {e.chain for e in earlier}]


def feature(word: Word, name: str) -> str:
    return dict(part.split("=") for part in word.features.split("|") if part).get(name, "")


def fits(word: Word) -> str:
    """The property that a pronoun shares with its antecedent: the gender, or the plural."""
    return "Plur" if feature(word, "Number") == "Plur" else feature(word, "Gender")


def animacies(corpus: Corpus) -> dict[str, set[str]]:
    """Which kinds can do or be what: "Anim" for "sleeps"."""
    by_predicate: dict[str, set[str]] = {}
    for sampled in corpus.sentences:
        for predicate, subject in subjects(sampled):
            animacy = feature(sampled.words[subject], "Animacy")
            by_predicate.setdefault(sampled.words[predicate].form, set()).update({animacy} - {""})
    return by_predicate


def subjects(sentence: Sentence) -> list[tuple[int, int]]:
    """(predicate, subject) of every clause."""
    return [(w.head, i) for i, w in enumerate(sentence.words) if w.relation == "nsubj" and w.head is not None]


# ---- the annotation -------------------------------------------------------------------------------------


@given(SEEDS)
def test_trees_are_trees(seed: int) -> None:
    words = sample_sentence(Random(seed)).words
    assert [w.relation for w in words if w.head is None] == ["root"]
    for start in range(len(words)):
        seen, at = set[int](), start
        while (head := words[at].head) is not None:
            assert at not in seen
            seen.add(at)
            at = head
    assert all(w.upos and w.relation for w in words)


@given(SEEDS)
def test_arcs_do_not_cross(seed: int) -> None:
    words = sample_sentence(Random(seed)).words
    arcs = [sorted((i, w.head)) for i, w in enumerate(words) if w.head is not None]
    assert not [(a, b) for a in arcs for b in arcs if a[0] < b[0] < a[1] < b[1]]


@given(SEEDS)
def test_the_word_of_a_mention_is_its_head(seed: int) -> None:
    sampled = sample_sentence(Random(seed))
    for mention in sampled.mentions:
        span = range(mention.start, mention.end)
        assert mention.word == next(i for i in span if sampled.words[i].head not in span)
    nouns = {i for i, w in enumerate(sampled.words) if w.upos in ("NOUN", "PROPN") or "PronType=Prs" in w.features}
    assert nouns == {mention.word for mention in sampled.mentions}


@given(SEEDS)
def test_a_reader_of_treebanks_reads_the_same(seed: int) -> None:
    made = corpus(3, seed)
    assert read_conllu(format_conllu(made.sentences), "grammar") == made


@given(SEEDS)
def test_verbs_agree_with_their_subjects(seed: int) -> None:
    words = sample_sentence(Random(seed)).words
    for verb, subject in subjects(Sentence(words)):
        parts = [verb, *(i for i, w in enumerate(words) if w.head == verb and w.relation in ("aux", "cop"))]
        numbers = {feature(words[i], "Number") for i in parts} - {""}
        actor = words[verb].head if words[subject].features == "PronType=Rel" else subject
        assert actor is not None
        assert numbers <= {feature(words[actor], "Number")}


@given(SEEDS)
def test_exactly_one_of_those_before_fits_a_pronoun(many: Corpus, seed: int) -> None:
    sampled, alive = sample_sentence(Random(seed)), animacies(many)
    for mention, earlier in anaphors(sampled):
        pronoun = sampled.words[mention.word]
        assert pronoun.upos == "PRON"
        fitting = {e.chain for e in earlier if fits(sampled.words[e.word]) == fits(pronoun)}
        if len(fitting) > 1 and pronoun.relation == "nsubj" and pronoun.head is not None:
            (animacy,) = alive[sampled.words[pronoun.head].form]
            nouns = [(e.chain, feature(sampled.words[e.word], "Animacy")) for e in earlier]
            fitting &= {chain for chain, noun_animacy in nouns if noun_animacy == animacy}
        assert fitting == {mention.chain}
    pronouns = {mention for mention, _ in anaphors(sampled)}
    assert all(m in pronouns for m in sampled.mentions if sampled.words[m.word].upos == "PRON")


@given(SEEDS)
def test_an_object_that_is_the_subject_is_reflexive(seed: int) -> None:
    sampled = sample_sentence(Random(seed))
    chains = {mention.word: mention.chain for mention in sampled.mentions}
    for verb, subject in subjects(sampled):
        objects = [i for i, w in enumerate(sampled.words) if w.head == verb and w.relation in ("obj", "iobj", "obl")]
        for i in objects:
            same = chains.get(i) is not None and chains.get(i) == chains.get(subject)
            assert same == ("Reflex=Yes" in sampled.words[i].features) or subject not in chains


# ---- the words ------------------------------------------------------------------------------------------


@given(SEEDS)
def test_sentences_are_written_as_sentences(seed: int) -> None:
    first, *rest = sample_sentence(Random(seed)).forms
    assert first[0].isupper()
    assert rest[-1] == "."
    assert {*rest, first} <= {*VOCABULARY, first}
    assert first in VOCABULARY or first.lower() in VOCABULARY
    assert all(after[0] in "aeiou" for form, after in zip([first, *rest], rest, strict=False) if form in ("An", "an"))


def test_the_vocabulary_is_small_sorted_and_used(many: Corpus) -> None:
    used = {form for sentence in many.sentences for form in sentence.forms[1:]}
    assert list(VOCABULARY) == sorted(set(VOCABULARY))
    assert 150 <= len(VOCABULARY) <= 300
    assert set(VOCABULARY) == used


def test_relations_and_lengths_vary(many: Corpus) -> None:
    relations = Counter(word.relation for sentence in many.sentences for word in sentence.words)
    expected = "nsubj obj iobj det amod acl:relcl nmod nmod:poss case mark advcl ccomp obl conj cc aux cop advmod punct"
    assert set(relations) == {*expected.split(), "root"}
    assert min(relations.values()) >= 150
    assert {len(sentence.words) for sentence in many.sentences} >= set(range(5, 25))
    assert max(len(sentence.words) for sentence in many.sentences) <= 40


# ---- the scores of simple rules -------------------------------------------------------------------------


def test_no_fixed_distance_leads_from_a_verb_to_its_subject(many: Corpus) -> None:
    distances = Counter(subject - verb for sentence in many.sentences for verb, subject in subjects(sentence))
    assert distances.total() > 2000
    assert max(distances.values()) / distances.total() <= 0.4
    across = [
        any(w.upos == "NOUN" for w in sentence.words[subject + 1 : verb])
        for sentence in many.sentences
        for verb, subject in subjects(sentence)
    ]
    assert sum(across) / len(across) >= 0.2


def test_the_nearest_candidate_is_seldom_the_antecedent(many: Corpus) -> None:
    nearest = [earlier[-1].chain == m.chain for sentence in many.sentences for m, earlier in anaphors(sentence)]
    assert len(nearest) > 1500
    assert sum(nearest) / len(nearest) <= 0.5
    several = [len({e.chain for e in earlier}) > 1 for sentence in many.sentences for _, earlier in anaphors(sentence)]
    assert sum(several) / len(several) >= 0.6


def test_no_place_among_the_candidates_is_often_the_antecedent(many: Corpus) -> None:
    matches = [
        [e.chain == m.chain for e in earlier] for sentence in many.sentences for m, earlier in anaphors(sentence)
    ]
    nearest = sum(right[-1] for right in matches) / len(matches)
    assert sum(sum(right) / len(right) for right in matches) / len(matches) <= 0.5, "one of them at random"
    for at in range(3):
        assert sum(right[min(at, len(right) - 1)] for right in matches) / len(matches) < nearest + 0.1


def test_some_pronouns_are_clear_only_from_what_is_said_of_them(many: Corpus) -> None:
    same = [
        len({e.chain for e in earlier if fits(sentence.words[e.word]) == fits(sentence.words[m.word])}) > 1
        for sentence in many.sentences
        for m, earlier in anaphors(sentence)
    ]
    assert 0.03 <= sum(same) / len(same) <= 0.3


# ---- a corpus -------------------------------------------------------------------------------------------


@pytest.mark.app
def test_a_corpus_is_the_same_everywhere() -> None:
    assert corpus().digest == DIGEST
    code = "from mha_viz.corpus.grammar import corpus; print(corpus(50, 3).digest)"
    place = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=place)
    assert printed.stdout.strip() == corpus(50, 3).digest
    assert corpus(50, 4).digest != corpus(50, 3).digest


def test_a_corpus_that_is_asked_for_again_is_not_made_again() -> None:
    assert corpus(5, seed=9) is corpus(5, seed=9)


def test_what_a_corpus_says_of_itself(many: Corpus) -> None:
    assert (many.name, many.has_trees, many.has_chains, many.left_out) == ("grammar", True, True, ())
    assert len({sentence.document for sentence in many.sentences}) == len(many.sentences) == 2000
    assert len({sentence.forms for sentence in many.sentences}) >= 1980


@given(st.integers(1, 30), SEEDS)
def test_a_longer_corpus_begins_with_the_shorter(count: int, seed: int) -> None:
    assert corpus(count + 1, seed).sentences[:count] == corpus(count, seed).sentences
