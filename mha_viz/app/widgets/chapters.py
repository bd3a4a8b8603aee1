"""Show the documentation in the app. A chapter of ``docs/`` replaces the page that links to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from posixpath import dirname, normpath
from types import MappingProxyType

import streamlit as st

from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.parts import format_formulas, set_title
from mha_viz.app.widgets.url_controls import bind_control, read_option
from mha_viz.files.assets import app_root

_NEEDS_BUILD = re.compile(r"^::: |when the page was built", re.MULTILINE)  # occurs in chapters that need `make docs`
_BLOCK = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`[^`\n]+`)")
_LINK = re.compile(r"\[([^\]]*)\]\(([^):#]*)(#[\w-]+)?\)")  # to another file, or within the same file
_SUBSCRIPT = re.compile(r"([A-Za-z])<sub>(\w+)</sub>")
_HEADING = re.compile(r"^#(?=#)", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)\n")


@cache
def list_chapters() -> Mapping[str, Path]:
    """Return the chapters that can be read without the built site, by name.

    The name is the path in ``docs/`` without its suffix.
    """
    folder = app_root() / "docs"
    files = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.md")}
    readable_names = (name for name in files if not _NEEDS_BUILD.search(files[name].read_text("utf-8")))
    return MappingProxyType(
        {name: files[name] for name in sorted(readable_names, key=lambda name: ("/" in name, name))}
    )


def read_chapter_name() -> str:
    """Return the name of the chapter in the URL; empty if there is none. A remark reports an unknown name."""
    return read_option("chapter", list_chapters(), ".+")


def show_chapter(name: str) -> None:
    """Show the chapter, a link back, and a menu of all chapters.

    No HTML in the chapter is rendered. Links to other hosts stay plain links.
    """
    title, text = _read_chapter(name)
    apply_style("chapter")
    set_title(title, "About")
    with st.container(key="chapter_ways", horizontal=True, vertical_alignment="center"):
        st.markdown("[← What the pictures show](?chapter=)", width="content")
        bind_control(
            st.selectbox, "Chapter", "chapter", name, list(list_chapters()), required=True, width=320,
            label_visibility="collapsed", format_func=lambda chapter: _read_chapter(chapter)[0],
        )  # fmt: skip
    with st.container(key=f"chapter_{name.replace('/', '_')}"):
        st.header(title, anchor=False)
        st.markdown(text)


@cache
def _read_chapter(name: str) -> tuple[str, str]:
    """Return a chapter's title and its text in the Markdown that pages render."""
    text = list_chapters()[name].read_text("utf-8")
    parts = _BLOCK.split(_TITLE.sub("", text, count=1))
    parts[::2] = [_render_prose(part, dirname(name)) for part in parts[::2]]  # the others are code
    title = _TITLE.match(text)
    return title[1] if title else name, "".join(parts)


def _render_prose(markdown: str, folder: str) -> str:
    """Adapt prose to the app.

    Headings move one level down, subscripts are written without HTML, and links to chapters become links of the app. A
    link to any other file is replaced by its label.
    """

    def replace_link(link: re.Match[str]) -> str:
        label, file, anchor = link[1], link[2], link[3] or ""
        if not file:
            return link[0]
        name = normpath(f"{folder}/{file}".lstrip("/")).removesuffix(".md")
        return f"[{label}](?chapter={name}{anchor})" if name in list_chapters() else label

    parts = _CODE.split(_LINK.sub(replace_link, _HEADING.sub("##", markdown)))
    parts[::2] = [format_formulas(_SUBSCRIPT.sub(r"\1_\2", part)) for part in parts[::2]]
    return "".join(parts)
