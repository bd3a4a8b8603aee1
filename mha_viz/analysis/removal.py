"""Remove heads one after the other: orders of removal, and the effect of removing a few heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.analysis.effects import Changes, Effects, Numbers, count_variants_per_batch, rank_heads
from mha_viz.attention import Head
from mha_viz.errors import SettingError
from mha_viz.process.steps import Steps, map_in_steps, split_range

if TYPE_CHECKING:
    import pandas as pd

ORDERS = ("least", "most", "random")  # orders of removal, by the effect of each head alone
MAX_ABLATED_HEADS = 8  # maximum number of heads to switch off in search of a changed answer


class Removal(NamedTuple):
    """The changes while heads are removed in ``order``, one more at each step.

    The other fields are as in Changes, with one entry for each number of removed heads, from 0 to all.
    """

    order: tuple[Head, ...]
    sentence: Numbers
    answer: Numbers
    score: Numbers
    changed: Numbers

    @property
    def first_change(self) -> int | None:
        """The smallest number of removed heads at which another word is the most probable.

        None if that never happens, or if there is no question.
        """
        steps = np.flatnonzero(self.changed == 1)
        return int(steps[0]) if len(steps) else None


def order_heads(effects: Effects, name: str, what: str = "sentence", seed: int = 0) -> tuple[Head, ...]:
    """Return all heads in one of ORDERS, by their effects on the "sentence" or the "answer". Raises SettingError."""
    if name not in ORDERS:
        raise SettingError(f"“{name[:40]}” is not an order.", f"Choose one of {', '.join(ORDERS)}.")
    ranked_heads = rank_heads(effects.on(what))
    if name == "random":
        heads = sorted(ranked_heads)
        Random(seed).shuffle(heads)
        return tuple(heads)
    return ranked_heads if name == "most" else ranked_heads[::-1]


def remove_heads(order: Sequence[Head], n: int, measure: Callable[[list[Sequence[Head]]], Changes]) -> Steps[Removal]:
    """Remove heads one after the other on a text of ``n`` tokens.

    ``measure`` returns the changes in as many variants as fit into one batch, each given by its removed heads.
    The first entry, with no head removed, is 0.
    """
    ranges = split_range(1, len(order) + 1, count_variants_per_batch(n))
    parts = yield from map_in_steps(ranges, lambda counts: measure([order[:count] for count in counts]))
    fields = {name: [np.zeros(1), *(getattr(part, name) for part in parts)] for name in Removal._fields[1:]}
    changes = {name: np.concatenate(field) for name, field in fields.items()}
    return Removal(
        tuple(order), **{name: np.where(np.isnan(field[-1]), np.nan, field) for name, field in changes.items()}
    )


class AblationSet(NamedTuple):
    """Heads whose removal makes another word the answer.

    Attributes:
        heads: the heads in the order in which they were found.
        margins: log p of that word minus the highest log p of the others, in nats, with none of the heads removed, one,
            two and so on. Above 0, the word is the answer.
    """

    heads: tuple[Head, ...]
    margins: tuple[float, ...]

    @property
    def is_answer(self) -> bool:
        """True if the word is the answer with all of the heads removed."""
        return self.margins[-1] > 0

    def table(self) -> pd.DataFrame:
        """Return a table with one row for each number of removed heads, from 0.

        The columns are the added ``head`` and the ``margin``.
        """
        import pandas as pd

        heads = ["", *map(str, self.heads)]
        return pd.DataFrame({"head": heads, "margin": self.margins}, index=pd.RangeIndex(len(heads), name="off"))


def find_ablation_set(
    all_heads: Sequence[Head],
    n: int,
    compute_margins: Callable[[Sequence[tuple[Head, ...]]], Numbers],
    max_heads: int = MAX_ABLATED_HEADS,
) -> Steps[AblationSet]:
    """Greedily find a small set of heads whose removal makes a word the answer.

    In each round, the head that raises the margin most is added, until the word is the answer, no head raises the
    margin, or ``max_heads`` heads are removed. ``compute_margins`` returns the margins without some sets of heads, as
    many as fit into one batch of a text of ``n`` tokens. A smaller set may exist, because the search is greedy.
    """
    removed_heads: tuple[Head, ...] = ()
    margins = [float(compute_margins([()])[0])]
    while margins[-1] <= 0 and len(removed_heads) < min(max_heads, len(all_heads)):
        sets, values = [(*removed_heads, head) for head in all_heads if head not in removed_heads], list[float]()
        for part in split_range(0, len(sets), count_variants_per_batch(n)):
            yield (len(removed_heads) + len(values) / len(sets)) / max_heads
            values += compute_margins(sets[part.start : part.stop]).tolist()
        if max(values) <= margins[-1]:
            break
        removed_heads = sets[int(np.argmax(values))]
        margins.append(max(values))
    return AblationSet(removed_heads, tuple(margins))
