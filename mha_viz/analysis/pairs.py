"""Minimal pairs: how often a model prefers the acceptable sentence, and which heads that preference needs.

Heads are off alone, or several together. The test is a two-sided exact sign test over the pairs whose margin changes
without the heads: the p-value is the probability of a split at least as uneven if falls and rises are equally likely.
The q-values (Benjamini & Hochberg) are over all sets of heads that are off in turn, separately for each kind of pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.findings import Finding
from mha_viz.analysis.intervals import Interval, newcombe_interval, wilson_interval
from mha_viz.analysis.profile import HEADINGS, Profile, check_same_model
from mha_viz.analysis.q_values import Numbers, binomial_tail, q_values
from mha_viz.attention import Head
from mha_viz.corpus.pairs import ALL_PAIRS, Pair
from mha_viz.errors import SettingError
from mha_viz.quotes import did_you_mean, quote

if TYPE_CHECKING:
    import pandas as pd

NEEDED = "needed"  # the table in a profile
MAX_Q = 0.05  # a head is needed only below this q-value
ROUNDING = 1e-4  # nats; a smaller change of a margin is rounding, and no change
ACCURACY_COLUMNS = ("kind", "n", "accuracy", "low", "high", "margin", "ties")
PAIR_COLUMNS = ("kind", "good", "bad", "log_p_good", "log_p_bad", "margin", "is_right")
NEED_COLUMNS = (
    *("heads", "n", "accuracy", "difference", "low", "high", "margin_change", "lost", "gained"),
    *("falls", "rises", "p", "q", "needed", "roles"),
)


class Accuracy(NamedTuple):
    """The accuracy of a model on the pairs of a ``kind``.

    Attributes:
        n: the number of pairs.
        accuracy: the share of pairs in which the good sentence is more probable, with Wilson's 95 % interval.
        margin: the mean of log p of the good sentence minus that of the bad one, in nats.
        ties: the number of pairs with margin 0, such as sentences that the model reads as the same; none is right.
    """

    kind: str
    n: int
    accuracy: float
    interval: Interval
    margin: float
    ties: int


class HeadEffect(NamedTuple):
    """The effect of switching off a head, or several together, on the preference for good sentences.

    Attributes:
        heads: the heads that are off.
        n: the number of pairs.
        accuracy: the share of pairs in which the good sentence is more probable without them.
        difference: ``accuracy`` minus the accuracy of the whole model, with its paired 95 % interval (Newcombe 1998,
            method 10).
        margin_change: the change of the mean margin, in nats.
        lost, gained: the numbers of pairs that become wrong, and that become right.
        falls, rises: the numbers of pairs whose margin falls, and whose margin rises.
        p, q: the p-value and the q-value of the exact sign test of falls against rises.
        roles: the roles of the heads in a bundled profile of the model.
    """

    heads: tuple[Head, ...]
    n: int
    accuracy: float
    difference: float
    interval: Interval
    margin_change: float
    lost: int
    gained: int
    falls: int
    rises: int
    p: float
    q: float
    roles: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The names of the heads: "L3H1", or "L0H0+L0H3"."""
        return "+".join(map(str, self.heads))

    @property
    def is_needed(self) -> bool:
        """Whether the preference needs the heads.

        The margin falls in more pairs than it rises with q < MAX_Q, over the heads that are off in turn and for this
        kind of pair, and the whole interval of the difference of accuracies lies below 0. The first condition alone
        would also name heads without which the model prefers the same sentences, only less strongly.
        """
        return self.q < MAX_Q and self.falls > self.rises and self.interval.high < 0


@dataclass(frozen=True, eq=False)
class MinimalPairs:
    """The preferences of a model over minimal pairs, with all of its heads and with each head off.

    Attributes:
        name: the name of the pairs.
        method: the replacement for the output of a head that is off.
        score: the score of a sentence in words.
        pairs: the pairs.
        log_p: [pair, good and bad], the score of each sentence, in nats.
        ablated: the heads that are off in turn, alone or as a set.
        margins: [pair, set], the margin of each pair with each of these sets off, in nats.
        left_out: the number of pairs that could not be scored: a sentence is too long, is a single token, or has a
            masked one.
        roles: the roles of the model's heads in a bundled profile.
        revision: the revision of the model.
    """

    model: str
    name: str
    method: str
    score: str
    pairs: tuple[Pair, ...]
    log_p: Numbers
    ablated: tuple[tuple[Head, ...], ...]
    margins: Numbers
    left_out: int = 0
    roles: tuple[Finding, ...] = ()
    revision: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of pairs, in the order of the file; empty if the pairs name none, or only one."""
        kinds = tuple(dict.fromkeys(pair.kind for pair in self.pairs))
        return kinds if len(kinds) > 1 else ()

    def accuracies(self) -> tuple[Accuracy, ...]:
        """Return the accuracy over all pairs, then that of each kind."""
        return tuple(self._measure_accuracy(kind) for kind in (ALL_PAIRS, *self.kinds))

    def needs(self, kind: str = ALL_PAIRS) -> tuple[HeadEffect, ...]:
        """Measure the effect on the pairs of a kind of switching off each head, or set, in the order of ``ablated``.

        Raises SettingError for an unknown kind.
        """
        is_chosen = self._mark_pairs(kind)
        margins = (self.log_p[:, 0] - self.log_p[:, 1])[is_chosen]
        ablated_margins = self.margins[is_chosen]
        rows = [
            _measure_effect(heads, margins, ablated_margins[:, column], self._list_roles(heads))
            for column, heads in enumerate(self.ablated)
        ]
        q = q_values([row.p for row in rows])
        return tuple(row._replace(q=float(value)) for row, value in zip(rows, q, strict=True))

    def table(self) -> pd.DataFrame:
        """Return a table with the columns ACCURACY_COLUMNS: a row for all pairs, then one per kind."""
        import pandas as pd

        rows = [(row.kind, row.n, row.accuracy, *row.interval, row.margin, row.ties) for row in self.accuracies()]
        return pd.DataFrame(rows, columns=list(ACCURACY_COLUMNS))

    def heads(self, kind: str = ALL_PAIRS) -> pd.DataFrame:
        """Return a table with one row per head, or set of heads, that was off, and the columns NEED_COLUMNS.

        ``kind``: count only pairs of this kind; q-values are then over the rows for this kind. Raises
        SettingError for an unknown kind.
        """
        import pandas as pd

        rows = [
            (row.name, *row[1:4], *row.interval, *row[5:12], row.is_needed, "; ".join(row.roles))
            for row in self.needs(kind)
        ]
        return pd.DataFrame(rows, columns=list(NEED_COLUMNS))

    def sentences(self) -> pd.DataFrame:
        """Return a table with one row per pair, of the whole model, and the columns PAIR_COLUMNS."""
        import pandas as pd

        margins = self.log_p[:, 0] - self.log_p[:, 1]
        rows = [
            (pair.kind, pair.good, pair.bad, *log_p, margin, margin > 0)
            for pair, log_p, margin in zip(self.pairs, self.log_p, margins, strict=True)
        ]
        return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))

    def stored_in(self, profile: Profile) -> Profile:
        """Return ``profile``, of the same model, with the table NEEDED added or replaced.

        It has a row per head that was off alone: for all pairs, then for each kind. Raises SettingError for another
        model, and if no head was off alone.
        """
        import pandas as pd

        check_same_model(profile, self.model, self.revision)
        require_any_single_head(self.ablated)
        rows: list[tuple[object, ...]] = []
        for kind in (ALL_PAIRS, *self.kinds):
            for effect in (row for row in self.needs(kind) if len(row.heads) == 1):
                name = (*effect.heads[0], self.name, kind, self.method)
                rows.append(
                    (*name, *effect[1:4], *effect.interval, effect.lost, effect.gained, effect.q, effect.is_needed)
                )
        table = pd.DataFrame(rows, columns=list(HEADINGS[NEEDED]))
        return replace(profile, tables={**profile.tables, NEEDED: table})

    def _list_roles(self, heads: Sequence[Head]) -> list[str]:
        """Return the names of the roles of some heads, without repetition."""
        return [*dict.fromkeys(f"{role.role} {role.detail}" for role in self.roles if role.head in heads)]

    def _mark_pairs(self, kind: str) -> npt.NDArray[np.bool_]:
        """Mark the pairs of a kind, [pair]. Raises SettingError for an unknown kind."""
        names = (ALL_PAIRS, *dict.fromkeys(pair.kind for pair in self.pairs))
        if kind not in names:
            remedy = f"{did_you_mean(str(kind), names)} Choose one of {', '.join(filter(None, names[:20]))}.".strip()
            raise SettingError(f"{quote(str(kind))} is not a kind of these pairs.", remedy)
        return np.array([kind in (ALL_PAIRS, pair.kind) for pair in self.pairs])

    def _measure_accuracy(self, kind: str) -> Accuracy:
        margins = (self.log_p[:, 0] - self.log_p[:, 1])[self._mark_pairs(kind)]
        right, n = int((margins > 0).sum()), len(margins)
        interval = wilson_interval(right, n)
        return Accuracy(kind, n, right / n, interval, float(margins.mean()), int((margins == 0).sum()))


def require_any_single_head(ablated: Iterable[Sequence[Head]]) -> None:
    """Raise SettingError unless at least one set is a single head, as the table in a profile requires."""
    if not any(len({*heads}) == 1 for heads in ablated):
        problem = "A profile stores the results of single heads, but no head was switched off alone."
        raise SettingError(problem, "Name single heads, or leave the heads out to measure all of them.")


def sign_test(first: int, second: int) -> float:
    """Return the two-sided p-value of an exact sign test, from the numbers of changes in either direction.

    Without a change, it is 1.
    """
    n = first + second
    log_factorials = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])
    return min(1.0, 2 * binomial_tail(max(first, second), n, 0.5, log_factorials))


def _measure_effect(
    heads: tuple[Head, ...], margins: Numbers, ablated_margins: Numbers, roles: Sequence[str]
) -> HeadEffect:
    """Compare the margins [pair] before and after heads are switched off. The q-value is NaN for now."""
    was_right, is_right, change = margins > 0, ablated_margins > 0, ablated_margins - margins
    lost, gained = int((was_right & ~is_right).sum()), int((~was_right & is_right).sum())
    both_right, n = int((was_right & is_right).sum()), len(margins)
    falls, rises = int((change < -ROUNDING).sum()), int((change > ROUNDING).sum())
    return HeadEffect(
        heads,
        n,
        (both_right + gained) / n,
        (gained - lost) / n,
        newcombe_interval(both_right, gained, lost, n - both_right - gained - lost),
        float(change.mean()),
        lost,
        gained,
        falls,
        rises,
        sign_test(falls, rises),
        np.nan,
        tuple(roles),
    )
