"""Names of heads. Every function that takes a head accepts any of the notations that are parsed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from numbers import Integral
from operator import index
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from mha_viz.errors import UnknownHead, shorten_value
from mha_viz.model_names import shorten_name

__all__ = ["AnyHead", "Head", "is_number"]

NONE = "none"  # in a link, in place of heads: none is switched off
MAX_NUMBER = 10_000  # no model has as many layers, or heads per layer
MAX_IN_LINK = 144  # maximum number of heads in a link: the parameter for 12 × 12 heads takes 767 characters
_NAME_REMEDY = "Write it as 'L3H1', (3, 1) or Head(3, 1): layer 3, head 1, from 0."


class Head(NamedTuple):
    """One head; both numbers count from 0. ``str`` returns "L3H7", ``paper`` the 1-based "4-8"."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"

    @property
    def paper(self) -> str:
        """The name in the style of Clark et al. 2019, counted from 1."""
        return f"{self.layer + 1}-{self.head + 1}"

    def place(self, heads: int, layers: Sequence[int] = ()) -> int:
        """Return the index of this head among all heads, from 0, layer by layer.

        ``heads`` is the number of heads per layer; ``layers`` are the numbers of the layers, by default 0, 1, …
        """
        return (layers.index(self.layer) if layers else self.layer) * heads + self.head

    @classmethod
    def of(cls, value: Any) -> Head:
        """Return the head that ``Head(3, 1)``, ``(3, 1)`` or ``"L3H1"`` names. Raises UnknownHead for anything else."""
        if isinstance(value, str):
            return cls.parse(value)
        try:
            layer, head = (index(part) for part in value)
        except (TypeError, ValueError) as error:
            hint = " Several heads are given as heads=[…]." if isinstance(value, list) else ""
            raise UnknownHead(f"{shorten_value(value)!r} is not a head.", f"{_NAME_REMEDY}{hint}") from error
        if any(isinstance(part, bool) for part in value) or max(abs(layer), abs(head)) >= MAX_NUMBER:
            raise UnknownHead(f"{shorten_value(value)!r} is not a head.", _NAME_REMEDY)
        return cls(layer, head)

    @classmethod
    def parse(cls, name: str) -> Head:
        """Return the head that "L3H7" names. Raises UnknownHead for anything else."""
        match = re.fullmatch(r"[Ll](\d{1,3})[Hh](\d{1,3})", name.strip(), flags=re.ASCII)
        if match is None:
            raise UnknownHead(f"“{name[:40]}” is not the name of a head.", "Write it as L3H1: layer 3, head 1, from 0.")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def among(cls, value: Any, layers: int | Sequence[int], heads: int, model: str) -> Head:
        """Return the head that ``value`` names, as :meth:`of` does, for a certain model.

        ``layers`` is the number of the model's layers, or their indices; ``heads`` is the number of heads per layer.
        With 0 heads, the heads of a layer are joined, and "L3" is accepted, too. Raises UnknownHead for a head that the
        model does not have.
        """
        layers = range(layers) if isinstance(layers, int) else layers
        is_layer_name = heads == 0 and isinstance(value, str) and re.fullmatch(r"[Ll]\d{1,3}", value.strip(), re.ASCII)
        head = cls.of(f"{value.strip()}H0" if is_layer_name else value)
        if not (head.layer in layers and 0 <= head.head < max(1, heads)):
            listing = "" if layers[-1] < len(layers) else f" ({', '.join(map(str, layers))})"
            heads_text = f"× {heads} heads" if heads else "whose heads are joined"
            layout = f"{len(layers)} layers{listing} {heads_text}"
            first, last = layers[0], layers[-1]
            names = (cls(first, 0), cls(last, heads - 1)) if heads else (f"L{first}", f"L{last}")
            problem = (
                f"{str(value).strip() if is_layer_name else head} does not exist: {shorten_name(model)} has {layout}."
            )
            raise UnknownHead(problem, f"Choose between {names[0]} and {names[1]}.")
        return head


def list_layers(count: int) -> tuple[int, ...]:
    """Return the numbers of all layers of a model: 0, 1, …"""
    return tuple(range(count))


@lru_cache(maxsize=32)
def list_heads(layers: Sequence[int], heads: int) -> tuple[Head, ...]:
    """Return all heads of a model in order: L0H0, L0H1, …"""
    return tuple(Head(layer, head) for layer in layers for head in range(heads))


AnyHead: TypeAlias = Head | tuple[int, int] | str


def is_number(value: object) -> TypeGuard[int]:
    """Return True for a single integer, including NumPy's: a layer, or a head within a layer."""
    return isinstance(value, Integral)


def format_heads(heads: Iterable[Head]) -> str:
    """Write heads for a link or a message, each once: "L2H4.L3H1"."""
    return ".".join(map(str, sorted(set(heads))))


def parse_heads(names: str) -> tuple[Head, ...] | None:
    """Parse heads that :func:`format_heads` wrote, separated by dots or commas.

    Return None for more than MAX_IN_LINK heads, and for any other text.
    """
    try:
        heads = {Head.parse(name) for name in re.split("[.,]", names)} if names not in ("", NONE) else set()
    except UnknownHead:
        return None
    return tuple(sorted(heads)) if len(heads) <= MAX_IN_LINK else None
