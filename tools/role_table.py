"""Write the table of the roles of ``minilm`` beside the rule by parts of speech into ``docs/measures.md``, from the
profiles that come with the app: ``python -m tools.role_table``."""

from __future__ import annotations

from pathlib import Path

from mha_viz.analysis.findings import Beside, Finding
from mha_viz.analysis.given import given_folders
from mha_viz.analysis.profile import read_profile
from mha_viz.analysis.roles import CASES
from mha_viz.figures.caption import both
from mha_viz.figures.glosses import rule_in_words
from mha_viz.figures.role_words import linked_words
from mha_viz.numerals import percent

MEASURES = Path(__file__).resolve().parent.parent / "docs" / "measures.md"
HEADING = (
    "| role | head | EWT: head | rule, the nearest … | rule | GUM: head | rule, the nearest … | rule | state "
    "| choice beyond the nearest, in points: EWT; GUM |"
)
RULER = f"|{' --- |' * 10}"


def shipped_roles() -> list[Finding]:
    """The roles of syntax of ``minilm`` that EWT and GUM establish, with the numbers on EWT and, elsewhere, on GUM."""
    return [one for one in read_profile(given_folders("minilm")[0]).findings() if one.role == "syntax"]


def role_table() -> str:
    """The table as Markdown, a line for each role."""
    return "\n".join((HEADING, RULER, *map(_line, shipped_roles())))


def _line(role: Finding) -> str:
    there = role.elsewhere
    assert there is not None, "two corpora establish it"
    here = (percent(role.score), _nearest(role.upos_rule), percent(role.upos))
    other = (percent(there.score), _nearest(there.upos_rule), percent(there.upos))
    choices = f"{_choice(role.beside)}; {_choice(there.beside)}"
    return f"| {' | '.join((linked_words(role), both(role.head), *here, *other, role.state, choices))} |"


def _nearest(rule: str) -> str:
    """ "noun or name to the right"."""
    return rule_in_words(rule).removeprefix("nearest ")


def _choice(beside: Beside) -> str:
    """ "+2.5 [+0.8, +4.3]"; of few cases nothing."""
    values = (beside.choice - beside.nearest, beside.choice_low, beside.choice_high)
    more, low, high = (f"{100 * value:+.1f}".replace("-", "−") for value in values)
    return f"{more} [{low}, {high}]" if beside.choice_n >= CASES else "–"


def with_table(text: str) -> str:
    """The chapter with the table of now in the place of the one that begins with HEADING."""
    before, after = text.split(f"{HEADING}\n")
    rest = after.split("\n\n", 1)[1]
    return f"{before}{role_table()}\n\n{rest}"


if __name__ == "__main__":
    MEASURES.write_text(with_table(MEASURES.read_text("utf-8")), "utf-8")
