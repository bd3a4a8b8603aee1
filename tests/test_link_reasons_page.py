"""The reasons of links on Explore: when the browser can ask for them, and what arrives."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from mha_viz.app.explore.page import MAX_EXPLAINED
from mha_viz.app.service.caches import ModelService, get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.errors import ModelUnsupported
from mha_viz.request import Request
from tests.page_session import PageSession

pytestmark = pytest.mark.usefixtures("no_hub")

TOY = {"model": "toy", "text": "Anna sees the dog .", "head": "L1H1"}


def ask(page: PageSession, head: object, key: str | None = None) -> dict[str, Any]:
    page.send("mha_reasons", "ask", {"head": head, "key": page.shown().header["key"] if key is None else key})
    assert page.reasons is not None
    return page.reasons


def test_the_page_sends_the_reasons_of_a_head_once_the_browser_asks() -> None:
    page = PageSession(TOY)
    assert page.badges["explains"]
    assert page.reasons == {}, "nothing is measured before"
    answer = ask(page, "L1H1")
    expected = get_model_service().ask(verbs.explain_links, Request("toy", TOY["text"]), Head(1, 1)).result()
    assert (answer["key"], answer["head"]) == (page.shown().header["key"], "L1H1")
    assert answer["groups"] == [*GROUPS]
    assert base64.b64decode(answer["codes"]) == np.asarray(expected.codes).tobytes()
    assert answer["words"] == [[*of_key] for of_key in expected.words or ()]
    page.view(links="all")
    assert page.reasons == {}, "a run of the page does not send them again"
    assert ask(page, "L1H2")["head"] == "L1H2"


@pytest.mark.parametrize(("head", "key"), [("L9H9", None), ("nonsense", None), (3, None), ("L1H1", "another")])
def test_a_question_about_what_is_not_on_the_page_has_no_answer(head: object, key: str | None) -> None:
    page = PageSession(TOY)
    assert ask(page, head, key) == {}
    assert not page.said.count("went wrong")


def test_a_model_that_refuses_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    page, whole = PageSession(TOY), ModelService.ask_cached

    def refuse(self: ModelService, verb: Any, *values: Any) -> Any:
        if verb is verbs.explain_links:
            raise ModelUnsupported("No.", "Choose another.")
        return whole(self, verb, *values)

    monkeypatch.setattr(ModelService, "ask_cached", refuse)
    before = page.said
    assert ask(page, "L1H1") == {}
    assert page.said == before


@pytest.mark.parametrize(
    "url",
    [
        {**TOY, "off": "L0H1"},
        {**TOY, "shown": "norm"},
        {**TOY, "class": "1"},
        {"text": " ".join(["dog"] * (MAX_EXPLAINED + 1))},
    ],
)
def test_where_links_are_not_explained_the_browser_cannot_ask(url: dict[str, str]) -> None:
    page = PageSession(url)
    assert not page.badges["explains"]
    assert page.reasons is None
