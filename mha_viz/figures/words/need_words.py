"""Sentences on whether a model needs a head to prefer the good sentences of minimal pairs."""

from __future__ import annotations

from mha_viz.analysis.needs import KindResult, PairResults
from mha_viz.analysis.pairs import MAX_Q
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.quotes import join_names
from mha_viz.request import RESAMPLE, Request

MAX_KINDS = 6  # kinds of pairs that a sentence names
MIN_Q = 0.001  # smaller q-values are written as "< 0.001"
NEED_RULE = (
    "Needed: fewer pairs are right without the head (95% interval below 0), and the good sentence’s lead shrinks in "
    f"more pairs than it grows (q < {MAX_Q})."
)
# The replacements of a head's output that are computed from the pairs themselves.
OVER_PAIRS = {"mean": "its mean over these sentences", RESAMPLE: "its output on others of these sentences"}
NOT_NEEDED = "Not shown to be needed for any measured kind of pair."


def describe_need(need: PairResults) -> str:
    """Describe whether sentence pairs need a head, and how many pairs the model gets wrong without it.

    The numbers are of the kinds of pairs that need the head, or of all pairs if no single kind does.
    """
    if not need.is_needed:
        return NOT_NEEDED
    kinds = f" for {name_kinds(need)}" if need.kinds else ""
    counts = need.counts
    verb = "goes" if counts.lost == 1 else "go"
    return f"Needed{kinds}: without it, {counts.lost:,} of {counted(counts.right, 'sentence pair')} {verb} wrong."


def name_kinds(need: PairResults) -> str:
    """Name the kinds of pairs that need a head: "agreement and reflexive"; empty if no single kind does."""
    names, others = need.kinds[:MAX_KINDS], len(need.kinds) - MAX_KINDS
    return join_names([*names, f"{others} other{'s' * (others > 1)}"] if others > 0 else names)


def explain_need(need: PairResults) -> str:
    """Describe how need was measured: pairs, replacement of the head's output, and changes without the head.

    The numbers are of each kind of pairs that needs the head, or of all pairs if no single kind does.
    """
    named_kinds = [(kind, need.by_kind[kind]) for kind in need.kinds[:MAX_KINDS]]
    changes = [_describe_change(f"{kind} ({counted(row.n, 'pair')})", row) for kind, row in named_kinds]
    all_pairs = need.all_pairs
    changes = changes or [_describe_change(f"all {counted(all_pairs.n, 'pair')}", all_pairs)]
    replacement = (
        f"replaced by {OVER_PAIRS[need.method]}" if need.method in OVER_PAIRS else Request(method=need.method).manner
    )
    return (
        f"{need.pairs}; the head’s output is {replacement}. Right without it, and the change "
        f"(95% interval): {'; '.join(changes)}. {NEED_RULE}"
    )


def _describe_change(name: str, result: KindResult) -> str:
    """Return for example "agreement (40 pairs) 0.850, −0.150 [−0.291, −0.032], q < 0.001"."""
    change = with_interval(result.difference, *result.interval, 3)
    q = f"< {MIN_Q}" if result.q < MIN_Q else f"= {result.q:.3f}"
    return f"{name} {decimal(result.accuracy, 3)}, {change}, q {q}"
