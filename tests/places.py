"""Starting points of walks over the pages: every page, and possible parameters of its URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

COMPARED = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L3H1", 0, "mine"]]}'


class Place(NamedTuple):
    """A page, the parameters of its URL, and the expander that a visitor opens there."""

    page: str | None
    url: Mapping[str, str] = {}
    opened: str = ""


PLACES = {
    "explore": Place(None),
    "explore, in the tour": Place(None, {"tour": "1", "tray": COMPARED}),
    "compare": Place("pages/20_compare.py"),
    "compare, the compared heads": Place("pages/20_compare.py", {"tray": COMPARED, "show": "tray"}),
    "compare, published": Place("pages/20_compare.py", {"tray": COMPARED, "show": "tray"}, "publish"),
    "compare, a word": Place("pages/20_compare.py", {"show": "word"}),
    "compare, models": Place("pages/20_compare.py", {"show": "models", "with": "toy"}),
    "roles": Place("pages/55_roles.py"),
    "roles, a head": Place("pages/55_roles.py", {"head": "L3H1", "kinds": "syntax"}),
    "roles, toy": Place("pages/55_roles.py", {"model": "toy"}),
    "roles, own file": Place("pages/55_roles.py", {"corpus": "file"}),
    "inside": Place("pages/40_inside_a_head.py"),
    "inside, without the division": Place("pages/40_inside_a_head.py", {"step": "score", "divide": "no"}),
    "lab": Place("pages/50_why_heads_differ.py", {"numbers": "1"}),
    "lab, after a guess": Place("pages/50_why_heads_differ.py", {"guess": "apart"}),
    "lab, the count": Place("pages/50_why_heads_differ.py", {"experiment": "count", "step": "0"}),
    "switch off": Place(None, {"off": "none"}),
    "switch off, toy": Place(None, {"model": "toy", "off": "none"}),
    "switch off, two heads": Place(None, {"off": "L3H1.L5H11", "how": "uniform"}),
    "lab, the toy": Place("pages/50_why_heads_differ.py", {"experiment": "toy", "numbers": "1", "tour": "2"}),
    "small tasks, a class": Place(
        "pages/50_why_heads_differ.py", {"class": "1", "experiment": "tasks", "task": "1", "answer": "L3H1"}
    ),
    "explore, a class": Place(None, {"class": "1"}),
    "about": Place("pages/90_about.py"),
    "about, a chapter": Place("pages/90_about.py", {"chapter": "howto/cite"}),
}
NOT_PRESSED = (
    "lab_run",
    "measure",
    "measure_file",
    "go_on",
    "search_links",
)  # these start work that takes seconds; they have separate tests
