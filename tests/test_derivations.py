"""Which sentences can be of the built-in grammar; and what the toy's page says of those that cannot."""

from __future__ import annotations

from random import Random

import pytest

from mha_viz.corpus.derivations import MAX_WORDS, is_derivable
from mha_viz.corpus.grammar import sample_sentence
from tests.page_session import PageSession


def test_every_sentence_of_the_grammar_can_be_one() -> None:
    rng = Random(11)
    refused = [forms for _ in range(1_500) if not is_derivable(forms := sample_sentence(rng).forms)]
    assert refused == []


@pytest.mark.parametrize(
    "text",
    [
        "the animal did n't cross the street because it was too tired .",
        "The king 's mother 's old dog sleeps",
        "the dog [MASK] the girl .",
        "behind the tower , the king sings .",
        "the girls near the king say that they are happy .",
    ],
)
def test_other_sentences_of_its_kind_are_taken(text: str) -> None:
    assert is_derivable(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "the animal did n't cross the street because it was too wide .",  # no such word
        "the dogs sleeps .",  # no agreement
        "the dog sleeps because it was tired .",  # two tenses
        "the dog sleeps . it rests .",  # two sentences
        "dog sleeps .",
        "the dog the",
        "the zebra sleeps .",
        ". the dog sleeps",
        "the dog sleeps . .",
        "",
        "the dog " * MAX_WORDS,
    ],
)
def test_what_the_grammar_has_not_is_refused(text: str) -> None:
    assert not is_derivable(text.split())


def test_a_sentence_is_refused_when_one_word_of_it_is_left_out_or_doubled() -> None:
    forms = ["because", "the", "old", "king", "is", "tired", ",", "he", "likes", "himself", "."]
    assert is_derivable(forms)
    for at in range(len(forms) - 1):
        if forms[at] not in ("old", "himself"):  # what may be missing
            assert not is_derivable([*forms[:at], *forms[at + 1 :]]), at
        if forms[at] != "old":
            assert not is_derivable([*forms[: at + 1], *forms[at:]]), at


SAYS = "grammar cannot generate this sentence"


@pytest.mark.app
@pytest.mark.parametrize(
    ("url", "is_said"),
    [
        ({"model": "toy", "text": "The animal didn't cross the street because it was too wide."}, True),
        ({"model": "toy", "text": "the trophy does not fit in the suitcase ."}, True),
        ({"model": "toy", "text": "The dog sleeps.", "pair": "The cat sleeps."}, True),
        ({"model": "toy", "text": "The king’s dog doesn’t like the girl."}, False),
        ({"model": "toy", "text": "the dog [MASK] the girl ."}, False),
        ({"text": "the trophy does not fit in the suitcase ."}, False),
    ],
)
def test_the_toy_says_when_a_sentence_is_none_of_its_grammar(url: dict[str, str], is_said: bool) -> None:
    assert (SAYS in PageSession(url).said) == is_said
