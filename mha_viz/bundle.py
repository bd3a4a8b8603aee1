"""The JavaScript and the style of a component as one text each: for the app's pages, and for files that stand alone.

The sources lie beside the Streamlit wrappers in ``ui/components``; they are read as files, for a page that stands
alone needs no Streamlit.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "ui" / "components"
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|let|function)", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


# The modules of each component, used before users; `dom` lies beside the folders.
_MODULES = {
    "explorer": (
        "../dom",
        "../post",
        "geometry",
        "ink",
        "grid",
        "links",
        "heatmap",
        "../controls",
        "page",
        "words",
        "roles",
        "explorer",
    ),
    "sentence": ("../dom", "../post", "sentence"),
    "block": ("../dom", "../post", "block"),
    "scheme": ("../explorer/ink", "scheme"),
    "compare": (
        "../dom",
        "../post",
        "../explorer/geometry",
        "../explorer/ink",
        "../explorer/heatmap",
        "../explorer/links",
        "../explorer/words",
        "../controls",
        "together",
        "parts",
        "compare",
    ),
}


@cache
def script(component: str) -> str:
    """The JavaScript modules of a component as one module.

    They import each other when tested under node; in the page they travel as one text, because inline
    component code cannot import. Comments on lines of their own and indentation stay at home.
    """
    source = "\n".join((_FOLDER / component / f"{name}.js").read_text("utf-8") for name in _MODULES[component])
    for pattern in (_IMPORT, _EXPORT, _COMMENT_LINE, _INDENT):
        source = pattern.sub("", source)
    return source


@cache
def style(component: str) -> str:
    """The style sheet of a component."""
    return (_FOLDER / component / f"{component}.css").read_text("utf-8")
