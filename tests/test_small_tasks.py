"""The small tasks: the question, what is measured on the sentence that is shown, and the feedback on an answer."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from mha_viz.app.lab.small_tasks import MEASURES, SmallTask, load_small_tasks, write_feedback
from mha_viz.attention import Head
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.player_data import Recording, build_player_data
from mha_viz.models.reading.encoder import Encoder
from tests import lanes
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

PAGE = "pages/50_why_heads_differ.py"
ANSWERS = ("L0H2", "L1H8", "L4H5", "L0H3", "L3H1", "L5H7")


def verdict(page: PageSession) -> str:
    return str(json.loads(page._drawn()["mha_player"].json)["verdict"])


def visit(**url: str) -> PageSession:
    return PageSession({"experiment": "tasks", **url}, PAGE)


def by_definition(task: SmallTask, words: list[str], rows: list[list[float]]) -> float:
    """The measure for one head, in plain Python; the first and the last token are special."""
    inner = range(1, len(words) - 1)
    if task.measure == "link":
        return rows[words.index(task.link[0])][words.index(task.link[1])]
    if task.measure == "first":
        return sum(rows[q][0] for q in inner) / len(inner)
    if task.measure == "spread":
        return sum(-w * float(np.log(w)) for q in inner for w in rows[q] if w > 0) / len(inner)
    offset = {"previous": -1, "next": 1}[task.measure]
    weights = [rows[q][q + offset] for q in inner if q + offset in inner]
    return sum(weights) / len(weights)


@pytest.mark.parametrize("number", range(6))
def test_the_answer_is_measured_and_leaves_no_doubt(number: int, minilm: Encoder) -> None:
    task = load_small_tasks()[number]
    words = minilm.encode(task.text).by_words()
    texts = [token.text for token in words.queries.tokens]
    numbers = MEASURES[task.measure].compute(words, task)
    for name, value in zip(task.heads, numbers, strict=True):
        assert value == pytest.approx(by_definition(task, texts, words[name].tolist()), abs=1e-5)
    best, second = np.sort(numbers)[::-1][:2]
    assert best > 1.3 * second or best - second > 0.5
    assert task.heads[int(numbers.argmax())] == ANSWERS[number]


def test_an_answer_is_right_or_wrong_by_the_numbers(minilm: Encoder) -> None:
    task = load_small_tasks()[0]
    words = minilm.encode(task.text).by_words()
    assert write_feedback(task, words, "L0H2").startswith("You were right. Mean weight on the word before: L0H2 0.9")
    assert "it is L0H2" in write_feedback(task, words, "L1H8")


def test_the_first_task_is_open_and_another_is_a_step_of_the_address() -> None:
    page = visit()
    assert page.at.pills(key="small_task").value == "1"
    assert load_small_tasks()[0].task in page.said.replace("\\", "")
    page.at.pills(key="small_task").set_value("2").run()
    page.check()
    assert page.url["task"] == "2"
    assert load_small_tasks()[1].task in page.said.replace("\\", "")


@pytest.mark.parametrize("number", lanes.some(range(6), 0, 3))
def test_a_task_shows_four_heads_says_the_numbers_and_leads_to_explore(number: int, minilm: Encoder) -> None:
    task = load_small_tasks()[number]
    page = visit(task=str(number + 1))
    content = json.loads(page._drawn()["mha_player"].json)
    assert [head["name"] for head in content["heads"]] == [format_head(Head.parse(name)) for name in task.heads]
    words = minilm.encode(task.text).by_words()
    cells = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(4, len(content["words"]), -1)
    np.testing.assert_allclose(cells[2] / 255, words[task.heads[2]], atol=3e-3)
    assert (content["verdict"], content["next"]) == ("", "")
    wrong = next(name for name in task.heads if name != ANSWERS[number])
    page.at.pills(key="small_answer").set_value(wrong).run()
    page.check()
    assert page.url["answer"] == wrong
    assert verdict(page) == write_feedback(task, words, wrong)
    page.at.pills(key="small_answer").set_value(ANSWERS[number]).run()
    assert verdict(page).startswith("You were right.")
    links = [link.proto for link in page.at.get("page_link") if "in Explore" in link.proto.label]
    assert len(links) == 4
    assert f"head={task.heads[0]}" in links[0].query_string


@pytest.mark.parametrize("odd", lanes.some(["0", "7", "x", "", "１"], "0", "7", "x"))
def test_odd_tasks_and_answers_of_a_link_are_survived(odd: str) -> None:
    assert load_small_tasks()[0].task in visit(task=odd, answer=odd).said.replace("\\", "")
    assert verdict(visit(task="1", answer=odd)) == ""


def test_a_task_that_is_answered_leads_to_the_next_and_the_last_to_nothing() -> None:
    page = visit(task="5", answer=load_small_tasks()[4].heads[0])
    assert json.loads(page._drawn()["mha_player"].json)["next"] == "Task 6"
    page.send("mha_player", "next", True)
    assert (page.url["task"], "answer" in page.url) == ("6", False)
    assert json.loads(visit(task="6", answer=load_small_tasks()[5].heads[0])._drawn()["mha_player"].json)["next"] == ""


def test_a_relation_is_marked_without_notes_but_never_dropped() -> None:
    """Before, a relation for which notes were missing had no marks."""
    recording = Recording(
        key="two words",
        steps=[0],
        words=["a", "b"],
        head_names=["L0H0"],
        maps=np.eye(2)[None, None],
        relations=["itself"],
        target_words=np.arange(2)[None],
        relation_notes=[[]],
    )
    assert [mark["name"] for mark in build_player_data(recording, 0, LIGHT)["marks"]] == ["itself"]
    with pytest.raises(ValueError, match="shorter"):
        build_player_data(recording._replace(relation_notes=[]), 0, LIGHT)
