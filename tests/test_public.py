"""What the package offers to programs: the names of its public modules, one family of errors, typed options."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mha_viz
from mha_viz import errors, options
from mha_viz import figures as figure_api
from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.view import View
from mha_viz.view.settings import OPTIONS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mha_viz"

# What other programs may import. A module that is added here needs an __all__; a name that is removed needs an entry in
# the changelog.
PUBLIC = {
    "mha_viz": {
        *(
            "Attention",
            "Figure",
            "Head",
            "Profile",
            "Request",
            "Tap",
            "__version__",
            "load",
            "profile",
            "predict",
            "read",
        ),
        *("load_attention", "load_profile", "read_corpus", "compare", "difference", "overlay", "publish"),
        *("ablate", "ablation_effects", "corpus_ablation_effects", "minimal_ablation", "activation_patching"),
        *("copying_scores", "explain_output", "minimal_pairs", "output_directions"),
        *("direct_logit_attribution", "explain_scores", "explain_corpus_scores", "find_induction_heads"),
        *("gradient_importance", "errors", "extensions", "figures", "quantities", "recipes", "roles"),
    },
    "mha_viz.attention": {"Attention", "Content", "Head", "Shown", "Weights"},
    "mha_viz.bertviz": {"HTML", "head_view", "model_view"},
    "mha_viz.corpus.sources": {"iterate", "read_corpus"},
    "mha_viz.errors": {name for name, _ in inspect.getmembers(errors, inspect.isclass)},
    "mha_viz.extensions": {"add_quantity", "register_metric", "register_writer"},
    "mha_viz.figures.files": {"describe", "suffixes", "to_bytes", "write"},
    "mha_viz.heads": {"AnyHead", "Head"},
    "mha_viz.models.reading.encoder": {"Encoder"},
    "mha_viz.models.reading.loading": {"load"},
    "mha_viz.study.profiling": {"Profile", "Progress", "establish", "load_profile", "profile"},
    "mha_viz.figures": {
        "Figure",
        "Size",
        "View",
        "archive",
        "chart",
        "compare",
        "difference",
        "grid",
        "heatmap",
        "links",
        "overlay",
        "publish",
    },
    "mha_viz.options": {"AnyFigure", "CacheOptions", "GridOptions", "HeadOptions", "Options"},
    "mha_viz.quantities": {"gradient_weighted", "norm_weighted", "rollout", "unexplained"},
    "mha_viz.recipes": {"Recipes", "ablate", "compare", "fit", "load", "score"},
    "mha_viz.roles": {
        *("ablate", "compare", "compare_heads", "establish", "group_links", "count_in_runs", "match_heads"),
        *("permutation_test", "profile_all", "replicate", "report", "search_links", "compare_scores"),
    },
    "mha_viz.text": {"Cut", "Token", "TokenizedText"},
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_lists_its_names(name: str) -> None:
    module = importlib.import_module(name)
    assert len(module.__all__) == len(set(module.__all__))
    in_order = sorted(module.__all__, key=lambda name: (not name.isupper(), name))  # constants first
    assert list(module.__all__) == in_order
    assert PUBLIC[name] <= set(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None


def test_the_package_itself_shows_these_names_and_no_others() -> None:
    assert set(mha_viz.__all__) == PUBLIC["mha_viz"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_class_or_function_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        one = getattr(module, public)
        if inspect.isclass(one) or inspect.isfunction(one):
            assert one.__doc__, public


MANY = 5  # parameters, from which on each has a line of its own


def undescribed(function: Callable[..., Any]) -> list[str]:
    """The parameters that only the signature of a function has, or only the section Args of its docstring."""
    parameters = inspect.signature(function).parameters.values()
    names = {str(one.replace(annotation=one.empty, default=one.empty)) for one in parameters}
    section = re.search(r"^Args:\n((?:    .+\n?)+)", inspect.getdoc(function) or "", re.MULTILINE)
    described = re.findall(r"^ {4}([*]*\w+): \S", section[1], re.MULTILINE) if section else []
    return sorted(names ^ {*described})


@pytest.mark.parametrize("name", PUBLIC)
def test_a_function_of_many_parameters_says_what_each_of_them_is(name: str) -> None:
    module = importlib.import_module(name)
    public = [getattr(module, one) for one in module.__all__]
    many = [one for one in public if inspect.isfunction(one) and len(inspect.signature(one).parameters) >= MANY]
    assert {one.__qualname__: undescribed(one) for one in many if undescribed(one)} == {}
    assert len(many) >= {"mha_viz": 14, "mha_viz.recipes": 4, "mha_viz.roles": 8, "mha_viz.figures": 5}.get(name, 0)


def test_a_parameter_that_is_not_described_is_found() -> None:
    def described(one: int, two: int = 0, **options: int) -> None:
        """Add.

        Args:
            one: a number,
                over two lines.
            **options: others.
            three: a parameter of before.
        """

    def bare(one: int) -> None:
        """Add one: a number."""

    assert undescribed(described) == ["three", "two"]
    assert undescribed(bare) == ["one"]


def test_a_format_of_your_own_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz import extensions
    from mha_viz.figures.files import registry

    monkeypatch.setattr(registry, "_WRITERS", {**registry._WRITERS})

    def names(attention: Attention, file: Any) -> None:
        """The tokens."""
        file.write(" ".join(attention.tokens).encode())

    extensions.register_writer(".names")(names)
    written = Attention.from_tensors([np.full((1, 2, 2), 0.5)], ["a", "b"]).save(tmp_path / "a.names")
    assert written.read_text("utf-8") == "a b"
    assert registry.describe(".names") == "The tokens."
    with pytest.raises(ValueError, match="Two functions write"):
        extensions.register_writer(".npz")(names)


def test_all_that_the_page_about_python_names_is_there() -> None:
    page = (ROOT / "docs/howto/python.md").read_text("utf-8")
    named = {part.split("mv.")[1].split("(")[0].split(".")[0] for part in page.split() if "mv." in part}
    assert named >= {"load", "load_attention", "compare", "difference", "Attention"}
    assert {name for name in named if name.isidentifier()} <= set(mha_viz.__all__)


def test_every_error_of_the_house_is_in_the_family() -> None:
    """Error classes are in errors.py, except those that never leave their module, whose names begin with _."""
    signals = {"LastLayerSeen"}
    strays = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "errors.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in signals
        for base in node.bases
        if issubclass(_class(base), BaseException)
    ]
    assert strays == []
    family = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    assert len(family) > 20
    assert all(issubclass(one, MhaVizError | UserWarning) for one in family)


def _class(base: ast.expr) -> type:
    """The class that a base's name refers to among errors, Python's own and ours; object for any other name."""
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    value = getattr(errors, name, None) or getattr(builtins, name, object)
    return value if inspect.isclass(value) else object


def test_the_typed_options_are_those_that_a_figure_takes() -> None:
    taken = {field.name for kind in (View, Size) for field in fields(kind)} | {"width_in"}
    assert set(options.Options.__annotations__) == taken
    assert set(options.HeadOptions.__annotations__) >= {"heads"}


def test_the_typed_options_are_the_settings_of_the_table() -> None:
    assert {field.name for field in fields(options.ViewOptions)} == set(OPTIONS)
    for name, setting in OPTIONS.items():
        hint = options.Options.__annotations__[name].__forward_arg__
        assert (eval(hint, {"Literal": _Listed()}) if setting.list_values() else hint) == (
            setting.list_values() or "str"
        ), name
        assert getattr(View(), name) == ("" if setting.not_shares else setting.default), name


class _Listed:
    """Stands in for Literal: returns what is between its brackets."""

    def __getitem__(self, values: tuple[str, ...]) -> tuple[str, ...]:
        return values


@pytest.mark.parametrize("name", ["grid", "heatmap", "links"])
def test_the_methods_of_a_reading_take_what_the_functions_take(name: str) -> None:
    method = inspect.signature(getattr(Attention, name)).parameters
    function = inspect.signature(getattr(figure_api, name)).parameters
    assert [*method][1:] == [*function][1:]
    assert [method[one].annotation for one in [*method][1:]] == [function[one].annotation for one in [*function][1:]]


def test_a_figure_is_one_by_the_type_that_a_reading_promises() -> None:
    promised = {name for name in vars(options.AnyFigure) if not name.startswith("_")}
    assert promised == {"caption", "drawing", "figure", "name", "save", "to_bytes", "to_html"}
    for name in promised:
        assert hasattr(figure_api.Figure, name)


PATHS = {"model", "other_model", "one", "path", "folder", "out", "resume", "corpus", "corpora"}
NO_PATHS = {
    "Head.among(model)",
    "Attention.from_tensors(model)",
    "Attention.from_generated(model)",
    "Encoder.module(path)",
}


def paths_of(module: str) -> dict[str, str]:
    """The annotations of the parameters that name a file, a folder or a model, of the public functions of a module and
    of the public methods of its classes."""
    found: dict[str, str] = {}
    for public in importlib.import_module(module).__all__:
        one = getattr(importlib.import_module(module), public)
        members = vars(one) if inspect.isclass(one) else {"": one}
        functions = [getattr(one, name) if name else one for name in members if not name.startswith("_")]
        for function in functions:
            if inspect.isfunction(function) or inspect.ismethod(function):
                parameters = inspect.signature(function).parameters.values()
                named = ((f"{function.__qualname__}({each.name})", each) for each in parameters)
                found |= {name: str(each.annotation) for name, each in named if each.name in PATHS}
    return found


def test_every_path_may_be_one_of_pathlib() -> None:
    every = {name: kind for module in PUBLIC for name, kind in paths_of(module).items()}
    assert {"load(model)", "load_profile(folder)", "profile(corpus)", "match_heads(one)"} <= {*every}
    texts = {name: kind for name, kind in every.items() if re.search(r"\bstr\b", kind) and name not in NO_PATHS}
    assert [name for name, kind in texts.items() if "PathLike" not in kind] == []
