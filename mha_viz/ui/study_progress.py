"""The progress of work on a page that waits for it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from mha_viz.ui.jobs import Job
from mha_viz.ui.parts import complain, guarded

SOON = 0.4  # seconds between two looks


def wait_for(job: Job, words: Callable[[], str], stop_key: str = "") -> None:
    """Hold the page until a job is finished, with how far it is, in ``words``, and with a button that stops it where
    one has a key. A page that runs again joins the job again; one that was left looks no longer."""
    place = st.empty()
    with place.container():
        left, right = st.columns([5, 1], vertical_alignment="center") if stop_key else (st, st)
        bar = left.empty()
        if stop_key:
            right.button("Stop", key=stop_key, on_click=job.let_go, width="stretch")
        while not job.wait(SOON):
            job.look()
            bar.progress(job.fraction, text=words())  # here Streamlit ends a run that nobody waits for any more
    place.empty()


@st.fragment(run_every=0.5)
@guarded(complain)
def progress(study: Job, words: Callable[[Job], str]) -> None:
    """How far a study is, in ``words``, with a way to stop it, or to wait for it again; the page goes on by itself."""
    if study.finished or study.stopped():
        st.rerun()
    study.look()
    left, right = st.columns([5, 1], vertical_alignment="center")
    if study.left:
        left.progress(study.fraction, text=f"Another visitor has started this study: {study.fraction:.0%}")
        right.button("Wait too", key="join_study", on_click=study.join, width="stretch")
        return
    left.progress(study.fraction, text=words(study))
    right.button("Stop", key="stop_study", on_click=study.let_go, width="stretch")
