"""Heads switched off on Explore: the URL, drawings and texts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache, partial
from threading import Event
from typing import Any

import numpy as np
import pytest
from streamlit.proto.Common_pb2 import StringArray
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import StopException

from mha_viz.analysis.distance import per_head
from mha_viz.analysis.effects import SENTENCES, Effects
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import ShapeError
from mha_viz.figures import effects as charts
from mha_viz.figures.chart_plotly import plotly
from mha_viz.figures.theme import LIGHT
from mha_viz.models import ablation
from mha_viz.models.answers import question_about
from mha_viz.models.encoder import Encoder
from mha_viz.models.loading import one_stack
from mha_viz.numerals import decimal, percent
from mha_viz.reader import Reader, verbs
from mha_viz.reader import models as reader_models
from mha_viz.request import METHODS, Request
from mha_viz.study import effects as study
from mha_viz.ui import inference
from mha_viz.ui.address import read
from mha_viz.ui.annotated import built_in
from mha_viz.ui.caches import ModelService, model_service
from mha_viz.ui.download_panel import Offer
from mha_viz.ui.jobs import Job, queue_of
from mha_viz.ui.minimal_pair import replaced
from tests import lanes
from tests.copies import readers_are_copies
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/60_switch_off.py"  # an old address, which leads to the mode of Explore with all its numbers
TEXT = "The cat sat on the mat."


def visit(**url: Any) -> PageSession:
    return PageSession({"text": TEXT, **url}, PAGE)


def chart(page: PageSession, key: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(
        next(c.proto.spec for c in page.at.get("plotly_chart") if c.proto.id.endswith(f"-{key}"))
    )
    return spec


def cells(page: PageSession, key: str) -> dict[str, str]:
    drawn = chart(page, key)["data"][1]
    return dict(zip(drawn["customdata"], drawn["text"], strict=True))


@pytest.fixture(scope="module")
def whole(minilm: Encoder) -> Effects:
    return study.effects(minilm, Request(text=TEXT))


def test_every_head_alone_is_drawn_with_the_numbers_of_the_study(whole: Effects) -> None:
    page = visit()
    shown = cells(page, "effects")
    assert len(shown) == 72
    for head in (Head(0, 0), Head(3, 1), Head(5, 11)):
        assert shown[str(head)] == charts.in_thousandths(whole.sentence[head])
    first, last = whole.ranked()[0], whole.ranked()[-1]
    assert f"Removing **{first} ({first.paper})** changes the sentence vector most here; " in page.said
    assert f"removing **{last} ({last.paper})**, least." in page.said


def test_a_click_switches_a_head_off_and_another_one_on_again() -> None:
    page = visit()
    page.pick("effects", {"customdata": "L3H1"})
    assert page.url["off"] == "L3H1"
    assert cells(page, "effects")["L3H1"] == "off"
    page.pick("effects", {"customdata": "L0H2"})
    assert page.url["off"] == "L0H2.L3H1"
    assert page.at.multiselect[0].value == ["L0H2", "L3H1"]
    page.pick("effects", {"customdata": "L3H1"})
    assert page.url["off"] == "L0H2"
    press(page, "all_on")
    assert page.url["off"] == "none"
    assert not {"ended", "switch_on"} & {button.key for button in page.at.button}


def test_the_effect_of_one_head_has_its_rank_and_random_directions_beside_it(whole: Effects, minilm: Encoder) -> None:
    page = visit(off="L5H11")
    effect = study.together(minilm, Request(text=TEXT, off=(Head(5, 11),)))
    rank = whole.ranked().index(Head(5, 11)) + 1
    weaker = int((effect.random < effect.sentence).sum())
    low, high = 1000 * effect.random.min(), 1000 * effect.random.max()
    assert (
        f"| the sentence vector | **{1000 * effect.sentence:.1f}** thousandths (1 − cosine) | {rank} of 72 | "
        f"{low:.1f} to {high:.1f}, less in {weaker} of 20 draws |" in page.said
    )
    assert "the answer" not in page.said, "nothing was asked"


@pytest.mark.parametrize(("off", "named"), [("L2H4.L3H1", "L2H4 and L3H1"), ("L2H4.L3H1.L5H0.L5H11", "4 heads")])
def test_of_several_heads_it_is_said_first_what_they_do_together(
    off: str, named: str, whole: Effects, minilm: Encoder
) -> None:
    page = PageSession({"text": TEXT, "off": off})
    together = study.together(minilm, Request(text=TEXT, off=read({"off": off}).request.off)).sentence
    first = whole.ranked()[0]
    share = percent(together / whole.sentence[first], 0)
    said = f"Removing **{named}** together changes the sentence vector {share} as much as removing **{first}**, "
    assert said in page.said


def test_without_a_whole_layer_there_are_no_other_directions_to_remove() -> None:
    page = visit(off=".".join(f"L2H{head}" for head in range(12)))
    assert "no other directions are left" in page.said
    assert "draws" not in page.said


def test_tokens_and_later_heads_change(minilm: Encoder) -> None:
    page = visit(off="L2H4.L3H1")
    effect = study.together(minilm, Request(text=TEXT, off=(Head(2, 4), Head(3, 1))))
    bars = chart(page, "tokens")["data"][0]
    assert bars["customdata"] == [token.text for token in minilm.tokenize(TEXT).tokens]
    assert len(effect.tokens) == len(bars["customdata"])
    moved = per_head(minilm.encode(TEXT), ablation.without(minilm, ["L2H4", "L3H1"], TEXT))
    shown = cells(page, "later_heads")
    assert shown["L2H5"] == shown["L0H0"] == ""  # earlier heads are unaffected
    assert shown["L2H4"] == shown["L3H1"] == "off"
    for head in (Head(3, 0), Head(4, 7), Head(5, 11)):
        assert shown[str(head)] == charts.in_thousandths(moved[head])


def test_that_nothing_was_typed_is_said_once() -> None:
    page = visit(off="L1H1")
    page.at.query_params["text"] = " "
    page.at.run()
    page.check()
    assert page.said.count("Nothing was typed") == 1


def test_what_is_wrong_with_another_text_is_said_once_at_its_field() -> None:
    page = visit(off="L1H1", how="text", shown="gradient", **{"from": "Cats sleep."})
    assert page.said.count("“Cats sleep.”") == 1
    assert page.said.count("The drawing below shows attention weights.") == 1


@pytest.mark.parametrize("off", ["none", "L1H1"])
def test_that_a_model_cannot_be_read_is_said_once(off: str) -> None:
    page = visit(off=off, model="[]", more="1")
    assert page.said.count("“[]” is not a model") == 1
    assert page.said.count("Meanwhile, the drawing below shows MiniLM") == 1
    press(page, "back_to_model")
    assert "model" not in page.url


def test_nothing_comes_after_the_last_layer(offered: list[Offer]) -> None:
    page = visit(off="L5H0")
    assert "no head comes after the last layer" in page.said
    assert [offer.file for offer in offered][3:] == ["effects", "tokens", "looks"]
    with pytest.raises(StopIteration):
        chart(page, "later_heads")


# The means over all built-in sentences are compared below, for a model that reads them sooner.
@pytest.mark.parametrize("way", lanes.some(list(METHODS), *(way for way in METHODS if way != "mean")))
def test_every_way_of_switching_off_is_shown(way: str, minilm: Encoder) -> None:
    page = visit(off="L3H1", how=way)
    assert page.at.segmented_control[0].value == way
    sentences = (" ".join(sentence.forms) for sentence in built_in().sentences)
    means = ablation.means_over(minilm, sentences) if way == "mean" else None
    by = partial(study.substitute, means=means)
    whole = study.effects(minilm, Request(text=TEXT, method=way, source=replaced(TEXT)), by=by)
    assert cells(page, "effects")["L4H4"] == charts.in_thousandths(whole.sentence[4, 4])


@cache
def means_of_the_toy() -> tuple[Encoder, Any]:
    toy = one_stack("toy")
    return toy, ablation.means_over(toy, (" ".join(sentence.forms) for sentence in two_parts().sentences))


def two_parts() -> Corpus:
    """As many of the built-in sentences as are read in two parts."""
    return replace(built_in(), sentences=built_in().sentences[: 2 * SENTENCES])


@pytest.mark.parametrize("when", [1, 2])  # in the middle of the means, and after them: a batch of heads
def test_means_are_measured_again_when_the_process_was_replaced_between_two_parts(
    when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"The process ends before request {when}."
    usual, asked = Reader.ask, list[Any]()

    def ask(reader: Reader, verb: Any, *values: Any) -> Any:
        asked.append(verb)
        if len([one for one in asked if one in (verbs.measure_means, verbs.effects_of)]) == when + 1:
            assert reader._process is not None
            reader._process.kill()
            reader._process.wait()
            asked.append(verbs.measure_means)  # only once
        return usual(reader, verb, *values)

    readers_are_copies(monkeypatch)
    monkeypatch.setattr(inference, "built_in", two_parts)
    monkeypatch.setattr(reader_models, "built_in", two_parts)
    monkeypatch.setattr(Reader, "ask", ask)
    monkeypatch.setattr(model_service(), "_reader", Reader())
    page = PageSession({"text": text, "model": "toy", "how": "mean"}, PAGE)
    toy, means = means_of_the_toy()
    if "no longer available" in page.said:
        assert not [key for key in queue_of("each_head").results._entries if toy.encode(text).key in key]
        page.at.run()
        page.check()
    whole = study.effects(toy, Request(text=text, method="mean"), by=partial(study.substitute, means=means))
    assert cells(page, "effects")["L1H1"] == charts.in_thousandths(whole.sentence[1, 1])
    assert page.at.segmented_control[0].value == "mean"
    model_service()._reader.close()


def test_a_page_that_runs_again_goes_on_with_its_study(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate, usual_wait = list[tuple[int, ...]](), Event(), Job.wait
    usual = ModelService.ask

    def ask(self: ModelService, verb: Any, *about: Any) -> Any:
        if verb is verbs.effects_of:  # and not the default model's load, which begins by itself
            _, layer, heads = about
            assert gate.wait(PATIENCE)
            asked.append((layer, *heads))
        return usual(self, verb, *about)

    def rerun(job: Job, seconds: float) -> bool:
        if not gate.is_set():
            gate.set()
            raise StopException  # as if a visitor clicked meanwhile
        return usual_wait(job, seconds)

    monkeypatch.setattr(ModelService, "ask", ask)
    monkeypatch.setattr(Job, "wait", rerun)
    page = visit(text="The page runs again meanwhile.")
    assert not page.at.get("plotly_chart")
    page.at.run()
    page.check()
    assert len(cells(page, "effects")) == 72
    assert len(asked) == len(set(asked)), "nothing was computed twice"


def test_a_study_can_be_stopped_and_goes_on_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, pressed = Job.wait, Event()

    def wait(job: Job, seconds: float) -> bool:
        if pressed.is_set():
            return usual(job, seconds)
        pressed.set()
        job.let_go()
        raise StopException  # as if a visitor pressed Stop

    monkeypatch.setattr(Job, "wait", wait)
    page = PageSession({"model": "toy", "text": "Somebody stops this one."}, PAGE)
    page.at.run()
    page.check()
    assert "You stopped this." in page.said
    press(page, "go_on_each_head")
    assert "You stopped this." not in page.said
    assert len(cells(page, "effects")) == 8


def test_heads_together_can_be_stopped_and_go_on_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, stopped = Job.wait, Event()

    def wait(job: Job, seconds: float) -> bool:
        if job._rules.one != "study of heads together" or stopped.is_set():
            return usual(job, seconds)
        stopped.set()
        job.let_go()
        raise StopException  # as if a visitor pressed Stop

    monkeypatch.setattr(Job, "wait", wait)
    page = PageSession({"model": "toy", "text": "Somebody stops these two.", "off": "L0H1.L1H1"}, PAGE)
    assert stopped.is_set()
    page.at.run()
    page.check()
    if "You stopped this." in page.said:  # otherwise it was done before
        press(page, "go_on_together")
    assert "You stopped this." not in page.said
    assert "change of" in page.said


def test_controls_choose_layers_and_heads_at_random() -> None:
    page = visit(off="L3H1")
    page.at.selectbox[0].set_value("L1").run()
    page.check()
    assert page.url["off"].split(".") == [*(f"L1H{head}" for head in sorted(range(12))), "L3H1"]
    press(page, "at_random")
    assert len(page.url["off"].split(".")) == 13
    page.at.segmented_control[0].set_value("uniform").run()
    page.check()
    assert page.url["how"] == "uniform"


def test_too_many_heads_for_a_link_are_refused_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.ui.switch_off.controls.MOST_IN_LINK", 70)
    every = ".".join(f"L{layer}H{head}" for layer in range(1, 6) for head in range(12))
    page = visit(off=every)
    page.at.selectbox[0].set_value("L0").run()
    page.check()
    assert "72 heads would be off; a link holds 70." in page.said
    assert page.url["off"] == every


def test_a_link_to_every_head_switches_all_off() -> None:
    every = ".".join(f"L{layer}H{head}" for layer in range(6) for head in range(12))
    page = visit(off=every)
    assert list(cells(page, "effects").values()).count("off") == 72


@pytest.mark.parametrize("shown", ["rollout", "norm"])
def test_another_quantity_in_the_link_changes_nothing_here(shown: str) -> None:
    text = f"Dogs bark at {shown}."
    assert len(cells(visit(text=text, shown=shown, off="L3H1"), "effects")) == 72
    assert len(cells(visit(text=text, off="L3H1"), "effects")) == 72


def test_a_layer_that_is_not_there_is_left_aside() -> None:
    page = visit(off="L3H1")
    for layer in ("L999", "nonsense"):
        _on_layer_of(page, layer)
        assert page.url["off"] == "L3H1"


def _on_layer_of(page: PageSession, layer: str) -> None:
    state = WidgetState(id=page.at.selectbox[0].proto.id, string_value=layer)
    page.at._run(WidgetStates(widgets=[state]))
    page.check()


@pytest.mark.parametrize("off", ["L99H0.L3H1", "L3H1.L3H99"])
def test_heads_that_the_model_has_not_are_named(off: str) -> None:
    page = visit(off=off)
    assert "Part of this link could not be used" in page.said
    assert cells(page, "effects")["L3H1"] == "off"


@pytest.mark.parametrize(
    ("off", "named", "is_off"),
    [
        ("L3H1", "off=L3H1", []),
        ("L3H1.L0H1.L1H9", "off=L1H9, off=L3H1", ["L0H1"]),
        ("L9", "off=L9", []),
        ("L5H0.L5H1.L5H2.L5H3.L5H4.L5H5.L5H6", ", ".join(f"off=L5H{head}" for head in range(6)), []),
    ],
)
@pytest.mark.parametrize("more", [{}, {"more": "1"}, {"how": "mean"}, {"class": "1"}], ids=str)
def test_heads_that_a_model_lacks_are_named_once_and_the_others_are_off(
    off: str, named: str, is_off: list[str], more: dict[str, str]
) -> None:
    page = PageSession({"model": "toy", "text": "the dog sees the girl .", "off": off, **more})
    assert page.said.count("could not be used") == 1
    assert f"Part of this link could not be used ({named})." in page.said
    assert "does not exist" not in page.said
    assert re.findall(r"(L\dH\d) \(\d-\d\) is switched off", page.said) == is_off
    if more.get("more"):
        assert [head for head, text in cells(page, "effects").items() if text == "off"] == is_off


def test_of_a_head_that_is_missing_and_off_the_link_is_named_for_both() -> None:
    page_words = PageSession({"model": "toy", "off": "L3H1", "head": "L3H2"}).said
    assert [page_words.count(f"could not be used ({named})") for named in ("off=L3H1", "L3H2")] == [1, 1]


def test_a_link_that_names_no_heads_switches_none_off() -> None:
    for off in ("L3", "<b>", "L3H1..L2H1", "ü", "L3H1.", "9" * 600):
        where = read({"off": off, "how": "sideways"})
        assert where.request.off == (), off
        assert where.request.method == "zero"
        assert [complaint.partition("=")[0] for complaint in where.complaints] == ["off", "how"], off
    page = visit(off="<b>")
    assert "off" not in cells(page, "effects").values()
    assert "Part of this link could not be used" in page.said


def test_heads_may_be_named_with_commas_and_all_of_a_large_model_fit() -> None:
    assert read({"off": "L3H1,L2H4"}).request.off == (Head(2, 4), Head(3, 1))
    every = tuple(Head(layer, head) for layer in range(12) for head in range(12))
    assert read({"off": ".".join(map(str, every))}).request.off == every


def test_pairs_and_other_models_are_read() -> None:
    assert len(cells(visit(pair="It slept.", off="L0H0"), "effects")) == 72
    assert len(cells(visit(model="toy", off="L0H0"), "effects")) == 8


def test_explore_shows_the_attention_without_the_heads(minilm: Encoder) -> None:
    page = PageSession({"text": TEXT, "off": "L2H4", "head": "L5H3"})
    assert "L2H4 (3-5) is switched off." in page.said
    without = ablation.without(minilm, ["L2H4"], TEXT)["L5H3"]
    assert np.abs(page.shown().matrices[5 * 12 + 3] - without).max() < 1e-4
    assert np.abs(minilm.encode(TEXT)["L5H3"] - without).max() > 1e-3
    press(page, "switch_on")
    assert "off" not in page.url
    assert "switched off" not in page.said


def test_the_divergence_of_readings_of_different_texts_is_refused(minilm: Encoder) -> None:
    with pytest.raises(ShapeError):
        per_head(minilm.encode("One."), minilm.encode("Two words."))
    same = per_head(minilm.encode(TEXT), minilm.encode(TEXT))
    assert same.shape == (6, 12)
    assert (same == 0).all()


def test_numbers_of_cells() -> None:
    written = [charts.in_thousandths(value) for value in (np.nan, 0.0, 0.00004, 0.0021, 0.00996, 0.079, 1.9999)]
    assert written == ["", "0.0", "0.0", "2.1", "10", "79", "2,000"]
    values = np.array([[np.nan, 0.5], [0.0, 1.0]])
    figure = plotly(charts.head_grid(values, "thousandths of a nat", [Head(1, 1)], LIGHT))
    assert figure.data[1].text == ("", "500", "0.0", "off")
    assert "1,000 thousandths of a nat" in figure.data[1].hovertext[3]
    assert len(figure.layout.shapes) == 1


def test_heads_are_chosen_from_the_menu_or_by_layer() -> None:
    page = visit(model="toy", text="the dog barks .")
    page.at.multiselect(key="off").set_value(["L1H2", "L0H1"]).run()
    assert page.url["off"] == "L0H1.L1H2"
    page.at.selectbox(key="off_layer").set_value("L0").run()
    page.check()
    assert page.url["off"] == "L0H0.L0H1.L0H2.L0H3.L1H2"
    assert page.at.multiselect(key="off").value == ["L0H0", "L0H1", "L0H2", "L0H3", "L1H2"]
    assert page.at.selectbox(key="off_layer").value is None


def test_forged_heads_change_nothing() -> None:
    page = visit()
    page.forge(page.at.multiselect(key="off").proto.id, string_array_value=StringArray(data=["L1H1", "<b>"]))
    page.check()
    assert page.url["off"] == "none"


def test_the_other_text_and_the_texts_that_heads_are_off_in_are_chosen(minilm: Encoder) -> None:
    source, second = TEXT.replace("mat", "bed"), "The dog lay on the floor."
    page = visit(off="L3H1", how="text", second=second, **{"in": "first"})
    assert page.at.text_input(key="from").value == replaced(TEXT)
    page.at.text_input(key="from").set_value(source).run()
    assert page.url["from"] == source
    question = question_about(minilm, TEXT, other=second, off_in="first")
    request = Request(text=TEXT, off=(Head(3, 1),), method="text", source=source, question=question)
    expected = study.answer(minilm, request)
    assert f"Without L3H1 in the first text, **{decimal(float(expected.after[0]), 3)}**" in page.said
    page.at.text_input(key="from").set_value("It is.").run()
    page.check()
    assert "has 7 words" in page.said
    assert page.said.count("has 7 words") == 1
    page.at.text_input(key="from").set_value("").run()
    page.check()
    assert page.at.text_input(key="from").value == ""
    assert "until then, all heads are on" in page.said
    page.at.button(key="ended").click().run()
    page.check()
    assert page.url.get("off") is None
