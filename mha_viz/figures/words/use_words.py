"""The words for whether a head is used for its role, compared with the other heads of its layer.

Ablating a head practically always has some effect, even if the head is not used: only the comparison with its
neighbours is informative.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mha_viz.analysis.corpus_effects import MASKED_WORD, TOKEN_AFTER, WORD_STATE

USE = "used more than its neighbours"  # the heading of a column
NO_MORE = "no more than other heads of its layer"


class Changed(NamedTuple):
    """The thing that an effect changes.

    ``name`` is short ("its word"), ``of_several`` is for several heads ("their word"), and ``full`` is the complete
    phrase.
    """

    name: str
    of_several: str
    full: str


# The keys are the measures of effects, as the table ``used`` names them.
CHANGED = {
    WORD_STATE: Changed("its word", "their word", "the word’s own last state"),
    MASKED_WORD: Changed("the answer", "the answer", "the model’s answer at the masked word"),
    TOKEN_AFTER: Changed("the next token", "the next token", "the prediction of the token after the word"),
}
_OTHER = Changed("its words", "their words", "what is measured at its words")  # for measures of other versions


def changed_by(measure: str) -> Changed:
    """Return the words for what an effect with this measure changes."""
    return CHANGED.get(measure, _OTHER)


def is_used(cell: Any) -> bool:
    """Parse a cell of the column ``used``, a truth value or its text."""
    return str(cell) == "True"


def use_in_words(used: bool, measure: str) -> str:
    """Return the text of a cell on whether a head is used: "yes: changes its word most", "no more than other heads of
    its layer"."""
    return f"yes: {most_in_words(measure)}" if used else NO_MORE


def most_in_words(measure: str) -> str:
    """Say briefly that a head is used: "changes its word most"."""
    return f"changes {changed_by(measure).name} most"


def no_more_in_words(which: str, measure: str) -> str:
    """Say that a head is used for none of its roles: "For 2 relations it changes its word no more than …"."""
    return f"For {which} it changes {changed_by(measure).name} {NO_MORE}."


def use_explained(measure: str) -> str:
    """Explain when a head counts as used, in a sentence that names what changes."""
    return (
        f"Without this head {changed_by(measure).full} changes more than without any other head of its layer that "
        "lacks the role."
    )


def several_in_words(used: int, measured: str, measures: Iterable[str]) -> str:
    """Say how many heads are used, as "**2** of 11 change their word more than neighbours".

    ``measured`` is " of 11", or empty.
    """
    changed = " or ".join(dict.fromkeys(changed_by(measure).of_several for measure in measures))
    verb = "changes" if used == 1 else "change"
    return f"**{used}**{measured} {verb} {changed} more than neighbours"
