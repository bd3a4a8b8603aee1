"""Answers with heads off, on Explore: words with bars, and cosines of pairs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mha_viz.app.switch_off import answering
from mha_viz.app.url.address import read
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.attention import Head
from mha_viz.attention.answers import Answer
from mha_viz.lab import toy_maps
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.encoder import Encoder
from mha_viz.numerals import decimal, percent
from mha_viz.request import MASK, Question, Request
from mha_viz.study import effects as study
from tests import tiny_models
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/60_switch_off.py"
MASKED = "the dog [MASK] the girl ."
shown_charts: list[PageChart] = []  # of the page that was drawn last


def visit(**url: Any) -> PageSession:
    return PageSession({"text": MASKED, "model": "toy", **url}, PAGE)


def slid(page: PageSession) -> dict[str, str]:
    """The bars that slide: each word with its probability before and after."""
    lists = "".join(e.proto.body for e in page.at.get("html") if "mha-slide" in e.proto.body)
    return dict(re.findall(r"<span>(.*?)</span><i></i><small>(.*?)</small>", lists))


def test_pieces_of_one_name_have_a_bar_each() -> None:
    before, after = np.array([0.6, 0.2, 0.05]), np.array([0.5, 0.3, 0.01])
    answer = Answer(Question(MASK, 1, "a", 3), ("\ufffd", "a", "\ufffd"), before, after, 0.1)
    bars = [("\ufffd", (0.6, 0.5)), ("a", (0.2, 0.3)), ("\ufffd", (0.05, 0.01))]
    assert answering._select_largest(answer) == bars


def test_ten_words_stand_with_their_bars(toy: Encoder) -> None:
    page = visit()
    answer = study.compute_answer(toy, Request(text=MASKED, question=make_question(toy, MASKED)))
    assert slid(page) == {word: percent(share) for word, share in zip(answer.words[:5], answer.before, strict=False)}
    assert rf"In place of “\[MASK\]” the model answers **{answer.best[0]}**." in page.said


def test_before_and_after_heads_are_off(toy: Encoder) -> None:
    page = visit(off="L1H1.L1H2", word="sees")
    question = make_question(toy, MASKED, word="sees")
    answer = study.compute_answer(toy, Request(text=MASKED, off=(Head(1, 1), Head(1, 2)), question=question))
    shares = {w: (b, a) for w, b, a in zip(answer.words, answer.before, answer.after, strict=True)}
    assert slid(page).items() <= {w: f"{percent(b)} → {percent(a)}" for w, (b, a) in shares.items()}.items()
    least = min(max(shares[word]) for word in slid(page))
    assert sum(max(both) > least for both in shares.values()) == len(slid(page)) - 1 == 4  # the five largest
    before, after = answer.followed
    changes = f"The probability of **sees** goes from {percent(before)} to {percent(after)}."
    assert (changes in page.said) == ("sees" not in slid(page)), "its bar says so"
    together = study.measure_together(toy, Request(text=MASKED, off=(Head(1, 1), Head(1, 2)), question=question))
    alone = study.measure_effects(toy, Request(text=MASKED, question=question))
    first = alone.ranked("answer")[0]
    share = percent(together.answer / float(alone.answer[first]), 0)
    said = f"Removing **L1H1 and L1H2** together changes the prediction {share} as much as removing **{first}**, "
    assert said in page.said


def test_the_effects_of_all_heads_are_in_the_files(
    toy: Encoder, effects_offered: Callable[[str], dict[str, float]]
) -> None:
    effects = study.measure_effects(toy, Request(text=MASKED, question=make_question(toy, MASKED)))
    visit()
    for on, numbers in (("answer", effects.answer), ("sentence", effects.sentence)):
        offered = effects_offered(on)
        assert list(offered) == [f"L{layer}H{head}" for layer in range(2) for head in range(4)]
        assert [*offered.values()] == pytest.approx(numbers.ravel(), rel=1e-4, abs=1e-9)


def test_several_masks_begin_with_the_first_and_can_be_chosen(toy: Encoder) -> None:
    text = "the [MASK] saw the [MASK] ."
    page = visit(text=text)
    assert (
        rf"In place of “\[MASK\]” at token 2 the model answers **{make_question(toy, text, place=2).word}**"
        in page.said
    )
    next(c for c in page.at.selectbox if c.label == "Masked token").set_value(5).run()
    page.check()
    assert page.url["place"] == "5"
    assert (
        rf"In place of “\[MASK\]” at token 5 the model answers **{make_question(toy, text, place=5).word}**"
        in page.said
    )
    page.read("the cat ran .")
    assert "place" not in page.url
    assert "Token 9 is not masked" in visit(text=text, place="9").said


def test_a_word_that_cannot_be_followed_is_said_and_the_rest_stays(toy: Encoder) -> None:
    page = visit(word="xylophone")
    assert "“xylophone” is not in the vocabulary" in page.said
    assert f"the model answers **{make_question(toy, MASKED).word}**" in page.said
    assert "changes the prediction most here" in page.said


@pytest.mark.parametrize("text", ["the dog saw the girl .", "A dog [MASK]."])
def test_a_model_that_has_no_answer_says_why_and_shows_the_rest(text: str) -> None:
    page = visit(text=text, **({"model": "minilm"} if "A dog" in text else {}))
    expected = "“minilm” cannot predict words" if "A dog" in text else "The text has no [MASK]"
    assert page.said.count(expected) == 1
    assert slid(page) == {}
    assert "changes the sentence vector most here" in page.said


def test_a_second_text_asks_how_alike_the_two_are(
    minilm: Encoder, effects_offered: Callable[[str], dict[str, float]]
) -> None:
    text, other = "A man plays the guitar.", "Someone is making music."
    page = PageSession({"text": text, "off": "L4H4"}, PAGE)
    next(field for field in page.at.text_input if field.label.startswith("Second text")).set_value(other).run()
    page.check()
    assert page.url["second"] == other
    request = Request(text=text, off=(Head(4, 4),), question=make_question(minilm, text, other=other))
    before, after = study.compute_answer(minilm, request).followed
    assert f"have a cosine of **{decimal(before, 3)}**. Without L4H4, **{decimal(after, 3)}**." in page.said
    assert effects_offered("answer")["L0H0"] == pytest.approx(
        study.measure_part(minilm, 0, [0], request).answer[0, 0], 1e-4
    )


def test_all_heads_off_still_answer() -> None:
    every = ".".join(f"L{layer}H{head}" for layer in range(2) for head in range(4))
    page = visit(off=every)
    assert "Without 8 heads" in page.said
    assert len(slid(page)) == 5


def test_probabilities_that_are_not_numbers_are_refused_and_the_rest_stays(tmp_path: Path) -> None:
    model, tokenizer = tiny_models.ANSWERING["bert words"]()
    with torch.no_grad():
        model.cls.predictions.transform.dense.weight.fill_(float("inf"))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    page = visit(text="The [MASK] sat.", model=str(tmp_path), off="L0H0", shown="gradient")
    assert "predicts probabilities that are not numbers" in page.said
    assert page.shown().header["layers"]


def test_values_that_a_link_cannot_have_are_named() -> None:
    where = read({"in": "sideways", "place": "x"})
    assert (where.request.off_in, where.request.place) == ("both", None)
    assert len(where.ignored_parameters) == 2
    assert "Ignored in this link: in=sideways" in visit(**{"in": "sideways"}).said
    assert "Ignored in this link" not in visit(order="most", effect="answer", want="sees", seed="2", more="1").said


def test_heads_that_do_far_more_together_than_any_alone_have_no_share() -> None:
    text = " ".join(toy_maps.load_bundled(toy_maps.REPEATER).words)
    page = PageSession({"model": "repeater", "text": text, "off": "L0H0.L0H3"})
    assert "far more than removing" in page.said


@pytest.mark.parametrize(
    "url",
    [
        {"text": "dog river anna dog river", "model": "repeater", "place": "2"},
        {"second": "the cat saw the girl .", "word": "cat", "place": "2"},
        {"in": "second"},
    ],
    ids=["next token", "second text", "no second text"],
)
def test_a_link_may_hold_settings_of_another_question(url: dict[str, str]) -> None:
    said = visit(**url).said
    assert not any(words in said for words in ("mha-problem", "does not go with", "goes with", "next token only"))
