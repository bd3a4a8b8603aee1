"""The JavaScript and the style of a component as one text, for the app's pages and for standalone files.

The sources are read as files, because a standalone page needs no Streamlit. A server sends a component's :func:`module`
as the file :func:`served_file`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

SERVED = "mha_viz.files"  # the component under which Streamlit knows modules that are sent as files
FOLDER = Path(__file__).resolve().parent
COMPONENTS = tuple(sorted(path.stem for path in FOLDER.glob("*/*.js") if path.stem == path.parent.name))

_IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_JSON_IMPORT = re.compile(r'^import (\w+) from "(\.[^"]+\.json)" with \{ type: "json" \};\n', re.MULTILINE)
_NAMED_IMPORT = re.compile(r'import \{[^}]*\} from "(\.[^"]+)";\n')
_STYLE_IMPORT = re.compile(r'^@import "(\.[^"]+\.css)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|let|class|async|function)", re.MULTILINE)
_DECLARED = re.compile(r"^(?:export )?(?:const|let|class|(?:async )?function\*?) (\w+|[{[][^=]*)", re.MULTILINE)
_COMMENT_BLOCK = re.compile(r"^\s*/\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
_COMMENT_LINE = re.compile(r"^\s*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^\s+", re.MULTILINE)

# A style sheet in a file of its own would arrive after the first measurement of the drawing.
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
    """The JavaScript modules of a component as one module."""
    return one_module(FOLDER / component / f"{component}.js")


def one_module(entry: Path) -> str:
    """``entry`` and everything that it imports as one module, each part after its imports.

    Under node, the modules import each other; a page gets them as one text, because inline component code cannot
    import. Comments on separate lines and indentation are removed.

    Raises ValueError if modules cannot share one scope: two declare one name at their top level, they import each other
    in a circle, or an import is not of the form ``import { a, b } from "./module.js";``.
    """
    modules = {path: _source(path) for path in _in_order(entry.resolve(), ())}
    _refuse_equal_names(modules)
    source = "\n".join(modules.values())
    for pattern in (_IMPORT, _EXPORT, _COMMENT_BLOCK, _COMMENT_LINE, _INDENT):
        source = pattern.sub("", source)
    return source


def _in_order(path: Path, importers: tuple[Path, ...]) -> Iterable[Path]:
    """The modules that ``path`` needs, itself last. One may occur again: only its first place counts."""
    if path in importers:
        circle = " → ".join(module.name for module in (*importers[importers.index(path) :], path))
        raise ValueError(f"Modules that import each other in a circle cannot be one text: {circle}.")
    needed = (_in_order(other, (*importers, path)) for other in _imported(path))
    return dict.fromkeys([*(module for modules in needed for module in modules), path])


def _source(path: Path) -> str:
    """The text of a module, including what it imports from JSON files."""

    def constant(statement: re.Match[str]) -> str:
        content = json.loads((path.parent / statement[2]).read_text("utf-8"))
        return f"const {statement[1]} = {json.dumps(content, separators=(',', ':'))};\n"

    return _JSON_IMPORT.sub(constant, path.read_text("utf-8"))


def _imported(path: Path) -> Iterator[Path]:
    """The files that a module imports, in the order of its import statements."""
    for statement in _IMPORT.findall(_source(path)):
        named = _NAMED_IMPORT.fullmatch(statement)
        if not named or re.search(r"\bas\b", statement):
            first = statement.strip().splitlines()[0]
            raise ValueError(f'{path.name}: “{first}” is not of the form import {{ a, b }} from "./module.js";')
        yield (path.parent / named[1]).resolve()


def _refuse_equal_names(modules: dict[Path, str]) -> None:
    """In one text, all modules share one scope, where a name can be declared only once."""
    declared: dict[str, Path] = {}
    for path, source in modules.items():
        for name in _top_level_names(source):
            if name in declared:
                raise ValueError(
                    f"{declared[name].name} and {path.name} both declare “{name}” at their top level. "
                    "They travel as one text: rename one of them."
                )
            declared[name] = path


def _top_level_names(source: str) -> Iterator[str]:
    for pattern in _DECLARED.findall(source):
        yield from re.findall(r"\w+(?=\s*(?:[,}\]]|$))", pattern)


@cache
def style(component: str) -> str:
    """The style sheet of a component including those that it imports; "" if it has none."""
    sheet = FOLDER / component / f"{component}.css"
    return joined_style(sheet) if sheet.exists() else ""


def joined_style(sheet: Path) -> str:
    """A style sheet with each ``@import "./sheet.css";`` replaced by the imported sheet, because a sheet inside a page
    can import nothing."""
    return _STYLE_IMPORT.sub(lambda match: joined_style(sheet.parent / match[1]), sheet.read_text("utf-8"))


@cache
def page_style(sheet: str) -> str:
    """A style sheet of the app's pages, without indentation, because every run of a page sends it."""
    return _INDENT.sub("", joined_style(FOLDER / "pages" / f"{sheet}.css"))


@cache
def module(component: str) -> str:
    """The component's script with its style, as one JavaScript module."""
    mount = script(component).replace("export default function", "const mount = function")
    return mount + _WITH_STYLE.format(style=json.dumps(style(component)))


@cache
def served_file(component: str) -> str:
    """The name of the file in which a server sends :func:`module`; it changes whenever the text does."""
    return f"{hashlib.sha256(module(component).encode()).hexdigest()[:24]}.js"
