"""Gold annotation on the Explore page: a sentence's gold arcs, how the open head answers them, and the case that was
opened from the Roles page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import streamlit as st

from mha_viz.analysis.coreference import Anaphor, chunk
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.syntax import DIRECTIONS, Pointers, arcs, pointers
from mha_viz.attention import Attention, Head, Weights
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import MhaVizError
from mha_viz.figures.arcs import Span, drawing
from mha_viz.figures.caption import both
from mha_viz.figures.glosses import labelled
from mha_viz.figures.role_words import DIRECTIONS as IN_WORDS
from mha_viz.models import catalog
from mha_viz.numerals import counted, weight
from mha_viz.text import english
from mha_viz.ui import address, studies
from mha_viz.ui.address import CaseInLink
from mha_viz.ui.annotated import Annotated
from mha_viz.ui.parts import plain, remark, show_drawing, theme

COREFERENCE = "coreference"
WIDE = 1300  # pixels of a picture on a wide page
LIKELY = 0.5  # the least share of a word's attention that a suggested link needs


# ---- With gold ------------------------------------------------------------------------------------------


def show_gold(gold: Annotated, attention: Attention, head: Head) -> None:
    """Show the sentence with its gold arcs, and the answers of the head."""
    if not was_read(gold, attention):
        remark("The model did not read every word of this sentence, so its annotation cannot be drawn over it.")
        return
    st.markdown(f"### {both(head)} against the gold annotation")
    st.caption(
        "*Gold annotation*: the correct dependencies and coreference of this sentence, not the output of a model."
    )
    for line in gold.notes:
        remark(line)
    ways = _ways(attention, head)
    options = _relations(gold.sentence, ways)
    if not options:
        remark("This sentence has no dependencies and no coreference.")
        return
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    usual = next((name for name in ways if name in options), options[0])
    relation = left.pills("Relation", options, default=usual, key=f"gold_relation_{usual}", format_func=_in_words)
    relation = relation or options[0]
    way = ""
    if relation != COREFERENCE:
        usual_way = ways.get(relation, DIRECTIONS[0])
        way = right.selectbox(
            "Direction",
            list(DIRECTIONS),
            index=DIRECTIONS.index(usual_way),
            key=f"gold_way_{usual_way}",
            format_func=IN_WORDS.__getitem__,
        )
        way = way or usual_way
    spans = answers(gold.sentence, attention, head, relation, way)
    right_ones = sum(span.kind == "hit" for span in spans)
    cases = right_ones + sum(span.kind == "miss" for span in spans)
    st.markdown(f"**{right_ones}** of **{cases}** right.")
    picture(gold.forms, spans, f"{right_ones} of {cases} gold arcs of {labelled(relation)} agree with {both(head)}.")
    if relation == COREFERENCE:
        st.markdown("  \n".join(_weighed(gold.sentence, attention, head)))


def _in_words(relation: str) -> str:
    return plain(labelled(relation))


def was_read(gold: Annotated, attention: Attention) -> bool:
    """True if the model read every word of an annotated sentence, so that its arcs can be drawn."""
    words = attention.by_words().without_special() if len(attention.text) else attention
    return len(words.text) == len(gold.forms)


def answers(sentence: Sentence, attention: Attention, head: Head, relation: str, way: str) -> list[Span]:
    """The gold arcs of a relation, right and missed, and where the head points instead; ``way`` is one of DIRECTIONS
    and not used for coreference."""
    if relation == COREFERENCE:
        return _coreferent(sentence, attention, head)
    return _dependencies(sentence, attention, head, relation, way)


def _ways(attention: Attention, head: Head) -> dict[str, str]:
    """Relations with the direction in which they are read: first that of the link to a case, then those of the head's
    roles, strongest first. Coreference has no direction: an empty string."""
    relation, _, direction = address.now().get("gold", "").partition(".")
    ways = {relation: direction if direction in DIRECTIONS else DIRECTIONS[0]} if relation else {}
    for finding in _known_for(attention, head):
        name, _, direction = finding.detail.partition(" ")
        ways.setdefault(name, direction)
    return ways


def _relations(sentence: Sentence, ways: Iterable[str]) -> list[str]:
    """The relations that occur in a sentence, frequent ones first; those in ``ways`` also with their subtypes."""
    names = [word.base for word in sentence.words if word.head is not None]
    names += [word.relation for word in sentence.words if word.relation in ways and word.relation not in names]
    listed = sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))
    chains = [mention.chain for mention in sentence.mentions]
    return [*(["all"] if listed else []), *listed, *([COREFERENCE] if len(set(chains)) < len(chains) else [])]


def _known_for(attention: Attention, head: Head) -> list[Finding]:
    try:
        findings = studies.roles(catalog.resolve(attention.model))
    except MhaVizError:
        return []
    roles = sorted((f for f in findings if f.head == head), key=lambda f: -f.gain)
    return [
        f._replace(detail=COREFERENCE) if f.role == "coreference" else f
        for f in roles
        if f.role in ("syntax", "coreference")
    ]


def block_of_words(attention: Attention, heads: Sequence[Head]) -> Weights:
    """The weights of some heads, [head, word, word], without special tokens and not rescaled."""
    block: Weights = attention.only(heads).by_words().content().weights[0].copy()
    return block


def _dependencies(sentence: Sentence, attention: Attention, head: Head, relation: str, way: str) -> list[Span]:
    block = block_of_words(attention, [head])
    weights, pointed = block[0].copy(), pointers(block)
    spans = []
    for arc in arcs(sentence, pointed, 0, relation, way):
        link = (arc.pointed, arc.word) if way == "head_to_dep" else (arc.word, arc.pointed)
        points = weights[link] > 0  # a causal model gives no weight to later words
        if arc.right and points:
            spans.append(Span(arc.word, arc.pointed, arc.relation, "hit"))
            continue
        spans += [Span(arc.word, gold, arc.relation, "miss") for gold in arc.gold[:1]]
        spans += [Span(arc.word, arc.pointed, "", "extra")] if points else []
    return spans


def _chosen(sentence: Sentence, attention: Attention, head: Head) -> list[tuple[Anaphor, int, float]]:
    """For each anaphor, the candidate with the largest weight, and that weight."""
    block = block_of_words(attention, [head])[0]
    choices = []
    for anaphor in chunk([sentence], [0]).anaphors:
        weights = block[anaphor.word, list(anaphor.candidates)]
        choices.append((anaphor, anaphor.candidates[int(weights.argmax())], float(weights.max())))
    return choices


def _weighed(sentence: Sentence, attention: Attention, head: Head) -> list[str]:
    """For each anaphor, the number of candidates and the weight of the chosen one: with a single candidate, any head is
    right."""
    return [
        f"“{plain(sentence.forms[anaphor.word])}” gives {weight(largest)} of its attention to "
        f"“{plain(sentence.forms[chosen])}”, {_among_candidates(len(anaphor.candidates))}."
        for anaphor, chosen, largest in _chosen(sentence, attention, head)
    ]


def _among_candidates(candidates: int) -> str:
    return f"the most of {candidates} candidates" if candidates > 1 else "the only candidate"


def _coreferent(sentence: Sentence, attention: Attention, head: Head) -> list[Span]:
    spans = []
    for anaphor, chosen, _ in _chosen(sentence, attention, head):
        if chosen in anaphor.right:
            spans.append(Span(anaphor.word, chosen, "antecedent", "hit"))
        else:
            spans += [
                Span(anaphor.word, max(anaphor.right), "antecedent", "miss"),
                Span(anaphor.word, chosen, "", "extra"),
            ]
    return spans


# ---- Without gold ---------------------------------------------------------------------------------------


def propose(attention: Attention) -> None:
    """For text without gold annotation: the arcs that the heads known for a relation suggest."""
    if address.in_class():
        return
    with st.expander("Suggested arcs", on_change="rerun", key="proposals") as box:
        if not box.open:
            return
        if attention.text.pair:
            remark("Arcs are suggested for a single sentence; leave the second one empty.")
            return
        best = _best(attention)
        if not best:
            remark("The heads of this model have not been measured yet. The Roles page can measure them.")
            return
        st.markdown("For each relation the head that is most often right draws its arcs. Many are wrong.")
        every = _proposed(attention, best)
        names = list(dict.fromkeys(span.label.split()[0] for span in every))
        chosen = st.pills("Relations", names, selection_mode="multi", key="proposed", format_func=_in_words)
        spans = [span for span in every if span.label.split()[0] in chosen] if chosen else _first_of_each(every)
        words = attention.by_words().without_special().tokens
        picture(words, spans, f"{counted(len(spans), 'suggested arc')}.")


def _first_of_each(spans: Sequence[Span]) -> list[Span]:
    """One suggestion per word, the most trusted one; coreference counts separately."""
    first: dict[tuple[int, bool], Span] = {}
    for span in spans:
        first.setdefault((span.start, span.label.startswith("coref")), span)
    return list(first.values())


def _best(attention: Attention) -> list[Finding]:
    """The best head of each known relation, and every coreference head."""
    try:
        findings = studies.roles(catalog.resolve(attention.model))
    except MhaVizError:
        return []
    strongest: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda f: -f.score):
        name = finding.detail.split()[0]
        if finding.role == "coreference":
            strongest[f"{name} {finding.head}"] = finding
        elif finding.role == "syntax" and name != "punct" and ":" not in name:
            strongest.setdefault(name, finding)
    return list(strongest.values())


def _proposed(attention: Attention, best: Sequence[Finding]) -> list[Span]:
    block = block_of_words(attention, [finding.head for finding in best])
    pointed = pointers(block.copy())
    words = attention.by_words().without_special().tokens
    spans: dict[tuple[int, int], Span] = {}
    for at, finding in enumerate(best):
        for dependent, above in _links(finding, block[at], pointed, at, words):
            label = "coref" if finding.role == "coreference" else finding.detail.split()[0]
            spans.setdefault((dependent, above), Span(dependent, above, f"{label} {finding.head}", "proposal"))
    return list(spans.values())


def _links(
    finding: Finding, weights: Weights, pointed: Pointers, at: int, words: Sequence[str]
) -> list[tuple[int, int]]:
    """(dependent, head) or (pronoun, antecedent) of every strong link of a head, in the direction that it is known
    for."""
    if finding.role == "coreference":
        pronouns = [i for i, word in enumerate(words) if i and english.is_pronoun(word)]
        return [(i, j) for i in pronouns if weights[i, j := int(weights[i, :i].argmax())] > LIKELY]
    way = finding.detail.split()[1]
    target = pointed.column[at] if way == "head_to_dep" else pointed.row[at]
    strong = [
        (word, int(other))
        for word, other in enumerate(target)
        if (weights[other, word] if way == "head_to_dep" else weights[word, other]) > LIKELY
    ]
    return [(other, word) for word, other in strong] if way == "head_row" else strong


def picture(words: Sequence[str], spans: Sequence[Span], alt: str) -> None:
    drawn = drawing(words, spans, theme(), alt)
    show_drawing(drawn, round(drawn.width * max(1.33, min(1.8, WIDE / drawn.width))))


# ---- A case that was opened from the Roles page ---------------------------------------------------------------------

AROUND = 8  # words on each side of the arcs


class ArcExcerpt(NamedTuple):
    """A part of a sentence with its arcs; "…" stands for omitted words."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]


def show_case(annotation: Annotated, attention: Attention, case: CaseInLink) -> None:
    """Show the arcs at the word of a case; nothing for a role without gold annotation."""
    if attention.quantity != "weight":
        return
    relation, _, way = address.now().get("gold", "").partition(".")
    if not relation or case.head not in attention.every_head() or not was_read(annotation, attention):
        return
    way = way if way in DIRECTIONS else DIRECTIONS[0]
    every = answers(annotation.sentence, attention, case.head, relation, way)
    spans = [span for span in every if span.start == case.word]
    if not spans:
        return
    part = excerpt(annotation.forms, spans)
    agrees = any(span.kind == "hit" for span in spans)
    st.markdown(f"**{both(case.head)}** on “{plain(annotation.forms[case.word])}”: {'right' if agrees else 'wrong'}.")
    picture(part.words, part.spans, f"The gold arc of “{annotation.forms[case.word]}”, and where the head points.")


def excerpt(forms: Sequence[str], spans: Sequence[Span]) -> ArcExcerpt:
    """The words around the given arcs."""
    ends = [end for span in spans for end in (span.start, span.end)]
    first, last = max(0, min(ends) - AROUND), min(len(forms), max(ends) + AROUND + 1)
    before, after = ("…",) * (first > 0), ("…",) * (last < len(forms))
    shift = len(before) - first
    moved = (span._replace(start=span.start + shift, end=span.end + shift) for span in spans)
    return ArcExcerpt((*before, *forms[first:last], *after), tuple(moved))
