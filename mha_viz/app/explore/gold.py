"""Gold annotation on the Explore page.

It shows a sentence's gold arcs, the open head's answers, and a case from the Roles page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import streamlit as st

from mha_viz.analysis.coreference import Anaphor, make_chunk
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.syntax import DIRECTIONS, Arc, find_pointers, list_arcs
from mha_viz.app.url import address
from mha_viz.app.url.annotated_texts import AnnotatedText
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import escape_markdown, get_theme, show_drawing, show_remark
from mha_viz.attention import Attention, Head, Weights
from mha_viz.corpus.treebank import Sentence
from mha_viz.figures.layout.arcs import Span, draw_sentence
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import label_relation
from mha_viz.figures.words.role_words import DIRECTIONS as DIRECTION_LABELS
from mha_viz.numerals import format_weight

COREFERENCE = "coreference"
TARGET_WIDTH = 1300  # width of a picture on a wide page, in pixels


# ---- Gold arcs ------------------------------------------------------------------------------------------


def show_gold(page: PageReading, gold: AnnotatedText) -> None:
    """Show the sentence with its ``gold`` arcs and the answers of the open head."""
    attention, head = page.attention, page.heads[0]
    if not is_fully_read(gold, attention):
        show_remark("The model did not read the whole sentence, so its annotation cannot be drawn over it.")
        return
    st.markdown(f"### {format_head(head)} against the gold annotation")
    st.caption("*Gold annotation*: the correct dependencies and coreference of this sentence, not a model’s output.")
    for line in gold.notes:
        show_remark(line)
    directions = _choose_directions(page.summary.roles, head)
    options = _list_relations(gold.sentence, directions)
    if not options:
        show_remark("This sentence has no annotated dependencies or coreference.")
        return
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    default_relation = next((name for name in directions if name in options), options[0])
    relation = left.pills(
        "Relation",
        options,
        default=default_relation,
        key=f"gold_relation_{default_relation}",
        format_func=_label_relation,
    )
    relation = relation or options[0]
    direction = ""
    if relation != COREFERENCE:
        default_direction = directions.get(relation, DIRECTIONS[0])
        direction = right.selectbox(
            "Direction",
            list(DIRECTIONS),
            index=DIRECTIONS.index(default_direction),
            key=f"gold_way_{default_direction}",
            format_func=DIRECTION_LABELS.__getitem__,
        )
        direction = direction or default_direction
    spans = compare_arcs(gold.sentence, attention, head, relation, direction)
    hits = sum(span.kind == "hit" for span in spans)
    cases = hits + sum(span.kind == "miss" for span in spans)
    st.markdown(f"**{hits}/{cases}** arcs right.")
    show_arcs(
        gold.forms,
        spans,
        f"{hits} of {cases} gold arcs of {label_relation(relation)} agree with {format_head(head)}.",
    )
    if relation == COREFERENCE:
        st.markdown("  \n".join(_describe_choices(gold.sentence, attention, head)))


def _label_relation(relation: str) -> str:
    return escape_markdown(label_relation(relation))


def is_fully_read(gold: AnnotatedText, attention: Attention) -> bool:
    """Return whether the model read every word of an annotated sentence, so that its arcs can be drawn."""
    words = attention.by_words().without_special() if len(attention.text) else attention
    return len(words.text) == len(gold.forms)


def compare_arcs(sentence: Sentence, attention: Attention, head: Head, relation: str, direction: str) -> list[Span]:
    """Return the gold arcs of a relation, marked as hit or missed, and the head's wrong answers as extra arcs.

    ``direction`` is one of DIRECTIONS; coreference does not use it.
    """
    if relation == COREFERENCE:
        return _compare_coreference(sentence, attention, head)
    return _compare_dependencies(sentence, attention, head, relation, direction)


def _choose_directions(roles: Iterable[Finding], head: Head) -> dict[str, str]:
    """Return relations with their directions, in the order in which the page prefers them.

    The relation in the URL comes first, then those of the head's roles, strongest first. The direction of coreference
    is an empty string.
    """
    relation, _, direction = address.get_parameters().get("gold", "").partition(".")
    directions = {relation: direction if direction in DIRECTIONS else DIRECTIONS[0]} if relation else {}
    head_roles = [f for f in roles if f.head == head and f.role in ("syntax", COREFERENCE)]
    for finding in sorted(head_roles, key=lambda f: -f.gain):
        name, _, direction = (COREFERENCE if finding.role == COREFERENCE else finding.detail).partition(" ")
        directions.setdefault(name, direction)
    return directions


def _list_relations(sentence: Sentence, extra_relations: Iterable[str]) -> list[str]:
    """Return the relations in a sentence, the most frequent first. Relations in ``extra_relations`` may be subtypes."""
    names = [word.base for word in sentence.words if word.head is not None]
    names += [
        word.relation for word in sentence.words if word.relation in extra_relations and word.relation not in names
    ]
    by_frequency = sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))
    chains = [mention.chain for mention in sentence.mentions]
    return [
        *(["all"] if by_frequency else []),
        *by_frequency,
        *([COREFERENCE] if len(set(chains)) < len(chains) else []),
    ]


def select_word_weights(attention: Attention, heads: Sequence[Head]) -> Weights:
    """Return the weights of some heads between words, [head, word, word], without special tokens and not rescaled."""
    block: Weights = attention.only(heads).by_words().content().weights[0].copy()
    return block


def is_attended(weights: Weights, arc: Arc, direction: str) -> bool:
    """Return whether a head gives weight to its answer; a causal model gives none to later words.

    ``weights`` is [query, key].
    """
    link = (arc.answer, arc.word) if direction == "head_to_dep" else (arc.word, arc.answer)
    return bool(weights[link] > 0)


def _compare_dependencies(
    sentence: Sentence, attention: Attention, head: Head, relation: str, direction: str
) -> list[Span]:
    block = select_word_weights(attention, [head])
    weights, pointers = block[0].copy(), find_pointers(block)
    spans = []
    for arc in list_arcs(sentence, pointers, 0, relation, direction):
        has_weight = is_attended(weights, arc, direction)
        if arc.is_right and has_weight:
            spans.append(Span(arc.word, arc.answer, arc.relation, "hit"))
            continue
        spans += [Span(arc.word, gold, arc.relation, "miss") for gold in arc.gold[:1]]
        spans += [Span(arc.word, arc.answer, "", "extra")] if has_weight else []
    return spans


def _choose_candidates(sentence: Sentence, attention: Attention, head: Head) -> list[tuple[Anaphor, int, float]]:
    """Return, for each anaphor, the candidate with the largest weight, and that weight."""
    block = select_word_weights(attention, [head])[0]
    choices = []
    for anaphor in make_chunk([sentence], [0]).anaphors:
        weights = block[anaphor.word, list(anaphor.candidates)]
        choices.append((anaphor, anaphor.candidates[int(weights.argmax())], float(weights.max())))
    return choices


def _describe_choices(sentence: Sentence, attention: Attention, head: Head) -> list[str]:
    """Describe, for each anaphor, the number of candidates and the weight of the chosen one.

    With a single candidate, any head is right.
    """
    return [
        f"“{escape_markdown(sentence.forms[anaphor.word])}” gives {format_weight(weight)} of its attention to "
        f"“{escape_markdown(sentence.forms[candidate])}”, {_describe_candidate_count(len(anaphor.candidates))}."
        for anaphor, candidate, weight in _choose_candidates(sentence, attention, head)
    ]


def _describe_candidate_count(candidates: int) -> str:
    return f"the most of {candidates} candidates" if candidates > 1 else "the only candidate"


def _compare_coreference(sentence: Sentence, attention: Attention, head: Head) -> list[Span]:
    spans = []
    for anaphor, candidate, _ in _choose_candidates(sentence, attention, head):
        if candidate in anaphor.right:
            spans.append(Span(anaphor.word, candidate, "antecedent", "hit"))
        else:
            spans += [
                Span(anaphor.word, max(anaphor.right), "antecedent", "miss"),
                Span(anaphor.word, candidate, "", "extra"),
            ]
    return spans


def show_arcs(words: Sequence[str], spans: Sequence[Span], alt: str) -> None:
    """Show a sentence with arcs between its words; ``alt`` describes them for screen readers."""
    picture = draw_sentence(words, spans, get_theme(), alt)
    show_drawing(picture, round(picture.width * max(1.33, min(1.8, TARGET_WIDTH / picture.width))))


# ---- A case that was opened from the Roles page ---------------------------------------------------------------------

CONTEXT_WORDS = 8  # words on each side of the arcs


class ArcExcerpt(NamedTuple):
    """Part of a sentence with its arcs. "…" stands for omitted words."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]


def show_case(page: PageReading) -> None:
    """Show the arcs at the word of the case in the URL. Shows nothing for a role without gold annotation."""
    annotation, attention, case = page.gold, page.attention, page.url.location.case
    if annotation is None or case is None or attention.quantity != "weight":
        return
    relation, _, direction = page.url.parameters.get("gold", "").partition(".")
    if not relation or case.head not in attention.every_head() or not is_fully_read(annotation, attention):
        return
    direction = direction if direction in DIRECTIONS else DIRECTIONS[0]
    all_spans = compare_arcs(annotation.sentence, attention, case.head, relation, direction)
    spans = [span for span in all_spans if span.start == case.word]
    if not spans:
        return
    excerpt = cut_excerpt(annotation.forms, spans)
    is_right = any(span.kind == "hit" for span in spans)
    st.markdown(
        f"**{format_head(case.head)}** on “{escape_markdown(annotation.forms[case.word])}”: "
        f"{'right' if is_right else 'wrong'}."
    )
    show_arcs(
        excerpt.words, excerpt.spans, f"The gold arc of “{annotation.forms[case.word]}”, and where the head points."
    )


def cut_excerpt(forms: Sequence[str], spans: Sequence[Span]) -> ArcExcerpt:
    """Return the words around the given arcs, with the arcs renumbered."""
    ends = [index for span in spans for index in (span.start, span.end)]
    start, end = max(0, min(ends) - CONTEXT_WORDS), min(len(forms), max(ends) + CONTEXT_WORDS + 1)
    left_mark, right_mark = ("…",) * (start > 0), ("…",) * (end < len(forms))
    shift = len(left_mark) - start
    shifted_spans = (span._replace(start=span.start + shift, end=span.end + shift) for span in spans)
    return ArcExcerpt((*left_mark, *forms[start:end], *right_mark), tuple(shifted_spans))
