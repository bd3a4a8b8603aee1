"""One function for each kind of figure.

A figure holds functions with their arguments (``functools.partial``), so that it can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, Unpack, overload

from mha_viz.attention import AnyHead, Attention, Head, is_number
from mha_viz.attention.view_weights import name_map
from mha_viz.errors import READING_KIND, SettingError, check_kind, list_items, shorten_value
from mha_viz.figures import file_names
from mha_viz.figures.charts.chart import COLUMNS, Chart
from mha_viz.figures.charts.chart_drawing import draw_chart
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import THEMES, Theme
from mha_viz.figures.figure import Figure, Page
from mha_viz.figures.files import DifferenceNumbers, PanelNumbers
from mha_viz.figures.files.page import Look
from mha_viz.figures.layout import Size, caption, draw_fitted
from mha_viz.figures.layout import image_maps as images
from mha_viz.figures.layout.compare import PanelKind, check_diff, check_panel_kind, check_panels
from mha_viz.figures.layout.compare import compare as compare_drawing
from mha_viz.figures.layout.difference import compute_difference
from mha_viz.figures.layout.difference import difference as difference_drawing
from mha_viz.figures.layout.grid import grid as grid_drawing
from mha_viz.figures.layout.heatmap import heatmap as heatmap_drawing
from mha_viz.figures.layout.links import links as links_drawing
from mha_viz.figures.layout.packet import build_packet
from mha_viz.figures.layout.panels import Panel, pack_comparison
from mha_viz.figures.layout.view import View, check_view, compute_shown
from mha_viz.options import GridOptions, HeadOptions, Options
from mha_viz.view.settings import OPTIONS, build_file_error, check_accepted, iter_page_only_settings

MAX_INCHES = 1_000


def grid(attention: Attention, **options: Unpack[GridOptions]) -> Figure:
    """Draw all heads at a glance, or only those of ``layers=[5, 6]`` and ``heads=[0, 1]``.

    Options: those of View and Size.
    """
    chosen_heads = _choose_grid_heads(attention, options.pop("layers", None), options.pop("heads", None))
    view, size, look = settings(options, "grid")
    check_view(attention, view)
    return Figure(
        partial(grid_drawing, attention, strip_page_settings(view, "grid"), heads=chosen_heads),
        _explorer_page(attention, chosen_heads, view, "all"),
        partial(compute_shown, attention, chosen_heads, view),
        size,
        look,
        build_file_errors(view, "grid"),
        file_names.name_for_all(attention, chosen_heads),
    )


def overlay(
    attention: Attention, image: Any = None, *, columns: int | None = None, **options: Unpack[GridOptions]
) -> Figure:
    """Draw the attention of a vision transformer: the weights between one token and the patches, over the image.

    Names such as "0,1" ("row,column") state the position of each patch; patches with plain numbers go row by row.
    All other tokens need names in brackets, such as [CLS] or [REG1]. ``image`` is the picture as the model saw it: a
    picture or an array [row, column, colour] or [colour, row, column]. Without it, only the weights are drawn.
    ``columns`` is the number of patches in a row, needed if their names do not state it and they do not form a square.
    ``pin``: "q0", the default, shows where the first token looks; "k20" shows which patches look at token 20. ``scale``
    ("head" by default, "fixed" or "log"), ``layers``, ``heads`` and the options of Size are as for :func:`grid`; there
    are no others. There is no interactive page; ``save`` writes the numbers as .csv or .json.

    Raises SettingError, UnknownHead, and ShapeError if tokens or image do not fit.
    """
    check_kind(attention, Attention, *READING_KIND)
    chosen_heads = _choose_grid_heads(attention, options.pop("layers", None), options.pop("heads", None))
    view, size, look = settings({"pin": "q0", "scale": "head", **options}, "overlay")
    view = replace(view, unit="pieces")
    check_view(attention, view)
    pinned_token = images.find_pinned_token(attention, view, columns)
    grey_image = None if image is None else images.to_grey(image)
    return Figure(
        partial(images.draw_over_image, attention, grey_image, chosen_heads, pinned_token, view),
        None,
        partial(images.table, attention, chosen_heads, pinned_token),
        size,
        look,
        name=file_names.name_for_all(attention, chosen_heads),
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
    """Draw one head's matrix: ``heatmap(a, "L3H1")``, ``heatmap(a, 3, 1)`` or ``heatmap(a, heads=["L3H1"])``.

    Options: those of View and Size.
    """
    heads = _choose_heads(attention, layer, head, options)
    if len(heads) != 1:
        raise SettingError(f"A heatmap shows one head; {len(heads)} were named.", "Use compare for several.")
    view, size, look = settings(options, "heatmap")
    check_view(attention, view)
    return Figure(
        partial(draw_fitted, partial(heatmap_drawing, attention, heads[0], view)),
        _explorer_page(attention, heads, view, "heatmap"),
        partial(compute_shown, attention, heads, view),
        size,
        look,
        name=file_names.name_for_heads([(attention, heads[0])]),
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
    """Draw the token links of one head, named as in :func:`heatmap`.

    With ``heads=["L3H1", "L3H4"]``, draw several heads of one layer, each in its own colour.
    """
    heads = _choose_heads(attention, layer, head, options)
    view, size, look = settings(options, "links")
    check_view(attention, view)
    if len({h.layer for h in heads}) > 1:
        names = ", ".join(name_map(attention.quantity, h) for h in heads)
        raise SettingError(
            f"{names} are in different layers.", "Links show heads of one layer; use compare for several."
        )
    draw = partial(links_drawing, attention, heads, view)
    return Figure(
        partial(draw_fitted, draw) if len(heads) == 1 else draw,
        _explorer_page(attention, heads, view, "links"),
        partial(compute_shown, attention, heads, view),
        size,
        look,
        name=file_names.name_for_heads([(attention, head) for head in heads], "links"),
    )


def compare(
    panels: Sequence[Any],
    kind: PanelKind = "heatmap",
    columns: int | None = None,
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
    **options: Unpack[Options],
) -> Figure:
    """Draw heads side by side on one scale.

    Args:
        panels: up to 16, with a name or without: ``[(a, "L3H1"), (b, "L5H11", "a name")]``.
        kind: "heatmap" or "links".
        columns: panels per row, 1 to 16; by default as many as fit, in even rows (four become two by two if three fit).
        pin_of: the panel, from 0, whose tokens ``pin`` counts.
        diff: two panels, counted from 0, whose difference is open in the interactive version.
        **options: those of View and Size.

    Returns the figure. Raises SettingError for panels, a kind, columns or options that do not exist or do not go
    together, and UnknownHead.
    """
    all_panels = [build_panel(item) for item in list_items(panels, "panels", "Give [(attention, 'L3H1'), …].")]
    view, size, look = settings(options, "compare")
    check_panels(all_panels, view, pin_of)
    check_panel_kind(kind, columns)
    check_diff(diff, len(all_panels))
    start = caption.collect_settings(view.of([panel.attention for panel in all_panels])) | {
        "as": kind,
        "at": str(pin_of),
    }
    start |= {"diff": f"{diff[0]}-{diff[1]}"} if diff else {}
    return Figure(
        partial(
            compare_drawing,
            all_panels,
            strip_page_settings(view, "compare", kind),
            kind=kind,
            columns=columns,
            pin_of=pin_of,
            diff=diff,
        ),
        Page("compare", partial(pack_comparison, all_panels, is_standalone=True), start, "compare"),
        partial(_panel_numbers, all_panels, view),
        size,
        look,
        build_file_errors(view, "compare", kind),
        file_names.name_for_heads(
            [(panel.attention, panel.head) for panel in all_panels], *(["links"] * (kind == "links"))
        ),
    )


def difference(first: Any, second: Any, *, pin_of: int = 0, **options: Unpack[Options]) -> Figure:
    """Draw the second head minus the first: ``difference((a, "L3H1"), (b, "L3H1"))``.

    Options: those of View and Size. ``pin`` counts tokens of the first, or with ``pin_of=1`` of the second.
    """
    first_panel, second_panel = build_panel(first), build_panel(second)
    view, size, look = settings(options, "difference")
    check_panels((first_panel, second_panel), replace(view, scale="fixed"), pin_of)
    start = caption.collect_settings(view.of([first_panel.attention, second_panel.attention]))
    start |= {"diff": "0-1", "at": str(pin_of)}
    return Figure(
        partial(
            draw_fitted,
            partial(_difference_drawing, first_panel, second_panel, strip_page_settings(view, "difference"), pin_of),
        ),
        Page("compare", partial(pack_comparison, [first_panel, second_panel], is_standalone=True), start, "compare"),
        partial(_difference_numbers, first_panel, second_panel, view),
        size,
        look,
        build_file_errors(view, "difference"),
        file_names.name_for_heads(
            [(panel.attention, panel.head) for panel in (second_panel, first_panel)], joiner="minus"
        ),
    )


def chart(
    draw: Callable[[Theme], Chart],
    alt: str,
    caption: str,
    table: Callable[[], Table] | None = None,
    name: str = "chart",
    **options: Any,
) -> Figure:
    """Make the figure of a chart; it has no interactive page.

    Args:
        draw: makes the chart in the colours of a theme.
        alt: describes the chart in a few words.
        caption: states the source of its numbers.
        table: makes the table of its numbers, by default those that it draws.
        name: the name of its files, without a suffix.
        **options: those of Size.

    Returns the figure. Raises SettingError for other options.
    """
    _, size, _ = settings(options)
    caption_text = f"{alt.rstrip('.')}. {caption}".strip()
    return Figure(
        partial(_chart_drawing, draw, caption_text, alt),
        None,
        table or partial(_chart_table, draw, size.look, alt, caption),
        size,
        name=name,
    )


def _chart_drawing(draw: Callable[[Theme], Chart], caption_text: str, alt: str, size: Size) -> Drawing:
    return draw_chart(draw(THEMES[size.look]), size, caption_text, alt)


def _chart_table(draw: Callable[[Theme], Chart], look: str, alt: str, caption: str) -> Table:
    return Table(COLUMNS, draw(THEMES[look]).rows, {"figure": alt, "caption": caption})


def _difference_drawing(first: Panel, second: Panel, view: View, pin_of: int, size: Size) -> Drawing:
    return difference_drawing(first, second, view, size, pin_of)


def _panel_numbers(panels: Sequence[Panel], view: View) -> PanelNumbers:
    numbers = tuple(compute_shown(panel.attention, [panel.head], view) for panel in panels)
    return PanelNumbers(numbers, tuple(panel.name for panel in panels))


def _difference_numbers(first_panel: Panel, second_panel: Panel, view: View) -> DifferenceNumbers:
    axes = compute_difference(first_panel, second_panel, view).axes
    rows, cols = (tuple(unit.text for unit in side) for side in axes)
    first, second = (compute_shown(p.attention, [p.head], view) for p in (first_panel, second_panel))
    return DifferenceNumbers(first, second, rows, cols)


def _explorer_page(attention: Attention, heads: tuple[Head, ...], view: View, show: str) -> Page:
    grid_heads, heads = (heads, heads[:1]) if show == "all" else ((), heads)
    start = caption.collect_settings(view.of([attention])) | {"head": str(heads[0])}
    other_heads = [str(h.head) for h in heads[1:] if h.layer == heads[0].layer]
    start |= {"on": ".".join(other_heads)} if other_heads else {}
    return Page(
        "explorer",
        partial(build_packet, attention, heads, is_standalone=True, bits=12, grid_heads=grid_heads),
        start,
        show,
    )


def _choose_grid_heads(
    attention: Attention, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> tuple[Head, ...]:
    """Return the heads of a grid, restricted to these layers and head numbers.

    Raises UnknownHead, SettingError.
    """
    axes: list[list[int]] = []
    remedy = "Give a list of numbers, such as [5, 6]."
    for name, numbers, all_numbers in (
        ("layers", layers, attention.layer_numbers),
        ("heads", heads, range(attention.heads)),
    ):
        items = all_numbers if numbers is None else list_items(numbers, name, remedy)
        if not (items and all(map(is_number, items))):
            raise SettingError(f"{name} is {shorten_value(numbers)!r}.", remedy)
        for number in items:
            attention.head((number, 0) if name == "layers" else (attention.layer_numbers[0], number))
        axes.append(sorted({*items}))
    return tuple(Head(row, column) for row in axes[0] for column in axes[1])


def _choose_heads(
    attention: Attention, layer: int | AnyHead | None, head: int | None, options: HeadOptions
) -> tuple[Head, ...]:
    """Return the heads, or layers of rollout, that the arguments of a call name."""
    heads_option = options.pop("heads", None)
    last_head = attention.every_head()[-1]
    example = name_map(attention.quantity, last_head)
    remedy = f"Give {example!r}, or layer={last_head.layer}, head={last_head.head}, or heads=[{example!r}]."
    if heads_option is not None:
        heads = tuple(map(attention.head, list_items(heads_option, "heads", remedy)))
    elif head is not None and layer is not None:
        heads = (attention.head((layer, head)),)
    else:
        heads = () if layer is None or is_number(layer) else (attention.head(layer),)
    if not heads:
        raise SettingError("No head was named.", remedy)
    return heads


def build_panel(item: Any) -> Panel:
    """Build a panel from (attention, head) or (attention, head, name). Raises SettingError."""
    if isinstance(item, Panel):
        return item
    try:
        attention, head, *name = item
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"{shorten_value(item, 60)!r} is not a head to compare.", "Give (attention, 'L3H1')."
        ) from error
    if not isinstance(attention, Attention):
        raise SettingError(f"{shorten_value(attention, 60)!r} is not an Attention.", "Give (attention, 'L3H1').")
    return Panel(attention, attention.head(head), str(name[0]) if name else "")


def strip_page_settings(view: View, kind: str, panels: str = "") -> View:
    """Reset the settings of a view that only the interactive page of a kind of figure shows."""
    return replace(
        view, **{name: OPTIONS[name].default for name in iter_page_only_settings(kind, asdict(view), panels)}
    )


def build_file_errors(view: View, kind: str, panels: str = "") -> tuple[SettingError, ...]:
    """Build the errors for the settings of a view that the files of a kind of figure do not show."""
    return tuple(build_file_error(name, kind) for name in iter_page_only_settings(kind, asdict(view), panels))


def settings(options: Mapping[str, Any], kind: str = "") -> tuple[View, Size, Look]:
    """Build View and Size from the options of a call, including ``width_in`` in inches, and the Look of a page.

    Raises SettingError for unknown options, and for options that a ``kind`` of figure does not accept.
    """
    view_names, size_names = ({f.name for f in fields(options_class)} for options_class in (View, Size))
    options = dict(options)
    if "width_in" in options:
        inches = options.pop("width_in")
        if not isinstance(inches, int | float) or not abs(inches) < MAX_INCHES:
            raise SettingError(f"width_in is {shorten_value(inches)!r}.", "Expected a number of inches.")
        options["width_mm"] = 25.4 * inches
    unknown = [name for name in options if name not in view_names | size_names]
    if "dpi" in unknown:
        raise SettingError("dpi belongs to a file, not to a figure.", 'Save it so: figure.save("figure.png", dpi=300).')
    if unknown:
        known = {name for name in view_names if not kind or kind in OPTIONS[name].kinds} | size_names
        raise SettingError(f"There is no option {unknown[0][:40]!r}.", f"Known: {', '.join(sorted(known))}.")
    view_options = {name: value for name, value in options.items() if name in view_names}
    if kind:
        check_accepted(kind, view_options)
    view = View(**view_options)
    size = Size(**{name: value for name, value in options.items() if name in size_names})
    return view, size, size.look if "look" in options else "auto"
