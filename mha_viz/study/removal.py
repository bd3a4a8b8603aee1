"""How many heads of a model can be removed before its answer changes, and which few heads change it to a given word,
for one text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from mha_viz.analysis import removal as analysis
from mha_viz.analysis.effects import Numbers
from mha_viz.analysis.removal import MOST_SWITCHED, Removal, Switch
from mha_viz.attention import Head
from mha_viz.errors import SettingError
from mha_viz.models import ablation
from mha_viz.models.encoder import Encoder
from mha_viz.process.steps import completed
from mha_viz.request import COSINE
from mha_viz.study.effects import Case, lost_each, tokens, values_without

Progress = Callable[[float], None]


def removal(encoder: Encoder, order: Sequence[Head], case: Case, progress: Progress = lambda _: None) -> Removal:
    """What changes while heads are removed in ``order``, one more at each step
    (:func:`mha_viz.analysis.removal.order_of`). ``progress`` is called with the share that is done; an exception from
    it ends the work. Raises the errors of :func:`mha_viz.study.effects.lost_each`."""
    steps = analysis.removal(order, tokens(encoder, case), lambda variants: lost_each(encoder, variants, case))
    return completed(steps, progress)


def margins(encoder: Encoder, variants: Sequence[Collection[Head]], case: Case) -> Numbers:
    """[variant]: log p of the wanted word minus that of the most probable other word, with these heads off: at most
    :func:`~mha_viz.analysis.effects.at_once` of them, read in one batch. Raises SettingError if no word is wanted."""
    question = case.question
    if question is None or question.kind == COSINE:
        raise SettingError("No word is asked for.", "Ask for a word at [MASK], or for the next one.")
    values = values_without(encoder, variants, case)
    margin: Numbers = values[:, question.piece] - np.delete(values, question.piece, axis=1).max(axis=1)
    return margin


def smallest_switch(
    encoder: Encoder, case: Case, most: int = MOST_SWITCHED, progress: Progress = lambda _: None
) -> Switch:
    """The smallest set of heads, found greedily, without which the wanted word is the answer. Raises the errors of
    :func:`margins`."""
    every = ablation.existing(
        encoder, [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    )
    steps = analysis.switch(every, tokens(encoder, case), lambda variants: margins(encoder, variants, case), most)
    return completed(steps, progress)
