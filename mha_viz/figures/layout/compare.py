"""Heads side by side on one colour scale, as a static figure."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping, Sequence
from typing import Literal, NamedTuple

from mha_viz.attention import Attention
from mha_viz.errors import SettingError, shorten_value
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Drawing, Mark, Note, Text, shift_marks
from mha_viz.figures.drawing.theme import THEMES, Theme
from mha_viz.figures.layout import (
    ON_PAPER,
    ON_SCREEN,
    UNLIMITED,
    Size,
    Spacing,
    caption,
    draw_footer,
    make_sheet,
    wrap_text,
)
from mha_viz.figures.layout.heatmap import (
    FOOT,
    Matrix,
    Room,
    describe_thinning,
    draw_matrix,
    draw_scale_bar,
    measure_label_room,
    note_missing_labels,
)
from mha_viz.figures.layout.links import TOP, build_strands, draw_line_foot, draw_link_marks, measure_token_room
from mha_viz.figures.layout.panels import MAX_PANELS, Panel, find_pins
from mha_viz.figures.layout.view import (
    Axes,
    Block,
    Focus,
    View,
    build_block,
    check_pin,
    colour_cells,
    describe_crowded_texts,
    describe_few_links,
    describe_range,
    list_units,
    note_faint_cells,
    note_faint_links,
    scale_colours,
)
from mha_viz.model_names import format_revision, label_model

GAP = 28  # gaps between panels, pixels
TITLE_HEIGHT = 68  # pixels above a panel: its title, two lines on its reading, and a gap
MIN_TITLE_WIDTH = 60  # minimum width of a title, pixels
AXES = "query ↓   key →"
MIN_WIDTHS = {"heatmap": 230, "links": 270}
# The visual property that shows the size of a weight.
VISUAL_PROPERTIES = {"heatmap": "Colour", "links": "Width and darkness"}

PanelKind = Literal["heatmap", "links"]


def compare(
    panels: Sequence[Panel],
    view: View | None = None,
    size: Size | None = None,
    kind: PanelKind = "heatmap",
    columns: int | None = None,
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
) -> Drawing:
    """Draw panels in rows of ``columns``, all on one scale and with cells of one size.

    By default, rows have as many panels as fit, distributed evenly: four panels become two by two if three fit.

    ``scale="head"`` runs to the largest weight of all panels. The scale "row", which is not shared, and one side of a
    pair are refused. The pin counts tokens of panel ``pin_of``; the other panels pin the corresponding word, if any.
    For the two panels of ``diff``, whose difference is shown with this figure, a replaced word corresponds, too.
    Raises SettingError, UnknownHead.
    """
    view, size = (view or View()).of([panel.attention for panel in panels]), size or Size()
    check_panels(panels, view, pin_of)
    check_panel_kind(kind, columns)
    check_diff(diff, len(panels))
    theme, panels_per_row = THEMES[size.look], columns or count_columns(len(panels), size.pixels, kind)
    all_axes = [list_units(p.attention, view) for p in panels]
    rows = _lay_out_panels(
        all_axes, kind, panels_per_row, max(size.pixels, panels_per_row * 80 + (panels_per_row - 1) * GAP)
    )
    pins = find_pins(panels, view, pin_of, diff)
    blocks = [build_block(p.attention, p.head, view, axes) for p, axes in zip(panels, all_axes, strict=True)]
    range_text = describe_range(view.scale, blocks)
    few_links_text = next(filter(None, (describe_few_links(axes, view) for axes in all_axes if kind == "links")), "")
    if few_links_text and len(panels) > 1:
        few_links_text += f" of {describe_crowded_texts(all_axes, view) or 'each'}"
    _, foot_height = _draw_shared_scale(kind, range_text, rows.total_width, theme, blocks, few_links_text)
    footer = draw_footer(caption.mention_ablated([(p.attention, p.head) for p in panels]), rows.total_width, theme.ink)
    panel_height = (size.max_height - footer[1]) / math.ceil(len(panels) / panels_per_row) - TITLE_HEIGHT - foot_height
    drawings = draw_panels(
        panels,
        pins,
        view,
        kind,
        rows.panel_width,
        theme,
        not size.transparent,
        math.inf,
        panel_height,
        ON_PAPER,
        rows.unlabelled,
    )
    marks, bottom = _place_rows(panels, drawings, rows, theme)
    note = few_links_text or drawings[0].label_note
    foot, _ = _draw_shared_scale(kind, range_text, rows.total_width, theme, blocks, note)
    faint_notes = note_faint_links(view, blocks, pins) if kind == "links" else note_faint_cells(view, blocks)
    comparison = Drawing(
        rows.total_width,
        bottom + foot_height,
        (*marks, *shift_marks(foot, 0, bottom)),
        background=None if size.transparent else theme.paper,
        notes=(*faint_notes, *dict.fromkeys(note for drawing in drawings for note in drawing.notes)),
        **write_figure_texts(
            panels,
            view,
            blocks,
            ("compare", kind),
            f"{VISUAL_PROPERTIES[kind]}, for all panels: {range_text}.",
            pin_of,
            None in pins,
        ),
    )
    return make_sheet(comparison, size, footer)


class PanelRows(NamedTuple):
    """The positions of panels: ``panels_per_row`` panels in a row of ``total_width`` pixels.

    ``label_width`` is the room for row labels. The panels ``unlabelled`` share the labels of the first panel in their
    row.
    """

    panels_per_row: int
    total_width: float
    label_width: float
    unlabelled: frozenset[int]

    @property
    def shared_room(self) -> float:
        """The room for row labels that all panels of a row share."""
        return self.label_width if self.unlabelled else 0.0

    @property
    def panel_width(self) -> float:
        """The width of a panel with row labels."""
        gaps = (self.panels_per_row - 1) * GAP
        return self.shared_room + (self.total_width - self.shared_room - gaps) / self.panels_per_row

    def left(self, panel: int) -> float:
        """Return the left edge of a panel's labels, or of its cells if it has no labels."""
        column = panel % self.panels_per_row
        return column * (self.panel_width - self.shared_room + GAP) + (self.shared_room if column else 0.0)


def _lay_out_panels(all_axes: Sequence[Axes], kind: PanelKind, panels_per_row: int, total_width: float) -> PanelRows:
    """Lay out panels with these axes; if all have the same tokens as rows, only the first in a row has labels."""
    if kind == "links":
        return PanelRows(panels_per_row, total_width, 0.0, frozenset())
    rows = {tuple((unit.text, unit.special) for unit in axes.rows) for axes in all_axes}
    unlabelled = frozenset(i for i in range(len(all_axes)) if len(rows) == 1 and i % panels_per_row)
    return PanelRows(panels_per_row, total_width, max(map(measure_label_room, all_axes)), unlabelled)


def _draw_shared_scale(
    kind: PanelKind, range_text: str, width: float, theme: Theme, blocks: Sequence[Block], note: str
) -> tuple[tuple[Mark, ...], float]:
    """Return the marks below all panels and their height.

    The marks are the names of the axes and the scale of colours, or of the width and darkness of lines. ``note`` names
    the links that are drawn, or the labels that are left out.
    """
    legend = f"one scale{' of width and darkness' if kind == 'links' else ''}, {range_text}"
    if kind == "links":
        colour = theme.signed[-2] if any(block.signed for block in blocks) else theme.ink
        return draw_line_foot(blocks, (colour, theme.signed[1]), (legend, range_text), note, width, theme)
    room = width - 90 - fonts.width(legend, 11) - 2 * GAP
    remark = next((text for text in (f"{AXES}   {note}".rstrip(), note) if fonts.width(text, 11) <= room), AXES)
    bar = draw_scale_bar(width, FOOT / 2, 90, theme, scale_colours(blocks, theme), legend)
    return (Text(0, FOOT / 2, remark, 11, theme.muted), *bar), FOOT


def check_panels(panels: Sequence[Panel], view: View, pin_of: int) -> None:
    """Raise SettingError for panels that cannot be shown side by side in a view."""
    if not 1 <= len(panels) <= MAX_PANELS:
        raise SettingError(f"{len(panels)} heads were given.", f"A comparison shows 1 to {MAX_PANELS}.")
    quantities = sorted({f"{panel.attention.quantity}s" for panel in panels})
    if len(quantities) > 1:
        raise SettingError(
            f"The panels hold {' and '.join(quantities)}.",
            "Compare readings of one quantity: one colour scale cannot serve several units.",
        )
    if view.scale == "row":
        raise SettingError("scale is 'row', which gives each row its own.", "A comparison takes fixed, head or log.")
    if view.side != "all":
        raise SettingError(f"side is {view.side!r}.", "A comparison shows whole matrices; sides are for a single head.")
    if not _is_integer(pin_of) or not 0 <= pin_of < len(panels):
        raise SettingError(f"pin_of is {shorten_value(pin_of)!r}.", f"Expected a panel from 0 to {len(panels) - 1}.")
    check_pin(panels[pin_of].attention, view)


def check_panel_kind(kind: str, columns: int | None) -> None:
    """Raise SettingError for an unknown kind of panel, or an impossible number of columns."""
    if not isinstance(kind, str) or kind not in MIN_WIDTHS:
        raise SettingError(f"kind is {shorten_value(kind)!r}.", "Expected heatmap or links.")
    if columns is not None and not (_is_integer(columns) and 1 <= columns <= MAX_PANELS):
        raise SettingError(f"columns is {shorten_value(columns)!r}.", f"Expected a number from 1 to {MAX_PANELS}.")


def check_diff(diff: tuple[int, int] | None, count: int) -> None:
    """Raise SettingError unless ``diff`` names two of ``count`` panels, or none."""
    if diff is None:
        return
    indices = {i for i in diff if _is_integer(i) and 0 <= i < count} if isinstance(diff, tuple | list) else ()
    if len(indices) != 2 or len(diff) != 2:
        raise SettingError(f"diff is {shorten_value(diff)!r}.", f"Expected two different panels from 0 to {count - 1}.")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def count_columns(count: int, width: float, kind: PanelKind) -> int:
    """Return how many of ``count`` panels fit in a row of ``width`` pixels: as few rows as possible, evenly filled.

    Equal to ``chooseColumnCount`` in ``browser/compare/together.js``.
    """
    max_columns = max(1, min(count, int((width + GAP) // (MIN_WIDTHS[kind] + GAP))))
    return math.ceil(count / math.ceil(count / max_columns))


class PanelDrawing(NamedTuple):
    """The drawing of a panel. ``label_note``: a sentence about labels that are left out."""

    marks: tuple[Mark, ...]
    height: float
    notes: tuple[Note, ...] = ()
    label_note: str = ""


def draw_panels(
    panels: Sequence[Panel],
    focuses: Sequence[Focus | None],
    view: View,
    kind: PanelKind,
    width: float,
    theme: Theme,
    has_lines: bool = True,
    max_cell: float = math.inf,
    height: float = UNLIMITED,
    spacing: Spacing = ON_SCREEN,
    unlabelled: Container[int] = (),
) -> list[PanelDrawing]:
    """Draw the part of each panel below its title.

    All panels have the same layout, so that cells can be compared by position. Links are at most ``height`` high if
    their rows allow it. The matrices of ``unlabelled`` panels share the row labels of another panel and are narrower by
    that room.
    """
    all_axes = [list_units(p.attention, view) for p in panels]
    max_units = max(len(side) for axes in all_axes for side in axes)
    rooms = [measure_token_room(axes, spacing) if kind == "links" else measure_label_room(axes) for axes in all_axes]
    room = Room(max(rooms), max_units)
    blocks = [build_block(p.attention, p.head, view, axes) for p, axes in zip(panels, all_axes, strict=True)]
    top = max(block.top for block in blocks) if view.scale == "head" else None
    drawings = []
    for i, (panel, axes, block, focus) in enumerate(zip(panels, all_axes, blocks, focuses, strict=True)):
        if kind == "links":
            strands = build_strands(panel.attention, [panel.head], view, axes, theme, top)
            marks, link_layout = draw_link_marks(strands, axes, focus, width, theme, room, height - TOP, spacing)
            drawings.append(PanelDrawing(marks, link_layout.height + TOP))
        else:
            matrix = Matrix(colour_cells(block, view.scale, theme, top), axes, focus, block.w if block.signed else None)
            panel_width = width - room.label if i in unlabelled else width
            marks, layout = draw_matrix(
                matrix, panel_width, theme, has_lines, max_cell, room, has_row_labels=i not in unlabelled
            )
            notes = note_missing_labels(
                layout, (width, UNLIMITED), all_axes, min_units=max_units
            )  # a matrix may be as high as it is wide
            drawings.append(PanelDrawing(marks, layout.height, notes, describe_thinning(layout)))
    return drawings


def _place_rows(
    panels: Sequence[Panel], drawings: Sequence[PanelDrawing], rows: PanelRows, theme: Theme
) -> tuple[list[Mark], float]:
    """Place the panels with their titles, row by row; also return the y position of their lower end."""
    marks: list[Mark] = []
    y = 0.0
    for start in range(0, len(panels), rows.panels_per_row):
        row = range(start, min(start + rows.panels_per_row, len(panels)))
        row_drawings = [_draw_panel(panels, panels[i], drawings[i], rows, i in rows.unlabelled, theme) for i in row]
        for i, panel in zip(row, row_drawings, strict=True):
            marks += shift_marks(panel.marks, rows.left(i), y)
        y += max(panel.height for panel in row_drawings) + 18
    return marks, y - 8


def _draw_panel(
    panels: Sequence[Panel], panel: Panel, drawing: PanelDrawing, rows: PanelRows, is_unlabelled: bool, theme: Theme
) -> PanelDrawing:
    """Draw a panel with its title above its cells."""
    attention, head, name = panel
    left, width = 0.0 if is_unlabelled else rows.label_width, max(MIN_TITLE_WIDTH, rows.panel_width - rows.label_width)
    title = f"{caption.name_in_model(attention, head)}  {name}".strip()
    marks: list[Mark] = [Text(left, 9, fonts.cut_text(title, 14, width, 600), 14, theme.ink, weight=600)]
    max_lines = 3 if rows.label_width else 2  # a panel without labels has less room in a line
    lines = enumerate(wrap_text(_describe_panel(panels, panel), width, 11, max_lines))
    marks += [Text(left, 26 + 14 * i, line, 11, theme.muted) for i, line in lines]
    # The cells of all panels begin at the same height.
    title_height = 22 + 14 * max(len(wrap_text(_describe_panel(panels, p), width, 11, max_lines)) for p in panels)
    return PanelDrawing((*marks, *shift_marks(drawing.marks, 0, title_height)), drawing.height + title_height)


def _describe_panel(panels: Sequence[Panel], panel: Panel) -> str:
    """Return the model, the sentence and the steps of a panel, leaving out those that all panels share."""
    models = {(p.attention.model, p.attention.revision) for p in panels}
    is_one_model = len({model for model, _ in models}) == 1
    texts = {_quote_sentences(p.attention) for p in panels}
    model = label_model(panel.attention.model) if len(models) > 1 else ""
    revision = format_revision(panel.attention.model, panel.attention.revision) or "no revision"
    model += f" ({revision})" if model and is_one_model else ""
    sentences = _quote_sentences(panel.attention) if len(texts) > 1 else ""
    steps = {p.attention.made for p in panels}
    steps_text = (caption.list_applied_steps(panel.attention) or "as read") if len(steps) > 1 else ""
    return ": ".join(s for s in (model, ", ".join(s for s in (sentences, steps_text) if s)) if s)


def _quote_sentences(attention: Attention) -> str:
    """Quote the sentence, or both sentences of a pair; for cross-attention, the sentences of rows and columns."""
    text = attention.queries
    target = f" to “{attention.keys.text}”" if attention.is_cross and not attention.has_sink else ""
    return f"“{text.text}”" + (f" and “{text.pair}”" if text.pair else "") + target


def write_figure_texts(
    panels: Sequence[Panel],
    view: View,
    blocks: Sequence[Block],
    figure: tuple[str, str],
    scale_sentence: str,
    pin_of: int,
    is_partly_pinned: bool = False,
) -> caption.FigureTexts:
    """Write caption, alternative text and metadata of panels that may come from several readings.

    ``figure``: the kind of figure, and the kind of its panels. ``scale_sentence`` states the range of the colours or
    lines. ``is_partly_pinned``: whether some panels lack the pinned tokens.
    """
    kind, panel_kind = figure
    readings = {p.attention.key: caption.describe_reading(p.attention) for p in panels}
    names = [f"{caption.name_in_model(p.attention, p.head)}{f' ({p.name})' if p.name else ''}" for p in panels]
    if len(readings) == 1:
        subject = f"{', '.join(names)} of {readings[panels[0].attention.key]}"
    else:
        subject = "; ".join(
            f"{name} of {caption.describe_reading(p.attention)}" for name, p in zip(names, panels, strict=True)
        )
    origin = panels[pin_of].attention
    attentions = [panel.attention for panel in panels]
    title = caption.choose_title(kind, attentions)
    sentences = [
        caption.add_full_stop(f"{title}: {subject}"),
        caption.explain_ablated([(p.attention, p.head) for p in panels]),
    ]
    sentences += [caption.explain_quantities(attentions)]
    sentences += [
        caption.describe_processing(attentions, view, panel_kind),
        caption.describe_pin(origin, view, panel_kind, is_partly_pinned),
        scale_sentence,
    ]
    sentences += [caption.describe_hidden(attentions, view, blocks)]
    about = {
        "figure": kind,
        **_merge_identities([caption.collect_identity(p.attention) for p in panels]),
        "heads": " ".join(caption.short_name(p.attention, p.head) for p in panels),
        **({"as": panel_kind} if kind == "compare" else {}),
        **caption.collect_settings(view),
        **({"at": str(pin_of)} if view.pin and pin_of else {}),
        "hidden": f"{caption.compute_hidden_share(blocks):.4f}",
    }
    return {
        "caption": " ".join(s for s in sentences if s),
        "alt": f"{title}: {', '.join(names)}, for {caption.quote_texts(attentions)}.",
        "about": about,
    }


def _merge_identities(identities: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Merge the metadata of panels.

    Entries that panels share appear once; each other entry is a list with one item per panel, in order.
    """
    names = dict.fromkeys(name for identity in identities for name in identity)
    by_name = {name: [identity.get(name, "") for identity in identities] for name in names}
    return {name: v[0] if len(set(v)) == 1 else json.dumps(v, ensure_ascii=False) for name, v in by_name.items()}
