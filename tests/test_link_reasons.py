"""Why the links of a head are there and what they write: all links at once, against one link at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.reader.models import Models
from mha_viz.attention.parts import GROUPS, sum_key_groups
from mha_viz.attention.reasons import NAMED_WORDS, LinkReasons, decode_reasons, encode_reasons
from mha_viz.heads import Head
from mha_viz.models.decomposing.links import explain_links
from mha_viz.models.decomposing.outputs import explain_output
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.request import Request
from tests.oracles import SENTENCE

Tiny = Callable[[str], Encoder]
TOY_SENTENCE = "Anna sees the dog ."
IT, ANIMAL = 10, 2  # in SENTENCE


def sums_of(encoder: Encoder, text: str, head: Head) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    ((trace, parts),) = encoder.iter_parts(encoder.pieces(text), [head.layer])
    return sum_key_groups(trace, parts, head)


def compare_links(encoder: Encoder, text: str, head: Head) -> None:
    """Compare all links of a head with the parts of their scores, and check that no others have numbers."""
    sums, n = sums_of(encoder, text, head), len(encoder.tokenize(text))
    assert sums.shape == (n, n, len(GROUPS))
    for query in range(n):
        keys = [key for key in range(n) if key <= query or not encoder.causal]
        for key, parts in zip(keys, encoder.score_parts_for_keys(text, head, query, keys), strict=True):
            by_group = parts.by_group().sum(axis=0)
            assert [*by_group.index] == [*GROUPS]
            assert sums[query, key] == pytest.approx(by_group.to_numpy(), abs=2e-5 * max(1, abs(by_group).max()))
        assert np.isnan(np.delete(sums[query], keys, axis=0)).all()


@pytest.mark.parametrize(("name", "text", "head"), [("toy", TOY_SENTENCE, "L1H1"), ("minilm", SENTENCE, "L3H1")])
def test_every_link_has_the_sums_of_its_score(name: str, text: str, head: str) -> None:
    compare_links(load_one_stack(name), text, Head.parse(head))


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "deberta-v2", "bloom"])
def test_rotations_distances_and_masks_are_as_in_one_score(family: str, tiny: Tiny) -> None:
    compare_links(tiny(family), "The cat wasn't far.", Head(1, 2))


def test_a_code_names_the_largest_group_and_a_second_that_is_half_as_large() -> None:
    sums = np.array([[[0.1, 0.5, 1, -2, 0.6], [1, 0.49, 0, 0, -3], [-1, -1, 0, -2, -1], [np.nan] * 5]])
    named = [decode_reasons(int(code)) for code in encode_reasons(sums)[0]]
    assert named == [("earlier heads", "constants"), ("word",), (), ()]


@pytest.mark.parametrize(("name", "text", "head"), [("toy", TOY_SENTENCE, "L1H1"), ("minilm", SENTENCE, "L3H1")])
def test_the_words_of_a_key_are_those_of_each_output(name: str, text: str, head: str) -> None:
    encoder = load_one_stack(name)
    words = explain_links(encoder, text, head).words
    assert words is not None
    for query in (0, len(words) - 1):
        written = explain_output(encoder, text, head, query).written
        assert [of.towards[:NAMED_WORDS] for of in written] == [*words]


def test_it_finds_the_animal_by_its_word_and_writes_other_animals() -> None:
    reasons = explain_links(load_one_stack("minilm"), SENTENCE, "L3H1")
    assert reasons.codes is not None
    assert reasons.words is not None
    assert decode_reasons(int(reasons.codes[IT, ANIMAL])) == ("earlier heads", "word")
    assert reasons.words[ANIMAL] == ("beast", "breed", "pup")


@pytest.mark.parametrize(
    ("family", "has_codes", "has_words"), [("gemma2", False, False), ("opt", True, True), ("gpt2", True, True)]
)
def test_a_half_that_a_model_refuses_is_left_out(family: str, has_codes: bool, has_words: bool, tiny: Tiny) -> None:
    reasons = explain_links(tiny(family), "The cat wasn't far.", "L0H0")
    assert (reasons.codes is not None, reasons.words is not None) == (has_codes, has_words)


def test_the_verb_answers_as_the_model_does_and_its_answer_can_be_sent() -> None:
    request = Request("toy", TOY_SENTENCE)
    answered = verbs.explain_links(Models(), request, Head(1, 1))
    packed, arrays = verbs.CODEC.pack(answered)
    sent = verbs.CODEC.parse(packed, arrays)
    expected = explain_links(mv.load("toy"), TOY_SENTENCE, "L1H1")  # type: ignore[arg-type]
    assert isinstance(sent, LinkReasons)
    assert np.array_equal(sent.codes, expected.codes)  # type: ignore[arg-type]
    assert sent.words == expected.words
    assert verbs.VERBS["explain_links"] is verbs.explain_links
