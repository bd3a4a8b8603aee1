"""Name the numbers of a reading in files.

Only unaltered numbers that the model computed are called ``weight``. After a step that alters them, the name says how.
"""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.attention.steps import (
    BY_WORDS,
    GENERATED,
    GIVEN_WORDS,
    GUESSED_AXES,
    NOT_RESCALED,
    NUMBERED_LAYERS,
    ONLY,
    ONLY_LAYERS,
    PREFIX,
    RESCALED,
    REST_AS_SINK,
    SPECIAL_HIDDEN,
    TYPED,
    UNEXPLAINED_OF_GOLD,
    WEIGHTS_ONLY,
    WRITTEN,
    Step,
)
from mha_viz.request import TEXT
from mha_viz.view.quantities import QUANTITIES, WEIGHT

# Steps that do not alter numbers: they choose the text, heads, rows or columns, or say how the numbers were read.
_TEXT_STEPS = (TYPED, GIVEN_WORDS, GENERATED, NOT_RESCALED, WEIGHTS_ONLY, *GUESSED_AXES.values(), REST_AS_SINK)
_NEUTRAL_STEPS = {"part", ONLY, ONLY_LAYERS, PREFIX, WRITTEN, NUMBERED_LAYERS, *(step.row.name for step in _TEXT_STEPS)}
_QUANTITY_STEPS = {quantity.step for quantity in QUANTITIES.values()} | {UNEXPLAINED_OF_GOLD.row.name}
_ALTERATIONS = {BY_WORDS.row.name: "by_words", RESCALED.row.name: "rescaled", "without": "ablated"}
_CHANGED = "changed"


def name_numbers(quantity: str, made: Sequence[Step]) -> str:
    """Return the name of a number after the steps ``made``: "weight", "weight_by_words_rescaled", "norm_by_words".

    ``_by_words``: attention to a word is the sum over its subwords, from a word the mean. ``_rescaled``: special tokens
    are hidden and the rest of each row was rescaled. ``_ablated``: heads were switched off. ``_patched``: heads had
    their outputs from another text. ``_changed``: by a tap, or by a step that is not known here.
    """
    return "_".join([quantity, *dict.fromkeys(filter(None, (_name_alteration(quantity, step) for step in made)))])


def is_changed(made: Sequence[Step]) -> bool:
    """Return True if a tap, or a step that is not known here, altered the numbers."""
    return any(_name_alteration(WEIGHT, step) == _CHANGED for step in made)


def name_array(quantity: str, made: Sequence[Step]) -> str:
    """Return the name of an array of the numbers after these steps: "weights", "weights_by_words", "norm"."""
    name = name_numbers(quantity, made)
    return f"{WEIGHT}s{name.removeprefix(WEIGHT)}" if quantity == WEIGHT else name


def _name_alteration(quantity: str, step: Step) -> str:
    """Return the part of the name that a step adds; "" if it alters no number."""
    name = step.row.name
    if name in _NEUTRAL_STEPS or name in _QUANTITY_STEPS:
        return ""
    if name == SPECIAL_HIDDEN.row.name:  # rescales only shares
        return "rescaled" if QUANTITIES[quantity].is_share else ""
    if name == "without" and step.row.method == TEXT:
        return "patched"
    return _ALTERATIONS.get(name, _CHANGED)
