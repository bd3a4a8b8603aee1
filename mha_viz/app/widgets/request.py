"""Inputs for the request in the URL: sentence, examples, model menu, and the part and target of an encoder–decoder.

This module also refuses encoder–decoders on pages that need a model with one stack of layers.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import streamlit as st

from mha_viz.app.service.caches import is_ready, read_facts
from mha_viz.app.url import address
from mha_viz.app.url.address import Address, Url, load_examples
from mha_viz.app.widgets import navigation
from mha_viz.app.widgets.components import draw_sentence
from mha_viz.app.widgets.parts import (
    parse_browser_number,
    read_message,
    read_sent_value,
    report_errors,
    report_ignored,
    show_error,
    show_remark,
)
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError, ModelUnsupported, TextError
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.packet import OpenHead
from mha_viz.models.getting import catalog
from mha_viz.request import CROSS, ENCODER, PARTS, Request
from mha_viz.text import clean
from mha_viz.view.quantities import QUANTITIES

MAX_TYPED = 2_000  # maximum characters of a target
PART_NOTES = {
    "cross": "Rows are tokens of the target and columns those of the source, so weights on the token itself and its "
    "neighbours, roles and gold annotation are not defined here.",
    "decoder": "Roles and gold annotation belong to the source; they are not defined for the target.",
    "encoder": "Roles are measured on models with one stack of layers; they are not defined here.",
}

# ---- Input --------------------------------------------------------------------------------------------


def show_text_input(url: Url, intro: str = "", hint: bool = True) -> None:
    """Show the sentence in large type, with the examples and the model menu.

    If the URL has no text, show the line ``intro`` above the sentence. With ``hint``, say what to look for; hints name
    heads of the default model.
    """
    model, is_class_view = url.location.request.model or catalog.choose_default().name, address.is_class_view()
    content = {
        "text": url.sentence,
        "pair": url.location.request.pair,
        **_describe_example(url, model, hint),
        "intro": "" if "text" in url.parameters else intro,
        "plain": is_class_view,
        "arched": hint,
        "model": model,
        "label": _label_model(model),
        "models": [{"name": m.name, "label": m.label} for m in catalog.list_offered()],
        "open": not catalog.is_hosted(),
        "examples": [
            {"text": e["text"], "pair": e.get("pair", ""), "look": _split_answer(e, is_class_view)[0]}
            for e in _sort_examples()
        ],
    }
    draw_sentence(content, "sentence", _on_read, _on_example, _on_model)


def _sort_examples() -> list[dict[str, str]]:
    """Return the examples in order. While composition is drawn, those of composition come first."""
    arrows = address.get_parameters().get("arrows")
    return sorted(load_examples(), key=lambda example: bool(arrows) and example.get("arrows") != arrows)


def _describe_example(url: Url, model: str, hint: bool) -> dict[str, object]:
    """Return what to look for in an example and, if another head is open, a button for the example's own head.

    Empty during the tour, which has its own explanations.
    """
    example = _find_example(url)
    if (
        not hint
        or not example
        or model != _find_example_model(example)
        or navigation.read_step_number(address.get_parameters())
    ):
        return {"look": "", "answer": "", "opens": None}
    head = example.get("head", "")
    is_other_head = bool(url.location.head) and str(url.location.head) != head
    opens = {"index": _sort_examples().index(example), "head": head} if is_other_head and head else None
    look, answer = _split_answer(example, address.is_class_view())
    return {"look": look, "answer": answer, "opens": opens}


def _split_answer(example: dict[str, str], is_class_view: bool) -> tuple[str, str]:
    """Split what to look for into a question and its answer.

    The answer is empty except in the view for a class, where it is hidden until somebody asks for it.
    """
    question, mark, answer = example["look"].partition("? ")
    return (f"{question}?", answer if is_class_view else "") if mark else (example["look"], "")


def list_full_parameters(url: Url) -> dict[str, str]:
    """Return the parameters that a link must add to the URL to show the same view where other defaults apply."""
    model = find_shown_model(url.location) or catalog.choose_default().name
    return {"text": url.text, "model": model} | list_opening_parameters()


def _label_model(name: str) -> str:
    """Return a model's name in the menu; of a folder, only the last part of its path."""
    with suppress(MhaVizError):
        return catalog.resolve(name).label
    return name


def _find_example(url: Url) -> dict[str, str]:
    """Return the example that has the shown text, or an empty dictionary."""
    texts = (url.text, url.location.request.pair)
    return next((e for e in load_examples() if (e["text"], e.get("pair", "")) == texts), {})


def _find_example_model(example: dict[str, str]) -> str:
    """Return the name of the model that an example is about."""
    return example.get("model", catalog.DEFAULT)


@report_errors()
def _on_read() -> None:
    message = read_message("sentence", "read")
    text, pair, url = str(message.get("text", "")), str(message.get("pair", "")), address.get_url()
    # CoNLL-U stays unchanged as long as its words are not edited.
    is_unchanged = text == url.sentence and not pair.strip()
    _change_text(url.text if is_unchanged else text, pair)


@report_errors()
def _on_example() -> None:
    index = parse_browser_number(read_sent_value("sentence", "example"))
    if index is not None and 0 <= index < len(load_examples()):
        example = _sort_examples()[index]
        _change_text(
            example["text"], example.get("pair", ""), **{"head": None, "on": None, **_make_model_changes(example)}
        )


def _make_model_changes(example: dict[str, str]) -> dict[str, str | None]:
    """Return the parameters to set for an example that is about another model than the default.

    The next example then goes back to the default model.
    """
    url, name = address.get_url(), example.get("model")
    if name and name in {model.name for model in catalog.list_offered()}:
        return dict.fromkeys(address.MODEL_PARAMETERS) | {
            "model": name,
            "before": None,
            "arrows": example.get("arrows"),
        }
    is_of_example = url.location.request.model != "" and url.location.request.model == _find_example(url).get("model")
    return {"model": None, "arrows": None} if is_of_example else {}


def _change_text(text: str, pair: str, **changes: str | None) -> None:
    fitted_text, fitted_pair = address.fit_texts(text, pair)
    is_cut = (len(fitted_text), len(fitted_pair)) != (len(text), len(pair))
    is_default = fitted_text == load_examples()[0]["text"]
    changes |= dict.fromkeys(address.TEXT_PARAMETERS) | ({} if pair.strip() else {"side": None})
    typed_lengths = f"{len(text)}-{len(pair)}" if is_cut else None
    address.go(
        text=None if is_default else fitted_text,
        pair=fitted_pair if pair.strip() else None,
        typed=typed_lengths,
        **changes,
    )


@report_errors()
def _on_model() -> None:
    """Switch to a model at once if its files are on this machine; else keep the picture and view until they are."""
    name = clean(str(read_sent_value("sentence", "model") or "")[:300])
    parameter = None if name == catalog.choose_default().name else name
    with suppress(MhaVizError):
        if is_ready(catalog.resolve(name)):
            address.go(model=parameter, before=None, **dict.fromkeys(address.MODEL_PARAMETERS))
            return
    address.go(model=parameter, before=find_shown_model(address.get_url().location))


def list_opening_parameters() -> dict[str, str]:
    """Return URL parameters for the head that Explore opens by default, and for the token that is pinned in it."""
    url = address.get_url()
    if url.location.head or url.location.case or QUANTITIES[url.location.request.quantity].of_layers:
        return {}
    with suppress(MhaVizError):  # for a server with an invalid list of models, which the page reports
        opening = _find_default_opening(url, find_shown_model(url.location) or catalog.choose_default().name)
        return {"head": opening.head} | ({"pin": opening.pin} if opening.pin else {})
    return {}


def find_opening(url: Url, attention: Attention) -> OpenHead:
    """Return the head that opens if the URL names none, and its pin."""
    if QUANTITIES[attention.quantity].of_layers:  # one map per layer; the last one covers all layers
        return OpenHead(str(attention.every_head()[-1]))
    case = url.location.case
    if case and not attention.is_cross and case.head in attention.every_head():
        positions = (position for position, token in enumerate(attention.text.tokens) if token.word == case.word)
        first_position = next(positions, None)
        return OpenHead(str(case.head), None if first_position is None else f"{case.axis}{first_position}")
    opening = _find_default_opening(url, attention.model)
    return opening if Head.parse(opening.head) in attention.every_head() else OpenHead(str(attention.every_head()[0]))


def read_linked_head(url: Url, attention: Attention, page: str) -> Head:
    """Return the head in the URL, or else the head that opens by default.

    A remark names the parts of the link that ``page`` cannot use.
    """
    default_head, ignored_parameters = Head.parse(find_opening(url, attention).head), url.location.list_ignored(page)
    head = url.location.head or default_head
    if QUANTITIES[attention.quantity].of_layers:
        head = Head(head.layer, 0)
    if head not in attention.every_head():
        ignored_parameters, head = [*ignored_parameters, f"head={head}"], default_head
    report_ignored(
        ignored_parameters, format_head(head) if any(part.startswith("head=") for part in ignored_parameters) else ""
    )
    return head


def _find_default_opening(url: Url, model: str) -> OpenHead:
    example = _find_example(url)
    if model != _find_example_model(example):
        return OpenHead()
    return OpenHead(example.get("head", "L3H1"), None if hides_an_answer(url, model) else example.get("pin"))


def hides_an_answer(url: Url, model: str) -> bool:
    """Return whether the page asks a class a question whose answer is hidden.

    In that case, nothing else may reveal the answer.
    """
    return bool(_describe_example(url, model, hint=True)["answer"])


# ---- The model ----------------------------------------------------------------------------------------


def read_model(location: Address) -> catalog.Model:
    """Return the model in the URL, or else the default model. Raises the errors of ``catalog.resolve``."""
    return catalog.resolve(location.request.model) if location.request.model else catalog.choose_default()


def find_shown_model(location: Address) -> str | None:
    """Return the name of the model whose picture is on screen; None for the default model."""
    try:
        is_available = is_ready(catalog.resolve(location.request.model)) if location.request.model else True
    except MhaVizError:
        is_available = False
    return (location.request.model or None) if is_available else location.previous_model


# ---- Encoder–decoders ---------------------------------------------------------------------------------


def has_two_stacks(model: catalog.Model) -> bool:
    """Return whether a model is an encoder–decoder, which has two stacks of layers; False without its files."""
    with suppress(MhaVizError):
        facts = read_facts(model)
        return facts is not None and bool(facts.parts)
    return False


def set_part(request: Request, model: catalog.Model, location: Address) -> Request:
    """Return the request with the target and the part that the URL asks for.

    Unchanged for a model with one stack of layers.
    """
    if not has_two_stacks(model):
        return request
    target = "" if location.request.part == ENCODER else location.request.target
    return replace(request, target=target, part=location.request.part)


def show_part_controls(location: Address) -> None:
    """Show the controls for part and target of an encoder–decoder."""
    with suppress(MhaVizError):
        if not has_two_stacks(read_model(location)):
            return
        with st.container(key="two_stacks", horizontal=True, vertical_alignment="bottom"):
            change = partial(_change_part, location.request.part)
            bind_control(
                st.segmented_control, "Attention", "part", location.request.part, PARTS, change=change, required=True,
                width="content",
            )  # fmt: skip
            if location.request.part != ENCODER:
                bind_control(
                    st.text_input, "Target", "target", location.request.target, change=_change_target, keeps_text=True,
                    max_chars=MAX_TYPED, placeholder="Leave empty to let the model write it (up to 64 tokens)",
                )  # fmt: skip


def _change_part(previous_part: str, part: str) -> UrlChanges:
    # The encoder has other heads than the decoder.
    head_parameters = ("head", "on") if ENCODER in (part, previous_part) else ()
    changes = dict.fromkeys((*address.TOKEN_PARAMETERS, "case", *head_parameters))
    return {"part": None if part == CROSS else part, **changes}


def _change_target(target: str) -> UrlChanges:
    target = clean(str(target)[:MAX_TYPED]).strip()
    if len(quote(target)) > address.count_room("target"):
        remedy = "Shorten one of them, or remove a head with a long text from My heads."
        raise TextError("Source and target are together too long for the page’s link.", remedy)
    return {"target": target or None, **dict.fromkeys((*address.TOKEN_PARAMETERS, "case"))}


def describe_part(attention: Attention) -> None:
    """Show the text that the model generated, and say what is not defined for a part.

    Does nothing for a model with one stack of layers.
    """
    request = attention.request
    if request is None or not request.part:
        return
    if request.part != ENCODER and not request.target:
        show_remark(f"Target, written by the model one token at a time: “{attention.queries.text}”")
    show_remark(PART_NOTES[request.part])


def is_part(attention: Attention) -> bool:
    """Return whether the reading is a part of an encoder–decoder."""
    return attention.request is not None and bool(attention.request.part)


def report_encoder_decoder(location: Address, operation: str) -> bool:
    """Show an error if the model is an encoder–decoder, and return whether it is.

    ``operation``: the operation that needs a model with one stack of layers, such as "roles are measured".
    """
    try:
        model = read_model(location)
    except MhaVizError:  # reported where the reading is requested
        return False
    if not has_two_stacks(model):
        return False
    show_error(
        ModelUnsupported(
            f"{model.label} is an encoder–decoder: {operation} only for models with one stack of layers.",
            "Its attention is drawn on Explore and Compare. Choose another model for this page.",
        )
    )
    return True
