"""The list of compared heads. It is kept in the URL, so that all pages share it and every link contains it.

The parameter ``tray`` is JSON: ``{"of": [[text, pair, model], …], "heads": [["L3H1", 0, "name"], …]}``. Heads refer to
their reading by its position, so that a sentence shared by eight heads is stored once. The reading of an
encoder–decoder is [text, pair, model, target, part]; with heads off it is [text, pair, model, "", "", "L2H4.L3H1",
"zero"]. If the method is "text", the text that outputs are taken from follows.
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
class ComparedHead:
    """A compared head: the request for its reading, and the user's name for it, which may be empty."""

    request: Request
    head: Head
    name: str = ""


Comparison = tuple[ComparedHead, ...]


def read(value: str | None) -> tuple[Comparison, bool]:
    """Return the list of compared heads in a URL, and whether all of it could be read. Never raises."""
    if not value:
        return (), True
    if len(value) > MAX_ENCODED:  # longer than any list that the app writes
        return (), False
    try:
        content = json.loads(value)
        readings, heads = content["of"], content["heads"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return (), False
    if not isinstance(heads, list):
        return (), False
    compared_heads = [_parse_head(entry, readings) for entry in heads[: 4 * MAX_HEADS]]
    valid_heads = [compared_head for compared_head in compared_heads if compared_head is not None]
    return tuple(valid_heads[:MAX_HEADS]), len(valid_heads) == len(heads) <= MAX_HEADS


def _parse_head(entry: Any, readings: Any) -> ComparedHead | None:
    with suppress(ValueError, TypeError, IndexError, KeyError, MhaVizError):
        head, reading_index, name = entry
        if reading_index < 0:
            return None
        text, pair, model, *optional_fields = readings[reading_index]
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
            return ComparedHead(request.checked(), Head.parse(head), clean(name)[:MAX_NAME])
    return None


def write(heads: Sequence[ComparedHead]) -> str | None:
    """Return the value of the URL parameter; None for an empty list, so that the parameter is removed."""
    if not heads:
        return None
    requests = list(dict.fromkeys(compared_head.request for compared_head in heads))
    entries = [
        [str(compared_head.head), requests.index(compared_head.request), compared_head.name] for compared_head in heads
    ]
    return json.dumps(
        {"of": [*map(_write_request, requests)], "heads": entries}, ensure_ascii=False, separators=(",", ":")
    )


def _write_request(request: Request) -> list[str]:
    """Return a request as the URL stores it; :func:`_parse_head` reads it."""
    texts = [request.text, request.pair, request.model]
    parts = [request.target, request.part] if request.part or request.off else []
    off = [format_heads(request.off), request.method, request.source] if request.off else []
    return texts + parts + (off if request.source else off[:2])


def add(heads: Comparison, new_head: ComparedHead, name: str = "") -> Comparison:
    """Append a head to the list, and confirm it in a toast, which shows ``name`` if given. Raises ComparisonFull."""
    new_heads = _check_limits((*heads, new_head))
    copies = sum(
        (compared_head.request, compared_head.head) == (new_head.request, new_head.head) for compared_head in new_heads
    )
    repetition = " again" if copies > 1 else ""
    st.toast(f"Added {name or new_head.head} to My heads{repetition}: {len(new_heads)} of {MAX_HEADS}.")
    return new_heads


def remove(heads: Comparison, index: int) -> Comparison:
    """Return the list without the head at ``index``."""
    return heads[:index] + heads[index + 1 :] if 0 <= index < len(heads) else heads


def move(heads: Comparison, index: int, position: int) -> Comparison:
    """Return the list with the head at ``index`` moved to place ``position``, which is clipped to the list."""
    if not 0 <= index < len(heads):
        return heads
    other_heads = remove(heads, index)
    position = max(0, min(len(other_heads), position))
    return (*other_heads[:position], heads[index], *other_heads[position:])


def duplicate(heads: Comparison, index: int) -> Comparison:
    """Return the list with the head at ``index`` repeated after itself. Raises ComparisonFull."""
    if not 0 <= index < len(heads):
        return heads
    return _check_limits((*heads[: index + 1], heads[index], *heads[index + 1 :]))


def rename(heads: Comparison, index: int, name: str) -> Comparison:
    """Return the list with the head at ``index`` renamed. Raises ComparisonFull if the link becomes too long."""
    if not 0 <= index < len(heads):
        return heads
    renamed_head = replace(heads[index], name=" ".join(clean(name).split())[:MAX_NAME])
    return _check_limits((*heads[:index], renamed_head, *heads[index + 1 :]))


def _check_limits(heads: Comparison) -> Comparison:
    if len(heads) > MAX_HEADS:
        raise ComparisonFull(f"At most {MAX_HEADS} heads can be compared.", "Remove one of them first.")
    if len(quote(write(heads) or "")) > MAX_ENCODED:
        raise make_length_error()
    return heads


def make_length_error() -> ComparisonFull:
    """Return the error for a list that is too long for a link."""
    return ComparisonFull(
        "My heads are kept in the page’s link, and their texts together are too long for it.",
        "Remove a head with a long text, or add one with a shorter text.",
    )
