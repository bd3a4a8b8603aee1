"""Taking a figure away: the picture on screen as a file, its numbers, its caption, and the lines that make it again."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from mha_viz import fonts, notebook
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures import recipe
from mha_viz.figures.compare import Panel
from mha_viz.figures.layout import ONE_COLUMN_MM, TWO_COLUMN_MM, Size
from mha_viz.figures.view import SETTINGS, View
from mha_viz.notebook import Figure
from mha_viz.ui.parts import complain, remark

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
WIDTHS = {"One column, 85 mm": ONE_COLUMN_MM, "Two columns, 178 mm": TWO_COLUMN_MM, "Other": 0.0}
DPI = {"150 dpi": 150, "300 dpi": 300, "600 dpi": 600}


@dataclass(frozen=True)
class Offer:
    """One figure that can be taken away: its name in the menu, the name of its files, and how it is made."""

    label: str
    file: str
    make: Callable[[Size], Figure]
    code: Callable[[Size, str], str]


def of_reading(attention: Attention, heads: Sequence[Head], view: View) -> None:
    """What the Explore page can give: the open heads as heatmap and links, and the grid."""
    first, named = heads[0], "-".join(map(str, heads))
    settings = _settings(view)
    offers = [
        Offer(
            f"Heatmap of {first}",
            f"heatmap-{first}",
            lambda size: notebook.heatmap(attention, heads=[first], **settings, **_settings(size)),
            lambda size, file: recipe.of_head(attention, "heatmap", [first], view, size, file),
        ),
        Offer(
            f"Links of {', '.join(map(str, heads))}",
            f"links-{named}",
            lambda size: notebook.links(attention, heads=heads, **settings, **_settings(size)),
            lambda size, file: recipe.of_head(attention, "links", heads, view, size, file),
        ),
        Offer(
            "Grid of all heads",
            "grid",
            lambda size: notebook.grid(attention, **settings, **_settings(size)),
            lambda size, file: recipe.of_head(attention, "grid", [], view, size, file),
        ),
    ]
    _expander(offers)


def of_panels(panels: Sequence[Panel], view: View, kind: Any, pair: tuple[int, int] | None, is_tray: bool) -> None:
    """What the Compare page can give: the comparison, the open difference, and the whole tray in one file."""
    settings = _settings(view)
    offers = [
        Offer(
            "The comparison",
            "comparison",
            lambda size: notebook.compare(panels, kind=kind, **settings, **_settings(size)),
            lambda size, file: recipe.of_panels(panels, view, size, _kind(kind), "compare", file),
        )
    ]
    if pair is not None:
        two = [panels[i] for i in pair]
        offers.append(
            Offer(
                f"The difference of {pair[0] + 1} and {pair[1] + 1}",
                f"difference-{two[0].head}-{two[1].head}",
                lambda size: notebook.difference(two[0], two[1], **settings, **_settings(size)),
                lambda size, file: recipe.of_panels(two, view, size, {}, "difference", file),
            )
        )
    _expander(offers, (panels, view) if is_tray else None)


def _kind(kind: str) -> dict[str, str]:
    return {} if kind == "heatmap" else {"kind": kind}


def view_of(parameters: Mapping[str, str], pin: str | None = None) -> View:
    """The view that the URL describes; values that it cannot have are left at their defaults."""
    good = {
        name: parameters[name]
        for name, pattern in SETTINGS.items()
        if name in parameters and re.fullmatch(pattern, parameters[name], flags=re.ASCII)
    }
    if pin is not None and "pin" not in good:
        good["pin"] = pin
    return View(**good)


def _settings(of: View | Size) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__dataclass_fields__}


def _expander(offers: Sequence[Offer], tray: tuple[Sequence[Panel], View] | None = None) -> None:
    with st.expander("Take this figure away", on_change="rerun", key="takeaway", icon=":material/download:") as box:
        if not box.open:
            return
        try:
            _inside(offers)
            if tray is not None:
                _zip(*tray)
        except MhaVizError as error:
            complain(error)


def _inside(offers: Sequence[Offer]) -> None:
    left, right = st.columns([2, 3], gap="large")
    with left:
        labels = [offer.label for offer in offers]
        label = st.radio("Figure", labels, key="take_figure", horizontal=True)
        offer = offers[labels.index(label)] if label in labels else offers[0]
        size = _size()
        dpi = DPI[st.selectbox("Sharpness of PNG", list(DPI), index=1, key="take_dpi", width=160)]
    figure = offer.make(size)
    with right:
        _preview(figure)
    with left:
        _downloads(figure, offer, dpi)
    for line in fonts.missing(figure.drawing.texts()):
        remark(line)
    st.caption("Caption")
    st.code(figure.caption, language=None, wrap_lines=True)
    st.caption("Reproduce in Python")
    st.code(offer.code(size, f"{offer.file}.svg"), language="python", wrap_lines=True)


def _size() -> Size:
    columns = st.columns([3, 2, 2])
    width = WIDTHS[columns[0].selectbox("Width", list(WIDTHS), index=1, key="take_width")]
    if not width:
        unit = columns[0].radio(
            "Unit", ["mm", "inches"], key="take_unit", horizontal=True, label_visibility="collapsed"
        )
        limits = (20.0, 500.0, 120.0, 1.0) if unit == "mm" else (0.8, 20.0, 4.5, 0.1)
        given = columns[0].number_input(f"Width in {unit}", *limits, key=f"take_{unit}")
        width = given if unit == "mm" else 25.4 * given
    font = columns[1].number_input("Labels, pt", 4.0, 20.0, 8.0, 0.5, key="take_font")
    look = columns[2].selectbox("Look", ["light", "dark"], key="take_look")
    clear = st.checkbox("Transparent background", key="take_clear")
    return Size(width, font, "dark" if look == "dark" else "light", clear)


def _preview(figure: Figure) -> None:
    """The figure as an image, in which nothing can run; its letters are the file's own, whatever fonts are here."""
    from mha_viz.exports.preview import preview  # fontTools, for those who open this

    svg = base64.b64encode(preview(figure.drawing)).decode()
    wide = round(figure.drawing.width * 96 / 72)
    st.html(
        f'<img alt="Preview of the figure" src="data:image/svg+xml;base64,{svg}" width="{wide}" '
        f'style="max-width:100%;max-height:640px;object-fit:contain;object-position:left top;'
        f'border:1px solid rgba(127,127,127,0.3);box-sizing:border-box">'
    )


def _downloads(figure: Figure, offer: Offer, dpi: int) -> None:
    pictures = {".svg": "SVG", ".pdf": "PDF", ".png": "PNG", ".html": "HTML, interactive"}
    numbers = {".csv": "CSV", ".npz": "NPZ", ".safetensors": "safetensors", ".json": "JSON"}
    _row("The picture", pictures, figure, offer, dpi)
    if figure.numbers is not None:
        _row("Its numbers", numbers, figure, offer, dpi)


def _row(title: str, formats: Mapping[str, str], figure: Figure, offer: Offer, dpi: int) -> None:
    st.caption(title)
    with st.container(horizontal=True, gap="small"):
        for suffix, label in formats.items():
            st.download_button(
                label,
                data=partial(figure.to_bytes, suffix, dpi),
                file_name=f"{offer.file}{suffix}",
                mime=MIME[suffix],
                key=f"take{suffix}",
                on_click="ignore",
            )


def _zip(panels: Sequence[Panel], view: View) -> None:
    st.download_button(
        "Everything in the tray, one zip file",
        data=partial(notebook.archive, panels, **_settings(view)),
        file_name="mha_viz-tray.zip",
        mime=MIME[".zip"],
        key="take_zip",
        on_click="ignore",
    )
