"""Show sentences for and against the roles of a head, each a link to its gold arcs on the Explore page.

The sentences are those bundled with a profile, the built-in ones, and those of the visitor's own file. A profile of
another visitor's file contains only numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from mha_viz.analysis.examples import Example, list_spans
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.repeats import CORPUS
from mha_viz.app.roles.measuring import FILES_KEY
from mha_viz.app.service import role_cases, studies
from mha_viz.app.service.role_cases import RoleCase
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets import navigation
from mha_viz.app.widgets.parts import escape_markdown, show_error
from mha_viz.attention import Head
from mha_viz.corpus.excerpts import SentenceSpan
from mha_viz.corpus.treebank import Sentence
from mha_viz.corpus.uploads import NEUTRAL_NAME
from mha_viz.errors import MhaVizError
from mha_viz.figures.words.glosses import label_relation
from mha_viz.figures.words.role_words import DIRECTIONS, SHORT_NAMES, group_by_head
from mha_viz.models.getting import catalog

KINDS = {"right": "Right, with the largest weight", "wrong": "Wrong, with the largest weight", "random": "At random"}
NOT_BUNDLED = (
    "Its licence does not allow this app to share them. Measure your own corpus{annotation}: *your file* above."
)
COREFERENCE = " with coreference (`Entity=`)"
SELECTION_NOTE = "Chosen from all cases in {corpus}."


def show_sentences(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show the recorded cases for the roles of a head."""
    examples, corpora = list_readable_cases(model, evidence, head)
    findings = [f for f in group_by_head(evidence.findings()).get(head, []) if f.corpora != (CORPUS,)]
    if not findings:
        return
    st.markdown("**Sentences for and against each role**")
    readable_roles = {(example.role, example.detail) for example in examples}
    roles = [(f.role, f.detail) for f in findings if (f.role, f.detail) in readable_roles]
    if roles:
        _show_role(head, roles, examples, corpora)
    _explain_missing_sentences([f for f in findings if (f.role, f.detail) not in readable_roles])


def show_right_case(case: RoleCase | None) -> None:
    """Show a sentence in which the head is right, or say that there is none."""
    if case is None:
        st.caption("No sentence is stored in which this head does this.")
    else:
        _show_case(case)


def _explain_missing_sentences(findings: Sequence[Finding]) -> None:
    """Say for which roles no sentences can be shown, by corpus, and what the visitor can do."""
    for corpora in dict.fromkeys(finding.corpora for finding in findings):
        roles = "; ".join(name_role(f.role, f.detail) for f in findings if f.corpora == corpora)
        annotation = COREFERENCE if any(f.role == "coreference" for f in findings) else ""
        explanation = NOT_BUNDLED.format(annotation=annotation)
        if corpora == (NEUTRAL_NAME,):
            explanation = "Only the person who chose the file sees them, during the same visit."
        st.caption(
            escape_markdown(f"No sentences of {' and '.join(corpora)} can be shown here for {roles}. ") + explanation
        )


def _show_role(
    head: Head, roles: Sequence[tuple[str, str]], examples: Sequence[Example], corpora: Sequence[str]
) -> None:
    """Show the cases of one role, which the visitor can choose."""
    st.caption(SELECTION_NOTE.format(corpus=escape_markdown(" and ".join(corpora))))
    role = roles[0]
    if len(roles) > 1:
        role = st.selectbox("Role", roles, key=f"card_role_{head}", format_func=lambda role: name_role(*role)) or role
    else:
        st.markdown(escape_markdown(name_role(*role)))
    cases = [example for example in examples if (example.role, example.detail) == role]
    columns = st.container(key="role_cases").columns(len(KINDS), gap="large")
    for column, (kind, title) in zip(columns, KINDS.items(), strict=True):
        with column:
            st.markdown(f"**{title}**")
            cases_of_kind = [example for example in cases if example.kind == kind]
            for example in cases_of_kind:
                _show_case(role_cases.describe_case(example))
            if not cases_of_kind:
                st.markdown("none")


def name_role(role: str, detail: str) -> str:
    """Name a role in a few words."""
    if role == "syntax":
        relation, direction = detail.split()
        return f"{label_relation(relation)}, {DIRECTIONS[direction]}"
    return f"{role}: {SHORT_NAMES[detail] if role == 'delimiter' else detail.replace('_', ' ')}"


def list_readable_cases(model: catalog.Model, evidence: Evidence, head: Head) -> tuple[list[Example], list[str]]:
    """Return the cases of a head that this visitor may read, and the names of their corpora."""
    examples: list[Example] = []
    corpora: list[str] = []
    for profile in evidence.profiles:
        if "evidence" in profile.tables:
            cases = role_cases.select_cases(head, profile, _load_sentences(model, profile))
            examples += cases
            corpora += [_name_corpus(profile)] * bool(cases)
    return examples, corpora


def _name_corpus(profile: Profile) -> str:
    if profile.facts["sha256"] == load_built_in_corpus().digest:
        return "the built-in sentences"
    names: dict[str, str] = st.session_state.get(FILES_KEY, {})
    return names.get(profile.facts["sha256"], profile.corpus)


def _load_sentences(model: catalog.Model, profile: Profile) -> Mapping[SentenceSpan, Sentence]:
    """Return the sentences of a profile's cases that this visitor may read."""
    sentences, digest = role_cases.load_bundled_sentences(profile), profile.facts["sha256"]
    if sentences or digest not in st.session_state.get(FILES_KEY, {}):
        return sentences
    try:
        with st.spinner("Reading the file…", show_time=True):
            return studies.load_excerpts(model, digest, list_spans(profile.tables["evidence"]))
    except MhaVizError as error:
        show_error(error)
        return {}


def _show_case(case: RoleCase) -> None:
    """Show a sentence as a link, and the head's answer below it."""
    show_link(case.excerpt, case.parameters)
    st.caption(escape_markdown(case.answer))


def show_link(label: str, parameters: dict[str, str] | None) -> None:
    """Show ``label`` as a link to the Explore page with these URL parameters; without parameters, as plain text."""
    if parameters is None:
        st.markdown(escape_markdown(label))
    else:
        st.page_link(navigation.find_page("explore"), label=escape_markdown(label), query_params=parameters)
