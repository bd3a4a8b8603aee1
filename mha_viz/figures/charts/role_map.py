"""Charts of the roles of heads: the map of roles, and the profile of one head."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mha_viz.analysis.bundled_data import KINDS, HeadRecipe
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS, Finding
from mha_viz.attention import Head
from mha_viz.figures.charts.chart import Axis, Bars, Cells, Chart, Frame, Legend, Line, Margin, Plot, Points, Series
from mha_viz.figures.charts.effects import frame_head, numbered_axis, place_on_squares
from mha_viz.figures.drawing.theme import Theme, choose_ink
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import simplify_rule
from mha_viz.figures.words.role_words import (
    COLOURS,
    KIND_COLOURS,
    STATE_WORDS,
    describe_role,
    group_by_head,
    shorten_name,
)
from mha_viz.numerals import format_signed

CELL, TOP, LEFT, RIGHT, BOTTOM = (60, 40), 30, 30, 4, 50  # pixels
MAX_LETTERS = 6  # maximum number of letters of a role in its cell, so that the map fits on a phone
LINE_LENGTH = 70  # characters of a line of a hover text
BAR_WIDTH = 0.9  # share of the width of a cell, for a recipe that explains all attention
MIN_STRENGTH = 0.18  # of the colour of a role without a gain or whose head does not beat the strongest simple rule
SIGNS = {BEATS: ">", EQUALS: "=", BELOW: "<"}  # how a head compares with that rule
LABELLED_STEPS = (0, 10, 30, 100, 300, 1000, 3000, 10000)  # training steps with a label on the axis of a score curve


def draw_role_map(
    findings: Sequence[Finding],
    all_heads: Sequence[Head],
    chosen_head: Head | None,
    theme: Theme,
    recipes: Sequence[HeadRecipe] = (),
    needed: Collection[Head] = (),
) -> Chart:
    """Draw every head of a model, layers × heads, in the colour of its main role.

    The larger the role's gain, the stronger the colour; it is faint if the head does not beat the strongest simple
    rule, and a sign shows how the head compares with that rule. Small squares mark further kinds of roles, and
    dots the heads that are ``needed`` for sentence pairs. The line below a cell is the head's recipe; its length is the
    share that the recipe explains. The label of a cell is the head's name.
    """
    roles, recipe_words = group_by_head(findings), {recipe.head: recipe.describe(simplify_rule) for recipe in recipes}
    shape = all_heads[-1].layer + 1, all_heads[-1].head + 1
    present_roles = [role for role in COLOURS if any(f.role == role for f in findings)]
    texts = [_cell_text(roles.get(head, [])) for head in all_heads]
    hints = [_hover(head, roles.get(head, []), recipe_words.get(head, "")) for head in all_heads]
    squares = place_on_squares(all_heads, texts, 11, [_choose_ink(roles.get(head), theme) for head in all_heads], hints)
    layers, heads = shape
    width, height = CELL if heads <= 12 and layers <= 12 else (58, 30)
    return Chart(
        theme,
        [
            *(series for role in present_roles for series in _build_role_series(role, roles, shape, theme)),
            *_recipe_lines(recipes, theme),
            *_mark_needed(needed, theme),
            *_sign_legend(findings, theme),
            squares,
        ],
        [Plot(numbered_axis("H", heads, True), numbered_axis("L", layers, True))],
        width=LEFT + max(width, 420 // heads) * heads + RIGHT,  # the legend needs this much
        height=TOP + height * layers + BOTTOM,
        margin=Margin(LEFT, RIGHT, TOP, BOTTOM),
        frames=[frame_head(chosen_head, (0.5, 0.5), theme.accent, 3)] if chosen_head is not None else [],
        label_font_size=11,
        has_faint_labels=True,
        legend=Legend(is_below=True, clicks="none"),
    )


def _build_role_series(
    role: str, roles: dict[Head, list[Finding]], shape: tuple[int, int], theme: Theme
) -> tuple[Series, ...]:
    """Return the series of one role: cells, legend and small squares.

    Cells mark heads with this main role; small squares mark heads that have it as a further role.
    """
    shades = np.full(shape, np.nan)
    for head, findings in roles.items():
        if findings[0].role == role:
            shades[head] = colour_strength(findings[0])
    colour = theme.heads[COLOURS[role]]
    other_heads = [head for head, findings in roles.items() if role in {f.role for f in findings} - {findings[0].role}]
    x = [head.head + 0.4 - 0.13 * list(COLOURS).index(role) for head in other_heads]
    y = [head.layer + 0.34 for head in other_heads]
    return (
        Cells(shades, 0, 1, (theme.paper, colour), gap=2, hover=""),
        Points([None], [None], 12, colour, is_square=True, name=role),
        Points(x, y, 7, colour, 1, theme.paper, is_square=True, hover="", in_legend=False),
    )


def _mark_needed(heads: Collection[Head], theme: Theme) -> Iterator[Points]:
    """Draw a dot in the corner of each of these heads."""
    if heads:
        x, y = [head.head - 0.4 for head in heads], [head.layer + 0.3 for head in heads]
        yield Points(x, y, 7, theme.ink, 1, theme.paper, hover="", name="needed for sentence pairs")


def _sign_legend(findings: Sequence[Finding], theme: Theme) -> Iterator[Points]:
    """Explain the signs in cells, in the legend, without squares."""
    for state, sign in SIGNS.items():
        if any(finding.state == state for finding in findings):
            yield Points([None], [None], 0, theme.paper, name=f"{escape(sign)} {STATE_WORDS[state]}")


def _recipe_lines(recipes: Sequence[HeadRecipe], theme: Theme) -> Iterator[Line]:
    """Draw a line below each cell: the share of the head's attention that each kind of rule explains, in a fixed order.

    The unexplained share is empty.
    """
    coordinates: dict[str, tuple[list[float | None], list[float | None]]] = {kind: ([], []) for kind in KINDS}
    for recipe in recipes:
        start = recipe.head.head - BAR_WIDTH / 2
        for kind, (x, y) in coordinates.items():
            share = BAR_WIDTH * recipe.by_kind[kind]
            x += [start, start + share, None]
            y += [recipe.head.layer + 0.44] * 2 + [None]
            start += share
    for kind, (x, y) in coordinates.items():
        colour = theme.heads[KIND_COLOURS[kind]] if kind in KIND_COLOURS else theme.muted
        yield Line(x, y, colour, 4, opacity=1 if kind in KIND_COLOURS else 0.4, hover="", in_legend=False)


def colour_strength(finding: Finding) -> float:
    """Return the strength of a role's colour, from 0 to 1: the larger its gain over the simple rules, the stronger."""
    if finding.is_matched_by_rule:
        return MIN_STRENGTH
    return MIN_STRENGTH + (1 - MIN_STRENGTH) * min(1.0, max(0.0, finding.gain))


def _cell_text(findings: Sequence[Finding]) -> str:
    """Return "case<br>+2", or "case<br>< +2" if the head is compared with a rule."""
    if not findings:
        return "·"
    hidden_count = len({(f.role, shorten_name(f)) for f in findings}) - 1
    name = shorten_name(findings[0])
    short_name = name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…"
    count = f"+{hidden_count}" * bool(hidden_count)
    second_line = " ".join(filter(None, (escape(SIGNS.get(findings[0].state, "")), count)))
    return "<br>".join(filter(None, (escape(short_name), second_line)))


def _choose_ink(findings: Sequence[Finding] | None, theme: Theme) -> str:
    """Return black or white for text on a coloured cell, whichever is easier to read."""
    if not findings:
        return theme.muted
    ends = theme.paper, theme.heads[COLOURS[findings[0].role]]
    paper_rgb, role_rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ends], float)
    mixed_rgb = paper_rgb + (role_rgb - paper_rgb) * colour_strength(findings[0])
    return choose_ink("#" + "".join(f"{round(c):02x}" for c in mixed_rgb))


def _hover(head: Head, findings: Sequence[Finding], recipe: str) -> str:
    lines = [f"<b>{format_head(head)}</b>", *(_fold_text(describe_role(f)) for f in findings[:4])]
    if len(findings) > 4:
        lines.append(f"and {len(findings) - 4} more")
    return "<br>".join([*lines, *([] if findings else ["no role found"]), *([escape(recipe)] if recipe else [])])


def _fold_text(text: str) -> str:
    words, lines = escape(text).split(), [""]
    for word in words:
        lines = (
            [*lines[:-1], f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < LINE_LENGTH else [*lines, word]
        )
    return "<br>".join(lines)


def draw_offsets(
    mean_weights: Sequence[float], max_shares: Sequence[float], offsets: Sequence[int], theme: Theme
) -> Chart:
    """Draw a head's mean weight and its share of the largest weights at each offset from the query."""
    names = [format_signed(offset) if offset else "itself" for offset in offsets]
    mean_bars = Bars(names, list(mean_weights), theme.heads[0], name="mean weight")
    max_bars = Bars(names, list(max_shares), theme.heads[1], name="share of the largest weights")
    return _share_chart([mean_bars, max_bars], theme, Legend())


def draw_shares(names: Sequence[str], values: Sequence[float], theme: Theme) -> Chart:
    """Draw shares of a total as bars."""
    return _share_chart([Bars(list(map(escape, names)), list(values), theme.heads[4])], theme)


def _share_chart(bars: Sequence[Bars], theme: Theme, legend: Legend | None = None) -> Chart:
    plots, margin = (
        [Plot(Axis(has_names=True), Axis(range=(0, 1), grid=True))],
        Margin(40, 10, 30 if legend else 10, 30),
    )
    return Chart(theme, bars, plots, height=230, margin=margin, font_size=12, legend=legend, bar_gap=0.25)


def draw_score_curves(table: Any, step: int, title: str, theme: Theme) -> Chart:
    """Draw the accuracy of every head over the steps of training, and the baseline.

    The head that is best at the end is emphasised and named. The step axis is logarithmic and shows step + 1, because
    it has no zero.
    """
    last_rows = table[table["step"] == table["step"].max()]
    best_row = last_rows.loc[last_rows["accuracy"].idxmax()]
    best_head = Head(int(best_row["layer"]), int(best_row["head"]))
    heads = {Head(int(layer), int(head)): rows for (layer, head), rows in table.groupby(["layer", "head"])}
    drawing_order = sorted(heads, key=lambda head: head == best_head)
    lines = [_score_line(head, heads[head], head == best_head, theme) for head in drawing_order]
    baseline = float(last_rows["baseline"].iloc[0])
    x = Axis(
        is_log=True,
        grid=True,
        positions=[labelled_step + 1 for labelled_step in LABELLED_STEPS],
        names=[f"{labelled_step:,}" for labelled_step in LABELLED_STEPS],
    )
    return Chart(
        theme,
        lines,
        [Plot(x, Axis(range=(0, 1.03), tick_format=".0%", grid=True))],
        height=190,
        margin=Margin(40, 26, 26, 24),
        frames=[
            Frame(None, (baseline, baseline), theme.heads[1], 1, "dot"),
            Frame((step + 1, step + 1), None, theme.accent, 1),
        ],
        title=f"{escape(title)} · <b>{format_head(best_head)}</b>",
        font_size=12,
    )


def _score_line(head: Head, rows: Any, is_best: bool, theme: Theme) -> Line:
    """Return the accuracy of one head over the steps of training."""
    steps, name = rows["step"].to_numpy(), format_head(head)
    colour, width = (theme.heads[0], 3) if is_best else (theme.muted, 1)
    hover = f"step %{{customdata:,}}: %{{y:.0%}}<extra>{name}</extra>"
    return Line(steps + 1, rows["accuracy"].to_numpy(), colour, width, name=name, labels=steps, hover=hover)


def draw_against_rules(
    names: Sequence[str], scores: Sequence[float], rules: Mapping[str, Sequence[float]], theme: Theme
) -> Chart:
    """Draw one bar per name for the score of its best head, with a mark for the score of each of the ``rules``."""
    positions, count = list(range(len(names))), len(names)
    series: list[Series] = [Bars(positions, list(scores), theme.heads[0], is_horizontal=True, name="best head")]
    for number, (rule, values) in enumerate(rules.items(), 1):
        series.append(Points(list(values), positions, 8, theme.heads[number], is_square=True, name=rule))
    y = Axis(positions=positions, names=list(map(escape, names)), range=(count - 0.5, -0.5), grid=False)
    return Chart(
        theme,
        series,
        [Plot(Axis(range=(0, 1), tick_format=".0%", grid=True), y)],
        height=70 + 20 * count,
        margin=Margin(190, 16, 30, 30),
        font_size=12,
        legend=Legend(),
        bar_gap=0.35,
    )
