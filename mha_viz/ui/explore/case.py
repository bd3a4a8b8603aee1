"""The case that was opened from the Roles page, above the drawing: its word, the gold arc, and where the head
points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import Attention
from mha_viz.figures.arcs import Span
from mha_viz.figures.caption import both
from mha_viz.ui import address
from mha_viz.ui.address import CaseInLink
from mha_viz.ui.annotated import Annotated
from mha_viz.ui.explore import gold
from mha_viz.ui.parts import plain

AROUND = 8  # words on each side of the arcs


class ArcExcerpt(NamedTuple):
    """A part of a sentence with its arcs; "…" stands for omitted words."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]


def show_case(annotation: Annotated | None, attention: Attention, case: CaseInLink | None) -> None:
    """Show the arcs at the word of a case; nothing without a case, or for a role without gold annotation."""
    if annotation is None or case is None or attention.quantity != "weight":
        return
    relation, _, way = address.now().get("gold", "").partition(".")
    if not relation or case.head not in attention.every_head() or not gold.was_read(annotation, attention):
        return
    way = way if way in DIRECTIONS else DIRECTIONS[0]
    every = gold.answers(annotation.sentence, attention, case.head, relation, way)
    spans = [span for span in every if span.start == case.word]
    if not spans:
        return
    part = excerpt(annotation.forms, spans)
    agrees = any(span.kind == "hit" for span in spans)
    st.markdown(f"**{both(case.head)}** on “{plain(annotation.forms[case.word])}”: {'right' if agrees else 'wrong'}.")
    gold.picture(part.words, part.spans, f"The gold arc of “{annotation.forms[case.word]}”, and where the head points.")


def excerpt(forms: Sequence[str], spans: Sequence[Span]) -> ArcExcerpt:
    """The words around the given arcs."""
    ends = [end for span in spans for end in (span.start, span.end)]
    first, last = max(0, min(ends) - AROUND), min(len(forms), max(ends) + AROUND + 1)
    before, after = ("…",) * (first > 0), ("…",) * (last < len(forms))
    shift = len(before) - first
    moved = (span._replace(start=span.start + shift, end=span.end + shift) for span in spans)
    return ArcExcerpt((*before, *forms[first:last], *after), tuple(moved))
