"""Find what a module imports from its syntax tree, for the rules of the house and the lanes of the tests."""

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

parsed = cache(ast.parse)  # looking at one file for several rules, or on several ways to a library, takes one parse
ROOT = Path(__file__).resolve().parent.parent
OURS = ("mha_viz", "tests", "tools", "benchmarks")
OF_FIGURES = {name: f"mha_viz.figures.{home.partition(':')[0]}" for name, home in figures._HOMES.items()}
HOMES = {f"mha_viz.figures.{name}": home for name, home in OF_FIGURES.items()}  # imported on first use
for _name, _home in mha_viz._MODULES.items():
    HOMES[f"mha_viz.{_name}"] = OF_FIGURES[_name] if _home == "mha_viz.figures" else _home
BY_NAME = ("import_module", "__import__", "importorskip")


class Import(NamedTuple):
    """One imported module, by its full name, and the ``line`` of the import.

    The name is empty if it could not be determined.
    """

    module: str
    line: int


def imports(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Return every module that ``source``, the text of ``module``, imports anywhere, also with ``import_module``."""
    return _imports(ast.walk(parsed(source)), module, is_package)


def _imports(nodes: Iterable[ast.AST], module: str, is_package: bool) -> Iterator[Import]:
    package = module if is_package else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", node.level, package)
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in BY_NAME:
            yield Import(_named(node, module), node.lineno)


def _absolute(name: str, level: int, package: str) -> str:
    if level == 0:
        return name
    above = ".".join(package.split(".")[: len(package.split(".")) - level + 1])
    return f"{above}.{name}" if name else above


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _named(call: ast.Call, module: str) -> str:
    """Return the module that a call names.

    The name is a constant, or an f-string that begins with a constant or ``__name__``.
    """
    argument = call.args[0] if call.args else None
    if isinstance(argument, ast.JoinedStr) and argument.values:
        first = argument.values[0]
        if isinstance(first, ast.FormattedValue) and getattr(first.value, "id", "") in ("__name__", "__package__"):
            return module
        argument = first if isinstance(first, ast.Constant) else None
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


# ---- What leads to a library ------------------------------------------------------------------------------


def iter_run_nodes(nodes: Iterable[ast.AST], *, functions: bool) -> Iterator[ast.AST]:
    """Yield these nodes and all below them that an import runs.

    It leaves out what stands under ``if TYPE_CHECKING`` and, unless ``functions``, the bodies of functions.
    """
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_for_types(node.test):
            waiting += node.orelse
        elif functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            waiting += ast.iter_child_nodes(node)


def _is_for_types(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def names(nodes: Iterable[ast.AST], module: str, *, is_package: bool = False, functions: bool = True) -> list[str]:
    """Return the modules that this code of ``module`` imports, each after the packages around it."""
    nodes = list(iter_run_nodes(nodes, functions=functions))
    found = [one.module for one in _imports(nodes, module, is_package)]
    found += [f"mha_viz.{node.attr}" for node in nodes if isinstance(node, ast.Attribute) and _is_package(node.value)]
    found += [HOMES[one] for one in found if one in HOMES]
    return [name for one in found for name in accumulate(one.split("."), "{}.{}".format)]


def _is_package(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("mv", "mha_viz")


@cache
def list_imports_of(module: str) -> tuple[str, ...]:
    """Return the modules that an import of ``module``, of this project, imports; none for a library's module."""
    parts = module.split(".")
    if parts[0] not in OURS:
        return ()
    place = ROOT.joinpath(*parts)
    files = {place.with_suffix(".py"): False, place / "__init__.py": True}
    for path, is_package in files.items():
        if path.is_file():
            tree = parsed(path.read_text("utf-8"))
            return tuple(names([tree], module, is_package=is_package, functions=False))
    return ()


def find_chain(start: str, imported: Iterable[str]) -> list[str]:
    """Return the shortest chain of imports from ``start`` to a library of lanes.HEAVY; empty if there is none.

    ``imported`` are the modules that ``start`` imports.
    """
    reached_from = dict.fromkeys(imported, start)
    waiting = list(reached_from)
    for module in waiting:
        if module in lanes.HEAVY:
            return _back(module, reached_from, start)
        new = [name for name in list_imports_of(module) if name not in reached_from]
        reached_from |= dict.fromkeys(new, module)
        waiting += dict.fromkeys(new)
    return []


def _back(module: str, reached_from: dict[str, str], start: str) -> list[str]:
    links = [module]
    while links[-1] != start:
        links.append(reached_from[links[-1]])
    return links[::-1]
