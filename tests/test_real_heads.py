"""The links from *Why heads differ* to heads of MiniLM: these do what the links say, measured with the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest

from mha_viz.app.lab import real_heads
from mha_viz.lab.lab import CURRENT, RANDOM
from mha_viz.lab.tasks import BEFORE, LINKED
from mha_viz.models.reading.encoder import Encoder
from tests.page_session import PageSession

PAGE = "pages/50_why_heads_differ.py"
SENTENCES = (
    real_heads.TEXT,
    "She gave the book to John because John wanted the book.",
    "A doctor met a lawyer, and the lawyer sued the doctor.",
    "The train was late, so the passengers left the train.",
    "My brother called my sister before my sister called my brother.",
    "Rain fell on the roof and rain fell on the street.",
    "The king trusted the queen but the queen feared the king.",
    "Paris is beautiful in spring, and Paris is cold in winter.",
    "The teacher praised the student who thanked the teacher.",
    "Bread is cheap here, but bread was never this cheap.",
    "He sold the car to Anna, and Anna sold the car to Peter.",
    "The river was wide and the bridge over the river was old.",
)
SHORT = 3  # letters of words that are left out: "the" is repeated everywhere


def repeated(words: list[str]) -> Iterator[tuple[int, int]]:
    """Each word that occurs twice, with the place of its other occurrence."""
    lowered = [word.lower() for word in words]
    for place, word in enumerate(lowered):
        others = [at for at, one in enumerate(lowered) if one == word and at != place]
        if len(others) == 1 and len(word) > SHORT and word.isalpha():
            yield place, others[0]


def test_the_head_for_the_same_symbol_gives_most_of_all_heads_to_the_other_occurrence_of_a_word(
    minilm: Encoder,
) -> None:
    given = []  # [pair, layer, head]
    for sentence in SENTENCES:
        words = minilm.encode(sentence).by_words()
        pairs = list(repeated([token.text for token in words.queries.tokens]))
        assert pairs, sentence
        given += [words.weights[:, :, query, key] for query, key in pairs]
    means = np.mean(given, axis=0)
    layer, head = np.unravel_index(means.argmax(), means.shape)
    assert f"L{layer}H{head}" == real_heads.REAL_HEADS[LINKED].head
    assert means.max() == pytest.approx(0.63, abs=0.03)
    assert np.partition(means.ravel(), -2)[-2] < 0.4, "no other head comes near"


def test_the_head_for_the_word_before_looks_one_word_back_in_every_row(minilm: Encoder) -> None:
    for sentence in SENTENCES:
        weights = minilm.encode(sentence).by_words()[real_heads.REAL_HEADS[BEFORE].head]
        assert min(weights[query, query - 1] for query in range(2, len(weights) - 1)) > 0.97, sentence


def is_real(link: Any) -> bool:
    return "pin=" in link.proto.query_string


def test_links_show_the_head_in_a_sentence_with_the_word_held(minilm: Encoder) -> None:
    page = PageSession({"experiment": RANDOM}, PAGE)
    links = {link.proto.label: link.proto for link in page.at.get("page_link") if is_real(link)}
    assert [*links] == [":primary[○ L0H2]", ":primary[□ L2H9]"]
    words = minilm.encode(real_heads.TEXT).by_words()
    for link in links.values():
        asked = {name: values[0] for name, values in parse_qs(link.query_string).items()}
        assert (asked["model"], asked["text"]) == (real_heads.MODEL, real_heads.TEXT)
        query = int(asked["pin"].removeprefix("q"))
        key = int(words[asked["head"]][query].argmax())
        texts = [token.text for token in words.queries.tokens]
        assert (texts[query], texts[key]) in (("dog", "dog"), ("dog", "the"))
    none = PageSession({"experiment": CURRENT}, PAGE).at.get("page_link")
    assert not any(is_real(link) for link in none), "there, no head has a job"


def test_two_heads_link_one_word_to_two_others_more_than_all_other_heads(minilm: Encoder) -> None:
    words = minilm.encode(real_heads.BANK_TEXT).by_words()
    texts = [token.text for token in words.queries.tokens][1:-1]
    assert tuple(texts) == real_heads.WORDS
    assert texts[real_heads.BANK_INDEX] == "bank"
    assert {texts[link.key] for link in real_heads.LINKS} == {"withdrew", "river"}
    for head, key, weight in real_heads.LINKS:
        given = words.weights[:, :, 1 + real_heads.BANK_INDEX, 1 + key]  # [layer, head]; [CLS] comes first
        layer, number = np.unravel_index(given.argmax(), given.shape)
        assert f"L{layer}H{number}" == head
        assert given.max() == pytest.approx(weight, abs=0.005)
        assert words[head][1 + real_heads.BANK_INDEX].argmax() == 1 + key, "nothing gets more from this word"


@pytest.mark.parametrize("experiment", ["output", "cut", "count"])
def test_an_answer_has_its_picture(experiment: str) -> None:
    drawn = [html.proto.body for html in PageSession({"experiment": experiment}, PAGE).at.get("html")]
    assert sum("data:image/svg+xml" in body for body in drawn) - 2 == (1 if experiment == "count" else 2), "layers, too"
