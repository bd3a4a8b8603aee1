"""Which heads were off while a model read a text: the step of a reading that says so, written and read back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mha_viz.attention import Attention, Head

_STEP = re.compile(r"without (L\d+H\d+(?: L\d+H\d+)*): (\w+)(?: \w+)?", re.ASCII)


class Off(NamedTuple):
    """The heads that are off, and what replaces their output, as in ``models.methods``; both empty if none is."""

    heads: tuple[Head, ...] = ()
    method: str = ""


def made_by(heads: Iterable[Head], method: str, means: str = "") -> str:
    """The step: "without L3H1 L2H4: zero". ``means``: a digest of the means of the method "mean"."""
    return f"without {' '.join(map(str, heads))}: {method}{' ' * bool(means)}{means}"


def off_in(attention: Attention) -> Off:
    """The heads that were off while a text was read."""
    match = _STEP.fullmatch("".join(attention.made[1:2]))
    return Off(tuple(map(Head.parse, match[1].split())), match[2]) if match else Off()
