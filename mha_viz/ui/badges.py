"""The roles of heads on the Explore page: what each is known for, and whether that shows in this text."""

from __future__ import annotations

from typing import Any

from mha_viz.analysis.active import RULES, active
from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError
from mha_viz.figures.role_words import COLOURS, short, told
from mha_viz.models import catalog
from mha_viz.ui.studies import studies


def badges(attention: Attention) -> dict[str, Any]:
    """For the explorer: ``kinds``, each role's place among the colours of heads; ``found``, the roles one by one."""
    try:
        findings = studies().roles(catalog.resolve(attention.model))
    except MhaVizError:  # a model that is not offered any more
        findings = ()
    findings = tuple(sorted(findings, key=lambda f: -f.gain))
    found = [
        {
            "head": f.head.layer * attention.heads + f.head.head,
            "role": f.role,
            "short": short(f),
            "words": f"{told(f)}. {RULES[f.role]}",
            "active": shows,
        }
        for f, shows in zip(findings, active(findings, attention), strict=True)
    ]
    return {"kinds": COLOURS, "found": found}
