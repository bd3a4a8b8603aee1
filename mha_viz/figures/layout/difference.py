"""The difference of two heads, as a static figure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Attention
from mha_viz.errors import SettingError
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Drawing, Mark, Note, Rect, Text, shift_marks
from mha_viz.figures.drawing.theme import THEMES, Theme, palette
from mha_viz.figures.layout import HeatmapLayout, Size, caption, draw_footer, make_sheet, wrap_text
from mha_viz.figures.layout.compare import PanelDrawing, check_panels, write_figure_texts
from mha_viz.figures.layout.heatmap import (
    FOOT,
    MAX_CELL,
    MIN_MARKED_CELL,
    MIN_MARKED_SHARE,
    Matrix,
    centre_marks,
    draw_matrix,
    draw_matrix_foot,
    note_missing_labels,
)
from mha_viz.figures.layout.panels import Panel, explain_mismatch, is_same_word, pair_axis_texts
from mha_viz.figures.layout.view import Axes, Block, Unit, View, build_block, find_focus, list_units
from mha_viz.model_names import format_revision, label_model
from mha_viz.text import TokenizedText, align

TITLE_HEIGHT = 56  # pixels of the title and of the key of colours
LINE = 18  # pixels of a title's second line
MAX_LINES = 2  # of a title


class Difference(NamedTuple):
    """The signed difference of two heads: ``d`` [row, column], second minus first."""

    axes: Axes
    d: npt.NDArray[np.float32]
    blocks: tuple[Block, Block]


def difference(
    first: Panel, second: Panel, view: View | None = None, size: Size | None = None, pin_of: int = 0
) -> Drawing:
    """Draw where ``second`` gives more weight (orange) or less (blue) than ``first``; cells where they agree are empty.

    The scale extends to the largest absolute difference in both directions. The pin counts tokens of the first, or with
    ``pin_of`` 1 of the second. Raises SettingError if the rows and columns of the two do not correspond one to one,
    UnknownHead.
    """
    view, size = (view or View()).of([first.attention, second.attention]), size or Size()
    theme = THEMES[size.look]
    check_panels((first, second), replace(view, scale="fixed"), pin_of)
    diff = compute_difference(first, second, view)
    blocks, top = diff.blocks, float(np.abs(diff.d).max(initial=0))
    matrix = build_difference_matrix(diff, (first, second)[pin_of], view, theme)
    footer = draw_footer(
        caption.mention_ablated([(p.attention, p.head) for p in (first, second)]), size.pixels, theme.ink
    )
    has_lines, max_height = (
        not size.transparent,
        size.max_height - FOOT - footer[1] - _height_above(first, second, size.pixels),
    )
    marks, layout = draw_matrix(matrix, size.pixels, theme, has_lines, MAX_CELL, height=max_height)
    limit_text = blocks[0].format_size(top)
    range_text = f"−{limit_text} to +{limit_text}"
    marks += draw_matrix_foot(layout, theme, theme.signed, range_text)
    threshold = (
        f"−{blocks[0].format_size(MIN_MARKED_SHARE * top)}"
        if theme.has_minus and layout.cell >= MIN_MARKED_CELL and top
        else ""
    )
    title = _draw_title(first, second, layout.width, theme, threshold)
    name_1, name_2 = distinguish_panels(first, second)
    minus_note = f"; cells from {threshold} down carry a minus" if threshold else ""
    scale_sentence = f"Colour: {name_2} minus {name_1}, {range_text}{minus_note}."
    drawing = Drawing(
        layout.width,
        title.height + layout.height + FOOT,
        centre_marks((*title.marks, *shift_marks(marks, 0, title.height)), layout, size.pixels),
        background=None if size.transparent else theme.paper,
        notes=(
            *note_missing_labels(layout, (size.pixels, max_height), [diff.axes]),
            *_note_unmarked(layout, theme),
        ),
        **write_figure_texts((first, second), view, blocks, ("difference", "heatmap"), scale_sentence, pin_of),
    )
    return make_sheet(drawing, size, footer)


def _draw_title(first: Panel, second: Panel, width: float, theme: Theme, threshold: str) -> PanelDrawing:
    """Draw the title above a difference and the key of its colours.

    ``threshold`` is the negative difference from which cells are marked with a minus, empty if none are.
    """
    name_1, name_2 = distinguish_panels(first, second)
    title = _wrap_title(first, second, width)
    marks: list[Mark] = [Text(0, 9 + LINE * i, line, 14, theme.ink, weight=600) for i, line in enumerate(title)]
    extra_height = LINE * (len(title) - 1)
    sign = f"with a minus from {threshold} down" if threshold else ""
    entries = [(theme.signed[-2], f"more in {name_2}", ""), (theme.signed[1], f"more in {name_1}", sign)]
    for line, (colour, words, suffix) in enumerate(entries):
        y = 27 + 15 * line + extra_height
        marks.append(Rect(0, y - 6, 12, 12, fill=colour))
        marks += [Rect(3, y - 0.75, 6, 1.5, fill=theme.paper)] if suffix else []
        label = fonts.cut_text(words, 11, width - 18 - (fonts.width(f", {suffix}", 11) if suffix else 0))
        marks.append(Text(18, y, f"{label}, {suffix}" if suffix else label, 11, theme.muted))
    return PanelDrawing(tuple(marks), _height_above(first, second, width))


def _wrap_title(first: Panel, second: Panel, width: float) -> list[str]:
    """Return the title "two minus one" in as many lines as necessary."""
    name_1, name_2 = distinguish_panels(first, second)
    return wrap_text(f"{name_2} minus {name_1}", width, 14, MAX_LINES, 600)


def _height_above(first: Panel, second: Panel, width: float) -> float:
    """Return the height of the title and key above the matrix."""
    return TITLE_HEIGHT + LINE * (len(_wrap_title(first, second, width)) - 1)


def _note_unmarked(layout: HeatmapLayout, theme: Theme) -> tuple[Note, ...]:
    """Return a note that grey does not show the sign, if cells are too small for a minus."""
    if not theme.has_minus or layout.cell >= MIN_MARKED_CELL:
        return ()
    return (Note("", "Cells are too small to carry a minus, so grey does not show their sign. Raise width_mm."),)


def distinguish_panels(first: Panel, second: Panel) -> tuple[str, str]:
    """Name two panels by all properties in which they differ: head, model or its revision, words, steps applied.

    The quantity is always the same, because different quantities cannot be subtracted.
    """
    readings = (first.attention, second.attention)
    differences = (_differing_models(*readings), _differing_texts(*readings), _differing_steps(*readings))
    heads = [caption.name_in_model(panel.attention, panel.head) for panel in (first, second)]
    name_1, name_2 = (" ".join(filter(None, words)) for words in zip(heads, *differences, strict=True))
    return (name_1, name_2) if name_1 != name_2 else ("the first", "the second")


NO_DIFFERENCE = ("", "")  # the names of a property that two panels share


def _differing_models(first: Attention, second: Attention) -> tuple[str, str]:
    """Name the models of the readings, if they differ, or, for one model, the revisions."""
    name_1, name_2 = (f"of {label_model(reading.model)}" for reading in (first, second))
    if name_1 == name_2 and first.revision != second.revision:
        revisions = [format_revision(reading.model, reading.revision) or "no revision" for reading in (first, second)]
        return f"{name_1} ({revisions[0]})", f"{name_2} ({revisions[1]})"
    return (name_1, name_2) if name_1 != name_2 else NO_DIFFERENCE


def _differing_texts(first: Attention, second: Attention) -> tuple[str, str]:
    """Name the texts, if they differ."""
    for text, other_text in pair_axis_texts(first, second):
        name_1, name_2 = _quote_own_words(text, other_text), _quote_own_words(other_text, text)
        if name_1 != name_2:
            return name_1, name_2
    return NO_DIFFERENCE


def _differing_steps(first: Attention, second: Attention) -> tuple[str, str]:
    """Name the steps applied to the weights, if they differ."""
    name_1, name_2 = (caption.list_applied_steps(reading) or "as read" for reading in (first, second))
    return (name_1, name_2) if name_1 != name_2 else NO_DIFFERENCE


def _quote_own_words(text: TokenizedText, other: TokenizedText) -> str:
    """Quote the words that the other text lacks, or the whole text if there are many."""
    partners = align(text, other).matches
    words = [word.text for word, partner in zip(text.by_words().tokens, partners, strict=True) if partner is None]
    return f"with “{' '.join(words)}”" if 0 < len(words) <= 3 else f"of “{text.text}”"


def build_difference_matrix(diff: Difference, pinned: Panel, view: View, theme: Theme) -> Matrix:
    """Return the signed difference as a matrix to draw.

    Units of both panels are in the same order, so a pinned token of either panel is a position in this matrix.
    """
    pixels = palette(theme.signed)[quantise_levels(diff.d, float(np.abs(diff.d).max(initial=0)))]
    return Matrix(pixels, diff.axes, find_focus(list_units(pinned.attention, view), view), diff.d)


def compute_difference(first: Panel, second: Panel, view: View) -> Difference:
    """Compute the signed difference, second minus first, unit by unit.

    Raises SettingError if the units do not correspond.
    """
    pairs = [(list_units(p.attention, view), p) for p in (first, second)]
    first_axes, second_axes = (axes for axes, _ in pairs)
    reason = explain_mismatch(first.attention, second.attention, view)
    if reason:
        raise SettingError("These two readings have no common rows and columns.", reason)
    a, b = (build_block(p.attention, p.head, view, axes) for axes, p in pairs)
    axes = Axes(_merge_names(first_axes.rows, second_axes.rows), _merge_names(first_axes.cols, second_axes.cols))
    return Difference(axes, b.w - a.w, (a, b))


def find_most_changed(first: Panel, second: Panel, view: View) -> str:
    """Return the pin of the word whose attention to words of both texts differs most.

    The pin is empty if the heads cannot be subtracted, or do not differ.
    """
    if explain_mismatch(first.attention, second.attention, view):
        return ""
    diff = compute_difference(first, second, view)
    rows, cols = (
        [i for i, (unit, merged) in enumerate(zip(first_units, merged_units, strict=True)) if unit.text == merged.text]
        for first_units, merged_units in zip(list_units(first.attention, view), diff.axes, strict=True)
    )
    sizes = np.abs(diff.d[np.ix_(rows, cols)]).max(axis=1, initial=0)
    return f"q{diff.axes.rows[rows[int(sizes.argmax())]].tokens[0]}" if sizes.any() else ""


def _merge_names(first: tuple[Unit, ...], second: tuple[Unit, ...]) -> tuple[Unit, ...]:
    return tuple(
        u if u.special or is_same_word(u.text, v.text) else u._replace(text=f"{u.text} / {v.text}", name="")
        for u, v in zip(first, second, strict=True)
    )


def quantise_levels(d: npt.NDArray[np.float32], top: float) -> npt.NDArray[np.uint8]:
    """Return each difference as a level on the signed scale, 0…255; 128 is no difference."""
    return np.clip(np.rint(128 + 127 * d.astype(np.float64) / (top or 1)), 0, 255).astype(np.uint8)
