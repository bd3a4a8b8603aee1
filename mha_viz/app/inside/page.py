"""The page *Inside a head*: the picture of a head, the open stage, and the cost of the attention block."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from mha_viz.app.inside import calculator
from mha_viz.app.inside.by_hand import show_marked_text
from mha_viz.app.inside.open_stage import OpenStage
from mha_viz.app.inside.picture import build_picture
from mha_viz.app.inside.stages import STAGES, STAGES_OF_OLD_LINKS
from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.url.address import Url
from mha_viz.app.widgets import download_panel, inference, request
from mha_viz.app.widgets.components import apply_style, draw_block, follow_pointer
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import (
    get_theme,
    parse_browser_number,
    quote_for_title,
    read_control_number,
    read_sent_value,
    report_errors,
    report_ignored,
    set_title,
    show_error,
    show_pending_error,
)
from mha_viz.app.widgets.request import report_encoder_decoder
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control, read_option
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Answer
from mha_viz.attention.outputs import HeadOutput
from mha_viz.attention.trace import Trace
from mha_viz.errors import MhaVizError
from mha_viz.figures.charts.inside import choose_tokens
from mha_viz.figures.layout.caption import describe_reading, format_head
from mha_viz.quotes import shorten
from mha_viz.request import Question, Request

MASK_NAME = re.compile(r"[\[<]mask[\]>]", re.IGNORECASE)  # of the token that BERT and its relatives predict
ANSWER_STAGE = "writes"  # the only stage that asks for the answer, which may take seconds
COST_STAGE = "cost"  # opens no stage, so that the calculator directly follows the picture


def show_head(url: Url) -> None:
    """Show the page for the request in the URL."""
    apply_style("inside")
    show_pending_error()
    if report_encoder_decoder(url.location, "the inside of a head is shown"):
        return
    page = inference.read_whole_model(url)
    if page is None:
        return
    attention = page.attention
    inference.report_cut_text(page)
    inference.report_unknown_text(attention)
    head = request.read_linked_head(url, attention, "inside_a_head")
    set_title(f"Inside {head}", quote_for_title(url.sentence))
    d_model = page.model.d_model
    try:
        trace: Trace = _ask_model(page, verbs.trace, head.layer)
    except MhaVizError as error:
        show_error(error)
        charts = []
    else:
        d_model = trace.d_model if calculator.matches_paper(trace) else 0
        charts = _show_inside(page, trace, head)
    downloads_container = st.container()
    costs = calculator.show_costs(attention, d_model)
    with downloads_container if charts else st.container():
        download_panel.show_chart_downloads([*charts, *costs])


def _show_inside(page: PageReading, trace: Trace, head: Head) -> list[PageChart]:
    """Show the picture of the head and the open stage. Return the stage's charts."""
    attention = page.attention
    query, key = _choose_pair(page, head, _find_answer_position(trace))
    name = _read_stage_name()
    tokens = choose_tokens(trace, head.head, query, key)
    output = _explain_output(page, head, query)
    split_scores = partial(_ask_model, page, verbs.split_scores, head, query)
    choices = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with choices:
        _show_choices(attention, head, query, key)
    with choices:
        show_marked_text(trace, head.head, query, key, tokens, get_theme())
    description, code = _describe_charts(attention, head, query, key), _write_code(page, head, query)
    is_divided = read_option("divide", ("no",), ".+") != "no"
    stage = OpenStage(
        name, trace, head.head, query, key, tokens, is_divided, get_theme(), description, code, split_scores, output
    )
    key_parts = None if trace.mask[query, key] else _try_to_ask(partial(split_scores, (key,)))
    answer = _ask_for_answer(page, trace, head, query) if name == ANSWER_STAGE else None
    _show_picture(stage, build_picture(stage, key_parts[0] if key_parts else None, answer))
    if name == COST_STAGE:
        return []
    with st.container(key="inside_stage"):
        apply_style("inside_stage", {"#open": f'[class*="_of_{name}"]'})
        for show_part in STAGES[name].parts:
            show_part(stage)
        follow_pointer(tokens, get_theme().heads[2])
    return stage.charts


def _read_stage_name() -> str:
    """Return the name of the stage that the URL opens, the first one by default."""
    # A number is a training step, for the page *Why heads differ*.
    name = read_option("step", (*STAGES, *STAGES_OF_OLD_LINKS, COST_STAGE), r".*\D.*") or next(iter(STAGES))
    return STAGES_OF_OLD_LINKS.get(name, name)


def _write_code(page: PageReading, head: Head, query: int) -> str:
    """Return the Python code that computes the numbers of this page."""
    text, prefix = page.attention.text, page.plain_request.prefix
    model_code = f"mv.load({page.attention.model!r})" + (f".prefixed({prefix!r})" if prefix else "")
    text_code, pair = (f"{text.text!r}, {text.pair!r}", f", pair={text.pair!r}") if text.pair else (repr(text.text), "")
    return (
        f"import mha_viz as mv\n\nm = {model_code}\nt = m.trace({text_code}, layer={head.layer})\n"
        f"t.weights[{head.head}, {query}]  # and t.x, t.before_turn, t.q, t.k, t.v, t.scores, t.context, t.output\n"
        f"mv.explain_output(m, {text.text!r}, {str(head)!r}, {query}{pair}).table()  # what the head writes\n"
    )


def _describe_charts(attention: Attention, head: Head, query: int, key: int) -> str:
    """Describe what the charts of this page show, for their captions."""
    words = [f"{name} “{shorten(attention.text.tokens[t].drawn, 30)}” (token {t})" for name, t in
             (("query", query), ("key", key))]  # fmt: skip
    return f"{format_head(head)} of {describe_reading(attention)}, {', '.join(words)}."


def _ask_model(page: PageReading, verb: Callable[..., Any], *values: Any) -> Any:
    """Call a verb with the request of the page and return its result. Raises the model's errors."""
    return _ask(page, verb, page.plain_request, *values)


def _ask(page: PageReading, verb: Callable[..., Any], request: Request, *values: Any) -> Any:
    """Call a verb with a request and return its result. Raises the model's errors."""
    future = get_model_service().ask_cached(verb, request, *values)
    return inference.wait_for_result(future, f"Opening {page.model.label}…")


def _explain_output(page: PageReading, head: Head, query: int) -> HeadOutput | str:
    """Return what the head writes at the query, or the reason why its words cannot be named."""
    try:
        output: HeadOutput = _ask_model(page, verbs.explain_output, head, query)
    except MhaVizError as error:
        return error.problem
    return output


def _ask_for_answer(page: PageReading, trace: Trace, head: Head, query: int) -> Answer | None:
    """Return the model's answer at the query, with and without the head; None if it predicts nothing there."""
    is_last = trace.causal and query == trace.n - 1
    if not is_last and not _is_masked(trace, query):
        return None
    answer_request = replace(page.plain_request, place=None if is_last else query)
    with suppress(MhaVizError):
        question: Question = _ask(page, verbs.prepare_question, answer_request)
        answer: Answer = _ask(page, verbs.answer_question, replace(answer_request.with_question(question), off=(head,)))
        return answer
    return None


def _is_masked(trace: Trace, token: int) -> bool:
    """Return whether the token is a mask, in whose place the model predicts a word."""
    return MASK_NAME.fullmatch(trace.text.tokens[token].text) is not None


def _find_answer_position(trace: Trace) -> int | None:
    """Return the masked token or, if there is none, the last token of a causal model; None for other models."""
    masked_tokens = (token for token in range(trace.n) if _is_masked(trace, token))
    return next(masked_tokens, trace.n - 1 if trace.causal else None)


def _try_to_ask(ask: Callable[[], Any]) -> Any:
    """Return an answer of the model; None if it has none."""
    with suppress(MhaVizError):
        return ask()
    return None


# ---- The query and the key ----------------------------------------------------------------------------------


def _choose_pair(page: PageReading, head: Head, answer_position: int | None) -> tuple[int, int]:
    """Return query and key: those in the URL, else those pinned in Explore, else the head's strongest link.

    That link begins at the token where the model predicts a word, if there is one.
    """
    n, parameters = len(page.attention.text), page.url.parameters
    ignored_parameters = [
        f"{name}={parameters[name][:20]}"
        for name in ("q", "k")
        if name in parameters and _parse_token(parameters[name], n) is None
    ]
    default_pin = None if page.url.location.head else page.opening.pin
    pin = re.fullmatch(r"(?:q(\d{1,4}))?(?:k(\d{1,4}))?", parameters.get("pin") or default_pin or "", re.ASCII)
    pinned_tokens = pin.groups() if pin else (None, None)
    ignored_parameters += (
        [f"pin={parameters['pin']}"]
        if "pin" in parameters and any(t and _parse_token(t, n) is None for t in pinned_tokens)
        else []
    )
    report_ignored(ignored_parameters, "the strongest link")
    if ignored_parameters:
        return find_strongest_link(page.attention, head, answer_position, None)
    tokens = (
        (_parse_token(parameters.get(name), n), _parse_token(pinned, n))
        for name, pinned in zip("qk", pinned_tokens, strict=True)
    )
    query, key = (pinned if linked is None else linked for linked, pinned in tokens)
    return find_strongest_link(page.attention, head, answer_position if query is key is None else query, key)


def find_strongest_link(attention: Attention, head: Head, query: int | None, key: int | None) -> tuple[int, int]:
    """Return the strongest link (query, key) between ordinary tokens, with ``query`` or ``key`` fixed if given.

    The two tokens differ if the text has two.
    """
    is_ordinary = np.logical_not(attention.text.special)
    weights = attention[head] * (is_ordinary[:, None] & is_ordinary[None, :]) + 1e-9
    weights = weights * np.where(np.eye(len(weights)), 1e-4, 1)
    if query is not None:
        weights = weights * (np.arange(len(weights)) == query)[:, None]
    if key is not None:
        weights = weights * (np.arange(len(weights)) == key)[None, :]
    link = divmod(int(weights.argmax()), len(weights))
    return link


def _parse_token(value: str | None, n: int) -> int | None:
    return int(value) if value and re.fullmatch(r"\d{1,4}", value, re.ASCII) and int(value) < n else None


# ---- Controls -------------------------------------------------------------------------------------------


def _show_choices(attention: Attention, head: Head, query: int, key: int) -> None:
    """Show the controls for layer, query and key. Their state is in the URL, so that Back and links move them too."""
    tokens = attention.text.tokens
    labels = [f"{i}  {token.drawn[:24]}" for i, token in enumerate(tokens)]
    bind_control(
        st.selectbox, "Layer", "head", head.layer, range(attention.layers), key="inside_layer", width=76, required=True,
        change=lambda layer: _open_head(Head(layer, head.head)),
    )  # fmt: skip
    for name, label, token in (("q", "Query", query), ("k", "Key", key)):
        bind_control(
            st.selectbox, label, name, token, range(len(tokens)), key=f"inside_{name}", width=150, required=True,
            change=lambda _: _read_tokens(), format_func=labels.__getitem__,
        )  # fmt: skip


def _open_head(head: Head) -> UrlChanges:
    """Return the parameters that open another head at the same query and key."""
    return {"head": str(head), "on": None, **_read_tokens()}


def _read_tokens() -> dict[str, str]:
    tokens = {name: read_control_number(f"inside_{name}") for name in ("q", "k")}
    return {name: str(token) for name, token in tokens.items() if token is not None}


def _show_picture(o: OpenStage, picture: Mapping[str, Any]) -> None:
    """Show the head as a picture of its stages, with controls for the stages and for the heads of the layer."""
    content = {
        "stages": [
            {"name": name, "label": stage.label, "shape": stage.shape(o.trace), "inside": stage.is_per_head}
            for name, stage in STAGES.items()
        ],
        "picture": dict(picture),
        "stage": o.name,
        "heads": [get_theme().heads[i % len(get_theme().heads)] for i in range(o.trace.heads)],
        "head": o.head,
    }
    draw_block(content, "inside_map", {"stage": _on_stage, "head": _on_head, "key": _on_key})


@report_errors()
def _on_stage() -> None:
    name = read_sent_value("inside_map", "stage")
    if isinstance(name, str) and name in STAGES:
        address.go(step=name)


@report_errors()
def _on_head() -> None:
    layer, chosen_head = (
        read_control_number("inside_layer"),
        parse_browser_number(read_sent_value("inside_map", "head")),
    )
    if layer is not None and chosen_head is not None and 0 <= chosen_head < 1000:
        address.go(**_open_head(Head(layer, chosen_head)))


@report_errors()
def _on_key() -> None:
    key = parse_browser_number(read_sent_value("inside_map", "key"))
    if key is not None and 0 <= key < 10_000:
        address.go(**{**_read_tokens(), "k": str(key)})
