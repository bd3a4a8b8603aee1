"""Scores at a glance: what is scored in words, the head, and a bar with a tick for each baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

import streamlit as st

from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.numerals import percent
from mha_viz.ui import address

STYLE = """
<style>
.mha-rows { width: 100%; max-width: 980px; border-collapse: collapse; font-size: 0.94rem; }
.mha-rows caption { text-align: left; padding: 0 0 6px; font-size: 0.88rem; }
.mha-rows th { text-align: left; font-weight: 600; font-size: 0.88rem; padding: 4px 14px 4px 0; }
.mha-rows td { padding: 4px 14px 4px 0; border-top: 1px solid light-dark(#dedad2, #33383d); vertical-align: middle; }
.mha-rows td:nth-child(2) a { white-space: nowrap; }
.mha-rows td:last-child { width: 46%; padding-right: 0; }
.mha-rows a { display: inline-block; padding: 3px 0; color: light-dark(#0b5cad, #79c0f1); }
.mha-score { display: grid; grid-template-columns: 1fr 3.6em; align-items: center; gap: 12px; }
.mha-score b { text-align: right; font-variant-numeric: tabular-nums; }
.mha-bar, .mha-key { position: relative; height: 16px; }
.mha-bar { background: color-mix(in oklab, currentColor 10%, transparent); border-radius: 3px; }
.mha-bar i { position: absolute; inset: 4px auto 4px 0; background: light-dark(#0b5cad, #79c0f1); border-radius: 2px; }
.mha-bar s, .mha-key s { position: absolute; top: 0; bottom: 0; width: 0; margin-left: -1px; }
.mha-bar s, .mha-key s { border-left: 3px solid light-dark(#1c1b19, #ebe8e2); }
.mha-rows s.k2 { border-left-style: dashed; }
.mha-rows s.k3 { border-left-style: dotted; }
.mha-bar span { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.mha-key { display: inline-block; width: 6px; margin: 0 5px 0 14px; vertical-align: -3px; }
@media (forced-colors: active) {
  .mha-bar { outline: 1px solid; }
  .mha-bar i { forced-color-adjust: none; background: Highlight; }
  .mha-bar s, .mha-key s { forced-color-adjust: none; border-left-color: CanvasText; outline: 1px solid Canvas; }
}
@media (max-width: 640px) {
  .mha-rows td:last-child { width: 40%; }
  .mha-rows td, .mha-rows th { padding-right: 8px; }
}
</style>
"""


class ScoreRow(NamedTuple):
    """What is scored, in words; the head, or what else the second column holds; the score, NaN if it was not measured;
    and the score of each baseline, in the order of their names."""

    what: str
    head: Head | str
    score: float
    baselines: tuple[float, ...]


def draw(
    heading: str,
    baselines: Iterable[str],
    rows: Iterable[ScoreRow],
    second: str = "Best head",
    bar: str = "the best head",
) -> None:
    """Draw a table with one line per row; each head is a link to its card. ``second``: the heading of the second
    column; ``bar``: whose score the bars show."""
    names = tuple(baselines)
    here = {name: value for name, value in address.now().items() if name not in ("head", "on", "pin", "link")}
    key = "".join(
        f'<span class="mha-key"><s class="k{number}"></s></span>{escape(name)}'
        for number, name in enumerate(names, start=1)
    )
    body = "".join(_line(row, names, here) for row in rows)
    st.html(STYLE)
    st.html(
        f'<table class="mha-rows"><caption>Bar: {escape(bar)}. Ticks: {key}</caption>'
        f"<thead><tr><th>{escape(heading)}</th><th>{escape(second)}</th><th>Right</th></tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _line(row: ScoreRow, names: tuple[str, ...], here: Mapping[str, str]) -> str:
    scores = [
        (number, name, value)
        for number, (name, value) in enumerate(zip(names, row.baselines, strict=True), start=1)
        if not math.isnan(value)
    ]
    ticks = "".join(f'<s class="k{number}" style="left:{100 * value:.1f}%"></s>' for number, _, value in scores)
    score, written = (0.0, "–") if math.isnan(row.score) else (row.score, percent(row.score))
    words = ", ".join(f"{name} {percent(value)}" for _, name, value in scores)
    return (
        f"<tr><td>{escape(row.what)}</td><td>{_second(row.head, here)}</td>"
        f'<td><div class="mha-score"><div class="mha-bar" title="{escape(words)}">'
        f'<i style="width:{100 * score:.1f}%"></i>{ticks}<span>{escape(words)}</span></div>'
        f"<b>{written}</b></div></td></tr>"
    )


def _second(head: Head | str, here: Mapping[str, str]) -> str:
    if isinstance(head, str):
        return escape(head)
    link = escape(f"?{urlencode({**here, 'head': str(head)})}")
    return f'<a href="{link}" target="_self">{both(head)}</a>'
