"""Name the numbers of a reading in files.

Only what the model itself computed, read as it is, is called ``weight``: after a step that alters the numbers, their
name says which.
"""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.attention.steps import (
    BY_WORDS,
    GENERATED,
    GIVEN_WORDS,
    NOT_RESCALED,
    NUMBERED,
    ONLY,
    ONLY_LAYERS,
    PREFIX,
    RESCALED,
    REST_AS_SINK,
    SPECIAL_HIDDEN,
    TYPED,
    UNEXPLAINED_OF_GOLD,
    Step,
)
from mha_viz.request import TEXT
from mha_viz.view.quantities import QUANTITIES, WEIGHT

# Steps that leave each number as it was: they choose the text, some heads, or some rows and columns.
_OF_TEXT = {step.row.name for step in (TYPED, GIVEN_WORDS, GENERATED, NOT_RESCALED)}
_UNALTERED = _OF_TEXT | {"part", ONLY, ONLY_LAYERS, PREFIX, NUMBERED, REST_AS_SINK.row.name}
_OF_QUANTITIES = {quantity.step for quantity in QUANTITIES.values()} | {UNEXPLAINED_OF_GOLD.row.name}
_ALTERATIONS = {BY_WORDS.row.name: "by_words", RESCALED.row.name: "rescaled", "without": "ablated"}


def name_numbers(quantity: str, made: Sequence[Step]) -> str:
    """The name of one number after the steps ``made``: "weight", "weight_by_words_rescaled", "norm_by_words".

    ``_by_words``: attention to a word is the sum over its pieces, from a word the mean. ``_rescaled``: special tokens
    are hidden and the rest of a row was rescaled. ``_ablated``: heads were off; ``_patched``: heads had their outputs
    from another text. ``_changed``: a tap, or a step that is not known here.
    """
    return "_".join([quantity, *dict.fromkeys(filter(None, (_altered(quantity, step) for step in made)))])


def name_array(quantity: str, made: Sequence[Step]) -> str:
    """Name an array of them: "weights", "weights_by_words", "norm"."""
    name = name_numbers(quantity, made)
    return f"{WEIGHT}s{name.removeprefix(WEIGHT)}" if quantity == WEIGHT else name


def _altered(quantity: str, step: Step) -> str:
    name = step.row.name
    if name in _UNALTERED or name in _OF_QUANTITIES:
        return ""
    if name == SPECIAL_HIDDEN.row.name:  # rescales shares alone
        return "rescaled" if QUANTITIES[quantity].is_share else ""
    if name == "without" and step.row.method == TEXT:
        return "patched"
    return _ALTERATIONS.get(name, "changed")
