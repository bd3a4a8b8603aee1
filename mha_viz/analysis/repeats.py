"""Measure the heads of a causal model on random tokens that are repeated once.

The measures are induction, duplicate token, previous token and sink (Olsson et al. 2022, "In-context Learning and
Induction Heads"; Wang et al. 2023, "Interpretability in the Wild").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.findings import Finding
from mha_viz.attention import Head
from mha_viz.process.steps import Steps, map_in_steps, split_range

if TYPE_CHECKING:
    import pandas as pd

LENGTH, DRAWS, SEED = 25, 50, 0  # tokens before the repetition; number of sequences; random seed
BATCH_SEQUENCES = 10  # sequences per batch
THRESHOLD, MIN_ABOVE_UNTRAINED = 0.5, 0.1  # a role needs this mean weight, and this much more than any untrained head
MEASURES = MappingProxyType(
    {
        "induction": "to the token after the first occurrence of this one",
        "duplicate": "to the first occurrence of this token",
        "previous": "to the token before",
        "sink": "to the first token of the text",
    }
)
CORPUS = "repeated random tokens"  # the name of the corpus in roles
ROLES = MappingProxyType(  # kind and detail of a role, as on the map of roles
    {
        "induction": ("repetition", "induction"),
        "duplicate": ("repetition", "duplicate"),
        "previous": ("position", "previous"),
        "sink": ("delimiter", "sink"),
    }
)

Numbers = npt.NDArray[np.float64]


class DecoderRole(NamedTuple):
    """A head that puts more than half of its attention on the tokens that ``measure`` names.

    Attributes:
        measure: one of MEASURES.
        score: the mean weight on these tokens, from 0 to 1.
        untrained: the score of the best head with random weights.
        chance: the score of uniform attention to all visible tokens.
    """

    head: Head
    measure: str
    score: float
    untrained: float
    chance: float


@dataclass(frozen=True, eq=False)
class DecoderHeads:
    """Mean weights of a model's heads on repeated random tokens.

    Attributes:
        length: the number of random tokens in a sequence, before their repetition.
        draws: the number of sequences.
        seed: the seed of the random tokens.
        trained: the scores, [measure, layer, head], from 0 to 1, in the order of MEASURES.
        untrained: the same scores of the model with random weights.
    """

    model: str
    length: int
    draws: int
    seed: int
    trained: Numbers
    untrained: Numbers
    revision: str = ""

    def roles(self) -> tuple[DecoderRole, ...]:
        """Return the heads above THRESHOLD and at least MIN_ABOVE_UNTRAINED above the best untrained head.

        Both thresholds apply to mean weights. Roles are ordered by measure, largest first.
        """
        return tuple(self._iter_roles())

    def _iter_roles(self) -> Iterator[DecoderRole]:
        """Yield the roles, by measure, largest first."""
        chance = compute_chance(self.length)
        for measure_index, measure in enumerate(MEASURES):
            values, best = self.trained[measure_index], float(self.untrained[measure_index].max())
            for index in np.argsort(-values, axis=None, kind="stable"):
                score = float(values.flat[index])
                if score > THRESHOLD and score >= best + MIN_ABOVE_UNTRAINED:
                    head = Head(*divmod(int(index), values.shape[1]))
                    yield DecoderRole(head, measure, score, best, float(chance[measure_index]))

    def findings(self) -> tuple[Finding, ...]:
        """Return :meth:`roles` as findings for the map of roles.

        The baseline is uniform attention; n counts the rows of all sequences.
        """
        rows = {"induction": self.length, "duplicate": self.length}
        return tuple(
            Finding(
                role.head,
                *ROLES[role.measure],
                *(role.score, role.chance, role.score - role.chance),
                self.draws * rows.get(role.measure, 2 * self.length - 1),
                *(math.nan, math.nan),
                untrained=role.untrained,
                corpora=(CORPUS,),
                lowest=role.score,
            )
            for role in self.roles()
        )

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head.

        The columns are layer, head, and the four measures, first with trained and then with random weights.
        """
        import pandas as pd

        layers, heads = self.trained.shape[1:]
        rows = [
            (layer, head, *self.trained[:, layer, head], *self.untrained[:, layer, head])
            for layer in range(layers)
            for head in range(heads)
        ]
        return pd.DataFrame(rows, columns=["layer", "head", *MEASURES, *(f"{name}_untrained" for name in MEASURES)])


def compute_scores(weights: npt.NDArray[np.float32], length: int) -> Numbers:
    """Return [measure, layer, head], mean weights over sequences of ``length`` tokens and their repetition.

    ``weights`` is [layer, head, sequence, query, key]. Induction and duplicates are measured on the second half, the
    previous token and the sink on all rows but the first.
    """
    second_half, later_rows = np.arange(length, 2 * length), np.arange(1, 2 * length)
    repeats = ((second_half, second_half - length + 1), (second_half, second_half - length))
    cells = (*repeats, (later_rows, later_rows - 1), (later_rows, 0 * later_rows))
    return np.stack([weights[..., rows, keys].mean(axis=(2, 3), dtype=np.float64) for rows, keys in cells])


def measure_heads(
    model: str,
    measure_part: Callable[[range, bool], Numbers],
    length: int = LENGTH,
    draws: int = DRAWS,
    seed: int = SEED,
    revision: Callable[[], str] = str,
) -> Steps[DecoderHeads]:
    """Measure the heads of a causal model with its own and then with random weights, a few sequences per step.

    ``measure_part`` returns the :func:`compute_scores` of some of the sequences; its second argument asks for random
    weights.
    """
    parts = split_range(0, draws, BATCH_SEQUENCES)
    work = [(sequences, untrained) for untrained in (False, True) for sequences in parts]
    sums = yield from map_in_steps(work, lambda step: measure_part(*step) * len(step[0]))
    trained, untrained = (np.sum(half, axis=0) / draws for half in (sums[: len(parts)], sums[len(parts) :]))
    return DecoderHeads(model, length, draws, seed, trained, untrained, revision())


def compute_chance(length: int) -> Numbers:
    """Return [measure], the mean of 1 / (number of visible keys) over the rows of each measure."""
    uniform_weights = 1 / np.arange(1, 2 * length + 1)
    second_half, later_rows = float(uniform_weights[length:].mean()), float(uniform_weights[1:].mean())
    return np.array([second_half, second_half, later_rows, later_rows])


def draw_repeats(pieces: npt.NDArray[np.int64], length: int, draws: int, seed: int) -> npt.NDArray[np.int64]:
    """Return [draw, 2 · length], different tokens drawn from ``pieces``, followed by their repetition."""
    rng = np.random.default_rng(seed)
    first_halves = np.stack([rng.choice(pieces, length, replace=False) for _ in range(draws)])
    return np.concatenate([first_halves, first_halves], axis=1)
