"""The rules of the house: which room may import what, read from the syntax tree, including imports inside functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.imports import imports, parsed

ROOT = Path(__file__).resolve().parent.parent

FLOORS = {
    "app": 7,  # holds nothing itself
    # Pages: each knows what is below, and no other.
    "app.about": 7,
    "app.compare": 7,
    "app.explore": 7,
    "app.inside": 7,
    "app.lab": 7,
    "app.roles": 7,
    "app.switch_off": 7,
    "app.widgets": 6.5,  # what all pages are made of
    "app.service": 6.25,  # what pages have done for them: jobs and caches
    "app.url": 6,  # the state of a page
    "app.service.reader": 5,  # models in a separate process
    "app.serving": 5,  # the app over a network: who may connect, and with which headers
    "figures": 5,  # of notebooks, pages and the command line
    "figures.charts": 4.5,
    "figures.words": 4.25,
    "figures.layout": 4,
    "figures.files": 4,
    "figures.drawing": 2,
    "lab": 4,  # on sentences of the grammar
    "cli": 6,
    "bertviz": 6,  # the views of BertViz
    # Namespaces of the package, which hold nothing themselves.
    "extensions": 6,
    "quantities": 6,
    "recipes": 6,
    "roles": 6,
    "study": 4,  # measures a model over a corpus, in this process or on a cluster
    "models.decomposing": 3,  # what scores and outputs of heads are made of
    "models.intervening": 3,  # heads switched off or replaced, and gradients
    "models.reading": 2.75,  # from the files of a model and a text to attention
    "models.getting": 2.5,  # from the name of a model to its files
    "models": 2.25,  # the table of families, and the names inside transformers that are used
    "analysis": 3,
    "attention": 2,  # of all heads, and the steps of one layer
    "corpus": 2,  # annotated text, including uploads, and the built-in grammar
    "text": 1,
    "browser": 1,
    "view": 0.5,  # the settings of drawings and the quantities
    "options": 1,  # the options of figures
    "files": 1,  # atomic writing, and the places of the app's own files
    "process": 1,  # settings of libraries for the program's own processes, and work in child processes
    "model_names": 0.5,  # of models, in captions and in errors
    "heads": 1,  # their names
    "request": 1.5,  # to a model: which text it reads, and which quantity is wanted; it names heads
    "errors": 0,
    "library_parts": 0.5,  # what other libraries do not promise to keep
    "numerals": 0,  # numbers in sentences
    "quotes": 0,  # quoted texts in sentences
    "version": 0,
}
ONLY_IN = {
    "streamlit": {"page", *(room for room in FLOORS if room.startswith("app."))} - {"app.service.reader"},
    "starlette": {"app.serving"},
    "plotly": {"figures.charts"},
    "distributed": {"study"},
    "dask": {"study"},
    "pyarrow": {"corpus"},
    "torch": {"models", "lab"},
    "transformers": {"models", "lab"},
}
TOGETHER_ONLY_IN_STUDY = {"models", "analysis"}
BORROWED = re.compile(r"\b(from|import) tests\.(\w+\.)*test_\w+|\bfrom tests(\.\w+)* import test_\w+")
PAGE_LINES = 60
LINE_LENGTH = 120  # bytes
ARGUMENTS = 5  # of a function of these modules of app: what a page knows of its reading is one value
FEW_ARGUMENTS = ("explore/*.py", "compare/*.py", "widgets/inference.py", "service/studies.py", "service/profiles.py")
DOWNLOADS = ROOT / "benchmarks" / "cache"  # the scripts of other projects that the benchmarks load
UNTYPED_JS = re.compile(
    r"^(?<!\*/\n)(?:export )?(?:default )?(?:(?:async )?function \w*\(|const \w+ = (?:async )?\([^)]*\) =>).*",
    re.MULTILINE,
)
FORBIDDEN_JS = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML)\b|\bdocument\s*\.\s*write")
STYLE = re.compile(r'style="(?![^"\n]*\{)|<style>(?!(\\n)?\{)')  # in Python, without a value that only it knows
FORBIDDEN_ARGUMENTS = ("unsafe_allow_html", "allow_pickle", "trust_remote_code")


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """The trees of all files are large."""
    yield
    parsed.cache_clear()


def room_of(module: str) -> str:
    """The room of a module of this project: "figures.layout", "text", "page" for app.py and pages, "" for the package.
    It is the innermost folder with a floor."""
    first, *parts = module.split(".")
    if first != "mha_viz":
        return "page"
    rooms = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((room for room in rooms if room in FLOORS), parts[0] if parts else "")


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports in ``source`` that break the rules, one sentence each."""
    room, broken, below = room_of(module), [], set()
    if room not in FLOORS and room not in ("", "page"):
        return [f"{module}: the room {room} has no floor in the table"]
    for name, line in imports(source, module, is_package):
        top = name.partition(".")[0]
        where = f"{module}:{line}"
        if top == "mha_viz":
            below.add(_target(name).partition(".")[0])
            broken += [f"{where} imports {name}"] * (not _may_enter(room, _target(name)))
        elif not name:
            broken += [f"{where} imports a computed name"] * (room != "")
        elif room == "page":
            broken += [f"{where} imports {name}"] * (top not in ("streamlit", "__future__"))
        elif not {room, room.partition(".")[0]} & ONLY_IN.get(top, {room}):
            broken.append(f"{where} imports {name}")
    if below >= TOGETHER_ONLY_IN_STUDY and int(FLOORS.get(room, 0)) == FLOORS["study"] and room != "study":
        broken.append(f"{module} uses models and analysis together")
    return broken


def _target(name: str) -> str:
    """The room that an import reaches; names that are not rooms (``mha_viz.load``) belong to the package itself."""
    room = room_of(name)
    return room if room in FLOORS else ""


def _may_enter(room: str, target: str) -> bool:
    if room in ("", "page") or room == target:
        return True
    if {room.partition(".")[0], target.partition(".")[0]} == TOGETHER_ONLY_IN_STUDY:
        return False
    return target in FLOORS and FLOORS[target] < FLOORS[room]


def forbidden_arguments(source: str, module: str) -> list[str]:
    """Calls that turn off a safeguard: the argument is given and is not the constant False."""
    if not any(name in source for name in FORBIDDEN_ARGUMENTS):
        return []
    return [
        f"{module}:{node.value.lineno} sets {node.arg}"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.keyword)
        and node.arg in FORBIDDEN_ARGUMENTS
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]


def _python_files() -> list[Path]:
    pages = [p for p in (ROOT / "app.py",) if p.exists()] + sorted((ROOT / "pages").glob("*.py"))
    return pages + sorted((ROOT / "mha_viz").rglob("*.py"))


def _browser_files() -> list[Path]:
    """JavaScript and styles, including tests and benchmarks."""
    folders = [ROOT / name for name in ("mha_viz", "tests", "benchmarks")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if DOWNLOADS not in path.parents]
    return [path for path in paths if path.suffix in (".js", ".mjs", ".ts", ".css")]


def _script_files() -> list[Path]:
    files = [p for folder in ("mha_viz", "pages", "assets") for p in sorted((ROOT / folder).rglob("*"))]
    return [p for p in files if p.suffix in (".js", ".mjs", ".html")]


def _module(path: Path) -> tuple[str, bool]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def test_imports_only_go_down() -> None:
    problems: list[str] = []
    for path in _python_files():
        module, is_package = _module(path)
        problems += violations(path.read_text("utf-8"), module, is_package)
    assert not problems, "\n".join(problems)


def test_the_house_is_not_empty() -> None:
    rooms = {room_of(_module(path)[0]) for path in _python_files()} - {"", "page"}
    assert {"errors", "text", "attention", "models", "figures.files", "app.url", "cli"} <= rooms


def test_no_safeguard_is_turned_off() -> None:
    problems = [f for p in _python_files() for f in forbidden_arguments(p.read_text("utf-8"), _module(p)[0])]
    assert not problems, "\n".join(problems)


def test_nothing_lies_in_caches_that_any_browser_can_clear() -> None:
    cached = re.compile(r"\bcache_(data|resource)\b")
    assert cached.search("@st.cache_data")
    files = [path for path in _python_files() if cached.search(path.read_text("utf-8"))]
    assert not [path for path in files if path.is_relative_to(ROOT / "mha_viz")]


def _charts() -> Iterator[tuple[str, dict[str | None, str]]]:
    """Where each chart of a page is made, and the source of each of its arguments."""
    for path in _python_files():
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "plotly_chart":
                yield f"{path}:{call.lineno}", {given.arg: ast.unparse(given.value) for given in call.keywords}


def test_every_chart_has_a_name_for_those_who_do_not_see_it() -> None:
    charts = dict(_charts())
    assert charts
    assert [place for place, given in charts.items() if "alt" not in given] == []


def test_a_chart_that_is_clicked_does_not_take_two_quick_clicks_for_one_that_takes_them_back() -> None:
    clicked = {place: given for place, given in _charts() if "on_select" in given}
    assert clicked
    assert [place for place, given in clicked.items() if "CLICK_CONFIG" not in given["config"]] == []


def test_styles_are_in_style_sheets() -> None:
    assert not [str(path) for path in _python_files() if STYLE.search(path.read_text("utf-8"))]


def test_scripts_build_nodes_and_never_markup() -> None:
    problems = [str(p) for p in _script_files() if FORBIDDEN_JS.search(p.read_text("utf-8"))]
    assert not problems, problems


def test_no_line_of_scripts_and_styles_is_too_long() -> None:
    lines = [(p, i, line) for p in _browser_files() for i, line in enumerate(p.read_text("utf-8").splitlines(), 1)]
    long = [f"{path.relative_to(ROOT)}:{i}" for path, i, line in lines if len(line.encode()) > LINE_LENGTH]
    assert lines
    assert not long, long


def many_arguments(source: str, module: str) -> list[str]:
    """The functions with more arguments than ARGUMENTS, without ``self``."""
    functions = [n for n in ast.walk(parsed(source)) if isinstance(n, ast.FunctionDef)]
    names = {f: {a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)} - {"self"} for f in functions}
    return [f"{module}:{f.lineno} {f.name} takes {len(names[f])}" for f in functions if len(names[f]) > ARGUMENTS]


def test_what_draws_explore_and_compare_is_handed_few_things_at_a_time() -> None:
    app = ROOT / "mha_viz" / "app"
    paths = [path for page in FEW_ARGUMENTS for path in sorted(app.glob(page))]
    assert len(paths) > len(FEW_ARGUMENTS)
    many = [f for p in paths for f in many_arguments(p.read_text("utf-8"), str(p.relative_to(ROOT)))]
    assert not many, "\n".join(many)
    assert many_arguments("def f(self, a, b, c, *, d, e, f): ...", "m") == ["m:1 f takes 6"]


def test_every_function_of_the_browser_says_its_types() -> None:
    untyped = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sorted((ROOT / "mha_viz" / "browser").rglob("*.js"))
        for match in UNTYPED_JS.finditer(path.read_text("utf-8"))
    ]
    assert not untyped, untyped


def test_no_test_is_a_helper_of_another() -> None:
    folders = [ROOT / name for name in ("tests", "benchmarks")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    problems = [
        f"{path.relative_to(ROOT)}: {match[0]}: what several tests use is a module without test_ in its name"
        for path in paths
        for match in BORROWED.finditer(path.read_text("utf-8"))
    ]
    assert len(paths) > 100
    assert not problems, "\n".join(problems)


def test_every_helper_of_the_tests_is_in_the_table() -> None:
    tests = ROOT / "tests"
    table = (tests / "README.md").read_text("utf-8").partition("## Helpers")[2].partition("\n## ")[0]
    modules = {path.stem for path in tests.glob("*.py")} - {"__init__", "conftest"}
    folders = {f"{path.parent.name}/" for path in tests.glob("*/__init__.py")} | {"js/"}
    helpers = {name for name in modules if not name.startswith("test_")} | folders
    assert re.findall(r"^\| `([\w/]+)` \|", table, re.MULTILINE) == sorted(helpers)


def test_pages_compose_and_never_compute() -> None:
    long = {
        p.name: n for p in (ROOT / "pages").glob("*.py") if (n := len(p.read_text("utf-8").splitlines())) > PAGE_LINES
    }
    assert not long, long


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mha_viz.text", "from mha_viz.attention import Head"),
        ("mha_viz.text", "from mha_viz import attention"),
        ("mha_viz.text", "from mha_viz import load"),
        ("mha_viz.text", "import mha_viz"),
        ("mha_viz.text", "from .attention import Head"),
        ("mha_viz.text", "from . import attention"),
        ("mha_viz.models.reading.encoder", "def f():\n    from mha_viz.figures.layout import grid"),
        ("mha_viz.models.reading.encoder", "if TYPE_CHECKING:\n    from ...figures import grid"),
        ("mha_viz.models.reading.encoder", "import importlib\nimportlib.import_module('mha_viz.app')"),
        ("mha_viz.models.reading.encoder", "import_module(name)"),
        ("mha_viz.models.reading.encoder", "__import__('plotly')"),
        ("mha_viz.models.reading.encoder", "import_module(f'mha_viz.app.{name}')"),
        ("mha_viz.models.getting.folder", "from mha_viz.models.reading import encoder"),
        ("mha_viz.models.reading.encoder", "from mha_viz.analysis import metrics"),
        ("mha_viz.figures.layout.grid", "from mha_viz.figures.files import write"),
        ("mha_viz.figures.layout.grid", "from mha_viz.models.getting import hub\nfrom mha_viz.analysis import metrics"),
        ("mha_viz.analysis.metrics", "from mha_viz.models.getting import catalog"),
        ("mha_viz.cli", "from mha_viz.app.widgets import frame"),
        ("mha_viz.cli", "import streamlit"),
        ("mha_viz.app.lab.page", "from mha_viz.app.roles import overview"),
        ("mha_viz.app.widgets.parts", "from mha_viz.app.lab import page"),
        ("mha_viz.app.url.address", "from mha_viz.app.service import jobs"),
        ("mha_viz.app.service.reader.client", "from mha_viz.app.service import caches"),
        ("mha_viz.app.serving.start", "from mha_viz.app.url import address"),
        ("mha_viz.app.new", "from mha_viz.app.url import address\nfrom mha_viz.app.lab import page"),
        ("mha_viz.app.explore.page", "import starlette"),
        ("mha_viz.app.service.reader.client", "import streamlit"),
        ("mha_viz.app.widgets.parts", "import plotly.graph_objects as go"),
        ("mha_viz.figures.layout.grid", "import torch.nn"),
        ("mha_viz.figures.files.formats", "def f():\n    from transformers import AutoModel"),
        ("mha_viz.files.assets", "from mha_viz.text import clean"),
        ("mha_viz.helpers", "import json"),
        ("pages.10_explore", "import numpy as np"),
        ("app", "import os"),
    ],
)
def test_imports_against_the_rules_are_refused(module: str, source: str) -> None:
    assert violations(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mha_viz.attention", "from mha_viz.errors import ShapeError\nimport numpy as np"),
        (
            "mha_viz.models.reading.encoder",
            "import torch\nfrom mha_viz.models import hub\nfrom .catalog import resolve",
        ),
        ("mha_viz.study.run", "from mha_viz.models.getting import hub\nfrom mha_viz.analysis import metrics"),
        ("mha_viz.analysis.metrics", "import_module(f'{__name__}.{name}')"),
        ("mha_viz.cli", "from mha_viz.models.reading.loading import load"),
        ("mha_viz.app.widgets.frame", "import streamlit as st\nfrom mha_viz.figures import grid"),
        ("mha_viz", "def __getattr__(name):\n    return import_module(_HOMES[name])"),
        (
            "pages.10_explore",
            "from __future__ import annotations\nimport streamlit as st\nfrom mha_viz.app import frame",
        ),
    ],
)
def test_imports_within_the_rules_are_allowed(module: str, source: str) -> None:
    assert not violations(source, module)


def test_relative_imports_of_a_package_start_in_it() -> None:
    assert not violations("from .encoder import load", "mha_viz.models", is_package=True)
    assert violations("from ..figures import grid", "mha_viz.models", is_package=True)


@pytest.mark.parametrize("call", ["st.markdown(x, unsafe_allow_html=True)", "np.load(p, allow_pickle=flag)"])
def test_a_safeguard_turned_off_is_found(call: str) -> None:
    assert forbidden_arguments(call, "m")
    assert not forbidden_arguments("np.load(p, allow_pickle=False)", "m")


@pytest.mark.parametrize("script", ["function f(a) {", "export const f = (a, b) =>", "export default function (a) {"])
def test_a_function_without_types_is_found(script: str) -> None:
    assert UNTYPED_JS.search(f"const a = 1;\n{script}")
    assert not UNTYPED_JS.search(f"/** @type {{(a: number) => void}} */\n{script}")


@pytest.mark.parametrize(
    "name", ["from {} import test_trace", "from {}.test_trace import saved", "import {}.test_trace"]
)
def test_a_borrowed_test_is_found(name: str) -> None:
    assert BORROWED.search(name.format("tests"))
    assert not BORROWED.search("from tests.tiny_models import saved")


@pytest.mark.parametrize("text", ['<p style="margin: 0">', '<p style="margin: 0; ', "<style>p { margin: 0 }</style>"])
def test_a_style_in_python_is_found(text: str) -> None:
    assert STYLE.search(text)
    assert not STYLE.search('<i style="width:{share}%"></i><style>{rules}</style><style>\\n{rules}</style>')


@pytest.mark.parametrize("script", ["a.innerHTML = b", "document.write(x)", "e.insertAdjacentHTML('x', y)"])
def test_markup_in_a_script_is_found(script: str) -> None:
    assert FORBIDDEN_JS.search(script)
    assert not FORBIDDEN_JS.search("cell.textContent = token")
