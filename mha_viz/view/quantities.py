"""What the numbers of a reading can be: one row for each quantity.

The rows stand in ``view.json``, which JavaScript imports too. Menus, links, captions, the files of figures, recipes,
the command line and the rules about what goes together are read from them; ``study.reading`` has the function that
computes each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

ROWS: dict[str, Any] = json.loads(Path(__file__).with_name("view.json").read_text("utf-8"))


class Quantity(NamedTuple):
    """What the numbers of a reading are.

    ``label`` is its name on a menu, ``title`` at the beginning of a sentence; ``about`` says what it is, ``brief`` in
    the help of the command line. ``numbers``: "shares", of which a row sums to 1, "lengths", of which none is below 0,
    or "signed". ``of_layers``: one map per layer, which joins its heads. ``of_answer``: it depends on a question to the
    model. ``with_all_heads``: of a model with one stack of layers, none of whose heads is off. ``step``: the name of
    its step in ``Attention.made``. ``code``: the Python that makes it, from {encoder}, {text} and {question}, or from
    the {call} that makes the weights.
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
        """True if a row consists of shares that sum to 1."""
        return self.numbers == "shares"

    @property
    def is_signed(self) -> bool:
        """True if numbers may be negative."""
        return self.numbers == "signed"


_rows = {name: Quantity(name, **row) for name, row in ROWS["quantities"].items()}
QUANTITIES: Mapping[str, Quantity] = MappingProxyType(_rows)
WEIGHT = next(iter(QUANTITIES))  # the default


def add(quantity: Quantity) -> None:
    """Add a row, before the modules that read the rows are imported: see ``study.reading.add``."""
    _rows[quantity.name] = quantity
    row = quantity._asdict()
    ROWS["quantities"][row.pop("name")] = row
