"""“Did you mean …?” for the name of a head."""

from __future__ import annotations

import re

from mha_viz.attention import Head


def meant_head(name: str) -> str:
    """A suggestion for a head name in another notation: papers count from 1, as in 4-2; others write 3.1 or layer 3
    head 1."""
    paper = re.fullmatch(r"\s*([1-9]\d{0,2})-([1-9]\d{0,2})\s*", name, re.ASCII)
    if paper:
        return f"Did you mean {Head(int(paper[1]) - 1, int(paper[2]) - 1)}, which papers write as {paper[0].strip()}?"
    numbers = re.findall(r"\d+", name, re.ASCII)
    if len(numbers) == 2 and all(len(number) <= 3 for number in numbers):
        return f"Did you mean {Head(int(numbers[0]), int(numbers[1]))}?"
    return ""
