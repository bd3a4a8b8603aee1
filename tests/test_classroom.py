"""The view for a class: what it hides, the QR code of the current page, and lessons in one link."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote, unquote

import pytest
import resvg_py
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis import unusual_heads
from mha_viz.app.explore.badges import encode_badges
from mha_viz.app.url import lesson
from mha_viz.app.url.address import Url
from mha_viz.app.url.lesson import MAX_ENCODED, MAX_REMARK, MAX_VIEWS, LessonView
from mha_viz.app.widgets import classroom
from mha_viz.app.widgets.classroom import TEXT_SCALE
from mha_viz.app.widgets.inference import PageReading
from mha_viz.attention import Head
from mha_viz.errors import LessonFull
from mha_viz.figures.charts.chart import Axis, Chart, Line, Margin, Plot, Points
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.files.assets import page_files
from mha_viz.models.getting import catalog
from tests import hostile
from tests.files import read_code
from tests.page_session import PageSession, press
from tests.places import PLACES
from tests.readings import reading

ITEMS = (
    LessonView("explore", {"text": "It rains.", "head": "L3H1"}, "Look at “rains”."),
    LessonView("roles", {"head": "L2H4"}, ""),
)
LINK = lesson.write(ITEMS) or ""


def packed(value: object) -> str:
    text = json.dumps(value).encode()
    return base64.urlsafe_b64encode(zlib.compress(text)).rstrip(b"=").decode()


# ---- Lessons ------------------------------------------------------------------------------------------------


def test_a_lesson_is_read_as_it_was_written() -> None:
    assert lesson.read(LINK) == (ITEMS, True)
    assert lesson.write(()) is None
    assert lesson.read(None) == ((), True)


def test_remarks_come_back_as_text() -> None:
    for name, remark in hostile.TEXTS.items():
        views = lesson.add((), "explore", {}, remark[:200])
        assert lesson.read(lesson.write(views)) == (views, True), name


def test_what_is_no_lesson_is_left_out_and_said() -> None:
    for value in (
        *("x", "====", "é", packed({}), packed("a"), packed([1]), packed([["nowhere", "", ""]])),
        *(packed([["explore", 1, ""]]), packed([["roles", "a=1&" * 30, ""]]), "A" * (MAX_ENCODED + 1), LINK[:-9]),
    ):
        assert lesson.read(value) == ((), False), value


def test_a_lesson_that_unpacks_to_megabytes_is_not_read() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" + b" " * 5_000_000 + b"]")).decode()
    assert lesson.read(bomb[:MAX_ENCODED]) == ((), False)
    small = base64.urlsafe_b64encode(zlib.compress(b"[" + b" " * 100_000 + b"]")).decode()
    assert len(small) < MAX_ENCODED
    assert lesson.read(small) == ((), False)


@given(st.text(max_size=60))
def test_any_value_is_read_without_an_error(value: str) -> None:
    views, _ = lesson.read(value)
    assert len(views) <= MAX_VIEWS


def test_a_lesson_has_a_bound() -> None:
    views: lesson.Lesson = ()
    for number in range(MAX_VIEWS):
        views = lesson.add(views, "explore", {"head": f"L0H{number}"}, "a")
    with pytest.raises(LessonFull, match="at most 12 views"):
        lesson.add(views, "explore", {}, "")
    with pytest.raises(LessonFull, match="too long"):
        lesson.add((), "explore", {"text": "".join(map(chr, range(0x4E00, 0x4E00 + 2200)))}, "")
    assert len(lesson.add((), "roles", {}, "b" * 999)[0].remark) == MAX_REMARK


def test_what_belongs_to_the_class_is_no_part_of_a_view() -> None:
    (view,) = lesson.add((), "explore", {"class": "1", "lesson": "x", "view": "2", "tour": "1", "head": "L1H1"}, "a")
    assert view.parameters == {"head": "L1H1"}
    assert lesson.remove((view,), 1) == ()
    assert lesson.remove((view,), 2) == (view,)


# ---- The page -------------------------------------------------------------------------------------------------


def labels(of: PageSession) -> set[str]:
    return {button.label for button in of.at.button}


def expanders(of: PageSession) -> list[str]:
    return [box.label for box in of.at.expander]


def test_the_view_for_a_class_has_fewer_controls() -> None:
    usual, there = PageSession(), PageSession({"class": "1"})
    assert "Download" in expanders(usual)
    assert expanders(there) == []
    assert (usual.typed["plain"], there.typed["plain"]) == (False, True)
    question, answer = "What does “it” refer to?", "Layer 3, head 1 links it to animal."
    assert (usual.typed["look"], usual.typed["answer"]) == (question, "")
    assert (there.typed["look"], there.typed["answer"]) == (question, answer)
    assert there.typed["examples"][0]["look"] == question
    assert (usual.shared["pin"], usual.badges["quiet"]) == ("q10", False)
    assert (there.shared, there.badges["quiet"]) == ({}, True)
    assert not PageSession({"class": "1", "text": "It rains."}).badges["quiet"]  # it asks nothing
    press(there, "class_out")
    assert "class" not in there.url


@pytest.mark.parametrize("names_words", [True, False])
def test_a_hidden_answer_hides_every_kind_of_finding_that_names_words(
    monkeypatch: pytest.MonkeyPatch, names_words: bool
) -> None:
    def find(seen: unusual_heads.WordReading, kind: str, least: float) -> Iterator[unusual_heads.UnusualFinding]:
        yield unusual_heads.UnusualFinding(
            kind, Head(1, 2), 1.0, 9.0, ("It is “", seen.words[1], "”, by a kind made up here."), 1
        )

    kinds = {**unusual_heads.KINDS, "new": unusual_heads.Kind("new", names_words, 0.0, find)}
    monkeypatch.setattr(unusual_heads, "KINDS", kinds)
    model = catalog.Model("nowhere", "Nowhere", "", *(2, 2, 8, 0), "Comes with no profile.", "own")
    page = PageReading(Url({"text": "A text."}), model, reading(seed=100 + names_words))
    for is_hidden in (False, True):
        monkeypatch.setattr(PageReading, "hides_answer", is_hidden)
        sent = json.loads(encode_badges(page, {}))
        is_said = any("made up" in "".join(one["words"]) for one in sent["unusual"])
        assert is_said == (not (is_hidden and names_words))


@pytest.mark.parametrize(
    "text",
    [
        "The animal didn't cross the street because it was too tired.",
        "The chef cooked the fish, and the guests praised it.",
    ],
)
def test_no_finding_names_a_word_while_an_answer_is_hidden(text: str) -> None:
    usual, there = (PageSession({"text": text, **more}).badges["unusual"] for more in ({}, {"class": "1"}))
    assert any("it" in one["words"] for one in usual)
    words = {word.strip(",.") for word in text.split()}
    assert not any(words.intersection(one["words"]) for one in there)


def test_a_lesson_leads_through_its_views() -> None:
    there = PageSession({"class": "1", "lesson": LINK, "view": "1", **ITEMS[0].parameters})
    body = "".join(e.proto.body for e in there.at.get("html"))
    assert "1 of 2" in body
    assert "Look at “rains”." in body
    (link,) = [link for link in there.at.get("page_link") if link.proto.label.endswith("Next →**]")]
    assert "head=L2H4" in link.proto.query_string
    assert "view=2" in link.proto.query_string


@pytest.mark.parametrize("away", [{"page": "roles"}, {"text": "It snows."}, {"model": "toy"}])
def test_whoever_leaves_a_view_of_a_lesson_is_led_back_and_not_told_to_be_there(away: dict[str, str]) -> None:
    url = {"class": "1", "lesson": LINK, "view": "1", **ITEMS[0].parameters, "unit": "pieces", **away}
    there = PageSession(url, str(page_files()[url.pop("page", "explore")]))
    assert "Look at “rains”." not in "".join(e.proto.body for e in there.at.get("html"))
    back = ":primary[**← View 1 of 2**]"
    assert back in labels(there) | {link.proto.label for link in there.at.get("page_link")}


def test_what_a_link_carries_along_from_another_page_leaves_no_view() -> None:
    views = lesson.add((), "roles", {"model": "toy", "head": "L1H1"}, "Who links words?")
    carried = {"class": "1", "lesson": lesson.write(views) or "", "view": "1", "experiment": "random"}
    there = PageSession({"model": "toy", "head": "L1H1", **carried}, str(page_files()["roles"]))
    assert "Who links words?" in "".join(e.proto.body for e in there.at.get("html"))


@pytest.mark.parametrize("name", page_files())
def test_a_view_has_no_parameters_of_other_pages_and_none_complains(name: str) -> None:
    seen = {name: value for place in PLACES.values() for name, value in place.url.items()} | {"part": "2"}
    views = lesson.add((), name, {**seen, "model": "toy", "head": "L1H1", "off": "L1H0"}, "")
    for parameters in ({**views[0].parameters, "view": "1"}, {"part": "1"}):  # as older links count views
        there = PageSession({**parameters, "class": "1", "lesson": lesson.write(views) or ""}, str(page_files()[name]))
        assert "Ignored in this link" not in there.said
    page_of = {"show": "compare", "kinds": "roles", "divide": "inside_a_head", "experiment": "why_heads_differ"}
    for parameter, page in {**page_of, "task": "why_heads_differ"}.items():
        assert (parameter in views[0].parameters) == (page == name)


EXPLORED = {
    **{"on": "1", "link": "1-2", "side": "all", "roles": "on", "gold": "nsubj.head_row", "case": "L1H1.q1"},
    **{"unit": "pieces", "special": "hide", "links": "top3", "scale": "row", "shown": "norm", "pin": "q1"},
    **{"place": "1", "word": "cat", "second": "It slept."},
}


@pytest.mark.parametrize("page", page_files())
def test_what_was_chosen_on_explore_is_not_in_a_view_of_a_page_that_does_not_read_it(page: str) -> None:
    drawings = {"unit", "special", "links", "scale", "shown", "pin"}
    of_the_answer = {"place", "word", "second"}
    reads = {"explore": {*EXPLORED}, "compare": drawings | of_the_answer, "inside_a_head": {"pin"}}
    (view,) = lesson.add((), page, {**EXPLORED, "text": "The cat sat.", "head": "L1H1"}, "")
    expected = reads.get(page, set())
    assert {*view.parameters} == {"text", "head", *expected}


def test_remarks_on_the_page_are_never_html() -> None:
    views = lesson.add((), "explore", {}, "<img src=x onerror=alert(1)>")
    there = PageSession({"class": "1", "lesson": lesson.write(views), "view": "1"})
    body = "".join(e.proto.body for e in there.at.get("html"))
    assert "<img src=x" not in body
    assert "&lt;img src=x" in body


def test_a_lesson_is_made_on_the_page_view_by_view() -> None:
    there = PageSession({"class": "1", "text": "It rains."})
    there.at.text_input(key="lesson_remark").set_value("First").run()
    press(there, "lesson_add")
    (view,), whole = lesson.read(there.url["lesson"])
    assert (whole, view.page, view.remark) == (True, "explore", "First")
    assert view.parameters["text"] == "It rains."
    assert view.parameters["head"] == "L3H1"
    assert "1 of 1" in "".join(e.proto.body for e in there.at.get("html"))
    assert there.at.text_input(key="lesson_remark").value == ""
    press(there, "lesson_add")
    assert len(lesson.read(there.url["lesson"])[0]) == 2
    press(there, "lesson_remove_1")
    assert len(lesson.read(there.url["lesson"])[0]) == 1


def test_a_view_moves_up_and_down_and_the_open_one_stays_open() -> None:
    views = (*ITEMS, LessonView("roles", {"head": "L5H11"}, "Last"))
    assert lesson.move(views, 3, 1) == (views[2], views[0], views[1])
    assert lesson.move(views, 1, 2) == (views[1], views[0], views[2])
    assert lesson.move(views, 1, 0) == lesson.move(views, 1, 4) == lesson.move(views, 4, 1) == views
    there = PageSession({"class": "1", "lesson": LINK, "view": "1", **ITEMS[0].parameters})
    press(there, "lesson_down_1")
    assert lesson.read(there.url["lesson"])[0] == (ITEMS[1], ITEMS[0])
    assert there.url["view"] == "2"


@pytest.mark.parametrize("number", range(1, len(classroom.FIRST_HOUR) + 1))
def test_the_ready_lesson_opens_at_each_view(number: int) -> None:
    views, (page, begun) = classroom.FIRST_HOUR, classroom.begin_first_hour()
    assert lesson.read(begun["lesson"]) == (views, True)
    assert (page, begun["view"], begun["class"]) == (views[0].page, "1", "1")
    view = views[number - 1]
    url = {"lesson": begun["lesson"], "class": "1", **view.parameters, "view": str(number)}
    there = PageSession(url, str(page_files()[view.page]))
    body = unescape("".join(e.proto.body for e in there.at.get("html")))
    assert f"{number} of {len(views)}" in body
    assert view.remark in body
    assert 'class="mha-problem"' not in body
    assert "could not be" not in there.said
    assert len(re.findall(r"[.?!](?: |$)", view.remark)) <= 2


def test_the_ready_lesson_is_in_the_menu() -> None:
    there = PageSession()
    there.send("mha_more", "class", {"lesson": True})
    assert lesson.read(there.url["lesson"]) == (classroom.FIRST_HOUR, True)
    assert there.url["head"] == "L0H2"


def test_a_value_that_means_nothing_is_said() -> None:
    for name, value in (("class", "2"), ("view", "7"), ("view", "x")):
        there = PageSession({"lesson": LINK, name: value})
        assert f"Ignored in this link: {name}={value}." in there.said


def test_a_lesson_that_cannot_be_read_is_said() -> None:
    there = PageSession({"class": "1", "lesson": "nonsense"})
    assert "could not be read" in there.said


def test_answers_are_hidden_until_asked() -> None:
    assert "Answer" in expanders(PageSession({"class": "1"}, "pages/50_why_heads_differ.py"))
    url = {"class": "1", "experiment": "tasks", "task": "1", "answer": "L3H1"}
    task = PageSession(url, "pages/50_why_heads_differ.py")
    assert expanders(task).count("Answer") == 1
    answer = [box for box in task.at.expander if box.label == "Answer"][-1]
    assert "Mean weight on the word before" in answer.markdown[0].value


def test_charts_have_larger_letters_in_a_class() -> None:
    usual, there = (
        json.loads(PageSession(url, "pages/40_inside_a_head.py").at.get("plotly_chart")[0].proto.spec)["layout"]
        for url in ({"step": "score"}, {"step": "score", "class": "1"})
    )
    assert there["height"] == pytest.approx(TEXT_SCALE * usual["height"])
    assert there["font"]["size"] == pytest.approx(TEXT_SCALE * usual["font"]["size"])


def test_what_is_measured_in_pixels_grows_and_what_is_shown_stays() -> None:
    line, texts = (
        Line([1], [2], "#000000", point=10),
        Points([1], [2], 9, "#000000", texts=["a"], font_size=11, inks="#000000"),
    )
    axis = Axis(title="size", title_gap=4)
    chart = Chart(LIGHT, [line, texts], [Plot(axis, Axis())], 50, Margin(10, 0, 0, 0), width=100, font_size=12)
    usual, larger = plotly(chart), plotly(chart, 1.5)
    layout, (drawn, named) = larger.layout, larger.data
    assert (layout.width, layout.height, layout.margin.l, layout.font.size) == (150, 75, 15, 18)
    assert (drawn.marker.size, named.textfont.size, drawn.line.width) == (15, 16.5, 2)
    assert (list(drawn.x), list(drawn.y), layout.xaxis.title.text) == ([1], [2], "size")
    assert layout.xaxis.title.standoff == 6
    assert usual.layout.width == 100


# ---- The QR code ------------------------------------------------------------------------------------------------


def test_a_link_becomes_a_picture_that_holds_it() -> None:
    link = "http://192.168.1.5:8501/?text=" + quote("It rains.")
    picture = classroom.draw_qr_code(link)
    assert picture is not None
    assert 'alt="QR code of this view"' in picture
    source = re.search('src="data:image/svg[^,]*,([^"]*)"', picture)
    assert source is not None
    svg = unquote(unescape(source[1]))
    assert read_code(resvg_py.svg_to_bytes(svg_string=svg, background="white")) == link


def test_a_link_that_no_code_can_hold_gives_none() -> None:
    assert classroom.draw_qr_code("http://a/" + "b" * 3000) is None
