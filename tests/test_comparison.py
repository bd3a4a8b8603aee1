"""The compared heads in the URL: what goes in comes out; invalid parts are ignored without an error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.app.url import comparison
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention import Head
from mha_viz.errors import ComparisonFull
from mha_viz.heads import MAX_IN_LINK
from mha_viz.request import Request
from tests import hostile

CAT = ComparedHead(Request("minilm", "The cat sat."), Head(3, 1))
DOG = ComparedHead(Request("bert-base-uncased", "A dog barked.", "It was loud."), Head(0, 2), "loud")
REQUESTS = st.builds(
    Request,
    st.sampled_from(["minilm", "gpt2", "owner/name"]),
    st.text(max_size=40).filter(lambda t: "\0" not in t),
    st.text(max_size=10).filter(lambda t: "\0" not in t),
    off=st.sets(st.builds(Head, st.integers(0, 30), st.integers(0, 30)), max_size=3).map(lambda s: tuple(sorted(s))),
)
PINS = st.builds(
    ComparedHead,
    REQUESTS,
    st.builds(Head, st.integers(0, 30), st.integers(0, 30)),
    st.text(max_size=20).filter(lambda t: "\0" not in t),
)


@given(st.lists(PINS, max_size=comparison.MAX_HEADS))
def test_what_is_written_is_read_again(pins: list[ComparedHead]) -> None:
    assert comparison.read(comparison.write(pins)) == (tuple(pins), True)


def test_a_sentence_stands_once_however_many_of_its_heads_are_pinned() -> None:
    value = comparison.write([CAT, ComparedHead(Request("minilm", "The cat sat."), Head(5, 11)), DOG])
    assert value is not None
    assert value.count("The cat sat.") == 1
    assert json.loads(value)["heads"] == [["L3H1", 0, ""], ["L5H11", 0, ""], ["L0H2", 1, "loud"]]
    assert comparison.write([]) is None


@pytest.mark.parametrize("value", [None, ""])
def test_no_value_is_an_empty_list(value: str | None) -> None:
    assert comparison.read(value) == ((), True)


BROKEN: list[Any] = [
    "x", "[]", "{}", "1", "null", '{"of":[],"heads":{}}', "[" * 5000, '{"of":1,"heads":2}', '{"heads":[["L0H0",0,""]]}',
]  # fmt: skip


def test_a_value_that_is_no_list_of_heads_is_empty_and_said_to_be_broken() -> None:
    for value in (*BROKEN, *hostile.TEXTS.values()):
        assert comparison.read(value) == ((), not value), ascii(value)[:100]


@pytest.mark.parametrize(
    "entry",
    [["L0H0", -1, ""], ["L0H0", 1, ""], ["L0H0", "0", ""], ["L0H0", None, ""], ["8-10", 0, ""], ["L0H0", 0],
     "L0H0", None, [0, 0, 0]],
    ids=ascii,
)  # fmt: skip
def test_a_broken_entry_is_left_aside_and_the_others_stay(entry: Any) -> None:
    value = json.dumps({"of": [["The cat sat.", "", "minilm"]], "heads": [entry, ["L3H1", 0, ""]]})
    assert comparison.read(value) == ((CAT,), False)


def test_readings_that_are_no_texts_are_left_aside() -> None:
    value = json.dumps({"of": [[1, 2, 3], ["The cat sat.", "", "minilm"]], "heads": [["L3H1", 0, ""], ["L3H1", 1, ""]]})
    assert comparison.read(value) == ((CAT,), False)


@pytest.mark.parametrize("off", [["L3H1", "zero"], ["x", "zero"], [["L3H1"], "zero"], ["L3H1", "half"], ["L3H1", 0]])
def test_heads_that_are_off_belong_to_the_reading(off: list[Any]) -> None:
    of = [["The cat sat.", "", "minilm", "", "", *off]]
    pins, is_whole = comparison.read(json.dumps({"of": of, "heads": [["L3H1", 0, ""]]}))
    assert pins == (
        (ComparedHead(replace(CAT.request, off=(Head(3, 1),)), CAT.head),) if off == ["L3H1", "zero"] else ()
    )
    assert is_whole == bool(pins)
    uniform = replace(CAT.request, off=(Head(2, 4), Head(3, 1)), method="uniform")
    both = comparison.write([CAT, ComparedHead(uniform, CAT.head)])
    assert both is not None
    assert comparison.read(both)[0][1].request.off == (Head(2, 4), Head(3, 1))
    assert json.loads(both)["of"][1][3:] == ["", "", "L2H4.L3H1", "uniform"]


@pytest.mark.parametrize(
    ("reading", "pins"),
    [
        (["", "cross", "L3H1", "zero"], 0),  # an encoder–decoder has no heads off
        (["", "", ".".join(f"L{n // 100}H{n % 100}" for n in range(MAX_IN_LINK + 1)), "zero"], 0),
        (["", "", ".".join(f"L{n // 12}H{n % 12}" for n in range(MAX_IN_LINK)), "zero"], 1),
        (["", "", "", "uniform"], 1),
        (["", "", "L3H1", "text", "The dog sat."], 1),
        (["", "", "L3H1", "text"], 0),
    ],
)
def test_a_compared_head_is_one_that_explore_can_open(reading: list[str], pins: int) -> None:
    of = [["The cat sat.", "", "minilm", *reading]]
    read, _ = comparison.read(json.dumps({"of": of, "heads": [["L3H1", 0, ""]]}))
    assert len(read) == pins
    if reading[2] == "":
        assert read == (CAT,), "how heads are switched off says nothing if none is"


def test_more_than_eight_are_cut_and_said_to_be() -> None:
    value = json.dumps({"of": [["The cat sat.", "", "minilm"]], "heads": [["L3H1", 0, ""]] * 9})
    assert comparison.read(value) == ((CAT,) * 8, False)


def test_a_list_longer_than_any_that_is_written_here_is_not_parsed() -> None:
    value = comparison.write([CAT])
    assert value is not None
    with patch("json.loads") as parse:
        assert comparison.read(value + " " * comparison.MAX_ENCODED) == ((), False)
    parse.assert_not_called()


def test_adding_moving_copying_naming_and_taking_out() -> None:
    both = comparison.add((CAT,), DOG)
    assert both == (CAT, DOG)
    assert comparison.move(both, 1, 0) == (DOG, CAT)
    assert comparison.move(both, 0, 99) == (DOG, CAT)
    assert comparison.duplicate(both, 0) == (CAT, CAT, DOG)
    assert comparison.rename(both, 0, "  my \n head ")[0].name == "my head"
    assert len(comparison.rename(both, 0, "x" * 500)[0].name) == comparison.MAX_NAME
    assert comparison.remove(both, 0) == (DOG,)


@pytest.mark.parametrize("index", [-1, 2, 10**9])
def test_an_index_that_is_not_there_changes_nothing(index: int) -> None:
    both = (CAT, DOG)
    for changed in (
        comparison.move(both, index, 0),
        comparison.duplicate(both, index),
        comparison.rename(both, index, "x"),
    ):
        assert changed == both
    assert comparison.remove(both, index) == both


def test_the_person_is_told_which_head_was_added() -> None:
    with patch("streamlit.toast") as toast:
        comparison.add(comparison.add((), CAT), CAT)
    messages = [call.args[0] for call in toast.call_args_list]
    assert messages == [f"Added L3H1 to My heads{again}: {n} of 8." for n, again in ((1, ""), (2, " again"))]


def test_a_ninth_head_is_refused() -> None:
    with pytest.raises(ComparisonFull, match="At most 8"):
        comparison.add((CAT,) * 8, DOG)
    with pytest.raises(ComparisonFull, match="At most 8"):
        comparison.duplicate((CAT,) * 8, 0)


def test_texts_that_no_link_could_carry_are_refused() -> None:
    long = ComparedHead(Request("minilm", "猫" * 350), Head(0, 0))
    with pytest.raises(ComparisonFull, match="too long"):
        comparison.add((CAT,), ComparedHead(Request("minilm", "猫" * 450), Head(0, 0)))
    assert len(comparison.add((CAT,), long)) == 2
