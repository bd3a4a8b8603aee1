"""Charts of a model's answers with heads off: its words, and how they change head by head."""

from __future__ import annotations

from html import escape

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.removal import Removal
from mha_viz.attention import Head
from mha_viz.attention.answers import Answer
from mha_viz.figures.caption import both
from mha_viz.figures.chart import Axis, Bars, Cells, Chart, Frame, Legend, Line, Margin, Plot, Points, Remark
from mha_viz.figures.effects import numbered_axis
from mha_viz.figures.theme import Theme
from mha_viz.numerals import decimal, percent

ROW = 30  # pixels per word
Numbers = npt.NDArray[np.float64]


def word_bars(answer: Answer, is_changed: bool, theme: Theme) -> Chart:
    """The probabilities of words before and, if heads are off, after; the first word at the top."""
    places = [f"{place} {word}" for place, word in enumerate(answer.words)]  # keeps equal words separate
    words = [escape(word) for word in answer.words]
    names = [_marked(word, word == answer.question.word) for word in answer.words]

    def bars(name: str, values: Numbers, colour: str) -> Bars:
        texts, hover = [percent(value) for value in values], f"%{{customdata}} {name}: %{{x:.4f}}"
        return Bars(places, values, colour, True, texts, theme.muted, name=name, labels=words, hover=hover)

    series = [bars("before", answer.before, theme.heads[0])]
    series += [bars("after", answer.after, theme.heads[1])] if is_changed else []
    top = max(np.max(one.lengths) for one in series)
    x = Axis(range=(0, 1.15 * float(top)), grid=False, has_labels=False)
    return Chart(
        theme,
        series,
        [Plot(x, Axis(at=places, names=names, is_reversed=True))],
        height=60 + (ROW if is_changed else 24) * len(places),
        margin=Margin(110, 20, 30, 10),
        legend=Legend() if is_changed else None,
        bar_gap=0.25,
    )


def _marked(word: str, is_followed: bool) -> str:
    text = escape(word if len(word) <= 14 else f"{word[:13]}…")
    return f"<b>{text}</b>" if is_followed else text


def removal_curve(removal: Removal, what: str, unit: str, theme: Theme) -> Chart:
    """The effect on ``what``, "sentence" or "answer", in thousandths, as ``unit`` says, while one more head is off at
    each step; the first step at which another word is the answer is marked."""
    values = 1000 * (removal.answer if what == "answer" else removal.sentence)
    names, first = ["no head", *(both(head) for head in removal.order)], removal.first_change
    hover = f"%{{x}} off, the last one %{{customdata}}: %{{y:,.1f}} {escape(unit)}"
    colour, frames, remarks = theme.heads[1], list[Frame](), list[Remark]()
    if first is not None:
        frames = [Frame((first, first), None, colour, 1.5, "dash")]
        text, is_early = f"another answer from {first} on", first < len(values) / 2
        remarks = [Remark(text, first, colour, "left" if is_early else "right", is_inside=True, letters=12)]
    x, y = Axis(title="heads that are off", grid=True, zero=""), Axis(title=unit, from_zero=True, grid=True, most=6)
    return Chart(
        theme,
        [Line(range(len(values)), values, theme.heads[0], point=5, labels=names, hover=hover)],
        [Plot(x, y)],
        height=280,
        margin=Margin(60, 15, 15, 45),
        letters=12,
        frames=frames,
        remarks=remarks,
    )


def looks_and_effects(looks: Numbers, effects: Numbers, title: str, unit: str, theme: Theme) -> Chart:
    """Every head as a point: how specialised its attention looks, ``looks`` [layer, head], against how much it matters,
    ``effects`` [layer, head], drawn in thousandths, as ``unit`` says. A point's label is the head's name."""
    hover = f"<b>%{{hovertext}}</b><br>%{{x:.2f}}; %{{y:,.2f}} {escape(unit)}"
    series = []
    for layer, (x, y) in enumerate(zip(looks, 1000 * effects, strict=True)):
        every, colour = [Head(layer, head) for head in range(len(y))], theme.heads[layer % len(theme.heads)]
        labels, hints, name = list(map(str, every)), list(map(both, every)), f"layer {layer}"
        series.append(Points(x, y, 10, colour, name=name, labels=labels, hints=hints, hover=hover))
    x_axis = Axis(title=title, grid=True, zero="", range=_padded(looks))
    y_axis = Axis(title=unit, grid=True, zero="", range=_padded(1000 * np.append(effects, 0)), most=6)
    plots, margin = [Plot(x_axis, y_axis)], Margin(60, 15, 10, 45)
    return Chart(theme, series, plots, height=380, margin=margin, letters=12, legend=Legend())


def _padded(values: Numbers) -> tuple[float, float]:
    """The range of an axis on which every point is whole."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * ((high - low) or 1)
    return low - room, high + room


def signed_grid(values: Numbers, unit: str, theme: Theme) -> Chart:
    """One signed number for each head, ``values`` [layer, head]; 0 has the colour of the paper."""
    layers, heads = values.shape
    limit = float(np.abs(values).max()) or 1.0
    names = [[both(Head(layer, head)) for head in range(heads)] for layer in range(layers)]
    texts = [[decimal(value) for value in row] for row in values]
    hover = f"<b>%{{customdata}}</b><br>%{{z:.4f}} {escape(unit)}"
    return Chart(
        theme,
        [Cells(values, -limit, limit, theme.signed, texts, gap=2, labels=names, hover=hover)],
        [Plot(numbered_axis("H", heads), numbered_axis("L", layers))],
        width=60 + 60 * heads,
        height=50 + 36 * layers,
        margin=Margin(45, 10, 35, 10),
        letters=12,
        label_letters=11,
        has_faint_labels=True,
    )
