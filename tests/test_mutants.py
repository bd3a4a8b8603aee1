"""The tool that counts which small faults the tests notice does not count what a test that fails by chance notices."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from tools import mutants
from tools.forks import run_in_forks
from tools.mutants import (
    FAILED,
    HANGS,
    PASSED,
    Mutant,
    Outcome,
    find_noticing_test,
    make_part_prefix,
    read_outcomes,
    summarize,
)

A, B = (Mutant("mha_viz/text.py", "core/NumberReplacer", number, 7, "x = 1") for number in (0, 1))
TREE = Path("tree")
Runs = Callable[[Mapping[str, Sequence[str]]], None]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Makes runs of tests end as told, one after another, with the fault and without it."""
    ends_of_runs: dict[str, Iterator[str]] = {}
    state = ["without"]

    @contextmanager
    def fault(tree: Path, mutant: Mutant) -> Iterator[None]:
        state.append("with")
        yield
        state.pop()

    monkeypatch.setattr(mutants, "apply_fault", fault)
    monkeypatch.setattr(mutants, "run_tests", lambda tree, tests: next(ends_of_runs[state[-1]]))
    return lambda ends: ends_of_runs.update({name: iter(end) for name, end in ends.items()})


@pytest.mark.parametrize(
    ("with_fault", "without", "by", "broken"),
    [
        ([PASSED], [], "", set()),
        (["a", "a"], [PASSED], "a", set()),
        (["a", PASSED, PASSED], [PASSED], "", set()),  # by chance
        (["a", PASSED, "b", "b"], [PASSED, PASSED], "b", set()),
        (["a", "b", "b"], ["a", PASSED], "b", {"a"}),  # it fails without the fault too
        ([FAILED], [PASSED], FAILED, set()),
        ([FAILED], ["a"], FAILED, set()),
        ([FAILED], [FAILED], "", set()),
        ([HANGS], [PASSED], HANGS, set()),
        ([HANGS], [HANGS], "", set()),
    ],
)
def test_a_fault_is_noticed_by_a_test_that_fails_with_it_each_time_and_without_it_never(
    with_fault: Sequence[str], without: Sequence[str], by: str, broken: set[str], runs: Runs
) -> None:
    runs({"with": with_fault, "without": without})
    failing_without: set[str] = set()
    assert find_noticing_test(TREE, A, ["a", "b"], failing_without) == by
    assert failing_without == broken


def test_a_stopped_run_goes_on_after_its_last_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "out.0.jsonl"
    whole = [json.dumps(asdict(Outcome(mutant, True, "a", 1, 0, 0.5))) + "\n" for mutant in (A, B)]
    file.write_text(whole[0] + whole[1][:40], "utf-8")
    assert [*read_outcomes([file])] == [A]
    assert file.read_text("utf-8") == whole[0]
    file.write_text(whole[1][:40], "utf-8")
    assert read_outcomes([file]) == {}
    assert file.read_text("utf-8") == ""


def test_a_stopped_run_goes_on_with_the_same_tests_only(tmp_path: Path) -> None:
    coverage = tmp_path / "coverage"
    names = set()
    for content, tree in (("a", "one"), ("b", "one"), ("b", "two")):
        coverage.write_text(content)
        names.add(make_part_prefix(Path("out.json"), coverage, Path(tree)))
    assert len(names) == 3


def test_every_room_has_its_share_of_mutants() -> None:
    assert mutants._round_shares({"a": 5.0, "b": 3.0, "c": 2.0}, 10) == {"a": 5, "b": 3, "c": 2}
    assert mutants._round_shares({"a": 5.5, "b": 2.7, "c": 1.8}, 10) == {"a": 5, "b": 3, "c": 2}
    many = {f"room {number}": 1.0 for number in range(5)}
    assert mutants._round_shares(many, 3) == dict.fromkeys(many, 1), "more rooms than mutants: one of each"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without a fork the tool does not run")
def test_a_worker_that_fails_ends_the_run_when_all_have_ended(tmp_path: Path) -> None:
    def work(number: int) -> None:
        if number == 0:
            os._exit(3)
        (tmp_path / "done").touch()

    with pytest.raises(RuntimeError, match="1 of 2 workers failed"):
        run_in_forks(work, 2)
    assert (tmp_path / "done").exists()


def test_the_unnoticed_come_first_and_every_room_is_counted() -> None:
    result = summarize([Outcome(A, True, "a", 1, 0, 0.5), Outcome(B, False, "", 1, 0, 0.5)])
    assert (result["mutants"], result["noticed"], result["share"]) == (2, 1, 0.5)
    assert result["rooms"] == {"text": {"mutants": 2, "noticed": 1}}
    assert [row["is_noticed"] for row in result["outcomes"]] == [False, True]
