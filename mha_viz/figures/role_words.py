"""The words for what a head does, and the colour of each kind of role."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mha_viz.analysis.profile import Finding
from mha_viz.attention import Head
from mha_viz.numerals import percent

COLOURS = {"syntax": 0, "coreference": 3, "position": 2, "delimiter": 4, "broad": 5}  # among a theme's heads
SHORT = {
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": ". ,",
    "previous": "prev",
    "entropy": "broad",
    "third_person": "coref",
}
DIRECTIONS = {
    "dep_to_head": "from the dependent to its head",
    "head_to_dep": "the head attends most to it",
    "head_row": "from the head to a dependent",
}


def short(finding: Finding) -> str:
    """A word that fits into a cell of the map."""
    return SHORT.get(finding.detail, finding.detail.split()[0])


def told(finding: Finding) -> str:
    """A role in a sentence, with its numbers."""
    score, baseline = percent(finding.score), percent(finding.baseline)
    if finding.role == "syntax":
        relation, direction = finding.detail.split()
        return (
            f"coincides with {relation} ({DIRECTIONS[direction]}): right in {score} of {finding.n:,} held-out cases "
            f"({_interval(finding)}); best fixed offset {baseline}"
        )
    if finding.role == "coreference":
        return (
            f"coincides with coreference: from a third-person pronoun to an antecedent in {score} of {finding.n:,} "
            f"held-out cases ({_interval(finding)}); better baseline {baseline}"
        )
    if finding.role == "position":
        where = {"previous": "the token before", "same": "the token itself", "next": "the token after"}[finding.detail]
        if math.isnan(finding.low):
            return f"position: {score} of its attention goes to {where} ({baseline} if it looked everywhere equally)"
        return f"position: its largest weight is on {where} in {score} of {finding.n:,} rows ({_interval(finding)})"
    if finding.role == "delimiter":
        return (
            f"delimiter: {score} of its attention goes to {SHORT[finding.detail]} "
            f"({baseline} if it looked everywhere equally)"
        )
    return f"broad: its entropy is {score} of the largest possible; the mean over the model’s heads is {baseline}"


def _interval(finding: Finding) -> str:
    return f"95% interval {percent(finding.low)} to {percent(finding.high)}"


def by_head(findings: Sequence[Finding]) -> dict[Head, list[Finding]]:
    """The roles of each head that has any, largest gain first."""
    grouped: dict[Head, list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: -f.gain):
        grouped.setdefault(finding.head, []).append(finding)
    return grouped
