"""Whether the roles of heads, measured over a corpus, show in one text.

A head of position, delimiters or breadth is active here when this text alone would earn it the name. A head of a
relation is active when some word gives another more than half of its attention: where its relation is missing, such a
head rests on a delimiter (Clark et al. 2019, section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mha_viz.analysis import metrics
from mha_viz.analysis.profile import Finding
from mha_viz.analysis.roles import BROAD, DELIMITER, MASS
from mha_viz.attention import Attention, Weights
from mha_viz.text import is_punctuation

LINK = 0.5  # of a word's attention, to one other word
RULES = {  # in words
    "syntax": f"Active: some word gives another more than {LINK:.0%} of its attention.",
    "coreference": f"Active: some word gives another more than {LINK:.0%} of its attention.",
    "position": "Active: this text alone would earn it the name.",
    "delimiter": "Active: this text alone would earn it the name.",
    "broad": "Active: this text alone would earn it the name.",
}

_METRICS = {
    "previous": metrics.previous,
    "same": metrics.same,
    "next": metrics.following,
    "cls": metrics.cls,
    "sep": metrics.sep,
    "punctuation": metrics.punctuation,
    "entropy": metrics.entropy,
}


def active(findings: Sequence[Finding], attention: Attention) -> tuple[bool, ...]:
    """For each role, whether it shows in this text."""
    found = [f for f in findings if f.head.layer < attention.layers and f.head.head < attention.heads]
    seen: dict[Finding, bool] = {}
    for detail in {f.detail for f in found if f.detail in _METRICS}:
        of_kind = [f for f in found if f.detail == detail]
        values = _METRICS[detail](_only(attention, of_kind))[0]
        limit = {"position": MASS, "delimiter": DELIMITER}.get(of_kind[0].role, BROAD * math.log(len(attention.text)))
        seen |= {f: bool(value > limit) for f, value in zip(of_kind, values, strict=True)}
    linking = [f for f in found if f.detail not in _METRICS]
    if linking:
        seen |= dict(zip(linking, (_strongest(_only(attention, linking)) > LINK).tolist(), strict=True))
    return tuple(seen.get(f, False) for f in findings)


def _only(attention: Attention, findings: Sequence[Finding]) -> Attention:
    """A reading of one layer that has just the heads of ``findings``, in their order."""
    weights = np.stack([attention[f.head] for f in findings])[None]
    return Attention(attention.model, attention.revision, attention.text, weights)


def _strongest(attention: Attention) -> Weights:
    """[head]: the largest share of its attention that a word gives to another; special tokens and punctuation aside."""
    words = attention.by_words()
    kept = [i for i, t in enumerate(words.text.tokens) if not t.special and not is_punctuation(t.text)]
    if len(kept) < 2:
        return np.zeros(words.heads, np.float32)
    block = words.weights[0][:, kept][:, :, kept]
    block[:, np.arange(len(kept)), np.arange(len(kept))] = 0
    strongest: Weights = block.max(axis=(1, 2))
    return strongest
