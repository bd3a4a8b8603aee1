"""The pages of the app, and how a callback switches to another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from mha_viz.files.assets import page_files, page_name

_LEAVING = "leaving"


def pages() -> list[st.Page]:
    """One page per file of ``pages/``, in the order of their numbers; the file's name is the URL path."""
    return [_page(file) for file in page_files()]


def page(name: str) -> st.Page:
    """The page called ``name``, as in its file's name."""
    return next(_page(file) for file in page_files() if page_name(file) == name.replace(" ", "_"))


def leave(name: str, parameters: Mapping[str, str]) -> None:
    """For callbacks, which cannot switch pages themselves: the next run goes to the page called ``name``."""
    st.session_state[_LEAVING] = (name, dict(parameters))


def depart() -> None:
    """Switch to the page that a callback asked for, if any, which ends the run."""
    way = st.session_state.pop(_LEAVING, None)
    if way is not None:
        name, parameters = way
        st.switch_page(page(name), query_params=parameters)


def _page(file: Path) -> st.Page:
    name = page_name(file)
    return st.Page(file, title=name.replace("_", " ").capitalize(), url_path=name, default=file == page_files()[0])
