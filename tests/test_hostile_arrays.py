"""Arrays, names, numbers and files that do not end, or are no numbers at all: each is refused in one sentence from the
error family within a second, before a value of it is read."""

from __future__ import annotations

import io
import itertools
import json
import struct
import sys
import zipfile
from collections import UserList
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mha_viz
from mha_viz import Attention, Head
from mha_viz.bertviz import head_view, model_view
from mha_viz.errors import MhaVizError, SettingError, list_items, shorten_value

SECONDS = 1.0
TOKENS = ["a", "b", "c"]


def layers(kind: str = "f4", heads: int = 2, n: int = 3) -> np.ndarray:
    return np.full((2, 1, heads, n, n), 1 / n).astype(kind)


def huge(*shape: int, kind: str = "f4") -> np.ndarray:
    """An array that claims to be large and takes the memory of one number."""
    return np.broadcast_to(np.ones((), kind), shape)


class Claims:
    """An array of another library that claims a shape, and is another one."""

    def __init__(self, shape: Any, array: Any = None) -> None:
        self.shape, self._array = shape, array

    def __array__(self, *args: Any, **options: Any) -> Any:
        if isinstance(self._array, Exception):
            raise self._array
        return np.ones(3) if self._array is None else self._array


class Counts(float):
    """A number that is written when it is asked for, which nobody does."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def in_itself(copies: int = 1) -> list[Any]:
    given: list[Any] = []
    given.extend([given] * copies)
    return given


def nested(kind: Callable[[list[Any]], Any], depth: int = 100_000) -> Any:
    given: Any = layers()[0]
    for _ in range(depth):
        given = kind([given])
    return given


def shared(*lengths: int) -> list[Any]:
    """Lists in lists with very many numbers, of which each level holds one object often."""
    given: Any = 0.5
    for length in lengths:
        given = [given] * length
    return given  # type: ignore[no-any-return]


def endless() -> Iterator[int]:
    return itertools.repeat(0)


ARRAYS: dict[str, Any] = {
    "complex": lambda: layers("c16"),
    "complex, without an imaginary part": lambda: layers("f4") + 0j,
    "complex in lists": lambda: (layers("c8")[:, 0]).tolist(),
    "objects": lambda: layers("O"),
    "texts": lambda: layers("U9"),
    "dates": lambda: layers("i8").astype("M8[s]"),
    "records": lambda: np.zeros((2, 1, 2, 3, 3), [("float", "f4")]),
    "bytes": lambda: layers("S3"),
    "10⁹ numbers": lambda: [huge(1, 2, 31_623, 31_623)],
    "10⁹ heads": lambda: [huge(1, 10**9, 3, 3)],
    "10⁹ numbers over layers": lambda: [huge(1, 2, 3000, 3000)] * 60,
    "10⁹ numbers in lists": lambda: [shared(1000, 1000, 1000)],
    "10⁹ numbers in each of 10 lists": lambda: shared(10**5, 10**4, 1, 10),
    "10⁶ layers": lambda: [layers()[0]] * 10**6,
    "10⁶ layers in an array": lambda: huge(10**6, 2, 3, 3),
    "layers without an end": endless,
    "a range": lambda: range(10**9),
    "layers that are ranges": lambda: [range(10**9)] * 2,
    "ranges in lists": lambda: [[[range(10**9)] * 3] * 2],
    "a list that holds itself": in_itself,
    "a list that holds itself twice": lambda: in_itself(2),
    "a layer that holds itself": lambda: [layers()[0], in_itself(2)],
    "100,000 tuples": lambda: nested(tuple),
    "100,000 lists": lambda: nested(list),
    "rows of different lengths": lambda: [[[[0.5, 0.5], [1.0]]]],
    "one number deeper": lambda: [[[[0.5, 0.5], [0.5, [0.5]]]]],
    "a set": lambda: {1, 2},
    "bytes alone": lambda: b"abc",
    "a claim": lambda: [Claims((1, 2, 3, 3))],
    "a claim that is no shape": lambda: [Claims("axes")],
    "a claim of negative axes": lambda: [Claims((1, -2, 3, 3))],
    "an array that raises": lambda: [Claims((1, 2, 3, 3), RuntimeError("x" * 10**6))],
    "an array that becomes texts": lambda: [Claims((1, 2, 3, 3), layers("U9")[0])],
    "an array that becomes larger": lambda: [Claims((1, 2, 3, 3), huge(1, 2, 31_623, 31_623))],
    "numbers without text": lambda: [[[[Counts(0.5)] * 3] * 3] * 2, "x"],
    "1e300": lambda: layers("f8") * 1e300,
    "10,000 digits": lambda: [[[[10**10_000] * 3] * 3] * 2],
}
NAMES: dict[str, Any] = {
    "a dict": {"a": 1, "b": 2, "c": 3},
    "a set": {"a", "b", "c"},
    "bytes": b"abc",
    "a later number": ["a", 10**10_000, "c"],
    "lists in a list": [["a"], "b", "c"],
    "in itself": in_itself(),
    "100,000 tuples": nested(tuple),
    "a range": range(10**9),
    "10⁶ names": UserList(["a"]) * 10**6,
    "no text": [Counts(), "b", "c"],
}
BESIDE: dict[str, Any] = {
    "mask of 10⁹": {"mask": range(10**9)},
    "mask of a large array": {"mask": huge(10**9)},
    "mask that holds itself": {"mask": in_itself(2)},
    "mask of texts": {"mask": ["1", "1", "1"]},
    "mask of complex numbers": {"mask": np.ones(3, complex)},
    "mask as a dict": {"mask": {0: 1, 1: 1, 2: 1}},
    "second sentence": {"sentence_b_start": "2"},
    "second sentence in itself": {"sentence_b_start": in_itself()},
    "quantity": {"quantity": in_itself()},
    "quantity of 10,000 digits": {"quantity": 10**10_000},
    "model": {"model": 10**10_000},
    "revision": {"revision": in_itself()},
}
PATTERN = "blocks.{}.attn.hook_pattern"
CACHES: dict[str, Any] = {
    "4,300 digits": lambda: {PATTERN.format("9" * 4_300): layers()[0]},
    "5,000 digits": lambda: {PATTERN.format("9" * 5_000): layers()[0]},
    "4,300 digits beside a layer": lambda: {PATTERN.format(n): layers()[0] for n in ("0", "9" * 4_300)},
    "layer 10⁹": lambda: {PATTERN.format(10**9): layers()[0]},
    "10⁵ layers": lambda: {PATTERN.format(n): layers()[0] for n in range(10**5)},
    "names without an end": lambda: SimpleNamespace(keys=lambda: map(str, itertools.count()), __getitem__=id),
    "10⁹ numbers": lambda: {"a.0": huge(1, 2, 31_623, 31_623)},
    "complex": lambda: {"a.0": layers("c16")[0]},
    "complex by name": lambda: {PATTERN.format(0): layers("c16")[0]},
    "itself": in_itself,
    "tuples": lambda: [nested(tuple)],
    "a layer that is itself": lambda: {PATTERN.format(0): in_itself(2)},
    "no shape": lambda: [(Claims(None), Claims(3))],
}
LISTS: dict[str, Any] = {
    "10⁹": range(10**9),
    "10³⁰": range(10**30),
    "without an end": None,  # a new iterator each time
    "10,000 digits": [10**10_000],
    "below 0": [-(10**10_000)],
    "itself": in_itself(),
    "tuples": nested(tuple),
    "a dict": {0: 1},
    "a text": "0" * 10**7,
    "complex": [1j],
    "not a number": [float("nan")],
    "a large array": huge(10**9),
    "an array of no axes": np.array(1),
}


def refused(call: Callable[[], object]) -> str:
    """The sentence with which a call is refused within SECONDS; it is short, whatever was given."""
    begun = process_time()
    with pytest.raises(MhaVizError) as raised:
        call()
    took = process_time() - begun
    said = str(raised.value)
    assert took < SECONDS, (took, said)
    assert said.endswith((".", "?")), said
    assert len(said) < 600, len(said)
    return said


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_hold_no_attention_are_refused(name: str) -> None:
    given = ARRAYS[name]()
    refused(lambda: Attention.from_tensors(given, TOKENS))
    refused(lambda: Attention.from_cache(ARRAYS[name](), TOKENS))
    refused(lambda: head_view(ARRAYS[name](), TOKENS, html_action="return"))


@pytest.mark.parametrize("name", ["complex", "complex, without an imaginary part", "objects", "texts", "dates"])
def test_a_reading_takes_no_other_kind_of_numbers(name: str) -> None:
    given = ARRAYS[name]()[:, 0]
    good = Attention.from_tensors(layers(), TOKENS)
    assert "not real numbers" in refused(lambda: Attention("m", "", good.queries, given))
    assert "not real numbers" in refused(lambda: Attention("m", "", good.queries, good.weights, given))


def test_tensors_without_real_numbers_are_refused() -> None:
    import torch

    for given in (
        torch.full((1, 2, 3, 3), 1 / 3, dtype=torch.complex64),
        torch.empty((1, 2, 3, 3), device="meta"),
        torch.ones(1).expand(1, 2, 31_623, 31_623),
        torch.full((1, 2, 3, 3), 1 / 3).to_sparse(),
    ):
        refused(lambda given=given: Attention.from_tensors((given,), TOKENS))  # type: ignore[misc]


def test_kinds_of_real_numbers_are_read() -> None:
    sharp = np.broadcast_to(np.eye(3), (2, 1, 2, 3, 3))
    readings = [Attention.from_tensors(sharp.astype(kind), TOKENS) for kind in ("?", "u1", "i8", "f2", "f4", "f8")]
    assert {one.key for one in readings} == {readings[0].key}
    assert Attention.from_tensors(sharp.tolist(), TOKENS).key == readings[0].key


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_no_list_of_texts_are_refused(name: str) -> None:
    refused(lambda: Attention.from_tensors(layers(), NAMES[name]))
    refused(lambda: Attention.from_tensors(layers(), TOKENS, NAMES[name]))
    refused(lambda: model_view(layers(), NAMES[name], html_action="return"))


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_the_arrays_is_refused(name: str) -> None:
    refused(lambda: Attention.from_tensors(layers(), TOKENS, **BESIDE[name]))
    if not {"model", "revision", "quantity"} & BESIDE[name].keys():
        each = {argument: {0: value} for argument, value in BESIDE[name].items()}
        refused(lambda: Attention.from_tensors(layers(), [TOKENS], **each))


@pytest.mark.parametrize("name", CACHES)
def test_caches_whose_layers_nobody_can_count_are_refused(name: str) -> None:
    given = CACHES[name]()
    refused(lambda: Attention.from_cache(given, TOKENS))


def test_a_long_number_in_the_name_of_something_else_is_no_layer() -> None:
    cache = {PATTERN.format(0): layers()[0], f"run.{'7' * 5_000}.loss": 0.5}
    assert Attention.from_cache(cache, TOKENS).layers == 1


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("names", in_itself()),
        ("names", 10**10_000),
        ("values", range(10**9)),
        ("values", endless()),
        ("values", [np.ones((3, 2, 2), complex)] * 2),
        ("values", [huge(3, 2, 10**9)] * 2),
        ("w_o", range(10**9)),
        ("w_o", in_itself(2)),
        ("w_o", [huge(2, 2, 10**9)] * 2),
        ("w_o", [np.ones((2, 2, 2), complex)] * 2),
    ],
    ids=range(10),
)
def test_what_norms_are_computed_from_is_refused(argument: str, given: Any) -> None:
    options: Any = {"w_o": [np.ones((2, 2, 2))] * 2, "values": [np.ones((3, 2, 2))] * 2, argument: given}
    cache = {f"a.{layer}": one for layer, one in enumerate(layers())} if argument == "names" else [*layers()]
    refused(lambda: Attention.from_cache(cache, TOKENS, **options))


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_heads_and_layers_are_counted_before_they_are_read(name: str) -> None:
    def listed() -> Any:
        return endless() if LISTS[name] is None else LISTS[name]

    reading: Any = Attention.from_tensors(layers(), TOKENS)
    for call in (
        lambda: reading.grid(heads=listed()),
        lambda: reading.grid(layers=listed()),
        lambda: reading.heatmap(heads=listed()),
        lambda: reading.links(heads=listed()),
        lambda: reading.only(listed()),
        lambda: mha_viz.compare(listed()),
        lambda: mha_viz.publish(listed(), "page.html", title="", remarks=[]),
        lambda: head_view(layers(), TOKENS, heads=listed(), html_action="return"),
        lambda: head_view(layers(), TOKENS, include_layers=listed(), html_action="return"),
        lambda: head_view(layers(), TOKENS, layer=listed(), html_action="return"),
        lambda: model_view(layers(), TOKENS, include_layers=listed(), html_action="return"),
        lambda: model_view(layers(), TOKENS, include_heads=listed(), html_action="return"),
        lambda: reading[listed()],
        lambda: reading.heatmap(listed()),
    ):
        refused(call)


@pytest.mark.parametrize(
    "given",
    [10**5_000, -(10**5_000), (10**5_000, 0), Head(10**5_000, 0), Head(0, -(10**5_000))],
    ids=["layer", "layer below 0", "pair", "head", "head below 0"],
)
def test_a_head_with_a_number_that_cannot_be_written_is_unknown(given: Any) -> None:
    reading = Attention.from_tensors(layers(), TOKENS)
    refused(lambda: reading[given])
    refused(lambda: reading.links(given, 0))
    refused(lambda: reading.only([given]))


@pytest.mark.parametrize(
    "given",
    [10**5_000, float("nan"), in_itself(), 1j, "8" * 10**6, nested(tuple)],
    ids=["digits", "nan", "itself", "complex", "text", "tuples"],
)
@pytest.mark.parametrize(
    "option", ["width_mm", "width_in", "font_pt", "max_height_mm", "look", "scale", "links", "pin"]
)
def test_an_option_of_a_figure_with_such_a_value_is_refused(option: str, given: Any) -> None:
    reading: Any = Attention.from_tensors(layers(), TOKENS)
    refused(lambda: reading.grid(**{option: given}))


def test_a_value_is_shortened_whatever_it_is() -> None:
    for given in (in_itself(), nested(tuple), 10**10_000, Counts(), range(10**30), shared(9, 9, 9, 9), "a" * 10**8):
        begun = process_time()
        assert 0 < len(shorten_value(given)) <= 40
        assert process_time() - begun < SECONDS
    assert (shorten_value(None), shorten_value([1, "a"]), shorten_value(2.5)) == ("None", "[1, 'a']", "2.5")


def test_a_list_is_read_up_to_its_end_or_its_bound() -> None:
    assert list_items((n for n in range(3)), "heads", "Give a list.", 3) == [0, 1, 2]
    with pytest.raises(SettingError, match="heads has more than 3 entries"):
        list_items(itertools.count(), "heads", "Give a list.", 3)


# ---- Saved files ----------------------------------------------------------------------------------------------


def npz(shape: str, kind: str = "'<f4'", content: bytes = b"") -> bytes:
    """A file whose weights have this header."""
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content
    stream = io.BytesIO()
    head = np.frombuffer(b"{}", np.uint8)
    with zipfile.ZipFile(stream, "w") as archive:
        written = io.BytesIO()
        np.save(written, head)
        archive.writestr("reading.npy", written.getvalue())
        archive.writestr("weights.npy", array)
        archive.writestr("hidden.npy", array)
    return stream.getvalue()


def tensors(shape: list[int], kind: str, content: bytes = b"") -> bytes:
    each = {"dtype": kind, "shape": shape, "data_offsets": [0, len(content)]}
    more = {**each, "data_offsets": [len(content)] * 2, "shape": [0]}
    head = json.dumps({"__metadata__": {"reading": "{}"}, "weights": each, "hidden": more}).encode()
    return struct.pack("<Q", len(head)) + head + content


FILES = {
    "no numbers, too long an axis": ("x.npz", npz(f"(0, {10**30})")),
    "10⁹ numbers": ("x.npz", npz(f"({10**9},)")),
    "an axis of 5,000 digits": ("x.npz", npz(f"({'9' * 5_000},)")),
    "below 0": ("x.npz", npz("(-1, -1)", content=b"\0" * 4)),
    "objects": ("x.npz", npz("(1,)", "'|O'", b"\0" * 8)),
    "complex": ("x.npz", npz("(1,)", "'<c8'", b"\0" * 8)),
    "records in itself": ("x.npz", npz("(1,)", "[" * 900 + "]" * 900)),
    "an axis that is a text": ("x.npz", npz("('a',)")),
    "16-bit tensors": ("x.safetensors", tensors([2], "BF16", b"\0" * 4)),
    "8-bit tensors": ("x.safetensors", tensors([2], "F8_E4M3", b"\0" * 2)),
    "tensors of 10³⁰": ("x.safetensors", tensors([10**30, 0], "F32")),
    "tensors below 0": ("x.safetensors", tensors([-1], "F32")),
}


@pytest.mark.parametrize("name", FILES)
def test_saved_files_that_lie_about_their_arrays_are_refused(tmp_path: Path, name: str) -> None:
    file, content = FILES[name]
    (tmp_path / file).write_bytes(content)
    refused(lambda: mha_viz.load_attention(tmp_path / file))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 10**400),
        ("version", 1e300),
        ("made", [[[[[]]]]]),
        ("made", [10**400]),
        ("made", [{"kind": "only", "heads": [[10**400, 0]]}]),
        ("queries", []),
        ("queries", {"tokens": 10**400}),
        ("keys", 3),
        ("quantity", []),
        ("digest", None),
        ("model", {}),
    ],
    ids=range(11),
)
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_heading_with_another_value_is_refused(tmp_path: Path, field: str, value: Any, suffix: str) -> None:
    good = Attention.from_tensors(layers(), TOKENS)
    place = good.save(tmp_path / f"good.{suffix}")
    content = place.read_bytes()
    from mha_viz.figures.files import saved_readings

    fields = json.loads(saved_readings.build_header(good)) | {field: value}
    head = json.dumps(fields).encode()
    if suffix == "npz":
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
            for member in old.namelist():
                array = io.BytesIO()
                np.save(array, np.frombuffer(head, np.uint8))
                new.writestr(member, array.getvalue() if member == "reading.npy" else old.read(member))
        place.write_bytes(stream.getvalue())
    else:
        length = struct.unpack("<Q", content[:8])[0]
        described = json.loads(content[8 : 8 + length])
        described["__metadata__"]["reading"] = head.decode()
        begun = json.dumps(described).encode()
        place.write_bytes(struct.pack("<Q", len(begun)) + begun + content[8 + length :])
    refused(lambda: mha_viz.load_attention(place))


def test_numbers_of_many_digits_can_be_written_on_no_machine_here() -> None:
    """Show what makes them hostile: Python refuses to write them, with an error of its own."""
    if hasattr(sys, "get_int_max_str_digits"):
        with pytest.raises(ValueError, match="digits"):
            str(10**10_000)
