"""The map of all heads of a reading, and the heads most and least similar to one head."""

from __future__ import annotations

from functools import partial

import streamlit as st

from mha_viz.analysis.distance import FloatMatrix, Map, farthest, nearest
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.caption import both, reading
from mha_viz.figures.head_map import CLICKED, CONFIG, matrix, scatter
from mha_viz.numerals import apart
from mha_viz.request import Request
from mha_viz.ui import address, comparison, navigation
from mha_viz.ui.caches import model_service
from mha_viz.ui.classroom import legible
from mha_viz.ui.comparison import Pin
from mha_viz.ui.components import apply_style
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.parts import complain_later, guarded, picked_head, remark, theme

LISTED = 6
FEWEST = 3
MAPS = ("map", "map_standing")  # a phone is in portrait format; both are drawn, and the browser shows one


def draw_head_map(attention: Attention, head: Head) -> list[PageChart]:
    """Show the map, its stress in words, the two lists, and the matrix that it is computed from. Returns the charts."""
    heads = [*attention.every_head()]
    if len(heads) < FEWEST:
        remark(f"A map needs at least {FEWEST} heads; this model has {len(heads)}.")
        return []
    index = heads.index(head)
    with st.spinner("Comparing every pair of heads…"):
        distances, drawn = model_service().distances(attention), model_service().plane(attention)
    colours = theme()
    st.markdown(
        f"Heads that are close attend alike on this text; click one. {_trust(drawn.stress)} (stress {drawn.stress:.2f})"
    )
    left, right = st.columns([3, 1], gap="large")
    listed = int(right.number_input("Heads listed", 1, len(heads) - 1, min(LISTED, len(heads) - 1), key="listed"))
    close = nearest(distances[index], index, listed)
    with left:
        apply_style("head_map")
        words = f"Map of {len(heads)} heads; the lists beside it name the heads nearest to {head} and farthest from it."
        for name in MAPS:
            with st.container(key=f"{name}_box"):
                st.plotly_chart(
                    legible(scatter(heads, drawn, index, close, colours, standing=name == "map_standing")),
                    key=name,
                    on_select=partial(_on_point, name),
                    selection_mode="points",
                    theme=None,
                    config=CLICKED,
                    alt=words,
                )
    with right:
        _list(f"Least different from {both(head)}", attention, heads, close, distances[index].tolist())
        _list("Most different", attention, heads, farthest(distances, index, listed), distances[index].tolist())
    with st.expander("Divergence of every pair of heads", on_change="rerun", key="matrix") as box:
        if box.open:
            _every_pair(heads, distances)
    return _charts(attention, heads, distances, drawn, index, close)


def _every_pair(heads: list[Head], distances: FloatMatrix) -> None:
    alt = f"Divergence of every pair of the {len(heads)} heads."
    st.plotly_chart(legible(matrix(heads, distances, theme())), key="pairs", theme=None, config=CONFIG, alt=alt)


def _charts(
    attention: Attention, heads: list[Head], distances: FloatMatrix, drawn: Map, index: int, close: list[int]
) -> list[PageChart]:
    """The downloadable charts."""
    about = f"Divergences (100% = ln 2) of the heads of {reading(attention)}; stress of the map {drawn.stress:.2f}."
    return [
        PageChart("Map of all heads", "head-map", lambda theme: scatter(heads, drawn, index, close, theme), about),
        PageChart(
            "Divergence of every pair of heads", "divergences", lambda theme: matrix(heads, distances, theme), about
        ),
    ]


def _trust(stress: float) -> str:
    if stress < 0.1:
        return "Distances on the map are accurate"
    return (
        "Distances on the map are approximate"
        if stress < 0.2
        else "Many distances do not fit onto a plane: rely on the lists"
    )


@guarded()
def _on_point(name: str) -> None:
    head = picked_head(st.session_state.get(name))
    if head is not None:
        address.go(head=str(head), on=None, pin=None)


def _list(title: str, attention: Attention, heads: list[Head], listed: list[int], nats: list[float]) -> None:
    st.markdown(f"**{title}**")
    for i in listed:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
            parameters = {**address.now(), "head": str(heads[i])}
            label = f"{both(heads[i])}  {apart(nats[i])}"
            st.page_link(navigation.page("explore"), label=label, query_params=parameters)
            st.button(
                "+",
                key=f"pin_{title[:1]}_{heads[i]}",
                help=f"Add {heads[i]} to the compared heads",
                on_click=_pin,
                args=(attention, heads[i]),
            )


@guarded()
def _pin(attention: Attention, head: Head) -> None:
    text, answered = attention.queries, attention.request
    pins, _ = comparison.read(address.now().get("tray"))
    if answered is None or not answered.part:
        answered = Request(attention.model, address.url().to_pin(text.text), text.pair)
    try:
        address.go(tray=comparison.write(comparison.add(pins, Pin(answered, head))))
    except MhaVizError as error:
        complain_later(error)
