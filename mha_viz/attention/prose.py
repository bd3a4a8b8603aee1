"""The steps of readings that were saved or made by hand as text alone: the only code that reads their wording."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mha_viz.attention.steps import PARTS, Row, Step
from mha_viz.heads import Head
from mha_viz.request import COSINE, MASK, NEXT, Question

_HEADS = r"L\d{1,3}H\d{1,3}(?:,? L\d{1,3}H\d{1,3})*"
_WITHOUT = re.compile(rf"without ({_HEADS}): (\w+)(?: (\w+))?", re.ASCII)
_ONLY = re.compile(rf"only ({_HEADS})", re.ASCII)
_PART = re.compile(rf"({'|'.join(PARTS.values())})(?: after the source “(.*)”)?", re.DOTALL)
_SCORE = re.compile(
    "gradient × weight of (?:log p of “(?P<word>.*)” (?:at token (?P<place>[0-9]{1,4})|as the next token)"
    "|the cosine with “(?P<other>.*)”)",
    re.DOTALL,
)


def steps_of(made: Iterable[str]) -> tuple[Step, ...]:
    """Steps from their wording; those that are steps already stay as they are."""
    return tuple(step if isinstance(step, Step) else _step(step) for step in made)


def _step(wording: str) -> Step:
    step = Step(_row(wording))
    return step if step == wording else Step(Row(wording))


def _row(wording: str) -> Row:
    if match := _WITHOUT.fullmatch(wording):
        return Row("without", _named(match[1]), match[2], match[3] or "")
    if match := _ONLY.fullmatch(wording):
        return Row("only", _named(match[1]))
    if match := _PART.fullmatch(wording):
        return Row("part", part=next(part for part, words in PARTS.items() if words == match[1]), source=match[2])
    if match := _SCORE.fullmatch(wording):
        return Row("gradient", question=_question(match))
    by = wording.removeprefix("changed by ")
    return Row("changed", by=by) if by != wording else Row(wording)


def _named(heads: str) -> tuple[Head, ...]:
    return tuple(Head(*map(int, numbers)) for numbers in re.findall(r"L(\d+)H(\d+)", heads))


def _question(match: re.Match[str]) -> Question:
    if match["other"] is not None:
        return Question(COSINE, other=match["other"])
    return Question(NEXT if match["place"] is None else MASK, int(match["place"] or 0), match["word"])
