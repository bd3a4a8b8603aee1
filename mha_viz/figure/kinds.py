"""One function for each kind of figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Unpack, overload

from mha_viz.attention import AnyHead, Attention, Head, is_number
from mha_viz.attention.shown import named_in
from mha_viz.drawing.table import Table
from mha_viz.errors import READING, SettingError, check_kind, list_items, shorten_value
from mha_viz.exports import Several, Subtracted
from mha_viz.exports.page import Look
from mha_viz.figure.figure import Figure, Page
from mha_viz.figures import caption
from mha_viz.figures import over_image as images
from mha_viz.figures.chart import COLUMNS, Chart
from mha_viz.figures.chart_drawing import drawing
from mha_viz.figures.compare import As, check, check_diff, check_panel_kind
from mha_viz.figures.compare import compare as compare_drawing
from mha_viz.figures.difference import difference as difference_drawing
from mha_viz.figures.difference import signed
from mha_viz.figures.grid import grid as grid_drawing
from mha_viz.figures.heatmap import heatmap as heatmap_drawing
from mha_viz.figures.layout import Size
from mha_viz.figures.links import links as links_drawing
from mha_viz.figures.packet import packet
from mha_viz.figures.panels import Panel, pack
from mha_viz.figures.theme import THEMES, Theme
from mha_viz.figures.view import View, check_pin, shown
from mha_viz.options import GridOptions, HeadOptions, Options

MOST_INCHES = 1_000


def grid(attention: Attention, **options: Unpack[GridOptions]) -> Figure:
    """All heads at a glance, or with ``layers=[5, 6]`` and ``heads=[0, 1]`` those. Options: those of View and Size."""
    drawn = _drawn(attention, options.pop("layers", None), options.pop("heads", None))
    view, size, look = settings(options)
    check_pin(attention, view)
    return Figure(
        lambda size: grid_drawing(attention, view, size, drawn),
        _explorer(attention, drawn, view, "all"),
        lambda: shown(attention, drawn, view),
        size,
        look,
    )


def over_image(
    attention: Attention, image: Any = None, *, columns: int | None = None, **options: Unpack[GridOptions]
) -> Figure:
    """What heads of a vision transformer look at: the weights between one token and the patches, over the image.

    Names "row,column", such as "0,1", say the place of each patch; patches with numbers alone are row by row. All other
    tokens have names in brackets, such as [CLS] or [REG1].
    ``image``: as the model saw it, a picture or an array [row, column, colour] or [colour, row, column]; without it
    only the weights are drawn. ``columns``: the patches of a row, if their names do not say
    it and they are no square. ``pin``: "q0", the default,
    shows where the first token looks; "k20" which patches look at token 20. ``scale`` ("head" by default, "fixed" or
    "log"), ``layers``, ``heads`` and the options of Size are as for :func:`grid`; there are no others. There is no
    interactive page; ``save`` writes the numbers as .csv or .json.

    Raises SettingError, UnknownHead, and ShapeError if tokens or image do not fit.
    """
    check_kind(attention, Attention, *READING)
    if useless := sorted({"unit", "special", "links", "side"} & options.keys()):
        raise SettingError(f"{useless[0]} has no effect over an image.", "Leave it out.")
    drawn = _drawn(attention, options.pop("layers", None), options.pop("heads", None))
    view, size, look = settings({"pin": "q0", "scale": "head", "unit": "pieces", **options})
    check_pin(attention, view)
    shown = images.held_token(attention, view, columns)
    under = None if image is None else images.grey_of(image)
    return Figure(
        lambda size: images.over_image(attention, under, drawn, shown, view, size),
        None,
        lambda: images.table(attention, drawn, shown),
        size,
        look,
    )


@overload
def heatmap(attention: Attention, head: AnyHead, /, **options: Unpack[HeadOptions]) -> Figure: ...


@overload
def heatmap(
    attention: Attention, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]
) -> Figure: ...


def heatmap(
    attention: Attention, layer: int | AnyHead | None = None, head: int | None = None, **options: Unpack[HeadOptions]
) -> Figure:
    """One head's matrix: ``heatmap(a, "L3H1")``, ``heatmap(a, 3, 1)`` or ``heatmap(a, heads=["L3H1"])``.

    Options: those of View and Size.
    """
    heads = _heads(attention, layer, head, options)
    if len(heads) != 1:
        raise SettingError(f"A heatmap shows one head, {len(heads)} were named.", "Use compare for several.")
    view, size, look = settings(options)
    check_pin(attention, view)
    return Figure(
        lambda size: heatmap_drawing(attention, heads[0], view, size),
        _explorer(attention, heads, view, "heatmap"),
        lambda: shown(attention, heads, view),
        size,
        look,
    )


@overload
def links(attention: Attention, head: AnyHead, /, **options: Unpack[HeadOptions]) -> Figure: ...


@overload
def links(
    attention: Attention, layer: int | None = None, head: int | None = None, **options: Unpack[HeadOptions]
) -> Figure: ...


def links(
    attention: Attention, layer: int | AnyHead | None = None, head: int | None = None, **options: Unpack[HeadOptions]
) -> Figure:
    """Token links of one head, named as in :func:`heatmap`, or of several of one layer with ``heads=["L3H1", "L3H4"]``,
    each in its colour."""
    heads = _heads(attention, layer, head, options)
    view, size, look = settings(options)
    check_pin(attention, view)
    if len({one.layer for one in heads}) > 1:
        named = ", ".join(named_in(attention.quantity, one) for one in heads)
        raise SettingError(f"{named} are of different layers.", "Links are of one layer; use compare for several.")
    return Figure(
        lambda size: links_drawing(attention, heads, view, size),
        _explorer(attention, heads, view, "links"),
        lambda: shown(attention, heads, view),
        size,
        look,
    )


def compare(
    panels: Sequence[Any],
    kind: As = "heatmap",
    columns: int | None = None,
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> Figure:
    """Heads side by side on one scale: ``compare([(a, "L3H1"), (b, "L5H11", "a name")])``, up to 16.

    Options: those of View and Size; ``kind`` is heatmap or links. ``columns``: panels per row, 1 to 16; by default as
    many as fit, in even rows (four become two by two if three fit). ``pin`` counts tokens of panel ``pin_of``. ``diff``
    names two panels, counted from 0, whose difference is open in the interactive version.
    """
    made = [panel_from(given) for given in list_items(panels, "panels", "Give [(attention, 'L3H1'), …].")]
    view, size, look = settings(options)
    check(made, view, pin_of)
    check_panel_kind(kind, columns)
    check_diff(diff, len(made))
    start = caption.settings(view.of([panel.attention for panel in made])) | {"as": kind, "at": str(pin_of)}
    start |= {"diff": f"{diff[0]}-{diff[1]}"} if diff else {}
    return Figure(
        lambda size: compare_drawing(made, view, size, kind, columns, pin_of, diff),
        Page("compare", lambda: pack(made, everything=True), start, "compare"),
        lambda: Several(tuple(shown(p.attention, [p.head], view) for p in made), tuple(p.name for p in made)),
        size,
        look,
    )


def difference(first: Any, second: Any, *, pin_of: int = 0, **options: Unpack[Options]) -> Figure:
    """The second head minus the first: ``difference((a, "L3H1"), (b, "L3H1"))``.

    Options: those of View and Size. ``pin`` counts tokens of the first, or with ``pin_of=1`` of the second.
    """
    one, two = panel_from(first), panel_from(second)
    view, size, look = settings(options)
    check((one, two), replace(view, scale="fixed"), pin_of)
    start = caption.settings(view.of([one.attention, two.attention])) | {"diff": "0-1", "at": str(pin_of)}
    return Figure(
        lambda size: difference_drawing(one, two, view, size, pin_of),
        Page("compare", lambda: pack([one, two], everything=True), start, "compare"),
        lambda: _subtracted(one, two, view),
        size,
        look,
    )


def chart(
    draw: Callable[[Theme], Chart], alt: str, caption: str, table: Callable[[], Table] | None = None, **options: Any
) -> Figure:
    """The figure of a chart, which ``draw`` makes in the colours of a theme; it has no interactive page. ``alt`` says
    in a few words what it shows, ``caption`` what it was measured on. Its numbers are those that it draws, unless a
    ``table`` contains them.

    Options: those of Size. Raises SettingError for others.
    """
    _, size, _ = settings(options)
    words = f"{alt.rstrip('.')}. {caption}".strip()
    return Figure(
        lambda size: drawing(draw(THEMES[size.look]), size, words, alt),
        None,
        table or (lambda: Table(COLUMNS, draw(THEMES[size.look]).rows, {"figure": alt, "caption": caption})),
        size,
    )


def _subtracted(one: Panel, two: Panel, view: View) -> Subtracted:
    axes = signed(one, two, view).axes
    rows, cols = (tuple(unit.text for unit in side) for side in axes)
    first, second = (shown(p.attention, [p.head], view) for p in (one, two))
    return Subtracted(first, second, rows, cols)


def _explorer(attention: Attention, heads: tuple[Head, ...], view: View, show: str) -> Page:
    drawn, heads = (heads, heads[:1]) if show == "all" else ((), heads)
    start = caption.settings(view.of([attention])) | {"head": str(heads[0])}
    beside = [str(h.head) for h in heads[1:] if h.layer == heads[0].layer]
    start |= {"on": ".".join(beside)} if beside else {}
    return Page("explorer", lambda: packet(attention, heads, everything=True, bits=12, drawn=drawn), start, show)


def _drawn(attention: Attention, layers: Sequence[int] | None, heads: Sequence[int] | None) -> tuple[Head, ...]:
    """The heads of a grid with these layers and heads, or with all. Raises UnknownHead, SettingError."""
    axes: list[list[int]] = []
    remedy = "Give a list of numbers, such as [5, 6]."
    for name, numbers, every in (
        ("layers", layers, attention.layer_numbers),
        ("heads", heads, range(attention.heads)),
    ):
        listed = every if numbers is None else list_items(numbers, name, remedy)
        if not (listed and all(map(is_number, listed))):
            raise SettingError(f"{name} is {shorten_value(numbers)!r}.", remedy)
        for number in listed:
            attention.head((number, 0) if name == "layers" else (attention.layer_numbers[0], number))
        axes.append(sorted({*listed}))
    return tuple(Head(row, column) for row in axes[0] for column in axes[1])


def _heads(
    attention: Attention, layer: int | AnyHead | None, head: int | None, options: HeadOptions
) -> tuple[Head, ...]:
    """The heads that a call names, in any of the ways, or layers of rollout."""
    named = options.pop("heads", None)
    last = attention.every_head()[-1]
    one = named_in(attention.quantity, last)
    remedy = f"Give {one!r}, or layer={last.layer}, head={last.head}, or heads=[{one!r}]."
    if named is not None:
        chosen = tuple(map(attention.head, list_items(named, "heads", remedy)))
    elif head is not None and layer is not None:
        chosen = (attention.head((layer, head)),)
    else:
        chosen = () if layer is None or is_number(layer) else (attention.head(layer),)
    if not chosen:
        raise SettingError("No head was named.", remedy)
    return chosen


def panel_from(given: Any) -> Panel:
    if isinstance(given, Panel):
        return given
    try:
        attention, head, *name = given
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"{shorten_value(given, 60)!r} is not a head to compare.", "Give (attention, 'L3H1')."
        ) from error
    if not isinstance(attention, Attention):
        raise SettingError(f"{shorten_value(attention, 60)!r} is not an Attention.", "Give (attention, 'L3H1').")
    return Panel(attention, attention.head(head), str(name[0]) if name else "")


def settings(options: Mapping[str, Any]) -> tuple[View, Size, Look]:
    """View and Size from the options of a call, including ``width_in`` in inches, and the Look of a page. Raises
    SettingError for unknown options."""
    views, sizes = ({f.name for f in fields(kind)} for kind in (View, Size))
    options = dict(options)
    if "width_in" in options:
        inches = options.pop("width_in")
        if not isinstance(inches, int | float) or not abs(inches) < MOST_INCHES:
            raise SettingError(f"width_in is {shorten_value(inches)!r}.", "Expected a number of inches.")
        options["width_mm"] = 25.4 * inches
    odd = [name for name in options if name not in views | sizes]
    if odd:
        raise SettingError(f"There is no option {odd[0][:40]!r}.", f"Known: {', '.join(sorted(views | sizes))}.")
    view = View(**{name: value for name, value in options.items() if name in views})
    size = Size(**{name: value for name, value in options.items() if name in sizes})
    return view, size, size.look if "look" in options else "auto"
