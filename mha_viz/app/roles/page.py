"""The Roles page: the measured roles of all heads, one head in detail, and two models side by side."""

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
    repeat_roles,
    replications,
)
from mha_viz.app.roles.measuring import CORPORA, GOLD, GRAMMAR, UPLOAD, find_bundled_evidence, load_evidence
from mha_viz.app.roles.overview import show_map, show_strongest_roles, show_table
from mha_viz.app.service.caches import is_ready
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url import address
from mha_viz.app.url.address import Address
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets import download_panel, inference, navigation
from mha_viz.app.widgets.parts import report_errors, show_error, show_pending_error, show_remark
from mha_viz.app.widgets.request import read_model, report_encoder_decoder
from mha_viz.app.widgets.url_controls import bind_control, go, read_option
from mha_viz.attention import Head
from mha_viz.corpus import BUILT_IN
from mha_viz.errors import MhaVizError
from mha_viz.lab import toy_maps
from mha_viz.models.getting import catalog
from mha_viz.study.own_profiles import find_own_profiles

TOY_MODELS = (toy_maps.TOY, toy_maps.REPEATER)
# Parameters of controls in the section *Numbers*.
NUMBER_PARAMETERS = {
    "relation",
    "level",
    link_search.PARAMETER,
    link_groups.PARAMETER,
}


def show_roles(location: Address) -> None:
    """Show the page for the request in the URL."""
    show_pending_error()
    try:
        model = read_model(location)
    except MhaVizError as error:
        show_error(error)
        model = catalog.choose_default()
    with st.container(key="roles_first"):
        title, choices = st.columns([7, 4], gap="large", vertical_alignment="bottom")
        with choices, st.container(horizontal=True):
            corpus = _show_choices(model, address.get_parameters().get("corpus"))
        left, right = st.columns([7, 4], gap="large")  # on a phone, the left column comes first
    with left:
        has_files, evidence, head = is_ready(model), None, None
        if has_files and not report_encoder_decoder(location, "roles are measured"):
            evidence = load_evidence(model, corpus)
        if evidence is not None:
            evidence = evidence._replace(repeats=repeat_roles.load_heads(model))
            head = _find_head(evidence, location.head)
        with title:
            headline.show_headline(model, evidence, head is not None)
        if not has_files:
            return inference.download(model)
        if evidence is not None:
            show_map(evidence, head)
            headline.show_corpus(evidence)
        elif location.head is not None:
            link_groups.show_sampling(model, location.head)
    with right:
        if evidence is not None and head is not None:
            head_card.show_head_card(model, evidence, head)
        elif evidence is not None and evidence.findings():
            show_strongest_roles(evidence)
    _link_training(model)
    repeat_roles.show_repeat_roles(model)
    if evidence is None:
        return download_panel.show_chart_downloads(charts.make_repeat_charts(model))
    _show_numbers(model, evidence, head)
    download_panel.show_chart_downloads([*charts.make_charts(model, evidence, head), *charts.make_repeat_charts(model)])


def _show_numbers(model: catalog.Model, evidence: Evidence, head: Head | None) -> None:
    """Show all measurements on request: of the open head, of all roles and relations, on other corpora and models."""
    if NUMBER_PARAMETERS & address.get_parameters().keys() or not evidence.findings():
        st.session_state.setdefault("numbers", True)
    with st.expander("Numbers", on_change="rerun", key="numbers") as box:
        if not box.open:
            return
        with st.container():  # created even if empty, so that the expanders below keep their positions and stay open
            if head is not None:
                head_card.show_numbers(model, evidence, head)
        show_table(evidence)
        headline.show_trust(evidence)
        relations.show_relations(evidence)
        replications.show_replications(model, evidence)
        relations.show_other_model(model, evidence)
        if load_built_in_corpus().digest in {profile.facts["sha256"] for profile in evidence.profiles}:
            relations.show_statistics(load_built_in_corpus())


def _link_training(model: catalog.Model) -> None:
    """Show a link to the training of a toy model."""
    name = model.name.partition("@")[0]
    if name in TOY_MODELS:
        lab_page = navigation.find_page("why heads differ")
        st.page_link(lab_page, label=":primary[**▶ Watch its heads learn**]", query_params={"experiment": name})


def _find_head(evidence: Evidence, linked_head: Head | None) -> Head | None:
    """Return the head in the URL; None, with a remark, if the model has no such head."""
    heads = evidence.profiles[0].heads()
    if linked_head is None or linked_head in heads:
        return linked_head
    show_remark(f"{linked_head} does not exist: the heads are {heads[0]} to {heads[-1]}.")
    return None


def _show_choices(model: catalog.Model, corpus: str | None) -> str:
    """Show the controls for model and corpus. Return the chosen corpus."""
    names = [m.name for m in catalog.list_offered()]
    names += [name for name in find_own_profiles() if name not in names and not catalog.is_hosted()]
    names = names if model.name in names else [*names, model.name]
    bundled_evidence = find_bundled_evidence(model)
    is_built_in = bundled_evidence is not None and {p.corpus for p in bundled_evidence.profiles} <= {*BUILT_IN}
    corpora = [c for c in CORPORA if (bundled_evidence or c != GOLD) and not (is_built_in and c == GRAMMAR)]
    if model.name not in find_own_profiles():
        corpora.remove(folder.CHOICE)
    read_option("corpus", corpora, "(?![0-9a-f]{64}$).+")
    choice = corpus if corpus in corpora or (corpus and re.fullmatch("[0-9a-f]{64}", corpus)) else corpora[0]
    bind_control(
        st.selectbox,
        "Model",
        "model",
        model.name,
        names,
        change=filters.make_model_parameters,
        go=go,
        key="roles_model",
        format_func=lambda name: next((m.label for m in catalog.list_offered() if m.name == name), name),
    )
    bind_control(
        st.segmented_control, "Corpus", "corpus", choice if choice in corpora else UPLOAD, corpora,
        go=go, key="roles_corpus", required=True, wrap=True, width="content",
        format_func=lambda name: CORPORA[GRAMMAR if is_built_in and name == GOLD else name],
    )  # fmt: skip
    if choice == folder.CHOICE:
        folder.show_steps(model.name)
    folder.report_unopened_profiles()
    if choice not in CORPORA:
        st.button("Change file", key="another_file", on_click=_change_file)
    return choice


@report_errors()
def _change_file() -> None:
    go(corpus=UPLOAD)
