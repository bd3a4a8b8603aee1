"""Show a sample of a head's links, from the strongest to the weakest, in groups, in the head's card."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import streamlit as st

from mha_viz.analysis.link_groups import DrawnLink, LinkGroup, LinkGroups, unpack_groups
from mha_viz.app.roles.link_search import choose_corpus
from mha_viz.app.roles.role_sentences import show_link
from mha_viz.app.service import searches
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.app.service.role_cases import cut_around, make_explore_parameters
from mha_viz.app.service.searches import LinkRequest, make_link_request
from mha_viz.app.service.studies import Evidence, make_built_in_corpus
from mha_viz.app.url import address
from mha_viz.app.url.address import CaseInLink
from mha_viz.app.widgets.classroom import draw_legible
from mha_viz.app.widgets.parts import escape_markdown, get_theme, report_errors, show_error, show_remark
from mha_viz.app.widgets.study_progress import show_progress, show_saving
from mha_viz.app.widgets.url_controls import bind_control, read_option
from mha_viz.attention import Head
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.figures.charts.link_map import draw_link_map
from mha_viz.figures.charts.plotly_settings import CONFIG
from mha_viz.figures.layout.caption import format_head
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_done, format_weight, percent

PARAMETER = "groups"
MAX_LISTED = 6  # this many of the largest groups are shown one by one, all others in one line
SENTENCES_PER_GROUP = 3


def show_link_groups(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show the groups of links, or a button that samples the links."""
    is_open = PARAMETER in address.get_parameters()
    with st.expander("Everything this head does", expanded=is_open):
        corpus = choose_corpus(model, evidence)
        link_request = make_link_request("groups", model, corpus.digest, head)
        st.markdown(f"Its links in {escape_markdown(corpus.name)}, grouped by what they share.")
        if not (is_open and _show_outcome(link_request)):
            st.button("Sample links", key="draw_links", on_click=_start, args=(model, corpus, link_request))


@report_errors()
def _start(model: catalog.Model, corpus: StudyCorpus, link_request: LinkRequest) -> None:
    address.go(groups="pca")
    searches.start(model, corpus, link_request)


def load_groups(model: catalog.Model, evidence: Evidence, head: Head) -> LinkGroups | None:
    """Return the groups if the URL asks for them and they are cached, else None."""
    link_request = make_link_request("groups", model, choose_corpus(model, evidence).digest, head)
    result = get_queue("groups").results.get(link_request) if PARAMETER in address.get_parameters() else None
    return None if result is None else unpack_groups(result)


def show_sampling(model: catalog.Model, head: Head) -> None:
    """Show the progress of sampling links from the built-in sentences, on a page whose corpus is not measured."""
    link_request = make_link_request("groups", model, make_built_in_corpus().digest, head)
    if PARAMETER in address.get_parameters() and get_queue("groups").find_running(link_request) is not None:
        st.markdown(f"Sampling links of **{format_head(head)}**:")
        _show_outcome(link_request)


def _show_outcome(link_request: LinkRequest) -> bool:
    """Show the groups or the progress of the sampling. Return whether links were sampled or are being sampled."""
    queue = get_queue("groups")
    result, job = queue.results.get(link_request), queue.find_running(link_request)
    if job is not None:
        show_progress(job, _describe_progress)
    elif queue.is_stopping(link_request):
        show_saving(partial(queue.is_stopping, link_request), "Sampling is being stopped.")
    elif result is not None:
        _show_groups(unpack_groups(result))
    else:
        if (failed_job := queue.find_failed(link_request)) and failed_job.error:
            show_error(failed_job.error)
        return False
    return True


def _describe_progress(job: Job) -> str:
    return f"Reading the corpus: {format_done(job.fraction)}"


def _show_groups(groups: LinkGroups) -> None:
    show_remark(
        f"{len(groups.links)} links from {groups.sentences:,} sentences. Each stands for the same share of the head’s "
        "attention. A link belongs to a rule if the head’s rules predict at least half of its weight, this one most."
    )
    left, right = st.columns(2, gap="large")
    with right:
        _show_map(groups)
    with left:
        for group in groups.groups[:MAX_LISTED]:
            _show_group(groups, group)
        smaller_groups = "; ".join(f"{percent(group.share, 0)} {group.name}" for group in groups.groups[MAX_LISTED:])
        if smaller_groups:
            st.caption(escape_markdown(f"Smaller groups: {smaller_groups}."))


def _show_group(groups: LinkGroups, group: LinkGroup) -> None:
    """Show the share and the name of a group, what its links have in common, and some of them."""
    name = f"unexplained: {group.name}" if group.kind == "unexplained" else group.name
    st.markdown(f"**{percent(group.share, 0)} {escape_markdown(name)}**")
    strong_count = sum(group.tenths[: len(group.tenths) // 2])
    strength = f"{strong_count} of {len(group.links)} among the stronger half of its links"
    description = "; ".join([*group.common, strength])
    st.caption(escape_markdown(f"{description[:1].upper()}{description[1:]}."))
    for number in group.spread(SENTENCES_PER_GROUP):
        _show_sentence(groups.head, groups.links[number])


def _show_sentence(head: Head, link: DrawnLink) -> None:
    ends = [end.word for end in (link.query, link.key) if end.word is not None]
    axis: Literal["q", "k"] = "k" if link.query.word is None else "q"
    parameters: Any = make_explore_parameters(link.sentence, CaseInLink(head, axis, ends[0]), "") if ends else None
    show_link(cut_around(link.sentence.forms, ends or [0]), parameters)
    st.caption(escape_markdown(f"{link.pair}, weight {format_weight(link.weight)}"))


def _show_map(groups: LinkGroups) -> None:
    methods = list(groups.points)
    read_option(PARAMETER, groups.points, ".+")
    method = read_method(groups)
    if len(methods) > 1:
        bind_control(
            st.segmented_control, "Map", PARAMETER, method, methods,
            go=address.go, key="link_map_method", required=True, format_func=str.upper,
        )  # fmt: skip
    alt = f"Queries and keys of the links of {groups.head}, in the colours of their groups."
    st.plotly_chart(
        draw_legible(draw_link_map(groups, get_theme(), method)), key="link_map", theme=None, config=CONFIG, alt=alt
    )


def read_method(groups: LinkGroups) -> str:
    """Return the method that draws the map: the one in the URL, or the first."""
    method = address.get_parameters().get(PARAMETER, "")
    return method if method in groups.points else next(iter(groups.points))
