"""Controls to choose the heads that are off and the replacement of their outputs; callbacks for clicks on squares."""

from __future__ import annotations

import random
from collections.abc import Sequence

import streamlit as st

from mha_viz.analysis.bundled_data import list_head_recipes
from mha_viz.app.url import address
from mha_viz.app.widgets import asking
from mha_viz.app.widgets.parts import read_sent_value, report_errors, show_remark
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError
from mha_viz.figures.layout.caption import format_head
from mha_viz.heads import MAX_IN_LINK, NONE, format_heads
from mha_viz.request import BOTH, COSINE, METHOD_WORDS, METHODS, OFF_CHOICES, RECIPE, RESAMPLE, TEXT, Request

OFF_IN_LABELS = {BOTH: "both texts", "first": "the first", "second": "the second"}
SWITCH_ALL_ON = "Switch all heads back on"  # the label of a button
MODE_PARAMETERS = dict.fromkeys(("off", "how", "from", "in"))
METHOD_HELP = {
    "zero": "*zeros*: a head that is off adds nothing.",
    "mean": "*its mean*: the head’s mean output over the built-in sentences.",
    "uniform": "*uniform attention*: its output with equal weights on all tokens that it may see.",
    RECIPE: "*its rules*: its output with the weights that its rules predict for this text.",
    RESAMPLE: "*random sentences*: its output on random built-in sentences.",
    TEXT: "*another text*: its output on a text that you type, with as many tokens or words.",
}


def show_controls(attention: Attention, off: tuple[Head, ...], head_request: Request) -> None:
    """Show the controls for the heads that are off and the replacement of their outputs.

    ``head_request`` is the request by which the effects of single heads are measured; it holds the current method.
    """
    current_method = head_request.method
    bind_control(
        st.multiselect,
        "Heads switched off",
        "off",
        [*map(str, off)],
        [*map(str, attention.every_head())],
        change=lambda names: _make_off_changes([*map(Head.of, names)]),
        format_func=lambda name: format_head(Head.of(name)),
        placeholder="None",
        select_all=False,
        filter_mode="contains",  # the default would also match L13H10 for L3H1
    )
    has_recipe = current_method == RECIPE or list_head_recipes(attention.model, attention.revision)
    methods = METHODS if has_recipe else [method for method in METHODS if method != RECIPE]
    bind_control(
        st.segmented_control, "Replacement output", "how", current_method, methods, default=METHODS[0],
        format_func=METHOD_WORDS.__getitem__, help=" ".join(METHOD_HELP.values()), required=True, wrap=True,
    )  # fmt: skip
    if head_request.question is not None and head_request.question.kind == COSINE:
        bind_control(
            st.segmented_control, "Texts affected", "in", head_request.question.off_in, OFF_CHOICES, default=BOTH,
            format_func=OFF_IN_LABELS.__getitem__, required=True, wrap=True,
        )  # fmt: skip
    with st.container(horizontal=True):
        bind_control(
            st.selectbox, "Add a layer", "off", None, [f"L{layer}" for layer in range(attention.layers)], index=None,
            change=lambda name: _add_layer(name, attention.heads), key="off_layer", placeholder="Add a layer",
            label_visibility="collapsed", width=170,
        )  # fmt: skip
        count = len(off) or 1
        st.button(
            f"Pick {count} random heads" if len(off) > 1 else "Pick a random head",
            key="at_random",
            on_click=_on_random,
            args=(attention.layers, attention.heads, count),
        )
        st.button(SWITCH_ALL_ON, key="all_on", disabled=not off, on_click=address.go, kwargs={"off": NONE})


def ask_other_text(source: str) -> None:
    """Show the field for the text that replacement outputs come from, and report if it is empty."""
    bind_control(
        st.text_input, "Type the other text, then press Enter", "from", source, change=asking.make_text_change("from"),
        max_chars=2_000,
    )  # fmt: skip
    if not source.strip():
        show_remark("Type a text with as many words as the one above. Until then, all heads are on.")


def _make_off_changes(off: Sequence[Head]) -> UrlChanges:
    """Return the URL parameters that switch off exactly these heads. Raises SettingError if there are too many."""
    count = len(set(off))
    if count > MAX_IN_LINK:
        raise SettingError(
            f"{count} heads would be off; a link can hold {MAX_IN_LINK}.", "Switch some of them back on first."
        )
    return {"off": format_heads(off) or NONE}


def _add_layer(name: str | None, heads: int) -> UrlChanges | None:
    return (
        None
        if name is None
        else _make_off_changes([*_read_off_heads(), *(Head(int(name[1:]), head) for head in range(heads))])
    )


@report_errors()
def _on_random(layers: int, heads: int, count: int) -> None:
    all_heads = [Head(layer, head) for layer in range(layers) for head in range(heads)]
    address.go(**_make_off_changes(random.sample(all_heads, min(count, len(all_heads)))))


@report_errors()
def toggle_head() -> None:
    """Switch the head that the message names off or on; when the last head is switched on, end the mode.

    The message comes from the switch of the open head, or from the key x on a square.
    """
    off = {*_read_off_heads()} ^ {Head.parse(str(read_sent_value("explorer", "off")))}
    address.go(**(_make_off_changes([*off]) if off else MODE_PARAMETERS))


def _read_off_heads() -> tuple[Head, ...]:
    return address.get_url().location.request.off
