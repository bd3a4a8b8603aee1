"""Tells the server when the page turns dark or light while it is open."""

from __future__ import annotations

import streamlit as st

from mha_viz.ui.components import drawing

_mount = drawing("scheme")


def watch() -> None:
    """The script runs again when the page's colours are no longer those that it was run for."""
    _mount(key="scheme", data={"type": st.context.theme.type}, on_turned_change=lambda: None, width="content")
