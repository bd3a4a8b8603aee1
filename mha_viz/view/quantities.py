"""The quantities that a reading can contain, such as weights or gradients, one row each.

The rows are stored in ``view.json``, which JavaScript imports too. Menus, links, captions, the files of figures,
recipes, the command line and the rules about valid combinations are derived from them. ``study.reading`` holds the
function that computes each quantity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

ROWS: dict[str, Any] = json.loads(Path(__file__).with_name("view.json").read_text("utf-8"))


class Quantity(NamedTuple):
    """The meaning of the numbers of a reading.

    Attributes:
        label, title: its name in a menu, and at the beginning of a sentence.
        about: a sentence that explains it.
        brief: the explanation in the help of the command line.
        numbers: "shares" (each row sums to 1), "lengths" (none is negative) or "signed".
        of_layers: whether there is one map per layer, which combines the heads of that layer.
        of_answer: whether it depends on a question to the model.
        with_all_heads: whether it requires a model with one stack of layers and no head off.
        step: the name of its step in ``Attention.made``.
        code: the Python code that computes it from {encoder}, {text} and {question}, or from the {call} that computes
            the weights.
    """

    name: str
    label: str
    title: str
    about: str
    brief: str
    numbers: str
    of_layers: bool = False
    of_answer: bool = False
    with_all_heads: bool = False
    step: str = ""
    code: str = ""

    @property
    def is_share(self) -> bool:
        """Whether each row consists of shares that sum to 1."""
        return self.numbers == "shares"

    @property
    def is_signed(self) -> bool:
        """Whether numbers may be negative."""
        return self.numbers == "signed"


_rows = {name: Quantity(name, **row) for name, row in ROWS["quantities"].items()}
QUANTITIES: Mapping[str, Quantity] = MappingProxyType(_rows)
WEIGHT = next(iter(QUANTITIES))  # the default


def add(quantity: Quantity) -> None:
    """Add a quantity, before the modules that read the rows are imported; see ``study.reading.add``."""
    _rows[quantity.name] = quantity
    row = quantity._asdict()
    ROWS["quantities"][row.pop("name")] = row
