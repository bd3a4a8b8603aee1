"""Which heads carry the difference of two texts: what comes back when one of them is taken from the other text, or when
it reaches only one side of a later head."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import SIDES, Numbers, Patched
from mha_viz.drawing.table import Table
from mha_viz.figures.caption import both
from mha_viz.figures.chart import Chart
from mha_viz.figures.effects import head_grid
from mha_viz.figures.recipe import START
from mha_viz.figures.theme import Theme
from mha_viz.model_names import cite_model
from mha_viz.models import catalog
from mha_viz.numerals import decimal, percent
from mha_viz.reader import verbs
from mha_viz.request import TEXT, Request
from mha_viz.ui import address, inference
from mha_viz.ui import head_grid as grid
from mha_viz.ui.asking import other_text
from mha_viz.ui.bound import UrlChanges, bound
from mha_viz.ui.caches import model_service
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.parts import complain, guarded, picked_head, remark, theme

NAMED = 3  # heads in the sentence
LEAST = 0.05  # the smallest share that is named
WAITING = "Every head is taken from the other text…"


def show_patched(first: Attention, second: Attention, held: Head) -> list[PageChart]:
    """Unfold to the share of the second text's answer that each head alone brings into the first, and that the paths to
    the ``held`` head bring. Returns the charts."""
    drawn: list[PageChart] = []
    with st.expander("Which heads carry the difference?", on_change="rerun", key="patched") as box:
        if not box.open:
            return drawn
        if first.text.pair:
            remark("Heads are taken from another single text: remove the second sentence first.")
            return drawn
        where = address.url().where
        name, text, source = catalog.resolve(first.model).name, first.text.text, second.text.text
        request = Request(name, text, method=TEXT, source=source, other=where.like.strip())
        with guarded(complain):
            patched = inference.wait(model_service().cached(verbs.patched, request), WAITING)
            drawn.append(_show(patched, held, where.like))
        bound(
            st.text_input, "Measure how alike both are to a third sentence", "like", where.like,
            change=_third, keeps=True, max_chars=2_000,
        )  # fmt: skip
        _say_unread(request.model, where.like)
        if not drawn or not held.layer or not _side(held, where.path):
            return drawn
        with guarded(complain):
            paths = model_service().cached(verbs.patched, request, str(held), where.path)
            drawn.append(_show_paths(inference.wait(paths, WAITING), where.like))
    return drawn


def _show(patched: Patched, held: Head, like: str) -> PageChart:
    words = f"{_named(patched)} of the other answer back" if _named(patched) else "none brings even 5% of it back"
    hold = "Click a head to hold it, again to let it go."
    st.markdown(f"Read the first text, but take one head from the second: {words}. {hold}")
    chart = _draw(patched, "patched_heads", held, like)
    agreeing = decimal(patched.correlation)
    remark(
        f"The answer is {patched.score}: {decimal(patched.before)} (0%) on the first text, "
        f"{decimal(patched.after)} (100%) on the second. Another head may carry the same. One backward pass estimates "
        f"this (correlation {agreeing})."
        f"{' The two answers hardly differ: shares of so little say little.' * patched.hardly_differs}"
    )
    return chart


def _third(typed: str) -> UrlChanges:
    """What a third sentence sets in the URL."""
    return other_text("like")(typed) if typed.strip() else {"like": None}


def _say_unread(model: str, third: str) -> None:
    """Say what of the third sentence the model does not read."""
    if third.strip() and (read := inference.read_by(Request(model, third))) is not None:
        inference.say_unknown_words(read)
        if read.keys.cut is not None:
            remark(f"Of the third sentence, the first {read.keys.cut.limit:,} pieces are read.")


def _side(held: Head, side: str) -> str:
    """The side of the held head at which paths end; a control, with none by default."""
    bound(
        st.segmented_control, f"Paths from earlier heads end at this side of {both(held)}", "path", side or None, SIDES,
        wrap=True,
    )  # fmt: skip
    return side


def _show_paths(paths: Patched, like: str) -> PageChart:
    """The shares of single paths. All other heads keep what they put out on the first text."""
    end = f"the {paths.side} of {both(paths.to or Head(0, 0))}"
    words = f"{_named(paths)} of the other answer back" if _named(paths) else "no path brings even 5% of it back"
    st.markdown(f"Let one earlier head from the second text reach only {end}: {words}.")
    return _draw(paths, "patched_paths", paths.to, like)


def _named(patched: Patched) -> str:
    """The heads with the largest shares; empty if all are small."""
    shares = patched.table()["share"].nlargest(NAMED)
    return ", ".join(
        f"**{both(Head.of(name))}** brings {percent(share, 0)}" for name, share in shares[shares >= LEAST].items()
    )


def _draw(patched: Patched, key: str, held: Head | None, like: str) -> PageChart:
    to = f" through the {patched.side} of {patched.to}" if patched.to else ""
    label = f"How much of the other text’s answer each head alone brings back{to}"
    draw = partial(_chart, patched.shares, held)
    grid.head_grid(draw(theme()), key, f"{label}.", partial(_on_square, key))
    named = cite_model(patched.model, patched.revision)
    about = f"“{patched.text}”, each head alone from “{patched.other}”{to}; {patched.score}; {named}."
    path = f", to={str(patched.to)!r}, side={patched.side!r}" if patched.to else ""
    options = f", similar_to={like.strip()!r}{path}" if like.strip() else path
    code = f"{START}\nmv.patch(mv.load({patched.model!r}), {patched.text!r}, {patched.other!r}{options}).table()\n"
    return PageChart(label, key, draw, about, lambda: _table(patched, about), code)


def _chart(shares: Numbers, held: Head | None, colours: Theme) -> Chart:
    return head_grid(shares, "", (), colours, written=_written, held=held, top=1.0)


def _written(share: float) -> str:
    return "" if np.isnan(share) else percent(share, 0)


def _table(patched: Patched, about: str) -> Table:
    """A row for each head."""
    table = patched.table().reset_index()
    return Table(tuple(table.columns), tuple(table.itertuples(index=False, name=None)), {"caption": about})


@guarded()
def _on_square(key: str) -> None:
    """For a click on a square: holds its head, in the panels too; on that of the held head: lets it go."""
    head = picked_head(st.session_state.get(key))
    if head is not None:
        address.go(head=None if head == address.url().where.head else str(head))
