"""The top of the Roles page: a one-line summary, the corpus, and how far the roles can be trusted."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from mha_viz.analysis.chance import ChanceRoles, find_chance_roles
from mha_viz.analysis.unusual_heads import LINKING_ROLES
from mha_viz.app.service.caches import cache_results
from mha_viz.app.service.studies import CACHED_RESULTS, Evidence
from mha_viz.app.widgets.parts import escape_markdown, show_remark
from mha_viz.figures.words.need_words import MIN_Q
from mha_viz.figures.words.role_words import OLDER_RULE, has_older_rule
from mha_viz.figures.words.use_words import count_in_words, is_used
from mha_viz.models.getting import catalog

MIN_TOKENS = 1000  # in a corpus with fewer tokens, broad roles mean little
ROUNDING = 0.0005  # added to q, so that it is rounded up
NAMING_RULE = (
    "A head is named after a relation if its 95% interval begins ten points above the best fixed offset (coreference: "
    "two rules). That proves neither that the model uses it nor that it holds elsewhere."
)


def show_headline(model: catalog.Model, evidence: Evidence | None, has_open_head: bool = False) -> None:
    """Show the title of the page and, once there is evidence, how many heads have a role.

    Also say for which roles the corpus is too small. ``has_open_head``: whether a head is open.
    """
    layers, heads = evidence.profiles[0].shape if evidence else (0, 0)
    st.markdown(
        f"## What the {f'{layers * heads} ' if evidence else ''}heads of "
        f"{escape_markdown(model.label.partition(',')[0])} do"
    )
    if evidence is None:
        return
    st.markdown(_write_sentence(evidence, layers * heads, has_open_head))
    tokens = evidence.profiles[0].facts["counts"].get("pieces", MIN_TOKENS)
    if tokens < MIN_TOKENS:
        show_remark(f"This corpus has {tokens:,} tokens: too few for position, delimiter and broad roles to mean much.")


def _write_sentence(evidence: Evidence, heads: int, has_open_head: bool) -> str:
    head_count = len({finding.head for finding in evidence.findings()})
    if not head_count:
        return f"None of the {heads} heads has a role."
    return f"**{head_count}** have a role.{'' if has_open_head else f' Click one.{_describe_linking_heads(evidence)}'}"


@cache_results(CACHED_RESULTS)
def _describe_linking_heads(evidence: Evidence) -> str:
    """Say how many heads link words and how many of them are used, as far as they were switched off.

    If only some were switched off, also say how many.
    """
    linking_heads = {finding.head for finding in evidence.findings() if finding.role in LINKING_ROLES}
    tables = [profile.tables["used"] for profile in evidence.profiles if "used" in profile.tables]
    rows: list[Any] = [row for table in tables for row in table.itertuples() if is_used(row.used) is not None]
    measured_heads = {(row.layer, row.head) for row in rows}
    used_heads = {(row.layer, row.head) for row in rows if is_used(row.used)}
    total_note = f" of {len(measured_heads)}" if len(measured_heads) < len(linking_heads) else ""
    if not linking_heads:
        return ""
    use_note = f" ({count_in_words(len(used_heads), total_note, (row.measure for row in rows))})" if rows else ""
    return f" **{len(linking_heads)}** link words{use_note}."


def _write_certainty(highest_q: float, chance: ChanceRoles | None) -> str:
    """Describe the certainty of roles that link words: " Linking words, against fixed offsets: q < 0.001.".

    If the largest number of roles found in a random draw is known, add it: "chance: 0 in 20 draws".
    """
    parts = []
    if not math.isnan(highest_q):
        parts.append(f"q < {MIN_Q}" if highest_q < MIN_Q else f"q ≤ {highest_q + ROUNDING:.3f}")
    if chance is not None:
        max_roles = max(chance.drawn)
        parts.append(f"chance: {'up to ' * bool(max_roles)}{max_roles} in {len(chance.drawn)} draws")
    return f" Linking words, against fixed offsets: {'; '.join(parts)}." if parts else ""


def show_corpus(evidence: Evidence) -> None:
    """Name the corpus on which the roles were measured, and say if they follow the rule of an older version."""
    sentences = sum(p.facts["counts"].get("sentences", 0) for p in evidence.profiles)
    corpus_size = f" ({sentences:,} sentences)" if len(evidence.profiles) == 1 and sentences else ""
    rule_note = f", {OLDER_RULE}" if has_older_rule(evidence.findings()) else ""
    st.caption(f"Measured on {escape_markdown(evidence.label)}{corpus_size}{rule_note}.")


def show_trust(evidence: Evidence) -> None:
    """Say how many roles of each kind there are, how far they can be trusted, and what was left out of the corpus."""
    for paragraph in _write_summary(evidence):
        st.markdown(paragraph)
    left_out = sum(p.facts["left_out"] for p in evidence.profiles)
    if left_out:
        first_lines = [line for p in evidence.profiles for line in p.facts["left_out_first"]][:3]
        show_remark(f"{left_out} left out: {' '.join(first_lines)}")


@cache_results(CACHED_RESULTS)
def _write_summary(evidence: Evidence) -> tuple[str, ...]:
    """Return paragraphs on how many heads have roles, what a role is, and how many roles the untrained model has."""
    layers, heads = evidence.profiles[0].shape
    findings = evidence.findings()
    head_count = len({finding.head for finding in findings})
    q = max((f.q for f in evidence.profiles[0].findings() if not math.isnan(f.q)), default=math.nan)
    no_role_note = (
        f"for **{layers * heads - head_count}** no role was "
        f"found.{_write_certainty(q, find_chance_roles(evidence.profiles[0]))}"
    )
    head_note = f"**{head_count}** of {layers * heads} heads have a role, some several; {no_role_note}"
    untrained = evidence.profiles[0].untrained.get("roles")
    if untrained is None:
        return head_note, NAMING_RULE
    kinds = untrained.drop_duplicates(["layer", "head", "role"])["role"].value_counts()
    kind_list = ", ".join(f"{count} {role}" for role, count in kinds.items())
    if list(kinds.items()) == [("broad", layers * heads)]:
        kind_list = f"all {layers * heads} heads are broad: they look everywhere"
    return head_note, NAMING_RULE, f"With random weights: {kind_list or 'no head has a role'}."
