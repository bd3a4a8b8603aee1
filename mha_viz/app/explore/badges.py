"""Encode the facts about heads that Explore shows in addition to their attention.

For each head: its roles and whether this text shows them, the earlier heads that its scores come from, its recipe, and
the cells that each rule of the recipe predicts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mha_viz.analysis import rules
from mha_viz.analysis.bundled_data import (
    MAX_TOKENS,
    HeadRecipe,
    explain_by_rule,
    has_same_words,
    list_head_recipes,
    make_rule_text,
)
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.syntax import find_pointers, list_arcs
from mha_viz.analysis.unusual_heads import LINKING_ROLES, UnusualFinding, find_active, find_unusual_heads
from mha_viz.app.explore.gold import is_attended, select_word_weights
from mha_viz.app.service.caches import cache_results, get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.widgets import inference, navigation
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import report_errors, show_error, show_remark
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import UNEXPLAINED_OF_GOLD
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import ModelUnsupported
from mha_viz.figures.layout.packet import choose_full_heads
from mha_viz.figures.words.known_facts import collect_recipes, describe_roles
from mha_viz.figures.words.role_words import COLOURS
from mha_viz.numerals import counted
from mha_viz.view.quantities import QUANTITIES

_describe_roles = cache_results(8)(describe_roles)  # cached for the latest models
ACTIVE_NOTE = "Active here: it meets the criterion on this text alone."
LINK_NOTE = (
    "In this sentence one word gives another more than half of its attention. The sentence has no annotation to "
    "show whether this relation links them."
)


def encode_badges(page: PageReading, view_fields: Mapping[str, Any]) -> bytes:
    """Return the facts about heads for the explorer, as JSON.

    Keys:
        "kinds": the colour number of each kind of role.
        "on": the corpora on which the roles were measured.
        "measured": whether the roles were measured.
        "roles": the roles.
        "quiet": whether remarks on the text would reveal an answer that the page hides.
        "unusual": what a pronoun refers to and what is unusual in this text, in words.
        "recipes": the result of :func:`encode_recipes`, with the cells of the open heads.

    The keys of ``view_fields``, the result of :func:`describe_view`, are added. If the text has an annotation, a head
    with the role of a relation is active if it is right at least once.
    """
    attention, summary, hides_answer = page.attention, page.summary, page.hides_answer
    gold, full_heads = page.gold and page.gold.sentence, tuple(choose_full_heads(attention, page.heads))

    def encode_text() -> bytes:
        activity = find_active(summary.roles, attention) if summary.roles and attention.quantity == "weight" else ()
        roles = _make_role_badges(attention, dict(zip(summary.roles, activity, strict=True)), gold) if activity else []
        role_fields = {"kinds": COLOURS, "on": summary.corpora, "measured": summary.is_measured, "roles": roles}
        encoded_findings = _encode_findings(
            attention, find_unusual_heads(attention, summary.roles, activity, summary.habits, hides_answer)
        )
        recipes = encode_recipes(attention, full_heads, gold)
        return json.dumps({**role_fields, "unusual": encoded_findings, "recipes": recipes}).encode()

    cache_key = (summary.roles, summary.corpora, summary.is_measured, gold, hides_answer, full_heads)
    encoded_text = get_model_service().derive(attention, cache_key, encode_text)
    return b"%b, %b" % (
        encoded_text.removesuffix(b"}"),
        json.dumps({"quiet": hides_answer, **view_fields}).encode().removeprefix(b"{"),
    )


def describe_view(page: PageReading, open_count: int, off: str | None) -> dict[str, Any]:
    """Return the state of the explorer beyond the reading and its roles.

    Keys:
        "tour": the open step of the tour.
        "opened": how many times the search has opened a head.
        "turns": the heads that are shown in turn on a first visit, with their pins; empty if the URL has
            parameters.
        "off": the data of the mode in which heads are switched off; None outside that mode.
        "arrows": the arrows between heads; None if they were not requested or a head is off.
    """
    first_example, parameters = address.load_examples()[0], page.url.parameters
    turns = "" if parameters or page.opening.head != first_example["head"] else first_example["turns"]
    arrows = load_arrows(page) if off is None and not page.is_part else None
    return {
        "tour": parameters.get(navigation.TOUR, "")[:20],
        "opened": open_count,
        "turns": [_encode_turn(page.attention, *turn.split(" ", 1)) for turn in turns.split("; ") if turn],
        "off": json.loads(off or "null"),
        "arrows": None if arrows is None else [_encode_arrow(page.attention, *arrow) for arrow in arrows],
    }


def _encode_arrow(attention: Attention, source: Head, target: Head, side: str, share: float) -> dict[str, Any]:
    return {
        "from": attention.place(source),
        "to": attention.place(target),
        "side": side,
        "share": round(share, 4),
    }


def _encode_turn(attention: Attention, target: str, explanation: str) -> dict[str, Any]:
    head, _, query = target.partition(".q")
    pin = {"query": int(query), "key": None} if query else None
    return {"head": attention.place(Head.parse(head)), "pin": pin, "says": explanation}


def _encode_findings(attention: Attention, findings: Iterable[UnusualFinding]) -> list[dict[str, Any]]:
    """Return findings about this text for the browser, in words."""
    return [
        {
            "head": attention.place(finding.head),
            "words": finding.words,
            "pin": {"query": finding.query, "key": finding.key},
            "isUnusual": finding.surprise < math.inf,
        }
        for finding in findings
    ]


def _make_role_badges(
    attention: Attention, activity: Mapping[Finding, bool], gold: Sentence | None
) -> list[dict[str, Any]]:
    """Return the roles as a list for the browser, each head's best-known role first.

    ``activity`` tells whether the text shows a role.
    """
    roles = _describe_roles(tuple(activity), attention.heads, attention.layer_numbers)
    hits = _count_hits([*roles], attention, gold)
    entries = []
    for finding, fields in roles.items():
        is_shown, explanation = _explain_activity(finding, activity[finding], hits)
        status = {
            "words": f"{fields['words']}. {explanation}",
            "standing": fields["standing"] if is_shown else "not here",
        }
        entries.append({**fields, **status, "active": is_shown})
    return entries


def _explain_activity(finding: Finding, is_active: bool, hits: dict[Finding, tuple[int, int]]) -> tuple[bool, str]:
    """Return whether a role shows in this text, and a sentence that explains it."""
    if finding in hits:
        right, cases = hits[finding]
        if not cases:
            return False, "According to its annotation, this sentence has no such link."
        return bool(right), f"By this sentence’s annotation, the head is right in {right} of {counted(cases, 'case')}."
    return is_active, (
        LINK_NOTE if finding.role in LINKING_ROLES else ACTIVE_NOTE
    ) if is_active else "Not triggered here."


def _count_hits(
    findings: Sequence[Finding], attention: Attention, gold: Sentence | None
) -> dict[Finding, tuple[int, int]]:
    """Return, for each syntactic role, how many of its gold cases the head gets right, and how many there are."""
    syntax_findings = [f for f in findings if f.role == "syntax"]
    if gold is None or not syntax_findings:
        return {}
    block = select_word_weights(attention, [f.head for f in syntax_findings])
    if block.shape[-1] != len(gold.words):
        return {}
    weights, pointers = block.copy(), find_pointers(block)
    hits = {}
    for number, finding in enumerate(syntax_findings):
        relation, direction = finding.detail.split()
        arcs = list_arcs(gold, pointers, number, relation, direction)
        right_count = sum(arc.is_right and is_attended(weights[number], arc, direction) for arc in arcs)
        hits[finding] = right_count, len(arcs)
    return hits


# ---- Composition ----------------------------------------------------------------------------------------------

Arrow: TypeAlias = tuple[Head, Head, str, float]


def load_arrows(page: PageReading) -> tuple[Arrow, ...] | None:
    """Return the composition arrows of the text on the page, the largest first.

    None if they are not asked for, or, with a remark, if the model has none.
    """
    if page.url.parameters.get("arrows") != "on" or QUANTITIES[page.attention.quantity].of_layers:
        return None
    with report_errors(show_error):
        future = get_model_service().ask_cached(verbs.find_composition, page.plain_request)
        try:
            arrows: tuple[Arrow, ...] = inference.wait_for_result(future, f"Opening {page.model.label}…")
            return arrows
        except ModelUnsupported as error:
            show_remark(error.problem)
    return None


# ---- Recipes --------------------------------------------------------------------------------------------------


def encode_recipes(
    attention: Attention, full_heads: Sequence[Head], gold: Sentence | None = None
) -> dict[str, Any] | None:
    """Return the recipes for the explorer, with their results on this text; None if the model has no recipes.

    The following keys are added to those of :func:`mha_viz.figures.words.known_facts.collect_recipes`:
        "cells": the cells that each rule predicts, as a bit mask, row by row; only for rules of ``full_heads``.
        "here": the share of this text's attention that each recipe explains and, per head, the share of each rule.
        "annotated": whether the rules are applied to the annotation of ``gold``.

    The first two are empty for a long text.
    """
    recipe_fields = collect_recipes(attention.model, attention.revision, (attention.layers, attention.heads))
    if recipe_fields is None or len(attention.queries) > MAX_TOKENS:
        return recipe_fields
    uses_gold = attention.quantity == "weight" or UNEXPLAINED_OF_GOLD in attention.made
    gold = gold if gold and uses_gold and has_same_words(gold, attention) else None
    recipes, per_layer = list_head_recipes(attention.model, attention.revision), attention.heads
    numbers = {part.rule for head in full_heads for part in recipes[head.place(per_layer)].parts}
    text = make_rule_text(attention, gold)
    bits = {rules.NAMES[number]: np.packbits(rules.mark_visible(rules.RULES[number], text)) for number in numbers}
    marks = {name: base64.b64encode(packed_bits.tobytes()).decode() for name, packed_bits in bits.items()}
    rule_fields = [{**rule, "cells": marks.get(rule["name"], "")} for rule in recipe_fields["rules"]]
    return {
        **recipe_fields,
        "rules": rule_fields,
        "annotated": gold is not None,
        **_compute_explained_shares(attention, gold, recipe_fields["heads"], recipes),
    }


def _compute_explained_shares(
    attention: Attention, gold: Sentence | None, heads: Sequence[Mapping[str, Any]], recipes: Sequence[HeadRecipe]
) -> dict[str, Any]:
    """Return the explained shares of recipes in this text.

    "here" [head] is the mean over rows of Σ_j min(A[i, j], P[i, j]) with the weights P that the recipe predicts, and
    "heads" has the share of each part. For the unexplained quantity, "here" is the same value computed as
    1 − Σ_j |A[i, j] − P[i, j]| / 2. Other quantities have none.
    """
    if attention.quantity == "unexplained":
        explained_shares = 1 - np.abs(attention.weights).sum(axis=3).mean(axis=2) / 2
        return {"here": [round(float(share), 4) for share in explained_shares.ravel()]}
    if attention.quantity != "weight":
        return {"here": None}
    shares = explain_by_rule(attention, gold)
    parts = [
        [round(float(rule_shares[part.rule]), 4) for part in recipe.parts]
        for rule_shares, recipe in zip(shares, recipes, strict=True)
    ]
    head_fields = [{**head, "here": part} for head, part in zip(heads, parts, strict=True)]
    return {"here": [round(float(share), 4) for share in shares.sum(axis=1)], "heads": head_fields}
