"""Measuring the roles of a model that the Explore page shows, where they are not known yet."""

from __future__ import annotations

import streamlit as st

from mha_viz.errors import MhaVizError
from mha_viz.models import catalog
from mha_viz.ui.annotated import built_in
from mha_viz.ui.jobs import Job
from mha_viz.ui.parts import complain, complain_later, guarded, plain
from mha_viz.ui.request import page_request
from mha_viz.ui.studies import sentences_given, studies


def show(name: str) -> None:
    """The progress of the study of this model over the built-in sentences, while one runs."""
    try:
        model = catalog.resolve(name)
    except MhaVizError:  # a model that is not offered any more
        return
    study = studies().under_way(model, built_in().digest)
    failed = studies().failed(model, built_in().digest)
    if study is not None:
        _progress(study, model)
    elif failed is not None:
        complain(failed[0])


@guarded()
def start() -> None:
    """Measure the model on the page, or join the study that is under way."""
    where = page_request().where
    try:
        studies().start(catalog.resolve(where.model) if where.model else catalog.default(), sentences_given())
    except MhaVizError as error:
        complain_later(error)


@st.fragment(run_every=0.5)
@guarded(complain)
def _progress(study: Job, model: catalog.Model) -> None:
    if study.finished or study.stopped():
        st.rerun()
    study.look()
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.progress(study.fraction, text=f"The roles of {plain(model.label)} are being measured: {study.fraction:.0%}")
    right.button("Stop", key="stop_measuring", on_click=study.let_go, width="stretch")
