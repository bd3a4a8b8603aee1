"""The messages between the server and the reader process: a heading in JSON followed by raw arrays.

A message is a little-endian uint32 with the length of the heading, the heading, and the bytes of its arrays in order;
``arrays`` in the heading gives their types and shapes. Both ends are this program, and no message contains code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mha_viz import errors
from mha_viz.analysis.syntax import Pointers
from mha_viz.attention import Attention, steps
from mha_viz.attention.answers import Answer
from mha_viz.attention.rotary import Rotation
from mha_viz.attention.trace import Agreement, Parameters, Trace
from mha_viz.errors import MhaVizError
from mha_viz.request import Question
from mha_viz.text import parse_text

Array = npt.NDArray[Any]
Json = dict[str, Any]

_TRACE_FACTS = ("model", "revision", "layer", "scaling")
_TRACE_ARRAYS = ("x", "mask", "q", "k", "v", "scores", "weights", "context")


def send(pipe: IO[bytes], heading: Json, arrays: Sequence[Array] = ()) -> None:
    """Write one message. Raises OSError when the other end is closed."""
    shapes = [[array.dtype.str, array.shape] for array in arrays]
    head = json.dumps(heading | {"arrays": shapes}).encode()
    pipe.write(struct.pack("<I", len(head)) + head)
    for array in arrays:
        pipe.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Json, list[Array]]:
    """Read one message; its arrays are read-only. Raises EOFError when the other end is closed."""
    heading: Json = json.loads(_exactly(pipe, struct.unpack("<I", _exactly(pipe, 4))[0]))
    return heading, [_array(pipe, np.dtype(kind), shape) for kind, shape in heading.pop("arrays")]


def _array(pipe: IO[bytes], dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    array = np.empty(shape, dtype)
    if array.size and pipe.readinto(array.data.cast("B")) != array.nbytes:  # type: ignore[attr-defined]
        raise EOFError
    array.flags.writeable = False
    return array


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


# ---- Values ---------------------------------------------------------------------------------------------


def packed_attention(attention: Attention) -> tuple[Json, list[Array]]:
    """A reading as a heading and arrays."""
    heading: Json = {name: getattr(attention, name) for name in ("model", "revision", "quantity")}
    heading |= {"made": steps.packed(attention.made), "queries": asdict(attention.queries)}
    heading |= {"keys": asdict(attention.keys)} if attention.is_cross else {}
    return heading, [attention.weights, attention.hidden]


def attention_of(heading: Json, arrays: Sequence[Array]) -> Attention:
    """The reading that :func:`packed_attention` packed."""
    queries = parse_text(heading["queries"])
    keys = parse_text(heading["keys"]) if "keys" in heading else queries
    weights, hidden = arrays
    named = heading["model"], heading["revision"]
    return Attention(*named, queries, weights, hidden, steps.parse(heading["made"]), keys, heading["quantity"])


def packed_trace(trace: Trace) -> tuple[Json, list[Array]]:
    """The trace of a layer as a heading and arrays."""
    heading = {name: getattr(trace, name) for name in _TRACE_FACTS}
    heading |= {"text": asdict(trace.text), "agreement": trace.agreement, "entered": trace.entered is not None}
    arrays = [*(getattr(trace, name) for name in _TRACE_ARRAYS), *trace.parameters]
    arrays += [] if trace.entered is None else [trace.entered]
    if trace.rotation is not None:
        heading |= {"eps": trace.rotation.eps}
        arrays += [trace.rotation.cos, trace.rotation.sin, trace.rotation.norms]
    return heading, arrays


def trace_of(heading: Json, arrays: Sequence[Array]) -> Trace:
    """The trace that :func:`packed_trace` packed."""
    given = iter(arrays)
    fields: Json = {name: heading[name] for name in _TRACE_FACTS} | {name: next(given) for name in _TRACE_ARRAYS}
    fields["parameters"] = Parameters(*islice(given, len(Parameters._fields)))
    fields["entered"] = next(given) if heading["entered"] else None
    fields["rotation"] = Rotation(next(given), next(given), next(given), heading["eps"]) if "eps" in heading else None
    return Trace(**fields, text=parse_text(heading["text"]), agreement=Agreement(*heading["agreement"]))


def packed_pointers(pointers: Sequence[Pointers | None]) -> tuple[Json, list[Array]]:
    """The pointers of each sentence as a heading and arrays."""
    present = [number for number, sentence in enumerate(pointers) if sentence is not None]
    arrays = [array for sentence in pointers if sentence is not None for array in sentence]
    return {"present": present, "count": len(pointers)}, arrays


def pointers_of(heading: Json, arrays: Sequence[Array]) -> tuple[Pointers | None, ...]:
    """The pointers that :func:`packed_pointers` packed."""
    pairs = zip(arrays[::2], arrays[1::2], strict=True)
    by_number = {number: Pointers(*pair) for number, pair in zip(heading["present"], pairs, strict=True)}
    return tuple(by_number.get(number) for number in range(heading["count"]))


def packed_numbers(numbers: Sequence[Array | float]) -> tuple[Json, list[Array]]:
    """Arrays and numbers, such as the fields of Effects, as a heading and arrays."""
    return {}, [np.asarray(each, np.float64) for each in numbers]


def packed_answer(answer: Answer) -> tuple[Json, list[Array]]:
    """An answer as a heading and arrays."""
    heading, arrays = packed_numbers([answer.before, answer.after, answer.divergence])
    return heading | {"question": answer.question, "words": answer.words}, arrays


def answer_of(heading: Json, arrays: Sequence[Array]) -> Answer:
    """The answer that :func:`packed_answer` packed."""
    before, after, divergence = arrays
    return Answer(Question.parse(heading["question"]), tuple(heading["words"]), before, after, float(divergence))


def packed_error(error: MhaVizError) -> Json:
    """An error as a heading."""
    return {"error": type(error).__name__, "problem": error.problem, "remedy": error.remedy}


def error_of(heading: Json) -> MhaVizError:
    """The error that :func:`packed_error` packed."""
    kind: type[MhaVizError] = getattr(errors, heading["error"], MhaVizError)
    return kind(heading["problem"], heading["remedy"])
