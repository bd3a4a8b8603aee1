"""Facts about the heads of a model that do not depend on a text, roles and recipes, for the explorer.

``app/explore/badges.py`` adds the facts that do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mha_viz.analysis.bundled_data import (
    KIND_NAMES,
    HeadRecipe,
    find_recipes,
    list_bundled_corpora,
    list_head_recipes,
    load_bundled_roles,
)
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.rules import RULES
from mha_viz.figures.words.glosses import simplify_rule
from mha_viz.figures.words.role_words import (
    CHIP_LABELS,
    COLOURS,
    KIND_COLOURS,
    choose_glyph,
    describe_role,
    get_plain_name,
    sort_by_interest,
)


def collect_head_facts(model: str, revision: str, shape: tuple[int, int]) -> dict[str, Any]:
    """Return the bundled facts about the heads of a model, as ``HeadRoles`` of ``browser/explorer/roles.js``.

    The fields about a text are empty, and so are roles and recipes if the model has none. ``shape``: layers, heads per
    layer.
    """
    corpora = list_bundled_corpora(model)
    badges = [{**words, "words": f"{words['words']}.", "active": True}
              for words in describe_roles(load_bundled_roles(model), shape[1]).values()]  # fmt: skip
    roles = {"kinds": COLOURS, "on": corpora, "measured": bool(corpora), "roles": badges}
    return {**roles, **EMPTY_TEXT_FACTS, "recipes": collect_recipes(model, revision, shape)}


EMPTY_TEXT_FACTS: Mapping[str, Any] = {
    "unusual": [],
    "turns": [],
    "tour": "",
    "opened": 0,
    "quiet": False,
    "off": None,
}


def describe_roles(
    findings: Iterable[Finding], heads: int, layers: Sequence[int] = ()
) -> Mapping[Finding, Mapping[str, Any]]:
    """Describe each role independently of a text, in the order of :func:`sort_by_interest`.

    ``heads``: heads per layer; ``layers``: their numbers, if they are not all layers of the model.
    """
    return {
        finding: {
            "head": finding.head.place(heads, layers),
            "role": finding.role,
            "glyph": choose_glyph(finding),
            "name": get_plain_name(finding),
            "words": describe_role(finding),
            "standing": CHIP_LABELS.get(finding.state, finding.status),
        }
        for finding in sort_by_interest(findings)
        if not layers or finding.head.layer in layers
    }


def collect_recipes(model: str, revision: str, shape: tuple[int, int]) -> dict[str, Any] | None:
    """Return the recipes of the heads of a model; None if it has none.

    The fields are ``on``, the corpora; ``colours`` of kinds of rules; ``rules``; and ``heads``: the parts of each head,
    largest first, as the number of a rule and a share, and the ``interval`` of the share that they explain. ``cells``
    of each rule, ``here`` and ``annotated`` depend on a text and are empty. The result is shared and must not be
    modified.
    """
    recipes = find_recipes(model, revision)
    if recipes is None or shape != (recipes.facts["layers"], recipes.facts["heads"]):
        return None
    return _build_recipes(recipes, list_head_recipes(model, revision))


@lru_cache(maxsize=8)
def _build_recipes(recipes: Recipes, heads: tuple[HeadRecipe, ...]) -> dict[str, Any]:
    numbers = list(dict.fromkeys(part.rule for head in heads for part in head.parts))
    return {
        "on": recipes.where,
        "colours": KIND_COLOURS,
        "rules": [_rule_data(number) for number in numbers],
        "heads": [_head_data(head, numbers) for head in heads],
        "here": None,
        "annotated": False,
    }


def _rule_data(number: int) -> dict[str, Any]:
    rule = RULES[number]
    words = {"name": rule.name, "says": simplify_rule(rule.name)}
    return {**words, "kind": KIND_NAMES[rule.kind], "needs": rule.needs, "cells": ""}


def _head_data(head: HeadRecipe, numbers: list[int]) -> dict[str, Any]:
    parts = [[numbers.index(part.rule), round(part.share, 4)] for part in head.parts]
    interval = None if math.isnan(head.low) else [round(head.low, 4), round(head.high, 4)]
    return {"parts": parts, "explained": round(head.explained, 4), "interval": interval, "isEven": head.is_even}
