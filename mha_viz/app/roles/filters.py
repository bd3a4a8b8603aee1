"""The filters of the Roles page. The URL holds them: controls show the URL, and only callbacks write it."""

from __future__ import annotations

from typing import Any, NamedTuple

from mha_viz.app.url import address
from mha_viz.app.widgets.bound import LATE, UrlChanges, bound, go, in_link
from mha_viz.figures.words.role_words import COLOURS
from mha_viz.models.getting import catalog
from mha_viz.text import clean

LONGEST = 60  # the most characters of the typed text
LEVELS = {"base": "relations", "full": "with subtypes", "agg": "all together"}


class Filters(NamedTuple):
    """The filters. The fields have the names of the URL's parameters and of the controls.

    Attributes:
        kinds: kinds of roles, empty for all.
        relation: the typed part of a relation's name.
        level: the kind of relations.
    """

    kinds: tuple[str, ...] = ()
    relation: str = ""
    level: str = LATE["level"]


def from_url() -> Filters:
    """Return the filters in the URL. Invalid values are ignored."""
    given = address.now()
    chosen_level = given.get("level", "")
    return Filters(
        kinds=tuple(kind for kind in COLOURS if kind in given.get("kinds", "").split(".")),
        relation=clean(given.get("relation", ""))[:LONGEST],
        level=chosen_level if chosen_level in LEVELS else "base",
    )


def of_model(name: str) -> UrlChanges:
    """Return the URL parameters to change when the model changes."""
    other = None if name == catalog.default().name else name
    return {"model": other, "corpus": None, "before": None, **dict.fromkeys(address.OF_THIS_MODEL)}


def relation(place: Any) -> str:
    """Show the field for part of a relation's name at ``place``; return the text in lower case."""
    typed = bound(
        place.text_input, "Filter relations", "relation", from_url().relation, default=LATE["relation"], go=go,
        max_chars=LONGEST, placeholder="subject, or nsubj",
    )  # fmt: skip
    return str(typed).strip().lower()


def level(place: Any) -> str:
    """Show the choice of the kind of relations at ``place``; return the chosen kind."""
    in_link("level", LEVELS, ".+")
    chosen = bound(
        place.segmented_control, "Level", "level", from_url().level, list(LEVELS), default=LATE["level"], go=go,
        required=True, format_func=LEVELS.__getitem__, wrap=True,
    )  # fmt: skip
    return str(chosen or "base")
