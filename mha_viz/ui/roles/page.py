"""The Roles page: what each head does, measured; one head in full; two models side by side."""

from __future__ import annotations

import re
from typing import Any

import streamlit as st

from mha_viz.analysis.profile import Finding, Profile
from mha_viz.attention import Head
from mha_viz.errors import Cancelled, MhaVizError
from mha_viz.figures.caption import both
from mha_viz.figures.glosses import asked_for, gloss
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.role_map import role_map
from mha_viz.figures.role_words import COLOURS, standing, standing_with_numbers, strongest_first
from mha_viz.figures.theme import Theme
from mha_viz.models import catalog
from mha_viz.numerals import counted
from mha_viz.text import clean
from mha_viz.ui import address, frame, inference
from mha_viz.ui.address import Address
from mha_viz.ui.annotated import built_in
from mha_viz.ui.cache import lasting, ready
from mha_viz.ui.jobs import Job
from mha_viz.ui.parts import complain, complain_later, guarded, picked_head, plain, remark, say_complaint, theme
from mha_viz.ui.roles import filters, head_card, headline, learning, relations, replications
from mha_viz.ui.roles.readable import FILES
from mha_viz.ui.studies import Evidence, given, sentences_given, studies
from mha_viz.uploads import Source

GOLD, GRAMMAR, UPLOAD = "gold", "grammar", "file"
SOON = 0.1  # seconds between two looks at whether a file is read
CHARTS = 24  # finished maps of roles, and tables: one for each evidence, filter, open head and colour scheme
FIND = "What the head does, in plain words, or its name: L3H1 counts from 0, 4-2 as papers do, from 1."
LISTED = 6  # heads in the answer to plain words
CORPORA = {GOLD: "published corpora", GRAMMAR: "built-in sentences", UPLOAD: "your own file"}


def show(where: Address) -> None:
    """The page, from what the URL asks for."""
    say_complaint()
    try:
        model = catalog.resolve(where.model) if where.model else catalog.default()
    except MhaVizError as error:
        complain(error)
        model = catalog.default()
    corpus = _choices(model, st.query_params.get("corpus"))
    if not ready(model):
        inference.download(model)
        return
    evidence = _evidence(model, corpus)
    if evidence is None:
        return
    headline.show(model, evidence)
    if corpus not in CORPORA:
        st.button("Another file", key="another_file", on_click=_on_file)
    left, right = st.columns([7, 4], gap="large")
    with right:
        head = _wanted_head(evidence, where.head)
        if head is not None:
            head_card.summary(evidence, head)
        elif evidence.findings():
            _hint(evidence)
    with left:
        if evidence.findings():
            _map(evidence, head)
    if head is not None:
        head_card.show(model, evidence, head)
    if model.name == learning.MODEL:
        with st.container(key="learning"):
            learning.show()
    relations.show(evidence)
    replications.show(model, evidence)
    relations.compare(model, evidence)
    if built_in().digest in {profile.facts["sha256"] for profile in evidence.profiles}:
        relations.statistics(built_in())


# ---- What is measured -----------------------------------------------------------------------------------


def _choices(model: catalog.Model, corpus: str | None) -> str:
    """Model and corpus; the corpus that is to be shown."""
    names = [m.name for m in catalog.offered()]
    names = names if model.name in names else [*names, model.name]
    shipped = _given(model)
    grammar_shipped = shipped is not None and {p.facts["sha256"] for p in shipped.profiles} == {built_in().digest}
    offered = [c for c in CORPORA if (shipped or c != GOLD) and not (grammar_shipped and c == GRAMMAR)]
    chosen = corpus if corpus in offered or (corpus and re.fullmatch("[0-9a-f]{64}", corpus)) else offered[0]
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    left.selectbox(
        "Model",
        names,
        index=names.index(model.name),
        key=f"roles_model_{model.name}",
        format_func=lambda name: next((m.label for m in catalog.offered() if m.name == name), name),
        on_change=_on_model,
        args=(f"roles_model_{model.name}",),
    )
    right.segmented_control(
        "Measured on",
        offered,
        default=chosen if chosen in offered else UPLOAD,
        key=f"roles_corpus_{chosen}",  # another value in the URL is another widget: Back changes both
        format_func=lambda name: CORPORA[GRAMMAR if grammar_shipped and name == GOLD else name],
        required=True,
        on_change=_on_corpus,
        args=(f"roles_corpus_{chosen}",),
    )
    return chosen


def _given(model: catalog.Model) -> Evidence | None:
    return given(model.name) if model.kind in ("bundled", "own") else None


@guarded()
def _on_model(key: str) -> None:
    name = st.session_state[key]
    chosen = None if name == catalog.default().name else name
    filters.go(model=chosen, corpus=None, before=None, **dict.fromkeys(address.OF_THIS_MODEL))


@guarded()
def _on_corpus(key: str) -> None:
    filters.go(corpus=st.session_state[key])


@guarded()
def _on_file() -> None:
    filters.go(corpus=UPLOAD)


def _evidence(model: catalog.Model, corpus: str) -> Evidence | None:
    """What was measured, or the way to measure it."""
    if corpus == GOLD:
        return _given(model)
    if corpus == UPLOAD:
        _upload(model)
        return None
    digest = built_in().digest if corpus == GRAMMAR else corpus
    profile = studies().profile(model, digest)
    if profile is not None:
        unkept = studies().unkept(model, digest)
        if unkept is not None:
            remark(f"These results last until the server stops: they could not be written to disk. {unkept.problem}")
        return Evidence("the built-in sentences" if corpus == GRAMMAR else _name(profile), (profile,))
    under_way = studies().under_way(model, digest)
    if under_way is not None:
        _progress(under_way, model)
        return None
    if studies().stopping(model, digest):
        _stopping(model, digest)
        return None
    failed = studies().failed(model, digest)
    if failed is not None:
        error, source = failed
        complain(error)
        st.button("Go on", key="go_on", on_click=_start, args=(model, source))
    elif corpus == GRAMMAR:
        _offer(model)
    else:
        remark("The results in this link were measured on a file that this server no longer has.")
        _upload(model)
    return None


def _offer(model: catalog.Model) -> None:
    st.markdown(
        f"The heads of {plain(model.label)} have not been measured yet. The built-in corpus has "
        f"{len(built_in().sentences):,} English sentences with *gold annotation*, that is, with their correct "
        "dependencies and coreference; a small model reads them in seconds, a large one in minutes."
    )
    st.button("Measure the heads", type="primary", key="measure", on_click=_start, args=(model, sentences_given()))


@guarded()
def _start(model: catalog.Model, source: Source) -> None:
    try:
        studies().start(model, source)
    except MhaVizError as error:
        complain_later(error)


@st.fragment(run_every=0.5)
@guarded(complain)
def _progress(study: Job, model: catalog.Model) -> None:
    if study.finished or study.stopped():
        st.rerun()
    study.look()
    left, right = st.columns([5, 1], vertical_alignment="center")
    if study.left:
        left.progress(study.fraction, text=f"Another visitor has started this study: {study.fraction:.0%}")
        right.button("Wait too", key="join_study", on_click=study.join, width="stretch")
        return
    left.progress(study.fraction, text=_standing(study, model))
    right.button("Stop", key="stop_study", on_click=study.let_go, width="stretch")


def _standing(study: Job, model: catalog.Model) -> str:
    first = studies().before(study)
    if first:
        return f"Waiting for {counted(first, 'study', 'studies')} of other visitors"
    return f"Reading the corpus with {plain(model.label)}: {study.fraction:.0%}"


@st.fragment(run_every=0.3)
@guarded(complain)
def _stopping(model: catalog.Model, digest: str) -> None:
    if not studies().stopping(model, digest):
        st.rerun()
    remark("The study is being stopped; what is done is kept.")


def _upload(model: catalog.Model) -> None:
    st.markdown(
        "CoNLL-U gives all measures: dependencies, and coreference where MISC holds `Entity=` as in GUM. A GAP table "
        "gives pronouns and names. Plain text, one sentence per line, gives position, delimiters, entropy and "
        "distances. At most 8 MB. From the file only the numbers are kept, and which lines had to be left out; its "
        "name is shown only to you, during this visit."
    )
    file = st.file_uploader("A corpus", type=["conllu", "tsv", "txt"], key="corpus_file")
    _earlier(model)
    if file is None:
        return
    try:
        source = _source(file.getvalue(), clean(file.name)[:80])
    except MhaVizError as error:
        complain(error)
        return
    for line in source.left_out:
        remark(f"Left out: {line}")
    st.button(
        f"Measure {plain(source.name)}", type="primary", key="measure_file", on_click=_start_file, args=(model, source)
    )


def _source(data: bytes, name: str) -> Source:
    """What a file holds, once it is read. Raises CorpusError, and Busy. A visitor who leaves stops the reading."""
    source = studies().source(data, name)
    if source is not None:
        return source
    job = studies().read(data, name)
    try:
        with st.spinner("Reading the file…", show_time=True):
            sign = st.empty()
            while not job.wait(SOON):
                job.look()
                sign.empty()  # here Streamlit ends a run that nobody waits for any more
    finally:
        job.let_go()
    source = studies().source(data, name)
    if source is None:
        raise job.error or Cancelled("The file was not read to its end.", "Choose it again.")
    return source


def _name(profile: Profile) -> str:
    """What a corpus is called: by its file for whoever had it during this visit, else without a name."""
    names: dict[str, str] = st.session_state.get(FILES, {})
    return names.get(profile.facts["sha256"], profile.corpus)


def _earlier(model: catalog.Model) -> None:
    """The files that were measured during this visit."""
    for digest, name in st.session_state.get(FILES, {}).items():
        st.button(plain(name), key=f"file_{digest}", type="tertiary", on_click=address.go, kwargs={"corpus": digest},
                  help=None if studies().profile(model, digest) else "Not measured with this model yet.")  # fmt: skip


@guarded()
def _start_file(model: catalog.Model, source: Source) -> None:
    try:
        studies().start(model, source)
    except MhaVizError as error:
        complain_later(error)
        return
    st.session_state[FILES] = {**st.session_state.get(FILES, {}), source.digest: source.name}
    address.go(corpus=source.digest)


# ---- The map --------------------------------------------------------------------------------------------


def _map(evidence: Evidence, chosen: Head | None) -> None:
    kinds = filters.kinds(st)
    chart = _chart(evidence, kinds, chosen, theme())
    st.html(
        "<style>.st-key-wide_role_map .stElementContainer:has(.stPlotlyChart) "
        f"{{ min-width: {int(chart.layout.width)}px; }}</style>"
    )
    with st.container(key="wide_role_map"):
        picked = st.plotly_chart(
            chart,
            key="role_map",
            on_select="rerun",
            selection_mode="points",
            theme=None,
            config=CONFIG,
            width=int(chart.layout.width),
            alt="Map of roles, layers by heads; “All roles as a table” below lists the same.",
        )
    head = picked_head(picked)
    if head is not None:
        st.switch_page(frame.page("explore"), query_params={**_kept(), "head": str(head)})
    with st.expander("All roles as a table"):
        _listed(evidence, kinds)


@lasting(CHARTS)
def _chart(evidence: Evidence, kinds: tuple[str, ...], chosen: Head | None, colours: Theme) -> Any:
    """The map of roles; nobody may change it, for other visitors are shown it too."""
    return role_map(_filtered(evidence, kinds), evidence.profiles[0].shape, chosen, colours)


def _filtered(evidence: Evidence, kinds: tuple[str, ...]) -> tuple[Finding, ...]:
    return tuple(f for f in evidence.findings() if not kinds or f.role in kinds)


def _kept() -> dict[str, str]:
    return {name: value for name, value in address.now().items() if name not in ("on", "pin", "corpus")}


def _listed(evidence: Evidence, kinds: tuple[str, ...]) -> None:
    st.dataframe(
        _table(evidence, kinds),
        hide_index=True,
        width="stretch",
        column_config={"gain": st.column_config.NumberColumn(format="%.3f")},
    )


@lasting(CHARTS)
def _table(evidence: Evidence, kinds: tuple[str, ...]) -> Any:
    """A line per role; nobody may change it."""
    import pandas as pd

    findings = _filtered(evidence, kinds)
    columns = ["head", "role", "standing", "in words", "gain", "n"]
    rows = [(both(f.head), f.role, standing(f), standing_with_numbers(f), f.gain, f.n) for f in findings]
    return pd.DataFrame(rows, columns=columns)


def _hint(evidence: Evidence) -> None:
    """What there is to see, while no head is chosen: the strongest of each kind."""
    strongest: dict[str, Finding] = {}
    for finding in strongest_first(evidence.findings()):
        strongest.setdefault(finding.role, finding)
    st.markdown("The strongest of each kind. Click a cell to open the head in Explore.")
    for role in COLOURS:
        if role in strongest:
            finding = strongest[role]
            st.markdown(f"**{both(finding.head)}** {role}, {plain(standing_with_numbers(finding))}.")


# ---- One head -------------------------------------------------------------------------------------------


def _wanted_head(evidence: Evidence, asked: Head | None) -> Head | None:
    """The head that was typed, else the one of the URL."""
    typed = filters.find(st, placeholder="subject, pronoun, L3H1 or 4-2", help=FIND)
    heads = evidence.profiles[0].heads()
    if not typed:
        return asked if asked in heads else None
    exact = re.fullmatch(r"[Ll](\d{1,3})\s*[Hh](\d{1,3})", typed, re.ASCII)
    pair = re.fullmatch(r"(\d{1,3})\s*[-–.]\s*(\d{1,3})", typed, re.ASCII)
    if exact:
        return _there(Head(int(exact[1]), int(exact[2])), heads)
    if pair:
        return _which(int(pair[1]), int(pair[2]), heads)
    _answer(evidence, typed)
    return None


def _answer(evidence: Evidence, typed: str) -> None:
    """The heads that plain words ask for, the best first, each with its numbers."""
    details = asked_for(typed)
    meaning = gloss(details[0]) if details else None
    if meaning is None:
        remark(
            f"“{typed[:40]}” is not the name of a head, a relation or a kind of token. Write a name such as L3H1, or "
            "what the head does: subject, pronoun, previous word, comma."
        )
        return
    answers = [f for f in strongest_first(evidence.findings()) if f.detail.split()[0] in details]
    answers.sort(key=lambda f: details.index(f.detail.split()[0]))
    if not answers:
        remark(
            f"No head has a role for “{meaning.link}” here. The table of relations below says how well the best head "
            "does, and which simple rule does better."
        )
    for finding in answers[:LISTED]:
        with st.container(horizontal=True, vertical_alignment="top"):
            st.button(
                str(finding.head),
                key=f"answer_{finding.head}_{finding.detail}",
                help="Show what this head does",
                on_click=filters.go,
                kwargs={"find": str(finding.head)},
            )
            st.markdown(plain(standing_with_numbers(finding)))


def _there(head: Head, heads: tuple[Head, ...]) -> Head | None:
    if head in heads:
        return head
    remark(f"{head} does not exist: the heads are {heads[0]} to {heads[-1]}.")
    return None


def _which(first: int, second: int, heads: tuple[Head, ...]) -> Head | None:
    """Two numbers may count from 1, as in papers, or from 0: ask."""
    meant = {"papers": Head(first - 1, second - 1), "zero": Head(first, second)}
    there = {name: head for name, head in meant.items() if head in heads}
    if not there:
        return _there(meant["zero"], heads)
    chosen = st.radio(
        f"Which numbering is {first}-{second}?",
        list(there),
        key="numbering",
        format_func=lambda name: (
            f"{there[name]} ({'counted from 1, as in papers' if name == 'papers' else 'counted from 0'})"
        ),
        horizontal=True,
    )
    return there.get(chosen)
