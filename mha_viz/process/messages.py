"""Send messages between the processes of this program: a JSON header followed by raw arrays.

A message is a little-endian uint32 with the length of the header, the header, and the bytes of its arrays in order;
``arrays`` in the header gives their types and shapes. No message contains code.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mha_viz import errors
from mha_viz.errors import MhaVizError

Array = npt.NDArray[Any]
Json = dict[str, Any]


def send(pipe: IO[bytes], header: Json, arrays: Sequence[Array] = ()) -> None:
    """Write one message. Raises OSError when the other end is closed."""
    shapes = [[array.dtype.str, array.shape] for array in arrays]
    encoded_header = json.dumps(header | {"arrays": shapes}).encode()
    pipe.write(struct.pack("<I", len(encoded_header)) + encoded_header)
    for array in arrays:
        pipe.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    pipe.flush()


def receive(pipe: IO[bytes], max_bytes: float = math.inf) -> tuple[Json, list[Array]]:
    """Read one message and return its header and its read-only arrays.

    Raises EOFError when the other end is closed, and OverflowError with the size if the header, or all arrays
    together, have more than ``max_bytes`` bytes; such a message is discarded.
    """
    size = struct.unpack("<I", _read_exactly(pipe, 4))[0]
    if size > max_bytes:
        raise OverflowError(size)
    header: Json = json.loads(_read_exactly(pipe, size))
    shapes = [(np.dtype(name), tuple(shape)) for name, shape in header.pop("arrays")]
    size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in shapes)
    if size > max_bytes:
        raise OverflowError(size)
    arrays = list[Array]()
    for dtype, shape in shapes:
        array = np.empty(shape, dtype)
        if array.size and pipe.readinto(array.data.cast("B")) != array.nbytes:  # type: ignore[attr-defined]
            raise EOFError
        array.flags.writeable = False
        arrays.append(array)
    return header, arrays


def _read_exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def pack_error(error: MhaVizError) -> Json:
    """Return an error as a header."""
    return {"error": type(error).__name__, "problem": error.problem, "remedy": error.remedy}


def parse_error(header: Json) -> MhaVizError:
    """Return the error that :func:`pack_error` packed."""
    kind: type[MhaVizError] = getattr(errors, header["error"], MhaVizError)
    return kind(header["problem"], header["remedy"])


class Codec:
    """Converts values to JSON and arrays, and back.

    Values are numbers, strings, bytes, None, arrays, lists, tuples, dicts with string keys, and objects of ``classes``,
    which are sent as their constructor arguments. An object that occurs twice is sent once.

    In JSON, an object with one key represents a value that JSON lacks: "array" (its number), "bytes" (the number of
    their array), "tuple", "dict", "same" (the number of an earlier object), or the name of a class.
    """

    def __init__(self, *classes: type[Any]) -> None:
        self._classes: dict[str, type[Any]] = {kind.__name__: kind for kind in classes}
        assert len(self._classes) == len(classes), "Two classes have the same name."

    def pack(self, value: object) -> tuple[Any, list[Array]]:
        """Return a value as JSON and arrays. Raises TypeError if its type is not supported."""
        arrays: list[Array] = []
        return self._pack_value(value, arrays, {}), arrays

    def _pack_value(self, value: Any, arrays: list[Array], objects: dict[int, tuple[int, object]]) -> Any:
        """Return a value as JSON; append its arrays to ``arrays`` and its objects to ``objects``."""
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        if isinstance(value, bytes):
            arrays.append(np.frombuffer(value, np.uint8))
            return {"bytes": len(arrays) - 1}
        if id(value) in objects:
            return {"same": objects[id(value)][0]}
        if (name := type(value).__name__) in self._classes:
            arguments = [self._pack_value(item, arrays, objects) for item in _get_constructor_arguments(value)]
            objects[id(value)] = len(objects), value
            return {name: arguments}
        if isinstance(value, list | tuple):
            items = [self._pack_value(item, arrays, objects) for item in value]
            return items if type(value) is list else {"tuple": items}
        if isinstance(value, dict):
            return {"dict": {key: self._pack_value(item, arrays, objects) for key, item in value.items()}}
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"A message cannot contain a value of the type {name}.")

    def parse(self, packed: Any, arrays: Sequence[Array]) -> Any:
        """Return the value that :meth:`pack` packed."""
        return self._parse_value(packed, arrays, [])

    def _parse_value(self, packed: Any, arrays: Sequence[Array], objects: list[object]) -> Any:
        """Return the value of JSON; append its objects to ``objects``."""
        if isinstance(packed, list):
            return [self._parse_value(item, arrays, objects) for item in packed]
        if not isinstance(packed, dict):
            return packed
        ((kind, content),) = packed.items()
        if kind == "array":
            return arrays[content]
        if kind == "bytes":
            return arrays[content].tobytes()
        if kind == "same":
            return objects[content]
        if kind == "dict":
            return {key: self._parse_value(item, arrays, objects) for key, item in content.items()}
        values = [self._parse_value(item, arrays, objects) for item in content]
        if kind == "tuple":
            return tuple(values)
        objects.append(self._classes[kind](*values))
        return objects[-1]


def _get_constructor_arguments(value: Any) -> Sequence[Any]:
    """Return the constructor arguments that make an equal object of the same class."""
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value) if field.init]
    return tuple(value) if hasattr(value, "_fields") else value.__reduce__()[1]


def estimate_size(value: object) -> int:
    """Estimate the size of a value in bytes: the size of its arrays, and a few hundred bytes per object."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple):
        return 100 + sum(map(estimate_size, value))
    if isinstance(value, dict):
        return 100 + estimate_size([*value, *value.values()])
    if is_dataclass(value):
        return 500 + sum(estimate_size(getattr(value, field.name)) for field in fields(value))
    return len(value) if isinstance(value, bytes | str) else 50
