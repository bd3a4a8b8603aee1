"""The progress of work that a page waits for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

import streamlit as st

from mha_viz.errors import Cancelled
from mha_viz.numerals import done, duration
from mha_viz.process.steps import Steps
from mha_viz.ui.jobs import Job, in_steps, queue_of
from mha_viz.ui.parts import complain, guarded, remark

SOON = 0.4  # seconds between two polls
R = TypeVar("R")


class Task(NamedTuple, Generic[R]):
    """Work of one of ``jobs.KINDS`` in steps, by its key; ``name`` says what it is about, ``words`` what is done
    meanwhile."""

    kind: str
    key: Hashable
    name: str
    words: str
    steps: Callable[[], Steps[R]]

    def stored(self) -> R | None:
        """The result, if it is cached."""
        result: R | None = queue_of(self.kind).results.get(self.key)
        return result

    def begin(self) -> Job:
        """Begin the work, or join it. Raises Busy."""
        return queue_of(self.kind).submit(self.key, self.name, in_steps(self.steps))

    @property
    def left(self) -> bool:
        """True if this visitor stopped it."""
        return queue_of(self.kind).left(self.key)


def outcome(task: Task[R], widget: str = "") -> R:
    """The result of a task, from the cache or as from :func:`result_of`; ``widget`` ends the keys of its buttons. A
    visitor who stopped it gets a button to continue it. Raises what the work raises, Busy, and Cancelled if it was
    stopped."""
    result, end = task.stored(), widget or task.kind
    if result is not None:
        return result
    if task.left:
        st.button("Continue", key=f"go_on_{end}", on_click=go_on, args=(task,))
        raise Cancelled("You stopped this.")
    return result_of(task.begin(), task.words, f"stop_{end}", task.stored)


@guarded()
def go_on(task: Task[Any]) -> None:
    """Begin a task at the press of a button."""
    task.begin()


def result_of(job: Job, words: str, stop_key: str, result: Callable[[], R | None]) -> R:
    """The result of a job, once :func:`wait_for` has waited for it. Raises what the job raised, and Cancelled if it
    left no result."""
    wait_for(job, words, stop_key)
    value = result()
    if value is None:
        raise job.error or Cancelled("The computation was not finished.", "Open the page again.")
    return value


def wait_for(job: Job, words: str, stop_key: str) -> None:
    """Hold the page until a job has ended. If that takes long, show ``words``, the progress and the estimated time
    left, with a button that stops it. A page that runs again rejoins the job; a page that was left stops polling it."""
    if job.wait(SOON):
        return
    place = st.empty()
    with place.container():
        left, right = st.columns([5, 1], vertical_alignment="center")
        bar = left.empty()
        right.button("Stop", key=stop_key, on_click=job.let_go, width="stretch")
        while not job.finished:
            job.look()
            seconds = job.seconds_left  # unknown at first
            so_far = done(job.fraction) + (f", {duration(seconds)} left" if seconds else "")
            bar.progress(job.fraction, text=f"{words}: {so_far}")  # Streamlit ends an abandoned run here
            job.wait(SOON)
    place.empty()


@st.fragment(run_every=0.5)
@guarded(complain)
def progress(study: Job, words: Callable[[Job], str]) -> None:
    """The progress of a study in ``words``, with a button that stops it or resumes waiting; the page continues by
    itself."""
    if study.finished or study.stopped():
        st.rerun()
    study.look()
    left, right = st.columns([5, 1], vertical_alignment="center")
    if study.left:
        left.progress(study.fraction, text=f"Another visitor has started this study: {done(study.fraction)}")
        right.button("Wait too", key="join_study", on_click=study.join, width="stretch")
        return
    left.progress(study.fraction, text=words(study))
    right.button("Stop", key="stop_study", on_click=study.let_go, width="stretch")


@st.fragment(run_every=0.3)
@guarded(complain)
def stopping(goes_on: Callable[[], bool], words: str) -> None:
    """Show ``words`` while stopped work is still saving what it has done; then run the page again."""
    if not goes_on():
        st.rerun()
    remark(words)
