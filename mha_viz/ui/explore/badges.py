"""What the Explore page says of heads besides their attention: what each is known for, and whether that shows in this
text; which earlier heads its scores come from; its recipe, and which cells each rule predicts."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from mha_viz.analysis import rules
from mha_viz.analysis.described import LONGEST, HeadRecipe, is_of, of_heads, taken, text_of
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.habits import Habits
from mha_viz.analysis.syntax import arcs, pointers
from mha_viz.analysis.unusual import LINKING, Unusual, active, unusual
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import UNEXPLAINED_OF_GOLD
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import MhaVizError, ModelUnsupported
from mha_viz.figures.known import recipes_of, roles_in_words
from mha_viz.figures.packet import full_heads
from mha_viz.figures.role_words import COLOURS
from mha_viz.models import catalog
from mha_viz.numerals import counted
from mha_viz.reader import verbs
from mha_viz.request import Request
from mha_viz.ui import address, inference, studies
from mha_viz.ui.address import Url
from mha_viz.ui.caches import lasting, model_service
from mha_viz.ui.explore.gold import block_of_words
from mha_viz.ui.parts import complain, guarded, remark
from mha_viz.ui.request import is_part

_in_words = lasting(8)(roles_in_words)  # of the models read last
HERE = "Active here: it meets the criterion on this text alone."
LINK = (
    "In this sentence one word gives another more than half of its attention. Whether that is this relation is "
    "not known: the sentence has no annotation."
)


def badges(
    attention: Attention,
    wanted: tuple[Head, ...],
    gold: Sentence | None,
    tour: str,
    opened: int,
    quiet: bool,
    turns: str,
    off: str,
    arrows: Sequence[Arrow] | None = None,
) -> bytes:
    """For the explorer, as JSON: ``kinds``, the place of each kind of role among the colours of heads; ``on``, the
    corpora that the ``roles`` were ``measured`` on, if they were; ``tour``, the step of the tour that is open;
    ``opened``, how often the search has opened a head; ``quiet``, whether words of the text would give away an
    answer that the page hides; ``unusual``, what a pronoun refers to and what is unusual in this text, in words;
    ``turns``, the heads that a first visit shows in turn, with what they hold; ``off``, what the drawing shows of
    heads that are switched off, as JSON; ``recipes``, as :func:`shown_recipes`, with the cells of the ``wanted``
    heads; ``arrows``, those between heads, if they were asked for.

    ``gold`` is the annotation of the text, if it has any: a head of a relation is then active if it is right at least
    once.
    """
    findings, on, measured, habits = _of_model(attention)
    full = tuple(full_heads(attention, wanted))

    def of_text() -> bytes:
        shows = active(findings, attention) if findings and attention.quantity == "weight" else ()
        roles = _role_badges(attention, dict(zip(findings, shows, strict=True)), gold) if shows else []
        over_corpora = {"kinds": COLOURS, "on": on, "measured": measured, "roles": roles}
        says = _findings_in_words(attention, unusual(attention, findings, shows, habits, quiet))
        recipes = shown_recipes(attention, full, gold)
        return json.dumps({**over_corpora, "unusual": says, "recipes": recipes}).encode()

    of_view = {
        "tour": tour,
        "opened": opened,
        "quiet": quiet,
        "turns": [_turn(attention, *turn.split(".")) for turn in turns.split()],
        "off": json.loads(off),
        "arrows": None if arrows is None else [_arrow(attention, *arrow) for arrow in arrows],
    }
    same = model_service().of_reading(attention, (findings, on, measured, gold, quiet, full), of_text)
    return b"%b, %b" % (same.removesuffix(b"}"), json.dumps(of_view).encode().removeprefix(b"{"))


def _of_model(attention: Attention) -> tuple[tuple[Finding, ...], tuple[str, ...], bool, Habits]:
    """Of the heads of the model: their roles, the corpora of these, whether they were measured, and their habits."""
    with suppress(MhaVizError):  # of a model that is no longer offered
        model = catalog.resolve(attention.model)
        if not is_part(attention):
            return studies.roles(model), studies.measured_on(model), studies.is_measured(model), studies.habits(model)
        return (), (), True, {}  # nothing more to measure: no study reads an encoder–decoder
    return (), (), False, {}


def _arrow(attention: Attention, of: Head, to: Head, side: str, share: float) -> dict[str, Any]:
    return {
        "from": attention.place(of),
        "to": attention.place(to),
        "side": side,
        "share": round(share, 4),
    }


def _turn(attention: Attention, head: str, pin: str) -> dict[str, Any]:
    return {"head": attention.place(Head.parse(head)), "pin": {"query": int(pin[1:]), "key": None}}


def _findings_in_words(attention: Attention, every: Iterable[Unusual]) -> list[dict[str, Any]]:
    """Findings for the browser."""
    return [
        {
            "head": attention.place(one.head),
            "words": one.words,
            "pin": {"query": one.query, "key": one.key},
            "isUnusual": one.surprise < math.inf,
        }
        for one in every
    ]


def _role_badges(attention: Attention, shows: Mapping[Finding, bool], gold: Sentence | None) -> list[dict[str, Any]]:
    """The roles as a list, from whether each shows here; those of one head begin with the one that people look for
    most."""
    roles = _in_words(tuple(shows), attention.heads, attention.layer_numbers)
    hits = _hits([*roles], attention, gold)
    badges = []
    for finding, words in roles.items():
        is_here, why = _here_with_reason(finding, shows[finding], hits)
        here = {"words": f"{words['words']}. {why}", "standing": words["standing"] if is_here else "not here"}
        badges.append({**words, **here, "active": is_here})
    return badges


def _here_with_reason(finding: Finding, shows: bool, hits: dict[Finding, tuple[int, int]]) -> tuple[bool, str]:
    """Whether a role shows in this text, and what that means."""
    if finding in hits:
        right, cases = hits[finding]
        if not cases:
            return False, "According to its annotation, this sentence has no such link."
        return bool(
            right
        ), f"According to this sentence’s annotation, it is right in {right} of {counted(cases, 'case')}."
    return shows, (LINK if finding.role in LINKING else HERE) if shows else "Not triggered here."


def _hits(findings: Sequence[Finding], attention: Attention, gold: Sentence | None) -> dict[Finding, tuple[int, int]]:
    """For each syntactic role, how many of its gold cases the head gets right, and how many there are."""
    syntactic = [f for f in findings if f.role == "syntax"]
    if gold is None or not syntactic:
        return {}
    block = block_of_words(attention, [f.head for f in syntactic])
    if block.shape[-1] != len(gold.words):
        return {}
    pointed = pointers(block)
    cases = [arcs(gold, pointed, at, *f.detail.split()) for at, f in enumerate(syntactic)]
    return {f: (sum(arc.right for arc in links), len(links)) for f, links in zip(syntactic, cases, strict=True)}


# ---- Composition ----------------------------------------------------------------------------------------------

Arrow: TypeAlias = tuple[Head, Head, str, float]


def arrows(what: Url, attention: Attention) -> tuple[Arrow, ...] | None:
    """The arrows of the text on the page, the largest first; None unless they are asked for, or with the reason why
    this model has none."""
    if address.now().get("arrows") != "on" or QUANTITIES[attention.quantity].of_layers:
        return None
    model = catalog.resolve(attention.model)
    with guarded(complain):
        pair, prefix = what.where.request.pair, what.where.request.prefix
        future = model_service().cached(verbs.composition, Request(model.name, what.text, pair, prefix=prefix))
        try:
            composed: tuple[Arrow, ...] = inference.wait(future, f"{model.label} is being opened…")
            return composed
        except ModelUnsupported as error:
            remark(error.problem)
    return None


# ---- Recipes --------------------------------------------------------------------------------------------------


def shown_recipes(attention: Attention, full: Sequence[Head], gold: Sentence | None = None) -> dict[str, Any] | None:
    """For the explorer: :func:`mha_viz.figures.known.recipes_of` with ``cells``, which ones each rule predicts, row by
    row, one bit each, of the heads that are sent in ``full``; and ``here``, how much each recipe explains of this text,
    and of each head how much its rules do. Both are empty for a long text. ``annotated``: whether the rules are applied
    to the annotation of ``gold``. None if the model has no recipes."""
    sent = recipes_of(attention.model, attention.revision, (attention.layers, attention.heads))
    if sent is None or len(attention.queries) > LONGEST:
        return sent
    is_drawn = attention.quantity == "weight" or UNEXPLAINED_OF_GOLD in attention.made
    gold = gold if gold and is_drawn and is_of(gold, attention) else None
    recipes, per_layer = of_heads(attention.model, attention.revision), attention.heads
    numbers = {part.rule for head in full for part in recipes[head.place(per_layer)].parts}
    text = text_of(attention, gold)
    bits = {rules.NAMES[number]: np.packbits(rules.marked(rules.RULES[number], text)) for number in numbers}
    marks = {name: base64.b64encode(packed.tobytes()).decode() for name, packed in bits.items()}
    marked = [{**rule, "cells": marks.get(rule["name"], "")} for rule in sent["rules"]]
    return {**sent, "rules": marked, "annotated": gold is not None, **_here(attention, gold, sent["heads"], recipes)}


def _here(
    attention: Attention, gold: Sentence | None, heads: Sequence[Mapping[str, Any]], recipes: Sequence[HeadRecipe]
) -> dict[str, Any]:
    """``here`` [head], the mean over rows of Σ_j min(A[i, j], P[i, j]), and ``heads`` with what each part takes of it;
    of the unexplained quantity 1 − Σ_j |A[i, j] − P[i, j]| / 2, the same; nothing of other quantities."""
    if attention.quantity == "unexplained":
        explained = 1 - np.abs(attention.weights).sum(axis=3).mean(axis=2) / 2
        return {"here": [round(float(share), 4) for share in explained.ravel()]}
    if attention.quantity != "weight":
        return {"here": None}
    shares = taken(attention, gold)
    parts = [[round(float(of[part.rule]), 4) for part in one.parts] for of, one in zip(shares, recipes, strict=True)]
    with_parts = [{**head, "here": part} for head, part in zip(heads, parts, strict=True)]
    return {"here": [round(float(share), 4) for share in shares.sum(axis=1)], "heads": with_parts}
