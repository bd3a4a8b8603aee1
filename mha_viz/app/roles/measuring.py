"""Load the measurements for the Roles page, or show the controls that start them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from mha_viz.analysis.profile import Profile
from mha_viz.app.roles import folder
from mha_viz.app.service import studies
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.app.service.studies import Evidence, load_bundled, make_built_in_corpus
from mha_viz.app.url import address
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets.parts import escape_markdown, report_errors, show_error, show_remark
from mha_viz.app.widgets.study_progress import show_progress, show_saving
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.errors import Cancelled, MhaVizError
from mha_viz.models.getting import catalog
from mha_viz.numerals import counted, format_done
from mha_viz.text import clean

GOLD, GRAMMAR, UPLOAD = "gold", "grammar", "file"  # values of the URL parameter "corpus"
POLL_INTERVAL_S = 0.1  # seconds between two polls while a file is read
FILES_KEY = "roles_files"  # session key: the files measured during this visit, as digest → name
CORPORA = {
    GOLD: "published",
    folder.CHOICE: "profiles of this server",
    GRAMMAR: "built-in",
    UPLOAD: "your file",
}


def find_bundled_evidence(model: catalog.Model) -> Evidence | None:
    """Return the bundled measurements of a model that comes with the app; None for other models."""
    return load_bundled(model.name) if model.kind in ("bundled", "own") else None


def load_evidence(model: catalog.Model, corpus: str) -> Evidence | None:
    """Return the measurements of a model on a corpus; None while the page shows how to measure them instead."""
    if corpus == folder.CHOICE:
        return folder.load_evidence(model.name)
    if corpus == GOLD:
        return find_bundled_evidence(model)
    if corpus == UPLOAD:
        _show_upload(model)
        return None
    digest = load_built_in_corpus().digest if corpus == GRAMMAR else corpus
    profile = studies.find_profile(model, digest)
    if profile is not None:
        write_error = studies.find_write_error(model, digest)
        if write_error is not None:
            show_remark(
                "These results will be lost when the server stops: they could not be written to disk. "
                f"{write_error.problem}"
            )
        return Evidence("the built-in sentences" if corpus == GRAMMAR else _name_corpus(profile), (profile,))
    running_study = studies.find_running(model, digest)
    if running_study is not None:
        show_progress(running_study, partial(_describe_progress, model))
        return None
    if studies.is_stopping(model, digest):
        show_saving(
            partial(studies.is_stopping, model, digest), "Measuring is being stopped; the results so far are kept."
        )
        return None
    failure = studies.find_failure(model, digest)
    if failure is not None:
        error, failed_corpus = failure
        show_error(error)
        st.button("Continue", key="go_on", on_click=_start, args=(model, failed_corpus))
    elif corpus == GRAMMAR:
        _offer_measurement(model)
    else:
        show_remark("The results in this link were measured on a file that is no longer on this server.")
        _show_upload(model)
    return None


def _offer_measurement(model: catalog.Model) -> None:
    count = len(load_built_in_corpus().sentences)
    st.markdown(
        f"The heads have not been measured on the built-in corpus yet: {count:,} English sentences with their "
        "correct dependencies and coreference. A small model reads them in seconds, a large one in minutes."
    )
    st.button("Measure the heads", type="primary", key="measure", on_click=_start, args=(model, make_built_in_corpus()))


@report_errors()
def _start(model: catalog.Model, corpus: StudyCorpus) -> None:
    studies.start(model, corpus)


def _describe_progress(model: catalog.Model, study: Job) -> str:
    studies_ahead = get_queue("study").count_ahead(study)
    if studies_ahead:
        return f"Waiting for {counted(studies_ahead, 'study', 'studies')} of other visitors"
    return f"Reading the corpus with {escape_markdown(model.label)}: {format_done(study.fraction)}"


def _show_upload(model: catalog.Model) -> None:
    st.markdown(
        "CoNLL-U: all measures (coreference if MISC has `Entity=`, as in GUM). GAP table: pronouns and names. Plain "
        "text, one sentence per line: position, delimiters, entropy and distances. At most 8 MB. Only numbers are "
        "stored, and which lines were left out. Only you see the file’s name and sentences, during this visit."
    )
    file = st.file_uploader("Corpus", type=["conllu", "conllup", "cupt", "conll", "tsv", "txt"], key="corpus_file")
    for digest, name in st.session_state.get(FILES_KEY, {}).items():
        st.button(
            escape_markdown(name),
            key=f"file_{digest}",
            type="tertiary",
            on_click=address.go,
            kwargs={"corpus": digest},
            help=None if studies.find_profile(model, digest) else "Not measured with this model yet.",
        )
    if file is None:
        return
    try:
        corpus = _read_upload(file.getvalue(), clean(file.name)[:80])
    except MhaVizError as error:
        show_error(error)
        return
    for line in corpus.left_out:
        show_remark(f"Left out: {line}")
    st.button(
        f"Measure {escape_markdown(corpus.name)}",
        type="primary",
        key="measure_file",
        on_click=_start_file,
        args=(model, corpus),
    )


def _read_upload(data: bytes, name: str) -> StudyCorpus:
    """Parse an uploaded file and return its corpus.

    Raises CorpusError, and Busy. Parsing stops if no tab waits for it.
    """
    corpus = studies.find_parsed_corpus(data, name)
    if corpus is not None:
        return corpus
    job = studies.start_parsing(data, name)
    with st.spinner("Reading the file…", show_time=True):
        placeholder = st.empty()
        while not job.wait(POLL_INTERVAL_S):
            job.heartbeat()
            placeholder.empty()  # Streamlit ends an abandoned run here
    corpus = studies.find_parsed_corpus(data, name)
    if corpus is None:
        raise job.error or Cancelled("The file was not read completely.", "Choose it again.")
    return corpus


def _name_corpus(profile: Profile) -> str:
    """Return the name of a corpus: its file name for visitors who uploaded it during this visit, else a description."""
    names: dict[str, str] = st.session_state.get(FILES_KEY, {})
    return names.get(profile.facts["sha256"], profile.corpus)


@report_errors()
def _start_file(model: catalog.Model, corpus: StudyCorpus) -> None:
    studies.start(model, corpus)
    st.session_state[FILES_KEY] = {**st.session_state.get(FILES_KEY, {}), corpus.digest: corpus.name}
    address.go(corpus=corpus.digest)
