"""“Did you mean …?” for commands, options, values, models, heads and formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from mha_viz.attention import Head

LIKENESS = 0.6  # of two names that may be meant as one, by difflib's ratio from 0 to 1


def did_you_mean(name: str, names: Iterable[str], likeness: float = LIKENESS) -> str:
    """A question with the nearest of the names, upper and lower case alike; empty where none is near."""
    spelled = {one.lower(): one for one in names}
    match = get_close_matches(name[:100].lower(), spelled, 1, likeness)
    return f"Did you mean {spelled[match[0]]}?" if match else ""


def meant_head(name: str) -> str:
    """The same for the name of a head: papers count from 1, as in 4-2; others write 3.1 or layer 3 head 1."""
    paper = re.fullmatch(r"\s*([1-9]\d{0,2})-([1-9]\d{0,2})\s*", name, re.ASCII)
    if paper:
        return f"Did you mean {Head(int(paper[1]) - 1, int(paper[2]) - 1)}, which papers write as {paper[0].strip()}?"
    numbers = re.findall(r"\d+", name, re.ASCII)
    if len(numbers) == 2 and all(len(number) <= 3 for number in numbers):
        return f"Did you mean {Head(int(numbers[0]), int(numbers[1]))}?"
    return ""
