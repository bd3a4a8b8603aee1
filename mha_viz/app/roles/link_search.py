"""Search a head's strongest links by the words at their ends, in the card of the head. The URL holds the search."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from mha_viz.analysis.links import Conditions, unpack_links
from mha_viz.app.roles.measuring import FILES_KEY
from mha_viz.app.roles.role_sentences import show_link
from mha_viz.app.service import searches, studies
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.app.service.role_cases import cut_around, make_explore_parameters
from mha_viz.app.service.searches import LinkRequest, make_link_request
from mha_viz.app.service.studies import Evidence, make_built_in_corpus
from mha_viz.app.url import address
from mha_viz.app.url.address import CaseInLink
from mha_viz.app.widgets.parts import escape_markdown, report_errors, show_error, show_remark
from mha_viz.app.widgets.study_progress import show_progress, show_saving
from mha_viz.attention import Head
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.figures.words.glosses import label_relation
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_done, format_weight
from mha_viz.text import clean

PARAMETER = "search"
ALL = "all"  # a search without conditions
MAX_CHARACTERS = 60  # maximum length of a condition
ROWS = {
    "Query": {"query_word": "Word", "query_pos": "Part of speech", "query_relation": "Relation to its head"},
    "Key": {"key_word": "Word", "key_pos": "Part of speech", "key_relation": "Relation to its head"},
    "Dependency": {
        "relation": "Relation",
        "dependent_word": "Dependent",
        "dependent_pos": "The dependent’s part of speech",
        "governor_word": "Its head",
        "governor_pos": "The head’s part of speech",
    },
}
FIELDS = tuple(name for row in ROWS.values() for name in row)


def show_link_search(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show the search form and, if the URL holds a search, its results or its progress."""
    parameter = address.get_parameters().get(PARAMETER)
    with st.expander("Search this head’s links", expanded=parameter is not None):
        corpus = choose_corpus(model, evidence)
        conditions = read_conditions(parameter or "")
        _show_form(model, corpus, head, conditions, parameter or "")
        if parameter is not None:
            _show_outcome(model, corpus, head, conditions)


def read_conditions(parameter: str) -> dict[str, str]:
    """Return the conditions in the URL parameter."""
    values = dict(parse_qsl(parameter))
    return {name: clean(values[name])[:MAX_CHARACTERS].strip() for name in FIELDS if values.get(name, "").strip()}


def choose_corpus(model: catalog.Model, evidence: Evidence) -> StudyCorpus:
    """Return the corpus to search: the visitor's own file, or else the built-in sentences."""
    digest = evidence.profiles[0].facts["sha256"]
    names: dict[str, str] = st.session_state.get(FILES_KEY, {})
    corpus = studies.find_measured_corpus(model, digest) if digest in names else None
    return make_built_in_corpus() if corpus is None else corpus._replace(name=names[digest])


def _show_form(
    model: catalog.Model, corpus: StudyCorpus, head: Head, conditions: dict[str, str], parameter: str
) -> None:
    st.markdown(
        f"Searches {escape_markdown(corpus.name)} for links from each word to the word with its largest weight. "
        "Empty fields match anything."
    )
    with st.form(f"search_{head}", border=False):
        for title, row in ROWS.items():
            label, *columns = st.columns([1, *[3] * len(row)], vertical_alignment="bottom")
            label.markdown(f"**{title}**")
            for column, (name, field_label) in zip(columns, row.items(), strict=True):
                value = conditions.get(name, "")
                column.text_input(field_label, value, key=_make_key(name, parameter), max_chars=MAX_CHARACTERS)
        st.form_submit_button("Search", key="search_links", on_click=_start, args=(model, corpus, head, parameter))


def _make_key(name: str, parameter: str) -> str:
    """Return the key of a field. It contains the URL's value, so that Back also changes the field."""
    return f"search_{name}_{parameter}"


@report_errors()
def _start(model: catalog.Model, corpus: StudyCorpus, head: Head, parameter: str) -> None:
    conditions = {
        name: clean(str(st.session_state.get(_make_key(name, parameter)) or ""))[:MAX_CHARACTERS].strip()
        for name in FIELDS
    }
    parameter_value = urlencode({name: value for name, value in conditions.items() if value})
    address.go(search=parameter_value or ALL)
    searches.start(model, corpus, _make_request(model, corpus, head, read_conditions(parameter_value)))


def _make_request(model: catalog.Model, corpus: StudyCorpus, head: Head, conditions: dict[str, str]) -> LinkRequest:
    return make_link_request("search", model, corpus.digest, head, tuple(Conditions(**conditions)))


def _show_outcome(model: catalog.Model, corpus: StudyCorpus, head: Head, conditions: dict[str, str]) -> None:
    search = _make_request(model, corpus, head, conditions)
    searches_queue = get_queue("search")
    result, job = searches_queue.results.get(search), searches_queue.find_running(search)
    if job is not None:
        show_progress(job, _describe_progress)
    elif searches_queue.is_stopping(search):
        note = "The search is being stopped; its results so far follow."
        show_saving(partial(searches_queue.is_stopping, search), note)
    elif result is not None:
        _show_result(result, head)
    elif (failed_job := searches_queue.find_failed(search)) and failed_job.error:
        show_error(failed_job.error)


def _describe_progress(job: Job) -> str:
    return f"Reading the corpus: {format_done(job.fraction)}"


def _show_result(result: dict[str, Any], head: Head) -> None:
    st.markdown(
        f"**{result['matches']:,}** of {result['links_read']:,} links match, in "
        f"**{result['matching_sentences']:,}** of {result['sentences_read']:,} sentences."
    )
    if result["sentences_read"] < result["sentences"]:
        show_remark(f"The search was stopped after {result['sentences_read']:,} of {result['sentences']:,} sentences.")
    links = unpack_links(result)
    if len(links) < result["matching_sentences"]:
        st.caption(f"The strongest links of {len(links)} sentences, one each.")
    left, right = st.columns([3, 2], gap="large")
    with left:
        for match in links:
            gold = ".".join(part.partition(":")[0] for part in match.relation if part)
            excerpt = cut_around(match.sentence.forms, (match.query, match.key))
            show_link(excerpt, make_explore_parameters(match.sentence, CaseInLink(head, "q", match.query), gold))
            ends = " → ".join(f"“{match.sentence.forms[word]}”" for word in (match.query, match.key))
            st.caption(
                escape_markdown(
                    f"{ends}, weight {format_weight(match.weight)}"
                    f"{f', {match.relation[0]}' if match.relation[0] else ''}"
                )
            )
    if result["counts"]:
        with right:
            st.dataframe(_tabulate_counts(result["counts"]), hide_index=True, width="stretch", key="search_counts")


def _tabulate_counts(counts: list[list[Any]]) -> Any:
    import pandas as pd

    columns = ["from", "to", "relation", "direction", "links"]
    lines = sorted(counts, key=lambda line: (-line[-1], line))
    table = pd.DataFrame(lines, columns=columns)
    direction_labels = {"dep_to_head": "→ its syntactic head", "head_row": "→ dependent"}
    return table.assign(
        relation=table["relation"].map(label_relation), direction=table["direction"].replace(direction_labels)
    )
