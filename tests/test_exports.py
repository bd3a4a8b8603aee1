"""Exported files: every format reads back to the same numbers, tokens and text, and no incomplete file is left."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from mha_viz.attention import Attention
from mha_viz.errors import ExportError
from mha_viz.figures import files
from mha_viz.text import Token, TokenizedText, clean
from tests import hostile
from tests.readings import ducks

ALL = (".npz", ".safetensors", ".csv", ".json")


def one_token(text: str) -> Attention:
    """A reading whose whole text is one token, to test any typed text as a cell."""
    token = Token(text, 0, 0, 0, len(text))
    return Attention("tiny", "", TokenizedText(text, "", (token,)), np.ones((1, 1, 1, 1), np.float32))


def rows_of(attention: Attention) -> list[dict[str, str]]:
    written = files.to_bytes(attention, ".csv").decode()
    return list(csv.DictReader(io.StringIO(written, newline="")))


def tree_of(attention: Attention) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(files.to_bytes(attention, ".json"))
    return tree


def test_the_formats_are_these_and_each_says_what_it_is() -> None:
    assert files.suffixes() == ALL
    assert all(len(files.describe(suffix)) > 20 for suffix in ALL)


def test_npz_reads_back_without_pickle(tmp_path: Path) -> None:
    attention = ducks().without_special()
    with np.load(files.write(attention, tmp_path / "a.npz"), allow_pickle=False) as file:
        assert str(file["numbers"]) == "weights_rescaled"
        assert file["weights_rescaled"].dtype == np.float32
        np.testing.assert_array_equal(file["weights_rescaled"], attention.weights)
        np.testing.assert_array_equal(file["hidden"], attention.hidden)
        assert (str(file["model"]), str(file["revision"]), str(file["unit"])) == ("tiny", "rev-1", "pieces")
        assert (str(file["text"]), str(file["pair"])) == ("Ducks, +1", "=x")
        assert file["tokens"].tolist() == list(attention.tokens)
        spans = list(zip(file["start"].tolist(), file["end"].tolist(), file["segment"].tolist(), strict=True))
    assert spans == [(t.start, t.end, t.segment) for t in attention.text.tokens]


def test_npz_marks_what_special_tokens_do_not_have(tmp_path: Path) -> None:
    with np.load(files.write(ducks(), tmp_path / "a.npz"), allow_pickle=False) as file:
        assert file["word"].tolist() == [-1, 0, 0, 1, 2, -1, 3, -1]
        assert file["start"].tolist() == [-1, 0, 4, 5, 7, -1, 0, -1]


def test_safetensors_reads_back(tmp_path: Path) -> None:
    attention = ducks()
    path = files.write(attention, tmp_path / "a.safetensors")
    with safe_open(path, framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("weights"), attention.weights)
        np.testing.assert_array_equal(file.get_tensor("hidden"), attention.hidden)
        metadata = file.metadata()
    assert {k: metadata[k] for k in ("model", "revision", "unit", "text", "pair")} == {
        "model": "tiny",
        "revision": "rev-1",
        "unit": "pieces",
        "text": "Ducks, +1",
        "pair": "=x",
    }
    assert json.loads(metadata["tokens"])[4] == {"text": "+1", "word": 2, "segment": 0, "start": 7, "end": 9}


def test_csv_is_the_long_form_exactly() -> None:
    attention = ducks()
    rows = rows_of(attention)
    columns = ["layer", "head", "query_index", "query_token", "key_index", "key_token", "weight"]
    assert list(rows[0]) == [*columns, "of_model", "quantity", "text", "made"]
    origins = [[row[name] for name in ("of_model", "quantity", "text", "made")] for row in rows]
    assert origins[0] == ["tiny (revision rev-1)", "weight", "Ducks, +1 / =x", ""]
    assert {cell for origin in origins[1:] for cell in origin} == {""}  # a long text in every row would take gigabytes
    assert len(rows) == attention.weights.size
    read = np.array([np.float32(row["weight"]) for row in rows]).reshape(attention.weights.shape)
    np.testing.assert_array_equal(read, attention.weights)
    axes = ("layer", "head", "query_index", "key_index")
    assert [tuple(int(row[axis]) for axis in axes) for row in rows] == list(np.ndindex(attention.weights.shape))
    assert {(row["query_index"], row["query_token"]) for row in rows} >= {("1", "Duck"), ("3", ","), ("5", "[SEP]")}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_csv_never_holds_a_formula(start: str) -> None:
    row = rows_of(one_token(f"{start}1+1"))[0]
    assert (row["query_token"], row["key_token"]) == (f"'{start}1+1",) * 2
    assert rows_of(one_token(f"1{start}1"))[0]["key_token"] == f"1{start}1"


def test_json_reads_back() -> None:
    attention = ducks()
    tree = tree_of(attention)
    np.testing.assert_array_equal(np.array(tree["weights"], np.float32), attention.weights)
    np.testing.assert_array_equal(np.array(tree["hidden"], np.float32), attention.hidden)
    assert (tree["model"], tree["revision"], tree["text"], tree["pair"]) == ("tiny", "rev-1", "Ducks, +1", "=x")
    assert tree["tokens"][1] == {"text": "Duck", "word": 0, "segment": 0, "start": 0, "end": 4}
    assert tree["tokens"][0]["start"] is None


def test_the_unit_follows_the_tokens() -> None:
    attention = ducks()
    assert tree_of(attention)["unit"] == "pieces"
    words = tree_of(attention.by_words())
    assert words["unit"] == "words"
    assert [t["text"] for t in words["tokens"]] == ["[CLS]", "Ducks", ",", "+1", "[SEP]", "=x", "[SEP]"]


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 999))
def test_json_is_valid_for_every_shape(layers: int, heads: int, seed: int) -> None:
    attention = ducks(seed, layers, heads)
    np.testing.assert_array_equal(np.array(tree_of(attention)["weights"], np.float32), attention.weights)


@pytest.mark.parametrize("name", [n for n, text in hostile.KINDS.items() if text])
def test_hostile_text_survives_every_format(name: str) -> None:
    typed = hostile.KINDS[name][:2000]
    attention, shown_text = one_token(typed), clean(typed)
    cell = rows_of(attention)[0]["key_token"]
    assert cell in (shown_text, "'" + shown_text)
    assert tree_of(attention)["text"] == tree_of(attention)["tokens"][0]["text"] == shown_text
    with np.load(io.BytesIO(files.to_bytes(attention, ".npz")), allow_pickle=False) as file:
        assert str(file["text"]) == str(file["tokens"][0]) == shown_text
    written = files.to_bytes(attention, ".safetensors")
    header = json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])
    assert header["__metadata__"]["text"] == shown_text


@pytest.mark.parametrize("suffix", [".csv", ".json", ".JSON"])
def test_file_and_bytes_are_the_same(tmp_path: Path, suffix: str) -> None:
    path = files.write(ducks(), tmp_path / f"heads{suffix}")
    assert path.read_bytes() == files.to_bytes(ducks(), suffix)


@pytest.mark.parametrize("name", ["heads.xlsx", "heads", "heads.npz.bak", ".npz", "heads.", "x." + "y" * 300])
def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match=r"\.npz, \.safetensors, \.csv, \.json"):
        files.write(ducks(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["no/such/folder/a.npz", "file/a.npz", "folder.npz", "n" * 300 + ".npz", "loop/a.npz", "nul\0.npz", "\ud800.npz"],
)
def test_a_place_that_cannot_be_written_is_said_on_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ExportError) as caught:
        files.write(ducks(), tmp_path / name)
    assert "cannot be written" in caught.value.problem
    assert caught.value.problem.isprintable()
    assert caught.value.remedy
    assert sorted(tmp_path.iterdir()) == before


def test_an_existing_file_is_replaced_and_a_link_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    files.write(ducks(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text("utf-8"))["model"] == "tiny"
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


FULL_DISK = """
import resource, sys
from mha_viz.figures import files as exports
from mha_viz.errors import ExportError
from tests.readings import ducks
resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
for path in sys.argv[1:]:
    try:
        exports.write(ducks(), path)
    except ExportError as error:
        print(error)
"""


@pytest.mark.app
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a file to run into")
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    paths = [tmp_path / f"heads{suffix}" for suffix in ALL]
    for path in paths:
        path.write_text("what was there")
    code = [sys.executable, "-c", FULL_DISK, *map(str, paths)]
    done = subprocess.run(code, cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True)
    assert done.stdout.count("cannot be written: file too large") == len(ALL)
    assert [path.read_text() for path in paths] == ["what was there"] * len(ALL)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
