"""Whether the roles of heads, measured over a corpus, show in one text.

A head with a position, delimiter or broad role is active here if this text alone meets the role's threshold. The role
of a head for a relation shows if some word gives more than half of its attention to another word; for coreference, if a
third-person pronoun gives it to an earlier word. In texts without such a link, the head attends to a delimiter (Clark
et al. 2019, section 3.2). Only gold annotation can tell whether the link is the relation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from mha_viz.analysis import metrics
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.metrics import POSITIONS
from mha_viz.analysis.roles import BROAD, DELIMITER, MASS, SHARE
from mha_viz.attention import Attention
from mha_viz.text import is_punctuation

OFFSET = {detail: offset for offset, detail in POSITIONS.items()}
LINKING = ("syntax", "coreference")  # roles that link words
LINK = 0.5  # share of a word's attention that goes to one other word
_SINGULAR = ("he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself")
PRONOUNS = frozenset((*_SINGULAR, "they", "them", "their", "theirs", "themselves"))  # third-person pronouns

_MEASURES = {metric.detail: metric.measure for metric in metrics.METRICS.values()}


def active(findings: Sequence[Finding], attention: Attention) -> tuple[bool, ...]:
    """For each role, whether it shows in this text."""
    present = [f for f in findings if f.head.layer < attention.layers and f.head.head < attention.heads]
    seen: dict[Finding, bool] = {}
    for measure, limit, of_kind in _kinds(present, len(attention.text)):
        values = measure(attention.only([f.head for f in of_kind]))[0]
        seen |= {f: bool(value >= limit) for f, value in zip(of_kind, values, strict=True)}
    return tuple(seen.get(f, False) for f in findings)


def _kinds(findings: Sequence[Finding], n: int) -> Iterator[tuple[metrics.Measure, float, list[Finding]]]:
    """The measure, the value that it has to reach, and the roles that it decides."""
    above = math.nextafter  # "more than" a half means: from the next number on
    linking = dict(zip(LINKING, (_strongest, _from_pronouns), strict=True))
    for role, measure in linking.items():
        of_role = [f for f in findings if f.role == role]
        if of_role:
            yield measure, above(LINK, 1), of_role
    for detail in dict.fromkeys(f.detail for f in findings if f.role not in linking):
        of_kind = [f for f in findings if f.detail == detail]
        role = of_kind[0].role
        if role == "position":
            by_mass = [f for f in of_kind if math.isnan(f.low)]
            by_share = [f for f in of_kind if not math.isnan(f.low)]
            yield from ((_MEASURES[detail], above(MASS, 1), part) for part in (by_mass,) if part)
            by_maxima = partial(metrics.maxima_at, offset=OFFSET[detail])
            yield from ((by_maxima, SHARE, part) for part in (by_share,) if part)
        elif role == "delimiter":
            yield _MEASURES[detail], above(DELIMITER, 1), of_kind
        else:
            yield _MEASURES[detail], BROAD * math.log(n), of_kind


def _strongest(attention: Attention) -> metrics.PerHead:
    """[layer, head]: the largest share of its attention that a word gives to another; without special tokens and
    punctuation."""
    return _link(attention, lambda text: True)


def _from_pronouns(attention: Attention) -> metrics.PerHead:
    """The same, from third-person pronouns to earlier words."""
    return np.asarray(_link(attention, lambda text: text.casefold() in PRONOUNS, earlier=True))


def _link(attention: Attention, asks: Callable[[str], bool], earlier: bool = False) -> metrics.PerHead:
    words = attention.by_words()
    text = words.text
    ordinary = [i for i, t in enumerate(text.tokens) if not (text.special[i] or is_punctuation(t.text))]
    block = words.weights[:, :, ordinary][..., ordinary]
    asking = np.array([asks(text.tokens[i].text) for i in ordinary], bool)
    back = np.subtract.outer(ordinary, ordinary)  # [from, to]: how far back a word looks
    among = asking[:, None] & (back > 0 if earlier else back != 0)
    if not among.any():
        return np.zeros(block.shape[:2])
    strongest: metrics.PerHead = np.where(among, block, 0).max(axis=(2, 3)).astype(np.float64)
    return strongest
