"""Find the heads that carry the difference between two texts, by activation patching.

One head's output is taken from the other text, either for the whole model or for one side of a later head only.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.asking import make_text_change
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.head_grid import show_head_grid
from mha_viz.app.widgets.parts import get_theme, parse_picked_head, report_errors, show_error, show_remark
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import SIDES, Numbers, PatchResult
from mha_viz.figures.charts.chart import Chart
from mha_viz.figures.charts.effects import draw_head_grid
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.layout.figure_code import IMPORT_LINE
from mha_viz.model_names import cite_model
from mha_viz.models.getting import catalog
from mha_viz.numerals import decimal, percent
from mha_viz.request import TEXT, Request

MAX_NAMED = 3  # maximum number of heads named in a sentence
MIN_SHARE = 0.05  # heads with a smaller share are not named
WAIT_NOTE = "Patching heads from the other text…"


def show_patching(first: Attention, second: Attention, pinned_head: Head) -> list[PageChart]:
    """Show how much of the second text's answer each head restores when it alone is patched into the first text.

    Also show the paths from earlier heads to the head ``pinned_head``. Everything is in an expander. Return the charts.
    """
    charts: list[PageChart] = []
    with st.expander("Which heads carry the difference?", on_change="rerun", key="patched") as box:
        if not box.open:
            return charts
        if first.text.pair:
            show_remark("This works with single sentences: remove the second sentence first.")
            return charts
        location = address.get_url().location
        name, text, source = catalog.resolve(first.model).name, first.text.text, second.text.text
        request = Request(
            name, text, method=TEXT, source=source, other=location.third_text.strip(), prefix=location.request.prefix
        )
        with report_errors(show_error):
            patched = inference.wait_for_result(get_model_service().ask_cached(verbs.patch_outputs, request), WAIT_NOTE)
            charts.append(_show_head_shares(patched, pinned_head, location.third_text))
        bind_control(
            st.text_input, "Measure the similarity of both to a third sentence", "like", location.third_text,
            change=_set_third_sentence, keeps_text=True, max_chars=2_000,
        )  # fmt: skip
        _report_unread_text(request.model, location.third_text, request.prefix)
        if not charts or not pinned_head.layer or not _choose_side(pinned_head, location.path):
            return charts
        with report_errors(show_error):
            paths = get_model_service().ask_cached(verbs.patch_outputs, request, str(pinned_head), location.path)
            charts.append(_show_paths(inference.wait_for_result(paths, WAIT_NOTE), location.third_text))
    return charts


def _show_head_shares(patched: PatchResult, pinned_head: Head, reference: str) -> PageChart:
    note = f"{_name_largest(patched)} of the other answer" if _name_largest(patched) else "none restores even 5% of it"
    pin_hint = "Click a head to pin it; click again to unpin it."
    st.markdown(f"Run the first text with one head’s output taken from the second: {note}. {pin_hint}")
    chart = _draw(patched, "patched_heads", pinned_head, reference)
    correlation = decimal(patched.correlation)
    show_remark(
        f"The answer is {patched.score}: {decimal(patched.before)} (0%) on the first text, "
        f"{decimal(patched.after)} (100%) on the second. Another head may do the same. Backward-pass estimates "
        f"correlate at {correlation}."
        f"{' The two answers hardly differ, so these shares mean little.' * patched.hardly_differs}"
    )
    return chart


def _set_third_sentence(sentence: str) -> UrlChanges:
    """Return the URL parameter for a third sentence."""
    return make_text_change("like")(sentence) if sentence.strip() else {"like": None}


def _report_unread_text(model: str, sentence: str, prefix: str) -> None:
    """Report unknown words of the third sentence, and whether the model reads only its beginning."""
    if sentence.strip() and (attention := inference.try_read(Request(model, sentence, prefix=prefix))) is not None:
        inference.report_unknown_words(attention)
        if attention.keys.cut is not None:
            show_remark(f"Only the first {attention.keys.cut.limit:,} tokens of the third sentence are read.")


def _choose_side(pinned_head: Head, side: str) -> str:
    """Show the control for the side of the pinned head at which paths end, and return the side; none by default."""
    bind_control(
        st.segmented_control,
        f"Where paths from earlier heads enter {format_head(pinned_head)}",
        "path",
        side or None,
        SIDES,
        wrap=True,
    )
    return side


def _show_paths(paths: PatchResult, reference: str) -> PageChart:
    """Show the shares of single paths. All other heads keep their outputs on the first text."""
    end = f"the {paths.side} of {format_head(paths.to or Head(0, 0))}"
    note = f"{_name_largest(paths)} of the other answer" if _name_largest(paths) else "no path restores even 5% of it"
    st.markdown(f"Let the second text’s output of one earlier head reach only {end}: {note}.")
    return _draw(paths, "patched_paths", paths.to, reference)


def _name_largest(patched: PatchResult) -> str:
    """Name the heads with the largest shares; empty if all shares are small."""
    shares = patched.table()["share"].nlargest(MAX_NAMED)
    return ", ".join(
        f"**{format_head(Head.of(name))}** restores {percent(share, 0)}"
        for name, share in shares[shares >= MIN_SHARE].items()
    )


def _draw(patched: PatchResult, key: str, pinned_head: Head | None, reference: str) -> PageChart:
    path_words = f" through the {patched.side} of {patched.to}" if patched.to else ""
    label = f"How much of the other text’s answer each head alone restores{path_words}"
    draw = partial(_draw_chart, patched.shares, pinned_head)
    show_head_grid(draw(get_theme()), key, f"{label}.", partial(_on_square_click, key))
    prefix = address.get_url().location.request.prefix
    citation = cite_model(patched.model, patched.revision) + inference.describe_prefix(prefix)
    description = f"“{patched.text}”, each head alone from “{patched.other}”{path_words}; {patched.score}; {citation}."
    path = f", to={str(patched.to)!r}, side={patched.side!r}" if patched.to else ""
    options = f", similar_to={reference.strip()!r}{path}" if reference.strip() else path
    encoder = f"mv.load({patched.model!r})" + (f".prefixed({prefix!r})" if prefix else "")
    texts = f"{patched.text!r}, {patched.other!r}"
    code = f"{IMPORT_LINE}\nmv.activation_patching({encoder}, {texts}{options}).table()\n"
    return PageChart(label, key, draw, description, lambda: _make_table(patched, description), code, patched.text)


def _draw_chart(shares: Numbers, pinned_head: Head | None, colours: Theme) -> Chart:
    return draw_head_grid(shares, "", (), colours, format_value=_write_share, pinned=pinned_head, top=1.0)


def _write_share(share: float) -> str:
    return "" if np.isnan(share) else percent(share, 0)


def _make_table(patched: PatchResult, description: str) -> Table:
    """Return a table with a row for each head."""
    table = patched.table().reset_index()
    return Table(tuple(table.columns), tuple(table.itertuples(index=False, name=None)), {"caption": description})


@report_errors()
def _on_square_click(key: str) -> None:
    """Pin the clicked head, in the panels too; a click on the pinned head unpins it."""
    head = parse_picked_head(st.session_state.get(key))
    if head is not None:
        address.go(head=None if head == address.get_url().location.head else str(head))
