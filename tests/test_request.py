"""The one question: what excludes what, and how it is written in links, for JSON and as options."""

from __future__ import annotations

import json

import pytest

from mha_viz.errors import SettingError
from mha_viz.heads import Head
from mha_viz.request import COSINE, FIELDS, MASK, METHODS, Question, Request

OFF = (Head(2, 4), Head(3, 1))
QUESTION = Question(MASK, 3, "␣cat", 7, places=(3, 5))
POSSIBLE = (
    Request("m", "A cat."),
    Request("m", "A cat.", "It slept."),
    Request("m", words=("A", "cat"), off=OFF, method="mean"),
    Request("m", "A cat.", off=OFF, quantity="rollout"),
    Request("m", "A cat.", target="Eine Katze.", part="decoder"),
    Request("m", "A cat.", part="encoder", quantity="rollout"),
    Request("m", "A [MASK].", quantity="gradient", place=3, word="cat"),
    Request("m", "A cat.", quantity="gradient", other="It slept."),
    Request("m", "A [MASK].", quantity="gradient").with_question(QUESTION),
    Request("m", "A cat.", off=OFF, method="text", source="A dog."),
    Request("m", "A cat.").with_question(Question(COSINE, other="A dog.", off_in="first")),
)
IMPOSSIBLE = {
    "word goes with quantity gradient": Request(word="cat"),
    "place goes with quantity gradient": Request(place=0, quantity="norm"),
    "other goes with quantity gradient": Request(other="a"),
    "A word and a second text": Request(word="cat", other="a", quantity="gradient"),
    "off does not go with quantity norm": Request(off=OFF, quantity="norm"),
    "off does not go with quantity gradient": Request(off=OFF, quantity="gradient"),
    "target does not go with off": Request(target="a", off=OFF),
    "part does not go with quantity norm": Request(part="cross", quantity="norm"),
    "part encoder reads no target": Request(part="encoder", target="a"),
    "part is 'both'. Choose one of encoder, decoder, cross": Request(part="both"),
    "method is 'softly'. Choose one of zero, mean, uniform": Request(off=OFF, method="softly"),
    "method says how heads are switched off, but none is. Give off": Request(method="mean"),
    "off_in goes with other. Leave off_in out": Request(off_in="second"),
    "question takes the place of word": Request(word="a", question=QUESTION, quantity="gradient"),
    "question takes the place of off_in": Request(off_in="second", question=QUESTION, quantity="gradient"),
    "target is for models that read one text at a time. Leave pair out": Request(target="a", pair="b"),
    "words are the whole text. Leave pair out": Request(words=("A", "cat"), pair="b"),
    "method text takes outputs from another text. Give source": Request(off=OFF, method="text"),
    "source goes with method text. Leave source out": Request(off=OFF, source="A dog."),
    "quantity is 'wait'. Choose one of weight, norm, gradient, rollout, unexplained": Request(quantity="wait"),
    "off_in is 'third'. Choose one of both, first, second": Request(other="a", quantity="gradient", off_in="third"),
}


@pytest.mark.parametrize("request_", POSSIBLE)
def test_a_request_is_itself_after_json(request_: Request) -> None:
    assert request_.checked() is request_
    assert Request.parse(json.loads(json.dumps(request_.pack()))) == request_
    assert hash(request_) == hash(Request.parse(request_.pack()))


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_what_excludes_each_other_is_said_in_words(message: str) -> None:
    with pytest.raises(SettingError, match=message):
        IMPOSSIBLE[message].checked()


def test_messages_name_fields_as_they_were_written() -> None:
    with pytest.raises(SettingError, match=r"^--without does not go with --quantity norm"):
        Request(off=OFF, quantity="norm").checked(lambda name: FIELDS[name].option)


def test_a_link_holds_what_differs_from_the_defaults() -> None:
    assert Request("m", "A cat.").parameters() == {"model": "m", "text": "A cat."}
    without = Request("m", "A cat.", off=OFF, method=METHODS[2])
    assert without.parameters() == {"model": "m", "text": "A cat.", "off": "L2H4.L3H1", "how": "uniform"}


def test_a_question_from_before_texts_could_be_chosen_is_about_both() -> None:
    assert Question.parse(["cosine", 0, "", 0, "A dog.", []]) == Question(COSINE, other="A dog.", off_in="both")
