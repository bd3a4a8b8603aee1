"""The JavaScript and the style of a component as one text: for the app's pages, and for files that stand alone.

The sources are read as files, for a page that stands alone needs no Streamlit. A server sends a component's
:func:`module` as the file :func:`served_file`.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path

SERVED = "mha_viz.files"  # known to Streamlit as a component where a server sends the modules as files
FOLDER = Path(__file__).resolve().parent
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|let|function)", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)


# The modules of each component, used before users; what components share lies beside their folders.
_MODULES = {
    "explorer": (
        "../dom",
        "../post",
        "../geometry",
        "../ink",
        "grid",
        "../links",
        "../heatmap",
        "../controls",
        "page",
        "../words",
        "roles",
        "explorer",
    ),
    "sentence": ("../dom", "../post", "sentence"),
    "block": ("../dom", "../post", "block"),
    "scheme": ("../ink", "scheme"),
    "compare": (
        "../dom",
        "../post",
        "../geometry",
        "../ink",
        "../heatmap",
        "../links",
        "../words",
        "../controls",
        "together",
        "parts",
        "compare",
    ),
}
COMPONENTS = tuple(_MODULES)

# A style sheet that came as a file of its own would arrive after the first measurement of the drawing.
_WITH_STYLE = """
const styleSheet = new CSSStyleSheet();
styleSheet.replaceSync({style});
export default (component) => {{
component.parentElement.adoptedStyleSheets = [styleSheet];
return mount(component);
}};
"""


@cache
def script(component: str) -> str:
    """The JavaScript modules of a component as one module.

    They import each other when tested under node; in the page they travel as one text, because inline
    component code cannot import. Comments on lines of their own and indentation stay at home.
    """
    source = "\n".join((FOLDER / component / f"{name}.js").read_text("utf-8") for name in _MODULES[component])
    for pattern in (_IMPORT, _EXPORT, _COMMENT_LINE, _INDENT):
        source = pattern.sub("", source)
    return source


@cache
def style(component: str) -> str:
    """The style sheet of a component; "" where it has none."""
    sheet = FOLDER / component / f"{component}.css"
    return sheet.read_text("utf-8") if sheet.exists() else ""


@cache
def module(component: str) -> str:
    """The component's script with its style, as one JavaScript module."""
    mount = script(component).replace("export default function", "const mount = function")
    return mount + _WITH_STYLE.format(style=json.dumps(style(component)))


@cache
def served_file(component: str) -> str:
    """The name of the file in which a server sends :func:`module`: another one whenever its text is another."""
    return f"{hashlib.sha256(module(component).encode()).hexdigest()[:24]}.js"
