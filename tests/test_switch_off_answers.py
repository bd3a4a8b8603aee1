"""Answers on the Switch off page: words with bars, cosines of pairs, heads removed one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.runtime.scriptrunner import StopException

from mha_viz.analysis.removal import order_of
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Answer
from mha_viz.drawing.table import Table
from mha_viz.errors import ModelError
from mha_viz.figures import effects as charts
from mha_viz.figures.answers import looks_and_effects
from mha_viz.figures.theme import LIGHT
from mha_viz.figures.view import View
from mha_viz.models.answers import question_about
from mha_viz.models.contributions import direct
from mha_viz.models.encoder import Encoder
from mha_viz.models.gradients import importance
from mha_viz.numerals import decimal, percent
from mha_viz.reader import verbs
from mha_viz.request import MASK, Question, Request
from mha_viz.study import effects as study
from mha_viz.study.effects import removal, smallest_switch
from mha_viz.ui import download_panel
from mha_viz.ui.address import read
from mha_viz.ui.caches import ModelService
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.jobs import KINDS, Job
from mha_viz.ui.switch_off import answering
from tests import lanes, tiny_models
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/60_switch_off.py"
MASKED = "the dog [MASK] the girl ."
shown_charts: list[PageChart] = []  # of the page that was drawn last


def visit(**url: Any) -> PageSession:
    return PageSession({"text": MASKED, "model": "toy", **url}, PAGE)


def chart(page: PageSession, key: str) -> dict[str, Any] | None:
    charts_shown = [c for c in page.at.get("plotly_chart") if c.proto.id.endswith(f"-{key}")]
    return json.loads(charts_shown[0].proto.spec) if charts_shown else None


def cells(page: PageSession) -> dict[str, str]:
    drawn = chart(page, "effects")
    assert drawn is not None
    return dict(zip(drawn["data"][1]["customdata"], drawn["data"][1]["text"], strict=True))


def slid(page: PageSession) -> dict[str, str]:
    """The bars that slide: each word with its probability before and after."""
    lists = "".join(e.proto.body for e in page.at.get("html") if "mha-slide" in e.proto.body)
    return dict(re.findall(r"<span>(.*?)</span><i></i><small>(.*?)</small>", lists))


def test_pieces_of_one_name_have_a_bar_each() -> None:
    before, after = np.array([0.6, 0.2, 0.05]), np.array([0.5, 0.3, 0.01])
    answer = Answer(Question(MASK, 1, "a", 3), ("\ufffd", "a", "\ufffd"), before, after, 0.1)
    bars = [("\ufffd", (0.6, 0.5)), ("a", (0.2, 0.3)), ("\ufffd", (0.05, 0.01))]
    assert answering._largest(answer) == bars


def test_ten_words_stand_with_their_bars(toy: Encoder) -> None:
    page = visit()
    answer = study.answer(toy, Request(text=MASKED, question=question_about(toy, MASKED)))
    assert slid(page) == {word: percent(share) for word, share in zip(answer.words[:5], answer.before, strict=False)}
    assert rf"In place of “\[MASK\]” the model answers **{answer.best[0]}**." in page.said


def test_before_and_after_heads_are_off(toy: Encoder) -> None:
    page = visit(off="L1H1.L1H2", word="sees")
    question = question_about(toy, MASKED, word="sees")
    answer = study.answer(toy, Request(text=MASKED, off=(Head(1, 1), Head(1, 2)), question=question))
    shares = {w: (b, a) for w, b, a in zip(answer.words, answer.before, answer.after, strict=True)}
    assert slid(page).items() <= {w: f"{percent(b)} → {percent(a)}" for w, (b, a) in shares.items()}.items()
    least = min(max(shares[word]) for word in slid(page))
    assert sum(max(both) > least for both in shares.values()) == len(slid(page)) - 1 == 4  # the five largest
    before, after = answer.followed
    changes = f"The probability of **sees** goes from {percent(before)} to {percent(after)}."
    assert (changes in page.said) == ("sees" not in slid(page)), "its bar says so"
    together = study.together(toy, Request(text=MASKED, off=(Head(1, 1), Head(1, 2)), question=question))
    alone = study.effects(toy, Request(text=MASKED, question=question)).answer
    assert (
        f"| the answer | **{1000 * together.answer:,.1f}** thousandths of a nat | {1000 * alone[1, 1:3].sum():,.1f} | "
        in page.said
    )


def test_effects_are_on_the_answer_or_on_the_vector(toy: Encoder) -> None:
    effects = study.effects(toy, Request(text=MASKED, question=question_about(toy, MASKED)))
    for url, numbers in (({}, effects.answer), ({"effect": "sentence"}, effects.sentence)):
        shown = cells(visit(**url))
        assert shown["L1H1"] == charts.in_thousandths(numbers[1, 1])
        assert shown["L0H3"] == charts.in_thousandths(numbers[0, 3])
    page = visit()
    assert "alone change the most probable word" in page.said
    next(c for c in page.at.segmented_control if c.label == "Effect on").set_value("sentence").run()
    page.check()
    assert page.url["effect"] == "sentence"


def test_several_masks_begin_with_the_first_and_can_be_chosen(toy: Encoder) -> None:
    text = "the [MASK] saw the [MASK] ."
    page = visit(text=text)
    assert (
        rf"In place of “\[MASK\]” at token 2 the model answers **{question_about(toy, text, place=2).word}**"
        in page.said
    )
    next(c for c in page.at.selectbox if c.label == "Masked token").set_value(5).run()
    page.check()
    assert page.url["place"] == "5"
    assert (
        rf"In place of “\[MASK\]” at token 5 the model answers **{question_about(toy, text, place=5).word}**"
        in page.said
    )
    page.read("the cat ran .")
    assert "place" not in page.url
    assert "Token 9 is not masked" in visit(text=text, place="9").said


def test_a_word_that_cannot_be_followed_is_said_and_the_rest_stays(toy: Encoder) -> None:
    page = visit(word="xylophone")
    assert "“xylophone” is not in the vocabulary" in page.said
    assert f"the model answers **{question_about(toy, MASKED).word}**" in page.said
    assert len(cells(page)) == 8


@pytest.mark.parametrize("text", ["the dog saw the girl .", "A dog [MASK]."])
def test_a_model_that_has_no_answer_says_why_and_shows_the_rest(text: str) -> None:
    page = visit(text=text, **({"model": "minilm"} if "A dog" in text else {}))
    expected = "“minilm” cannot predict words" if "A dog" in text else "The text has no [MASK]"
    assert page.said.count(expected) == 1
    assert slid(page) == {}
    assert chart(page, "effects") is not None


def test_a_second_text_asks_how_alike_the_two_are(minilm: Encoder) -> None:
    text, other = "A man plays the guitar.", "Someone is making music."
    page = PageSession({"text": text, "off": "L4H4"}, PAGE)
    next(field for field in page.at.text_input if field.label.startswith("Second text")).set_value(other).run()
    page.check()
    assert page.url["second"] == other
    request = Request(text=text, off=(Head(4, 4),), question=question_about(minilm, text, other=other))
    before, after = study.answer(minilm, request).followed
    assert f"have a cosine of **{decimal(before, 3)}**. Without L4H4, **{decimal(after, 3)}**." in page.said
    assert cells(page)["L0H0"] == charts.in_thousandths(study.part(minilm, 0, [0], request).answer[0, 0])


def test_all_heads_off_still_answer() -> None:
    every = ".".join(f"L{layer}H{head}" for layer in range(2) for head in range(4))
    page = visit(off=every)
    assert "Without 8 heads" in page.said
    assert len(slid(page)) == 5


def test_every_head_is_a_point_of_looks_and_effects(toy: Encoder) -> None:
    page = visit()
    drawn = chart(page, "looks")
    assert drawn is not None
    names = [name for trace in drawn["data"] for name in trace["customdata"]]
    assert names == [f"L{layer}H{head}" for layer in range(2) for head in range(4)]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "thousandths of a nat"
    page.pick("looks", {"customdata": "L1H2"})
    assert page.url["off"] == "L1H2"


def test_no_point_is_cut_by_the_edge_of_its_chart() -> None:
    looks, effects = np.array([[0.1, 0.9]]), np.array([[0.0, 0.004]])
    (plot,) = looks_and_effects(looks, effects, "1 − normalised entropy", "thousandths of a nat", LIGHT).plots
    assert plot.y.range == pytest.approx((-0.24, 4.24))
    assert plot.x.range == pytest.approx((0.052, 0.948))


# ---- All heads, ranked -----------------------------------------------------------------------------------------------


def ranking(page: PageSession) -> Table:
    """The numbers of the ranking, once it is opened."""
    page.at.session_state["ranked"] = True
    page.at.run()
    page.check()
    made = next(chart for chart in shown_charts if chart.file == "ranking")
    assert made.table is not None
    return made.table()


@pytest.fixture(autouse=True)
def shown_charts_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = download_panel.of_reading

    def of_reading(
        attention: Attention, heads: Sequence[Head], view: Callable[[], View], charts: Sequence[PageChart] = ()
    ) -> None:
        shown_charts[:] = charts
        usual(attention, heads, view, charts)

    monkeypatch.setattr(download_panel, "of_reading", of_reading)


ON_AND_HOW = [*product(("answer", "sentence"), ("zero", "uniform", "resample", "text"))]
SOURCE = "the cat [MASK] the boy ."


@pytest.mark.parametrize(("on", "how"), lanes.some(ON_AND_HOW, ("answer", "text"), ("sentence", "resample")))
def test_all_heads_are_ranked_beside_random_directions(on: str, how: str, toy: Encoder) -> None:
    source = SOURCE if how == "text" else ""
    request = Request(text=MASKED, method=how, question=question_about(toy, MASKED), source=source)
    effects = study.effects(toy, request)
    page = visit(effect=on, how=how, **({"from": source} if source else {}))
    assert chart(page, "ranking") is None
    table = ranking(page)
    columns = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    heads = effects.ranked(on)
    assert columns["head"] == tuple(map(str, heads))
    assert columns["rank"] == tuple(range(1, 9))
    assert columns["effect"] == pytest.approx([effects.on(on)[head] for head in heads])
    for name, least in (("random_smallest", np.min), ("random_median", np.median), ("random_largest", np.max)):
        alone = [study.together(toy, replace(request, off=(head,))) for head in heads]
        draws = [one.random_answer if on == "answer" else one.random for one in alone]
        assert columns[name] == pytest.approx([least(one) for one in draws], rel=1e-4, abs=1e-7)
    of_gradients = importance(toy, question_about(toy, MASKED), MASKED)
    assert columns["importance"] == pytest.approx([of_gradients[head] for head in heads], rel=1e-4)
    assert "direct_contribution" not in columns
    bars = chart(page, "ranking")
    assert bars is not None
    assert bars["data"][0]["customdata"] == list(columns["head"])
    beyond = sum(a > b for a, b in zip(columns["effect"], columns["random_largest"], strict=True))
    assert f"**{beyond}** of 8 heads" in page.said
    page.pick("ranking", {"customdata": "L1H2"})
    assert page.url["off"] == "L1H2"


def test_the_comparison_with_random_directions_can_be_stopped_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    usual_wait, usual, stopped = Job.wait, ModelService.ask, Event()

    def wait(job: Job, seconds: float) -> bool:
        if job._rules is not KINDS["at_random"] or stopped.is_set():
            return usual_wait(job, seconds)
        job.let_go()
        stopped.set()
        raise StopException  # as if a visitor pressed Stop

    def ask(self: ModelService, verb: Any, *values: Any) -> Any:
        if verb is verbs.lost_at_random:
            stopped.wait(PATIENCE)  # so that it is not done before
        return usual(self, verb, *values)

    monkeypatch.setattr(Job, "wait", wait)
    monkeypatch.setattr(ModelService, "ask", ask)
    page = visit(text="Somebody stops [MASK] ranking.")
    page.at.session_state["ranked"] = True
    page.at.run()
    assert stopped.is_set()
    page.at.run()
    page.check()
    assert "You stopped this." in page.said
    assert chart(page, "ranking") is None
    press(page, "go_on_at_random")
    assert "You stopped this." not in page.said
    assert chart(page, "ranking") is not None


def test_a_ranking_has_direct_contributions_where_they_can_be_read_off(
    tiny_folder: Callable[[str], Path], tiny: Callable[[str], Encoder]
) -> None:
    text, encoder = "The animal didn't cross", tiny("gpt2 words")
    table = ranking(PageSession({"text": text, "model": str(tiny_folder("gpt2 words"))}, PAGE))
    columns = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))
    added = direct(encoder, question_about(encoder, text), text)
    expected = [added[Head.parse(str(name))] for name in columns["head"]]
    assert columns["direct_contribution"] == pytest.approx(expected, rel=1e-4)


def test_a_ranking_without_a_question_is_of_the_vector() -> None:
    page = visit(text="the dog saw the girl .")
    table = ranking(page)
    assert table.columns == ("rank", "head", "effect", "random_smallest", "random_median", "random_largest")
    next(t for t in page.at.toggle if t.label == "All numbers of the ranking").set_value(True).run()
    page.check()
    assert [len(frame.value) for frame in page.at.dataframe] == [8]


# ---- Heads removed one by one ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", lanes.some(["least", "most", "random"], "least", "random"))
def test_a_curve_is_that_of_the_study(order: str, toy: Encoder) -> None:
    page = visit()
    assert chart(page, "removal") is None
    next(c for c in page.at.segmented_control if c.label == "Order").set_value(order).run()
    page.check()
    assert page.url["order"] == order
    request = Request(text=MASKED, question=question_about(toy, MASKED))
    heads = order_of(study.effects(toy, request), order, "answer")
    curve = removal(toy, heads, request)
    drawn = chart(page, "removal")
    assert drawn is not None
    assert drawn["data"][0]["customdata"][1:] == [f"{head} ({head.paper})" for head in heads]
    if curve.first_change:
        assert f"With {curve.first_change} of 8 heads off" in page.said
    if order == "random":
        press(page, "reshuffle")
        assert page.url["seed"] == "1"


def test_a_curve_without_words_is_of_the_vector() -> None:
    page = visit(text="the dog saw the girl .", order="least")
    assert "Half of the change of the sentence vector without all 8 heads is reached with" in page.said


def test_a_curve_of_two_texts_is_of_their_cosine(minilm: Encoder) -> None:
    text, other = "A man plays the guitar.", "Someone is making music."
    page = PageSession({"text": text, "second": other, "order": "least"}, PAGE)
    request = Request(text=text, question=question_about(minilm, text, other=other))
    curve = removal(minilm, order_of(study.effects(minilm, request), "least", "answer"), request)
    reached, of_vector = (int(np.argmax(one >= one[-1] / 2)) for one in (curve.answer, curve.sentence))
    assert reached != of_vector
    assert f"Half of the change of the cosine without all 72 heads is reached with {reached} of them off." in page.said


def test_values_that_a_link_cannot_have_are_named() -> None:
    where = read({"order": "sideways", "effect": "mood", "place": "x", "seed": "-1"})
    assert (where.order, where.effect, where.request.place, where.seed) == ("", "answer", None, 0)
    assert len(where.complaints) == 4
    assert (
        "Part of this link could not be used (effect=mood, order=sideways)"
        in visit(order="sideways", effect="mood").said
    )


def test_heads_that_make_another_word_the_answer(toy: Encoder) -> None:
    first = study.answer(toy, Request(text=MASKED, question=question_about(toy, MASKED)))
    wanted = first.words[1]
    page = visit(want=wanted)
    smallest = smallest_switch(toy, Request(text=MASKED, question=question_about(toy, MASKED, word=wanted)))
    if smallest.is_answer:
        assert f"the answer is **{wanted}**" in page.said
    else:
        assert f"**{wanted}** does not become the answer" in page.said
    if smallest.heads:
        press(page, "switch_these")
        assert page.url["off"] == ".".join(map(str, sorted(smallest.heads)))


def test_direct_contributions_are_shown_where_they_can_be_read_off(
    tiny_folder: Callable[[str], Path], tiny: Callable[[str], Encoder]
) -> None:
    url = {"text": "The animal didn't cross", "model": str(tiny_folder("gpt2 words"))}
    page = PageSession(url, PAGE)
    assert "As the next token the model answers" in page.said
    encoder = tiny("gpt2 words")
    added = direct(encoder, question_about(encoder, url["text"]), url["text"])
    page.at.session_state["direct"] = True
    page.at.run()
    drawn = chart(page, "direct_grid")
    assert drawn is not None
    assert drawn["data"][0]["text"] == [[decimal(value) for value in row] for row in added]


def test_where_direct_contributions_fail_the_ranking_below_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = answering.per_head

    def failing(verb: Any, *values: Any) -> Any:
        if verb is verbs.direct:
            raise ModelError("The process with the models has ended.", "Try again.")
        return usual(verb, *values)

    page = visit()
    monkeypatch.setattr(answering, "per_head", failing)
    page.at.session_state["direct"] = page.at.session_state["ranked"] = True
    page.at.run()
    assert "The process with the models has ended." in page.said
    assert chart(page, "ranking") is not None


@pytest.mark.parametrize("page", [PAGE, "pages/10_explore.py"])
def test_probabilities_that_are_not_numbers_are_refused_and_the_rest_stays(page: str, tmp_path: Path) -> None:
    model, tokenizer = tiny_models.ANSWERING["bert words"]()
    with torch.no_grad():
        model.cls.predictions.transform.dense.weight.fill_(float("inf"))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    here = PageSession({"text": "The [MASK] sat.", "model": str(tmp_path), "off": "L0H0", "shown": "gradient"}, page)
    assert "gives probabilities of words that are not numbers" in here.said
    assert "of 12" in here.said if page == PAGE else here.shown().header["layers"]
