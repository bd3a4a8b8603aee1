"""Sentences on whether a head is used for its role, compared with the other heads of its layer.

Ablating a head practically always has some effect, even if the head is not used, so that only the comparison with its
neighbours is informative.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mha_viz.analysis.corpus_effects import MASKED_WORD, NEXT_TOKEN, WORD_STATE

USE = "used more than its neighbours"  # the heading of a column
NO_MORE = "no more than other heads of its layer"


class EffectTarget(NamedTuple):
    """The target of an effect, in words.

    ``name`` is short ("its word"), ``plural`` is for several heads ("their word"), and ``phrase`` is complete.
    """

    name: str
    plural: str
    phrase: str


# The keys are the measures of effects, as the table ``used`` names them.
EFFECT_TARGETS = {
    WORD_STATE: EffectTarget("its word", "their word", "the word’s own last state"),
    MASKED_WORD: EffectTarget("the answer", "the answer", "the model’s answer at the masked word"),
    NEXT_TOKEN: EffectTarget("the next token", "the next token", "the prediction of the token after the word"),
}
# For measures of other versions.
_OTHER_TARGET = EffectTarget("its words", "their words", "the quantity measured at its words")


def find_effect_target(measure: str) -> EffectTarget:
    """Return the target of an effect with this measure."""
    return EFFECT_TARGETS.get(measure, _OTHER_TARGET)


def is_used(cell: Any) -> bool | None:
    """Parse a cell of the column ``used``, a truth value or its text; None if it is empty: use was not tested."""
    return {"True": True, "False": False}.get(str(cell))


def describe_use(used: bool | None, measure: str) -> str:
    """Return the text of a cell on whether a head is used.

    Examples: "yes: changes its word most", "no more than other heads of its layer", "not tested".
    """
    return "not tested" if used is None else f"yes: {describe_most(measure)}" if used else NO_MORE


def describe_most(measure: str) -> str:
    """State briefly that a head is used: "changes its word most"."""
    return f"changes {find_effect_target(measure).name} most"


def describe_unused(subject: str, measure: str) -> str:
    """State that a head is used for none of its roles: "For 2 relations it changes its word no more than …"."""
    return f"For {subject} it changes {find_effect_target(measure).name} {NO_MORE}."


def explain_use(measure: str) -> str:
    """Explain in a sentence when a head counts as used."""
    return (
        f"Without this head, {find_effect_target(measure).phrase} changes more than without any other head of its "
        "layer that "
        "lacks the role."
    )


def count_in_words(used_count: int, total: str, measures: Iterable[str]) -> str:
    """Return the number of used heads in words: "**2** of 11 change their word more than neighbours".

    ``total`` is " of 11", or empty.
    """
    targets = " or ".join(dict.fromkeys(find_effect_target(measure).plural for measure in measures))
    verb = "changes" if used_count == 1 else "change"
    return f"**{used_count}**{total} {verb} {targets} more than neighbours"
