"""Heads switched off on Explore: the URL, drawings and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from threading import Event
from typing import Any

import numpy as np
import pytest
from streamlit.proto.Common_pb2 import StringArray
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import StopException

from mha_viz.analysis.distance import compute_head_divergences
from mha_viz.analysis.effects import STEP_SENTENCES, Effects
from mha_viz.app.service.caches import ModelService, get_model_service
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.app.service.reader import Reader, verbs
from mha_viz.app.service.reader import models as reader_models
from mha_viz.app.switch_off.page import CAUTION, PATTERN_NOTE
from mha_viz.app.url.address import read
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.url.minimal_pair import replace_word
from mha_viz.app.widgets import inference
from mha_viz.attention import Head
from mha_viz.corpus.treebank import Corpus
from mha_viz.errors import ShapeError
from mha_viz.figures.charts import effects as charts
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.answers import make_question
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.numerals import decimal, percent
from mha_viz.request import METHODS, Request
from mha_viz.study import effects as study
from tests import lanes
from tests.copies import copy_readers
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/60_switch_off.py"  # an old address, which leads to the mode of Explore
TEXT = "The cat sat on the mat."
MOST = "changes the sentence vector most here"


def visit(**url: Any) -> PageSession:
    return PageSession({"text": TEXT, **url}, PAGE)


@pytest.fixture(scope="module")
def whole(minilm: Encoder) -> Effects:
    return study.measure_effects(minilm, Request(text=TEXT))


def test_the_effects_of_all_heads_are_said_and_in_the_files(
    whole: Effects, effects_offered: Callable[[str], dict[str, float]]
) -> None:
    page = visit()
    assert [*effects_offered("sentence").values()] == pytest.approx(whole.sentence.ravel(), rel=1e-4, abs=1e-9)
    first, last = whole.ranked()[0], whole.ranked()[-1]
    assert f"Removing **{first} ({first.paper})** changes the sentence vector most here; " in page.said
    assert f"removing **{last} ({last.paper})**, least." in page.said


def test_a_small_effect_is_said_with_its_caution(whole: Effects) -> None:
    first, last = whole.ranked()[0], whole.ranked()[-1]
    share = percent(whole.sentence[last] / whole.sentence[first], 0)
    assert f"removing **{last}**, {share} as much. {PATTERN_NOTE}" in visit(off=str(last)).said
    assert PATTERN_NOTE not in visit(off=str(first)).said
    assert CAUTION in visit(off=str(first)).said


@pytest.mark.parametrize(("off", "named"), [("L2H4.L3H1", "L2H4 and L3H1"), ("L2H4.L3H1.L5H0.L5H11", "4 heads")])
def test_of_several_heads_it_is_said_first_what_they_do_together(
    off: str, named: str, whole: Effects, minilm: Encoder
) -> None:
    page = PageSession({"text": TEXT, "off": off})
    together = study.measure_together(minilm, Request(text=TEXT, off=read({"off": off}).request.off)).sentence
    first = whole.ranked()[0]
    share = percent(together / whole.sentence[first], 0)
    said = f"Removing **{named}** together changes the sentence vector {share} as much as removing **{first}**, "
    assert said in page.said


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
    page = visit(off=off, model="[]")
    assert page.said.count("“[]” is not a model") == 1
    assert page.said.count("Shown below instead: MiniLM") == 1
    press(page, "back_to_model")
    assert "model" not in page.url


# The means over all built-in sentences are compared below, for a model that reads them sooner.
@pytest.mark.parametrize("way", lanes.some(list(METHODS), *(way for way in METHODS if way != "mean")))
def test_every_way_of_switching_off_is_measured(
    way: str, minilm: Encoder, effects_offered: Callable[[str], dict[str, float]]
) -> None:
    page = visit(off="L3H1", how=way)
    assert page.at.segmented_control[0].value == way
    sentences = (" ".join(sentence.forms) for sentence in load_built_in_corpus().sentences)
    means = ablation.compute_means(minilm, sentences) if way == "mean" else None
    by = partial(study.substitute, means=means)
    whole = study.measure_effects(minilm, Request(text=TEXT, method=way, source=replace_word(TEXT)), make_substitute=by)
    assert effects_offered("sentence")["L4H4"] == pytest.approx(whole.sentence[4, 4], rel=1e-4)


@cache
def means_of_the_toy() -> tuple[Encoder, Any]:
    toy = load_one_stack("toy")
    return toy, ablation.compute_means(toy, (" ".join(sentence.forms) for sentence in two_parts().sentences))


def two_parts() -> Corpus:
    """As many of the built-in sentences as are read in two parts."""
    return replace(load_built_in_corpus(), sentences=load_built_in_corpus().sentences[: 2 * STEP_SENTENCES])


@pytest.mark.parametrize("when", [1, 2])  # in the middle of the means, and after them: a batch of heads
def test_means_are_measured_again_when_the_process_was_replaced_between_two_parts(
    when: int, monkeypatch: pytest.MonkeyPatch, effects_offered: Callable[[str], dict[str, float]]
) -> None:
    text = f"The process ends before request {when}."
    usual, asked = Reader.ask, list[Any]()

    def ask(reader: Reader, verb: Any, *values: Any) -> Any:
        asked.append(verb)
        if len([one for one in asked if one in (verbs.measure_means, verbs.measure_effects)]) == when + 1:
            assert reader._process is not None
            reader._process.kill()
            reader._process.wait()
            asked.append(verbs.measure_means)  # only once
        return usual(reader, verb, *values)

    copy_readers(monkeypatch)
    monkeypatch.setattr(inference, "load_built_in_corpus", two_parts)
    monkeypatch.setattr(reader_models, "load_built_in_corpus", two_parts)
    monkeypatch.setattr(Reader, "ask", ask)
    monkeypatch.setattr(get_model_service(), "_reader", Reader())
    page = PageSession({"text": text, "model": "toy", "how": "mean"}, PAGE)
    toy, means = means_of_the_toy()
    if "no longer available" in page.said:
        assert not [key for key in get_queue("each_head").results._entries if toy.encode(text).key in key]
        page.at.run()
        page.check()
    whole = study.measure_effects(
        toy, Request(text=text, method="mean"), make_substitute=partial(study.substitute, means=means)
    )
    assert effects_offered("sentence")["L1H1"] == pytest.approx(whole.sentence[1, 1], rel=1e-4)
    assert page.at.segmented_control[0].value == "mean"
    get_model_service()._reader.close()


def test_a_page_that_runs_again_goes_on_with_its_study(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate, usual_wait = list[tuple[int, ...]](), Event(), Job.wait
    usual = ModelService.ask

    def ask(self: ModelService, verb: Any, *about: Any) -> Any:
        if verb is verbs.measure_effects:  # and not the default model's load, which begins by itself
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
    assert MOST not in page.said
    page.at.run()
    page.check()
    assert MOST in page.said
    assert len(asked) >= 6, "every layer was asked for"
    assert len(asked) == len(set(asked)), "nothing was computed twice"


def test_a_study_can_be_stopped_and_goes_on_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, pressed = Job.wait, Event()

    def wait(job: Job, seconds: float) -> bool:
        if pressed.is_set():
            return usual(job, seconds)
        pressed.set()
        job.cancel()
        raise StopException  # as if a visitor pressed Stop

    monkeypatch.setattr(Job, "wait", wait)
    page = PageSession({"model": "toy", "text": "Somebody stops this one."}, PAGE)
    page.at.run()
    page.check()
    assert "You stopped this." in page.said
    press(page, "go_on_each_head")
    assert "You stopped this." not in page.said
    assert MOST in page.said


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
    monkeypatch.setattr("mha_viz.app.switch_off.controls.MAX_IN_LINK", 70)
    every = ".".join(f"L{layer}H{head}" for layer in range(1, 6) for head in range(12))
    page = visit(off=every)
    page.at.selectbox[0].set_value("L0").run()
    page.check()
    assert "72 heads would be off; a link can hold 70." in page.said
    assert page.url["off"] == every


def test_a_link_to_every_head_switches_all_off() -> None:
    every = ".".join(f"L{layer}H{head}" for layer in range(6) for head in range(12))
    page = visit(off=every)
    assert len(page.at.multiselect(key="off").value) == 72
    assert "Removing **72 heads** together" in page.said


@pytest.mark.parametrize("shown", ["rollout", "norm"])
def test_another_quantity_in_the_link_changes_nothing_here(shown: str) -> None:
    text = f"Dogs bark at {shown}."
    sentences = [
        re.findall(r"Removing .*", visit(text=text, off="L3H1", **more).said) for more in ({"shown": shown}, {})
    ]
    assert sentences[0] == sentences[1] != []


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
    assert "Ignored in this link" in page.said
    assert page.at.multiselect(key="off").value == ["L3H1"]


@pytest.mark.parametrize(
    ("off", "named", "is_off"),
    [
        ("L3H1", "off=L3H1", []),
        ("L3H1.L0H1.L1H9", "off=L1H9, off=L3H1", ["L0H1"]),
        ("L9", "off=L9", []),
        ("L5H0.L5H1.L5H2.L5H3.L5H4.L5H5.L5H6", ", ".join(f"off=L5H{head}" for head in range(6)), []),
    ],
)
@pytest.mark.parametrize("more", [{}, {"how": "mean"}, {"class": "1"}], ids=str)
def test_heads_that_a_model_lacks_are_named_once_and_the_others_are_off(
    off: str, named: str, is_off: list[str], more: dict[str, str]
) -> None:
    page = PageSession({"model": "toy", "text": "the dog sees the girl .", "off": off, **more})
    assert page.said.count("Ignored in this link") == 1
    assert f"Ignored in this link: {named}." in page.said
    assert "does not exist" not in page.said
    assert re.findall(r"(L\dH\d) \(\d-\d\) is switched off", page.said) == is_off
    if "class" not in more:
        assert page.at.multiselect(key="off").value == is_off


def test_of_a_head_that_is_missing_and_off_the_link_is_named_for_both() -> None:
    page_words = PageSession({"model": "toy", "off": "L3H1", "head": "L3H2"}).said
    assert [page_words.count(f"Ignored in this link: {named}") for named in ("off=L3H1", "L3H2")] == [1, 1]


def test_a_link_that_names_no_heads_switches_none_off() -> None:
    for off in ("L3", "<b>", "L3H1..L2H1", "ü", "L3H1.", "9" * 600):
        where = read({"off": off, "how": "sideways"})
        assert where.request.off == (), off
        assert where.request.method == "zero"
        assert [complaint.partition("=")[0] for complaint in where.ignored_parameters] == ["off", "how"], off
    page = visit(off="<b>")
    assert page.at.multiselect(key="off").value == []
    assert "Ignored in this link" in page.said


def test_heads_may_be_named_with_commas_and_all_of_a_large_model_fit() -> None:
    assert read({"off": "L3H1,L2H4"}).request.off == (Head(2, 4), Head(3, 1))
    every = tuple(Head(layer, head) for layer in range(12) for head in range(12))
    assert read({"off": ".".join(map(str, every))}).request.off == every


def test_pairs_and_other_models_are_read(effects_offered: Callable[[str], dict[str, float]]) -> None:
    for count, url in ((72, {"pair": "It slept."}), (8, {"model": "toy"})):
        visit(off="L0H0", **url)
        assert len(effects_offered("sentence")) == count


def test_explore_shows_the_attention_without_the_heads(minilm: Encoder) -> None:
    page = PageSession({"text": TEXT, "off": "L2H4", "head": "L5H3"})
    assert "L2H4 (3-5) is switched off." in page.said
    without = ablation.encode_without(minilm, ["L2H4"], TEXT)["L5H3"]
    assert np.abs(page.shown().matrices[5 * 12 + 3] - without).max() < 1e-4
    assert np.abs(minilm.encode(TEXT)["L5H3"] - without).max() > 1e-3
    press(page, "switch_on")
    assert "off" not in page.url
    assert "switched off" not in page.said


def test_the_divergence_of_readings_of_different_texts_is_refused(minilm: Encoder) -> None:
    with pytest.raises(ShapeError):
        compute_head_divergences(minilm.encode("One."), minilm.encode("Two words."))
    same = compute_head_divergences(minilm.encode(TEXT), minilm.encode(TEXT))
    assert same.shape == (6, 12)
    assert (same == 0).all()


def test_numbers_of_cells() -> None:
    written = [charts.format_thousandths(value) for value in (np.nan, 0.0, 0.00004, 0.0021, 0.00996, 0.079, 1.9999)]
    assert written == ["", "0.0", "0.0", "2.1", "10", "79", "2,000"]
    values = np.array([[np.nan, 0.5], [0.0, 1.0]])
    figure = plotly(charts.draw_head_grid(values, "thousandths of a nat", [Head(1, 1)], LIGHT))
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
    assert page.at.text_input(key="from").value == replace_word(TEXT)
    page.at.text_input(key="from").set_value(source).run()
    assert page.url["from"] == source
    question = make_question(minilm, TEXT, other=second, off_in="first")
    request = Request(text=TEXT, off=(Head(3, 1),), method="text", source=source, question=question)
    expected = study.compute_answer(minilm, request)
    assert f"Without L3H1 in the first text, **{decimal(float(expected.after[0]), 3)}**" in page.said
    page.at.text_input(key="from").set_value("It is.").run()
    page.check()
    assert "has 7 words" in page.said
    assert page.said.count("has 7 words") == 1
    page.at.text_input(key="from").set_value("").run()
    page.check()
    assert page.at.text_input(key="from").value == ""
    assert "Until then, all heads are on" in page.said
    page.at.button(key="ended").click().run()
    page.check()
    assert page.url.get("off") is None


def test_a_word_has_its_probability_before_any_head_is_off() -> None:
    page = PageSession({"model": "toy", "text": "the dog [MASK] the girl .", "off": "none", "word": "girl"})
    assert "The probability of **girl** is 0.0%." in page.said
