"""The rules of the house: which room may import what, read from the syntax tree, including imports inside functions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.imports import imports, parsed

ROOT = Path(__file__).resolve().parent.parent

FLOORS = {
    "ui": 6,
    "cli": 6,
    "bertviz": 6,  # the views of BertViz
    "figure": 5,  # of notebooks, pages and the command line
    "reader": 5,  # models in a separate process
    "serving": 5,  # the app over a network: who may connect, and with which headers
    "figures": 4,
    "exports": 4,
    "study": 4,  # measures a model over a corpus, in this process or on a cluster
    "training": 4,  # on sentences of the grammar
    "models": 3,
    "analysis": 3,
    "attention": 2,  # of all heads, and the steps of one layer
    "corpus": 2,  # annotated text, including uploads, and the built-in grammar
    "drawing": 2,
    "text": 1,
    "browser": 1,
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
    "streamlit": {"ui", "page", "serving"},
    "starlette": {"serving"},
    "plotly": {"figures"},
    "distributed": {"study"},
    "dask": {"study"},
    "pyarrow": {"corpus"},
    "torch": {"models", "training"},
    "transformers": {"models", "training"},
}
TOGETHER_ONLY_IN_STUDY = {"models", "analysis"}
BORROWED = re.compile(r"\b(from|import) tests\.(\w+\.)*test_\w+|\bfrom tests(\.\w+)* import test_\w+")
PAGE_LINES = 60
PAGES = {
    "explore",
    "compare",
    "roles",
    "inside",
    "lab",
    "switch_off",
}  # rooms inside ui, above the modules that are directly in it
LINE_LENGTH = 120  # bytes
FILE_LINES = 800
FUNCTION_LINES = 40  # without the docstring: what a function does is to be seen at once, and may be said at length
MEASURED = ("app.py", "pages", "mha_viz", "tools", "benchmarks")  # the files and functions whose length is limited
DOWNLOADS = ROOT / "benchmarks" / "cache"  # the scripts of other projects that the benchmarks load
UNTYPED_JS = re.compile(
    r"^(?<!\*/\n)(?:export )?(?:default )?(?:(?:async )?function \w*\(|const \w+ = (?:async )?\([^)]*\) =>).*",
    re.MULTILINE,
)
FORBIDDEN_JS = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML)\b|\bdocument\s*\.\s*write")
STYLE = re.compile(r'style="(?![^"\n]*\{)|<style>(?!(\\n)?\{)')  # in Python, without a value that only it knows
# Public functions of several modules that have one name, sorted; the list may only become shorter. Some are natural,
# because they are called with the name of their module, as the `run` of each command; no other name may join them.
SHARED = """
add announce answer answers apart around ask batches block built_in by_head chart charts check chosen compare
compared concatenation config content controls corpus cosines cut described difference digest direct divergences
done download draw drawing drawn each effects entropy evaluate examples excerpts facts foot forget go grid
head_grid heads_of heatmap history home importance in_link in_words joined key lines link links listed load
lost_at_random lost_each main margins mask matrix measure measure_means measured model_of more moved name_of
named of_count of_current of_cut of_heads of_identical of_model of_output of_pair of_panels of_part of_penalty
of_random of_removal opened options other_text over_image pack packed page pages pairs part_of per_head place
plain_name point pooled predicted products profile question question_about quoted read read_excerpts reading
recipes_of recorded refused removal remove replaced request_of requested requested_reading rest room room_for
run scale scale_of score_parts script search sentence serve settings shipped short show_steps signed
smallest_switch softmax spans stacked start steps steps_of stopping stored straight strongest substitute
suggesting summed table text_of texts to_bytes together tokenizer train trained under_way unpacked
values vectors weights_of whole why width without work write
"""
FORBIDDEN_ARGUMENTS = ("unsafe_allow_html", "allow_pickle", "trust_remote_code")


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """The trees of all files are large."""
    yield
    parsed.cache_clear()


def room_of(module: str) -> str:
    """The room of a module of this project: "figures", "text", "page" for app.py and pages, "" for the package."""
    parts = module.split(".")
    if parts[0] != "mha_viz":
        return "page"
    return parts[1] if len(parts) > 1 else ""


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports in ``source`` that break the rules, one sentence each."""
    room, broken, below = room_of(module), [], set()
    if room not in FLOORS and room not in ("", "page"):
        return [f"{module}: the room {room} has no floor in the table"]
    for name, line in imports(source, module, is_package):
        top = name.partition(".")[0]
        where = f"{module}:{line}"
        if top == "mha_viz":
            below.add(_target(name))
            broken += [f"{where} imports {name}"] * (not _may_enter(room, _target(name)))
        elif not name:
            broken += [f"{where} imports a computed name"] * (room != "")
        elif room == "page":
            broken += [f"{where} imports {name}"] * (top not in ("streamlit", "__future__"))
        elif room not in ONLY_IN.get(top, {room}):
            broken.append(f"{where} imports {name}")
    if below >= TOGETHER_ONLY_IN_STUDY and FLOORS.get(room) == FLOORS["study"] and room != "study":
        broken.append(f"{module} uses models and analysis together")
    return broken


def _target(name: str) -> str:
    """The room that an import reaches; names that are not rooms (``mha_viz.load``) belong to the package itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def _may_enter(room: str, target: str) -> bool:
    if room in ("", "page") or room == target:
        return True
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


def long_functions(source: str, module: str) -> list[str]:
    """The functions with more lines than FUNCTION_LINES, counted from ``def``, without docstrings."""
    functions = [n for n in ast.walk(parsed(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = {node: (node.end_lineno or 0) - node.lineno + 1 - _docstring_lines(node) for node in functions}
    return [f"{module}:{node.lineno} {node.name} has {n} lines" for node, n in lines.items() if n > FUNCTION_LINES]


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) is not None else 0


def _measured_files(*suffixes: str) -> list[Path]:
    paths = [ROOT / name for name in MEASURED]
    files = [path for p in paths for path in ([p] if p.is_file() else sorted(p.rglob("*")))]
    return [path for path in files if path.suffix in suffixes and DOWNLOADS not in path.parents]


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


def _inside_ui(module: str) -> tuple[str, str]:
    """For a module of ui: the page whose room it is in ("" for the shell that all pages share), and its name."""
    parts = module.split(".")[2:]
    return (parts[0], parts[1]) if len(parts) > 1 and parts[0] in PAGES else ("", parts[0] if parts else "")


def test_pages_know_the_shell_and_not_each_other() -> None:
    wrong = []
    for path in sorted((ROOT / "mha_viz" / "ui").rglob("*.py")):
        module, is_package = _module(path)
        page, _ = _inside_ui(module)
        for name, line in imports(path.read_text("utf-8"), module, is_package):
            other = _inside_ui(name)[0] if name.startswith("mha_viz.ui.") else ""
            wrong += [f"{module}:{line} imports {name}"] * (other not in ("", page))
    assert not wrong, "\n".join(wrong)


def test_the_house_is_not_empty() -> None:
    rooms = {room_of(_module(path)[0]) for path in _python_files()} - {"", "page"}
    assert {"errors", "text", "attention", "models", "exports", "cli"} <= rooms


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
    assert len(clicked) >= 4
    assert [place for place, given in clicked.items() if "CLICKED" not in given["config"]] == []


def homes(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that define each public function."""
    modules_by_name = defaultdict[str, set[str]](set)
    for module, source in sources.items():
        for node in parsed(source).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                modules_by_name[node.name].add(module)
    return modules_by_name


def test_a_function_has_a_name_of_its_own() -> None:
    sources = {_module(path)[0]: path.read_text("utf-8") for path in (ROOT / "mha_viz").rglob("*.py")}
    shared, listed = {name: modules for name, modules in homes(sources).items() if len(modules) > 1}, SHARED.split()
    assert not {name: shared[name] for name in shared if name not in listed}, "one of them needs another name"
    assert listed == sorted(shared), "what has a name of its own by now leaves the list"


def test_a_name_of_two_functions_is_found() -> None:
    assert {name: len(of) for name, of in homes({"a": "def f(): ...", "b": "def f(): ...\ndef _f(): ..."}).items()} == {
        "f": 2
    }


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


def test_every_file_is_short_enough_to_be_read_at_once() -> None:
    paths = _measured_files(".py", ".js", ".mjs", ".css")
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in paths}
    assert {path.suffix for path in paths} >= {".py", ".js", ".css"}
    assert not {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > FILE_LINES}


def test_every_function_is_short_enough_to_be_seen_at_once() -> None:
    long = [f for p in _measured_files(".py") for f in long_functions(p.read_text("utf-8"), str(p.relative_to(ROOT)))]
    assert not long, "\n".join(long)


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
        ("mha_viz.models.encoder", "def f():\n    from mha_viz.figures import grid"),
        ("mha_viz.models.encoder", "if TYPE_CHECKING:\n    from ..figures import grid"),
        ("mha_viz.models.encoder", "import importlib\nimportlib.import_module('mha_viz.ui')"),
        ("mha_viz.models.encoder", "import_module(name)"),
        ("mha_viz.models.encoder", "__import__('plotly')"),
        ("mha_viz.models.encoder", "import_module(f'mha_viz.ui.{name}')"),
        ("mha_viz.figures.grid", "from mha_viz.exports import write"),
        ("mha_viz.figures.grid", "from mha_viz.models import hub\nfrom mha_viz.analysis import metrics"),
        ("mha_viz.analysis.metrics", "from mha_viz.models import catalog"),
        ("mha_viz.cli", "from mha_viz.ui import frame"),
        ("mha_viz.cli", "import streamlit"),
        ("mha_viz.ui.parts", "import plotly.graph_objects as go"),
        ("mha_viz.figures.grid", "import torch.nn"),
        ("mha_viz.exports.formats", "def f():\n    from transformers import AutoModel"),
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
        ("mha_viz.models.encoder", "import torch\nfrom mha_viz.models import hub\nfrom .catalog import resolve"),
        ("mha_viz.study.run", "from mha_viz.models import hub\nfrom mha_viz.analysis import metrics"),
        ("mha_viz.analysis.metrics", "import_module(f'{__name__}.{name}')"),
        ("mha_viz.cli", "from mha_viz.models.loading import load"),
        ("mha_viz.ui.frame", "import streamlit as st\nfrom mha_viz.figures import grid"),
        ("mha_viz", "def __getattr__(name):\n    return import_module(_HOMES[name])"),
        (
            "pages.10_explore",
            "from __future__ import annotations\nimport streamlit as st\nfrom mha_viz.ui import frame",
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


@pytest.mark.parametrize("lines", [FUNCTION_LINES, FUNCTION_LINES + 1])
@pytest.mark.parametrize("head", ["def f():", "async def f():", "class A:\n    @property\n    def f(self):"])
def test_a_function_that_is_too_long_is_found(head: str, lines: int) -> None:
    indent = "    " * (1 + head.count("class"))
    body = [f'{indent}"""Of two', f'{indent}lines."""', *[f"{indent}pass"] * (lines - 1)]
    assert len(long_functions("\n".join([head, *body]), "m")) == (lines > FUNCTION_LINES)


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
