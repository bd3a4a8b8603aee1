"""The words for whether a model needs a head to prefer the good sentences of minimal pairs."""

from __future__ import annotations

from mha_viz.analysis.needed import PairsWithout
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.quotes import join_names
from mha_viz.request import Request

MAX_KINDS = 6  # kinds of pairs that a sentence names
LEAST_Q = 0.001  # smaller q-values are written as "< 0.001"
NEED_RULE = "Needed: without the head fewer pairs are right, and in most of them the good sentence’s lead shrinks."
NOT_NEEDED = "No kind of sentence pair needs this head on its own."


def describe_need(need: PairsWithout) -> str:
    """Say in a sentence whether sentence pairs need a head, and how many the model gets wrong without it."""
    if not need.is_needed:
        return NOT_NEEDED
    kinds = f" for {name_kinds(need)}" if need.kinds else ""
    verb = "goes" if need.lost == 1 else "go"
    return f"Needed{kinds}: without it, {need.lost:,} of {counted(need.right, 'sentence pair')} {verb} wrong."


def name_kinds(need: PairsWithout) -> str:
    """Name the kinds of pairs that need a head: "agreement and reflexive"; empty if only all together do."""
    named, others = need.kinds[:MAX_KINDS], len(need.kinds) - MAX_KINDS
    return join_names([*named, f"{others} other{'s' * (others > 1)}"] if others > 0 else named)


def explain_need(need: PairsWithout) -> str:
    """Say how a need was measured: on which pairs, how the head was off, and what changes with it."""
    change = with_interval(need.difference, *need.interval, 3)
    q = f"< {LEAST_Q}" if need.q < LEAST_Q else f"= {need.q:.3f}"
    return (
        f"{need.pairs}, {need.n:,} pairs; the head’s output is {Request(method=need.method).manner}. "
        f"Right without it: {decimal(need.accuracy, 3)}, a change of {change} (95% interval); q {q}. "
        f"{NEED_RULE}"
    )
