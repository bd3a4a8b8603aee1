"""The downloads of the Roles page.

They are its map, the card of a head, its tables as charts, and weights on repeated tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mha_viz.analysis.repeats import DRAWS, LENGTH
from mha_viz.analysis.shipped import of_heads
from mha_viz.app.roles import filters, link_groups, overview, relations, repeated
from mha_viz.app.roles.head_card import DELIMITERS, rows_of_head
from mha_viz.app.service.studies import Evidence
from mha_viz.app.url.annotated import built_in
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.attention import Head
from mha_viz.figures.charts.link_map import link_map
from mha_viz.figures.charts.role_map import against_rules, offsets, role_map, shares
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import both
from mha_viz.model_names import cite_model
from mha_viz.models.getting import catalog

RULES = ("offset", "parts of speech", "untrained")  # columns of the table of relations
OF_MENTIONS = ("nearest", "same form", "agreement", "untrained")  # and of the table of mentions


def charts(model: catalog.Model, evidence: Evidence, head: Head | None) -> list[PageChart]:
    """Return all charts of the page, in its order."""
    profile = evidence.profiles[0]
    cited = cite_model(profile.model, str(profile.facts.get("revision", "")))
    about = f"Heads of {cited}, measured on {evidence.label}."
    page_charts = [_map(evidence, head, about)] if evidence.findings() else []
    page_charts += [*_card(evidence, head, about), *_links(model, evidence, head)] if head else []
    if evidence.table("syntax_chosen") is not None:
        table = relations.relations_table(evidence, filters.from_url().level)
        page_charts += _against("Relations: best heads and simple rules", "relations", table, "relation", RULES, about)
    if relations.coreferent(evidence):
        table = relations.mentions(evidence)
        page_charts += _against(
            "Coreference: best heads and simple rules", "coreference", table, "mention", OF_MENTIONS, about
        )
    return page_charts


def on_repeats(model: catalog.Model) -> list[PageChart]:
    """Return the chart of the open measure on repeated tokens, with the numbers of all four measures."""
    heads = repeated.measured_heads(model)
    if heads is None:
        return []
    measure = repeated.measure_in_view()
    label = f"{repeated.SPELT[measure]}: mean weight of each head"
    cited = cite_model(model.name, heads.revision)
    about = f"Heads of {cited} on {DRAWS} sequences of {LENGTH} random tokens, each of which occurs twice."
    code = f"import mha_viz as mv\n\nheads = mv.find_induction_heads({heads.model!r})\nheads.table()\n"
    draw = partial(repeated.weights_chart, heads, measure)
    return [PageChart(label, f"repeats-{measure}", draw, about, lambda: _table(heads.table(), about), code)]


def _map(evidence: Evidence, head: Head | None, about: str) -> PageChart:
    kinds = filters.from_url().kinds
    findings, profile = overview.filtered(evidence, kinds), evidence.profiles[0]
    recipes = of_heads(profile.model, str(profile.facts.get("revision", "")))

    def draw(theme: Theme) -> Any:
        return role_map(findings, profile.heads(), head, theme, recipes)

    return PageChart(
        "Map of roles", "roles", draw, about, lambda: _table(overview.table_of_roles(evidence, kinds), about)
    )


def _card(evidence: Evidence, head: Head, about: str) -> list[PageChart]:
    """Return the charts of where a head looks, and of its weight on delimiters."""
    position, delimiter = (rows_of_head(evidence.table(name), head) for name in ("position", "delimiter"))
    if position is None or delimiter is None:
        return []
    places = position["offset"].astype(int).tolist()
    weights = delimiter.iloc[0][list(DELIMITERS)].astype(float).tolist()
    of_head = f"{both(head)}. {about}"
    return [
        PageChart(
            f"Where {head} looks, in tokens from the token itself",
            f"offsets-{head}",
            lambda theme: offsets(position["mass"], position["share_of_maxima"], places, theme),
            of_head,
        ),
        PageChart(
            f"Weight of {head} on delimiters",
            f"delimiters-{head}",
            lambda theme: shares(tuple(DELIMITERS.values()), weights, theme),
            of_head,
        ),
    ]


def _links(model: catalog.Model, evidence: Evidence, head: Head) -> list[PageChart]:
    """Return the map of the head's links, if they were sampled."""
    groups = link_groups.stored(model, evidence, head)
    if groups is None:
        return []
    profile = evidence.profiles[0]
    revision = str(profile.facts.get("revision", "")) if profile.model == model.name else ""
    cited = cite_model(model.name, revision)
    about = f"{both(head)} of {cited}: queries and keys of {len(groups.links)} links from {groups.corpus}."
    draw = partial(link_map, groups, method=link_groups.method_of(groups))
    code = (
        f"import mha_viz as mv\n\ngroups = mv.roles.group_links('grammar', '{head}', {model.name!r})\ngroups.table()\n"
    )
    code = code if groups.corpus == built_in().name else ""
    return [PageChart(f"Links of {head}", f"links-{head}", draw, about, lambda: _table(groups.table(), about), code)]


def _against(label: str, file: str, table: Any, names: str, rules: Sequence[str], about: str) -> list[PageChart]:
    """Return a table of best heads as a chart of bars with the scores of simple rules, and all its numbers."""
    if not len(table):
        return []
    heads = [f"{name}: {head.split()[0]}" for name, head in zip(table[names], table["best head"], strict=True)]
    marks: Mapping[str, Any] = {rule: table[rule].tolist() for rule in rules}
    scores = table["score"].tolist()
    draw = lambda theme: against_rules(heads, scores, marks, theme)  # noqa: E731
    return [PageChart(label, file, draw, about, lambda: _table(table, about))]


def _table(frame: Any, about: str) -> Table:
    """Return a data frame as a table of plain numbers and texts."""
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return Table(tuple(map(str, frame.columns)), tuple(tuple(map(_value, row)) for row in rows), {"caption": about})


def _value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
