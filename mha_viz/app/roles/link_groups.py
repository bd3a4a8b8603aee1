"""Everything that a head does, in its card: links from the strongest to the weakest, in groups."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import streamlit as st

from mha_viz.analysis.link_groups import DrawnLink, LinkGroup, LinkGroups, unpacked
from mha_viz.app.roles.link_search import source_of
from mha_viz.app.roles.readable import show_link
from mha_viz.app.service import searches
from mha_viz.app.service.jobs import Job, queue_of
from mha_viz.app.service.role_cases import around, link
from mha_viz.app.service.searches import Wanted, wanted
from mha_viz.app.service.studies import Evidence, sentences_given
from mha_viz.app.url import address
from mha_viz.app.url.address import CaseInLink
from mha_viz.app.widgets.bound import bound, in_link
from mha_viz.app.widgets.classroom import legible
from mha_viz.app.widgets.parts import complain, guarded, plain, remark, theme
from mha_viz.app.widgets.study_progress import progress, stopping
from mha_viz.attention import Head
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.figures.charts.link_map import link_map
from mha_viz.figures.charts.plotly_settings import CONFIG
from mha_viz.figures.layout.caption import both
from mha_viz.models.getting import catalog
from mha_viz.numerals import done, percent, weight

PARAMETER = "groups"
LISTED = 6  # groups that are shown one by one
SENTENCES = 3  # of a group


def show_link_groups(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show the button that samples the links, or their groups."""
    is_open = PARAMETER in address.now()
    with st.expander("Everything this head does", expanded=is_open):
        source = source_of(model, evidence)
        what = wanted("groups", model, source.digest, head)
        st.markdown(f"Its links in {plain(source.name)}, grouped by what they share.")
        if not (is_open and _outcome(what)):
            st.button("Sample links", key="draw_links", on_click=_start, args=(model, source, what))


@guarded()
def _start(model: catalog.Model, source: StudyCorpus, what: Wanted) -> None:
    address.go(groups="pca")
    searches.start(model, source, what)


def stored(model: catalog.Model, evidence: Evidence, head: Head) -> LinkGroups | None:
    """Return the groups if the URL asks for them and they are cached, else None."""
    what = wanted("groups", model, source_of(model, evidence).digest, head)
    result = queue_of("groups").results.get(what) if PARAMETER in address.now() else None
    return None if result is None else unpacked(result)


def show_under_way(model: catalog.Model, head: Head) -> None:
    """Show the sampling of links from the built-in sentences while it runs.

    For pages whose corpus is not measured.
    """
    what = wanted("groups", model, sentences_given().digest, head)
    if PARAMETER in address.now() and queue_of("groups").under_way(what) is not None:
        st.markdown(f"Sampling links of **{both(head)}**:")
        _outcome(what)


def _outcome(what: Wanted) -> bool:
    """Show the groups, or the progress of the sampling; return False if nobody has asked for them."""
    queue = queue_of("groups")
    result, job = queue.results.get(what), queue.under_way(what)
    if job is not None:
        progress(job, _progress_words)
    elif queue.stopping(what):
        stopping(partial(queue.stopping, what), "Sampling is being stopped.")
    elif result is not None:
        _show(unpacked(result))
    else:
        if (failed := queue.failed(what)) and failed.error:
            complain(failed.error)
        return False
    return True


def _progress_words(job: Job) -> str:
    return f"Reading the corpus: {done(job.fraction)}"


def _show(groups: LinkGroups) -> None:
    remark(
        f"{len(groups.links)} links from {groups.sentences:,} sentences. Each stands for the same share of the head’s "
        "attention. A link belongs to a rule if the head’s rules predict at least half of its weight, this one most."
    )
    left, right = st.columns(2, gap="large")
    with right:
        _map(groups)
    with left:
        for group in groups.groups[:LISTED]:
            _group(groups, group)
        smaller_groups = "; ".join(f"{percent(group.share, 0)} {group.name}" for group in groups.groups[LISTED:])
        if smaller_groups:
            st.caption(plain(f"Smaller groups: {smaller_groups}."))


def _group(groups: LinkGroups, group: LinkGroup) -> None:
    """Show the share and the name of a group, what its links have in common, and some of them."""
    name = f"unexplained: {group.name}" if group.kind == "unexplained" else group.name
    st.markdown(f"**{percent(group.share, 0)} {plain(name)}**")
    strong = sum(group.tenths[: len(group.tenths) // 2])
    strength = f"{strong} of {len(group.links)} among the stronger half of its links"
    common = "; ".join([*group.common, strength])
    st.caption(plain(f"{common[:1].upper()}{common[1:]}."))
    for number in group.spread(SENTENCES):
        _sentence(groups.head, groups.links[number])


def _sentence(head: Head, sampled: DrawnLink) -> None:
    ends = [end.word for end in (sampled.query, sampled.key) if end.word is not None]
    axis: Literal["q", "k"] = "k" if sampled.query.word is None else "q"
    query: Any = link(sampled.sentence, CaseInLink(head, axis, ends[0]), "") if ends else None
    show_link(around(sampled.sentence.forms, ends or [0]), query)
    st.caption(plain(f"{sampled.pair}, weight {weight(sampled.weight)}"))


def _map(groups: LinkGroups) -> None:
    methods = list(groups.points)
    in_link(PARAMETER, groups.points, ".+")
    chosen = method_of(groups)
    if len(methods) > 1:
        bound(
            st.segmented_control, "Map", PARAMETER, chosen, methods,
            go=address.go, key="link_map_method", required=True, format_func=str.upper,
        )  # fmt: skip
    alt = f"Queries and keys of the links of {groups.head}, in the colours of their groups."
    st.plotly_chart(legible(link_map(groups, theme(), chosen)), key="link_map", theme=None, config=CONFIG, alt=alt)


def method_of(groups: LinkGroups) -> str:
    """Return the method that draws the map: the one in the URL, or the first."""
    method = address.now().get(PARAMETER, "")
    return method if method in groups.points else next(iter(groups.points))
