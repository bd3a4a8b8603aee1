"""Which heads carry the difference of two texts: what comes back when one of them is taken from the other text."""

from __future__ import annotations

import streamlit as st

from mha_viz.attention import Attention, Head
from mha_viz.attention.patched import Patched
from mha_viz.figures.caption import both
from mha_viz.figures.effects import head_grid
from mha_viz.models import catalog
from mha_viz.numerals import decimal, percent
from mha_viz.reader import verbs
from mha_viz.ui import inference
from mha_viz.ui.classroom import legible
from mha_viz.ui.model_service import model_service
from mha_viz.ui.parts import complain, guarded, plain, remark, theme

NAMED = 3  # heads in the sentence
LEAST = 0.05  # the smallest share that is named


def show_patched(first: Attention, second: Attention) -> None:
    """Unfold to the share of the second text's answer that each head alone brings into the first."""
    with st.expander("Which heads carry the difference?", on_change="rerun", key="patched") as box:
        if not box.open:
            return
        with guarded(complain):
            model = catalog.resolve(first.model)
            future = model_service().cached(verbs.patched, model.name, first.text.text, second.text.text)
            _show(inference.wait(future, "Every head is taken from the other text…"))


def _show(patched: Patched) -> None:
    shares = patched.table()["share"].nlargest(NAMED)
    named = [f"**{both(Head.of(name))}** brings {percent(share, 0)}" for name, share in shares[shares >= LEAST].items()]
    words = f"{', '.join(named)} of the other answer back" if named else "none brings even 5% of the other answer back"
    st.markdown(f"Read the first text, but take one head from the second: {words}.")
    chart = head_grid(patched.shares, "", (), theme(), written=lambda share: percent(share, 0))
    alt = "How much of the other text’s answer each head alone brings back"
    st.plotly_chart(legible(chart), key="patched_heads", theme=None, config={"displayModeBar": False}, alt=alt)
    remark(
        f"The answer is {plain(patched.score)}: {decimal(patched.before)} (0%) on the first text, "
        f"{decimal(patched.after)} (100%) on the second. Another head may carry the same."
    )
