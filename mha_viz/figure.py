"""Figures for notebooks and scripts: they show themselves in Jupyter, and save themselves in any format.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a.links(layer=3, head=1, pin="q10").save("links.svg")
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Unpack, overload
from zipfile import ZIP_DEFLATED, ZipFile

from mha_viz import exports
from mha_viz.attention import AnyHead, Attention, Head
from mha_viz.drawing import fonts
from mha_viz.drawing.marks import POINTS_PER_MM, Drawing
from mha_viz.errors import ExportError, FigureWarning, MissingGlyphWarning, SettingError
from mha_viz.exports import Numbers, Several, Subtracted
from mha_viz.exports.page import Look, embedded, page
from mha_viz.figures import caption
from mha_viz.figures.compare import As, check, check_diff, check_kind
from mha_viz.figures.compare import compare as compare_drawing
from mha_viz.figures.correspondence import Panel, pin_in
from mha_viz.figures.difference import difference as difference_drawing
from mha_viz.figures.difference import signed
from mha_viz.figures.grid import grid as grid_drawing
from mha_viz.figures.heatmap import heatmap as heatmap_drawing
from mha_viz.figures.layout import Size
from mha_viz.figures.links import links as links_drawing
from mha_viz.figures.packet import packet
from mha_viz.figures.panels import pack
from mha_viz.figures.view import View, check_pin, shown
from mha_viz.heads import is_number
from mha_viz.options import HeadOptions, Options

__all__ = [
    "Figure",
    "Page",
    "archive",
    "compare",
    "difference",
    "grid",
    "heatmap",
    "known",
    "links",
    "pin_for",
    "unknown",
]

NO_PAGE_MM = 10_000.0  # a figure on Axes is not cut to a page: it is drawn smaller
HEIGHTS = {"all": 820, "grid": 560, "links": 690, "heatmap": 690, "compare": 760}  # of a notebook's frame, pixels


@dataclass(frozen=True)
class Page:
    """What the interactive version of a figure is made of: a component, its data, and with what it opens."""

    component: str
    packet: Callable[[], bytes]
    start: Mapping[str, str]
    show: str


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure: Jupyter shows it as an interactive drawing, offline; :meth:`save` writes it in any format."""

    make: Callable[[Size], Drawing]
    page: Page
    numbers: Callable[[], Numbers]
    size: Size = field(default_factory=Size)
    look: Look = "auto"  # of the interactive version: as the reader has it, unless one was asked for

    @cached_property
    def drawing(self) -> Drawing:
        """The static figure: a list of marks in points."""
        made = self._made
        boxes = fonts.boxes(made.texts())
        return replace(made, caption=f"{made.caption} {boxes}") if boxes else made

    @cached_property
    def _made(self) -> Drawing:
        """The drawing, whatever fonts are here."""
        return self.make(self.size)

    @cached_property
    def _warned(self) -> bool:
        """Warns of characters without a glyph when it is first asked for, and not again."""
        lost = fonts.missing(self._made.texts())
        if lost:
            warnings.warn(" ".join(lost), MissingGlyphWarning, stacklevel=_outside())
        return bool(lost)

    @property
    def caption(self) -> str:
        """The text to set under it: model, sentence, heads, what was done, what is hidden or left out."""
        return self.drawing.full_caption

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with its static picture, a sentence or two each: what :meth:`save` warns of."""
        return tuple(map(str, self._made.notes))

    def save(self, path: str | os.PathLike[str], dpi: int = 300) -> Path:
        """Write the figure as .svg, .pdf, .png (``dpi``) or .html, or its numbers as .csv, .npz, .safetensors, .json.

        A picture that leaves something out, is higher than its page or has letters too small to print is a
        FigureWarning.

        A picture of characters of which no font on this machine has a glyph has boxes in their place: then a
        MissingGlyphWarning names them, once per figure, and so does the caption.

        Raises ExportError for another suffix or a place that cannot be written; no half-written file is left.
        """
        suffix = Path(path).suffix
        for line in self.warnings if suffix.lower() in exports.drawing_suffixes() else ():
            warnings.warn(line, FigureWarning, stacklevel=_outside())
        return exports.write_bytes(path, lambda: self.to_bytes(suffix, dpi))

    def to_bytes(self, suffix: str, dpi: int = 300) -> bytes:
        """The file in memory; ``suffix`` as in :meth:`save`. Raises ExportError."""
        suffix = suffix.lower()
        if suffix == ".html":
            return self.to_html().encode()
        if suffix in exports.shown_suffixes():
            return exports.shown_bytes(self.numbers(), suffix)
        if suffix not in exports.drawing_suffixes():
            raise ExportError(*unknown(suffix))
        _ = self._warned
        return exports.drawing_bytes(self.drawing, suffix, dpi)

    def to_html(self) -> str:
        """The interactive figure as one HTML page with everything inside: no network, no script of others."""
        made = self.page
        return page(
            made.component,
            made.packet(),
            title=self._made.alt,
            caption=self._made.caption,  # the reader's fonts draw it
            start=made.start,
            show=made.show,
            look=self.look,
        ).decode()

    def figure(self, ax: Any = None) -> Any:
        """The static figure drawn into a matplotlib Axes, which is returned. Raises SettingError.

        It is laid out anew for the room of ``ax``, so that its labels are as large as was asked for; where no width
        is low enough for the Axes, the whole is drawn smaller. Without ``ax`` a new figure has the figure's own size.
        """
        if ax is not None and not hasattr(ax, "add_patch"):
            raise SettingError(f"ax is {str(ax)[:40]!r}.", "Give an Axes of matplotlib, or nothing for a new figure.")
        _ = self._warned
        return exports.draw(self.drawing if ax is None else self._laid_out(*exports.room(ax)), ax)

    def _laid_out(self, width: float, height: float) -> Drawing:
        """The drawing whose labels come nearest to the asked size in a room of so many points."""

        def made(wide: float) -> Drawing:
            width_mm = max(20.0, min(2000.0, wide / POINTS_PER_MM))
            return self.make(replace(self.size, width_mm=width_mm, max_height_mm=NO_PAGE_MM))

        def shrinks(drawing: Drawing) -> float:
            return round(abs(math.log(min(width / drawing.width, height / drawing.height))), 3)

        drawings = [made(width)]
        if drawings[0].height > height:
            drawings.append(made(width * drawings[0].height / height))  # one that is no higher for it may fill the room
        while (
            drawings[0].height > height and len(drawings) < 6
        ):  # a narrower one is lower, not always as much as narrower
            drawings.insert(0, made(drawings[0].width * max(0.5, height / drawings[0].height)))
        return min(drawings, key=lambda drawing: (shrinks(drawing), -drawing.width))

    def _repr_html_(self) -> str:
        return embedded(self.to_html().encode(), HEIGHTS[self.page.show if self.page.show in HEIGHTS else "compare"])

    def __repr__(self) -> str:
        return f"Figure({self.drawing.alt[:100]})"


def _outside() -> int:
    """The stack level, for the caller's warning, of the first frame that is not the package's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("mha_viz", "functools"):
        level, frame = level + 1, frame.f_back
    return level


def known() -> tuple[str, ...]:
    """Every suffix that a figure can be saved with."""
    return (*exports.drawing_suffixes(), ".html", *exports.shown_suffixes())


def unknown(suffix: str) -> tuple[str, str]:
    """What to say of any other."""
    problem = f"“{suffix[:40]}” is not a format of figures." if suffix else "The file has no suffix."
    return problem, f"Use one of {', '.join(known())}."


def grid(attention: Attention, **options: Unpack[Options]) -> Figure:
    """All heads at a glance. Options: those of View and Size."""
    view, size, look = _settings(options)
    check_pin(attention, view)
    return Figure(
        lambda size: grid_drawing(attention, view, size),
        _explorer(attention, (Head(0, 0),), view, "all"),
        lambda: shown(attention, attention.every_head(), view),
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
    heads = _heads(layer, head, options)
    if len(heads) != 1:
        raise SettingError(f"A heatmap shows one head, {len(heads)} were named.", "Use compare for several.")
    view, size, look = _settings(options)
    check_pin(attention, view)
    _ = attention[heads[0]]
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
    heads = _heads(layer, head, options)
    view, size, look = _settings(options)
    check_pin(attention, view)
    for one in heads:
        _ = attention[one]
    if len({one.layer for one in heads}) > 1:
        named = ", ".join(map(str, heads))
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

    Options: those of View and Size; ``kind`` is heatmap or links. ``columns``: panels in a row, 1 to 16; without it as
    many as fit, evenly (four come out two by two where three fit). ``pin`` counts tokens of panel ``pin_of``. ``diff``
    names two panels, counted from 0, whose difference is open in the interactive version.
    """
    if not isinstance(panels, Iterable):
        raise SettingError(f"{str(panels)[:60]!r} is not a list of heads.", "Give [(attention, 'L3H1'), …].")
    made = [_panel(given) for given in panels]
    view, size, look = _settings(options)
    check(made, view, pin_of)
    check_kind(kind, columns)
    check_diff(diff, len(made))
    start = caption.settings(view) | {"as": kind, "at": str(pin_of)}
    start |= {"diff": f"{diff[0]}-{diff[1]}"} if diff else {}
    return Figure(
        lambda size: compare_drawing(made, view, size, kind, columns, pin_of, diff),
        Page("compare", lambda: pack(made, editable=False), start, "compare"),
        lambda: Several(tuple(shown(p.attention, [p.head], view) for p in made), tuple(p.name for p in made)),
        size,
        look,
    )


def difference(first: Any, second: Any, *, pin_of: int = 0, **options: Unpack[Options]) -> Figure:
    """What the second head gives more or less than the first: ``difference((a, "L3H1"), (b, "L3H1"))``.

    Options: those of View and Size. ``pin`` counts tokens of the first, or with ``pin_of=1`` of the second.
    """
    one, two = _panel(first), _panel(second)
    view, size, look = _settings(options)
    check((one, two), replace(view, scale="fixed"), pin_of)
    start = caption.settings(view) | {"diff": "0-1", "at": str(pin_of)}
    return Figure(
        lambda size: difference_drawing(one, two, view, size, pin_of),
        Page("compare", lambda: pack([one, two], editable=False), start, "compare"),
        lambda: _subtracted(one, two, view),
        size,
        look,
    )


def _subtracted(one: Panel, two: Panel, view: View) -> Subtracted:
    axes = signed(one, two, view).axes
    rows, cols = (tuple(unit.text for unit in side) for side in axes)
    first, second = (shown(p.attention, [p.head], view) for p in (one, two))
    return Subtracted(first, second, rows, cols)


def archive(
    panels: Sequence[Any],
    dpi: int = 300,
    kind: As = "heatmap",
    diff: tuple[int, int] | None = None,
    pin_of: int = 0,
    columns: int | None = None,
    **options: Any,
) -> bytes:
    """Everything of a comparison as one zip file: the comparison itself, the difference of two panels where ``diff``
    names them, each head as heatmap and links, all as SVG, PDF and PNG with their numbers (CSV), and the captions.

    Options: those of View and Size; ``kind``, ``pin_of`` and ``columns`` as of :func:`compare`. A PNG that would be too
    large at this ``dpi`` is left out, and captions.txt says so.
    """
    made = [_panel(given) for given in panels]
    figures = {"comparison": compare(made, kind, columns, pin_of, diff, **options)}
    if diff is not None:
        at, pin = pin_for(made, diff, pin_of, _settings(options)[0])
        one, two = (made[i] for i in diff)
        figures["difference"] = difference(one, two, pin_of=at, **options | {"pin": pin})
    for number, panel in enumerate(made, 1):
        pin = pin_in(made, number - 1, _settings(options)[0], pin_of)
        alone = options | {"heads": [panel.head], "pin": pin}
        figures[f"{number}-{panel.head}-heatmap"] = heatmap(panel.attention, **alone)
        figures[f"{number}-{panel.head}-links"] = links(panel.attention, **alone)
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        captions = [_put(file, name, figure, dpi) for name, figure in figures.items()]
        file.writestr("captions.txt", "".join(captions))
    return buffer.getvalue()


def pin_for(panels: Sequence[Panel], diff: tuple[int, int], pin_of: int, view: View) -> tuple[int, str]:
    """The pin of a comparison as the difference of two of its panels has it: of which of the two, and what it holds."""
    pinned = panels[pin_of].attention
    for side, number in enumerate(diff):
        if panels[number].attention.key == pinned.key:
            return side, view.pin
    return 0, pin_in(panels, diff[0], view, pin_of)


def _put(file: ZipFile, name: str, figure: Figure, dpi: int) -> str:
    """One figure into an archive; returns what captions.txt says of it."""
    page = [".html"] if figure.page.component == "compare" else []
    numbers = [] if name.endswith("links") else [".csv"]  # those of the heatmap
    notes = ""
    for suffix in [".svg", ".pdf", ".png", *page, *numbers]:
        try:
            file.writestr(f"{name}{suffix}", figure.to_bytes(suffix, dpi))
        except ExportError as error:
            notes += f"\n(There is no {name}{suffix}. {error})"
    return f"{name}\n{figure.caption}{notes}\n\n"


def _explorer(attention: Attention, heads: tuple[Head, ...], view: View, show: str) -> Page:
    start = caption.settings(view) | {"head": str(heads[0])}
    beside = [str(h.head) for h in heads[1:] if h.layer == heads[0].layer]
    start |= {"on": ".".join(beside)} if beside else {}
    return Page("explorer", lambda: packet(attention, heads, everything=True, bits=12), start, show)


def _heads(layer: int | AnyHead | None, head: int | None, options: HeadOptions) -> tuple[Head, ...]:
    """The heads that a call names, each way."""
    named = options.pop("heads", None)
    remedy = "Give 'L3H1', or layer=3, head=1, or heads=['L3H1']."
    if named is not None:
        if isinstance(named, str) or not isinstance(named, Iterable):
            raise SettingError(f"heads is {str(named)[:40]!r}, which is not a list.", remedy)
        chosen = tuple(Head.of(one) for one in named)
    elif head is not None and layer is not None:
        chosen = (Head.of((layer, head)),)
    else:
        chosen = () if layer is None or is_number(layer) else (Head.of(layer),)
    if not chosen:
        raise SettingError("No head was named.", remedy)
    return chosen


def _panel(given: Any) -> Panel:
    if isinstance(given, Panel):
        return given
    try:
        attention, head, *name = given
    except (TypeError, ValueError) as error:
        raise SettingError(f"{str(given)[:60]!r} is not a head to compare.", "Give (attention, 'L3H1').") from error
    if not isinstance(attention, Attention):
        raise SettingError(f"{str(attention)[:60]!r} is not an Attention.", "Give (attention, 'L3H1').")
    panel = Panel(attention, Head.of(head), str(name[0]) if name else "")
    _ = attention[panel.head]
    return panel


def _inches(given: Any) -> float:
    if not isinstance(given, int | float):
        raise SettingError(f"width_in is {str(given)[:40]!r}.", "Expected a number of inches.")
    return 25.4 * given


def _settings(options: Mapping[str, Any]) -> tuple[View, Size, Look]:
    """View and Size from the options of a call, ``width_in`` in inches among them, and the look of a page. Raises
    SettingError for others."""
    views, sizes = ({f.name for f in fields(kind)} for kind in (View, Size))
    options = dict(options)
    if "width_in" in options:
        options["width_mm"] = _inches(options.pop("width_in"))
    odd = [name for name in options if name not in views | sizes]
    if odd:
        raise SettingError(f"There is no option {odd[0][:40]!r}.", f"Known: {', '.join(sorted(views | sizes))}.")
    view = View(**{name: value for name, value in options.items() if name in views})
    size = Size(**{name: value for name, value in options.items() if name in sizes})
    return view, size, size.look if "look" in options else "auto"
