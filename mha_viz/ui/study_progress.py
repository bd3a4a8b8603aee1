"""The progress of a study on a page that waits for it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from mha_viz.ui.jobs import Job
from mha_viz.ui.parts import complain, guarded


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
