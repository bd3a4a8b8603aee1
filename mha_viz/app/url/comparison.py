"""The list of compared heads lives in the URL, so that it stays the same on every page and is part of every
link.

The parameter ``tray`` is JSON: ``{"of": [[text, pair, model], …], "heads": [["L3H1", 0, "name"], …]}``; a head names
its reading by position, so that the sentence of eight heads is stored once. A reading by an encoder–decoder is [text,
pair, model, target, part], one with heads off [text, pair, model, "", "", "L2H4.L3H1", "zero"], and after "text" the
text that outputs are from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import streamlit as st

from mha_viz.attention import Head
from mha_viz.errors import ComparisonFull, MhaVizError
from mha_viz.heads import from_link, in_link
from mha_viz.request import METHODS, Request
from mha_viz.text import clean

MOST = 8
MAX_NAME = 60  # characters of a head's name
MAX_ENCODED = 3_500  # bytes of the list in a link, percent-encoded: half of address.MAX_ENCODED


@dataclass(frozen=True)
class Pin:
    """One head of the reading that a request asks for; ``name`` is the user's name for it, possibly empty."""

    request: Request
    head: Head
    name: str = ""


Comparison = tuple[Pin, ...]


def read(value: str | None) -> tuple[Comparison, bool]:
    """Return the list in a URL, and whether all of it could be read. Never raises."""
    if not value:
        return (), True
    if len(value) > MAX_ENCODED:  # longer than any that the app writes
        return (), False
    try:
        parsed = json.loads(value)
        readings, heads = parsed["of"], parsed["heads"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return (), False
    if not isinstance(heads, list):
        return (), False
    pins = [_pin(entry, readings) for entry in heads[: 4 * MOST]]
    good = [pin for pin in pins if pin is not None]
    return tuple(good[:MOST]), len(good) == len(heads) <= MOST


def _pin(entry: Any, readings: Any) -> Pin | None:
    with suppress(ValueError, TypeError, IndexError, KeyError, MhaVizError):
        head, number, name = entry
        if number < 0:
            return None
        text, pair, model, *more = readings[number]
        target, part, off, how, source = more + ["", "", "", METHODS[0], ""][len(more) :]
        given = (head, name, text, pair, model, target, off, source)
        heads = from_link(off) if all(isinstance(one, str) for one in given) else None
        if heads is not None:
            way = {"off": heads, "method": how, "source": clean(source)} if heads or how not in METHODS else {}
            request = Request(clean(model)[:300], clean(text), clean(pair), target=clean(target), part=part, **way)
            return Pin(request.checked(), Head.parse(head), clean(name)[:MAX_NAME])
    return None


def write(pins: Sequence[Pin]) -> str | None:
    """Return the value of the URL parameter; None for an empty list, which removes the parameter."""
    if not pins:
        return None
    requests = list(dict.fromkeys(pin.request for pin in pins))
    heads = [[str(pin.head), requests.index(pin.request), pin.name] for pin in pins]
    return json.dumps(
        {"of": [*map(_write_request, requests)], "heads": heads}, ensure_ascii=False, separators=(",", ":")
    )


def _write_request(request: Request) -> list[str]:
    """Return a request as the URL holds it, which :func:`_pin` reads."""
    texts = [request.text, request.pair, request.model]
    parts = [request.target, request.part] if request.part or request.off else []
    off = [in_link(request.off), request.method, request.source] if request.off else []
    return texts + parts + (off if request.source else off[:2])


def add(pins: Comparison, pin: Pin, name: str = "") -> Comparison:
    """Return the list with one more head at its end, which a message reports, by another ``name`` if one is given.
    Raises ComparisonFull."""
    more = _checked((*pins, pin))
    same = sum((p.request, p.head) == (pin.request, pin.head) for p in more)
    again = " again" if same > 1 else ""
    st.toast(f"Added {name or pin.head} to My heads{again}: {len(more)} of {MOST}.")
    return more


def remove(pins: Comparison, index: int) -> Comparison:
    """Return the list without head number ``index``."""
    return pins[:index] + pins[index + 1 :] if 0 <= index < len(pins) else pins


def move(pins: Comparison, index: int, to: int) -> Comparison:
    """Return the list with head number ``index`` moved to place ``to``; places out of range mean the ends."""
    if not 0 <= index < len(pins):
        return pins
    rest = remove(pins, index)
    to = max(0, min(len(rest), to))
    return (*rest[:to], pins[index], *rest[to:])


def duplicate(pins: Comparison, index: int) -> Comparison:
    """Return the list with a copy of head number ``index`` after it. Raises ComparisonFull."""
    if not 0 <= index < len(pins):
        return pins
    return _checked((*pins[: index + 1], pins[index], *pins[index + 1 :]))


def rename(pins: Comparison, index: int, name: str) -> Comparison:
    """Return the list with head number ``index`` called ``name``. Raises ComparisonFull when the link becomes too
    long."""
    if not 0 <= index < len(pins):
        return pins
    old = pins[index]
    named = replace(old, name=" ".join(clean(name).split())[:MAX_NAME])
    return _checked((*pins[:index], named, *pins[index + 1 :]))


def _checked(pins: Comparison) -> Comparison:
    if len(pins) > MOST:
        raise ComparisonFull(f"At most {MOST} heads can be compared.", "Remove one of them first.")
    if len(quote(write(pins) or "")) > MAX_ENCODED:
        raise too_long()
    return pins


def too_long() -> ComparisonFull:
    """Return the error for a link that cannot hold the list."""
    return ComparisonFull(
        "My heads are kept in the page’s link, and their texts together are too long for it.",
        "Remove a head with a long text, or add one with a shorter text.",
    )
