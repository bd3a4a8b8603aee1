"""Bundle the JavaScript and the style of a component into one text, for the app's pages and for standalone files.

The app must run from a checkout without Node, so a bundler such as esbuild would require generated files in the
repository. Our modules use only two forms of import and export, which are easy to join. The sources are read as files,
so that standalone pages do not need Streamlit. A server sends the text of :func:`build_module` as the file
:func:`name_served_file`.
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

SERVED = "mha_viz.files"  # name of the Streamlit component that serves modules as files
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
def build_script(component: str) -> str:
    """Return the JavaScript modules of a component as one module, whose default export mounts it."""
    entry = _get_entry(component)
    return f"{join_modules(entry)}export default {name_constant(entry)}.default;\n"


@cache
def build_standalone_script(component: str, opener: str) -> str:
    """Return the script of a standalone page: the component, opened by the function ``opener`` of ``alone.js``."""
    entry, alone = _get_entry(component), FOLDER / "alone.js"
    return f"{join_modules(entry, alone)}{name_constant(alone)}.{opener}({name_constant(entry)}.{component});\n"


def _get_entry(component: str) -> Path:
    return FOLDER / component / f"{component}.js"


def join_modules(*entries: Path) -> str:
    """Return ``entries`` and all modules that they import as one text, each module once and after its imports.

    Inline component code cannot import modules. Therefore each module becomes a function that is called at once and
    returns its exports, so that its other names stay private.
    Comments on separate lines and indentation are removed.

    Raises ValueError if modules import each other in a circle, if an import is not of the form ``import { a, b } from
    "./module.js";``, or if an export is not a constant, function or class where it is declared.
    """
    modules = [path for entry in entries for path in _sort_modules(entry.resolve(), ())]
    return "".join(_wrap_module(path) for path in dict.fromkeys(modules))


def name_constant(path: Path) -> str:
    """Return the name of the constant with the exports of a module: ``$explorer_head`` for ``explorer/head.js``."""
    return "$" + re.sub(r"\W+", "_", os.path.relpath(path.resolve().with_suffix(""), FOLDER))


def _sort_modules(path: Path, importers: tuple[Path, ...]) -> Iterable[Path]:
    """Return the modules that ``path`` needs, in the order of their imports, and ``path`` itself last."""
    if path in importers:
        circle = " → ".join(module.name for module in (*importers[importers.index(path) :], path))
        raise ValueError(f"Modules that import each other in a circle cannot be one text: {circle}.")
    imported = (_sort_modules(module, (*importers, path)) for _, module in _iter_imports(path))
    return dict.fromkeys([*(module for modules in imported for module in modules), path])


def _wrap_module(path: Path) -> str:
    """Return a module as the definition of a constant that holds its exports."""
    source = _load_source(path)
    exports = _EXPORT.findall(source) + ["default: $default"] * bool(_DEFAULT_EXPORT.search(source))
    for pattern, replacement in ((_IMPORT, ""), (_EXPORT, ""), (_DEFAULT_EXPORT, "function $default")):
        source = pattern.sub(replacement, source)
    if other := _OTHER_EXPORT.search(source):
        raise ValueError(f"{path.name}: “{other[0]}” is not an export where a constant, function or class is declared.")
    for pattern in (_COMMENT_BLOCK, _COMMENT_LINE, _INDENT):
        source = pattern.sub("", source)
    imports = "".join(f"const {names} = {name_constant(module)};\n" for names, module in _iter_imports(path))
    return f"const {name_constant(path)} = (() => {{\n{imports}{source}return {{ {', '.join(exports)} }};\n}})();\n"


def _load_source(path: Path) -> str:
    """Return the text of a module, with its imports of JSON files replaced by their content."""

    def write_constant(statement: re.Match[str]) -> str:
        file = (path.parent / statement[2]).resolve()
        content = build_browser_settings() if file.name == "view.json" else json.loads(file.read_text("utf-8"))
        return f"const {statement[1]} = {json.dumps(content, separators=(',', ':'))};\n"

    return _JSON_IMPORT.sub(write_constant, path.read_text("utf-8"))


def _iter_imports(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the imports of a module in order: the names, as a destructuring pattern, and the file."""
    for statement in _IMPORT.findall(_load_source(path)):
        named = _NAMED_IMPORT.fullmatch(statement)
        if not named:
            first = statement.strip().splitlines()[0]
            raise ValueError(f'{path.name}: “{first}” is not of the form import {{ a, b }} from "./module.js";')
        names = re.sub(r"\s+as\s+", ": ", " ".join(named[1].split()))
        yield names, (path.parent / named[2]).resolve()


@cache
def build_style(component: str) -> str:
    """Return the style sheet of a component including those that it imports; "" if it has none."""
    sheet = FOLDER / component / f"{component}.css"
    return join_styles(sheet) if sheet.exists() else ""


def join_styles(sheet: Path) -> str:
    """Return a style sheet with each ``@import "./sheet.css";`` replaced by the imported sheet.

    Style sheets inside a page cannot import others.
    """
    return _STYLE_IMPORT.sub(lambda match: join_styles(sheet.parent / match[1]), sheet.read_text("utf-8"))


@cache
def build_page_style(sheet: str) -> str:
    """Return a style sheet of the app's pages, without indentation, because every run of a page sends it."""
    return _INDENT.sub("", join_styles(FOLDER / "pages" / f"{sheet}.css"))


@cache
def build_module(component: str) -> str:
    """Return the component's script with its style, as one JavaScript module."""
    entry = _get_entry(component)
    style_text = json.dumps(build_style(component))
    return join_modules(entry) + _WITH_STYLE.format(style=style_text, mount=f"{name_constant(entry)}.default")


@cache
def name_served_file(component: str) -> str:
    """Return the name of the file with :func:`build_module`'s text; it changes whenever the text does."""
    return f"{hashlib.sha256(build_module(component).encode()).hexdigest()[:24]}.js"
