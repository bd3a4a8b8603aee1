"""Every role has a gloss in plain words, and plain words find the role."""

from __future__ import annotations

import csv
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.metrics import ON_DELIMITERS, POSITIONS
from mha_viz.analysis.rules import NAMES
from mha_viz.figures.words.glosses import (
    PATTERNS,
    RELATIONS,
    describe_rule,
    explain_relation,
    find_gloss,
    find_roles,
    label_relation,
    simplify_rule,
)
from mha_viz.files.assets import asset_path

# Universal Dependencies, version 2: the 37 relations.
UNIVERSAL = """
    acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed
    flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp
"""


def test_every_universal_relation_has_a_gloss_of_its_own() -> None:
    assert len(UNIVERSAL.split()) == 37
    assert set(UNIVERSAL.split()) <= RELATIONS.keys()
    assert len({meaning.name for meaning in RELATIONS.values()}) >= len(RELATIONS) - 1  # two kinds of relative clause
    assert len({meaning.link for meaning in RELATIONS.values()}) == len(RELATIONS)


def test_every_relation_and_role_that_was_measured_has_a_gloss() -> None:
    for table in asset_path("profiles").rglob("syntax.csv"):
        with table.open(newline="") as lines:
            relations = {row["relation"] for row in csv.DictReader(lines) if row["level"] == "full"}
        assert relations <= RELATIONS.keys()
    assert {*ON_DELIMITERS, *POSITIONS.values(), "third_person", "entropy"} == PATTERNS.keys()


def test_an_example_marks_the_two_words_that_are_linked() -> None:
    for relation, meaning in RELATIONS.items():
        assert " → " in meaning.link, relation
        if relation not in ("dep", "root"):  # a link of no kind, and a word without a head
            for mark in "*_":
                assert meaning.example.count(mark) == 2, relation
                assert re.search(rf"[{mark}][^ {mark}]+[{mark}]", meaning.example), relation


def test_a_subtype_without_a_gloss_has_that_of_its_relation() -> None:
    assert find_gloss("nmod:poss") == RELATIONS["nmod:poss"] != find_gloss("nmod")
    assert find_gloss("nsubj:unheard") == find_gloss("nsubj dep_to_head") == RELATIONS["nsubj"]
    assert find_gloss("unheard") is None


def test_an_explanation_names_the_linked_words_of_its_example() -> None:
    assert (
        explain_relation("case dep_to_head") == "preposition → its noun, as “in” → “house” in “they live in the house”"
    )
    assert explain_relation("obj") == "object and its verb, as “books” and “reads” in “she reads books”"
    assert explain_relation("obj head_row") == "its verb → object, as “reads” → “books” in “she reads books”"
    assert (
        explain_relation("obj head_to_dep")
        == "object ← its verb, more than any other word, as “books” ← “reads” in “she reads books”"
    )
    assert explain_relation("third_person").startswith("pronoun → what it refers to, as “she” → “Anna” in “Anna called")
    assert explain_relation("dep dep_to_head") == "unclear link → its head"
    assert explain_relation("unheard") == ""
    assert not [relation for relation in RELATIONS if re.search("[*_]", explain_relation(relation))]


def test_rules_name_parts_of_speech_in_words() -> None:
    assert describe_rule("nearest NOUN to the right") == "nearest noun to the right"
    assert describe_rule("") == ""


def test_labels() -> None:
    assert label_relation("nsubj") == "subject (nsubj)"
    assert label_relation("all") == "all"


def test_plain_words_find_the_role() -> None:
    for typed, first in (
        ("subject", "nsubj"),
        ("adjective noun", "amod"),
        ("who does what", "nsubj"),
        ("subjects", "nsubj"),
        ("Find the head for subjects", "nsubj"),
        ("object", "obj"),
        ("indirect object", "iobj"),
        ("passive subject", "nsubj:pass"),
        ("pronoun", "third_person"),
        ("coreference", "third_person"),
        ("what does 'it' refer to", "third_person"),
        ("previous word", "previous"),
        ("looks at the word before", "previous"),
        ("next token", "next"),
        ("looks at commas", "punctuation"),
        ("adjective", "amod"),
        ("possessive", "nmod:poss"),
        ("preposition", "case"),
        ("article", "det"),
        ("[CLS]", "cls"),
        ("special tokens together", "both"),
        ("broad", "entropy"),
        ("nmod:poss", "nmod:poss"),
        ("xcomp", "xcomp"),
        ("number", "nummod"),
    ):
        assert find_roles(typed)[0] == first, typed


def test_what_means_nothing_finds_nothing() -> None:
    for typed in ("", "   ", "the", "word", "xyzzy", "🦊", "<script>", "((((", "L3H1"):
        assert find_roles(typed) == (), typed


def test_the_last_word_may_be_unfinished() -> None:
    assert find_roles("prep") == find_roles("prepositi") == find_roles("preposition")
    assert find_roles("the pron")[0] == find_roles("pronoun")[0]
    assert find_roles("pr") == find_roles("prepx") == find_roles("prep zzz") == ()


@given(st.text(max_size=200))
def test_any_text_is_answered_with_known_roles_once_each(typed: str) -> None:
    answers = find_roles(typed)
    assert len(set(answers)) == len(answers)
    assert set(answers) <= RELATIONS.keys() | PATTERNS.keys()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("everywhere", "evenly"),
        ("the token before", "the token before"),
        ("its nsubj", "its subject"),
        ("its head, as obj", "the word it depends on as object"),
        ("its head", "the word it depends on"),
        ("its dependents", "the words that depend on it"),
    ],
)
def test_a_rule_of_a_recipe_has_no_labels(rule: str, words: str) -> None:
    assert simplify_rule(rule) == words


def test_no_rule_of_a_recipe_is_said_by_a_label() -> None:
    assert [
        name for name in NAMES if re.search(r"\b(head|nsubj|amod|nmod|[xc]comp|advcl|acl|obl)\b", simplify_rule(name))
    ] == []
