"""Downloading a figure: the picture on screen as a file, its numbers, its caption, and the code that makes it again."""

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
from mha_viz.app.widgets.parts import complain, remark
from mha_viz.attention import Attention, Head
from mha_viz.errors import ExportError, MhaVizError
from mha_viz.figures import Figure
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.file_names import file_name, of_all, of_heads
from mha_viz.figures.layout import COLUMN_MM, LOOKS, NARROW_MM, PAGE_MM, TWO_COLUMNS_MM, Size, recipe
from mha_viz.figures.layout.compare import As
from mha_viz.figures.layout.panels import Panel, mismatch, pin_for
from mha_viz.figures.layout.view import View, focus, units
from mha_viz.view.settings import LONG_DEFAULTS, LONG_TOKENS, OPTIONS, keep_taken

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
    "As fits": None,
    "1 column, 77 mm": NARROW_MM,
    "1 column, 85 mm": COLUMN_MM,
    "2 columns, 178 mm": TWO_COLUMNS_MM,
    "Other": 0.0,
}
MOST_WRITTEN = 2_000_000  # weights in a text file: 60 MB, and seconds in which everybody else waits
_file_slots = threading.BoundedSemaphore(2)  # files that are made at a time, for all visitors together
AS_FIT = "as fit"
DPI = {"150 dpi": 150, "300 dpi": 300, "600 dpi": 600}


@dataclass(frozen=True)
class Offer:
    """One downloadable figure: its label in the menu, the name of its files, the most weights they can contain, and the
    function that makes it."""

    label: str
    file: str
    weights: int
    make: Callable[..., Figure]  # takes a Size; for panels in rows also ``columns``
    code: Callable[..., str] | None  # takes a Size, a file name and, for rows, ``columns``; None if no code makes it
    panels: int = 0


@dataclass(frozen=True)
class PageChart:
    """One chart of a page: what it shows, the name of its files, how it is drawn in the colours of a theme, and the
    sentence that says what it was measured on. ``table`` holds its numbers if they differ from those that it draws;
    ``code`` the lines of Python that compute them, if there are any; ``text`` is that which it is about, if it is about
    one."""

    label: str
    file: str
    draw: Callable[[Theme], Any]
    about: str
    table: Callable[[], Table] | None = None
    code: str = ""
    text: str = ""

    def offer(self) -> Offer:
        """Return the chart as a downloadable figure."""
        return Offer(self.label, self._name, 0, self._figure, (lambda *_, **__: self.code) if self.code else None)

    def _figure(self, size: Size) -> Figure:
        return figure_api.chart(self.draw, self.label, self.about, self.table, self._name, **_settings(size))

    @property
    def _name(self) -> str:
        return file_name([self.file], self.text)


def of_charts(charts: Sequence[PageChart], before: Sequence[Offer] = ()) -> None:
    """Show the downloads of a page with charts: the figures ``before`` its charts, then the charts."""
    if charts or before:
        _expander(lambda: [*before, *(chart.offer() for chart in charts)])


def of_reading(
    attention: Attention, heads: Sequence[Head], view: Callable[[], View], charts: Sequence[PageChart] = ()
) -> None:
    """Show the downloads of the Explore page: the open heads as heatmap and links, the grid, and the charts that are
    shown."""
    _expander(lambda: [*_of_heads(attention, heads, view()), *(chart.offer() for chart in charts)])


def _of_heads(attention: Attention, heads: Sequence[Head], view: View) -> list[Offer]:
    first = heads[0]
    view = _holding(attention, view)
    settings = {kind: keep_taken(kind, _settings(view)) for kind in ("heatmap", "links", "grid")}
    one = _weights(attention)
    return [
        Offer(
            f"Heatmap of {first}",
            of_heads([(attention, first)]),
            one,
            lambda size: figure_api.heatmap(attention, heads=[first], **settings["heatmap"], **_settings(size)),
            lambda size, file: recipe.of_head(attention, "heatmap", [first], view, size, file),
        ),
        Offer(
            f"Links of {', '.join(map(str, heads))}",
            of_heads([(attention, head) for head in heads], "links"),
            one * len(heads),
            lambda size: figure_api.links(attention, heads=heads, **settings["links"], **_settings(size)),
            lambda size, file: recipe.of_head(attention, "links", heads, view, size, file),
        ),
        Offer(
            "Grid of all heads",
            of_all(attention, attention.every_head()),
            one * attention.layers * attention.heads,
            lambda size: figure_api.grid(attention, **settings["grid"], **_settings(size)),
            lambda size, file: recipe.of_head(attention, "grid", [], view, size, file),
        ),
    ]


class SideBySide(NamedTuple):
    """Panels as a page shows them: the ``pair`` whose difference is open, if one is, and their view, whose pin counts
    tokens of panel ``pin_of``."""

    panels: Sequence[Panel]
    view: View
    pin_of: int = 0
    pair: tuple[int, int] | None = None
    kind: As = "heatmap"


def of_panels(shown: SideBySide, is_compared: bool, charts: Sequence[PageChart] = ()) -> None:
    """Show the downloads of the Compare page: the comparison, the open difference, the page’s charts, and, if the
    panels are the compared heads, all of them in one file."""
    panels, view, pin_of, pair, kind = shown
    view = _holding(panels[pin_of].attention, view)
    given: dict[str, Any] = ({} if kind == "heatmap" else {"kind": kind}) | _pinned(pin_of)
    beside = given | ({"diff": pair} if pair else {})
    together = keep_taken("compare", _settings(view))
    name = of_heads([(panel.attention, panel.head) for panel in panels], *(["links"] * (kind == "links")))
    offers = [
        Offer(
            "The comparison",
            name,
            sum(_weights(panel.attention) for panel in panels),
            lambda size, **rows: figure_api.compare(panels, **beside, **rows, **together, **_settings(size)),
            lambda size, file, **rows: recipe.of_panels(panels, view, size, beside | rows, "compare", file),
            len(panels),
        )
    ]
    if pair is not None:
        offers.append(_difference(panels, view, pair, pin_of))
    offers += [chart.offer() for chart in charts]

    def everything(size: Size, dpi: int, **rows: Any) -> bytes:
        diff = pair
        if diff and mismatch(panels[diff[0]].attention, panels[diff[1]].attention, view):
            diff = None  # the page says why these two cannot be subtracted
        return figure_api.archive(panels, dpi, diff=diff, **given, **rows, **together, **_settings(size))

    _expander(lambda: offers, everything if is_compared else None, f"{name}.zip")


def _difference(panels: Sequence[Panel], view: View, pair: tuple[int, int], pin_of: int) -> Offer:
    first, second = (panels[i] for i in pair)
    at, pin = pin_for(panels, pair, pin_of, view)
    pinned_view = replace(view, pin=pin)
    settings = keep_taken("difference", _settings(pinned_view))
    return Offer(
        f"The difference of panels {pair[0] + 1} and {pair[1] + 1}",
        of_heads([(panel.attention, panel.head) for panel in (second, first)], between="minus"),
        _weights(first.attention),
        lambda size: figure_api.difference(first, second, pin_of=at, **settings, **_settings(size)),
        lambda size, file: recipe.of_panels([first, second], pinned_view, size, _pinned(at), "difference", file),
    )


def _weights(attention: Attention) -> int:
    """Return the number of weights of one head."""
    return len(attention.queries) * len(attention.keys)


def _holding(attention: Attention, view: View) -> View:
    """Return the view as on screen: without a pin that holds no token, and without a side where there is no pair."""
    if not attention.queries.pair:
        view = replace(view, side=OPTIONS["side"].default)
    return view if focus(units(attention, view), view) else replace(view, pin="")


def _pinned(pin_of: int) -> dict[str, Any]:
    return {"pin_of": pin_of} if pin_of else {}


def view_of(parameters: Mapping[str, str], pin: str | None = None, tokens: int = 0) -> View:
    """Return the view that the URL describes for a text of ``tokens`` tokens; invalid values are replaced by their
    defaults."""
    good = dict(LONG_DEFAULTS if tokens > LONG_TOKENS else {}) | {
        name: parameters[name]
        for name, setting in OPTIONS.items()
        if name in parameters and setting.takes(parameters[name])
    }
    if pin is not None and "pin" not in good:
        good["pin"] = pin
    return View(**good)


def _settings(of: View | Size) -> dict[str, Any]:
    """Return the options of a figure; with the usual theme, its interactive page follows the reader's colours."""
    options = {name: getattr(of, name) for name in of.__dataclass_fields__}
    return {name: value for name, value in options.items() if (name, value) != ("look", LOOKS[0])}


def _expander(
    make_offers: Callable[[], Sequence[Offer]], everything: Callable[..., bytes] | None = None, archive: str = ""
) -> None:
    """Show the panel, closed at first: what it offers is made when it is opened. ``archive``: the name of the file
    with ``everything``."""
    if address.in_class():
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
            size = _size()
            rows = _rows(offer.panels)
            dpi = DPI[st.selectbox("PNG resolution", list(DPI), index=1, key="take_dpi", width=160)]
        try:
            _inside(offer, size, rows, dpi, left, right)
        except MhaVizError as error:
            complain(error)
        if everything is not None:
            make = partial(everything, size, dpi, **rows)
            download("All of My heads in one zip file", archive, make, "take_zip")


def _rows(panels: int) -> dict[str, int]:
    """Return the setting for the number of panels in a row; empty if each row has as many as fit."""
    if panels < 2:
        return {}
    given = st.selectbox("Panels in a row", [AS_FIT, *range(1, panels + 1)], key="take_columns", width=160)
    return {"columns": given} if isinstance(given, int) else {}


def _inside(offer: Offer, size: Size, rows: Mapping[str, int], dpi: int, left: Any, right: Any) -> None:
    figure = offer.make(size, **rows)
    with right:
        st.html(image(figure, "Preview of the figure"))
    with left:
        _downloads(figure, offer, dpi)
    for line in (*figure.warnings, *figure.missing_glyphs):
        remark(line)
    st.caption("Caption")
    st.code(figure.caption, language=None, wrap_lines=True)
    if offer.code is None:
        return
    st.caption("Reproduce in Python")
    st.code(offer.code(size, f"{offer.file}.svg", **rows), language="python", wrap_lines=True)


def _size() -> Size:
    columns = st.columns([4, 3, 3, 2])
    width = WIDTHS[columns[0].selectbox("Width", list(WIDTHS), key="take_width")]
    if width == 0:
        unit = columns[0].radio(
            "Unit", ["mm", "inches"], key="take_unit", horizontal=True, label_visibility="collapsed"
        )
        limits = (20.0, 500.0, 120.0, 1.0) if unit == "mm" else (0.8, 20.0, 4.5, 0.1)
        given = columns[0].number_input(f"Width ({unit})", *limits, key=f"take_{unit}")
        width = given if unit == "mm" else 25.4 * given
    font = columns[1].number_input("Label size (pt)", 4.0, 20.0, 8.0, 0.5, "%g", key="take_font")
    high = columns[2].number_input("Maximum height (mm)", 20.0, 10_000.0, PAGE_MM, 10.0, "%g", key="take_height")
    look = columns[3].selectbox("Theme", LOOKS, key="take_look")
    clear = st.checkbox("Transparent background", key="take_clear")
    return Size(width, font, look, clear, high)


def image(figure: Figure, alt: str) -> str:
    """Return the figure as an SVG image, in which no script can run; it contains its letters, so that it does not
    depend on installed fonts."""
    from mha_viz.figures.files.preview import preview  # imports fontTools, only when this is opened

    svg = base64.b64encode(preview(figure.drawing)).decode()
    return f'<img class="mha-figure" alt="{escape(alt)}" src="data:image/svg+xml;base64,{svg}">'


def _downloads(figure: Figure, offer: Offer, dpi: int) -> None:
    pictures = {".svg": "SVG", ".pdf": "PDF", ".png": "PNG", ".html": "Interactive HTML"}
    numbers = {".csv": "CSV", ".npz": "NPZ", ".safetensors": "safetensors", ".json": "JSON"}
    pictures, numbers = (
        {suffix: label for suffix, label in some.items() if suffix in figure.suffixes} for some in (pictures, numbers)
    )
    refused = _too_large(figure, dpi)
    if refused is not None:
        del pictures[".png"]
    _row("Figure", pictures, figure, offer, dpi)
    if refused is not None:
        remark(f"No PNG: {refused}")
    if offer.weights > MOST_WRITTEN:
        numbers = {suffix: label for suffix, label in numbers.items() if suffix not in (".csv", ".json")}
        remark(f"No CSV or JSON: {offer.weights:,} weights are too many for a text file. Use NPZ or safetensors.")
    _row("Numbers", numbers, figure, offer, dpi)


def _too_large(figure: Figure, dpi: int) -> ExportError | None:
    """Return why a PNG cannot be made, if so. Checked beforehand, because an error while the file is made cannot be
    shown."""
    from mha_viz.figures.files.png import pixels  # imports resvg, only when this is opened

    try:
        pixels(figure.drawing, dpi)
    except ExportError as error:
        return error
    return None


def _row(title: str, formats: Mapping[str, str], figure: Figure, offer: Offer, dpi: int) -> None:
    st.caption(title)
    with st.container(horizontal=True, gap="small"):
        for suffix, label in formats.items():
            download(label, f"{offer.file}{suffix}", partial(figure.make_file, suffix, dpi), f"take{suffix}")


def _make_file(make: Callable[[], bytes]) -> bytes:
    """Return the bytes of a file, made when it is its turn: drawing a large picture takes half a gigabyte."""
    with _file_slots:
        return make()


def download(label: str, file: str, make: Callable[[], bytes], key: str) -> None:
    """Show a button for one file, which is made on request."""
    suffix = file[file.rindex(".") :]
    data = partial(_make_file, make)
    st.download_button(label, data=data, file_name=file, mime=MIME[suffix], key=key, on_click="ignore")
