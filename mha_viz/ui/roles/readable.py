"""Sentences for and against the roles of one head, each one click away from its gold arcs on the Explore page.

The sentences are those shipped with a profile, the built-in ones, and those of the visitor's own file. A profile of
another visitor's file contains only numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

import streamlit as st

from mha_viz.analysis.examples import Example, examples, spans
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.repeats import CORPUS
from mha_viz.attention import Head
from mha_viz.corpus.conllu import as_conllu
from mha_viz.corpus.excerpts import SentenceSpan, excerpts, shorter
from mha_viz.corpus.treebank import Sentence
from mha_viz.corpus.uploads import NEUTRAL
from mha_viz.errors import MhaVizError
from mha_viz.figures.glosses import gloss, labelled
from mha_viz.figures.role_words import DIRECTIONS, SHORT, by_head
from mha_viz.models import catalog
from mha_viz.numerals import weight
from mha_viz.reader import verbs
from mha_viz.request import Request
from mha_viz.ui import address, navigation, studies
from mha_viz.ui.address import CaseInLink
from mha_viz.ui.annotated import Annotated, annotated, built_in
from mha_viz.ui.caches import model_service, ready
from mha_viz.ui.parts import complain, plain
from mha_viz.ui.roles.measuring import FILES
from mha_viz.ui.studies import Evidence

KINDS = {"right": "Right, with the largest weight", "wrong": "Wrong, with the largest weight", "random": "At random"}
NOT_SHIPPED = (
    "Its licence does not allow this app to pass them on. Measure a corpus of your own{annotation}: *your file* above."
)
COREFERENCE = " with coreference (`Entity=`)"
AROUND, IN_SHORT = 12, 5  # words that are shown on each side of a link, and in a head's card
FEWEST = 4  # words of the sentence in a head's card, in which a link can be seen
PATIENCE = 10  # seconds for the reading of an example
RULE = "Chosen from all cases in {corpus}."


def show_sentences(model: catalog.Model, evidence: Evidence, head: Head) -> None:
    """Show the recorded cases for the roles of a head."""
    shown, corpora = _examples(model, evidence, head)
    findings = [f for f in by_head(evidence.findings()).get(head, []) if f.corpora != (CORPUS,)]
    if not findings:
        return
    st.markdown("**Sentences for and against each role**")
    readable = {(example.role, example.detail) for example in shown}
    roles = [(f.role, f.detail) for f in findings if (f.role, f.detail) in readable]
    if roles:
        _role(head, roles, shown, corpora)
    _missing([finding for finding in findings if (finding.role, finding.detail) not in readable])


class RoleCase(NamedTuple):
    """A sentence in which a head does what its role says: its words, the parameters of Explore that show it there (None
    if it is too long for a link), and the answer of the head."""

    words: str
    parameters: dict[str, str] | None
    answer: str


def right_case(
    model: catalog.Model, evidence: Evidence, head: Head, role: tuple[str, str] | None = None
) -> RoleCase | None:
    """Find a sentence in which a head is right.

    The recorded case with the largest weight, of those in FEWEST words or more if there are any; or, of coreference
    without sentences that can be shown, the example in its gloss if the model, which reads it now, is right there.

    Args:
        role: its name and detail; by default the head's first role that has such a sentence.
    """
    shown, _ = _examples(model, evidence, head)
    for finding in by_head(evidence.findings()).get(head, []):
        name = (finding.role, finding.detail)
        if role not in (None, name):
            continue
        right = [example for example in shown if (example.role, example.detail) == name and example.right]
        if right:
            return _recorded(next((e for e in right if len(e.sentence.forms) >= FEWEST), right[0]), IN_SHORT)
        if finding.role == "coreference" and (meaning := gloss(finding.detail)):
            in_gloss = _in_gloss(model, head, meaning.example)
            if in_gloss is not None:
                return in_gloss
    return None


def show_right_case(case: RoleCase | None) -> None:
    """Show a sentence in which a head is right, or say that there is none."""
    if case is None:
        st.caption("No sentence is stored in which this head does it.")
    else:
        _show_case(case)


def _in_gloss(model: catalog.Model, head: Head, example: str) -> RoleCase | None:
    """The example of a role, if the head gives more to its right answer there than to any other word."""
    words = example.split()
    query, key = (next(at for at, word in enumerate(words) if mark in word) for mark in "*_")
    forms = [re.sub("[*_]", "", word) for word in words]
    text = " ".join(forms)
    if not ready(model):
        return None
    with suppress(MhaVizError, TimeoutError):
        reading = model_service().cached(verbs.read, Request(model.name, text)).result(PATIENCE).by_words()
        ordinary = [at for at, is_special in enumerate(reading.queries.special) if not is_special]
        row = reading[head][ordinary[query], ordinary]
        if len(row) == len(forms) and int(row.argmax()) == key:
            parameters = {**_same_model(), "text": text, "case": str(CaseInLink(head, "q", query))}
            return RoleCase(text, parameters, f"“{forms[query]}” → “{forms[key]}” ({weight(float(row[key]))}), right")
    return None


def _same_model() -> dict[str, str]:
    return {name: value for name, value in address.now().items() if name in ("model", "tray")}


def _missing(findings: Sequence[Finding]) -> None:
    """Say which roles have no sentences, by the corpora that they were measured on, and what to do about it."""
    for corpora in dict.fromkeys(finding.corpora for finding in findings):
        roles = "; ".join(named(f.role, f.detail) for f in findings if f.corpora == corpora)
        annotation = COREFERENCE if any(f.role == "coreference" for f in findings) else ""
        why = NOT_SHIPPED.format(annotation=annotation)
        if corpora == (NEUTRAL,):
            why = "They are shown only to the person who chose the file, during the same visit."
        st.caption(plain(f"No sentences of {' and '.join(corpora)} can be shown here for {roles}. ") + why)


def _role(head: Head, roles: Sequence[tuple[str, str]], shown: Sequence[Example], corpora: Sequence[str]) -> None:
    """Show the cases of one of these roles."""
    st.caption(RULE.format(corpus=plain(" and ".join(corpora))))
    role = roles[0]
    if len(roles) > 1:
        role = st.selectbox("Role", roles, key=f"card_role_{head}", format_func=lambda role: named(*role)) or role
    else:
        st.markdown(plain(named(*role)))
    cases = [example for example in shown if (example.role, example.detail) == role]
    columns = st.container(key="role_cases").columns(len(KINDS), gap="large")
    for column, (kind, title) in zip(columns, KINDS.items(), strict=True):
        with column:
            st.markdown(f"**{title}**")
            of_this_kind = [example for example in cases if example.kind == kind]
            for example in of_this_kind:
                _show_case(_recorded(example))
            if not of_this_kind:
                st.markdown("none")


def named(role: str, detail: str) -> str:
    """A role in a few words."""
    if role == "syntax":
        relation, direction = detail.split()
        return f"{labelled(relation)}, {DIRECTIONS[direction]}"
    return f"{role}: {SHORT[detail] if role == 'delimiter' else detail.replace('_', ' ')}"


def _examples(model: catalog.Model, evidence: Evidence, head: Head) -> tuple[list[Example], list[str]]:
    """The cases of a head that this visitor may read, and the names of their corpora."""
    shown: list[Example] = []
    corpora: list[str] = []
    for profile in evidence.profiles:
        table = profile.tables.get("evidence")
        if table is None:
            continue
        rows = table[(table["layer"] == head.layer) & (table["head"] == head.head)]
        cases = examples(rows, _sentences(model, profile)) if len(rows) else ()
        shown += cases
        corpora += [_name(profile)] * bool(cases)
    return shown, corpora


def _name(profile: Profile) -> str:
    if profile.facts["sha256"] == built_in().digest:
        return "the built-in sentences"
    names: dict[str, str] = st.session_state.get(FILES, {})
    return names.get(profile.facts["sha256"], profile.corpus)


def _sentences(model: catalog.Model, profile: Profile) -> Mapping[SentenceSpan, Sentence]:
    """The sentences of a profile's evidence that this visitor may read."""
    wanted, digest = spans(profile.tables["evidence"]), profile.facts["sha256"]
    if profile.sentences:
        return dict(zip(wanted, profile.sentences, strict=True))
    if digest == built_in().digest:
        return dict(zip(wanted, excerpts(built_in().sentences, wanted), strict=True))
    if digest not in st.session_state.get(FILES, {}):
        return {}
    try:
        with st.spinner("Reading the file…", show_time=True):
            return studies.excerpts(model, digest, wanted)
    except MhaVizError as error:
        complain(error)
        return {}


def _recorded(example: Example, near: int = AROUND) -> RoleCase:
    """A recorded case, with so many words of its sentence around the link."""
    words = around(example.sentence.forms, (example.word, example.answer), near)
    answer = f"“{example.form(example.word)}” → “{example.form(example.answer)}”"
    if example.detail.endswith("head_to_dep"):  # here the answer is the word that attends
        answer = f"“{example.form(example.answer)}” → “{example.form(example.word)}”"
    gold = " or ".join(f"“{example.form(word)}”" for word in example.gold)
    mark = "right" if example.right else f"correct: {gold}" if gold else "wrong"
    parameters = link(example.sentence, as_case(example), opened(example))
    return RoleCase(words, parameters, f"{answer} ({weight(example.weight)}), {mark}")


def _show_case(case: RoleCase) -> None:
    """Show the sentence as a link, and the head's answer in it."""
    show_link(case.words, case.parameters)
    st.caption(plain(case.answer))


def opened(example: Example) -> str:
    """The gold annotation that Explore shows for a case: "nsubj.dep_to_head", "coreference"; an empty string for other
    roles."""
    return {"syntax": example.detail.replace(" ", "."), "coreference": "coreference"}.get(example.role, "")


def show_link(words: str, query: dict[str, str] | None) -> None:
    """Show ``words`` as a link to the Explore page with these parameters, or as plain text if there are none."""
    if query is None:
        st.markdown(plain(words))
    else:
        st.page_link(navigation.page("explore"), label=plain(words), query_params=query)


def as_case(example: Example) -> CaseInLink:
    """The case for Explore, with its held word: for "head_to_dep" as the key to which others attend."""
    return CaseInLink(example.head, "k" if example.detail.endswith("head_to_dep") else "q", example.word)


def link(sentence: Sentence, case: CaseInLink, gold: str) -> dict[str, str] | None:
    """The parameters of the Explore page for a sentence with its annotation; None if it is too long for a link."""
    text = " ".join(sentence.forms)
    annotation = annotated(text)
    texts: Iterable[str] = [text]
    if not isinstance(annotation, Annotated) or annotation.sentence.words != sentence.words:
        texts = map(_pasted, shorter(sentence, coreference=gold == "coreference"))
    same = _same_model()
    room = address.MAX_ENCODED - len(quote(same.get("tray", "")))
    fits = next((text for text in texts if len(quote(text)) <= room), None)
    return None if fits is None else {**same, "text": fits, "case": str(case), **({"gold": gold} if gold else {})}


def _pasted(sentence: Sentence) -> str:
    """A sentence as it can be pasted: its CoNLL-U lines without comments."""
    return "\n".join(line for line in as_conllu([sentence]).splitlines() if line and not line.startswith("#"))


def around(forms: Sequence[str], ends: Sequence[int], near: int = AROUND) -> str:
    """The sentence or, if it is long, so many words around both ends of a link."""
    return " ".join(_shortened(forms, [min(max(word, 0), len(forms) - 1) for word in ends], near))


def _shortened(forms: Sequence[str], ends: Sequence[int], near: int) -> Iterator[str]:
    last = -1
    for i in (i for i in range(len(forms)) if any(abs(i - end) <= near for end in ends)):
        if i != last + 1:
            yield "…"
        yield forms[i]
        last = i
    if last + 1 < len(forms):
        yield "…"
