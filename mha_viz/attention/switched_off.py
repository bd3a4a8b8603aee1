"""Heads that are off while a model reads a text, as text: in links and messages, and in the steps of a reading."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mha_viz.attention import Attention, Head
from mha_viz.errors import UnknownHead

MOST_OFF = 144  # heads in a link: with 12 × 12 of them a parameter takes 767 characters
_STEP = re.compile(r"without (L\d+H\d+(?: L\d+H\d+)*): (\w+)(?: \w+)?", re.ASCII)


class Off(NamedTuple):
    """The heads that are off, and what replaces their output, as in ``models.methods``; both empty if none is."""

    heads: tuple[Head, ...] = ()
    method: str = ""


def written(heads: Iterable[Head]) -> str:
    """Heads in a link or a message, each once: "L2H4.L3H1"."""
    return ".".join(map(str, sorted(set(heads))))


def parsed(names: str) -> tuple[Head, ...] | None:
    """The heads that :func:`written` wrote, with dots or commas between them; None for more than MOST_OFF of them, and
    for any other text."""
    try:
        heads = {Head.parse(name) for name in re.split("[.,]", names)} if names else set()
    except UnknownHead:
        return None
    return tuple(sorted(heads)) if len(heads) <= MOST_OFF else None


def step(heads: Iterable[Head], method: str, means: str = "") -> str:
    """The step of a reading: "without L3H1 L2H4: zero". ``means``: a digest of the means of the method "mean"."""
    return f"without {' '.join(map(str, heads))}: {method}{' ' * bool(means)}{means}"


def off_in(attention: Attention) -> Off:
    """The heads that were off while a text was read."""
    match = _STEP.fullmatch(attention.made[1]) if len(attention.made) > 1 else None
    return Off(tuple(map(Head.parse, match[1].split())), match[2]) if match else Off()
