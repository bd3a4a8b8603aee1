"""The style sheets of the app's pages, which lie beside those of the components in ``browser/pages/``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from mha_viz.browser import bundle


def apply(sheet: str, values: Mapping[str, str] = MappingProxyType({})) -> None:
    """Apply the sheet of this name to the page. ``values`` are what stands in place of names that only the page can
    fill in, such as the selector ``#pointed``."""
    rules = bundle.page_style(sheet)
    for name, value in values.items():
        rules = rules.replace(name, value)
    st.html(f"<style>\n{rules}</style>")
