"""Heads side by side on one colour scale, as a static figure."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping, Sequence
from typing import Literal, NamedTuple

from mha_viz.attention import Attention
from mha_viz.errors import SettingError, shorten_value
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Drawing, Mark, Note, Text, moved
from mha_viz.figures.drawing.theme import THEMES, Theme
from mha_viz.figures.layout import ON_PAPER, ON_SCREEN, TALL, Size, Spacing, caption, said_below, sheet, wrapped
from mha_viz.figures.layout.heatmap import FOOT, Matrix, Room, label_room, matrix_marks, scale_bar, thinned, unlabelled
from mha_viz.figures.layout.links import TOP, line_foot, link_marks, strands_of, token_room
from mha_viz.figures.layout.panels import MOST, Panel, held_by_panels
from mha_viz.figures.layout.view import (
    Axes,
    Block,
    Focus,
    View,
    block,
    check_pin,
    faint_cells,
    faint_links,
    few_links,
    painted,
    scale_colours,
    span,
    units,
)
from mha_viz.model_names import label_model, revision_in_words

GAP = 28  # gaps between panels, pixels
ABOVE = 68  # pixels above a panel: its title, two lines on its reading, the gap before it
NARROW = 60  # the least width of a title, pixels
AXES = "query ↓   key →"
NARROWEST = {"heatmap": 230, "links": 270}
STRENGTHS = {"heatmap": "Colour", "links": "Width and darkness"}  # the visual property that shows how large a weight is

As = Literal["heatmap", "links"]


def compare(
    panels: Sequence[Panel],
    view: View | None = None,
    size: Size | None = None,
    kind: As = "heatmap",
    columns: int | None = None,
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
) -> Drawing:
    """Panels in rows of ``columns``, all on one scale and with cells of one size; without ``columns``, as many as fit,
    in even rows: four panels become two by two if three fit.

    ``scale="head"`` means up to the largest weight of all panels here; "row" is refused because it is not a shared
    scale, and so is one side of a pair. The pin counts tokens of panel ``pin_of``; the other panels hold the
    corresponding word, if there is one; for the two panels that ``diff`` names, whose difference is drawn beside this
    figure, a replaced word corresponds too. Raises SettingError, UnknownHead.
    """
    view, size = (view or View()).of([panel.attention for panel in panels]), size or Size()
    check(panels, view, pin_of)
    check_panel_kind(kind, columns)
    check_diff(diff, len(panels))
    theme, across = THEMES[size.look], columns or columns_for(len(panels), size.pixels, kind)
    every = [units(p.attention, view) for p in panels]
    places = _places(every, kind, across, max(size.pixels, across * 80 + (across - 1) * GAP))
    held = held_by_panels(panels, view, pin_of, diff)
    parts = [block(p.attention, p.head, view, axes) for p, axes in zip(panels, every, strict=True)]
    scale = span(view.scale, parts)
    few = next(filter(None, (few_links(axes, view) for axes in every if kind == "links")), "")
    _, below = _shared_scale(kind, scale, places.whole, theme, parts, few)
    footer = said_below(caption.off_line([(p.attention, p.head) for p in panels]), places.whole, theme.ink)
    high = (size.tallest - footer[1]) / math.ceil(len(panels) / across) - ABOVE - below
    drawings = drawings_of(
        panels, held, view, kind, places.drawn, theme, not size.transparent, math.inf, high, ON_PAPER, places.unnamed
    )
    marks, bottom = _rows(panels, drawings, places, theme)
    foot, _ = _shared_scale(kind, scale, places.whole, theme, parts, few or drawings[0].missing)  # all are alike
    hardly_seen = (faint_links if kind == "links" else faint_cells)(view, parts)
    drawn = Drawing(
        places.whole,
        bottom + below,
        (*marks, *moved(foot, 0, bottom)),
        background=None if size.transparent else theme.paper,
        notes=(*hardly_seen, *dict.fromkeys(note for drawing in drawings for note in drawing.notes)),
        **figure_words(
            panels, view, parts, ("compare", kind), f"{STRENGTHS[kind]}, for all panels: {scale}.", pin_of, None in held
        ),
    )
    return sheet(drawn, size, footer)


class PanelRows(NamedTuple):
    """Where panels stand: ``across`` of them in a row of ``whole`` pixels. ``label``: the room for labels of rows. The
    panels ``unnamed`` have none, because those of the first panel of their row serve them, too."""

    across: int
    whole: float
    label: float
    unnamed: frozenset[int]

    @property
    def shared(self) -> float:
        """The room for labels of rows that all panels of a row share."""
        return self.label if self.unnamed else 0.0

    @property
    def drawn(self) -> float:
        """The width of a panel with labels of rows."""
        return self.shared + (self.whole - self.shared - (self.across - 1) * GAP) / self.across

    def left(self, panel: int) -> float:
        """Where the labels of a panel begin, or its cells if it has none."""
        column = panel % self.across
        return column * (self.drawn - self.shared + GAP) + (self.shared if column else 0.0)


def _places(every: Sequence[Axes], kind: As, across: int, whole: float) -> PanelRows:
    """Place panels with these tokens; if all have the same rows, these are named once in each row of panels."""
    if kind == "links":
        return PanelRows(across, whole, 0.0, frozenset())
    rows = {tuple((unit.text, unit.special) for unit in axes.rows) for axes in every}
    unnamed = frozenset(i for i in range(len(every)) if len(rows) == 1 and i % across)
    return PanelRows(across, whole, max(map(label_room, every)), unnamed)


def _shared_scale(
    kind: As, scale: str, width: float, theme: Theme, parts: Sequence[Block], note: str
) -> tuple[tuple[Mark, ...], float]:
    """Below all panels: what rows and columns are, and what colours, or the width and darkness of lines, mean; and the
    height of that. ``note``: which links are drawn, or which labels."""
    whole = f"one scale{' of width and darkness' if kind == 'links' else ''}, {scale}"
    if kind == "links":
        colour = theme.signed[-2] if any(part.signed for part in parts) else theme.ink
        whose = f"{note} of each" if note and len(parts) > 1 else note
        return line_foot(parts, (colour, theme.signed[1]), (whole, scale), whose, width, theme)
    room = width - 90 - fonts.width(whole, 11) - 2 * GAP
    says = next((text for text in (f"{AXES}   {note}".rstrip(), note) if fonts.width(text, 11) <= room), AXES)
    bar = scale_bar(width, FOOT / 2, 90, theme, scale_colours(parts, theme), whole)
    return (Text(0, FOOT / 2, says, 11, theme.muted), *bar), FOOT


def check(panels: Sequence[Panel], view: View, pin_of: int) -> None:
    """Raises SettingError for panels that cannot be shown side by side in a view."""
    if not 1 <= len(panels) <= MOST:
        raise SettingError(f"{len(panels)} heads were given.", f"A comparison shows 1 to {MOST}.")
    quantities = sorted({f"{panel.attention.quantity}s" for panel in panels})
    if len(quantities) > 1:
        raise SettingError(
            f"The panels hold {' and '.join(quantities)}.",
            "Compare readings of one quantity: one scale of colours cannot serve several units.",
        )
    if view.scale == "row":
        raise SettingError("scale is 'row', which gives each row its own.", "A comparison takes fixed, head or log.")
    if view.side != "all":
        raise SettingError(
            f"side is {view.side!r}.", "A comparison shows whole matrices; one side is of a single head."
        )
    if not _is_whole(pin_of) or not 0 <= pin_of < len(panels):
        raise SettingError(f"pin_of is {shorten_value(pin_of)!r}.", f"Expected a panel from 0 to {len(panels) - 1}.")
    check_pin(panels[pin_of].attention, view)


def check_panel_kind(kind: str, columns: int | None) -> None:
    """Raises SettingError for an unknown kind of panel, or an impossible number of columns."""
    if not isinstance(kind, str) or kind not in NARROWEST:
        raise SettingError(f"kind is {shorten_value(kind)!r}.", "Expected heatmap or links.")
    if columns is not None and not (_is_whole(columns) and 1 <= columns <= MOST):
        raise SettingError(f"columns is {shorten_value(columns)!r}.", f"Expected a number from 1 to {MOST}.")


def check_diff(diff: tuple[int, int] | None, count: int) -> None:
    """Raises SettingError unless ``diff`` names two of ``count`` panels, or none."""
    if diff is None:
        return
    named = {i for i in diff if _is_whole(i) and 0 <= i < count} if isinstance(diff, tuple | list) else ()
    if len(named) != 2 or len(diff) != 2:
        raise SettingError(f"diff is {shorten_value(diff)!r}.", f"Expected two different panels from 0 to {count - 1}.")


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def columns_for(count: int, width: float, kind: As) -> int:
    """How many of ``count`` panels are in a row of ``width`` pixels: as few rows as possible, evenly filled. The same
    as ``columns`` in ``browser/compare/together.js``."""
    fit = max(1, min(count, int((width + GAP) // (NARROWEST[kind] + GAP))))
    return math.ceil(count / math.ceil(count / fit))


class PanelDrawing(NamedTuple):
    """Hold the drawing of a panel; ``missing``: what is said of labels that are left out."""

    marks: tuple[Mark, ...]
    height: float
    notes: tuple[Note, ...] = ()
    missing: str = ""


def drawings_of(
    panels: Sequence[Panel],
    held: Sequence[Focus | None],
    view: View,
    kind: As,
    width: float,
    theme: Theme,
    lines: bool = True,
    largest: float = math.inf,
    height: float = TALL,
    spacing: Spacing = ON_SCREEN,
    unnamed: Container[int] = (),
) -> list[PanelDrawing]:
    """What is drawn below each panel's title. All panels have the same layout, so that cells can be compared by
    position. Links are at most ``height`` high if their rows allow it. The matrices of ``unnamed`` panels have no
    labels of rows, because those of another one serve them, too, and are narrower by their room."""
    every = [units(p.attention, view) for p in panels]
    most = max(len(side) for axes in every for side in axes)
    label = [token_room(axes, spacing) if kind == "links" else label_room(axes) for axes in every]
    room = Room(max(label), most)
    parts = [block(p.attention, p.head, view, axes) for p, axes in zip(panels, every, strict=True)]
    top = max(part.top for part in parts) if view.scale == "head" else None
    drawings = []
    for i, (panel, axes, part, spot) in enumerate(zip(panels, every, parts, held, strict=True)):
        if kind == "links":
            strands = strands_of(panel.attention, [panel.head], view, axes, theme, top)
            drawn, spread = link_marks(strands, axes, spot, width, theme, room, height - TOP, spacing)
            drawings.append(PanelDrawing(drawn, spread.height + TOP))
        else:
            matrix = Matrix(painted(part, view.scale, theme, top), axes, spot, part.w if part.signed else None)
            wide, is_named = (width - room.label, False) if i in unnamed else (width, True)
            drawn, layout = matrix_marks(matrix, wide, theme, lines, largest, room, has_row_labels=is_named)
            notes = unlabelled(layout, (width, TALL), every, most=most)  # a matrix may be as high as it is wide
            drawings.append(PanelDrawing(drawn, layout.height, notes, thinned(layout)))
    return drawings


def _rows(
    panels: Sequence[Panel], drawings: Sequence[PanelDrawing], places: PanelRows, theme: Theme
) -> tuple[list[Mark], float]:
    """The panels with their titles, row by row, and where they end."""
    marks: list[Mark] = []
    y = 0.0
    for start in range(0, len(panels), places.across):
        row = range(start, min(start + places.across, len(panels)))
        made = [_panel(panels, panels[i], drawings[i], places, i in places.unnamed, theme) for i in row]
        for i, one in zip(row, made, strict=True):
            marks += moved(one.marks, places.left(i), y)
        y += max(one.height for one in made) + 18
    return marks, y - 8


def _panel(
    panels: Sequence[Panel], panel: Panel, drawing: PanelDrawing, places: PanelRows, is_unnamed: bool, theme: Theme
) -> PanelDrawing:
    """A panel with its title above its cells."""
    attention, head, name = panel
    left, width = 0.0 if is_unnamed else places.label, max(NARROW, places.drawn - places.label)
    title = f"{caption.named(attention, head)}  {name}".strip()
    marks: list[Mark] = [Text(left, 9, fonts.cut(title, 14, width, 600), 14, theme.ink, weight=600)]
    most = 3 if places.label else 2  # above cells alone there is less room in a line
    mine = enumerate(wrapped(_whose(panels, panel), width, 11, most))
    marks += [Text(left, 26 + 14 * i, line, 11, theme.muted) for i, line in mine]
    below = 22 + 14 * max(len(wrapped(_whose(panels, p), width, 11, most)) for p in panels)  # rows begin at one height
    return PanelDrawing((*marks, *moved(drawing.marks, 0, below)), drawing.height + below)


def _whose(panels: Sequence[Panel], panel: Panel) -> str:
    """The model, the sentence and the steps applied since, as far as panels differ in them."""
    models = {(p.attention.model, p.attention.revision) for p in panels}
    is_one_model = len({model for model, _ in models}) == 1
    texts = {_sentences(p.attention) for p in panels}
    model = label_model(panel.attention.model) if len(models) > 1 else ""
    revision = revision_in_words(panel.attention.model, panel.attention.revision) or "no revision"
    model += f" ({revision})" if model and is_one_model else ""
    sentences = _sentences(panel.attention) if len(texts) > 1 else ""
    steps = {p.attention.made for p in panels}
    done = (caption.steps(panel.attention) or "as read") if len(steps) > 1 else ""
    return ": ".join(s for s in (model, ", ".join(s for s in (sentences, done) if s)) if s)


def _sentences(attention: Attention) -> str:
    """What is read: the sentence, or both; for cross-attention, the sentence of the rows to that of the columns."""
    text = attention.queries
    to = f" to “{attention.keys.text}”" if attention.is_cross and not attention.has_sink else ""
    return f"“{text.text}”" + (f" and “{text.pair}”" if text.pair else "") + to


def figure_words(
    panels: Sequence[Panel],
    view: View,
    parts: Sequence[Block],
    figure: tuple[str, str],
    scale: str,
    pin_of: int,
    is_partly_held: bool = False,
) -> caption.Words:
    """Caption, description and metadata of panels that may come from several readings. ``figure``: what kind of figure
    it is, and how its heads are drawn. ``is_partly_held``: some of the panels lack what is held."""
    kind, drawn = figure
    readings = {p.attention.key: caption.reading(p.attention) for p in panels}
    named = [f"{caption.named(p.attention, p.head)}{f' ({p.name})' if p.name else ''}" for p in panels]
    if len(readings) == 1:
        listed = f"{', '.join(named)} of {readings[panels[0].attention.key]}"
    else:
        listed = "; ".join(f"{name} of {caption.reading(p.attention)}" for name, p in zip(named, panels, strict=True))
    pinned = panels[pin_of].attention
    every = [panel.attention for panel in panels]
    title = caption.titled(kind, every)
    sentences = [caption.stopped(f"{title}: {listed}"), caption.off_note([(p.attention, p.head) for p in panels])]
    sentences += [caption.quantities(every)]
    sentences += [caption.done(every, view, drawn), caption.held(pinned, view, drawn, is_partly_held), scale]
    sentences += [caption.hidden_note(every, view, parts)]
    about = {
        "figure": kind,
        **_joined([caption.identity(p.attention) for p in panels]),
        "heads": " ".join(caption.fact(p.attention, p.head) for p in panels),
        **({"as": drawn} if kind == "compare" else {}),
        **caption.settings(view),
        **({"at": str(pin_of)} if view.pin and pin_of else {}),
        "hidden": f"{caption.hidden(parts):.4f}",
    }
    return {
        "caption": " ".join(s for s in sentences if s),
        "alt": f"{title}: {', '.join(named)}, for {caption.texts(every)}.",
        "about": about,
    }


def _joined(identities: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The entries that panels share, once; those in which they differ as a list with one entry per panel, in order, so
    that each head has its text."""
    names = dict.fromkeys(name for identity in identities for name in identity)
    every = {name: [identity.get(name, "") for identity in identities] for name in names}
    return {name: v[0] if len(set(v)) == 1 else json.dumps(v, ensure_ascii=False) for name, v in every.items()}
