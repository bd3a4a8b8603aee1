"""The pages of the app, and how a callback switches to another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from mha_viz.files.assets import page_files

LEAVING = "leaving"  # in the session, and the key of the link


def pages() -> list[st.Page]:
    """One page per file of ``pages/``, in the order of their numbers; the file's name is the URL path."""
    first = next(iter(page_files()))
    return [_page(name, file, name == first) for name, file in page_files().items()]


def page(name: str) -> st.Page:
    """The page called ``name``, as in its file's name."""
    path = name.replace(" ", "_")
    return _page(path, page_files()[path], path == next(iter(page_files())))


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


def _page(name: str, file: Path, is_first: bool = False) -> st.Page:
    return st.Page(file, title=name.replace("_", " ").capitalize(), url_path=name, default=is_first)
