"""Fit the recipe of a head: a few named rules, with shares, that together predict its attention.

P[i, j] = Σ_r β_r R_r[i, j] / Σ_{r applies to i} β_r, with the rules R of :mod:`mha_viz.analysis.rules`; a token to
which no rule applies attends evenly to all tokens. The shares β maximise Σ A[i, j] ln P[i, j]; rules are added one
after the other. The *explained share* is the mean over rows of Σ_j min(A[i, j], P[i, j]), which is 1 minus the total
variation distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.rules import (
    CLASSES,
    FLOOR,
    RULES,
    UNIFORM_RULE,
    Marks,
    Numbers,
    RuleText,
    iter_predictions,
    make_matrices,
)
from mha_viz.attention import Weights

Indices = npt.NDArray[np.intp]

MAX_RULES = 6  # rules per head, "everywhere" included
STEPS, QUICK_STEPS = 100, 25  # steps of the last fit, and of the fits before it
CONVERGED_CHANGE = 1e-4  # a fit has converged if no share changes by more
INITIAL_SHARE = 0.1  # initial share of an added rule
SPARSE_SHARE = 0.02  # a rule with at most this share of nonzero cells is sparse
MIN_GAIN = 1e-3  # estimated gain in Σ A ln P, per row, below which no rule is added
MIN_SHARE = 0.005  # rules with a smaller share are left out of a recipe
MIN_CLASS_GAIN = 0.02  # shares by class of query word must add this much to the explained share


class RuleRows(NamedTuple):
    """Rows of attention, one after the other, each with its visible keys only.

    ``rules`` is [rule, cell], ``weights`` [head, cell], ``starts`` [row] the first cell of each row, and ``applies``
    [rule, row] 1 where a rule has a target.
    """

    rules: Numbers
    weights: Numbers
    starts: npt.NDArray[np.intp]
    applies: Numbers

    def select_rules(self, numbers: npt.NDArray[np.intp]) -> RuleRows:
        """Return the rows with only the rules that have these numbers."""
        return self._replace(rules=self.rules[numbers], applies=self.applies[numbers])

    def repeat_to_cells(self, by_row: Numbers) -> Numbers:
        """Return [..., cell], values [..., row] repeated for the cells of each row."""
        return np.repeat(by_row, np.diff(np.append(self.starts, self.rules.shape[1])), axis=-1)


def make_rows_by_class(texts: Iterable[tuple[RuleText, Weights]]) -> list[RuleRows]:
    """Return the rows of texts for each of CLASSES. Each text comes with its attention [head, query, key]."""
    parts: list[list[RuleRows]] = [[] for _ in CLASSES]
    for text, weights in texts:
        rules, keys = make_matrices(text), text.is_visible.sum(axis=1)
        applies = (rules > 0).any(axis=2).astype(float)
        for part, tokens, cells in zip(parts, *_split_classes(text), strict=True):
            starts = np.cumsum([0, *keys[tokens]])[:-1]
            part.append(RuleRows(rules[:, cells], weights[:, cells].astype(float), starts, applies[:, tokens]))
    no_rows = RuleRows(np.zeros((len(RULES), 0)), np.zeros((0, 0)), np.zeros(0, np.intp), np.zeros((len(RULES), 0)))
    return [join_rows(part or [no_rows]) for part in parts]


def replace_weights(rows: Sequence[RuleRows], texts: Iterable[tuple[RuleText, Weights]]) -> list[RuleRows]:
    """Return rows by class with other weights, those of another model on the same ``texts``."""
    parts = [[weights[:, cells] for cells in _split_classes(text)[1]] for text, weights in texts]
    columns = [np.concatenate(part, axis=1, dtype=float) for part in zip(*parts, strict=True)]
    return [class_rows._replace(weights=weights) for class_rows, weights in zip(rows, columns, strict=True)]


def _split_classes(text: RuleText) -> tuple[list[Marks], list[Marks]]:
    """Return, for each of CLASSES, which tokens [token] are in it, and their visible keys [query, key]."""
    tokens = [text.classes == number for number in range(len(CLASSES))]
    return tokens, [text.is_visible & in_class[:, None] for in_class in tokens]


def join_rows(rows: Sequence[RuleRows]) -> RuleRows:
    """Concatenate the rows of several texts or classes."""
    first_cells = np.cumsum([0, *(part.rules.shape[1] for part in rows)])[:-1]
    starts = np.concatenate([part.starts + first for part, first in zip(rows, first_cells, strict=True)])
    rules, weights, applies = (
        np.concatenate([getattr(part, name) for part in rows], axis=1, dtype=float)
        for name in ("rules", "weights", "applies")
    )
    return RuleRows(rules, weights, starts, applies)


def fit_head(rows: RuleRows, head: int, shares: Numbers, steps: int = STEPS) -> Numbers:
    """Fit the shares [rule] of one head by expectation–maximisation.

    Maximise Σ A ln P, starting from ``shares``. Rules whose initial share is 0 stay 0.
    """
    fit: Numbers = fit_heads(rows._replace(weights=rows.weights[head : head + 1]), shares[None], steps)[0]
    return fit


def fit_heads(rows: RuleRows, shares: Numbers, steps: int = STEPS) -> Numbers:
    """Fit the shares [head, rule] of every head as :func:`fit_head` does. Return zeros if there are no rows."""
    result = np.zeros(shares.shape)
    if not len(rows.starts):
        return result
    counts = {rule: _count_targets(rows.rules[rule]) for rule in np.flatnonzero(shares.any(axis=0)).tolist()}
    sets, set_by_head = np.unique(shares > 0, axis=0, return_inverse=True)
    for number, in_set in enumerate(sets):
        merged = _MergedRows.merge(rows, np.flatnonzero(in_set), counts)
        for head in np.flatnonzero(set_by_head.ravel() == number):
            result[head, in_set] = merged.fit(rows.weights[head], shares[head, in_set], steps)
    return result


def _count_targets(rule: Numbers) -> Indices:
    """Return [cell], the number of targets that a rule has in the row; 0 where the cell is not one of them."""
    return np.rint(np.divide(1, rule, out=np.zeros(len(rule)), where=rule > 0)).astype(np.intp)


class _MergedRows(NamedTuple):
    """Rows for the fit of some rules, with equal cells and equal rows merged.

    Cells for which all the rules have the same values differ only in their weights, and only the sum of these matters.
    Rows to which the same rules apply are merged, too.

    Attributes:
        rule_numbers: [rule], the numbers of the rules.
        rules: [rule, group], their values.
        group: [cell], the group of each cell.
        applies: [rule, kind of row].
        rows: [kind of row], the number of such rows.
    """

    rule_numbers: Indices
    rules: Numbers
    group: Indices
    applies: Numbers
    rows: Numbers

    @classmethod
    def merge(cls, rows: RuleRows, rule_numbers: Indices, counts: Mapping[int, Indices]) -> _MergedRows:
        """Merge the cells and rows; ``counts`` [cell] are the numbers of targets of each rule."""
        group, cells = _group_equal([counts[rule] for rule in rule_numbers.tolist()])
        kinds, row_numbers = _group_equal([*rows.applies[rule_numbers].astype(np.intp)])
        row_counts = np.bincount(kinds).astype(float)
        return cls(
            rule_numbers,
            rows.rules[rule_numbers[:, None], cells],
            group,
            rows.applies[rule_numbers[:, None], row_numbers],
            row_counts,
        )

    def fit(self, weights: Numbers, shares: Numbers, steps: int) -> Numbers:
        """Fit the shares [rule], starting from ``shares``, in at most this many steps of expectation–maximisation.

        In each step, the new share of a rule is the part of the attention that it predicts, divided by its expected
        frequency where it applies.
        """
        rules, applies, applicable_rows = self.rules, self.applies, self.applies * self.rows
        group_weights = np.bincount(self.group, weights)
        floor = np.where(self.rule_numbers == UNIFORM_RULE, FLOOR, 0)
        for _ in range(steps):
            predicted_mass = shares * (rules @ (group_weights / (shares @ rules)))
            # 0 where a rule never applies and so predicts nothing
            expected = applicable_rows @ (1 / (shares @ applies))
            new_shares = np.maximum(predicted_mass / np.maximum(expected, FLOOR), floor)
            new_shares /= new_shares.sum()
            change, shares = np.abs(new_shares - shares).max(), new_shares
            if change < CONVERGED_CHANGE:
                break
        return shares


def _group_equal(keys: Sequence[Indices]) -> tuple[Indices, Indices]:
    """Group items whose ``keys`` [item], each 0 or more, are all equal.

    Return the group of each item, and one item of each group.
    """
    group = np.zeros(len(keys[0]), np.intp)
    for key in keys:
        combined_keys = group * (key.max() + 1) + key
        is_used = np.zeros(combined_keys.max() + 1, bool)
        is_used[combined_keys] = True
        group = (np.cumsum(is_used) - 1)[combined_keys]
    members = np.zeros(group.max() + 1, np.intp)
    members[group] = np.arange(len(group))
    return group, members


def predict_cells(rows: RuleRows, shares: Numbers) -> Numbers:
    """Return P [head, cell] from shares [head, rule]; uniform where no rule with a share applies."""
    used_rules = np.flatnonzero(shares.any(axis=0))
    used_rows, used_shares = rows.select_rules(used_rules), shares[:, used_rules]
    totals = used_shares @ used_rows.applies  # [head, row]
    even_shares = np.where(totals > 0, 0.0, 1.0)
    mixture: Numbers = used_shares @ used_rows.rules + used_rows.repeat_to_cells(even_shares) * rows.rules[UNIFORM_RULE]
    return mixture / used_rows.repeat_to_cells(totals + even_shares)


def compute_explained_shares(rows: Sequence[RuleRows], shares: Numbers) -> Numbers:
    """Return the explained share of each head, from shares [class, head, rule]; NaN without rows."""
    sums = sum(
        np.minimum(class_rows.weights, predict_cells(class_rows, class_shares)).sum(axis=1)
        for class_rows, class_shares in zip(rows, shares, strict=True)
    )
    count = sum(len(class_rows.starts) for class_rows in rows)
    return np.asarray(sums) / count if count else np.full(shares.shape[1], np.nan)


def _explain_texts(texts: Iterable[tuple[RuleText, Weights]], mixtures: Sequence[Numbers]) -> Numbers:
    """Return [mixture, head], the explained shares of texts with their attention, for each of several mixtures."""
    sums, count = np.zeros((len(mixtures), mixtures[0].shape[1])), 0
    for text, weights in texts:
        sums += [np.minimum(weights, prediction).sum(axis=(1, 2)) for prediction in iter_predictions(mixtures, text)]
        count += len(text)
    return sums / count


def estimate_gains(rows: RuleRows, shares: Numbers) -> Numbers:
    """Estimate [head, rule], the gain in Σ A ln P from adding a little of one more rule.

    The estimate is one step of Newton's method; it is 0 where the sum would fall.
    """
    used_rules = np.flatnonzero(shares.any(axis=0))
    totals = shares[:, used_rules] @ rows.applies[used_rules]  # [head, row]
    mixture = shares[:, used_rules] @ rows.rules[used_rules]
    ratio = rows.weights / mixture
    curvature = ratio / mixture
    slope, second_derivative = np.zeros((2, len(ratio), len(RULES)))
    is_dense = np.count_nonzero(rows.rules, axis=1) > SPARSE_SHARE * rows.rules.shape[1]
    # Sparse rules are summed only over the cells where one of them is nonzero.
    for rules, cells in ((is_dense, slice(None)), (~is_dense, rows.rules[~is_dense].any(axis=0))):
        values = rows.rules[rules][:, cells]
        slope[:, rules] = ratio[:, cells] @ values.T
        second_derivative[:, rules] = curvature[:, cells] @ np.square(values).T
    slope -= (1 / totals) @ rows.applies.T
    second_derivative -= (1 / totals**2) @ rows.applies.T
    return np.where(slope > 0, slope**2 / (2 * np.maximum(second_derivative, 1e-6)), 0.0)


def choose_rules(
    rows: Sequence[RuleRows], max_rules: int = MAX_RULES, progress: Callable[[float], None] = lambda _: None
) -> Numbers:
    """Choose at most ``max_rules`` rules per head and fit their shares, [class, head, rule].

    All classes have the same rules. The first is "everywhere"; then the rule with the largest gain is added, one after
    the other. ``progress`` is called with the completed fraction.
    """
    heads, count = len(rows[0].weights), sum(len(class_rows.starts) for class_rows in rows)
    is_chosen = np.zeros((heads, len(RULES)), bool)
    is_chosen[:, UNIFORM_RULE] = True
    shares = np.array([is_chosen] * len(rows), float)
    for step in range(max_rules - 1):
        pairs = zip(rows, shares, strict=True)
        gain = (
            sum(
                estimate_gains(class_rows, class_shares) for class_rows, class_shares in pairs if len(class_rows.starts)
            )
            * ~is_chosen
        )
        has_gain = gain.max(axis=1) > MIN_GAIN * count
        if not has_gain.any():
            break
        is_chosen[has_gain, gain.argmax(axis=1)[has_gain]] = True
        steps = STEPS if step == max_rules - 2 else QUICK_STEPS
        shares = refit_shares(rows, np.where(is_chosen, np.maximum(shares, INITIAL_SHARE), 0), steps)
        progress((step + 1) / (max_rules - 1))
    return shares


def refit_shares(rows: Sequence[RuleRows], shares: Numbers, steps: int = STEPS) -> Numbers:
    """Fit shares [class, head, rule] again, starting from these and "everywhere"; 0 for a class without rows."""
    initial_shares = shares.copy()
    initial_shares[..., UNIFORM_RULE] = np.maximum(initial_shares[..., UNIFORM_RULE], INITIAL_SHARE)
    initial_shares /= initial_shares.sum(axis=2, keepdims=True)
    return np.array([fit_heads(*pair, steps) for pair in zip(rows, initial_shares, strict=True)])


def refit_choice(choice: RecipeChoice, rows: Sequence[RuleRows]) -> Numbers:
    """Fit the chosen rules to other weights of the same shape. Return the shares [class, head, rule]."""
    by_class, is_overall = choice.by_class, ~choice.by_class
    shares = np.zeros(choice.shares.shape)
    shares[:, by_class] = refit_shares(_select_heads(rows, by_class), choice.shares[:, by_class])
    shares[:, is_overall] = refit_shares(_select_heads([join_rows(rows)], is_overall), choice.shares[:1, is_overall])
    return shares


def _select_heads(rows: Sequence[RuleRows], heads: Marks) -> list[RuleRows]:
    """Return the rows with the weights of only these heads."""
    return [class_rows._replace(weights=class_rows.weights[heads]) for class_rows in rows]


class RecipeChoice(NamedTuple):
    """The recipes of a model's heads.

    Attributes:
        shares: [class, head, rule].
        by_class: [head], whether the shares differ between classes of query word.
        single: [head], the number in RULES of the rule that explains most on its own.
    """

    shares: Numbers
    by_class: npt.NDArray[np.bool_]
    single: npt.NDArray[np.intp]


def choose_recipes(
    rows: Sequence[RuleRows],
    held_out: Sequence[tuple[RuleText, Weights]],
    progress: Callable[[float], None] = lambda _: None,
) -> RecipeChoice:
    """Choose the recipe of each head from rows by class.

    The ``held_out`` texts, with their attention [head, query, key], decide whether a head has shares for each class;
    without such texts, the rows decide. ``progress`` is called with the completed fraction.
    """
    joined_rows = [join_rows(rows)]
    overall_shares = np.repeat(
        prune_shares(choose_rules(joined_rows, progress=lambda share: progress(share / 3))), len(rows), axis=0
    )
    shares_by_class = prune_shares(choose_rules(rows, progress=lambda share: progress((1 + share) / 3)))
    if held_out:
        by_class = np.subtract(*_explain_texts(held_out, (shares_by_class, overall_shares))) >= MIN_CLASS_GAIN
    else:
        gains = compute_explained_shares(rows, shares_by_class) - compute_explained_shares(rows, overall_shares)
        by_class = gains >= MIN_CLASS_GAIN
    shares = np.where(by_class[None, :, None], shares_by_class, overall_shares)
    (all_rows,) = joined_rows
    scores = np.zeros((len(RULES), len(all_rows.weights)))
    for number in np.flatnonzero(all_rows.applies.any(axis=1)):  # one rule; uniform attention where it does not apply
        uniform_share = all_rows.repeat_to_cells(1 - all_rows.applies[number])
        cells = all_rows.rules[number] + uniform_share * all_rows.rules[UNIFORM_RULE]
        scores[number] = np.minimum(all_rows.weights, cells).sum(axis=1)
        progress((2 + number / len(RULES)) / 3)
    return RecipeChoice(shares, by_class, scores.argmax(axis=0))


def prune_shares(shares: Numbers) -> Numbers:
    """Drop shares below MIN_SHARE and rescale the others to sum to 1."""
    pruned_shares: Numbers = np.where(shares < MIN_SHARE, 0, shares)
    sums: Numbers = np.maximum(pruned_shares.sum(axis=2, keepdims=True), FLOOR)
    return pruned_shares / sums


def make_single_rule_shares(rules: npt.NDArray[np.intp], classes: int = len(CLASSES)) -> Numbers:
    """Return shares [class, head, rule] with one rule per head, given by ``rules`` [head]."""
    return np.repeat(np.eye(len(RULES))[None, rules], classes, axis=0)
