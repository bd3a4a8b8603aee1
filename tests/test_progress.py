"""`progress=True` in Python: a bar for whatever takes long, and nothing without it."""

from __future__ import annotations

import inspect
import io
import re
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import progress as bars

TEXT = "The girl smiles because [MASK] sings ."
FEW = "\n".join(["The dog sees the cat .", "A girl sings .", "The boy walks because he likes it ."]) + "\n"
Given = Callable[[Encoder, Path], tuple[tuple[Any, ...], Mapping[str, Any]]]

# How each of them is called, on little.
CALLS: Mapping[str, Given] = {
    "find_induction_heads": lambda _, __: (("repeater",), {"draws": 2}),
    "corpus_ablation_effects": lambda toy, _: (("grammar", ["L1H1"], toy), {"most": 4}),
    "ablation_effects": lambda toy, _: ((toy, TEXT), {}),
    "roles.group_links": lambda toy, _: (("grammar", "L0H2", toy), {"most": 8, "links": 20}),
    "roles.match_heads": lambda toy, _: ((toy, toy), {"most": 2}),
    "roles.compare_heads": lambda toy, _: (("grammar", "L1H1", "L1H2", "nsubj"), {"model": toy}),
    "activation_patching": lambda toy, _: ((toy, TEXT, TEXT.replace("girl", "boy")), {}),
    "profile": lambda toy, few: ((few, toy), {}),
    "roles.profile_all": lambda toy, few: (([few], [toy]), {}),
    "recipes.fit": lambda toy, few: ((few, toy), {}),
    "roles.search_links": lambda toy, few: ((few, "L1H2", toy), {}),
    "minimal_ablation": lambda toy, _: ((toy, TEXT, "he"), {"most": 1}),
    "minimal_pairs": lambda toy, _: ((toy, [("The girl sings .", "The girl sing .")]), {}),
    "explain_corpus_scores": lambda toy, few: ((few, toy), {"most": 2}),
}
# These have the same bar over work of the same kind, which would take seconds here.
OTHERS = {"recipes.ablate", "recipes.compare", "recipes.score"}
OTHERS |= {"roles.ablate", "roles.compare", "roles.permutation_test"}
PUBLIC = [*mv.__all__, *(f"{of}.{name}" for of in ("recipes", "roles") for name in getattr(mv, of).__all__)]
EVERY = {name: function for name in PUBLIC if inspect.isfunction(function := attrgetter(name)(mv))}
SLOW = {name for name, function in EVERY.items() if "progress" in inspect.signature(function).parameters}


@pytest.fixture
def few(tmp_path: Path) -> Path:
    (tmp_path / "few.txt").write_text(FEW, "utf-8")
    return tmp_path / "few.txt"


def test_every_function_that_tells_its_progress_has_a_bar() -> None:
    assert {*CALLS} | OTHERS == SLOW
    for name in SLOW:
        function = EVERY[name]
        assert inspect.signature(function).parameters["progress"].default is False, name
        assert hasattr(function, "__wrapped__"), name
        with pytest.raises(mv.errors.MhaVizError, match=r"progress is 3\. Give True for a bar, or a function"):
            function(progress=3)
        values: tuple[object, ...] = ([], None, 0, "")
        for value in values:
            with pytest.raises(mv.errors.MhaVizError, match=r"^progress is .*\. Give True for a bar, or a function"):
                function(progress=value)


@pytest.mark.parametrize("name", CALLS)
def test_a_bar_goes_on_to_the_end_where_it_is_wanted(
    name: str, toy: Encoder, few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, options = CALLS[name](toy, few)
    EVERY[name](*arguments, **options)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(bars, "_can_overwrite", lambda: True)
    EVERY[name](*arguments, **options, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    *_, last = err.removesuffix("\n").split("\r")
    if name == "minimal_ablation":  # its first round is its last
        assert last.rstrip().endswith(" 0% of the heads")
    else:
        assert last.count("█") == 30
        assert re.search(r"(\d+) of \1|100%", last)
    assert err.endswith("\n")


def test_a_function_is_called_in_place_of_a_bar(toy: Encoder, capsys: pytest.CaptureFixture[str]) -> None:
    shares = list[float]()
    mv.ablation_effects(toy, TEXT, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert capsys.readouterr().err == ""


class Shares(list[float]):
    """Called with shares, it has them; before, it is empty, thus falsy."""

    def __call__(self, share: float) -> None:
        self.append(share)


def test_a_function_is_called_though_it_is_falsy(toy: Encoder) -> None:
    shares = Shares()
    mv.ablation_effects(toy, TEXT, progress=shares)
    assert shares[-1] == 1


def test_booleans_of_numpy_are_as_those_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    @bars.with_bar("of it")
    def work(*, progress: Any = False) -> bool:
        bars.as_callback(progress)(0.5)
        return callable(progress)

    assert [work(progress=np.bool_(value)) for value in (True, False)] == [True, False]
    assert [work(progress=True), work(progress=False), work()] == [True, False, False]
    capsys.readouterr()


def test_an_error_ends_the_line_of_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bars, "_can_overwrite", lambda: True)

    @bars.with_bar("of it")
    def fail(*, progress: bars.ProgressOption[float] = False) -> None:
        bars.as_callback(progress)(0.5)
        raise KeyError

    with pytest.raises(KeyError):
        fail(progress=True)
    assert re.fullmatch(r"\r█{15} {15} 50% of it *\n", capsys.readouterr().err)


def test_a_cell_of_a_notebook_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", bars)  # imported, as by a program that starts kernels
    assert not bars._can_overwrite()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert bars._can_overwrite()
