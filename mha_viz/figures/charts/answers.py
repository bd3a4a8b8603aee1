"""The chart of a model's predicted words, before and after heads are ablated."""

from __future__ import annotations

from html import escape

import numpy as np
import numpy.typing as npt

from mha_viz.attention.answers import Answer
from mha_viz.figures.charts.chart import Axis, Bars, Chart, Legend, Margin, Plot
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import percent

ROW = 30  # pixels per word
Numbers = npt.NDArray[np.float64]


def draw_word_bars(answer: Answer, is_changed: bool, theme: Theme) -> Chart:
    """Draw the probabilities of words before and, if heads are ablated, after; the first word is at the top."""
    categories = [f"{rank} {word}" for rank, word in enumerate(answer.words)]  # numbers keep equal words separate
    words = [escape(word) for word in answer.words]
    names = [_bold_name(word, word == answer.question.word) for word in answer.words]

    def make_bars(name: str, values: Numbers, colour: str) -> Bars:
        texts, hover = [percent(value) for value in values], f"%{{customdata}} {name}: %{{x:.4f}}"
        return Bars(categories, values, colour, True, texts, theme.muted, name=name, labels=words, hover=hover)

    series = [make_bars("before", answer.before, theme.heads[0])]
    series += [make_bars("after", answer.after, theme.heads[1])] if is_changed else []
    max_probability = max(np.max(b.lengths) for b in series)
    x = Axis(range=(0, 1.15 * float(max_probability)), grid=False, has_labels=False)
    return Chart(
        theme,
        series,
        [Plot(x, Axis(positions=categories, names=names, is_reversed=True))],
        height=60 + (ROW if is_changed else 24) * len(categories),
        margin=Margin(110, 20, 30, 10),
        legend=Legend() if is_changed else None,
        bar_gap=0.25,
    )


def _bold_name(word: str, is_asked: bool) -> str:
    text = escape(word if len(word) <= 14 else f"{word[:13]}…")
    return f"<b>{text}</b>" if is_asked else text
