"""List the imports of a module from its syntax tree, to check architecture rules and test lanes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import mha_viz
from mha_viz import figures
from tests import lanes

parsed = cache(ast.parse)  # several rules look at the same files
ROOT = Path(__file__).resolve().parent.parent
OURS = ("mha_viz", "tests", "tools", "benchmarks")
FIGURES_HOMES = {name: f"mha_viz.figures.{home.partition(':')[0]}" for name, home in figures._HOMES.items()}
HOMES = {f"mha_viz.figures.{name}": home for name, home in FIGURES_HOMES.items()}  # imported on first use
for _name, _home in mha_viz._MODULES.items():
    HOMES[f"mha_viz.{_name}"] = FIGURES_HOMES[_name] if _home == "mha_viz.figures" else _home
IMPORT_FUNCTIONS = ("import_module", "__import__", "importorskip")


class Import(NamedTuple):
    """One imported module, by its full name, and the ``line`` of the import.

    The name is empty if it could not be determined.
    """

    module: str
    line: int


def imports(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Yield every module that ``module``, whose text is ``source``, imports anywhere, also with ``import_module``."""
    return _imports(ast.walk(parsed(source)), module, is_package)


def _imports(nodes: Iterable[ast.AST], module: str, is_package: bool) -> Iterator[Import]:
    package = module if is_package else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _resolve_name(node.module or "", node.level, package)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _get_function_name(node) in IMPORT_FUNCTIONS:
            yield Import(_get_module_name(node, module), node.lineno)


def _resolve_name(name: str, level: int, package: str) -> str:
    if level == 0:
        return name
    parent = ".".join(package.split(".")[: len(package.split(".")) - level + 1])
    return f"{parent}.{name}" if name else parent


def _get_function_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _get_module_name(call: ast.Call, module: str) -> str:
    """Return the module that a call such as ``import_module`` imports.

    The argument is a constant, or an f-string that begins with a constant or ``__name__``.
    """
    argument = call.args[0] if call.args else None
    if isinstance(argument, ast.JoinedStr) and argument.values:
        first = argument.values[0]
        if isinstance(first, ast.FormattedValue) and getattr(first.value, "id", "") in ("__name__", "__package__"):
            return module
        argument = first if isinstance(first, ast.Constant) else None
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


# ---- Chains of imports to a library -----------------------------------------------------------------------


def iter_run_nodes(nodes: Iterable[ast.AST], *, functions: bool) -> Iterator[ast.AST]:
    """Yield these nodes and their descendants that run on import.

    Skip blocks under ``if TYPE_CHECKING`` and, unless ``functions``, the bodies of functions.
    """
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and _is_for_types(node.test):
            stack += node.orelse
        elif functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            stack += ast.iter_child_nodes(node)


def _is_for_types(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def names(nodes: Iterable[ast.AST], module: str, *, is_package: bool = False, functions: bool = True) -> list[str]:
    """Return the modules that these nodes of ``module`` import, each after its parent packages."""
    nodes = list(iter_run_nodes(nodes, functions=functions))
    found = [imported.module for imported in _imports(nodes, module, is_package)]
    found += [f"mha_viz.{node.attr}" for node in nodes if isinstance(node, ast.Attribute) and _is_package(node.value)]
    found += [HOMES[name] for name in found if name in HOMES]
    return [prefix for name in found for prefix in accumulate(name.split("."), "{}.{}".format)]


def _is_package(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("mv", "mha_viz")


@cache
def list_imports_of(module: str) -> tuple[str, ...]:
    """Return the modules that importing ``module`` imports; none if ``module`` is not part of this project."""
    parts = module.split(".")
    if parts[0] not in OURS:
        return ()
    path = ROOT.joinpath(*parts)
    files = {path.with_suffix(".py"): False, path / "__init__.py": True}
    for file, is_package in files.items():
        if file.is_file():
            tree = parsed(file.read_text("utf-8"))
            return tuple(names([tree], module, is_package=is_package, functions=False))
    return ()


def find_chain(start: str, imported: Iterable[str]) -> list[str]:
    """Return the shortest chain of imports from ``start`` to a library of lanes.HEAVY; empty if there is none.

    ``imported`` are the modules that ``start`` imports.
    """
    reached_from = dict.fromkeys(imported, start)
    queue = list(reached_from)
    for module in queue:
        if module in lanes.HEAVY:
            return _trace_back(module, reached_from, start)
        new = [name for name in list_imports_of(module) if name not in reached_from]
        reached_from |= dict.fromkeys(new, module)
        queue += dict.fromkeys(new)
    return []


def _trace_back(module: str, reached_from: dict[str, str], start: str) -> list[str]:
    links = [module]
    while links[-1] != start:
        links.append(reached_from[links[-1]])
    return links[::-1]
