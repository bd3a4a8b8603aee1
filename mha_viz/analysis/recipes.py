"""The recipe of a head: a few named rules, with shares, that together predict its attention.

P[i, j] = Σ_r β_r R_r[i, j] / Σ_{r applies to i} β_r, with the rules R of :mod:`mha_viz.analysis.rules`; a token to
which none applies looks everywhere evenly. The shares β maximise Σ A[i, j] ln P[i, j]; rules are chosen one after the
other. The *explained share* is the mean over the rows of Σ_j min(A[i, j], P[i, j]), 1 minus the total variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.rules import CLASSES, EVEN, FLOOR, RULES, Marks, Numbers, RuleText, matrices, predictions
from mha_viz.attention import Weights

Indices = npt.NDArray[np.intp]

MOST_RULES = 6  # of a head, "everywhere" included
STEPS, QUICK_STEPS = 100, 25  # of a fit: the last one, and those between two choices
MOVED = 1e-4  # when no share moves more, a fit has arrived
NEW = 0.1  # the share that a rule begins with when it is chosen
FEW_CELLS = 0.02  # share of the cells up to which a rule says little
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
    parts: list[list[RuleRows]] = [[] for _ in CLASSES]
    for text, weights in read:
        rules, keys = matrices(text), text.visible.sum(axis=1)
        applies = (rules > 0).any(axis=2).astype(float)
        for part, at, cells in zip(parts, *_of_classes(text), strict=True):
            starts = np.cumsum([0, *keys[at]])[:-1]
            part.append(RuleRows(rules[:, cells], weights[:, cells].astype(float), starts, applies[:, at]))
    none = RuleRows(np.zeros((len(RULES), 0)), np.zeros((0, 0)), np.zeros(0, np.intp), np.zeros((len(RULES), 0)))
    return [joined(part or [none]) for part in parts]


def weighted(rows: Sequence[RuleRows], read: Iterable[tuple[RuleText, Weights]]) -> list[RuleRows]:
    """The rows by class of the same texts with other weights."""
    parts = [[weights[:, cells] for cells in _of_classes(text)[1]] for text, weights in read]
    columns = [np.concatenate(part, axis=1, dtype=float) for part in zip(*parts, strict=True)]
    return [one._replace(weights=weights) for one, weights in zip(rows, columns, strict=True)]


def _of_classes(text: RuleText) -> tuple[list[Marks], list[Marks]]:
    """For each of CLASSES: which tokens [token] are in it, and their visible keys [query, key]."""
    tokens = [text.classes == number for number in range(len(CLASSES))]
    return tokens, [text.visible & at[:, None] for at in tokens]


def joined(rows: Sequence[RuleRows]) -> RuleRows:
    """The rows of several texts or classes as those of one."""
    firsts = np.cumsum([0, *(one.rules.shape[1] for one in rows)])[:-1]
    starts = np.concatenate([one.starts + first for one, first in zip(rows, firsts, strict=True)])
    rules, weights, applies = (
        np.concatenate([getattr(one, name) for one in rows], axis=1, dtype=float)
        for name in ("rules", "weights", "applies")
    )
    return RuleRows(rules, weights, starts, applies)


def fitted(rows: RuleRows, head: int, shares: Numbers, steps: int = STEPS) -> Numbers:
    """The shares [rule] of largest Σ A ln P for one head, by expectation and maximisation from ``shares``; a rule that
    begins with 0 keeps it."""
    alone: Numbers = mixtures(rows._replace(weights=rows.weights[head : head + 1]), shares[None], steps)[0]
    return alone


def mixtures(rows: RuleRows, shares: Numbers, steps: int = STEPS) -> Numbers:
    """:func:`fitted` for every head: [head, rule], from shares [head, rule]; zeros without rows."""
    result = np.zeros(shares.shape)
    if not len(rows.starts):
        return result
    counts = {rule: _targets(rows.rules[rule]) for rule in np.flatnonzero(shares.any(axis=0)).tolist()}
    sets, of_set = np.unique(shares > 0, axis=0, return_inverse=True)
    for number, marked in enumerate(sets):
        alike = _Alike.of(rows, np.flatnonzero(marked), counts)
        for head in np.flatnonzero(of_set.ravel() == number):
            result[head, marked] = alike.fitted(rows.weights[head], shares[head, marked], steps)
    return result


def _targets(rule: Numbers) -> Indices:
    """[cell]: how many targets a rule has in the row, 0 where the cell is none of them."""
    return np.rint(np.divide(1, rule, out=np.zeros(len(rule)), where=rule > 0)).astype(np.intp)


class _Alike(NamedTuple):
    """Rows for the fit of some rules: cells for which all of them have the same value differ in nothing but their
    weights, of which only the sum matters, and so do rows to which the same rules apply. ``chosen`` [rule] their
    numbers, ``rules`` [rule, group] their values, ``group`` [cell]; ``applies`` [rule, kind of row], ``rows`` [kind of
    row] how many there are."""

    chosen: Indices
    rules: Numbers
    group: Indices
    applies: Numbers
    rows: Numbers

    @classmethod
    def of(cls, rows: RuleRows, chosen: Indices, counts: Mapping[int, Indices]) -> _Alike:
        """The rows, with the ``counts`` [cell] of the targets of these rules."""
        group, first = _grouped([counts[rule] for rule in chosen.tolist()])
        kinds, first_row = _grouped([*rows.applies[chosen].astype(np.intp)])
        number = np.bincount(kinds).astype(float)
        return cls(chosen, rows.rules[chosen[:, None], first], group, rows.applies[chosen[:, None], first_row], number)

    def fitted(self, weights: Numbers, mixed: Numbers, steps: int) -> Numbers:
        """The shares [rule] from ``mixed``. Each step takes the part of the attention that each rule predicts, divided
        by how often the rule would have been expected where it applies."""
        rules, applies, every = self.rules, self.applies, self.applies * self.rows
        summed = np.bincount(self.group, weights)
        least = np.where(self.chosen == EVEN, FLOOR, 0)
        for _ in range(steps):
            taken = mixed * (rules @ (summed / (mixed @ rules)))
            expected = every @ (1 / (mixed @ applies))  # 0 where a rule never applies, which then takes nothing
            new = np.maximum(taken / np.maximum(expected, FLOOR), least)
            new /= new.sum()
            moved, mixed = np.abs(new - mixed).max(), new
            if moved < MOVED:
                break
        return mixed


def _grouped(keys: Sequence[Indices]) -> tuple[Indices, Indices]:
    """[place]: the number of its group, in which all ``keys`` [place] ≥ 0 are the same; and [group] one place of it."""
    group = np.zeros(len(keys[0]), np.intp)
    for key in keys:
        both = group * (key.max() + 1) + key
        occurs = np.zeros(both.max() + 1, bool)
        occurs[both] = True
        group = (np.cumsum(occurs) - 1)[both]
    first = np.zeros(group.max() + 1, np.intp)
    first[group] = np.arange(len(group))
    return group, first


def predicted(rows: RuleRows, shares: Numbers) -> Numbers:
    """P [head, cell] of shares [head, rule]; evenly spread where no rule with a share applies."""
    used = np.flatnonzero(shares.any(axis=0))
    some, mixed = rows.of_rules(used), shares[:, used]
    applying = mixed @ some.applies  # [head, row]
    rest = np.where(applying > 0, 0.0, 1.0)
    mixture: Numbers = mixed @ some.rules + some.to_cells(rest) * rows.rules[EVEN]
    return mixture / some.to_cells(applying + rest)


def explained_shares(rows: Sequence[RuleRows], shares: Numbers) -> Numbers:
    """The explained share of each head, from shares [class, head, rule]; NaN without rows."""
    sums = sum(np.minimum(one.weights, predicted(one, of)).sum(axis=1) for one, of in zip(rows, shares, strict=True))
    count = sum(len(one.starts) for one in rows)
    return np.asarray(sums) / count if count else np.full(shares.shape[1], np.nan)


def _explained_of(read: Iterable[tuple[RuleText, Weights]], several: Sequence[Numbers]) -> Numbers:
    """[shares, head]: the same of texts with their attention, for each of several shares."""
    sums, count = np.zeros((len(several), several[0].shape[1])), 0
    for text, weights in read:
        sums += [np.minimum(weights, one).sum(axis=(1, 2)) for one in predictions(several, text)]
        count += len(text)
    return sums / count


def gains(rows: RuleRows, shares: Numbers) -> Numbers:
    """[head, rule]: how much Σ A ln P would rise with a little of one more rule, by one step of Newton's method; 0
    where it would fall."""
    used = np.flatnonzero(shares.any(axis=0))
    applying = shares[:, used] @ rows.applies[used]  # [head, row]
    mixed = shares[:, used] @ rows.rules[used]
    ratio = rows.weights / mixed
    curved = ratio / mixed
    slope, bend = np.zeros((2, len(ratio), len(RULES)))
    often = np.count_nonzero(rows.rules, axis=1) > FEW_CELLS * rows.rules.shape[1]
    # Rules that say little are summed over the few cells where one of them does.
    for rules, cells in ((often, slice(None)), (~often, rows.rules[~often].any(axis=0))):
        says = rows.rules[rules][:, cells]
        slope[:, rules] = ratio[:, cells] @ says.T
        bend[:, rules] = curved[:, cells] @ np.square(says).T
    slope -= (1 / applying) @ rows.applies.T
    bend -= (1 / applying**2) @ rows.applies.T
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


def refitted_as(chosen: RecipeChoice, rows: Sequence[RuleRows]) -> Numbers:
    """The shares [class, head, rule] that other weights of the same shape have for the rules that were chosen."""
    apart, together = chosen.by_class, ~chosen.by_class
    shares = np.zeros(chosen.shares.shape)
    shares[:, apart] = refitted(_of_heads(rows, apart), chosen.shares[:, apart])
    shares[:, together] = refitted(_of_heads([joined(rows)], together), chosen.shares[:1, together])
    return shares


def _of_heads(rows: Sequence[RuleRows], heads: Marks) -> list[RuleRows]:
    return [one._replace(weights=one.weights[heads]) for one in rows]


class RecipeChoice(NamedTuple):
    """``shares`` [class, head, rule]; ``by_class`` [head]: whether they differ between classes of query word;
    ``single`` [head]: the number in RULES of the rule that alone explains most."""

    shares: Numbers
    by_class: npt.NDArray[np.bool_]
    single: npt.NDArray[np.intp]


def choice(
    rows: Sequence[RuleRows],
    others: Sequence[tuple[RuleText, Weights]],
    progress: Callable[[float], None] = lambda _: None,
) -> RecipeChoice:
    """The recipe of each head from rows by class. ``others``, texts with their attention [head, query, key], decide
    whether a head has shares for each class; without any, the rows do."""
    whole = [joined(rows)]
    together = np.repeat(pruned(chosen(whole, progress=lambda share: progress(share / 3))), len(rows), axis=0)
    apart = pruned(chosen(rows, progress=lambda share: progress((1 + share) / 3)))
    if others:
        by_class = np.subtract(*_explained_of(others, (apart, together))) >= CLASS_GAIN
    else:
        by_class = explained_shares(rows, apart) - explained_shares(rows, together) >= CLASS_GAIN
    shares = np.where(by_class[None, :, None], apart, together)
    (every,) = whole
    scores = np.zeros((len(RULES), len(every.weights)))
    for number in np.flatnonzero(every.applies.any(axis=1)):  # alone, or with uniform attention where it does not apply
        cells = every.rules[number] + every.to_cells(1 - every.applies[number]) * every.rules[EVEN]
        scores[number] = np.minimum(every.weights, cells).sum(axis=1)
        progress((2 + number / len(RULES)) / 3)
    return RecipeChoice(shares, by_class, scores.argmax(axis=0))


def pruned(shares: Numbers) -> Numbers:
    """The shares without those under LEAST_SHARE."""
    some: Numbers = np.where(shares < LEAST_SHARE, 0, shares)
    sums: Numbers = np.maximum(some.sum(axis=2, keepdims=True), FLOOR)
    return some / sums


def alone(single: npt.NDArray[np.intp], classes: int = len(CLASSES)) -> Numbers:
    """Shares [class, head, rule] of one rule per head."""
    return np.repeat(np.eye(len(RULES))[None, single], classes, axis=0)
