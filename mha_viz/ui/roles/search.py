"""One head of the Roles page: by its name, or by what it does in plain words."""

from __future__ import annotations

import re

import streamlit as st

from mha_viz.attention import Head
from mha_viz.figures.glosses import asked_for, gloss
from mha_viz.figures.role_words import standing_with_numbers, strongest_first
from mha_viz.ui.parts import plain, remark
from mha_viz.ui.roles import filters
from mha_viz.ui.studies import Evidence

FIND = "What the head does, in plain words, or its name: L3H1 counts from 0, 4-2 as papers do, from 1."
LISTED = 6  # heads in the answer to plain words
WIDTH = 560  # pixels


def wanted_head(evidence: Evidence, linked: Head | None) -> Head | None:
    """The head that was typed, else the one of the URL."""
    typed = filters.find(
        st, placeholder="links a subject to its verb, looks at commas, is L3H1", help=FIND, width=WIDTH
    )
    heads = evidence.profiles[0].heads()
    if not typed:
        return linked if linked in heads else None
    exact = re.fullmatch(r"[Ll](\d{1,3})\s*[Hh](\d{1,3})", typed, re.ASCII)
    pair = re.fullmatch(r"(\d{1,3})\s*[-–.]\s*(\d{1,3})", typed, re.ASCII)
    if exact:
        return _head_if_any(Head(int(exact[1]), int(exact[2])), heads)
    if pair:
        return _by_numbering(int(pair[1]), int(pair[2]), heads)
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


def _head_if_any(head: Head, heads: tuple[Head, ...]) -> Head | None:
    if head in heads:
        return head
    remark(f"{head} does not exist: the heads are {heads[0]} to {heads[-1]}.")
    return None


def _by_numbering(first: int, second: int, heads: tuple[Head, ...]) -> Head | None:
    """Two numbers may count from 1, as in papers, or from 0: ask."""
    meant = {"papers": Head(first - 1, second - 1), "zero": Head(first, second)}
    there = {name: head for name, head in meant.items() if head in heads}
    if not there:
        return _head_if_any(meant["zero"], heads)
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
