"""The list of compared heads. It is kept in the URL, so that all pages share it and every link contains it.

The parameter ``tray`` is JSON: ``{"of": [[text, pair, model], …], "heads": [["L3H1", 0, "name"], …]}``. Heads refer to
their reading by its position, so that a sentence shared by eight heads is stored once. The reading of an
encoder–decoder is [text, pair, model, target, part]; with heads off it is [text, pair, model, "", "", "L2H4.L3H1",
"zero"], with the text that outputs are taken from after "text".
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
from mha_viz.heads import format_heads, parse_heads
from mha_viz.request import METHODS, Request
from mha_viz.text import clean

MAX_HEADS = 8
MAX_NAME = 60  # maximum characters of a head's name
MAX_ENCODED = 3_500  # maximum bytes of the list in a link, percent-encoded: half of address.MAX_ENCODED


@dataclass(frozen=True)
class Pin:
    """A compared head: the request for its reading, and the user's name for it, which may be empty."""

    request: Request
    head: Head
    name: str = ""


Comparison = tuple[Pin, ...]


def read(value: str | None) -> tuple[Comparison, bool]:
    """Return the list of compared heads in a URL, and whether all of it could be read. Never raises."""
    if not value:
        return (), True
    if len(value) > MAX_ENCODED:  # longer than any list that the app writes
        return (), False
    try:
        parsed = json.loads(value)
        readings, heads = parsed["of"], parsed["heads"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return (), False
    if not isinstance(heads, list):
        return (), False
    pins = [_parse_pin(entry, readings) for entry in heads[: 4 * MAX_HEADS]]
    valid_pins = [pin for pin in pins if pin is not None]
    return tuple(valid_pins[:MAX_HEADS]), len(valid_pins) == len(heads) <= MAX_HEADS


def _parse_pin(entry: Any, readings: Any) -> Pin | None:
    with suppress(ValueError, TypeError, IndexError, KeyError, MhaVizError):
        head, number, name = entry
        if number < 0:
            return None
        text, pair, model, *optional_fields = readings[number]
        target, part, off, method, source = optional_fields + ["", "", "", METHODS[0], ""][len(optional_fields) :]
        texts = (head, name, text, pair, model, target, off, source)
        heads = parse_heads(off) if all(isinstance(value, str) for value in texts) else None
        if heads is not None:
            off_fields = (
                {"off": heads, "method": method, "source": clean(source)} if heads or method not in METHODS else {}
            )
            request = Request(
                clean(model)[:300], clean(text), clean(pair), target=clean(target), part=part, **off_fields
            )
            return Pin(request.checked(), Head.parse(head), clean(name)[:MAX_NAME])
    return None


def write(pins: Sequence[Pin]) -> str | None:
    """Return the value of the URL parameter; None for an empty list, so that the parameter is removed."""
    if not pins:
        return None
    requests = list(dict.fromkeys(pin.request for pin in pins))
    heads = [[str(pin.head), requests.index(pin.request), pin.name] for pin in pins]
    return json.dumps(
        {"of": [*map(_write_request, requests)], "heads": heads}, ensure_ascii=False, separators=(",", ":")
    )


def _write_request(request: Request) -> list[str]:
    """Return a request as the URL stores it; :func:`_parse_pin` reads it."""
    texts = [request.text, request.pair, request.model]
    parts = [request.target, request.part] if request.part or request.off else []
    off = [format_heads(request.off), request.method, request.source] if request.off else []
    return texts + parts + (off if request.source else off[:2])


def add(pins: Comparison, pin: Pin, name: str = "") -> Comparison:
    """Append a head to the list, and tell the user, by ``name`` if given. Raises ComparisonFull."""
    new_pins = _check_limits((*pins, pin))
    copies = sum((p.request, p.head) == (pin.request, pin.head) for p in new_pins)
    repetition = " again" if copies > 1 else ""
    st.toast(f"Added {name or pin.head} to My heads{repetition}: {len(new_pins)} of {MAX_HEADS}.")
    return new_pins


def remove(pins: Comparison, index: int) -> Comparison:
    """Return the list without the head at ``index``."""
    return pins[:index] + pins[index + 1 :] if 0 <= index < len(pins) else pins


def move(pins: Comparison, index: int, position: int) -> Comparison:
    """Return the list with the head at ``index`` moved to place ``position``, which is clipped to the list."""
    if not 0 <= index < len(pins):
        return pins
    others = remove(pins, index)
    position = max(0, min(len(others), position))
    return (*others[:position], pins[index], *others[position:])


def duplicate(pins: Comparison, index: int) -> Comparison:
    """Return the list with the head at ``index`` repeated after itself. Raises ComparisonFull."""
    if not 0 <= index < len(pins):
        return pins
    return _check_limits((*pins[: index + 1], pins[index], *pins[index + 1 :]))


def rename(pins: Comparison, index: int, name: str) -> Comparison:
    """Return the list with the head at ``index`` renamed. Raises ComparisonFull if the link becomes too long."""
    if not 0 <= index < len(pins):
        return pins
    pin = pins[index]
    renamed_pin = replace(pin, name=" ".join(clean(name).split())[:MAX_NAME])
    return _check_limits((*pins[:index], renamed_pin, *pins[index + 1 :]))


def _check_limits(pins: Comparison) -> Comparison:
    if len(pins) > MAX_HEADS:
        raise ComparisonFull(f"At most {MAX_HEADS} heads can be compared.", "Remove one of them first.")
    if len(quote(write(pins) or "")) > MAX_ENCODED:
        raise make_too_long_error()
    return pins


def make_too_long_error() -> ComparisonFull:
    """Return the error for a list that is too long for a link."""
    return ComparisonFull(
        "My heads are kept in the page’s link, and their texts together are too long for it.",
        "Remove a head with a long text, or add one with a shorter text.",
    )
