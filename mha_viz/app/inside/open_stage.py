"""Functions shared by all stages: the open head and tokens, charts, shapes, and the note on omitted tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from mha_viz.app.widgets.classroom import draw_legible
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.parts import escape_markdown, show_remark
from mha_viz.attention import Head
from mha_viz.attention.outputs import HeadOutput
from mha_viz.attention.parts import ScoreParts
from mha_viz.attention.trace import Trace
from mha_viz.figures.charts.plotly_settings import CONFIG
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme

SDPA_LINK = "[Vaswani et al. 2017, section 3.2.1](https://arxiv.org/abs/1706.03762)"  # scaled dot-product attention
MHA_LINK = "[Vaswani et al. 2017, section 3.2.2](https://arxiv.org/abs/1706.03762)"  # multi-head attention


@dataclass(frozen=True)
class OpenStage:
    """The open stage, with the head and the tokens that it is shown for.

    Attributes:
        name: the name of the stage, a key of STAGES.
        trace: the intermediate results of the layer.
        head, query, key: the open head of the layer, and two tokens.
        tokens: the tokens that charts show.
        is_divided: False to omit the division by √d_k.
        theme: the colours.
        description: a sentence that describes what is open, for captions.
        code: the Python code that computes its numbers.
        score_parts: splits the scores of the query with the given keys into parts; None if that is impossible.
        output: what the head writes at the query, or the reason why its words cannot be named.
        charts: the charts that the stage has drawn so far.
    """

    name: str
    trace: Trace
    head: int
    query: int
    key: int
    tokens: Sequence[int]
    is_divided: bool
    theme: Theme
    description: str = ""
    code: str = ""
    score_parts: Callable[[tuple[int, ...]], tuple[ScoreParts, ...]] | None = None
    output: HeadOutput | str = ""
    charts: list[PageChart] = field(default_factory=list)

    def quote_token(self, token: int) -> str:
        """Return a token in quotation marks, escaped for Markdown."""
        return f"“{escape_markdown(self.trace.text.tokens[token].drawn[:30])}”"

    def make_chart(
        self, name: str, alt: str, draw: Callable[[Theme], Any], table: Callable[[], Table] | None = None
    ) -> PageChart:
        """Return a chart of this head and text, for the downloads."""
        file = f"{Head(self.trace.layer, self.head)}-{name}"
        return PageChart(alt, file, draw, self.description, table, self.code, self.trace.text.text)


def split_columns() -> tuple[Any, Any]:
    """Return the columns of a part of a stage: for its text, and for its charts."""
    left, right = st.columns([4, 7], gap="large")
    return left, right


def make_more_expander() -> Any:
    """Return a closed expander for the rest of a part's text, so that the picture is seen first."""
    return st.expander("More")


def draw_chart(
    container: Any,
    o: OpenStage,
    name: str,
    alt: str,
    draw: Callable[[Theme], Any],
    table: Callable[[], Table] | None = None,
) -> None:
    """Draw a chart and add it to the downloads. ``table`` returns its numbers if the chart does not draw them all."""
    figure = draw_legible(draw(o.theme))
    o.charts.append(o.make_chart(name, alt, draw, table))
    with container, st.container(key=f"wide_inside_{name}_of_{o.name}"):
        st.plotly_chart(
            figure,
            key=f"inside_{name}",
            theme=None,
            config={**CONFIG, "displayModeBar": False},
            width="content" if figure.layout.width else "stretch",
            alt=alt,
        )


def show_shapes(*shapes: str) -> None:
    """Show shapes of arrays in one line, with arrows between them."""
    st.html(f'<p class="inside-shapes">{" → ".join(f"<span>{shape}</span>" for shape in shapes)}</p>')


def report_omitted_tokens(o: OpenStage) -> None:
    """Say how many tokens are drawn, unless all of them are."""
    if len(o.tokens) < o.trace.n:
        show_remark(
            f"Only {len(o.tokens)} of {o.trace.n} tokens are drawn: the query, the key, and those to which the query "
            "gives most attention in this head."
        )
