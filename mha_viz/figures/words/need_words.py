"""The words for whether a model needs a head to prefer the good sentences of minimal pairs."""

from __future__ import annotations

from mha_viz.analysis.needs import KindResult, PairResults
from mha_viz.analysis.pairs import MAX_Q
from mha_viz.numerals import counted, decimal, with_interval
from mha_viz.quotes import join_names
from mha_viz.request import RESAMPLE, Request

MAX_KINDS = 6  # kinds of pairs that a sentence names
LEAST_Q = 0.001  # smaller q-values are written as "< 0.001"
NEED_RULE = (
    "Needed: fewer pairs are right without the head (95% interval below 0), and the good sentence’s lead shrinks in "
    f"more pairs than it grows (q < {MAX_Q})."
)
# What replaces the output of a head, where it comes from the pairs themselves.
OVER_PAIRS = {"mean": "its mean over these sentences", RESAMPLE: "its output on others of these sentences"}
NOT_NEEDED = "Not shown to be needed for any measured kind of pair."


def describe_need(need: PairResults) -> str:
    """Say in a sentence whether sentence pairs need a head, and how many the model gets wrong without it.

    The numbers are those of the kinds that need it; of all pairs if only all together do.
    """
    if not need.is_needed:
        return NOT_NEEDED
    kinds = f" for {name_kinds(need)}" if need.kinds else ""
    counts = need.counts
    verb = "goes" if counts.lost == 1 else "go"
    return f"Needed{kinds}: without it, {counts.lost:,} of {counted(counts.right, 'sentence pair')} {verb} wrong."


def name_kinds(need: PairResults) -> str:
    """Name the kinds of pairs that need a head: "agreement and reflexive"; empty if only all together do."""
    named, others = need.kinds[:MAX_KINDS], len(need.kinds) - MAX_KINDS
    return join_names([*named, f"{others} other{'s' * (others > 1)}"] if others > 0 else named)


def explain_need(need: PairResults) -> str:
    """Say how a need was measured: on which pairs, how the head was off, and what changes with it.

    The numbers are those of each kind that needs the head; of all pairs if no kind does.
    """
    shown = [(kind, need.by_kind[kind]) for kind in need.kinds[:MAX_KINDS]]
    changes = [_describe_change(f"{kind} ({counted(row.n, 'pair')})", row) for kind, row in shown]
    everything = need.all_pairs
    changes = changes or [_describe_change(f"all {counted(everything.n, 'pair')}", everything)]
    replacement = (
        f"replaced by {OVER_PAIRS[need.method]}" if need.method in OVER_PAIRS else Request(method=need.method).manner
    )
    return (
        f"{need.pairs}; the head’s output is {replacement}. Right without it, and the change "
        f"(95% interval): {'; '.join(changes)}. {NEED_RULE}"
    )


def _describe_change(name: str, measured: KindResult) -> str:
    """Return for example "agreement (40 pairs) 0.850, −0.150 [−0.291, −0.032], q < 0.001"."""
    change = with_interval(measured.difference, *measured.interval, 3)
    q = f"< {LEAST_Q}" if measured.q < LEAST_Q else f"= {measured.q:.3f}"
    return f"{name} {decimal(measured.accuracy, 3)}, {change}, q {q}"
