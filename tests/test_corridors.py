"""What keeps the house easy to walk through: no public name of a type with two meanings, no circle of imports, nothing
that parses how a reading was made out of prose."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.imports import ROOT, iter_run_nodes, parsed

PACKAGE = "mha_viz"
# What to read: fields of a request. A type with several of them would be a second form of it.
ASKED = {"text", "pair", "words", "target", "part", "off", "heads", "method", "means"}
ASKED |= {"place", "word", "other", "off_in"}
FORMS: Mapping[str, str] = {
    "Request": "the form",
    "RequestFields": "its fields, as functions of notebooks take them by name",
    "Question": "the part of it that a model has looked up",
    "StepData": "a step of a reading, which find_request turns into it",
}
OF_TYPE = re.compile(r"[A-Z]\w*[a-z]\w*")  # a class or an alias, not a constant
OF_TEXT = {name for name in dir(str) if name.isalpha()} - set(dir(tuple))  # its methods
OF_PATTERN = {name for name in dir(re.compile("")) if name.isalpha()}
OF_STEPS = "attention.steps"  # the module that may


def modules() -> dict[str, str]:
    """The source of each module of the package by its name."""
    sources = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return sources


def public_types(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """What each public name of a type means: a class, by its module, or what an alias stands for."""
    meanings = defaultdict[str, set[str]](set)
    for module, source in sources.items():
        for node in parsed(source).body:
            if isinstance(node, ast.ClassDef):
                meanings[node.name].add(f"class of {module}")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value and not isinstance(node.value, ast.Call):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                meanings[ast.unparse(target)].add(ast.unparse(node.value))
    return {name: meanings[name] for name in meanings if OF_TYPE.fullmatch(name)}


def imported(source: str, known: Iterable[str]) -> Iterator[str]:
    """The known modules that a module imports, wherever it does; a name from a package counts as the module that it
    is, or as the package."""
    for node in iter_run_nodes(parsed(source).body, functions=True):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if name in known else node.module for name in whole} & {*known}


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a circle, in functions too; empty if there are none. What a module imports for
    type checkers alone does not count."""
    graph = {module: {*imported(source, sources)} - {module} for module, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        modules_in_circle: list[str] = error.args[1]
        return modules_in_circle
    return []


def parses(source: str) -> Iterator[str]:
    """The expressions that read steps of ``made``, or all of them, as text: with a method of text, a pattern, ``in`` or
    a slice. What is compared as a whole is not read: ``step == "by words"``, ``"by words" in made``."""
    tree = parsed(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    outside = ast.Module([node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)], [])
    for scope in (outside, *functions):
        nodes, steps = [*ast.walk(scope)], set[str]()
        for node in nodes:
            if isinstance(node, ast.For | ast.comprehension) and of_made(node.iter, steps):
                steps |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
            elif isinstance(node, ast.Assign) and is_step(node.value, steps):
                steps |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        for node in nodes:
            if is_parsed(node, steps):
                yield ast.unparse(node)


def of_made(node: ast.AST, steps: set[str]) -> bool:
    """Whether an expression is ``made``, a step, or a call or a part of them."""
    if isinstance(node, ast.Call):
        return any(of_made(each, steps) for each in node.args)
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return of_made(node.elt, steps)
    is_made = "made" in (getattr(node, "id", ""), getattr(node, "attr", ""))
    return is_made or is_step(node, steps) or (isinstance(node, ast.Starred) and of_made(node.value, steps))


def is_step(node: ast.AST, steps: set[str]) -> bool:
    """Whether an expression is a step: a name of one, or a part of ``made``."""
    if isinstance(node, ast.Subscript):
        return of_made(node.value, steps)
    return isinstance(node, ast.Name) and node.id in steps


def is_parsed(node: ast.AST, steps: set[str]) -> bool:
    """Whether an expression reads ``made`` or a step as text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        reads_arguments = node.func.attr in OF_PATTERN and any(of_made(each, steps) for each in node.args)
        return reads_arguments or (node.func.attr in OF_TEXT and of_made(node.func.value, steps))
    if isinstance(node, ast.Compare):
        pairs = zip(node.ops, node.comparators, strict=True)
        return any(isinstance(op, ast.In | ast.NotIn) and is_step(each, steps) for op, each in pairs)
    return isinstance(node, ast.Subscript) and is_step(node.value, steps)


def test_a_public_name_of_a_type_means_one_thing() -> None:
    assert {name: meanings for name, meanings in public_types(modules()).items() if len(meanings) > 1} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(modules()) == []


def test_how_a_reading_was_made_is_data() -> None:
    elsewhere = {module: source for module, source in modules().items() if not module.endswith(OF_STEPS)}
    parsed_steps = {module: [*parses(source)] for module, source in elsewhere.items()}
    assert {module: lines for module, lines in parsed_steps.items() if lines} == {}


def asks(source: str) -> Iterator[str]:
    """The classes with more than two fields of a request."""
    for node in parsed(source).body:
        if isinstance(node, ast.ClassDef):
            annotated = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            fields = {target.id for target in annotated if isinstance(target, ast.Name)}
            if len(fields & ASKED) > 2:
                yield node.name


def test_what_to_read_has_one_form() -> None:
    assert {name for source in modules().values() for name in asks(source)} == FORMS.keys()


def test_a_second_form_is_found() -> None:
    assert [*asks("class Case:\n    text: str\n    pair: str = ''\n    method: str = 'zero'")] == ["Case"]
    assert not [*asks("class Trace:\n    text: str\n    model: str\n    words: int")]


def test_one_module_reads_and_writes_the_url() -> None:
    shell = (ROOT / PACKAGE / "app").rglob("*.py")
    assert [path.name for path in shell if "st.query_params" in path.read_text("utf-8")] == ["address.py"]


@pytest.mark.parametrize(
    ("one", "other", "meanings"),
    [
        ("class One: ...", "class One: ...", 2),
        ("class One: ...", "One = list[int]", 2),
        ("One: TypeAlias = list[str]", "One = list[int]", 2),
        ("One = list[int]", "One = list[int]", 1),
        ("class One: ...", "One = of(1)\nONE = 2", 1),
    ],
)
def test_two_types_of_one_name_are_found(one: str, other: str, meanings: int) -> None:
    assert {name: len(of) for name, of in public_types({"a": one, "b": other}).items()} == {"One": meanings}
    assert public_types({"a": "class _One: ..."}) == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from p import a", True),
        ("import p.a", True),
        ("from p.a import x", True),
        ("try:\n    import p.a\nexcept ImportError:\n    pass", True),
        ("def later():\n    from p import a", True),
        ("if TYPE_CHECKING:\n    from p import a", False),
        ("from p import c", False),
    ],
)
def test_a_circle_is_found(source: str, found: bool) -> None:
    assert bool(circle({"p": "", "p.a": "from p.b import y", "p.b": source, "p.c": ""})) == found


@pytest.mark.parametrize(
    "source",
    [
        'a.made[0].partition(" ")',
        'a.made[0].removeprefix("without ")',
        'made.split("; ")',
        '"; ".join(a.made).split("; ")',
        '"without" in a.made[0]',
        '"without" not in made[-1]',
        "a.made[0][:7]",
        're.match("without", a.made[1])',
        "_WITHOUT.fullmatch(made[1])",
        '_WITHOUT.search("; ".join(a.made))',
        "for step in made:\n    if _WITHOUT.match(step):\n        pass",
        'for number, step in enumerate(a.made):\n    step.removesuffix("off")',
        'any("off" in step for step in a.made)',
        'any(step in made and step.startswith("x") for step in made)',
        "[step.lower() for step in a.made]",
        "def f(a):\n    first = a.made[0]\n    return _ONLY.match(first)",
        "class A:\n    def f(self):\n        return [re.split(':', step) for step in reversed(self.made)]",
    ],
)
def test_prose_that_is_parsed_is_found(source: str) -> None:
    assert [*parses(source)]


@pytest.mark.parametrize(
    "source",
    [
        'any(step.row.name == "only" for step in a.made)',
        '"by words" in a.made',
        '"; ".join(a.made)',
        "made = [panel_from(given) for given in panels]\nmade.append(len(made))",
        "for step in made:\n    code += STEPS[step] if step in STEPS else ''",
        "(*a.made[1:], step)",
        "def f(made):\n    for step in made:\n        pass\ndef g(step):\n    return step.strip()",
    ],
)
def test_data_may_be_read(source: str) -> None:
    assert not [*parses(source)]
