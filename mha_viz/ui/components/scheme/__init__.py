"""Tells the server when the page turns dark or light while it is open, and the navigation which page that is."""

from __future__ import annotations

import streamlit as st

from mha_viz.ui.components import drawing

_mount = drawing("scheme")


def watch(page: int) -> None:
    """The script runs again when the page's colours are no longer those that it was run for. ``page``: the number of
    the open one in the navigation."""
    data = {"type": st.context.theme.type, "page": page}
    _mount(key="scheme", data=data, on_turned_change=lambda: None, width="content")
