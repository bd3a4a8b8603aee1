"""Show all roles of a model: as a map of squares, as lines, and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from mha_viz.analysis.bundled_data import HeadRecipe, list_head_recipes
from mha_viz.analysis.corpus_why import WHY, HeadShares, load_head_shares
from mha_viz.analysis.findings import CORPUS_SEPARATOR, Finding, OtherCorpusScore
from mha_viz.analysis.needs import PairResults, find_needs
from mha_viz.analysis.pairs import NEEDED
from mha_viz.analysis.roles import ESTABLISHED, SUGGESTED
from mha_viz.app.roles import filters, score_rows
from mha_viz.app.roles.score_rows import ScoreRow
from mha_viz.app.service.caches import cache_results
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url import address
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.parts import PERCENT, report_ignored, to_percentages
from mha_viz.attention import Head
from mha_viz.figures.charts.role_map import colour_strength
from mha_viz.figures.drawing.theme import DARK, LIGHT
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import simplify_rule
from mha_viz.figures.words.need_words import name_kinds
from mha_viz.figures.words.role_words import (
    COLOURS,
    GROUP_COLOURS,
    RULES,
    STATE_WORDS,
    STATUS_WORDS,
    choose_glyph,
    compare_elsewhere,
    compare_with_rule,
    count_states,
    describe_evidence,
    describe_in_list,
    describe_rule_in_list,
    find_best_baseline,
    group_by_head,
    label_role,
    sort_by_strength,
    summarise_role,
)
from mha_viz.figures.words.use_words import USE, describe_most, describe_use, explain_use, is_used
from mha_viz.numerals import counted

MAX_IN_TOOLTIP = 2  # maximum roles in a square's tooltip, so that it does not cover the map; the card shows all
NEEDED_MARK = '<i class="needed"></i>'
CACHED_MAPS = 24  # maximum cached tables of roles: one per evidence and filter
# Columns in percent of the table of all numbers.
PERCENTAGES = (
    "score",
    "low",
    "high",
    "score on the other corpus",
    "baseline",
    "rule by parts of speech",
    "rule on the other corpus",
    "choice",
    "nearest",
    "untrained",
)


def show_map(evidence: Evidence, open_head: Head | None) -> None:
    """Show a square for each head, with a symbol of its strongest role; a click or Enter opens the head's card.

    Below are the kinds of roles; a click on one shows those roles only.
    """
    apply_style("role_map")
    kinds = filters.read_filters().kinds
    report_ignored(
        [
            f"kinds={kind[:20]}"
            for kind in address.get_parameters().get("kinds", "").split(".")
            if kind and kind not in COLOURS
        ]
    )
    legend = f"{_draw_legend(evidence, kinds)}{_explain_shapes(evidence)}{_draw_states(evidence, kinds)}"
    st.html(f'<div class="mha-map">{_draw_squares(evidence, kinds, open_head)}{legend}</div>')


def _draw_squares(evidence: Evidence, kinds: tuple[str, ...], open_head: Head | None) -> str:
    layers, heads = evidence.profiles[0].shape
    first_head = next(iter(group_by_head(filter_findings(evidence, kinds))), evidence.profiles[0].heads()[0])
    tab_stop = open_head or first_head  # the square that the Tab key reaches
    link_prefix, static_squares = _make_link(head="HEAD").removesuffix("HEAD"), _draw_static_squares(evidence, kinds)

    def draw_cell(head: Head) -> str:
        current_attribute = ' aria-current="true"' if head == open_head else ""
        focus = f'tabindex="{0 if head == tab_stop else -1}"{current_attribute}'
        return f'<td><a href="{link_prefix}{head}" target="_self" {focus} {static_squares[head]}</a></td>'

    rows = "".join(
        f'<tr><th scope="row">L{layer}</th>{"".join(draw_cell(Head(layer, head)) for head in range(heads))}</tr>'
        for layer in evidence.profiles[0].layer_numbers
    )
    names = "".join(f'<th scope="col">H{head}</th>' for head in range(heads))
    label = "What each head does, by layer and head. Arrow keys move between heads."
    columns = f"<thead><tr><td></td>{names}</tr></thead>"
    size = f"--rows:{layers};--columns:{heads}"
    return f'<table role="grid" aria-label="{label}" style="{size}">{columns}<tbody>{rows}</tbody></table>'


@cache_results(CACHED_MAPS)
def _draw_static_squares(evidence: Evidence, kinds: tuple[str, ...]) -> Mapping[Head, str]:
    """Return the HTML of each head's square after the attribute ``href``: the other attributes and the content.

    The link depends on the visitor, so it cannot be cached.
    """
    roles, profile = group_by_head(filter_findings(evidence, kinds)), evidence.profiles[0]
    recipes = load_recipes(evidence)
    key_shares, needs = _load_key_shares(evidence), find_needed(evidence)
    return {
        head: _draw_square(head, roles.get(head, []), recipes.get(head), key_shares.get(head), needs.get(head))
        for head in profile.heads()
    }


def find_needed(evidence: Evidence) -> dict[Head, PairResults]:
    """Return the heads that sentence pairs need; empty if that was not measured."""
    return {head: need for head, need in find_needs(evidence.table(NEEDED)).items() if need.is_needed}


def load_recipes(evidence: Evidence) -> dict[Head, HeadRecipe]:
    """Return the recipe of each head; empty for a model without recipes."""
    return {recipe.head: recipe for recipe in list_head_recipes(*identify_weights(evidence))}


def identify_weights(evidence: Evidence) -> tuple[str, str]:
    """Return the name and the revision of the model that was measured."""
    profile = evidence.profiles[0]
    return profile.model, str(profile.facts.get("revision", ""))


def _draw_square(
    head: Head,
    findings: list[Finding],
    recipe: HeadRecipe | None,
    key_shares: HeadShares | None,
    need: PairResults | None,
) -> str:
    no_role = "no role was found"
    all_roles = "; ".join(map(summarise_role, findings)) or no_role
    extras = (
        need and f"needed for {name_kinds(need) or 'sentence pairs'}",
        recipe and f"on average it {recipe.describe(simplify_rule)}",
        key_shares and f"attention depends on {key_shares.words}",
    )
    addition = "".join(f"; {extra}" for extra in extras if extra)
    description = escape(f"{format_head(head)}: {all_roles}{addition}")
    summary = "; ".join(map(summarise_role, findings[:MAX_IN_TOOLTIP])) or no_role
    more_note = f"; {len(findings) - MAX_IN_TOOLTIP} more" if len(findings) > MAX_IN_TOOLTIP else ""
    tooltip = escape(f"{format_head(head)}: {summary}{more_note}{addition}")
    style, symbol, state = "", "", ""
    if findings:
        state = f'class="{findings[0].state}" ' if findings[0].state else ""
        colour = COLOURS[findings[0].role]
        style = f"{_write_colours(colour)}--strength:{100 * colour_strength(findings[0]):.0f}%"
        symbol = _draw_symbol(choose_glyph(findings[0]))
    dots = f"{''.join(map(_draw_dot, _list_further_kinds(findings)))}{NEEDED_MARK if need else ''}"
    content = f"{symbol}<span>{dots}</span>" if findings or need else ""
    return f'{state}aria-label="{description}" data-tip="{tooltip}" style="{style}">{content}'


def _list_further_kinds(findings: list[Finding]) -> Iterable[str]:
    """Return the kinds of a head's roles after the first; they are drawn as shapes in the corner of its square."""
    return dict.fromkeys(f.role for f in findings[1:] if f.role != findings[0].role)


def _draw_dot(role: str) -> str:
    return f'<i class="{role}" style="{_write_colours(COLOURS[role])}"></i>'


def show_key_shares(evidence: Evidence, head: Head) -> None:
    """Show what a head's attention depends on, as a bar with a legend. The tooltip has the shares."""
    key_shares = _load_key_shares(evidence).get(head)
    if key_shares is not None:
        description = escape(f"Its attention depends on {key_shares.words}")
        bar = f'<s role="img" aria-label="{description}" data-tip="{description}">{_draw_parts(key_shares)}</s>'
        parts = "".join(
            f"<span>{_draw_group(group)}{group}</span>" for group, share in key_shares.shares.items() if share > 0
        )
        st.html(f'<p class="mha-keys">Attention depends on{bar}<small>{parts}</small></p>')


@cache_results(CACHED_MAPS)
def _load_key_shares(evidence: Evidence) -> Mapping[Head, HeadShares]:
    return load_head_shares(evidence.table(WHY))


def _draw_parts(key_shares: HeadShares) -> str:
    return "".join(_draw_group(group, share) for group, share in key_shares.shares.items() if share > 0)


def _draw_group(group: str, share: float = 1) -> str:
    return _draw_part(group.replace(" ", "-"), share, GROUP_COLOURS.get(group))


def _draw_part(kind: str, share: float, number: int | None) -> str:
    colour = "" if number is None else f"--colour:light-dark({LIGHT.heads[number]},{DARK.heads[number]});"
    return f'<u class="{kind}" style="{colour}flex:{share:.4f} 0 0"></u>'


def _draw_symbol(name: str) -> str:
    return f'<b class="{name}"></b>'


def _write_colours(number: int) -> str:
    return f"--own:light-dark({LIGHT.heads[number]},{DARK.heads[number]});"


def _draw_legend(evidence: Evidence, kinds: tuple[str, ...]) -> str:
    """Return the kinds of roles with their symbols, as links that show one kind only, or all again."""
    existing_kinds = {finding.role for finding in evidence.findings()}
    links: list[str] = []
    for role, colour in COLOURS.items():
        if role in existing_kinds:
            other_kinds = tuple(kind for kind in kinds if kind != role)
            shown_kinds = other_kinds if role in kinds else tuple(kind for kind in COLOURS if kind in (*kinds, role))
            links.append(
                f'<a href="{_make_link(kinds=".".join(shown_kinds))}" target="_self" '
                f'aria-current="{str(role in kinds).lower()}" tabindex="{-1 if links else 0}" '
                f'style="{_write_colours(colour)}">{_draw_symbol("previous" if role == "position" else role)}{role}</a>'
            )
    return f'<p role="toolbar" aria-label="Roles to show">{"".join(links)}</p>'


def _draw_states(evidence: Evidence, kinds: tuple[str, ...]) -> str:
    """Explain the border and the filling of squares, which compare the head with the strongest simple rule.

    The tooltip names the rule.
    """
    rules = [RULES[role] for role in RULES if any(f.state and f.role == role for f in filter_findings(evidence, kinds))]
    if not rules:
        return ""
    states = "".join(f"<span>{_draw_mark(state)}{label.split()[0]}</span>" for state, label in STATE_WORDS.items())
    rule_names = escape(" or ".join(rules).replace("or the rule", "or"))
    return f'<div class="states" title="{rule_names}">{states}the rule</div>'


def _explain_shapes(evidence: Evidence) -> str:
    """Explain the shapes in the corners of squares, further roles and needed heads, behind a button."""
    further_kinds = {
        role for findings in group_by_head(evidence.findings()).values() for role in _list_further_kinds(findings)
    }
    entries = "".join(f"<span>{_draw_dot(role)}also {role}</span>" for role in COLOURS if role in further_kinds)
    entries += f"<span>{NEEDED_MARK}needed for sentence pairs</span>" if find_needed(evidence) else ""
    if not entries:
        return ""
    label = "What the shapes in the corners mean"
    button = f'<summary aria-label="{label}" title="{label}"><b class="shapes"></b>?</summary>'
    return f"<details>{button}<ol><li>{entries}</li></ol></details>"


def _make_link(**changes: str) -> str:
    """Return the address of this page with these parameters, and without the pin of the open head."""
    kept_parameters = {
        name: value for name, value in address.get_parameters().items() if name not in ("on", "pin", "link", *changes)
    }
    return escape(f"?{urlencode({**kept_parameters, **{name: value for name, value in changes.items() if value}})}")


def filter_findings(evidence: Evidence, kinds: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return the roles of these kinds, or all roles if none is chosen."""
    return tuple(f for f in evidence.findings() if not kinds or f.role in kinds)


def show_role_lines(findings: Sequence[Finding], uses: Mapping[str, str] | None = None) -> None:
    """Show one line for each role: what the head does and how often, what the strongest simple rule does, and a bar.

    The bar has a tick for the rule. Without ``uses``, the roles are of several heads, and each line names its head.
    With ``uses``, they are roles of one head, on its card: a role in ``uses`` is marked as used, by the measure given
    there; a line does not repeat the measure of the line before; and the explanation of the rules can be unfolded.
    """
    is_card = uses is not None
    first_comparison = next((finding for finding in findings if finding.state), None) if is_card else None
    body = "".join(
        f"<li>{'' if is_card else _link_head(f.head)}<b>"
        f"{escape(describe_in_list(f, previous if is_card else None))}</b>"
        f"{_draw_used_mark(uses[f.detail]) if uses and f.detail in uses else '; '}"
        f"{_describe_comparison(f, previous if is_card else None, f == first_comparison, is_card)}"
        f'<div class="mha-bar"><i style="width:{100 * f.score:.1f}%"></i>'
        f'<s class="k1" style="left:{100 * find_best_baseline(f)[1]:.1f}%"></s></div></li>'
        for f, previous in zip(findings, (None, *findings), strict=False)
    )
    apply_style("score_rows")
    st.html(f'<ul class="mha-rows">{body}</ul>')


def _describe_comparison(finding: Finding, previous: Finding | None, is_first: bool, has_words: bool) -> str:
    """Return the rule that the score is compared with, and a mark for the result of the comparison.

    The first of these marks on a card unfolds the explanation of all rules.
    """
    rule_words = escape(describe_rule_in_list(finding, previous))
    if not finding.state:
        return rule_words
    marked_rule, explanation = (
        f"{_draw_mark(finding.state)}&nbsp;{rule_words}",
        escape(compare_with_rule(finding, with_knowledge=is_first)),
    )
    rule_html = f"<details class='rule'><summary>{marked_rule}</summary></details>" if is_first else marked_rule
    return f"{rule_html}<small>{explanation}</small>" if has_words else marked_rule


def _draw_mark(state: str) -> str:
    """Return the mark of one of STATES, with a description for screen readers."""
    return (
        f'<s class="mha-state {state}" role="img" aria-label="{STATE_WORDS[state]}:" title="{STATE_WORDS[state]}"></s>'
    )


def _draw_used_mark(measure: str) -> str:
    """Return the mark at the end of a line that says that the head is used for the role."""
    return f", <details><summary>{describe_most(measure)}</summary><span>{explain_use(measure)}</span></details>"


def _link_head(head: Head) -> str:
    return f'<a href="{_make_link(head=str(head))}" target="_self">{format_head(head)}</a>'


def show_strongest_roles(evidence: Evidence) -> None:
    """Show the strongest role of each kind on the map, while no head is open."""
    strongest_findings: dict[str, Finding] = {}
    for finding in sort_by_strength(filter_findings(evidence, filters.read_filters().kinds)):
        strongest_findings.setdefault(finding.role, finding)
    st.markdown("**Strongest by kind**")
    show_role_lines([strongest_findings[role] for role in COLOURS if role in strongest_findings])


def show_table(evidence: Evidence) -> None:
    """Show a line for every role on the map, grouped by status, and all numbers on request."""
    kinds = filters.read_filters().kinds
    findings = sort_by_strength(filter_findings(evidence, kinds))
    rows: list[ScoreRow | str] = []
    for status in (ESTABLISHED, SUGGESTED):
        status_findings = [finding for finding in findings if finding.status == status]
        rows += [describe_status(status, status_findings), *map(_make_row, status_findings)] if status_findings else []
    score_rows.draw_rows("Role", ("best simple rule",), rows, second_heading="Head", bar_owner="this head")
    with st.expander("All numbers of these roles"):
        columns: dict[str, Any] = {name: st.column_config.NumberColumn(format=PERCENT) for name in PERCENTAGES}
        columns["gain in points"] = st.column_config.NumberColumn(format="%.1f")
        columns["in words"] = st.column_config.TextColumn(width="large")
        score_rows.show_all_numbers("roles", tabulate_roles(evidence, kinds), columns, "head")


def _make_row(finding: Finding) -> ScoreRow:
    """Return a row for a role, with how the head compares with the rule."""
    state = f", {STATE_WORDS[finding.state]}{compare_elsewhere(finding)}" if finding.state else ""
    return ScoreRow(f"{label_role(finding)}{state}", finding.head, finding.score, (find_best_baseline(finding)[1],))


def describe_status(status: str, findings: Sequence[Finding]) -> str:
    """Explain a status, and say how many roles of each kind have it."""
    kinds = [[finding for finding in findings if finding.role == role] for role in COLOURS]
    counts = ", ".join(f"{kind[0].role} {_count_roles(kind)}" for kind in kinds if kind)
    return f"{status[:1].upper()}{status[1:]}: {counts}. {STATUS_WORDS[status]}"


def _count_roles(findings: Sequence[Finding]) -> str:
    heads = len({finding.head for finding in findings})
    head_count, states = counted(heads, "head"), count_states(findings)
    role_count = head_count if len(findings) == heads else f"{counted(len(findings), 'role')} on {head_count}"
    return f"{role_count} ({states})" if states else role_count


@cache_results(CACHED_MAPS)
def tabulate_roles(evidence: Evidence, kinds: tuple[str, ...]) -> Any:
    """Return a data frame with one row per role. Cached, so callers must not change it."""
    import pandas as pd

    findings = filter_findings(evidence, kinds)
    uses = _describe_uses(evidence.table("used"))
    rows = [
        {
            "head": format_head(f.head),
            "role": f.role,
            "what": label_role(f),
            "status": f.status,
            "corpora": CORPUS_SEPARATOR.join(f.corpora),
            "against the rule": STATE_WORDS.get(f.state, ""),
            **dict(zip(PERCENTAGES, _list_shares(f), strict=True)),
            USE: uses.get((*f.head, f.role, f.detail), ""),
            "gain in points": 100 * f.gain,
            "n": f.n,
            "documents": f.documents,
            "in words": describe_evidence(f),
        }
        for f in findings
    ]
    columns = ["head", "role", "what", "status", "corpora", "against the rule", *PERCENTAGES]
    columns += [USE, "gain in points", "n", "documents", "in words"]
    return to_percentages(pd.DataFrame(rows, columns=columns), PERCENTAGES)


def _describe_uses(table: Any) -> Mapping[tuple[int, int, str, str], str]:
    """Return, in words, whether the head of each role is used for it, for roles where that was measured."""
    rows: Iterable[Any] = () if table is None else table.itertuples(index=False)
    return {(r.layer, r.head, r.role, r.detail): describe_use(is_used(r.used), r.measure) for r in rows}


def _list_shares(finding: Finding) -> tuple[float, ...]:
    other_score = finding.other_score or OtherCorpusScore("", math.nan)
    choice = finding.comparison.choice, finding.comparison.nearest
    rules = finding.baseline, finding.upos, other_score.upos, *choice, finding.untrained
    return finding.score, finding.low, finding.high, other_score.score, *rules
