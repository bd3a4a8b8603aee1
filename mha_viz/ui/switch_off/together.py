"""The effect of switching off several heads at once, beside random directions draw by draw, with progress and a way to
stop it."""

from __future__ import annotations

from functools import partial

from mha_viz.analysis.effects import Together, draws, together
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Ablation
from mha_viz.models import catalog
from mha_viz.ui import inference
from mha_viz.ui.cache import office
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.shelves import Once
from mha_viz.ui.study_progress import Order, ordered

TOGETHER = Rules("study of heads together", "studies of heads together", one_per_tab=True)
Key = tuple[str, Ablation, tuple[Head, ...]]  # keyed by a reading and by what is switched off in it


@Once
def _desk() -> Desk[Key]:
    return Desk(TOGETHER)


def effect(model: catalog.Model, attention: Attention, ablation: Ablation, off: tuple[Head, ...]) -> Together:
    """The effect, from the cache or from a job. Raises what the model raises, Busy, and Cancelled if it was stopped."""
    key = (attention.key, ablation, off)
    result = office().together.get(key)
    if result is not None:
        return result
    if ablation.method == "mean":
        inference.measure_means(model)
    order = Order(key, attention.text.text[:40], partial(_study, key, model, attention), "together")
    return ordered(_desk(), order, "Reading the text without these heads", lambda: office().together.get(key))


def _study(key: Key, model: catalog.Model, attention: Attention, job: Job) -> None:
    _, ablation, off = key
    parts = []
    changes = office().lost(model, ablation, [off]).result()
    batches = draws(len(attention.text))
    for number, some in enumerate(batches, 1):
        job.check()
        parts.append(office().lost_at_random(model, ablation, off, some).result())
        job.tell(number / len(batches))
    office().together.put(key, together(changes, parts))
