"""The lane for every save is what it says: its modules import neither torch nor Streamlit, and no other module could
be in it. Workers get every test once, in an order that is the same in all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import lanes
from tests.imports import ROOT, find_chain, list_imports_of, names, parsed
from tests.ordering import order_in_shares, shuffle_tests

TESTS = ROOT / "tests"
FIXTURES_OF_PAGES = {"browser", "server"}


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """The trees of all files are large."""
    yield
    parsed.cache_clear()


def known_to_pytest(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """These functions by name: pytest passes them the fixtures that their arguments name."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    fixtures = [one for one in functions if any("fixture" in ast.dump(decorator) for decorator in one.decorator_list)]
    return {one.name: one for one in functions if one in fixtures or one.name.startswith("test")}


@cache
def shared_fixtures() -> dict[str, ast.FunctionDef]:
    return known_to_pytest(parsed((TESTS / "conftest.py").read_text("utf-8")))


def fixtures(tree: ast.Module) -> set[str]:
    """The shared fixtures that a module uses, with those that these use."""
    marks = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "usefixtures" in ast.dump(node.func)]
    wanted = [str(argument.value) for mark in marks for argument in mark.args if isinstance(argument, ast.Constant)]
    local = known_to_pytest(tree)
    wanted += [argument.arg for function in local.values() for argument in function.args.args]
    wanted = [name for name in wanted if name not in local]
    used: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in shared_fixtures() and name not in used:
            used.add(name)
            wanted += [argument.arg for argument in shared_fixtures()[name].args.args]
    return used


def way_out(source: str, module: str) -> list[str]:
    """Why a test module cannot be in the lane for every save: the chain of imports to a large library, or the name of
    what runs the app; empty if it can."""
    tree = parsed(source)
    imported = names([tree], module)
    if run := [name for name in imported if name.rpartition(".")[2] in lanes.RUN_THE_APP]:
        return [module, run[0]]
    marks = [
        ast.dump(node.value) for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node)
    ]
    if any("attr='app'" in mark or "attr='slow'" in mark for mark in marks):
        return [module, "pytestmark"]
    used = fixtures(tree)
    if pages := used & FIXTURES_OF_PAGES:
        return [module, *sorted(pages)]
    by_fixtures = {name: names([shared_fixtures()[name]], "tests.conftest") for name in sorted(used)}
    ways = [find_chain(module, imported), *([module, *find_chain(name, by_fixtures[name])] for name in by_fixtures)]
    return min((way for way in ways if way and way[-1] in lanes.HEAVY), key=len, default=[])


def test_the_lane_for_every_save_is_the_modules_that_import_no_large_library() -> None:
    wrong = []
    for path in sorted(TESTS.glob("test_*.py")):
        way = way_out(path.read_text("utf-8"), f"tests.{path.stem}")
        if bool(way or path.stem in lanes.LATER) == (path.stem in lanes.UNIT):
            wrong.append(" → ".join(way) or f"{path.stem} imports none: it belongs into lanes.UNIT or lanes.LATER")
    assert not wrong, "\n".join(wrong)
    gone = {*lanes.UNIT, *lanes.LONG, *lanes.LATER} - {path.stem for path in TESTS.glob("test_*.py")}
    assert not gone, "these do not exist"
    assert list(lanes.UNIT) == sorted(set(lanes.UNIT))
    assert find_chain("tests.conftest", list_imports_of("tests.conftest")) == [], "it is loaded in every lane"


BY_LOAD = ["mha_viz.models.reading.loading", "mha_viz.models.reading.unlisted_families"]


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("import torch.nn", []),
        ("def test():\n    from streamlit import runtime", []),
        ("from mha_viz.models.reading.encoder import Encoder", ["mha_viz.models.reading.encoder"]),
        ("from mha_viz.models.reading import encoder", ["mha_viz.models.reading.encoder"]),
        ("from mha_viz import load", BY_LOAD),
        ("def test():\n    import mha_viz as mv\n\n    mv.load('toy')", BY_LOAD),
        ("def test(minilm):\n    pass", ["minilm", *BY_LOAD]),
        ("@pytest.mark.usefixtures('one_thread')\ndef test():\n    pass", ["one_thread"]),
    ],
)
def test_a_module_that_imports_a_large_library_is_told_by_which_way(source: str, by: list[str]) -> None:
    first, *between, last = way_out(source, "tests.test_a")
    assert (first, between) == ("tests.test_a", by)
    assert last in lanes.HEAVY


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("def test(visitor):\n    pass", "browser"),
        ("from tests.page_session import PageSession", "tests.page_session.PageSession"),
        ("pytestmark = [pytest.mark.app]", "pytestmark"),
    ],
)
def test_a_module_that_runs_pages_is_told_by_what(source: str, by: str) -> None:
    assert by in way_out(source, "tests.test_a")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy\nfrom mha_viz.attention import Head",
        "if TYPE_CHECKING:\n    from mha_viz.models.reading.encoder import Encoder",
        "import mha_viz as mv\nmv.load_attention('a.npz')",
        "def browser():\n    pass\n\ndef f(browser):\n    pass",
        "torch = 1",
    ],
)
def test_a_module_without_a_large_library_stays(source: str) -> None:
    assert way_out(source, "tests.test_a") == []


# ---- The order of tests ----------------------------------------------------------------------------------------------


def collected() -> list[Any]:
    """Tests of four modules: one with the browser, two with models, and a pure one."""
    kinds = {
        "test_pages": ("browser", 4),
        "test_toy": ("models", 5),
        "test_long": ("models", 3),
        "test_pure": ("unit", 30),
    }
    return [
        SimpleNamespace(
            path=Path(f"{module}.py"),
            name=f"{module}[{number}]",
            fixturenames=["browser"] if kind == "browser" else [],
            get_closest_marker=lambda name, kind=kind: name == kind or None,
        )
        for module, (kind, count) in kinds.items()
        for number in range(count)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_worker_gets_its_tests_once_and_pure_ones_last(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LONG", ("test_long",))
    items = collected()
    ordered = order_in_shares(items, workers)
    assert sorted(item.name for item in ordered) == sorted(item.name for item in items)
    share = len(items) // workers
    for number in range(workers):
        modules = [item.path.stem for item in ordered[number * share : (number + 1) * share]]
        assert modules == sorted(modules, key="test_pure".__eq__), "pure ones are last"
    assert ordered[0].path.stem == "test_pages"
    names_ = [item.path.stem for item in ordered]
    assert names_.index("test_long") < names_.index("test_toy")
    assert names_[-1] == "test_pure"


def test_tests_are_shuffled_by_module_and_alike_for_a_seed() -> None:
    items = collected()
    orders = [[item.name for item in shuffle_tests(collected(), seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(item.name for item in items)
    modules = [name.partition("[")[0] for name in orders[0]]
    assert len([1 for one, two in pairwise(modules) if one != two]) == 3, "modules stay together"
