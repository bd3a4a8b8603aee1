"""The JavaScript and the style of a component as one text, for the app's pages and for standalone files.

The sources are read as files, because a standalone page needs no Streamlit. A server sends a component's :func:`module`
as the file :func:`served_file`. Whoever runs the app from a checkout has no Node, so that a bundler such as esbuild
would mean generated files in the repository; our modules import and export in two forms only, which are easily joined.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from mha_viz.view.settings import build_browser_settings

SERVED = "mha_viz.files"  # the component under which Streamlit knows modules that are sent as files
FOLDER = Path(__file__).resolve().parent
COMPONENTS = tuple(sorted(path.stem for path in FOLDER.glob("*/*.js") if path.stem == path.parent.name))

_IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_JSON_IMPORT = re.compile(r'^import (\w+) from "(\.[^"]+\.json)" with \{ type: "json" \};\n', re.MULTILINE)
_NAMED_IMPORT = re.compile(r'import (\{[^}]*\}) from "(\.[^"]+)";\n')
_STYLE_IMPORT = re.compile(r'^@import "(\.[^"]+\.css)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function\*?) (\w+))", re.MULTILINE)
_DEFAULT_EXPORT = re.compile(r"^export default function (?=\()", re.MULTILINE)
_OTHER_EXPORT = re.compile(r"^export\b.*", re.MULTILINE)
_COMMENT_BLOCK = re.compile(r"^\s*/\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
_COMMENT_LINE = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)

# A style sheet in a file of its own would arrive after the first measurement of the drawing.
_WITH_STYLE = """
const styleSheet = new CSSStyleSheet();
styleSheet.replaceSync({style});
export default (component) => {{
component.parentElement.adoptedStyleSheets = [styleSheet];
return {mount}(component);
}};
"""


@cache
def script(component: str) -> str:
    """Return the JavaScript modules of a component as one module, whose default export mounts it."""
    entry = _entry(component)
    return f"{joined(entry)}export default {constant(entry)}.default;\n"


@cache
def script_alone(component: str, opener: str) -> str:
    """Return the script of a page that stands alone: the component, opened by the function ``opener`` of
    ``alone.js``."""
    entry, alone = _entry(component), FOLDER / "alone.js"
    return f"{joined(entry, alone)}{constant(alone)}.{opener}({constant(entry)}.{component});\n"


def _entry(component: str) -> Path:
    return FOLDER / component / f"{component}.js"


def joined(*entries: Path) -> str:
    """Return ``entries`` and everything that they import as one text, each module once and after its imports.

    Under node, the modules import each other; a page gets them as one text, because inline component code cannot
    import. Each module is a function that runs at once and returns its exports, so that its other names are its own.
    Comments on separate lines and indentation are removed.

    Raises ValueError if modules import each other in a circle, if an import is not of the form ``import { a, b } from
    "./module.js";``, or if an export is not a constant, function or class where it is declared.
    """
    needed = [path for entry in entries for path in _in_order(entry.resolve(), ())]
    return "".join(_scoped(path) for path in dict.fromkeys(needed))


def constant(path: Path) -> str:
    """Return the name under which a joined text holds the exports of a module: ``$explorer_head`` of
    ``explorer/head.js``."""
    return "$" + re.sub(r"\W+", "_", os.path.relpath(path.resolve().with_suffix(""), FOLDER))


def _in_order(path: Path, importers: tuple[Path, ...]) -> Iterable[Path]:
    """Return the modules that ``path`` needs, itself last."""
    if path in importers:
        circle = " → ".join(module.name for module in (*importers[importers.index(path) :], path))
        raise ValueError(f"Modules that import each other in a circle cannot be one text: {circle}.")
    needed = (_in_order(other, (*importers, path)) for _, other in _imported(path))
    return dict.fromkeys([*(module for modules in needed for module in modules), path])


def _scoped(path: Path) -> str:
    """Return a module as a constant that holds its exports."""
    source = _source(path)
    exports = _EXPORT.findall(source) + ["default: $default"] * bool(_DEFAULT_EXPORT.search(source))
    for pattern, text in ((_IMPORT, ""), (_EXPORT, ""), (_DEFAULT_EXPORT, "function $default")):
        source = pattern.sub(text, source)
    if other := _OTHER_EXPORT.search(source):
        raise ValueError(f"{path.name}: “{other[0]}” is not an export where a constant, function or class is declared.")
    for pattern in (_COMMENT_BLOCK, _COMMENT_LINE, _INDENT):
        source = pattern.sub("", source)
    imports = "".join(f"const {names} = {constant(other)};\n" for names, other in _imported(path))
    return f"const {constant(path)} = (() => {{\n{imports}{source}return {{ {', '.join(exports)} }};\n}})();\n"


def _source(path: Path) -> str:
    """Return the text of a module, including what it imports from JSON files."""

    def json_constant(statement: re.Match[str]) -> str:
        file = (path.parent / statement[2]).resolve()
        content = build_browser_settings() if file.name == "view.json" else json.loads(file.read_text("utf-8"))
        return f"const {statement[1]} = {json.dumps(content, separators=(',', ':'))};\n"

    return _JSON_IMPORT.sub(json_constant, path.read_text("utf-8"))


def _imported(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names that a module imports, as a pattern that takes them from an object, and their file, in order."""
    for statement in _IMPORT.findall(_source(path)):
        named = _NAMED_IMPORT.fullmatch(statement)
        if not named:
            first = statement.strip().splitlines()[0]
            raise ValueError(f'{path.name}: “{first}” is not of the form import {{ a, b }} from "./module.js";')
        names = re.sub(r"\s+as\s+", ": ", " ".join(named[1].split()))
        yield names, (path.parent / named[2]).resolve()


@cache
def style(component: str) -> str:
    """Return the style sheet of a component including those that it imports; "" if it has none."""
    sheet = FOLDER / component / f"{component}.css"
    return joined_style(sheet) if sheet.exists() else ""


def joined_style(sheet: Path) -> str:
    """Return a style sheet with each ``@import "./sheet.css";`` replaced by the imported sheet, because a sheet inside
    a page can import nothing."""
    return _STYLE_IMPORT.sub(lambda match: joined_style(sheet.parent / match[1]), sheet.read_text("utf-8"))


@cache
def page_style(sheet: str) -> str:
    """Return a style sheet of the app's pages, without indentation, because every run of a page sends it."""
    return _INDENT.sub("", joined_style(FOLDER / "pages" / f"{sheet}.css"))


@cache
def module(component: str) -> str:
    """Return the component's script with its style, as one JavaScript module."""
    entry = _entry(component)
    style_text = json.dumps(style(component))
    return joined(entry) + _WITH_STYLE.format(style=style_text, mount=f"{constant(entry)}.default")


@cache
def served_file(component: str) -> str:
    """Return the name of the file in which a server sends :func:`module`; it changes whenever the text does."""
    return f"{hashlib.sha256(module(component).encode()).hexdigest()[:24]}.js"
