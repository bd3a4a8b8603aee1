"""The recipe of a head: a few named rules, with shares, that together predict its attention.

P[i, j] = Σ_r β_r R_r[i, j] / Σ_{r applies to i} β_r, with the rules R of :mod:`mha_viz.analysis.rules`; a token to
which none applies looks everywhere evenly. The shares β maximise Σ A[i, j] ln P[i, j]; rules are chosen one after the
other. The *explained share* is the mean over the rows of Σ_j min(A[i, j], P[i, j]), 1 minus the total variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.rules import CLASSES, EVEN, FLOOR, RULES, Numbers, RuleText, matrices
from mha_viz.attention import Weights

MOST_RULES = 6  # of a head, "everywhere" included
STEPS, QUICK_STEPS = 100, 25  # of a fit: the last one, and those between two choices
MOVED = 1e-4  # when no share moves more, a fit has arrived
NEW = 0.1  # the share that a rule begins with when it is chosen
LEAST_GAIN = 1e-3  # estimated gain in Σ A ln P, per row, below which no rule is added
LEAST_SHARE = 0.005  # rules with less are left out of a recipe
CLASS_GAIN = 0.02  # explained share that shares by class of query word have to add


class RuleRows(NamedTuple):
    """RuleRows of attention, one after the other, each with its visible keys only: ``rules`` [rule, cell], ``weights``
    [head, cell], ``starts`` [row] the first cell of each row, ``applies`` [rule, row] 1 where a rule has a target."""

    rules: Numbers
    weights: Numbers
    starts: npt.NDArray[np.intp]
    applies: Numbers

    def of_rules(self, numbers: npt.NDArray[np.intp]) -> RuleRows:
        """The same with some of the rules."""
        return self._replace(rules=self.rules[numbers], applies=self.applies[numbers])

    def to_cells(self, by_row: Numbers) -> Numbers:
        """[..., cell]: values [..., row], each repeated for the cells of its row."""
        return np.repeat(by_row, np.diff(np.append(self.starts, self.rules.shape[1])), axis=-1)


def rows_by_class(read: Iterable[tuple[RuleText, Weights]]) -> list[RuleRows]:
    """The rows of texts, each with its attention [head, query, key], for each of CLASSES."""
    parts: list[list[tuple[Numbers, Weights]]] = [[] for _ in CLASSES]
    heads = 0
    for text, weights in read:
        rules, heads = matrices(text), len(weights)
        for query, number in enumerate(text.classes):
            seen = text.visible[query]
            parts[number].append((rules[:, query, seen], weights[:, query, seen]))
    return [_rows(part, heads) for part in parts]


def _rows(parts: Sequence[tuple[Numbers, Weights]], heads: int) -> RuleRows:
    """One after the other, the rows of each part: [rule, key] and [head, key]."""
    starts = np.cumsum([0, *(rules.shape[1] for rules, _ in parts)])[:-1]
    applies = np.array([rules.any(axis=1) for rules, _ in parts], float).reshape(-1, len(RULES)).T
    rules = np.concatenate([np.zeros((len(RULES), 0)), *(rules for rules, _ in parts)], axis=1)
    weights = np.concatenate([np.zeros((heads, 0)), *(weights for _, weights in parts)], axis=1)
    return RuleRows(rules, weights, starts, applies)


def joined(rows: Sequence[RuleRows]) -> RuleRows:
    """The rows of several classes as those of one."""
    firsts = np.cumsum([0, *(one.rules.shape[1] for one in rows)])[:-1]
    starts = np.concatenate([one.starts + first for one, first in zip(rows, firsts, strict=True)])
    rules, weights, applies = (
        np.concatenate([getattr(one, name) for one in rows], axis=1) for name in ("rules", "weights", "applies")
    )
    return RuleRows(rules, weights, starts, applies)


def fitted(rows: RuleRows, head: int, shares: Numbers, steps: int = STEPS) -> Numbers:
    """The shares [rule] of largest Σ A ln P for one head, by expectation and maximisation from ``shares``; a rule that
    begins with 0 keeps it. Each step takes the part of the attention that each rule predicts, divided by how often the
    rule would have been expected where it applies."""
    chosen = np.flatnonzero(shares)
    _, _, _, applies = some = rows.of_rules(chosen)
    mixed, result = shares[chosen], np.zeros(len(shares))
    if not len(rows.starts):
        return result
    for _ in range(steps):
        predicted = mixed @ some.rules
        taken = mixed * (some.rules @ (some.weights[head] / predicted))
        expected = applies @ (1 / (mixed @ applies))
        new = np.divide(taken, expected, out=np.zeros(len(mixed)), where=expected > 0)
        new = np.where(chosen == EVEN, np.maximum(new, FLOOR), new)
        new /= new.sum()
        moved, mixed = np.abs(new - mixed).max(), new
        if moved < MOVED:
            break
    result[chosen] = mixed
    return result


def mixtures(rows: RuleRows, shares: Numbers, steps: int = STEPS) -> Numbers:
    """:func:`fitted` for every head: [head, rule], from shares [head, rule]."""
    return np.array([fitted(rows, head, one, steps) for head, one in enumerate(shares)])


def predicted(rows: RuleRows, shares: Numbers) -> Numbers:
    """P [head, cell] of shares [head, rule]; evenly spread where no rule with a share applies."""
    used = np.flatnonzero(shares.any(axis=0))
    some, mixed = rows.of_rules(used), shares[:, used]
    applying = mixed @ some.applies  # [head, row]
    rest = np.where(applying > 0, 0.0, 1.0)
    mixture: Numbers = mixed @ some.rules + some.to_cells(rest) * rows.rules[EVEN]
    return mixture / some.to_cells(applying + rest)


def explained(rows: Sequence[RuleRows], shares: Numbers) -> Numbers:
    """The explained share of each head, from shares [class, head, rule]; NaN without rows."""
    sums = sum(np.minimum(one.weights, predicted(one, of)).sum(axis=1) for one, of in zip(rows, shares, strict=True))
    count = sum(len(one.starts) for one in rows)
    return np.asarray(sums) / count if count else np.full(shares.shape[1], np.nan)


def gains(rows: RuleRows, shares: Numbers) -> Numbers:
    """[head, rule]: how much Σ A ln P would rise with a little of one more rule, by one step of Newton's method; 0
    where it would fall."""
    applying = shares @ rows.applies  # [head, row]
    mixed = shares @ rows.rules
    ratio = rows.weights / mixed
    slope = ratio @ rows.rules.T - (1 / applying) @ rows.applies.T
    bend = (ratio / mixed) @ np.square(rows.rules).T - (1 / applying**2) @ rows.applies.T
    return np.where(slope > 0, slope**2 / (2 * np.maximum(bend, 1e-6)), 0.0)


def chosen(
    rows: Sequence[RuleRows], most: int = MOST_RULES, progress: Callable[[float], None] = lambda _: None
) -> Numbers:
    """Shares [class, head, rule] of at most ``most`` rules per head, the same for all classes: "everywhere", and one
    after the other the rule of largest gain. ``progress`` is called with the share that is done."""
    heads, count = len(rows[0].weights), sum(len(one.starts) for one in rows)
    marked = np.zeros((heads, len(RULES)), bool)
    marked[:, EVEN] = True
    shares = np.array([marked] * len(rows), float)
    for step in range(most - 1):
        gain = sum(gains(one, of) for one, of in zip(rows, shares, strict=True) if len(one.starts)) * ~marked
        grows = gain.max(axis=1) > LEAST_GAIN * count
        if not grows.any():
            break
        marked[grows, gain.argmax(axis=1)[grows]] = True
        steps = STEPS if step == most - 2 else QUICK_STEPS
        shares = refitted(rows, np.where(marked, np.maximum(shares, NEW), 0), steps)
        progress((step + 1) / (most - 1))
    return shares


def refitted(rows: Sequence[RuleRows], shares: Numbers, steps: int = STEPS) -> Numbers:
    """Shares [class, head, rule], fitted anew from these and "everywhere"; those of a class without rows are 0."""
    begun = shares.copy()
    begun[..., EVEN] = np.maximum(begun[..., EVEN], NEW)
    begun /= begun.sum(axis=2, keepdims=True)
    return np.array([mixtures(one, of, steps) for one, of in zip(rows, begun, strict=True)])


class RecipeChoice(NamedTuple):
    """``shares`` [class, head, rule]; ``by_class`` [head]: whether they differ between classes of query word;
    ``single`` [head]: the number in RULES of the rule that alone explains most."""

    shares: Numbers
    by_class: npt.NDArray[np.bool_]
    single: npt.NDArray[np.intp]


def choice(
    rows: Sequence[RuleRows], others: Sequence[RuleRows], progress: Callable[[float], None] = lambda _: None
) -> RecipeChoice:
    """The recipe of each head from rows by class; ``others`` decide whether a head has shares for each class."""
    whole = [joined(rows)]
    together = np.repeat(pruned(chosen(whole, progress=lambda share: progress(share / 3))), len(rows), axis=0)
    apart = pruned(chosen(rows, progress=lambda share: progress((1 + share) / 3)))
    judges = others if any(len(one.starts) for one in others) else rows
    by_class = explained(judges, apart) - explained(judges, together) >= CLASS_GAIN
    shares = np.where(by_class[None, :, None], apart, together)
    return RecipeChoice(shares, by_class, _single(whole[0], lambda share: progress((2 + share) / 3)))


def pruned(shares: Numbers) -> Numbers:
    """The shares without those under LEAST_SHARE."""
    some: Numbers = np.where(shares < LEAST_SHARE, 0, shares)
    sums: Numbers = np.maximum(some.sum(axis=2, keepdims=True), FLOOR)
    return some / sums


def _single(rows: RuleRows, progress: Callable[[float], None]) -> npt.NDArray[np.intp]:
    """[head]: the rule that alone, or with even attention where it does not apply, explains most; among equals the
    first."""
    scores = np.zeros((len(RULES), len(rows.weights)))
    for number in np.flatnonzero(rows.applies.any(axis=1)):
        cells = rows.rules[number] + rows.to_cells(1 - rows.applies[number]) * rows.rules[EVEN]
        scores[number] = np.minimum(rows.weights, cells).sum(axis=1)
        progress(number / len(RULES))
    return np.asarray(scores.argmax(axis=0))


def alone(single: npt.NDArray[np.intp], classes: int = len(CLASSES)) -> Numbers:
    """Shares [class, head, rule] of one rule per head."""
    return np.repeat(np.eye(len(RULES))[None, single], classes, axis=0)
