"""The search for a head on every page: its answers, and where they lead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from streamlit.runtime.scriptrunner import StopException

import mha_viz as mv
from mha_viz.app.widgets import search_field
from mha_viz.errors import Busy
from mha_viz.files.assets import page_files
from tests.few_sentences import limit_built_in_sentences
from tests.page_session import PageSession, press
from tests.sentences import TIRED

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home")

PAGES = {name: f"pages/{file.name}" for name, file in page_files().items()}


@pytest.fixture(autouse=True)
def few_sentences(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cards of heads wait for the first of the built-in sentences only."""
    limit_built_in_sentences(monkeypatch)


def visit(page: str, **url: Any) -> PageSession:
    return PageSession(url, None if page == "explore" else PAGES[page])


def asked(page: PageSession, typed: str) -> dict[str, Any]:
    """The data that the browser gets after this was typed."""
    page.send("mha_search", "query", typed)
    content: dict[str, Any] = json.loads(page._drawn()["mha_search"].json)
    return content


def heads(content: dict[str, Any]) -> list[str]:
    return [answer["name"] for group in content["groups"] for answer in group["answers"]]


def opened(page: PageSession, typed: str, index: object) -> PageSession:
    page.send("mha_search", "open", {"typed": typed, "index": index})
    return page


@pytest.mark.parametrize("name", PAGES)
def test_every_page_answers_plain_words_and_its_links_say_what_a_click_does(name: str) -> None:
    page = visit(name, text="The animal slept because it was tired.", shown="rollout")
    content = asked(page, "pronoun")
    assert heads(content)[:2] == ["L2H4", "L3H1"]
    first = content["groups"][0]["answers"][0]
    assert first["paper"] == "3-5"
    assert first["score"].endswith("%")
    assert first["baseline"].endswith("%")
    target = urlsplit(first["href"])
    opened(page, "pronoun", 0)
    assert dict(parse_qsl(target.query)) == page.url
    stays = name in ("explore", "roles", "inside_a_head")
    assert target.path == ("./" if not stays or name == "explore" else f"./{name}")


def test_heads_that_copy_are_found() -> None:
    group = asked(visit("roles"), "copies")["groups"][0]
    first = group["answers"][0]
    assert (first["name"], first["score"], first["rule"]) == ("L5H7", "1.00", "random weights")


def test_heads_that_write_a_word_in_this_text_are_found_and_open_with_the_link() -> None:
    page = visit("explore", text=TIRED)
    group = asked(page, "writes beast")["groups"][0]
    assert group["title"] == "Writes “beast” in this text"
    scores = [float(answer["score"]) for answer in group["answers"]]
    assert scores == sorted(scores, reverse=True)
    for answer in group["answers"]:
        assert answer["rule"] == "average head"
        link, _, words = answer["does"].partition(", writes ")
        assert "beast" in words.split(", ")
        query, key = link.split(" → ")
        target = dict(parse_qsl(urlsplit(answer["href"]).query))
        places = [int(place) for place in target["link"].split("-")]
        tokens = [token.text for token in mv.load("minilm").encode(TIRED).text.tokens]
        assert [tokens[place] for place in places] == [query, key]
    opened(page, "writes beast", 0)
    assert page.url["head"] == group["answers"][0]["name"]


@pytest.mark.parametrize("typed", ["it → animal", "animal", "writes beast"])
def test_an_answer_counts_the_tokens_of_the_prefix(typed: str) -> None:
    page = opened(visit("explore", text=TIRED, prefix="query: "), typed, 0)
    numbers = [int(number) for number in re.findall(r"\d+", page.url["pin"])]
    tokens = [token.text for token in mv.load("minilm").encode(TIRED, prefix="query: ").text.tokens]
    words = {"it → animal": ["it", "animal"], "animal": ["animal"]}
    if typed in words:
        assert [tokens[number] for number in numbers] == words[typed]
    assert not {"query", ":"} & {tokens[number] for number in numbers}


@pytest.mark.parametrize(
    ("url", "note"),
    [
        ({"text": "The cat sat."}, "No head writes it in this text."),
        (
            {"text": "cat " * 300},
            "The text has 302 tokens; the words that all heads of this model write are listed for at most 118.",
        ),
    ],
)
def test_where_no_head_writes_a_word_the_search_says_so(url: dict[str, str], note: str) -> None:
    (group,) = asked(visit("explore", **url), "writes beastly-thing")["groups"]
    assert (group["answers"], group["note"]) == ([], note)


def test_a_text_with_the_word_writes_is_searched_for_its_links_first() -> None:
    found = asked(visit("explore", text="She writes letters to him."), "writes letters")["groups"]
    assert [group["title"] for group in found] == [
        "From “writes” to “letters” in this text",
        "Writes “letters” in this text",
    ]


def test_nothing_is_answered_before_something_is_typed() -> None:
    content = json.loads(visit("explore")._drawn()["mha_search"].json)
    assert content == {"number": 0, "typed": "", "problem": "", "groups": []}


def test_plain_words_names_and_links_find_heads() -> None:
    page = visit("about")
    for typed, first in (
        ("subject", "L2H8"),
        ("looks at commas", "L"),
        ("previous word", "L0H2"),
        ("L3H1", "L3H1"),
        ("4-2", "L3H1"),
        ("it → animal", "L3H1"),
    ):
        assert heads(asked(page, typed))[0].startswith(first), typed


def test_two_words_of_the_text_come_before_what_they_mean_elsewhere() -> None:
    titles = [group["title"] for group in asked(visit("explore"), "it animal")["groups"]]
    assert [title.partition(",")[0] for title in titles] == [
        "From “it” to “animal” in this text",
        "Pronoun → what it refers to",
    ]


def test_what_is_not_there_is_said() -> None:
    page = visit("explore")
    for typed in ("zzz", "<img src=x>", "L99H99", "zzz → it", "[", "\u202e", "9" * 400):
        content = asked(page, typed)
        assert heads(content) == [], typed
        assert content["problem"] or content["groups"][0]["note"], typed
        assert content["typed"] == typed[:80]


def test_a_sentence_that_cannot_be_read_says_why() -> None:
    assert "Back" not in asked(visit("explore", model="nobody/nothing"), "pronoun")["problem"]
    assert asked(visit("explore", text="", model="minilm"), "it → animal")["problem"]


# ---- Where it leads -------------------------------------------------------------------------------------------------


def test_an_answer_opens_the_head_on_the_explore_page() -> None:
    page = visit("explore", pin="q3")
    before = page.badges["opened"]
    opened(page, "pronoun", 0)
    there = {"text": "Anna called because she was late", "case": "L2H4.q3"}  # where this head does it
    assert page.url == {**there, "roles": "on"}  # with what it was found by
    assert page.badges["opened"] == before + 1  # the drawing follows the address


def test_an_answer_opens_the_card_on_the_roles_page() -> None:
    page = opened(visit("roles", head="L1H0", kinds="syntax"), "pronoun", 0)
    assert page.url == {"head": "L2H4", "kinds": "syntax"}
    assert "### L2H4 (3-5)" in page.said


def test_elsewhere_an_answer_leads_to_explore_with_the_link_that_was_looked_for() -> None:
    page = opened(visit("about", tray="[]"), "it → animal", 0)
    assert page.picture is not None
    assert page.url == {"head": "L3H1", "pin": "q10k2", "link": "10-2", "tray": "[]"}


def test_a_word_of_the_text_opens_the_head_that_looks_most_at_it_and_is_held() -> None:
    page = visit("explore", roles="on")
    to_it, from_it = asked(page, "animal")["groups"]
    assert (to_it["title"], from_it["title"]) == ("To “animal” in this text", "From “animal” in this text")
    assert [answer["does"].split(" → ")[1] for answer in to_it["answers"]] == ["animal"] * 4
    weights = (
        mv.load("minilm").encode(TIRED).by_words().weights[:, :, 1:-1]
    )  # [layer, head, query without special, key]
    assert to_it["answers"][0]["score"] == f"{np.delete(weights[..., 2], 1, axis=2).max():.3f}"
    opened(page, "animal", 0)
    assert page.url == {"head": to_it["answers"][0]["name"], "pin": "k2", "roles": "on"}
    opened(page, "animal", 4)
    assert page.url == {"head": from_it["answers"][0]["name"], "pin": "q2", "roles": "on"}


def test_a_plain_word_leads_to_the_stage_that_answers_it() -> None:
    page = opened(visit("about", step="cost", guess="none"), "narrow", 0)
    assert page.url == {"experiment": "cut"}
    assert "Is each head fed a different part of the input, or the whole vector?" in page.said
    opened(page, "are heads redundant", 0)
    assert page.url == {"experiment": "removal"}
    opened(page, "bank", 0)
    assert page.url["text"] == "We sat on the river bank after the bank had closed."
    assert page.url["head"] == "L2H9"


def test_what_is_shown_is_opened_whatever_would_be_answered_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    page = visit("explore")
    shown = heads(asked(page, "animal"))
    monkeypatch.setattr(search_field, "find_answers", lambda typed: [])
    opened(page, "animal", 1)
    assert page.url["head"] == shown[1]


def fail_at(step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> PageSession:
    """Return a page after a run of its search has ended at ``step``, with ``error``, and another run has begun."""
    page = visit("about")
    if step == "_find_destination":
        asked(page, "pronoun")

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(search_field, step, fail)
        page.send("mha_search", "query", "pronoun") if step == "find_answers" else opened(page, "pronoun", 0)
    page.at.run()
    page.check()
    return page


def test_a_run_that_ends_early_leaves_the_request_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    page = fail_at("find_answers", StopException(), monkeypatch)
    assert heads(json.loads(page._drawn()["mha_search"].json))[0] == "L2H4"
    page = fail_at("_find_destination", StopException(), monkeypatch)
    assert page.url["case"].startswith("L2H4")


@pytest.mark.parametrize("step", ["find_answers", "_find_destination"])
def test_a_request_that_fails_is_not_tried_again(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = fail_at(step, Busy("The model is busy.", "Search again."), monkeypatch)
    assert "case" not in page.url
    assert heads(asked(page, "subject"))[0] == "L2H8"


def test_an_answer_that_is_not_there_opens_nothing() -> None:
    page = visit("explore")
    odd: tuple[object, ...] = (None, -1, 99, "x", [], 0.5)
    for index in odd:
        opened(page, "pronoun", index)
        assert page.url == {}, index


# ---- The head of the first view -------------------------------------------------------------------------------------


def links(page: PageSession) -> dict[str, dict[str, str]]:
    return {link.proto.label: dict(parse_qsl(link.proto.query_string)) for link in page.at.get("page_link")}


def test_the_head_of_the_first_view_goes_along() -> None:
    ways = links(visit("explore"))
    for name in ("Compare", "Roles", "Inside a head"):
        assert ways[name] == {"head": "L3H1", "pin": "q10"}
    assert ways["Why heads differ"] == ways["Explore"] == {}
    assert links(visit("explore", head="L1H1"))["Roles"] == {"head": "L1H1"}
    assert links(visit("explore", shown="rollout"))["Roles"] == {"shown": "rollout"}  # its heads are layers
    assert links(visit("about"))["Roles"] == {}


def test_a_chip_opens_the_card_of_its_head() -> None:
    page = visit("explore", roles="on", on="1.2")
    page.send("mha_explorer", "card", "L2H4")
    assert page.url == {"head": "L2H4", "roles": "on"}
    assert "### L2H4 (3-5)" in page.said


def test_chips_speak_plain_words() -> None:
    names = {role["name"] for role in visit("explore").badges["roles"]}
    assert {"object (obj)", "pronoun", "previous token", "[CLS]"} <= names


@pytest.mark.parametrize("name", ["explore", "compare", "roles", "inside_a_head"])
def test_after_a_failure_every_page_has_a_way_back_to_the_default_model(name: str) -> None:
    from mha_viz.app.service.caches import get_model_service
    from mha_viz.errors import ModelUnreachable
    from mha_viz.models.getting import catalog

    model = catalog.resolve("bert-base-uncased")
    get_model_service().note_failure(model, ModelUnreachable("The Hub did not answer.", "Try again later."))
    page = visit(name, model=model.name, show="similar", head="L3H1")
    assert {"Try again", "Back to MiniLM"} <= {button.label for button in page.at.button}
    press(page, "back_to_model")
    assert "model" not in page.url
    assert page.url["head"] == "L3H1"
    get_model_service().forget_failure(model)


def test_a_model_that_is_none_has_a_way_back_too() -> None:
    page = visit("explore", model="no such model")
    press(page, "back_to_model")
    assert page.url == {}
    empty = visit("explore", model="toy", text="")
    assert "back_to_model" not in {button.key for button in empty.at.button}
