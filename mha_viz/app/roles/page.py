"""The Roles page: what each head does, as measured; one head in detail; two models side by side."""

from __future__ import annotations

import re

import streamlit as st

from mha_viz.app.roles import (
    charts,
    filters,
    folder,
    head_card,
    headline,
    link_groups,
    link_search,
    relations,
    repeated,
    replications,
)
from mha_viz.app.roles.measuring import CORPORA, GOLD, GRAMMAR, UPLOAD, evidence_on, shipped_evidence
from mha_viz.app.roles.overview import show_map, show_strongest, show_table
from mha_viz.app.service.caches import ready
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url import address
from mha_viz.app.url.address import Address
from mha_viz.app.url.annotated import built_in
from mha_viz.app.widgets import download_panel, inference, navigation
from mha_viz.app.widgets.bound import bound, go, in_link
from mha_viz.app.widgets.parts import complain, guarded, remark, say_complaint
from mha_viz.app.widgets.request import model_of, refused
from mha_viz.attention import Head
from mha_viz.corpus import BUILT_IN
from mha_viz.errors import MhaVizError
from mha_viz.lab import toy_maps
from mha_viz.models.getting import catalog
from mha_viz.study.own_profiles import own_profiles

TRAINED = (toy_maps.TOY, toy_maps.REPEATER)
NUMBERS = {
    "relation",
    "level",
    link_search.PARAMETER,
    link_groups.PARAMETER,
}  # parameters of controls among the numbers


def show_roles(where: Address) -> None:
    """Show the page for the request in the URL."""
    say_complaint()
    try:
        model = model_of(where)
    except MhaVizError as error:
        complain(error)
        model = catalog.default()
    with st.container(key="roles_first"):
        title, choices = st.columns([7, 4], gap="large", vertical_alignment="bottom")
        with choices, st.container(horizontal=True):
            corpus = _choices(model, address.now().get("corpus"))
        left, right = st.columns([7, 4], gap="large")  # on a phone, the left one comes first
    with left:
        is_here, evidence, head = ready(model), None, None
        if is_here and not refused(where, "roles are measured"):
            evidence = evidence_on(model, corpus)
        if evidence is not None:
            evidence = evidence._replace(repeats=repeated.measured_heads(model))
            head = _existing(evidence, where.head)
        with title:
            headline.show_headline(model, evidence, head is not None)
        if not is_here:
            return inference.download(model)
        if evidence is not None:
            show_map(evidence, head)
            headline.corpus(evidence)
        elif where.head is not None:
            link_groups.show_under_way(model, where.head)
    with right:
        if evidence is not None and head is not None:
            head_card.show_head_card(model, evidence, head)
        elif evidence is not None and evidence.findings():
            show_strongest(evidence)
    _learning(model)
    repeated.show_repeated(model)
    if evidence is None:
        return download_panel.of_charts(charts.on_repeats(model))
    _numbers(model, evidence, head)
    download_panel.of_charts([*charts.charts(model, evidence, head), *charts.on_repeats(model)])


def _numbers(model: catalog.Model, evidence: Evidence, head: Head | None) -> None:
    """Show all measurements on request: of the open head, of all roles and relations, on other corpora and models."""
    if NUMBERS & address.now().keys() or not evidence.findings():
        st.session_state.setdefault("numbers", True)
    with st.expander("Numbers", on_change="rerun", key="numbers") as box:
        if not box.open:
            return
        with st.container():  # even if empty, so that what follows keeps its position and stays open
            if head is not None:
                head_card.show_numbers(model, evidence, head)
        show_table(evidence)
        headline.trust(evidence)
        relations.show_relations(evidence)
        replications.show_replications(model, evidence)
        relations.beside_another_model(model, evidence)
        if built_in().digest in {profile.facts["sha256"] for profile in evidence.profiles}:
            relations.statistics(built_in())


def _learning(model: catalog.Model) -> None:
    """Show a link to the training of a toy model."""
    name = model.name.partition("@")[0]
    if name in TRAINED:
        why = navigation.page("why heads differ")
        st.page_link(why, label=":primary[**▶ Watch its heads learn**]", query_params={"experiment": name})


def _existing(evidence: Evidence, linked: Head | None) -> Head | None:
    """Return the head in the URL; None, with a remark, if the model has no such head."""
    heads = evidence.profiles[0].heads()
    if linked is None or linked in heads:
        return linked
    remark(f"{linked} does not exist: the heads are {heads[0]} to {heads[-1]}.")
    return None


def _choices(model: catalog.Model, corpus: str | None) -> str:
    """Show the controls for model and corpus. Return the chosen corpus."""
    names = [m.name for m in catalog.offered()]
    names += [name for name in own_profiles() if name not in names and not catalog.hosted()]
    names = names if model.name in names else [*names, model.name]
    shipped = shipped_evidence(model)
    is_built_in = shipped is not None and {p.corpus for p in shipped.profiles} <= {*BUILT_IN}
    offered = [c for c in CORPORA if (shipped or c != GOLD) and not (is_built_in and c == GRAMMAR)]
    if model.name not in own_profiles():
        offered.remove(folder.CHOICE)
    in_link("corpus", offered, "(?![0-9a-f]{64}$).+")
    chosen = corpus if corpus in offered or (corpus and re.fullmatch("[0-9a-f]{64}", corpus)) else offered[0]
    bound(
        st.selectbox, "Model", "model", model.name, names, change=filters.of_model, go=go, key="roles_model",
        format_func=lambda name: next((m.label for m in catalog.offered() if m.name == name), name)
    )  # fmt: skip
    bound(
        st.segmented_control, "Corpus", "corpus", chosen if chosen in offered else UPLOAD, offered,
        go=go, key="roles_corpus", required=True, wrap=True, width="content",
        format_func=lambda name: CORPORA[GRAMMAR if is_built_in and name == GOLD else name],
    )  # fmt: skip
    if chosen == folder.CHOICE:
        folder.show_steps(model.name)
    folder.show_unopened()
    if chosen not in CORPORA:
        st.button("Another file", key="another_file", on_click=_on_file)
    return chosen


@guarded()
def _on_file() -> None:
    go(corpus=UPLOAD)
