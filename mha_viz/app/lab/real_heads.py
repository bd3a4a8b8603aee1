"""Heads of a real model that do what heads of the small trainings learn, with links to *Explore*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st

from mha_viz.app.widgets import navigation
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.answers import WordLink, draw_links
from mha_viz.lab.jobs import SIGNS
from mha_viz.lab.tasks import BEFORE, LINKED

MODEL, NAME = "minilm", "MiniLM"
TEXT = "The dog chased the cat and the cat chased the dog."


class RealHead(NamedTuple):
    """A head of MODEL, and the word of TEXT that is pinned to show what it does."""

    head: str
    pin: str


# The head that follows each relation. Measured on twelve sentences with repeated words: L0H2 gives the previous word
# 0.98 or more in every row, and L2H9 gives the other occurrence of a repeated word more than any other head does, 0.63
# on average.
REAL_HEADS: Mapping[str, RealHead] = MappingProxyType(
    {BEFORE: RealHead("L0H2", "q11"), LINKED: RealHead("L2H9", "q11")}
)

# Two heads link one word to two different words: of all heads, L0H4 gives most to "river" and L5H9 most to "withdrew".
BANK_TEXT = "She withdrew money from the bank by the river."
WORDS, BANK_INDEX = ("She", "withdrew", "money", "from", "the", "bank", "by", "the", "river", "."), 5
LINKS = (WordLink("L5H9", 1, 0.39), WordLink("L0H4", 8, 0.72))


def draw_two_heads(theme: Theme) -> Sequence[Drawing]:
    """Draw how two heads of MODEL link one word to two others."""
    return [draw_links(theme, WORDS, BANK_INDEX, LINKS)]


def show_real_heads(relations: Iterable[str]) -> None:
    """Show links to the real heads that follow these relations, with the sign of each relation in this order."""
    links = [
        (sign, REAL_HEADS[relation]) for sign, relation in zip(SIGNS, relations, strict=False) if relation in REAL_HEADS
    ]
    if not links:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="lab_real"):
        st.markdown(f"In {NAME}:", width="content")
        for sign, real_head in links:
            st.page_link(
                navigation.find_page("explore"),
                label=f":primary[{sign} {real_head.head}]",
                query_params={"model": MODEL, "text": TEXT, "head": real_head.head, "pin": real_head.pin},
            )
