"""Show the progress of jobs that a page waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from mha_viz.app.service.jobs import Job, Task
from mha_viz.app.widgets.parts import report_errors, show_error, show_remark
from mha_viz.errors import Cancelled
from mha_viz.numerals import duration, format_done

POLL_INTERVAL_S = 0.4  # seconds between two polls
R = TypeVar("R")


def load_result(task: Task[R], key_suffix: str = "") -> R:
    """Return the result of a task, from the cache or by running it.

    A visitor who has stopped the task gets a button to continue it. ``key_suffix``: the end of the keys of the buttons,
    by default the kind of the task.

    Raises the errors of the work, Busy, and Cancelled if it was stopped.
    """
    result, key_suffix = task.find_result(), key_suffix or task.kind
    if result is not None:
        return result
    if task.is_cancelled:
        st.button("Continue", key=f"go_on_{key_suffix}", on_click=start_task, args=(task,))
        raise Cancelled("You stopped this.")
    return wait_for_job_result(task.begin(), task.label, f"stop_{key_suffix}", task.find_result)


@report_errors()
def start_task(task: Task[Any]) -> None:
    """Start a task when its button is pressed."""
    task.begin()


def wait_for_job_result(job: Job, label: str, stop_key: str, find_result: Callable[[], R | None]) -> R:
    """Wait for a job with :func:`wait_for` and return its result.

    Raises the job's error, and Cancelled if it left no result.
    """
    wait_for(job, label, stop_key)
    result = find_result()
    if result is None:
        raise job.error or Cancelled("The computation did not finish.", "Reload the page.")
    return result


def wait_for(job: Job, label: str, stop_key: str) -> None:
    """Wait until a job has ended.

    If that takes long, show ``label``, the progress and the estimated time left, with a button that stops the job. A
    page that runs again rejoins the job; a page that was left stops polling it.
    """
    placeholder = st.empty()  # created in every run, as in ``inference.wait_for_result``
    if job.wait(POLL_INTERVAL_S):
        return
    with placeholder.container():
        left, right = st.columns([5, 1], vertical_alignment="center")
        bar = left.empty()
        right.button("Stop", key=stop_key, on_click=job.cancel, width="stretch")
        while not job.is_finished:
            job.heartbeat()
            seconds = job.seconds_left  # None at first
            progress = format_done(job.fraction) + (f", {duration(seconds)} left" if seconds else "")
            bar.progress(job.fraction, text=f"{label}: {progress}")  # Streamlit ends an abandoned run here
            job.wait(POLL_INTERVAL_S)
    placeholder.empty()


@st.fragment(run_every=0.5)
@report_errors(show_error)
def show_progress(study: Job, describe: Callable[[Job], str]) -> None:
    """Show the progress of a study, as ``describe`` puts it, with a button that stops it or rejoins it.

    The page continues by itself when the study has ended.
    """
    if study.is_finished or study.is_stopped():
        st.rerun()
    study.heartbeat()
    left, right = st.columns([5, 1], vertical_alignment="center")
    if study.is_cancelled:
        left.progress(study.fraction, text=f"Another visitor has started this study: {format_done(study.fraction)}")
        right.button("Keep waiting", key="join_study", on_click=study.join, width="stretch")
        return
    left.progress(study.fraction, text=describe(study))
    right.button("Stop", key="stop_study", on_click=study.cancel, width="stretch")


@st.fragment(run_every=0.3)
@report_errors(show_error)
def show_saving(is_saving: Callable[[], bool], label: str) -> None:
    """Show ``label`` while a stopped job saves its intermediate results; then rerun the page."""
    if not is_saving():
        st.rerun()
    show_remark(label)
