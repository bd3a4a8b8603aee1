"""A saved reading is equal when opened again; a damaged or foreign file leads to an error in words."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import mha_viz as mv
from mha_viz.attention import Attention
from mha_viz.attention.steps import WRITTEN, Step, StepData
from mha_viz.errors import ExportError, MhaVizError, OpenError
from mha_viz.figures import files
from mha_viz.text import Cut, Token, TokenizedText
from tests import hostile, lanes
from tests.readings import reading

SUFFIXES = (".npz", ".safetensors")


def cut_reading() -> Attention:
    """A text that was read only in part, with an unknown piece and a lone surrogate, which UTF-8 cannot encode."""
    tokens = (Token("[CLS]", None, 0, None, None), Token("\ud800\0", 0, 0, 0, 2, False))
    text = TokenizedText("\ud800\0 and more", "", tokens, Cut(9, 2, (2, 0), True))
    return Attention("m\ud800", "r", text, np.full((1, 1, 2, 2), 0.5, np.float32), made=("typed",))


def readings() -> dict[str, Attention]:
    raw = reading(2, 3, (1, 2, 1), (2,))
    other = reading(2, 3, (3,), seed=4)
    wide = np.random.default_rng(1).dirichlet(np.ones(len(other.text)), (2, 3, len(raw.text))).astype(np.float32)
    steps = raw.by_words().without_special().only(["L1H2", "L0H0"])
    given_words = TokenizedText("abab", "", raw.text.tokens[:3], given=("ab", "ab"))
    return {
        "raw": raw,
        "steps": steps,
        "cut": cut_reading(),
        "invisible end": invisible_end(),
        "given words": Attention("m", "", given_words, np.full((1, 1, 3, 3), 1 / 3), made=("given words",)),
        "cross": Attention("m", "", raw.text, wide, keys=other.text),
        "norms": Attention("m", "r", raw.text, 7 * raw.weights, quantity="norm", made=("typed", "norms")),
        "columns first": Attention("m", "", raw.text, np.asfortranarray(raw.weights)),
    }


def invisible_end() -> Attention:
    """A model wrote only a special token, which has no text."""
    return Attention(
        "m", "", cut_reading().text, np.full((1, 1, 2, 2), 0.5), made=(Step(StepData(WRITTEN, source="")),)
    )


def assert_equal(one: Attention, two: Attention) -> None:
    for name in ("model", "revision", "queries", "keys", "quantity", "made", "key", "is_cross"):
        assert getattr(one, name) == getattr(two, name), name
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.hidden, two.hidden)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", readings())
def test_a_reading_comes_back_equal(tmp_path: Path, name: str, suffix: str) -> None:
    attention = readings()[name]
    path = attention.save(tmp_path / f"a{suffix}")
    again = mv.load_attention(str(path))
    assert_equal(again, attention)
    assert not again.weights.flags.writeable
    assert_equal(mv.load_attention(again.save(tmp_path / f"b{suffix}")), attention)
    assert again.by_words().key == attention.by_words().key


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", readings())
def test_a_file_of_an_earlier_version_is_opened(tmp_path: Path, name: str, version: int) -> None:
    """Until version 2, steps were text; until 3, any numbers were called weights, and no model had another name."""
    attention = readings()[name]
    attention.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        arrays = {**file}
    fields = json.loads(arrays["reading"].tobytes()) | {"version": version}
    fields |= {"made": list(map(str, attention.made))} if version == 2 else {}
    del fields["display_name"]
    arrays["reading"] = np.frombuffer(json.dumps(fields).encode(), np.uint8)
    arrays["weights"] = arrays.pop(str(arrays.pop("numbers")))
    np.savez(tmp_path / "b.npz", allow_pickle=False, **arrays)
    assert_equal(mv.load_attention(tmp_path / "b.npz"), attention)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_weights_that_were_saved_as_changed_although_they_are_not_are_opened(tmp_path: Path, suffix: str) -> None:
    attention = readings()["invisible end"]
    path = attention.save(tmp_path / f"a{suffix}")
    if suffix == ".npz":
        arrays = {**np.load(path, allow_pickle=False)}
        arrays["weights_changed"] = arrays.pop("weights")
        np.savez(path, allow_pickle=False, **arrays)
    else:
        tensors = load_tensors(path.read_bytes())
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
        path.write_bytes(save_tensors({"weights_changed": tensors["weights"], "hidden": tensors["hidden"]}, metadata))
    assert_equal(mv.load_attention(path), attention)


@pytest.mark.parametrize("text", hostile.KINDS.values(), ids=hostile.KINDS)
def test_hostile_texts_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    tokens = (Token(text or " ", 0, 0, 0, len(text)),)
    attention = Attention(text[:100], "", TokenizedText(text, text, tokens), np.ones((1, 1, 1, 1), np.float32))
    for suffix in SUFFIXES:
        assert_equal(mv.load_attention(attention.save(tmp_path / f"a{suffix}")), attention)


def test_what_is_saved_can_be_written_in_other_formats_too(tmp_path: Path) -> None:
    assert reading().save(tmp_path / "a.csv").read_bytes() == files.to_bytes(reading(), ".csv")


def test_a_text_that_could_not_be_opened_again_is_not_saved(tmp_path: Path) -> None:
    beyond = TokenizedText("a", "", (Token("a", 0, 0, 0, 9),))
    attention = Attention("m", "", beyond, np.ones((1, 1, 1, 1), np.float32))
    for suffix in SUFFIXES:
        with pytest.raises(ExportError, match=r"cannot be saved: .* where a span in .* was expected. Correct"):
            attention.save(tmp_path / f"a{suffix}")
    assert list(tmp_path.iterdir()) == []
    assert attention.save(tmp_path / "a.csv").is_file()


# ---- Files that are not saved readings ---------------------------------------------------------------------


def changed_arrays(**changes: Any) -> bytes:
    """The .npz of a reading with some arrays replaced, or left out if None."""
    with np.load(io.BytesIO(files.to_bytes(reading(), ".npz")), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files} | changes
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in arrays.items() if array is not None})
    return buffer.getvalue()


def changed_heading(**changes: Any) -> bytes:
    """The .npz of a reading with a changed heading."""
    with np.load(io.BytesIO(files.to_bytes(reading(), ".npz")), allow_pickle=False) as file:
        fields = json.loads(file["reading"].tobytes()) | changes
    fields = {name: value for name, value in fields.items() if value != "gone"}
    return changed_arrays(reading=np.frombuffer(json.dumps(fields).encode(), np.uint8))


def changed_text(**changes: Any) -> bytes:
    with np.load(io.BytesIO(files.to_bytes(reading(), ".npz")), allow_pickle=False) as file:
        queries = json.loads(file["reading"].tobytes())["queries"]
    return changed_heading(queries=queries | changes)


def token(**changes: Any) -> dict[str, Any]:
    return {"text": "a", "word": 0, "segment": 0, "start": 0, "end": 1, "known": True} | changes


def compressed() -> bytes:
    buffer = io.BytesIO()
    with np.load(io.BytesIO(files.to_bytes(reading(), ".npz")), allow_pickle=False) as file:
        np.savez_compressed(buffer, **{name: file[name] for name in file.files})
    return buffer.getvalue()


def claiming(shape: str) -> bytes:
    """An array of 4 bytes whose header declares another shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(4)
    return members({"reading.npy": b"", "weights.npy": array, "hidden.npy": array})


def members(named: dict[str, bytes]) -> bytes:
    """A zip file of a reading with other members in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, zipfile.ZipFile(io.BytesIO(files.to_bytes(reading(), ".npz"))) as old:
        for name in old.namelist():
            file.writestr(name, old.read(name) if name == "reading.npy" or name not in named else named[name])
        for name in sorted(set(named) - set(old.namelist())):
            file.writestr(name, named[name])
    return buffer.getvalue()


WEIGHTS = reading().weights
NPZ: list[tuple[str, Any, str]] = [
    ("nothing in it", lambda: b"", "is damaged, or of another kind"),
    ("a text", lambda: b"layer,head\n", "is damaged, or of another kind"),
    ("a pickle", lambda: pickle.dumps([1]), "is damaged, or of another kind"),
    ("arrays of somebody else", lambda: members({}) and foreign(), "is not a saved reading. Open a file that save"),
    ("compressed", compressed, "is damaged, or of another kind"),
    ("objects", lambda: changed_arrays(weights=np.array([{}], object)), "is damaged, or of another kind"),
    ("doubles", lambda: changed_arrays(weights=WEIGHTS.astype(float)), "is damaged, or of another kind"),
    ("no weights", lambda: changed_arrays(weights=None), "is damaged, or of another kind"),
    ("a claim of much", lambda: claiming("(1000000, 1000000)"), "is damaged, or of another kind"),
    ("a claim below 0", lambda: claiming("(-1, -1)"), "is damaged, or of another kind"),
    ("many members", lambda: members({f"{i}.npy": b"" for i in range(200)}), "is damaged, or of another kind"),
    ("other weights", lambda: changed_arrays(weights=WEIGHTS[::-1].copy()), "was changed after it was saved"),
    ("too few weights", lambda: changed_arrays(weights=WEIGHTS[..., :-1].copy()), "damaged: The weights have shape"),
    (
        "weights that do not sum",
        lambda: changed_arrays(weights=2 * WEIGHTS),
        "damaged: Layer 1, head 0, row 4 sums to 2",
    ),
    ("not a number", lambda: changed_arrays(weights=WEIGHTS * np.nan), "damaged: .* not numbers"),
    ("another model", lambda: changed_heading(model="gpt2"), "was changed after it was saved"),
    ("another history", lambda: changed_heading(made=[{"name": "typed"}]), "was changed after it was saved"),
    ("a later version", lambda: changed_heading(version=99), "by a later version of mha_viz. Install"),
    ("an earlier version", lambda: changed_heading(version=1), "by an earlier version of mha_viz. Install"),
    (
        "an unknown quantity",
        lambda: changed_heading(quantity="mood"),
        "“mood”, a quantity that is not known here. Known",
    ),
    ("a number for a name", lambda: changed_heading(model=3), "is damaged, or of another kind"),
    ("a field gone", lambda: changed_heading(keys="gone"), "is damaged, or of another kind"),
    ("a long name", lambda: changed_heading(model="x" * 200_000), "is damaged, or of another kind"),
    ("not JSON", lambda: changed_arrays(reading=np.zeros(9, np.uint8)), "is damaged, or of another kind"),
    ("a list", lambda: changed_arrays(reading=np.frombuffer(b"[]", np.uint8)), "is damaged, or of another kind"),
    ("deep", lambda: changed_arrays(reading=np.frombuffer(b"[" * 200_000, np.uint8)), "fit into memory|damaged"),
    ("a text for tokens", lambda: changed_text(tokens="abc"), "damaged: 'abc' was found where a list of tokens"),
    ("a span outside", lambda: changed_text(tokens=[token(end=10**6)]), "where a span in its sentence was expected"),
    ("half a span", lambda: changed_text(tokens=[token(end=None)]), "where a span was expected"),
    ("a third sentence", lambda: changed_text(tokens=[token(segment=2)]), "where sentence 0 or 1 was expected"),
    ("a word below 0", lambda: changed_text(tokens=[token(word=-1)]), "where the number of a word was expected"),
    ("other units", lambda: changed_text(unit="letters"), "where pieces or words was expected"),
    ("no cut", lambda: changed_text(cut={"pieces": 1}), "where a truncation was expected"),
]


def foreign() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.ones(3))
    return buffer.getvalue()


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in NPZ], ids=[case[0] for case in NPZ])
def test_another_npz_is_answered_in_words(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content())
    with pytest.raises(OpenError, match=message) as caught:
        mv.load_attention(path)
    assert caught.value.remedy
    assert len(str(caught.value)) < 400


def safetensors_of(**changes: Any) -> bytes:
    raw = files.to_bytes(reading(), ".safetensors")
    fields = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    return save_tensors(load_tensors(raw) | changes, fields)


SAFETENSORS: list[tuple[str, Any, str]] = [
    ("nothing in it", lambda: b"", "is damaged, or of another kind"),
    ("a heading of much", lambda: (1 << 60).to_bytes(8, "little") + b"{}", "is damaged, or of another kind"),
    ("a model", lambda: save_tensors({"w": np.ones(3, np.float32)}), "is not a saved reading"),
    ("doubles", lambda: safetensors_of(weights=WEIGHTS.astype(float)), "is damaged, or of another kind"),
    ("other weights", lambda: safetensors_of(weights=WEIGHTS[::-1].copy()), "was changed after it was saved"),
    ("cut off", lambda: files.to_bytes(reading(), ".safetensors")[:-5], "is damaged, or of another kind"),
]


@pytest.mark.parametrize(
    ("content", "message"), [case[1:] for case in SAFETENSORS], ids=[case[0] for case in SAFETENSORS]
)
def test_another_safetensors_is_answered_in_words(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content())
    with pytest.raises(OpenError, match=message):
        mv.load_attention(path)


def test_places_that_hold_no_file_are_answered_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    answers = {
        "gone.npz": "“gone.npz” does not exist. Give the path",
        "pipe.npz": "is not a file",
        "folder.npz": "is not a file",
        "a.csv": "“.csv” cannot be opened as a reading. Open a file that save.. wrote as .npz or .safetensors",
        "a": "“a” has no suffix",
        "a\0.npz": "does not exist|cannot be read|is damaged",
    }
    for name, message in answers.items():
        with pytest.raises(OpenError, match=message):
            mv.load_attention(tmp_path / name)
    with pytest.raises(OpenError, match="3' is not a path"):
        mv.load_attention(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=150 if lanes.everything else 40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_an_error_of_the_family_or_the_same_reading(
    tmp_path: Path, suffix: str, data: st.DataObject
) -> None:
    """Bytes without a checksum may change without harm: then the reading is the saved one."""
    attention = reading()
    raw = bytearray(files.to_bytes(attention, suffix))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    else:
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
            raw[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path / f"a{suffix}"
    path.write_bytes(raw)
    try:
        again = mv.load_attention(path)
    except MhaVizError:
        return
    assert_equal(again, attention)
