"""The pages of the app, and how a callback switches to another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from mha_viz.files.assets import page_files, page_name

LEAVING = "leaving"  # in the session, and the key of the link


def pages() -> list[st.Page]:
    """One page per file of ``pages/``, in the order of their numbers; the file's name is the URL path."""
    return [_page(file) for file in page_files()]


def page(name: str) -> st.Page:
    """The page called ``name``, as in its file's name."""
    return next(_page(file) for file in page_files() if page_name(file) == name.replace(" ", "_"))


def leave(name: str, parameters: Mapping[str, str]) -> None:
    """Go to the page called ``name``: the next run shows a link to it, which the browser follows at once. A switch of
    the page by the server would be two entries of the browser's history: the parameters, then the page."""
    st.session_state[LEAVING] = (name, dict(parameters))


def depart(here: st.Page) -> None:
    """The link to the page that was asked for, if any, until that is open: a run may end before it is sent. It is not
    seen."""
    name, parameters = st.session_state.get(LEAVING, ("", {}))
    if name and page(name).title == here.title:
        del st.session_state[LEAVING]
    elif name:
        with st.container(key=LEAVING):
            st.page_link(page(name), label=name, query_params=parameters)


def _page(file: Path) -> st.Page:
    name = page_name(file)
    return st.Page(file, title=name.replace("_", " ").capitalize(), url_path=name, default=file == page_files()[0])
