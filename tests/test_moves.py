"""One thing that a person does stays short in the code: moves from file to file, and files, counted and not timed."""

from __future__ import annotations

import pytest

from benchmarks import walks

QUICK = [name for name, walk in walks.WALKS.items() if walk is not walks.walk_corpus]


@pytest.mark.app
@pytest.mark.parametrize("name", QUICK)
def test_what_a_person_does_stays_within_its_goals(name: str) -> None:
    walk, (moves, files) = walks.WALKS[name](), walks.GOALS[name]
    assert walk.moves <= moves
    assert len(walk.files) <= files, sorted(walk.files)
    assert walk.moves > moves / 2, "what was counted is another walk"


def test_a_move_is_a_call_in_another_file() -> None:
    walk = walks.Walk()
    for file in ("a", "a", "b", "a"):
        walk.enter(file)
    assert (walk.calls, walk.moves, walk.files) == (4, 3, {"a", "b"})
