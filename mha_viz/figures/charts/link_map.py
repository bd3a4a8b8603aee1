"""Scatter plots of the queries and keys of one head's links, coloured by group of links."""

from __future__ import annotations

from html import escape

from mha_viz.analysis.link_groups import LinkGroup, LinkGroups
from mha_viz.figures.charts.chart import Axis, Chart, Legend, Margin, Plot, Points, divide_width
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import format_weight, percent

MAX_COLOURED_GROUPS = 8  # maximum number of groups with their own colours; smaller groups are drawn together
SIDES = ("Queries", "Keys")
MAX_NAME_LENGTH = 44  # maximum number of characters of a name in the legend


def draw_link_map(groups: LinkGroups, theme: Theme, method: str = "pca") -> Chart:
    """Draw two plots with common axes, one of the queries and one of the keys.

    ``method`` is a key of ``groups.points``.
    """
    series = []
    entries = [
        (escape(name_link_group(group)), theme.heads[number], [group])
        for number, group in enumerate(groups.groups[:MAX_COLOURED_GROUPS])
    ]
    small_groups = list(groups.groups[MAX_COLOURED_GROUPS:])
    if small_groups:
        share = percent(sum(group.share for group in small_groups), 0)
        entries.append((f"smaller groups, {share}", theme.muted, small_groups))
    for name, colour, members in entries:
        links = [link for group in members for link in group.links]
        group_links = [groups.links[link] for link in links]
        hints = [f"{escape(link.pair)}, weight {format_weight(link.weight)}" for link in group_links]
        labels = [link.pair for link in group_links]
        for side, points in enumerate(groups.points[method]):
            x, y = points[links].T.tolist()
            options = {"name": name, "in_legend": side == 0, "labels": labels, "hints": hints, "hover": "%{hovertext}"}
            series.append(Points(x, y, 7, colour, 0.5, theme.paper, plot=side, **options))  # type: ignore[arg-type]
    axis = Axis(has_labels=False, grid=False, is_fixed=False)
    plots = [Plot(axis, axis, title, span) for title, span in zip(SIDES, divide_width([1, 1], 0.04), strict=True)]
    return Chart(theme, series, plots, height=420, margin=Margin(10, 10, 36, 90), legend=Legend(is_below=True))


def name_link_group(group: LinkGroup) -> str:
    """Return "44% the token before"; for an unexplained group, the most common pairs of words."""
    name = f"{percent(group.share, 0)} {group.name}"
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1].rstrip(' ,')}…"
