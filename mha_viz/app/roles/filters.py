"""The filters of the Roles page. The URL holds them: controls show its values, and only callbacks write it."""

from __future__ import annotations

from typing import Any, NamedTuple

from mha_viz.app.url import address
from mha_viz.app.widgets.url_controls import LATE_CONTROLS, UrlChanges, bind_control, go, read_option
from mha_viz.figures.words.role_words import COLOURS
from mha_viz.models.getting import catalog
from mha_viz.text import clean

MAX_CHARACTERS = 60  # maximum length of the typed text
LEVELS = {"base": "relations", "full": "with subtypes", "agg": "all together"}


class Filters(NamedTuple):
    """The filters. The fields have the names of the URL's parameters and of the controls.

    Attributes:
        kinds: kinds of roles, empty for all.
        relation: the typed part of a relation's name.
        level: how relations are grouped, a key of LEVELS.
    """

    kinds: tuple[str, ...] = ()
    relation: str = ""
    level: str = LATE_CONTROLS["level"]


def read_filters() -> Filters:
    """Return the filters in the URL. Invalid values are ignored."""
    parameters = address.get_parameters()
    chosen_level = parameters.get("level", "")
    return Filters(
        kinds=tuple(kind for kind in COLOURS if kind in parameters.get("kinds", "").split(".")),
        relation=clean(parameters.get("relation", ""))[:MAX_CHARACTERS],
        level=chosen_level if chosen_level in LEVELS else "base",
    )


def make_model_parameters(name: str) -> UrlChanges:
    """Return the URL parameters to change when the model ``name`` is chosen."""
    parameter = None if name == catalog.choose_default().name else name
    return {"model": parameter, "corpus": None, "before": None, **dict.fromkeys(address.MODEL_PARAMETERS)}


def show_relation_filter(container: Any) -> str:
    """Show the field for part of a relation's name in ``container``; return the text in lower case."""
    text = bind_control(
        container.text_input,
        "Filter relations",
        "relation",
        read_filters().relation,
        default=LATE_CONTROLS["relation"],
        go=go,
        max_chars=MAX_CHARACTERS,
        placeholder="subject, or nsubj",
    )
    return str(text).strip().lower()


def show_level_control(container: Any) -> str:
    """Show the control for the level of relations in ``container``; return the chosen level."""
    read_option("level", LEVELS, ".+")
    level = bind_control(
        container.segmented_control,
        "Level",
        "level",
        read_filters().level,
        list(LEVELS),
        default=LATE_CONTROLS["level"],
        go=go,
        required=True,
        format_func=LEVELS.__getitem__,
        wrap=True,
    )
    return str(level or "base")
