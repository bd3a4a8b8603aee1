"""Reports to the server when the page turns dark or light while it is open and what a link in a table or map names, and
marks the open page in the navigation."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from mha_viz.ui.components import drawing

KEY = "scheme"
_mount = drawing("scheme")


def watch(page: int, on_linked: Callable[[], None]) -> None:
    """Run the script again when the page's colour scheme is no longer the one that it was run for. ``page``: the number
    of the open page in the navigation; ``on_linked``: called when the component has sent {"head": name} or {"kinds":
    names}."""
    data = {"type": st.context.theme.type, "page": page}
    _mount(key=KEY, data=data, on_turned_change=lambda: None, on_linked_change=on_linked, width="content")
