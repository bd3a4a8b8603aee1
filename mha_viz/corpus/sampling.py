"""Which sentences of a corpus are read if not all are: every k-th, so that all of its documents and genres are among
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

_WORDS = {2: "every second sentence", 3: "every third sentence"}


def choose_step(count: int, most: int) -> int:
    """k = ⌈count / most⌉, 1 or more: of ``count`` sentences, those numbered 0, k, 2k, … are ``most`` at most."""
    return max(1, -(-count // most))


def take_every(step: int, items: Sequence[Item], first: int = 0) -> Sequence[Item]:
    """Every ``step``-th item of a corpus, from a part of it that begins with the item numbered ``first``."""
    return items[-first % step :: step]


def count_every(step: int, count: int, first: int = 0) -> int:
    """How many :func:`take_every` takes of ``count`` items."""
    return len(range(-first % step, count, step))


def name_sample(corpus: str, step: float | None) -> str:
    """ "EWT" if all of it was read, "every third sentence of EWT", "every 5th sentence of EWT"; ``step`` is None or NaN
    in what earlier versions stored."""
    if step is None or step != step:
        return f"{corpus} (its first sentences, as earlier versions read)"
    whole = int(step)
    return corpus if whole == 1 else f"{_WORDS.get(whole) or f'every {_ordinal(whole)} sentence'} of {corpus}"


def _ordinal(number: int) -> str:
    """ "5th", "21st", "112th"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"
