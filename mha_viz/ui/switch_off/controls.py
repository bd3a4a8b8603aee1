"""The controls for which heads are off, and how, and for clicks on squares."""

from __future__ import annotations

import random
from collections.abc import Sequence

import streamlit as st

from mha_viz.analysis.described import of_heads
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError
from mha_viz.figures.caption import both
from mha_viz.heads import MOST_IN_LINK, NONE, in_link
from mha_viz.request import BOTH, BY, COSINE, METHODS, OFF_IN, RECIPE, RESAMPLE, TEXT, Request
from mha_viz.ui import address, asking
from mha_viz.ui.bound import bound
from mha_viz.ui.parts import guarded, picked_head, remark, sent

IN = {BOTH: "both texts", "first": "the first", "second": "the second"}
ABOUT = {
    "zero": "*nothing*: the output of a head that is off is zero.",
    "mean": "*its average*: it is the head’s mean output over the built-in sentences, whatever the text.",
    "uniform": "*even attention*: it is the output of equal weights on all tokens that the head may see.",
    RECIPE: "*its recipe*: it is the output of the weights that its rules predict of this text.",
    RESAMPLE: "*random sentences*: it is the head’s output on sentences drawn from the built-in ones.",
    TEXT: "*another text*: it is the head’s output on a text that you type, with as many tokens or words.",
}


def controls(attention: Attention, off: tuple[Head, ...], each: Request) -> None:
    """Show the controls for which heads are off, and how, as in the request for ``each`` head alone."""
    how = each.method
    names = [str(head) for head in off]
    key = f"off_{'.'.join(names)}"  # of several values, which are not for ``bound``: with the URL's in their key
    _heads(attention, names, key)
    has_recipe = how == RECIPE or of_heads(attention.model, attention.revision)
    methods = METHODS if has_recipe else [method for method in METHODS if method != RECIPE]
    bound(
        st.segmented_control, "Replace it by", "how", how, methods, default=METHODS[0], format_func=BY.__getitem__,
        help=" ".join(ABOUT.values()), required=True, wrap=True,
    )  # fmt: skip
    if each.question is not None and each.question.kind == COSINE:
        bound(
            st.segmented_control, "Off in", "in", each.question.off_in, OFF_IN, default=BOTH,
            format_func=IN.__getitem__, required=True, wrap=True,
        )  # fmt: skip
    with st.container(horizontal=True):
        _layer(attention, f"layer_{key}")
        count = len(off) or 1
        st.button(
            f"{count if len(off) > 1 else 'One'} at random",
            key="at_random",
            on_click=_on_random,
            args=(attention.layers, attention.heads, count),
        )
        st.button("Switch all on", key="all_on", disabled=not off, on_click=_go, args=((),))


def other_text(source: str) -> None:
    """Show the field for the text that outputs are taken from, and say if it is empty; errors about it follow it."""
    bound(
        st.text_input, "The other text, then Enter", "from", source, change=asking.other_text("from"), max_chars=2_000,
    )  # fmt: skip
    if not source.strip():
        remark("Type a text with as many words as the one above; until then, all heads are on.")


def _heads(attention: Attention, names: list[str], key: str) -> None:
    st.multiselect(
        "Heads that are off",
        [str(head) for head in attention.every_head()],
        default=names,
        key=key,
        format_func=lambda name: both(Head.of(name)),
        placeholder="None: choose here, or click a square",
        filter_mode="contains",  # Enter after L3H1 takes that head, and not five whose names hold its letters
        select_all=False,
        on_change=_on_chosen,
        args=(key,),
    )


def _layer(attention: Attention, key: str) -> None:
    st.selectbox(
        "A whole layer",
        [f"L{layer}" for layer in range(attention.layers)],
        index=None,
        key=key,
        placeholder="A whole layer",
        label_visibility="collapsed",
        width=170,
        on_change=_on_layer,
        args=(key, attention.layers, attention.heads),
    )


def _go(off: Sequence[Head]) -> None:
    count = len(set(off))
    if count > MOST_IN_LINK:
        raise SettingError(f"{count} heads would be off; a link holds {MOST_IN_LINK}.", "Switch some of them on first.")
    address.go(off=in_link(off) or NONE)


@guarded()
def _on_chosen(key: str) -> None:
    _go([Head.of(name) for name in st.session_state[key]])


@guarded()
def _on_layer(key: str, layers: int, heads: int) -> None:
    name = st.session_state[key]
    if name in [f"L{layer}" for layer in range(layers)]:
        _go([*_off_now(), *(Head(int(name[1:]), head) for head in range(heads))])


@guarded()
def _on_random(layers: int, heads: int, some: int) -> None:
    every = [Head(layer, head) for layer in range(layers) for head in range(heads)]
    _go(random.sample(every, min(some, len(every))))


@guarded()
def on_square() -> None:
    """For a click on a square of the effects: switches its head off, or on again."""
    _pick("effects")


@guarded()
def on_point() -> None:
    """For a click on a point of the scatter plot of all heads: switches it off, or on again."""
    _pick("looks")


@guarded()
def on_bar() -> None:
    """For a click on a bar of the ranking: switches its head off, or on again."""
    _pick("ranking")


@guarded()
def on_head() -> None:
    """For the switch of the open head, and the key x on a square."""
    _turn(Head.parse(str(sent("explorer", "off"))))


def _pick(chart: str) -> None:
    head = picked_head(st.session_state.get(chart))
    if head is not None:
        _turn(head)


def _turn(head: Head) -> None:
    _go([*{*_off_now()} ^ {head}])


def _off_now() -> tuple[Head, ...]:
    return address.url().where.request.off
