"""The search field *Find a head that …* on every page. Its answers are about the model in the URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as NotReady
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from mha_viz.analysis.bundled_data import list_head_recipes
from mha_viz.analysis.corpus_why import WHY, load_head_shares
from mha_viz.analysis.needs import find_needs
from mha_viz.analysis.pairs import NEEDED
from mha_viz.analysis.profile import COPYING
from mha_viz.app.service import role_cases, studies
from mha_viz.app.service.caches import get_model_service, is_ready
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.url.address import Url
from mha_viz.app.widgets import head_search, navigation, stage_search
from mha_viz.app.widgets.components import draw_search
from mha_viz.app.widgets.head_search import AnswerGroup, HeadAnswer
from mha_viz.app.widgets.parts import parse_browser_number, read_message, read_sent_value, report_errors, show_error
from mha_viz.app.widgets.request import has_two_stacks, read_model, set_part
from mha_viz.app.widgets.stage_search import StageAnswer, StageGroup
from mha_viz.attention import Attention, Head
from mha_viz.attention.reasons import NAMED_WORDS
from mha_viz.errors import Busy, MhaVizError
from mha_viz.models.getting import catalog
from mha_viz.request import Request
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES, WEIGHT

KEY = "search"
MAX_CHARACTERS = 80  # maximum length of a query
MODEL_TIMEOUT_S = 20  # seconds to wait for the model
ANSWER_PAGES = ("explore", "roles", "inside a head")  # pages that show the head in the URL; others lead to Explore
MEASURED_FIELDS = ("score", "baseline", "rule", "standing")
OPEN_COUNT_KEY = "heads_opened"  # session key: how often the search or a lesson opened a head for the drawing to follow
# Session keys: the typed query, the chosen answer, the number of queries, and the query and answers on screen.
_QUERY_KEY, _CHOICE_KEY, _COUNT_KEY, _ANSWERS_KEY = "search_query", "search_choice", "search_count", "search_shown"


@st.fragment
@report_errors(show_error)
def show_search_field(current_page: str) -> None:
    """Show the search field on the page ``current_page``, with the answers to the last query."""
    with _hold_request(_CHOICE_KEY) as choice:
        if isinstance(choice, HeadAnswer | StageAnswer):  # found once, because the URL that it depends on changes now
            choice = st.session_state[_CHOICE_KEY] = _find_destination(choice, current_page)
        if choice is not None:
            name, changes = choice
            st.session_state[OPEN_COUNT_KEY] = st.session_state.get(OPEN_COUNT_KEY, 0) + 1
            if name != current_page:
                navigation.open_page(name, _merge_parameters(changes))
            else:
                address.go(**changes)
    if choice is not None:
        st.rerun()
    with _hold_request(_QUERY_KEY) as query:
        number = st.session_state.get(_COUNT_KEY, 0)  # because Streamlit does not send the same data twice
        draw_search({**_make_content(query or "", current_page), "number": number}, KEY, _on_query, _on_open)


@contextmanager
def _hold_request(key: str) -> Iterator[Any]:
    """Yield what was requested under a session key, None if nothing was. Remove it after the block, even on an error.

    A run can end at each access to the session; the next one then finds the request.
    """
    try:
        yield st.session_state.get(key)
    except Exception:
        st.session_state.pop(key, None)
        raise
    st.session_state.pop(key, None)


@report_errors()
def _on_query() -> None:
    st.session_state[_QUERY_KEY] = _clean_query(read_sent_value(KEY, "query"))
    st.session_state[_COUNT_KEY] = st.session_state.get(_COUNT_KEY, 0) + 1


@report_errors()
def _on_open() -> None:
    event = read_message(KEY, "open")
    # The answers on screen, even if the same query has other answers by now.
    shown_query, shown_groups = st.session_state.get(_ANSWERS_KEY, ("", []))
    query = _clean_query(event.get("typed"))
    groups = shown_groups if query == shown_query else find_answers(query)
    answers = [answer for group in groups for answer in group.answers]
    index = parse_browser_number(event.get("index"))
    if index is not None and 0 <= index < len(answers):
        st.session_state[_CHOICE_KEY] = answers[index]


def _clean_query(value: object) -> str:
    return " ".join(clean(str(value or "")[:MAX_CHARACTERS]).split())


def _make_content(query: str, current_page: str) -> dict[str, Any]:
    """Return the data for the browser: the query, why it cannot be answered, and the answers in groups."""
    if not query:
        return {"typed": "", "problem": "", "groups": []}
    try:
        groups = find_answers(query)
        st.session_state[_ANSWERS_KEY] = (query, groups)
    except MhaVizError as error:
        return {"typed": query, "problem": str(error), "groups": []}
    problem = (
        "" if groups else f"Nothing here is called “{query[:40]}”. Type {head_search.QUERY_HELP}, or words of the text."
    )
    return {"typed": query, "problem": problem, "groups": [_describe_group(group, current_page) for group in groups]}


def _describe_group(group: AnswerGroup | StageGroup, current_page: str) -> dict[str, Any]:
    answers = [_describe_answer(answer) | {"href": _make_href(answer, current_page)} for answer in group.answers]
    return {"title": group.title, "note": group.note, "answers": answers}


def _describe_answer(answer: HeadAnswer | StageAnswer) -> dict[str, str]:
    if isinstance(answer, StageAnswer):
        return {"name": answer.name, "paper": "", "does": answer.question} | dict.fromkeys(MEASURED_FIELDS, "")
    measured_fields = {name: getattr(answer, name) for name in MEASURED_FIELDS}
    return {"name": str(answer.head), "paper": answer.head.paper, "does": answer.description, **measured_fields}


# ---- Answers ------------------------------------------------------------------------------------------


def find_answers(query: str) -> list[AnswerGroup | StageGroup]:
    """Return the answers to the query, the most certain kind of answer first, then stages that answer it.

    The heads are those of the page's model. Raises the model's errors, and Busy.
    """
    url = address.get_url()
    model = read_model(url.location)
    findings = studies.summarise(model).roles
    heads = head_search.parse_names(query)
    if heads:
        has_head = partial(_has_head, model=model)
        return [*head_search.answer_names(query, heads, has_head, findings, list_head_recipes(model.name))]
    if question := stage_search.find_by_question(query):
        return [question]
    link_groups = _find_by_link(query, model, url)
    if word := head_search.parse_written_word(query):
        link_groups.append(_find_by_written_word(word, model, url))
    role = (
        None if head_search.has_arrow(query) else head_search.find_by_role(query, findings, _make_table_loader(model))
    )
    rule = None if head_search.has_arrow(query) else head_search.find_by_rule(query, list_head_recipes(model.name))
    dependence = head_search.find_by_dependence(query, [*load_head_shares(_make_table_loader(model)(WHY)).values()])
    copying = head_search.find_by_copying(query, _make_table_loader(model)(COPYING))
    need = head_search.find_by_need(query, find_needs(_make_table_loader(model)(NEEDED)))
    groups = [*link_groups, *(group for group in (role, rule, dependence, copying, need) if group is not None)]
    stages = stage_search.find_by_word(query, not groups)
    return [*groups, stages] if stages else [*groups]


def _make_table_loader(model: catalog.Model) -> Callable[[str], Any]:
    """Return a function that loads a table measured for the model, by name; None if there is no such table."""

    def load_table(name: str) -> Any:
        evidence = studies.load_reference_evidence(model)
        return evidence.table(name) if evidence else None

    return load_table


def _find_by_link(query: str, model: catalog.Model, url: Url) -> list[AnswerGroup]:
    word_pair, word = head_search.parse_two_words(query), head_search.parse_one_word(query)
    text = f"{url.sentence} {url.location.request.pair}".casefold()
    if not (word_pair or word) or not (
        has_two_stacks(model) or all(query_word in text for query_word in word_pair or [word])
    ):
        return []
    if word_pair is None:
        return head_search.find_by_one_word(word, _load_reading(model, url))
    group = head_search.find_by_two_words(word_pair, _load_reading(model, url))
    return [] if group is None else [group]


def _find_by_written_word(word: str, model: catalog.Model, url: Url) -> AnswerGroup:
    """Return the heads that write a word in the text of the page, or the reason why that is not known."""
    attention = _load_reading(model, url)
    request = replace(_make_request(model, url), model=attention.model)
    try:
        written_words = _wait_for(
            get_model_service().ask_cached(verbs.name_words, request, NAMED_WORDS), "What heads write"
        )
    except Busy:
        raise
    except MhaVizError as error:  # the text is too long, or the model names no words
        return AnswerGroup(f"Writes “{word}” in this text", note=error.problem)
    return head_search.find_by_written_word(word, attention, written_words)


def _make_request(model: catalog.Model, url: Url) -> Request:
    """Build the request for the text of the page, with its prefix unless the model has none."""
    url_request = url.location.request
    prefix = "" if has_two_stacks(model) else url_request.prefix
    return Request(model.name, url.text, url_request.pair, prefix=prefix)


def _load_reading(model: catalog.Model, url: Url) -> Attention:
    request = _make_request(model, url)
    if not (get_model_service().has_reading(request) or is_ready(model)):
        model = catalog.choose_default()  # shown while the requested model is missing
        request = replace(request, model=model.name)
    future = get_model_service().ask_cached(verbs.read, set_part(request, model, url.location))
    attention: Attention = _wait_for(future, "The text")
    return attention


def _wait_for(future: Any, name: str) -> Any:
    """Return an answer of the model. Raises the model's errors, and Busy, about ``name``, if it takes too long."""
    try:
        return future.result(MODEL_TIMEOUT_S)
    except NotReady:
        future.cancel()
        raise Busy(f"{name} cannot be searched yet: the model is still at work.", "Search again in a moment.") from None


# ---- The link of an answer --------------------------------------------------------------------------------


def _find_destination(answer: HeadAnswer | StageAnswer, current_page: str) -> tuple[str, dict[str, str | None]]:
    """Return the page that shows an answer, and the URL parameters to change."""
    if isinstance(answer, StageAnswer):
        return answer.page, dict(answer.parameters)
    is_in_text = answer.link is not None or bool(answer.pin)
    page = current_page if current_page in ANSWER_PAGES and not (is_in_text and current_page == "roles") else "explore"
    link: dict[str, str | None] = {"pin": answer.pin or None, "link": None}
    if answer.link is not None:
        query, key = answer.link
        link = {"pin": f"q{query}k{key}", "link": f"{query}-{key}"}
    is_by_role = (
        page == "explore"
        and answer.rule
        and not is_in_text
        and answer.standing not in (head_search.RECIPE, head_search.SCORES, head_search.PAIRS)
    )
    roles = {"roles": "on"} if is_by_role else {}  # show the role by which the head was found
    quantity = QUANTITIES.get(address.get_parameters().get("shown") or WEIGHT)
    # Rollout has other heads, so go back to weights.
    quantity_change = {"shown": None} if quantity and quantity.of_layers else {}
    case = _find_case_parameters(answer) if page in ("explore", "inside a head") else {}
    if case and page != "explore":  # only Explore can show the case; keep the sentence and the head
        case |= {"head": str(answer.head), "case": None, "gold": None}
    return page, {"head": str(answer.head), "on": None, **link, **roles, **quantity_change, **case}


def _find_case_parameters(answer: HeadAnswer) -> dict[str, str | None]:
    """Return the URL parameters of a sentence in which the head has the role that was searched for.

    Empty if the visitor has a sentence open, or if no such sentence is known.
    """
    if answer.role is None or "text" in address.get_parameters():
        return {}
    model = read_model(address.get_url().location)
    evidence = studies.load_reference_evidence(model)
    if evidence is None:
        return {}
    examples = role_cases.list_bundled_cases(evidence, answer.head)
    case = role_cases.find_right_case(model, evidence, answer.head, examples, answer.role)
    if case is None or case.parameters is None:
        return {}
    return {**dict.fromkeys(("head", "pair", *address.TEXT_PARAMETERS)), **case.parameters}


def _has_head(head: Head, model: catalog.Model) -> bool:
    return not model.heads or (head.layer < model.layers and head.head < model.heads)


def _merge_parameters(changes: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**address.get_parameters(), **changes}.items() if value is not None}


def _make_href(answer: HeadAnswer | StageAnswer, current_page: str) -> str:
    name, changes = _find_destination(answer, current_page)
    return f"./{navigation.find_page(name).url_path}?{urlencode(_merge_parameters(changes))}"
