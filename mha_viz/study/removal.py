"""How many heads of a model can be removed before its answer changes, and which few heads change it to a given word,
for one text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from mha_viz.analysis.effects import PIECES, Numbers
from mha_viz.analysis.removal import MOST_SWITCHED, Removal, Switch, removed, steps, switch
from mha_viz.attention import Head
from mha_viz.errors import SettingError
from mha_viz.models import ablation
from mha_viz.models.encoder import Encoder
from mha_viz.request import COSINE
from mha_viz.study.effects import Case, lost_each, values_without

Progress = Callable[[float], None]


def removal(encoder: Encoder, order: Sequence[Head], case: Case, progress: Progress = lambda _: None) -> Removal:
    """What changes while heads are removed in ``order``, one more at each step
    (:func:`mha_viz.analysis.removal.order_of`). ``progress`` is called with the share that is done; an exception from
    it ends the work. Raises the errors of :func:`mha_viz.study.effects.lost_each`."""
    parts = []
    work = steps(len(order), len(encoder.tokenize(*case.texts)))
    for done, counts in enumerate(work, 1):
        parts.append(lost_each(encoder, [order[:count] for count in counts], case))
        progress(done / len(work))
    return removed(order, parts)


def margins(encoder: Encoder, variants: Sequence[Collection[Head]], case: Case) -> Numbers:
    """[variant]: log p of the wanted word minus that of the most probable other word, with these heads off. Raises
    SettingError if no word is wanted."""
    question = case.question
    if question is None or question.kind == COSINE:
        raise SettingError("No word is asked for.", "Ask for a word at [MASK], or for the next one.")
    at_once = max(1, PIECES // len(encoder.tokenize(*case.texts)))
    parts = [
        values_without(encoder, variants[first : first + at_once], case) for first in range(0, len(variants), at_once)
    ]
    return np.concatenate([_margins(values, question.piece) for values in parts])


def _margins(values: Numbers, piece: int) -> Numbers:
    others = np.delete(values, piece, axis=1)
    margin: Numbers = values[:, piece] - others.max(axis=1)
    return margin


def smallest_switch(
    encoder: Encoder, case: Case, most: int = MOST_SWITCHED, progress: Progress = lambda _: None
) -> Switch:
    """The smallest set of heads, found greedily, without which the wanted word is the answer. Raises the errors of
    :func:`margins`."""
    every = ablation.existing(
        encoder, [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    )
    return switch(every, lambda variants: margins(encoder, variants, case), most, progress)
