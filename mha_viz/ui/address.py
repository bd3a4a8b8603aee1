"""The URL is the state: what it may say, and what it does say.

Reading never raises: a value that is out of range or unknown is left aside and named in ``complaints``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import streamlit as st

from mha_viz.attention import Head
from mha_viz.errors import UnknownHead
from mha_viz.text import clean

MAX_CHARACTERS = 8_000  # of a sentence in a link; a model reads 512 pieces, about 2,500 characters
MAX_ENCODED = 24_000  # bytes of a sentence in a link, percent-encoded: servers refuse longer addresses

# What a view may say (the drawing reads the same parameters from the address bar: components/explorer).
VIEW = {
    "head": r"[Ll]\d{1,3}[Hh]\d{1,3}",
    "on": r"\d{1,3}(\.\d{1,3})*",
    "pin": r"q\d{1,4}|k\d{1,4}|q\d{1,4}k\d{1,4}",
    "link": r"\d{1,4}-\d{1,4}",
    "unit": r"words|pieces",
    "special": r"keep|hide|rescale",
    "links": r"all|top([1-9]|10)|min0\.\d{1,2}|mass0\.\d{1,2}",
    "scale": r"fixed|head|row|log",
    "side": r"all|aa|ab|ba|bb",
}
OF_THIS_TEXT = ("pin", "link")  # point at tokens, so a new text drops them


@dataclass(frozen=True)
class Address:
    """What the URL asks for. ``text`` None: it names none. ``head`` None: likewise; ``on``: heads beside it."""

    text: str | None = None
    pair: str = ""
    model: str | None = None
    head: Head | None = None
    on: tuple[int, ...] = ()
    link: tuple[int, int] | None = None
    words: bool = True
    complaints: tuple[str, ...] = field(default=())

    @property
    def wanted(self) -> tuple[Head, ...]:
        """The heads to draw in full, when the URL names them."""
        if self.head is None:
            return ()
        return (self.head, *(Head(self.head.layer, h) for h in self.on if h != self.head.head))


def read(parameters: Mapping[str, str]) -> Address:
    """The address in a URL's parameters."""
    view = {name: parameters[name] for name in VIEW if name in parameters}
    odd = [name for name, value in view.items() if not re.fullmatch(VIEW[name], value, flags=re.ASCII)]
    good = {name: value for name, value in view.items() if name not in odd}
    complaints = tuple(f"{name}={clean(view[name])[:30]}" for name in odd)
    return Address(
        text=clean(parameters["text"]) if "text" in parameters else None,
        pair=clean(parameters.get("pair", "")),
        model=clean(parameters["model"]) if parameters.get("model") else None,
        head=_head(good.get("head")),
        on=tuple(int(h) for h in good["on"].split(".")) if "on" in good else (),
        link=_link(good.get("link")),
        words=good.get("unit", "words") == "words",
        complaints=complaints,
    )


def fits(text: str) -> str:
    """The beginning of ``text`` that a link can carry."""
    text = clean(text)[:MAX_CHARACTERS]
    while len(quote(text)) > MAX_ENCODED:
        text = text[: len(text) * 9 // 10]
    return text


def accepted(view: Mapping[str, object]) -> dict[str, str | None]:
    """The parameters that a drawing may set: known names with valid values; None takes one out of the URL."""
    changes: dict[str, str | None] = {}
    for name, pattern in VIEW.items():
        value = view.get(name)
        if value is None or (isinstance(value, str) and re.fullmatch(pattern, value, flags=re.ASCII)):
            changes[name] = value
    return changes


def go(**changes: str | None) -> None:
    """Set parameters of the URL (None takes one out) as one step of the browser's history."""
    parameters = {**st.query_params.to_dict(), **changes}
    st.query_params.from_dict({name: value for name, value in parameters.items() if value is not None})


def _head(name: str | None) -> Head | None:
    try:
        return Head.parse(name) if name else None
    except UnknownHead:
        return None


def _link(value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    query, key = value.split("-")
    return int(query), int(key)
