"""One head of the Roles page: by its name, or by what it does in plain words."""

from __future__ import annotations

import streamlit as st

from mha_viz.attention import Head
from mha_viz.ui import head_search
from mha_viz.ui.head_search import Answer
from mha_viz.ui.parts import plain, remark
from mha_viz.ui.roles import filters
from mha_viz.ui.studies import Evidence

FIND = "What the head does, in plain words, or its name: L3H1 counts from 0, 4-2 as papers do, from 1."


def wanted_head(evidence: Evidence, linked: Head | None) -> Head | None:
    """The head that was typed, else the one of the URL."""
    typed = filters.find(st, placeholder="subject, pronoun, L3H1 or 4-2", help=FIND)
    heads = evidence.profiles[0].heads()
    if not typed:
        return linked if linked in heads else None
    meant = head_search.named(typed)
    if meant:
        return _by_name(typed, meant, heads)
    group = head_search.by_role(typed, evidence.findings(), evidence.table)
    if group is None:
        remark(f"“{typed[:40]}” is not the name of a head, a relation or a kind of token. Write {head_search.WHAT}.")
        return None
    if group.note:
        remark(group.note)
    for answer in group.answers:
        _offer(answer)
    return None


def _offer(answer: Answer) -> None:
    with st.container(horizontal=True, vertical_alignment="top"):
        st.button(
            str(answer.head),
            key=f"answer_{answer.head}_{answer.does}",
            help="Show what this head does",
            on_click=filters.go,
            kwargs={"find": str(answer.head)},
        )
        st.markdown(plain(answer.words))


def _by_name(typed: str, meant: dict[str, Head], heads: tuple[Head, ...]) -> Head | None:
    """Two numbers may count from 1, as in papers, or from 0: ask."""
    there = {counting: head for counting, head in meant.items() if head in heads}
    if not there:
        remark(f"{list(meant.values())[-1]} does not exist: the heads are {heads[0]} to {heads[-1]}.")
        return None
    if list(there) == [""]:
        return there[""]
    chosen = st.radio(
        f"Which numbering is {typed}?",
        list(there),
        key="numbering",
        format_func=lambda counting: f"{there[counting]} ({counting})",
        horizontal=True,
    )
    return there.get(chosen)
