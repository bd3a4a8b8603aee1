"""Interactive drawings and style sheets from ``browser/``, as Streamlit components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.components.v2.component_registry import BidiComponentDefinition
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.components.v2.types import ComponentRenderer

from mha_viz.browser import bundle

SCHEME = "scheme"  # the key of the component that :func:`watch_page` mounts
_register_lock = Lock()  # pages run in threads


def _get_renderer(component: str) -> ComponentRenderer:
    with _register_lock:
        return _register_component(component)


@cache
def _register_component(component: str) -> ComponentRenderer:
    """Register the component in the folder of this name; it draws into an element of the class ``mha-NAME``.

    Its code is a static file if the server provides one (``mha_viz.app.serving``); otherwise each message contains it.
    """
    name, html = f"mha_{component}", f'<div class="mha-{component}"></div>'
    css, js = bundle.build_style(component) or None, bundle.build_script(component)
    renderer = st.components.v2.component(name, html=html, css=css, js=js)
    manager = get_bidi_component_manager()
    if manager.get_metadata(bundle.SERVED):
        source = str(bundle.FOLDER / component / f"{component}.js")  # Streamlit expects an existing file
        file = bundle.name_served_file(component)
        manager.unregister(name)
        manager.register(BidiComponentDefinition(name, html, js=source, js_asset_relative_path=file))
    return renderer


def apply_style(sheet: str, values: Mapping[str, str] = MappingProxyType({})) -> None:
    """Apply a style sheet from ``browser/pages/`` to the page.

    ``values``: replacements for placeholders in the style sheet, such as the selector ``#pointed``.
    """
    rules = bundle.build_page_style(sheet)
    for name, value in values.items():
        rules = rules.replace(name, value)
    st.html(f"<style>\n{rules}</style>")


def draw_explorer(packet: bytes, roles: bytes, key: str, callbacks: Mapping[str, Callable[[], None]]) -> None:
    """Draw a reading: the grid of all heads, the open head, and the ranking of heads by one link.

    Args:
        packet: the reading (``figures.layout.packet``).
        roles: the roles of its heads, as JSON (``explore.badges``).
        key: the key of the component.
        callbacks: the callbacks, by name. Their values are in ``st.session_state[key].NAME``:
            "view": the user changed the view. The value holds the URL parameters that differ from their defaults
            (None: the parameter is removed).
            "compare": the user added a head to the compared heads. The value holds its ``model`` and ``head``.
            "card": the user asked what a head is known for. The value is its name.
            "off": the user switched a head off, or on again. The value is its name.
            "elsewhere": the user chose another sentence. The value is its number among those offered.
            "measure": the user asked for the roles of a model that was never measured.
            "why": the user asked why heads differ.
    """
    data = packet + roles + len(roles).to_bytes(4, "little")  # as bytes, which Streamlit sends as one separate message
    _get_renderer("explorer")(
        key=key,
        data=data,
        on_view_change=callbacks["view"],
        on_compare_change=callbacks["compare"],
        on_card_change=callbacks["card"],
        on_measure_change=callbacks["measure"],
        on_off_change=callbacks["off"],
        on_why_change=callbacks["why"],
        on_elsewhere_change=callbacks["elsewhere"],
    )


def draw_sentence(
    content: dict[str, Any],
    key: str,
    on_read: Callable[[], None],
    on_example: Callable[[], None],
    on_model: Callable[[], None],
) -> None:
    """Draw the sentence in large type, its second sentence, the examples, and the model that reads it.

    ``content``: text, pair, look (a hint), answer (to the hint), opens ({index, head} of an example, or None), intro,
    plain (whether it is the view for a class), model, label (of the model), models [{name, label}], open (whether any
    model may be typed), examples [{text, pair, look}], arched (whether the drawing below has arcs).

    In the callbacks, ``st.session_state[key]`` holds ``read`` ({text, pair}), ``example`` (its index) or ``model`` (a
    name as chosen or typed).
    """
    _get_renderer("sentence")(
        key=key, data=content, on_read_change=on_read, on_example_change=on_example, on_model_change=on_model
    )


def draw_comparison(packet: bytes, key: str, on_view: Callable[[], None], on_edit: Callable[[], None]) -> None:
    """Draw heads side by side on one colour scale, with linked hover and signed differences
    (``figures.layout.panels``).

    ``on_view`` runs when the user changed the view; ``st.session_state[key].view`` then holds the URL parameters that
    differ from their defaults (None: it is removed): as, unit, special, links, scale, diff, pin, at.

    ``on_edit`` runs when the user changed the compared heads; ``st.session_state[key].edit`` then holds ``action``
    ("rename", "duplicate", "remove", "move", "open", "pin"), ``index`` (the panel's place among the compared heads, or
    its number where the panels are not the compared heads), ``to`` (for "move": its new place), ``name`` (for
    "rename"); ``head``, ``model``, ``text`` and ``pair`` of the panel; and ``view``: the URL parameters after the
    change, because the positions in ``diff`` and ``at`` change too. They go into the URL in the same step.
    """
    _get_renderer("compare")(key=key, data=packet, on_view_change=on_view, on_edit_change=on_edit)


def draw_block(content: dict[str, Any], key: str, callbacks: Mapping[str, Callable[[], None]]) -> None:
    """Draw a head as one picture of its stages, each of which unfolds in place.

    Args:
        content: stages [{name, label, shape, inside}] in order; stage, the name of the open one; heads [colour];
            head, the chosen one; picture, the numbers (``app.inside.picture``).
        key: the key of the component.
        callbacks: the callbacks "stage", "head" and "key". ``st.session_state[key]`` holds the value of that name: the
            name of a stage, the number of a head, or that of a token.
    """
    _get_renderer("block")(
        key=key,
        data=content,
        on_stage_change=callbacks["stage"],
        on_head_change=callbacks["head"],
        on_key_change=callbacks["key"],
    )


def draw_player(content: dict[str, Any], key: str, on_step: Callable[[], None], on_next: Callable[[], None]) -> None:
    """Draw a training run step by step, with Play, Pause and a slider.

    ``content`` is made by :func:`mha_viz.figures.layout.player_data.build_player_data`.

    In the callback ``on_step``, ``st.session_state[key].step`` is the step at which the visitor stopped. ``on_next`` is
    called when the visitor goes on to the following scene.
    """
    _get_renderer("player")(key=key, data=content, on_step_change=on_step, on_next_change=on_next)


def exchange_reasons(answer: Mapping[str, Any], key: str, on_ask: Callable[[], None]) -> None:
    """Let the browser ask why the links of a head look where they do, and send the last answer.

    ``answer``: "key" of the reading, "head", and its reasons (``explore.page``); empty if there is none. In the
    callback, ``st.session_state[key].ask`` holds the ``key`` of the reading on screen and the ``head``.
    """
    _get_renderer("reasons")(key=key, data=dict(answer), on_ask_change=on_ask, width="content")


def follow_pointer(tokens: Sequence[int], colour: str) -> None:
    """Highlight the token under the pointer in charts, in the words above them and in the table.

    Charts must name their tokens; the table must have one row per item of ``tokens``.
    """
    _get_renderer("pointed")(key="pointed", data={"tokens": list(tokens), "colour": colour}, width="content")


def draw_search(content: dict[str, Any], key: str, on_query: Callable[[], None], on_open: Callable[[], None]) -> None:
    """Draw the search for heads.

    ``content``: number (of the query), typed (the query), problem (why it cannot be answered), groups [{title, note,
    answers: [{name, paper, does, score, baseline, rule, standing, href}]}].

    In the callbacks, ``st.session_state[key]`` holds ``query`` (what was typed) or ``open`` ({typed, index}: the query
    and the number of an answer).
    """
    _get_renderer("search")(key=key, data=content, on_query_change=on_query, on_open_change=on_open)


def draw_more_menu(full_parameters: Mapping[str, str], file: str, key: str, on_class: Callable[[], None]) -> None:
    """Draw the menu *More*: the link to this view, the keyboard shortcuts, the view for a class.

    Args:
        full_parameters: the parameters that a link must add to the URL to show the same view on another server.
        file: what the page can save for others: "html", "figures" or nothing.
        key: the key of the component.
        on_class: called when the user chooses the view for a class or the lesson.
    """
    _get_renderer("more")(
        key=key, data={"full": dict(full_parameters), "file": file}, width="content", on_class_change=on_class
    )


def scroll_to_step(step: str, selector: str) -> None:
    """Scroll to an element and move the keyboard focus there, once per ``step`` of the tour.

    ``selector``: the CSS selector of the element; ``… *::part(…)`` selects a part of a drawing inside it.
    """
    _get_renderer("tour")(key="tour_lead", data={"step": step, "place": selector}, width="content")


def watch_page(page: int, on_linked: Callable[[], None]) -> None:
    """Rerun the script when the page's colour scheme changes, and mark the open page in the navigation.

    Args:
        page: the number of the open page in the navigation.
        on_linked: called when a link was clicked; the component has then sent {"head": name}, {"kinds": names} or
            {"chapter": name}.
    """
    data = {"type": st.context.theme.type, "page": page}
    _get_renderer("scheme")(
        key=SCHEME, data=data, on_turned_change=lambda: None, on_linked_change=on_linked, width="content"
    )
