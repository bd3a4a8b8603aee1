"""The field *Find a head that …* on every page, drawn by the browser's component.

Its answers are about the model in the URL.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from mha_viz.analysis.corpus_why import WHY, found_by
from mha_viz.analysis.shipped import of_heads
from mha_viz.app.service import role_cases, studies
from mha_viz.app.service.caches import model_service, ready
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.url.address import Url
from mha_viz.app.widgets import head_search, navigation, stage_search
from mha_viz.app.widgets.components import search
from mha_viz.app.widgets.head_search import Group, HeadAnswer
from mha_viz.app.widgets.parts import guarded, message, sent, whole
from mha_viz.app.widgets.request import has_two, model_of, of_part
from mha_viz.app.widgets.stage_search import StageAnswer, StageGroup
from mha_viz.attention import Attention, Head
from mha_viz.errors import Busy, MhaVizError
from mha_viz.models.getting import catalog
from mha_viz.request import Request
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES, WEIGHT

KEY = "search"
LONGEST = 80  # the most characters of a query
PATIENCE = 20  # seconds for the reading of the sentence
STAYS = ("explore", "roles", "inside a head")  # pages that show the head in the URL; the others lead to Explore
MEASURED = ("score", "baseline", "rule", "standing")
OPENED = "heads_opened"  # how often the search or a lesson opened a head, after which the drawing follows the URL
_QUERY, _CHOICE, _COUNT, _SHOWN = "search_query", "search_choice", "search_count", "search_shown"


@st.fragment
def show_search_field(here: str) -> None:
    """Show the search field on the page ``here``, with the answers to the last query."""
    chosen = st.session_state.pop(_CHOICE, None)
    if isinstance(chosen, HeadAnswer | StageAnswer):
        name, changes = _place(chosen, here)
        st.session_state[OPENED] = st.session_state.get(OPENED, 0) + 1
        if name != here:
            navigation.leave(name, _parameters(changes))
        else:
            address.go(**changes)
        st.rerun()
    typed = st.session_state.pop(_QUERY, "")
    number = st.session_state.get(_COUNT, 0)  # what was just sent is not sent again
    search({**_content(typed, here), "number": number}, KEY, _on_query, _on_open)


@guarded()
def _on_query() -> None:
    st.session_state[_QUERY] = _clean_query(sent(KEY, "query"))
    st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1


@guarded()
def _on_open() -> None:
    event = message(KEY, "open")
    typed, shown = st.session_state.get(_SHOWN, ("", []))  # what the visitor sees, whatever could be answered by now
    asked = _clean_query(event.get("typed"))
    groups = shown if asked == typed else answer_groups(asked)
    answers = [answer for group in groups for answer in group.answers]
    index = whole(event.get("index"))
    if index is not None and 0 <= index < len(answers):
        st.session_state[_CHOICE] = answers[index]


def _clean_query(value: object) -> str:
    return " ".join(clean(str(value or "")[:LONGEST]).split())


def _content(typed: str, here: str) -> dict[str, Any]:
    """Return the data for the browser: the query, why it cannot be answered, and the answers in groups."""
    if not typed:
        return {"typed": "", "problem": "", "groups": []}
    try:
        groups = answer_groups(typed)
        st.session_state[_SHOWN] = (typed, groups)
    except MhaVizError as error:
        return {"typed": typed, "problem": str(error), "groups": []}
    problem = "" if groups else f"Nothing here is called “{typed[:40]}”. Type {head_search.WHAT}, or words of the text."
    return {"typed": typed, "problem": problem, "groups": [_group(group, here) for group in groups]}


def _group(group: Group | StageGroup, here: str) -> dict[str, Any]:
    answers = [_describe_answer(answer) | {"href": _href(answer, here)} for answer in group.answers]
    return {"title": group.title, "note": group.note, "answers": answers}


def _describe_answer(answer: HeadAnswer | StageAnswer) -> dict[str, str]:
    if isinstance(answer, StageAnswer):
        return {"name": answer.name, "paper": "", "does": answer.question} | dict.fromkeys(MEASURED, "")
    measured = {name: getattr(answer, name) for name in MEASURED}
    return {"name": str(answer.head), "paper": answer.head.paper, "does": answer.does, **measured}


# ---- Answers ------------------------------------------------------------------------------------------


def answer_groups(typed: str) -> list[Group | StageGroup]:
    """Return the answers to the query, the most certain kind of answer first, then stages that answer it.

    The heads are those of the page's model. Raises what the model raises, and Busy.
    """
    what = address.url()
    model = model_of(what.where)
    findings = studies.summarise(model).roles
    heads = head_search.named(typed)
    if heads:
        exists = partial(_exists, model=model)
        return [*head_search.of_names(typed, heads, exists, findings, of_heads(model.name))]
    if question := stage_search.by_question(typed):
        return [question]
    linked = _linked(typed, model, what)
    role = None if head_search.has_arrow(typed) else head_search.by_role(typed, findings, _tables(model))
    rule = None if head_search.has_arrow(typed) else head_search.by_rule(typed, of_heads(model.name))
    keys = head_search.by_key(typed, [*found_by(_tables(model)(WHY)).values()])
    found = [*linked, *(group for group in (role, rule, keys) if group is not None)]
    stages = stage_search.by_word(typed, not found)
    return [*found, stages] if stages else [*found]


def _tables(model: catalog.Model) -> Callable[[str], Any]:
    """Return a function that loads a table measured for the model, by name; None if there is no such table."""

    def table(name: str) -> Any:
        evidence = studies.reference_evidence(model)
        return evidence.table(name) if evidence else None

    return table


def _linked(typed: str, model: catalog.Model, what: Url) -> list[Group]:
    two, word = head_search.two_words(typed), head_search.one_word(typed)
    text = f"{what.sentence} {what.where.request.pair}".casefold()
    if not (two or word) or not (has_two(model) or all(query_word in text for query_word in two or [word])):
        return []
    if two is None:
        return head_search.of_word(word, _reading(model, what))
    group = head_search.between_words(two, _reading(model, what))
    return [] if group is None else [group]


def _reading(model: catalog.Model, what: Url) -> Attention:
    request = Request(model.name, what.text, what.where.request.pair)
    if not (model_service().has_reading(request) or ready(model)):
        model = catalog.default()  # its picture is shown while the requested model is missing
        request = replace(request, model=model.name)
    future = model_service().cached(verbs.read, of_part(request, model, what.where))
    try:
        return future.result(PATIENCE)
    except NotYet:
        future.cancel()
        raise Busy("The text is still being read.", "Search again in a moment.") from None


# ---- The way to a head --------------------------------------------------------------------------------


def _place(answer: HeadAnswer | StageAnswer, here: str) -> tuple[str, dict[str, str | None]]:
    """Return the page that shows an answer, and the URL parameters to change."""
    if isinstance(answer, StageAnswer):
        return answer.page, dict(answer.parameters)
    is_in_text = answer.link is not None or bool(answer.held)
    page = here if here in STAYS and not (is_in_text and here == "roles") else "explore"
    link: dict[str, str | None] = {"pin": answer.held or None, "link": None}
    if answer.link is not None:
        query, key = answer.link
        link = {"pin": f"q{query}k{key}", "link": f"{query}-{key}"}
    by_role = (
        page == "explore"
        and answer.rule
        and not is_in_text
        and answer.standing not in (head_search.RECIPE, head_search.SCORES)
    )
    roles = {"roles": "on"} if by_role else {}  # what the head was found by
    shown = QUANTITIES.get(address.now().get("shown") or WEIGHT)
    weights = {"shown": None} if shown and shown.of_layers else {}  # the head in the link needs it
    case = _case(answer) if page in ("explore", "inside a head") else {}
    if case and page != "explore":  # which alone holds the word of a case
        case |= {"head": str(answer.head), "case": None, "gold": None}
    return page, {"head": str(answer.head), "on": None, **link, **roles, **weights, **case}


def _case(answer: HeadAnswer) -> dict[str, str | None]:
    """Return the URL parameters of a sentence in which the head has the role that was searched for.

    Empty if the visitor has a sentence open, or if no such sentence is known.
    """
    if answer.role is None or "text" in address.now():
        return {}
    model = model_of(address.url().where)
    evidence = studies.reference_evidence(model)
    if evidence is None:
        return {}
    shown = role_cases.bundled_cases(evidence, answer.head)
    case = role_cases.right_case(model, evidence, answer.head, shown, answer.role)
    if case is None or case.parameters is None:
        return {}
    return {**dict.fromkeys(("head", "pair", *address.OF_THIS_TEXT)), **case.parameters}


def _exists(head: Head, model: catalog.Model) -> bool:
    return not model.heads or (head.layer < model.layers and head.head < model.heads)


def _parameters(changes: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**address.now(), **changes}.items() if value is not None}


def _href(answer: HeadAnswer | StageAnswer, here: str) -> str:
    name, changes = _place(answer, here)
    return f"./{navigation.page(name).url_path}?{urlencode(_parameters(changes))}"
