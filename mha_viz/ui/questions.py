"""The questions behind the product: each with its answer, the experiment that shows it, and the source."""

from __future__ import annotations

import json

import streamlit as st

from mha_viz.assets import asset
from mha_viz.ui import frame


def show() -> None:
    """All questions, one below the other."""
    st.markdown("### Why do attention heads differ?")
    for entry in json.loads(asset("questions.json").read_text("utf-8")):
        with st.container(border=True):
            st.markdown(f"#### {entry['question']}")
            st.markdown(entry["answer"])
            with st.container(horizontal=True, vertical_alignment="center"):
                st.page_link(frame.page(entry["page"]), label=entry["see"], query_params=entry["parameters"])
                st.caption(f"Source: {entry['source']}")
