"""Messages between processes: what is sent arrives as it was, and nothing longer than allowed is received."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz import errors
from mha_viz.errors import EmptyText, MhaVizError
from mha_viz.process.messages import Codec, estimate_size, pack_error, parse_error, receive, send


class Place(NamedTuple):
    x: int
    name: str


@dataclass(frozen=True)
class Region:
    corners: tuple[Place, ...]
    inside: Any = None


class Shout(str):
    """A string that is made of something else."""

    def __new__(cls, said: str) -> Shout:
        shout = super().__new__(cls, said.upper())
        shout.said = said
        return shout

    said: str

    def __reduce__(self) -> tuple[type[Shout], tuple[str]]:
        return Shout, (self.said,)


CODEC = Codec(Place, Region, Shout, range)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
PLACES = st.builds(Place, st.integers(), st.text())
VALUES = st.recursive(
    PLAIN | PLACES | st.builds(Shout, st.text(alphabet="abc")) | st.builds(range, st.integers(0, 9)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.builds(Region, st.lists(PLACES, max_size=3).map(tuple), inner)
    ),
    max_leaves=12,
)


def sent(value: object, max_bytes: float = float("inf")) -> Any:
    packed, arrays = CODEC.pack(value)
    pipe = io.BytesIO()
    send(pipe, {"value": packed}, arrays)
    pipe.seek(0)
    heading, received = receive(pipe, max_bytes)
    return CODEC.parse(heading["value"], received)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return [*one] == [*other] and all(map(same, one.values(), other.values()))
    if isinstance(one, Region):
        return same(one.corners, other.corners) and same(one.inside, other.inside)
    return bool(one == other)


@given(VALUES)
def test_a_value_arrives_as_it_was(value: object) -> None:
    assert same(sent(value), value)


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), np.float32), np.array(3), np.eye(2)])
def test_an_array_arrives_with_its_type_and_shape(array: Any) -> None:
    for one in (array, array.T):  # in order of rows, and of columns
        arrived = sent({"of": [one]})["of"][0]
        assert (arrived.dtype, arrived.shape) == (one.dtype, one.shape)
        np.testing.assert_array_equal(arrived, one)
        assert not arrived.flags.writeable


def test_an_object_that_is_there_twice_arrives_as_one() -> None:
    shared, equal = Place(1, "a"), Place(1, "a")
    region = sent(Region((shared, shared, equal)))
    assert region.corners[0] is region.corners[1]
    assert region.corners[0] is not region.corners[2]


def test_numbers_of_numpy_arrive_as_numbers() -> None:
    assert same(sent([np.float32(0.5), np.int64(3), np.bool_(True)]), [0.5, 3, True])


def test_other_values_are_no_message() -> None:
    for value in (object(), {1, 2}, lambda: None):
        with pytest.raises(TypeError, match="A message cannot contain a value"):
            CODEC.pack([value])


def test_a_message_that_is_too_long_is_not_received() -> None:
    assert sent(b"x" * 1000, max_bytes=1000) == b"x" * 1000
    with pytest.raises(OverflowError) as arrays:
        sent(b"x" * 1001, max_bytes=1000)
    assert arrays.value.args == (1001,)
    with pytest.raises(OverflowError):
        sent("x" * 1001, max_bytes=1000)
    with pytest.raises(OverflowError):
        receive(io.BytesIO(struct.pack("<I", 2**32 - 1)), max_bytes=10**9)


def test_a_message_that_ends_early_is_the_end() -> None:
    pipe = io.BytesIO()
    send(pipe, {"a": 1}, [np.arange(5)])
    for size in range(len(pipe.getvalue())):
        with pytest.raises(EOFError):
            receive(io.BytesIO(pipe.getvalue()[:size]))


def test_every_error_arrives_as_it_was() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MhaVizError)]
    assert EmptyText in kinds
    for kind in kinds:
        error = parse_error(json.loads(json.dumps(pack_error(kind("This.", "Do that.")))))
        assert (type(error), error.problem, error.remedy) == (kind, "This.", "Do that.")


def test_the_size_of_a_value_is_that_of_its_arrays_and_a_little_more() -> None:
    array = np.zeros((100, 100))
    for value in (array, (array,), Region((), array), [Region((Place(1, "a"),), array)]):
        assert array.nbytes <= estimate_size(value) < array.nbytes + 2000
