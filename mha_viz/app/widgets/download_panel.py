"""Download a figure: the picture on screen as a file, its numbers, its caption, and code that reproduces it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any, NamedTuple

import streamlit as st

from mha_viz import figures as figure_api
from mha_viz.app.url import address
from mha_viz.app.widgets.parts import show_error, show_remark
from mha_viz.attention import Attention, Head
from mha_viz.errors import ExportError, MhaVizError
from mha_viz.figures import Figure
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.file_names import build_file_name, name_for_all, name_for_heads
from mha_viz.figures.layout import COLUMN_MM, LOOKS, NARROW_MM, PAGE_MM, TWO_COLUMNS_MM, Size, figure_code
from mha_viz.figures.layout.compare import PanelKind
from mha_viz.figures.layout.panels import Panel, choose_difference_pin, explain_mismatch
from mha_viz.figures.layout.view import View, find_focus, list_units
from mha_viz.view.settings import LONG_DEFAULTS, LONG_TOKENS, OPTIONS, keep_accepted

MIME = {
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".html": "text/html",
    ".csv": "text/csv",
    ".npz": "application/octet-stream",
    ".safetensors": "application/octet-stream",
    ".json": "application/json",
    ".zip": "application/zip",
}
WIDTHS = {
    "Automatic": None,
    "1 column, 77 mm": NARROW_MM,
    "1 column, 85 mm": COLUMN_MM,
    "2 columns, 178 mm": TWO_COLUMNS_MM,
    "Other": 0.0,
}
MAX_TEXT_WEIGHTS = 2_000_000  # maximum weights in a text file: 60 MB take seconds, during which other visitors wait
_file_slots = threading.BoundedSemaphore(2)  # two files at a time, for all visitors together
AUTOMATIC = "automatic"
DPI = {"150 dpi": 150, "300 dpi": 300, "600 dpi": 600}


@dataclass(frozen=True)
class Offer:
    """A figure that can be downloaded.

    Attributes:
        label: its label in the menu.
        file: the name of its files, without suffix.
        weights: the largest number of attention weights that a file can contain.
        make: creates the figure.
        code: writes the Python code that reproduces it.
        panels: the number of panels, 0 for a figure without panels.
    """

    label: str
    file: str
    weights: int
    make: Callable[..., Figure]  # takes a Size; for panels in rows also ``columns``
    code: Callable[..., str] | None  # takes a Size, a file name and, for rows, ``columns``; None if there is none
    panels: int = 0


@dataclass(frozen=True)
class PageChart:
    """A chart of a page.

    Attributes:
        label: what it shows.
        file: the name of its files, without suffix.
        draw: draws it in the colours of a theme.
        description: a sentence on the data that it was measured on.
        table: returns its numbers, if the chart does not draw all of them.
        code: the Python code that computes its numbers, if there is any.
        text: the text that it is about, if it is about a text.
    """

    label: str
    file: str
    draw: Callable[[Theme], Any]
    description: str
    table: Callable[[], Table] | None = None
    code: str = ""
    text: str = ""

    def make_offer(self) -> Offer:
        """Return the chart as a figure that can be downloaded."""
        return Offer(self.label, self._name, 0, self._make_figure, (lambda *_, **__: self.code) if self.code else None)

    def _make_figure(self, size: Size) -> Figure:
        return figure_api.chart(self.draw, self.label, self.description, self.table, self._name, **_list_options(size))

    @property
    def _name(self) -> str:
        return build_file_name([self.file], self.text)


def show_chart_downloads(charts: Sequence[PageChart], first_offers: Sequence[Offer] = ()) -> None:
    """Show the downloads of a page: the figures in ``first_offers``, then the charts."""
    if charts or first_offers:
        _show_expander(lambda: [*first_offers, *(chart.make_offer() for chart in charts)])


def show_reading_downloads(
    attention: Attention, heads: Sequence[Head], view: Callable[[], View], charts: Sequence[PageChart] = ()
) -> None:
    """Show the downloads of Explore: the open heads as heatmap and links, the grid, and the charts that are shown."""
    _show_expander(lambda: [*_offer_heads(attention, heads, view()), *(chart.make_offer() for chart in charts)])


def _offer_heads(attention: Attention, heads: Sequence[Head], view: View) -> list[Offer]:
    first_head = heads[0]
    view = _drop_invalid_pin(attention, view)
    settings = {kind: keep_accepted(kind, _list_options(view)) for kind in ("heatmap", "links", "grid")}
    weights = _count_weights(attention)
    return [
        Offer(
            f"Heatmap of {first_head}",
            name_for_heads([(attention, first_head)]),
            weights,
            lambda size: figure_api.heatmap(
                attention, heads=[first_head], **settings["heatmap"], **_list_options(size)
            ),
            lambda size, file: figure_code.write_head_code(attention, "heatmap", [first_head], view, size, file),
        ),
        Offer(
            f"Links of {', '.join(map(str, heads))}",
            name_for_heads([(attention, head) for head in heads], "links"),
            weights * len(heads),
            lambda size: figure_api.links(attention, heads=heads, **settings["links"], **_list_options(size)),
            lambda size, file: figure_code.write_head_code(attention, "links", heads, view, size, file),
        ),
        Offer(
            "Grid of all heads",
            name_for_all(attention, attention.every_head()),
            weights * attention.layers * attention.heads,
            lambda size: figure_api.grid(attention, **settings["grid"], **_list_options(size)),
            lambda size, file: figure_code.write_head_code(attention, "grid", [], view, size, file),
        ),
    ]


class PanelView(NamedTuple):
    """The panels on a page and how they are shown.

    Attributes:
        panels: the panels.
        view: the view of all panels.
        pin_of: the number of the panel whose tokens the pin of the view counts.
        pair: the panels whose difference is open, if any.
        kind: how they are drawn.
    """

    panels: Sequence[Panel]
    view: View
    pin_of: int = 0
    pair: tuple[int, int] | None = None
    kind: PanelKind = "heatmap"


def show_panel_downloads(panel_view: PanelView, offers_archive: bool, charts: Sequence[PageChart] = ()) -> None:
    """Show the downloads of Compare: the comparison, the open difference, and the page’s charts.

    ``offers_archive``: whether to offer all panels in one zip file, as for the compared heads.
    """
    panels, view, pin_of, pair, kind = panel_view
    view = _drop_invalid_pin(panels[pin_of].attention, view)
    options: dict[str, Any] = ({} if kind == "heatmap" else {"kind": kind}) | _make_pin_option(pin_of)
    compare_options = options | ({"diff": pair} if pair else {})
    accepted_options = keep_accepted("compare", _list_options(view))
    name = name_for_heads([(panel.attention, panel.head) for panel in panels], *(["links"] * (kind == "links")))
    offers = [
        Offer(
            "The comparison",
            name,
            sum(_count_weights(panel.attention) for panel in panels),
            lambda size, **columns: figure_api.compare(
                panels, **compare_options, **columns, **accepted_options, **_list_options(size)
            ),
            lambda size, file, **columns: figure_code.write_panels_code(
                panels, view, size, compare_options | columns, "compare", file
            ),
            len(panels),
        )
    ]
    if pair is not None:
        offers.append(_offer_difference(panels, view, pair, pin_of))
    offers += [chart.make_offer() for chart in charts]

    def make_archive(size: Size, dpi: int, **columns: Any) -> bytes:
        diff = pair
        if diff and explain_mismatch(panels[diff[0]].attention, panels[diff[1]].attention, view):
            diff = None  # the page says why these two cannot be subtracted
        return figure_api.archive(
            panels, dpi, diff=diff, **options, **columns, **accepted_options, **_list_options(size)
        )

    _show_expander(lambda: offers, make_archive if offers_archive else None, f"{name}.zip")


def _offer_difference(panels: Sequence[Panel], view: View, pair: tuple[int, int], pin_of: int) -> Offer:
    first, second = (panels[i] for i in pair)
    pinned_panel, pin = choose_difference_pin(panels, pair, pin_of, view)
    pinned_view = replace(view, pin=pin)
    settings = keep_accepted("difference", _list_options(pinned_view))
    return Offer(
        f"The difference of panels {pair[0] + 1} and {pair[1] + 1}",
        name_for_heads([(panel.attention, panel.head) for panel in (second, first)], joiner="minus"),
        _count_weights(first.attention),
        lambda size: figure_api.difference(first, second, pin_of=pinned_panel, **settings, **_list_options(size)),
        lambda size, file: figure_code.write_panels_code(
            [first, second], pinned_view, size, _make_pin_option(pinned_panel), "difference", file
        ),
    )


def _count_weights(attention: Attention) -> int:
    """Return the number of weights of one head."""
    return len(attention.queries) * len(attention.keys)


def _drop_invalid_pin(attention: Attention, view: View) -> View:
    """Return the view without a pin on a missing token and, for a text without a second sentence, without a side."""
    if not attention.queries.pair:
        view = replace(view, side=OPTIONS["side"].default)
    return view if find_focus(list_units(attention, view), view) else replace(view, pin="")


def _make_pin_option(pin_of: int) -> dict[str, Any]:
    return {"pin_of": pin_of} if pin_of else {}


def parse_view(parameters: Mapping[str, str], pin: str | None = None, tokens: int = 0) -> View:
    """Return the view that the URL describes for a text of ``tokens`` tokens.

    Invalid values are replaced by defaults.
    """
    valid_values = dict(LONG_DEFAULTS if tokens > LONG_TOKENS else {}) | {
        name: parameters[name]
        for name, setting in OPTIONS.items()
        if name in parameters and setting.accepts(parameters[name])
    }
    if pin is not None and "pin" not in valid_values:
        valid_values["pin"] = pin
    return View(**valid_values)


def _list_options(source: View | Size) -> dict[str, Any]:
    """Return the options of a figure, without the default theme, so that HTML files follow the reader's colours."""
    options = {name: getattr(source, name) for name in source.__dataclass_fields__}
    return {name: value for name, value in options.items() if (name, value) != ("look", LOOKS[0])}


def _show_expander(
    make_offers: Callable[[], Sequence[Offer]], make_archive: Callable[..., bytes] | None = None, archive: str = ""
) -> None:
    """Show the panel, closed at first. Its figures are created when it is opened.

    ``make_archive``: creates a zip file of all figures; ``archive``: the name of that file.
    """
    if address.is_class_view():
        return
    with st.expander("Download", on_change="rerun", key="download_panel", icon=":material/download:") as box:
        if not box.open:
            return
        left, right = st.columns([2, 3], gap="large")
        with left:
            offers = make_offers()
            labels = [offer.label for offer in offers]
            label = st.radio("Figure", labels, key="take_figure", horizontal=True)
            offer = offers[labels.index(label)] if label in labels else offers[0]
            size = _choose_size()
            column_option = _choose_columns(offer.panels)
            dpi = DPI[st.selectbox("PNG resolution", list(DPI), index=1, key="take_dpi", width=160)]
        try:
            _show_offer(offer, size, column_option, dpi, left, right)
        except MhaVizError as error:
            show_error(error)
        if make_archive is not None:
            make = partial(make_archive, size, dpi, **column_option)
            show_download_button("All of My heads in one zip file", archive, make, "take_zip")


def _choose_columns(panels: int) -> dict[str, int]:
    """Show the setting for the number of panels in a row, and return it.

    The dictionary is empty if each row takes as many as fit.
    """
    if panels < 2:
        return {}
    count = st.selectbox("Panels per row", [AUTOMATIC, *range(1, panels + 1)], key="take_columns", width=160)
    return {"columns": count} if isinstance(count, int) else {}


def _show_offer(offer: Offer, size: Size, column_option: Mapping[str, int], dpi: int, left: Any, right: Any) -> None:
    figure = offer.make(size, **column_option)
    with right:
        st.html(draw_image(figure, "Preview of the figure"))
    with left:
        _show_buttons(figure, offer, dpi)
    for line in (*figure.warnings, *figure.missing_glyphs):
        show_remark(line)
    st.caption("Caption")
    st.code(figure.caption, language=None, wrap_lines=True)
    if offer.code is None:
        return
    st.caption("Reproduce in Python")
    st.code(offer.code(size, f"{offer.file}.svg", **column_option), language="python", wrap_lines=True)


def _choose_size() -> Size:
    columns = st.columns([4, 3, 3, 2])
    width = WIDTHS[columns[0].selectbox("Width", list(WIDTHS), key="take_width")]
    if width == 0:
        unit = columns[0].radio(
            "Unit", ["mm", "inches"], key="take_unit", horizontal=True, label_visibility="collapsed"
        )
        limits = (20.0, 500.0, 120.0, 1.0) if unit == "mm" else (0.8, 20.0, 4.5, 0.1)
        entered_width = columns[0].number_input(f"Width ({unit})", *limits, key=f"take_{unit}")
        width = entered_width if unit == "mm" else 25.4 * entered_width
    font = columns[1].number_input("Label size (pt)", 4.0, 20.0, 8.0, 0.5, "%g", key="take_font")
    max_height = columns[2].number_input("Maximum height (mm)", 20.0, 10_000.0, PAGE_MM, 10.0, "%g", key="take_height")
    look = columns[3].selectbox("Theme", LOOKS, key="take_look")
    is_transparent = st.checkbox("Transparent background", key="take_clear")
    return Size(width, font, look, is_transparent, max_height)


def draw_image(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG image, in which no script can run.

    The image contains its glyphs, so it does not depend on installed fonts.
    """
    from mha_viz.figures.files.preview import render_preview  # imports fontTools, needed only here

    svg = base64.b64encode(render_preview(figure.drawing)).decode()
    return f'<img class="mha-figure" alt="{escape(alt)}" src="data:image/svg+xml;base64,{svg}">'


def _show_buttons(figure: Figure, offer: Offer, dpi: int) -> None:
    pictures = {".svg": "SVG", ".pdf": "PDF", ".png": "PNG", ".html": "Interactive HTML"}
    numbers = {".csv": "CSV", ".npz": "NPZ", ".safetensors": "safetensors", ".json": "JSON"}
    pictures, numbers = (
        {suffix: label for suffix, label in formats.items() if suffix in figure.suffixes}
        for formats in (pictures, numbers)
    )
    size_error = _find_size_error(figure, dpi)
    if size_error is not None:
        del pictures[".png"]
    _show_button_row("Figure", pictures, figure, offer, dpi)
    if size_error is not None:
        show_remark(f"No PNG: {size_error}")
    if offer.weights > MAX_TEXT_WEIGHTS:
        numbers = {suffix: label for suffix, label in numbers.items() if suffix not in (".csv", ".json")}
        show_remark(f"No CSV or JSON: {offer.weights:,} weights are too many for a text file. Use NPZ or safetensors.")
    _show_button_row("Numbers", numbers, figure, offer, dpi)


def _find_size_error(figure: Figure, dpi: int) -> ExportError | None:
    """Return the error if the figure is too large for a PNG, else None.

    Checked in advance, because an error cannot be shown while a file is being created.
    """
    from mha_viz.figures.files.png import compute_pixel_size  # imports resvg, needed only here

    try:
        compute_pixel_size(figure.drawing, dpi)
    except ExportError as error:
        return error
    return None


def _show_button_row(title: str, formats: Mapping[str, str], figure: Figure, offer: Offer, dpi: int) -> None:
    st.caption(title)
    with st.container(horizontal=True, gap="small"):
        for suffix, label in formats.items():
            show_download_button(
                label, f"{offer.file}{suffix}", partial(figure.make_file, suffix, dpi), f"take{suffix}"
            )


def _make_file(make: Callable[[], bytes]) -> bytes:
    """Create the bytes of a file, at most two at a time: drawing a large picture takes half a gigabyte."""
    with _file_slots:
        return make()


def show_download_button(label: str, file: str, make: Callable[[], bytes], key: str) -> None:
    """Show a button for one file, which is created on request."""
    suffix = file[file.rindex(".") :]
    data = partial(_make_file, make)
    st.download_button(label, data=data, file_name=file, mime=MIME[suffix], key=key, on_click="ignore")
