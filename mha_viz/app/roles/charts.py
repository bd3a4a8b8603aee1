"""Build the downloads of the Roles page: its map, a head's card, its tables as charts, weights on repeated tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mha_viz.analysis.bundled_data import list_head_recipes
from mha_viz.analysis.repeats import DRAWS, LENGTH
from mha_viz.app.roles import filters, link_groups, overview, relations, repeat_roles
from mha_viz.app.roles.head_card import DELIMITERS, select_head_rows
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.attention import Head
from mha_viz.figures.charts.link_map import draw_link_map
from mha_viz.figures.charts.role_map import draw_against_rules, draw_offsets, draw_role_map, draw_shares
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import format_head
from mha_viz.model_names import cite_model
from mha_viz.models.getting import catalog

RULES = ("offset", "parts of speech", "untrained")  # columns of the table of relations
MENTION_RULES = ("nearest", "same form", "agreement", "untrained")  # columns of the table of mentions


def make_charts(model: catalog.Model, evidence: Evidence, head: Head | None) -> list[PageChart]:
    """Return all charts of the page, in its order."""
    profile = evidence.profiles[0]
    citation = cite_model(profile.model, str(profile.facts.get("revision", "")))
    description = f"Heads of {citation}, measured on {evidence.label}."
    page_charts = [_make_map(evidence, head, description)] if evidence.findings() else []
    page_charts += (
        [*_make_card_charts(evidence, head, description), *_make_link_map(model, evidence, head)] if head else []
    )
    if evidence.table("syntax_chosen") is not None:
        table = relations.tabulate_relations(evidence, filters.read_filters().level)
        page_charts += _make_rule_chart(
            "Relations: best heads and simple rules", "relations", table, "relation", RULES, description
        )
    if relations.list_coreference_profiles(evidence):
        table = relations.tabulate_mentions(evidence)
        page_charts += _make_rule_chart(
            "Coreference: best heads and simple rules", "coreference", table, "mention", MENTION_RULES, description
        )
    return page_charts


def make_repeat_charts(model: catalog.Model) -> list[PageChart]:
    """Return the chart of the selected measure on repeated tokens, with the numbers of all four measures."""
    heads = repeat_roles.load_heads(model)
    if heads is None:
        return []
    measure = repeat_roles.read_measure()
    label = f"{repeat_roles.LABELS[measure]}: mean weight of each head"
    citation = cite_model(model.name, heads.revision)
    description = f"Heads of {citation} on {DRAWS} sequences of {LENGTH} random tokens, each of which occurs twice."
    code = f"import mha_viz as mv\n\nheads = mv.find_induction_heads({heads.model!r})\nheads.table()\n"
    draw = partial(repeat_roles.draw_weights, heads, measure)
    return [
        PageChart(label, f"repeats-{measure}", draw, description, lambda: _make_table(heads.table(), description), code)
    ]


def _make_map(evidence: Evidence, head: Head | None, description: str) -> PageChart:
    kinds = filters.read_filters().kinds
    findings, profile = overview.filter_findings(evidence, kinds), evidence.profiles[0]
    recipes = list_head_recipes(profile.model, str(profile.facts.get("revision", "")))
    needed_heads = overview.find_needed(evidence)

    def draw(theme: Theme) -> Any:
        return draw_role_map(findings, profile.heads(), head, theme, recipes, needed_heads)

    return PageChart(
        "Map of roles",
        "roles",
        draw,
        f"{description} The bar below a head: shares of attention that its recipe explains. +1: a further role.",
        lambda: _make_table(overview.tabulate_roles(evidence, kinds), description),
    )


def _make_card_charts(evidence: Evidence, head: Head, description: str) -> list[PageChart]:
    """Return two charts: the offsets at which a head looks, and its weight on delimiters."""
    position, delimiter = (select_head_rows(evidence.table(name), head) for name in ("position", "delimiter"))
    if position is None or delimiter is None:
        return []
    offsets = position["offset"].astype(int).tolist()
    weights = delimiter.iloc[0][list(DELIMITERS)].astype(float).tolist()
    head_caption = f"{format_head(head)}. {description}"
    return [
        PageChart(
            f"Where {head} looks, in tokens from the token itself",
            f"offsets-{head}",
            lambda theme: draw_offsets(position["mass"], position["share_of_maxima"], offsets, theme),
            head_caption,
        ),
        PageChart(
            f"Weight of {head} on delimiters",
            f"delimiters-{head}",
            lambda theme: draw_shares(tuple(DELIMITERS.values()), weights, theme),
            head_caption,
        ),
    ]


def _make_link_map(model: catalog.Model, evidence: Evidence, head: Head) -> list[PageChart]:
    """Return the map of the head's links, if they were sampled."""
    groups = link_groups.load_groups(model, evidence, head)
    if groups is None:
        return []
    profile = evidence.profiles[0]
    revision = str(profile.facts.get("revision", "")) if profile.model == model.name else ""
    citation = cite_model(model.name, revision)
    description = (
        f"{format_head(head)} of {citation}: queries and keys of {len(groups.links)} links from {groups.corpus}."
    )
    draw = partial(draw_link_map, groups, method=link_groups.read_method(groups))
    code = (
        f"import mha_viz as mv\n\ngroups = mv.roles.group_links('grammar', '{head}', {model.name!r})\ngroups.table()\n"
    )
    code = code if groups.corpus == load_built_in_corpus().name else ""
    return [
        PageChart(
            f"Links of {head}",
            f"links-{head}",
            draw,
            description,
            lambda: _make_table(groups.table(), description),
            code,
        )
    ]


def _make_rule_chart(
    label: str, file: str, table: Any, name_column: str, rules: Sequence[str], description: str
) -> list[PageChart]:
    """Return a bar chart of the best heads in a table, with the scores of simple rules; empty for an empty table."""
    if not len(table):
        return []
    heads = [f"{name}: {head.split()[0]}" for name, head in zip(table[name_column], table["best head"], strict=True)]
    marks: Mapping[str, Any] = {rule: table[rule].tolist() for rule in rules}
    scores = table["score"].tolist()
    draw = lambda theme: draw_against_rules(heads, scores, marks, theme)  # noqa: E731
    return [PageChart(label, file, draw, description, lambda: _make_table(table, description))]


def _make_table(frame: Any, description: str) -> Table:
    """Return a data frame as a table of plain numbers and texts."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return Table(
        tuple(map(str, frame.columns)),
        tuple(tuple(map(_to_plain_value, row)) for row in rows),
        {"caption": description},
    )


def _to_plain_value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
