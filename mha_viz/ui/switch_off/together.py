"""The effect of switching off several heads at once, beside random directions draw by draw, with progress and a way to
stop it."""

from __future__ import annotations

from functools import partial

from mha_viz.analysis.effects import Together, draws, together
from mha_viz.attention import Attention
from mha_viz.reader import verbs
from mha_viz.request import Request
from mha_viz.ui import inference
from mha_viz.ui.cache import office
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.shelves import Once
from mha_viz.ui.study_progress import StudyOrder, ordered

TOGETHER = Rules("study of heads together", "studies of heads together", one_per_tab=True)
Key = tuple[str, Request]  # keyed by a reading and by what is switched off in it


@Once
def _desk() -> Desk[Key]:
    return Desk(TOGETHER)


def effect(attention: Attention, request: Request) -> Together:
    """The effect, from the cache or from a job. Raises what the model raises, Busy, and Cancelled if it was stopped."""
    key = (attention.key, request)
    result = office().together.get(key)
    if result is not None:
        return result
    inference.measure_means(request)
    order = StudyOrder(key, attention.text.text[:40], partial(_study, key, len(attention.text)), "together")
    return ordered(_desk(), order, "Reading the text without these heads", lambda: office().together.get(key))


def _study(key: Key, tokens: int, job: Job) -> None:
    _, request = key
    parts = []
    changes = office().ask(verbs.lost_each, request, [request.off]).result()
    batches = draws(tokens)
    for number, some in enumerate(batches, 1):
        job.check()
        parts.append(office().ask(verbs.lost_at_random, request, some).result())
        job.tell(number / len(batches))
    office().together.put(key, together(changes, parts))
