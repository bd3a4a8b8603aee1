"""Reports to the server when the page turns dark or light while it is open, and marks the open page in the
navigation."""

from __future__ import annotations

import streamlit as st

from mha_viz.ui.components import drawing

_mount = drawing("scheme")


def watch(page: int) -> None:
    """Run the script again when the page's colour scheme is no longer the one that it was run for. ``page``: the number
    of the open page in the navigation."""
    data = {"type": st.context.theme.type, "page": page}
    _mount(key="scheme", data=data, on_turned_change=lambda: None, width="content")
