"""Apply a view to a reading: units, hidden tokens, links, shades and their colours, as on screen.

It also writes the notes on figures in which hardly anything is visible. ``browser/geometry.js`` computes the same;
``tests/golden/figures.json`` checks that the two agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz import numerals
from mha_viz.attention import Attention, Head, Shown, Weights
from mha_viz.attention.steps import BY_WORDS, NOT_RESCALED, RESCALED, Step
from mha_viz.attention.tensors import average_groups, merge_to_words
from mha_viz.errors import SettingError
from mha_viz.figures.drawing.marks import Note, Pixels
from mha_viz.figures.drawing.theme import Theme, palette
from mha_viz.options import ViewOptions
from mha_viz.text import TokenizedText
from mha_viz.view.quantities import QUANTITIES
from mha_viz.view.settings import choose_default_scale

LOG_DECADES = 3  # logarithmic shades run from 0.001 to 1
CROWDED_WORDS = 25  # from this number on, only the strongest links are drawn if nothing is pinned
MAX_CROWDED_LINKS = 20  # maximum number of links that are then drawn
FAINT_WEIGHT = 0.15  # on a scale from 0 to 1, weights below this have nearly the colour of the paper

_ORDINAL = {2: "nd", 3: "rd"}

Mask = npt.NDArray[np.bool_]
Shades = npt.NDArray[np.uint8]


class View(ViewOptions):
    """The settings of a picture, with the values that the page's URL uses.

    ``unit``: words or pieces. ``special``: keep, hide, or rescale (hide, then rows sum to 1 again). ``links``: all,
    "top3" (keys per query), "min0.10" (weight), "mass0.70" (share of a row). ``scale``: fixed (0 to 1), head (to the
    largest weight shown), row, log; by default fixed for shares of 1 and head for other numbers. ``side``, for pairs:
    all, or from and to, as "ab". ``pin``: "q10" pins query token 10, "k1" key token 1, "q10k1" one link; the numbers
    count subwords, whatever the unit.

    Raises SettingError for any other value.
    """

    def of(self, attentions: Sequence[Attention]) -> View:
        """Return the view for these readings, with the default scale of their quantities unless it states one."""
        return replace(
            self, scale=self.scale or choose_default_scale(*(attention.quantity for attention in attentions))
        )

    @property
    def pinned(self) -> tuple[int | None, int | None]:
        """The tokens that ``pin`` names: (query, key), None for a side that it does not name."""
        match = re.fullmatch(r"(?:q(\d+))?(?:k(\d+))?", self.pin)
        query, key = match.groups() if match else (None, None)
        return (None if query is None else int(query)), (None if key is None else int(key))


class Unit(NamedTuple):
    """One row or column of a picture: a word, a subword or a special token.

    ``tokens`` are indices of subwords. ``name`` is drawn instead of the text if it is not empty (``Token.drawn``).
    """

    text: str
    tokens: tuple[int, ...]
    special: bool
    segment: int
    name: str = ""

    @property
    def drawn(self) -> str:
        """The text to draw: the unit's name, if it has one."""
        return self.name or self.text


class Axes(NamedTuple):
    """The rows (queries) and columns (keys) of a picture."""

    rows: tuple[Unit, ...]
    cols: tuple[Unit, ...]


class Focus(NamedTuple):
    """The pinned row and column; None for an axis without a pin."""

    row: int | None
    col: int | None


class Block(NamedTuple):
    """The part of one head's matrix that a view shows.

    ``signed``: its numbers can be below 0; ``is_share``: they are shares of 1.
    """

    w: Weights  # [row, column]
    hidden: Weights  # [row]: share of the row that is not shown
    signed: bool = False
    is_share: bool = True

    def format(self, number: float) -> str:
        """Format one of its numbers."""
        return numerals.format_weight(number) if self.is_share else numerals.three_digits(number, self.signed)

    def format_size(self, number: float) -> str:
        """Format one of its numbers without the sign."""
        return self._replace(signed=False).format(abs(number))

    @property
    def top(self) -> float:
        """The largest weight shown, in absolute value; 0 if none is shown."""
        return float(np.abs(self.w).max(initial=0))


def list_units(attention: Attention, view: View) -> Axes:
    """Return the rows and columns of a view: the units of the queries and of the keys."""
    rows = _list_side(attention.queries, view, view.side[0])
    if not attention.is_cross and view.side[0] == view.side[1]:
        return Axes(rows, rows)
    return Axes(rows, _list_side(attention.keys, view, view.side[1]))


def _list_side(text: TokenizedText, view: View, letter: str) -> tuple[Unit, ...]:
    """Return the units of one axis; ``letter`` names the sentence of a pair, "a" or "b", if ``side`` is not "all"."""
    names = (text.by_words() if view.unit == "words" else text).tokens
    groups = text.groups if view.unit == "words" else tuple((i,) for i in range(len(text)))
    all_units = (
        Unit(name.text, group, text.special[group[0]], text.tokens[group[0]].segment, "" if name.known else name.drawn)
        for name, group in zip(names, groups, strict=True)
    )
    is_whole = view.side == "all" or all(t.segment == 0 for t in text.tokens)
    return tuple(
        unit
        for unit in all_units
        if (view.special == "keep" or not unit.special) and (is_whole or unit.segment == "ab".index(letter))
    )


def find_focus(axes: Axes, view: View) -> Focus | None:
    """Return the rows and columns of ``axes`` that are pinned.

    Return None without a pin, or if the pinned token is not shown.
    """
    query, key = view.pinned
    if query is None and key is None:
        return None
    row, col = _find_index(axes.rows, query), _find_index(axes.cols, key)
    return None if -1 in (row, col) else Focus(row, col)


def check_view(attention: Attention, view: View) -> None:
    """Raise SettingError for a pin without a visible token, and for a side of a pair without a second text."""
    if view.side != "all" and not attention.queries.pair:
        raise SettingError(f"side is {view.side!r}, but there is no second text.", "Read a pair, or leave side out.")
    check_pin(attention, view)


def check_pin(attention: Attention, view: View) -> None:
    """Raise SettingError for a pin whose token does not exist or is not shown."""
    if not view.pin or find_focus(list_units(attention, view), view) is not None:
        return
    for number, text in zip(view.pinned, (attention.queries, attention.keys), strict=True):
        if number is not None and number >= len(text):
            raise SettingError(
                f"pin is {view.pin!r}: there is no token {number}.", f"Tokens count from 0 to {len(text) - 1}."
            )
    raise SettingError(f"pin is {view.pin!r}, which this view does not show.", "Pin a token that is shown, or show it.")


def _find_index(units: tuple[Unit, ...], token: int | None) -> int | None:
    return None if token is None else next((i for i, u in enumerate(units) if token in u.tokens), -1)


def build_block(attention: Attention, head: Head, view: View, axes: Axes) -> Block:
    """Return the matrix of one head as a view shows it.

    Words are merged by the sum over the subwords of a key and the mean over the subwords of a query (Clark et al. 2019,
    4.1).

    Raises UnknownHead.
    """
    matrix = attention[head].astype(np.float64)
    hidden_by_head = attention.hidden.reshape(-1, len(attention.queries))
    hidden_before = hidden_by_head[attention.place(head)].astype(np.float64)  # the share hidden by earlier steps
    rows, cols = ([unit.tokens for unit in side] for side in axes)
    w = merge_to_words(matrix, rows, cols)
    visible_weights, quantity = w.sum(axis=1), QUANTITIES[attention.quantity]
    unit_hidden_before = average_groups(hidden_before, rows, 0)
    visible_share = visible_weights
    if not quantity.is_share:
        sizes = np.abs(average_groups(matrix, rows, 0))  # [row, key]
        visible = sizes[:, [key for tokens in cols for key in tokens]].sum(axis=1)
        totals = sizes.sum(axis=1)
        visible_share = np.divide(visible, totals, out=np.ones_like(totals), where=totals > 0)
    if len(attention.keys) == sum(map(len, cols)):
        visible_share = np.ones_like(visible_share)  # rows of float32 sum to 1 ± 1e-7
    hidden = unit_hidden_before + (1 - unit_hidden_before) * (1 - np.minimum(visible_share, 1))
    if view.special == "rescale" and w.size and not quantity.is_signed:
        totals = visible_weights[:, None]
        w = np.where(totals > 1e-12, w / np.maximum(totals, 1e-12), 1 / w.shape[1])
    return Block(w.astype(np.float32), hidden.astype(np.float32), quantity.is_signed, quantity.is_share)


def compute_shown(attention: Attention, heads: Sequence[Head], view: View) -> Shown:
    """Return the numbers of ``heads`` as a view shows them.

    Links that are not drawn keep their numbers. Raises UnknownHead.
    """
    axes = list_units(attention, view)
    all_axes = list_units(attention, View(unit=view.unit))
    blocks = [build_block(attention, head, view, axes) for head in heads]
    return Shown(
        attention.model,
        attention.revision,
        attention.queries,
        attention.keys,
        attention.quantity,
        (*attention.made, *iter_view_steps(attention, view)),
        tuple(heads),
        np.stack([block.w for block in blocks]),
        np.stack([block.hidden for block in blocks]),
        tuple(unit.text for unit in axes.rows),
        tuple(unit.text for unit in axes.cols),
        tuple(all_axes.rows.index(unit) for unit in axes.rows),
        tuple(all_axes.cols.index(unit) for unit in axes.cols),
        {"unit": view.unit, "special": view.special, "side": view.side},
    )


def iter_view_steps(attention: Attention, view: View) -> Iterator[Step]:
    """Yield the steps that a view applies to the numbers of a reading."""
    if view.unit == "words" and not attention.queries.unit == attention.keys.unit == "words":
        yield BY_WORDS
    if view.special != "keep":
        is_rescaled = view.special == "rescale" and not QUANTITIES[attention.quantity].is_signed
        yield RESCALED if is_rescaled else NOT_RESCALED


def select_links(w: Weights, links: str) -> Mask:
    """Select the links to draw by a rule: return a mask [row, column].

    top: the k largest keys of a query; min: weight ≥ value; mass: the fewest keys of a query that contain this share of
    the weight shown in its row. Signs are ignored.
    """
    w = np.abs(w)
    rule = re.fullmatch(r"(all|top|min|mass)(.*)", links)
    mode, value = (rule[1], float(rule[2] or 0)) if rule else ("all", 0)
    if mode == "all":
        return np.ones(w.shape, bool)
    if mode == "min":
        return w >= np.float32(value)
    order = np.argsort(-w, axis=1, kind="stable")
    sorted_weights = np.take_along_axis(w, order, axis=1).astype(np.float64)
    rank = np.arange(w.shape[1])[None]
    if mode == "top":
        is_selected = np.broadcast_to(rank < value, w.shape)
    else:
        weight_before = np.cumsum(sorted_weights, axis=1) - sorted_weights
        is_selected = (weight_before < value * sorted_weights.sum(axis=1, keepdims=True)) | (rank == 0)
    mask = np.zeros(w.shape, bool)
    np.put_along_axis(mask, order, is_selected, axis=1)
    return mask


def is_crowded(axes: Axes) -> bool:
    """Return whether there are too many words to distinguish all their links."""
    return max(sum(not unit.special for unit in side) for side in axes) >= CROWDED_WORDS


def choose_drawn_links(blocks: Sequence[Block], links: str, axes: Axes) -> list[Mask]:
    """Return the links of heads in one diagram that are drawn without a pin.

    The rule of the view selects them. If there are many words, only the strongest links between words are drawn, and
    the rule is applied to words only: most heads give special tokens so much weight that the heaviest key of every word
    is [CLS] or [SEP].
    """
    if not is_crowded(axes):
        return [select_links(block.w, links) for block in blocks]
    rows, cols = (np.array([not unit.special for unit in side]) for side in axes)
    is_word_link = rows[:, None] & cols[None]  # [row, column]
    word_weights = [np.where(is_word_link, np.abs(block.w), np.float32(0)) for block in blocks]
    sizes = np.stack([np.where(select_links(w, links), w, 0) for w in word_weights])  # [head, row, column]
    order = np.argsort(-sizes, axis=None, kind="stable")[:MAX_CROWDED_LINKS]
    mask = np.zeros(sizes.shape, bool)
    mask.flat[order] = sizes.flat[order] > 0
    return list(mask)


def describe_few_links(axes: Axes, view: View) -> str:
    """Describe the links of a diagram that draws only the strongest; empty if it draws all."""
    if view.pin or not is_crowded(axes):
        return ""
    return f"the {MAX_CROWDED_LINKS} strongest links between {get_unit_noun(view)}"


def describe_crowded_texts(all_axes: Sequence[Axes], view: View) -> str:
    """Describe the texts of which only the strongest links are drawn; empty if these are all texts."""
    is_of_all = all(map(is_crowded, all_axes))
    return "" if is_of_all else f"each text of {CROWDED_WORDS} {get_unit_noun(view)} or more"


def get_unit_noun(view: View) -> str:
    """Return the noun for rows and columns: "words" or "tokens"."""
    return "words" if view.unit == "words" else "tokens"


def describe_label_step(step: int, noun: str = "token") -> str:
    """Return "every 2nd token is labelled" if only every ``step``-th label fits; empty if all labels fit."""
    return "" if step == 1 else f"every {step}{_ORDINAL.get(step, 'th')} {noun} is labelled"


def link_scale(scale: str) -> str:
    """Return the scale that all links of a figure share.

    "row" is replaced by "head", because a scale for each row would make weak links as dark as strong ones.
    """
    return "head" if scale == "row" else scale


def shades(w: Weights, scale: str, top: float | None = None) -> Shades:
    """Return the shade of every cell, 0…255, ignoring signs.

    fixed: 0 to 1; head: up to ``top``, by default the largest weight; row: up to the largest weight of each row.
    """
    if w.size == 0:
        return np.zeros(w.shape, np.uint8)
    sizes = np.abs(w.astype(np.float64))
    if scale == "log":
        with np.errstate(divide="ignore"):
            level = np.where(sizes > 0, 255 * (1 + np.log10(np.maximum(sizes, 1e-300)) / LOG_DECADES), 0)
    else:
        maximum: float | npt.NDArray[np.float64] = 1.0
        if scale == "head":
            maximum = (sizes.max() if top is None else top) or 1.0
        elif scale == "row":
            maximum = sizes.max(axis=1, keepdims=True)
            maximum = np.where(maximum > 0, maximum, 1.0)
        level = sizes * (255 / maximum)
    return np.clip(np.rint(level), 0, 255).astype(np.uint8)


def describe_range(scale: str, blocks: Sequence[Block]) -> str:
    """Describe the range of the colour scale of ``blocks``, for captions and legends."""
    largest = max(blocks, key=lambda b: b.top).format_size(max(b.top for b in blocks)) if blocks else "0"
    if any(block.signed for block in blocks):
        ends = {"fixed": "1", "head": largest, "row": "each row's largest size"}
        return "logarithmic, from ±0.001 to ±1" if scale == "log" else f"0 to ±{ends[scale]}"
    if scale == "log":
        return f"{10**-LOG_DECADES:g} to 1, logarithmic"
    return {"fixed": "0 to 1", "head": f"0 to {largest}", "row": "0 to each row's largest weight"}[scale]


def colour_cells(block: Block, scale: str, theme: Theme, top: float | None = None) -> Pixels:
    """Return a matrix in the colours of its scale, [row, column, rgb]; ``top`` is as for :func:`shades`.

    For signed numbers, 0 has the colour of the paper. Equal to ``computeDivergingShades`` in ``browser/ink.js``.
    """
    shade = shades(block.w, scale, top)
    if not block.signed:
        return palette(theme.ramp)[shade]
    distance = np.floor(shade.astype(np.float64) * 127 / 255 + 0.5)
    return palette(theme.signed)[(128 + np.sign(block.w) * distance).astype(np.intp)]


def scale_colours(blocks: Iterable[Block], theme: Theme) -> tuple[str, ...]:
    """Return the stops of the colour scale for these blocks."""
    return theme.signed if any(block.signed for block in blocks) else theme.ramp


def note_faint_cells(view: View, blocks: Sequence[Block]) -> tuple[Note, ...]:
    """Return a note if all weights shown are so small that a scale from 0 to 1 hardly shows them."""
    if view.scale != "fixed" or not 0 < _find_largest(blocks) < FAINT_WEIGHT:
        return ()
    problem = f"All weights shown are below {FAINT_WEIGHT:g}, hardly visible on a scale from 0 to 1."
    return (Note("", f'{problem} Use scale="head", which runs to the largest weight.'),)


def note_faint_links(view: View, blocks: Sequence[Block], focuses: Sequence[Focus | None]) -> tuple[Note, ...]:
    """Return the note of :func:`note_faint_cells`, or a note that no link satisfies the rule of the view.

    ``focuses``: the pinned tokens of each block, of which only the links are drawn.
    """
    cells = [tuple(slice(None) if i is None else slice(i, i + 1) for i in focus or (None, None)) for focus in focuses]
    has_links = any(select_links(b.w, view.links)[part].any() for b, part in zip(blocks, cells, strict=True))
    if has_links or not any(block.w.size for block in blocks):
        return note_faint_cells(view, blocks)
    largest = blocks[0].format_size(max(b._replace(w=b.w[part]).top for b, part in zip(blocks, cells, strict=True)))
    amount = "less" if view.links.startswith("min") else "more"
    remedy = f'The largest weight shown is {largest}: ask for {amount} than links="{view.links}".'
    return (Note("No weight is large enough for a link.", remedy),)


def _find_largest(blocks: Sequence[Block]) -> float:
    return max((block.top for block in blocks), default=0.0)
