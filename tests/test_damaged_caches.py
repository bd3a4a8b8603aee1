"""One damaged byte in anything that the app keeps for itself is noticed, and the thing is made again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

import mha_viz as mv
from mha_viz.analysis.evidence import CASE_DTYPE, Selection
from mha_viz.analysis.profile import FACTS_FILE, read_findings
from mha_viz.analysis.syntax import Relations
from mha_viz.analysis.unusual_heads import read_habits
from mha_viz.errors import CorpusError, MhaVizError, ModelBroken
from mha_viz.files import assets, digests, npm
from mha_viz.models.getting import catalog, snapshots
from mha_viz.models.getting.hub import find_local_folder
from mha_viz.study import sums
from mha_viz.study.cases import Cases, read_cases
from mha_viz.study.sums import Sums
from tests import lanes
from tests.fake_hub import FakeHub, Repository, tiny_bert_files
from tests.readings import ducks


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile with every table that the built-in sentences allow."""
    folder = tmp_path_factory.mktemp("measured")
    mv.load_profile(assets.asset_path("profiles/minilm/ewt")).save(folder)
    return folder


@contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    """The file with another content; afterwards it is whole again, whatever happened."""
    whole = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(whole)


def with_another_digit(path: Path) -> bytes:
    """A text with one digit changed in its middle, or one letter where it has none."""
    text = path.read_text("utf-8")
    places = [m.start() for m in re.finditer(r"\d", text)] or [m.start() for m in re.finditer("[a-z]", text)]
    at = places[len(places) // 2]
    return f"{text[:at]}{'7' if text[at] != '7' else '3'}{text[at + 1 :]}".encode()


def test_one_digit_in_any_file_of_a_profile_is_noticed(measured: Path) -> None:
    files = sorted(path for path in measured.rglob("*") if path.is_file())
    assert len(files) > 15
    for path in files:
        with changed(path, with_another_digit(path)):
            with pytest.raises(CorpusError, match=r"as it was written|holds no readable profile"):
                mv.load_profile(measured)
            if path.name in ("roles.csv", "position.csv", FACTS_FILE) and path.parent == measured:
                with pytest.raises(CorpusError):
                    read_findings(measured)
    assert mv.load_profile(measured) == mv.load_profile(assets.asset_path("profiles/minilm/ewt"))


def test_digests_are_no_facts_and_a_profile_without_them_is_opened(measured: Path) -> None:
    shipped = mv.load_profile(assets.asset_path("profiles/minilm/ewt"))
    assert shipped.facts.keys() == mv.load_profile(measured).facts.keys()


# ---- One byte of any file of each kind ------------------------------------------------------------------------------


def flips(path: Path, most: int) -> Iterator[int]:
    """Flip one bit of a file for each of at most ``most`` seeded places, a third of them in its first and last bytes,
    where names, sizes and headings are; the file is whole again after each."""
    whole, random = path.read_bytes(), Random(path.name)
    ends = [at % len(whole) for at in range(-min(2000, len(whole)), min(2000, len(whole)))]
    places = [random.choice(ends) for _ in range(most // 3)] + [random.randrange(len(whole)) for _ in range(most)]
    for at in places[:most]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << random.randrange(8)
        with changed(path, bytes(damaged)):
            yield at


def silent_changes(path: Path, most: int, read: Callable[[], object], before: object = None) -> list[int]:
    """The places at which a flipped bit gives another value than before. A file is noticed to be damaged where ``read``
    raises an error of the family, or returns None."""
    before = read() if before is None else before
    assert before is not None
    silent = []
    for at in flips(path, most):
        with suppress(MhaVizError):
            now = read()
            silent += [at] * (now is not None and now != before)
    return silent


def test_no_bit_of_a_profile_changes_it_silently(measured: Path) -> None:
    """What it found and what heads do in most texts are read anew for every bit. The whole is opened with --all; a
    changed digit is noticed above."""
    found, whole = read_findings(measured), mv.load_profile(measured)

    def habits() -> object:
        return {what: shares.tolist() for what, shares in read_habits(measured).items()}

    for path in sorted(path for path in measured.rglob("*") if path.is_file()):
        most = 60 if path.name == FACTS_FILE else 2
        assert silent_changes(path, most, lambda: read_findings(measured), found) == [], path.name
        assert silent_changes(path, most, habits) == [], path.name
        if lanes.everything:
            assert silent_changes(path, most, lambda: mv.load_profile(measured), whole) == [], path.name


def test_no_bit_of_stored_recipes_changes_them_silently(tmp_path: Path) -> None:
    folder = mv.recipes.load("toy").save(tmp_path / "recipes")

    def read() -> object:
        one = mv.recipes.load(folder)
        return one.facts, {name: table.to_dict() for name, table in one.tables.items()}

    for path in sorted(folder.iterdir()):
        assert silent_changes(path, 60, read) == [], path.name


def test_no_bit_of_a_library_of_a_page_that_reads_is_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A damaged one is fetched again."""
    whole, times = {"a.mjs": b"export const a = 1;", "b.wasm": bytes(range(256))}, list[int]()
    package = npm.Package("@some/library", "1.0.0", "", ["dist/a.mjs", "b.wasm"])
    monkeypatch.setattr(npm, "_fetch_archive", lambda *_: times.append(1) or b"")
    monkeypatch.setattr(npm, "_unpack_archive", lambda *_: dict(whole))
    assert npm.fetch_files(package, tmp_path) == npm.fetch_files(package, tmp_path) == whole
    assert len(times) == 1
    (folder,) = tmp_path.iterdir()
    for name in (*whole, digests.FILE_NAME):
        before = len(times)
        for number, _ in enumerate(flips(folder / name, 6), 1):
            assert npm.fetch_files(package, tmp_path) == whole
            assert len(times) == before + number
    (folder / "a.mjs").unlink()
    assert npm.fetch_files(package, tmp_path) == whole
    assert [*tmp_path.iterdir()] == [folder]


@pytest.mark.parametrize("finished", [True, False])
def test_no_bit_of_stored_sums_changes_them_silently(finished: bool, tmp_path: Path) -> None:
    relations, path = Relations((), ("obj",), ("NOUN",)), tmp_path / "a.npz"
    arrays = {"trained/counts": np.arange(60).reshape(3, 20), "gold/cases": np.ones((3, 2))}
    selection, cases = Selection(relations, 2), np.zeros(1, CASE_DTYPE)
    selection.merge(cases)
    part = Sums(2, relations, {"a": 0, "b": 2}, arrays, selection, Counter(sentences=3), ((0, 1, 2, "why"),))
    part.save(path, "key", finished)

    def read() -> object:
        one = sums.read(path, "key")
        if one is None or one.selection is None:
            return one
        labels = one.heads, one.relations.names, one.relations.upos, one.documents, one.counted, one.left_out
        return labels, one.selection.cases.tolist(), {name: array.tolist() for name, array in one.arrays.items()}

    assert silent_changes(path, 400, read) == []


def test_no_bit_of_stored_cases_changes_them_silently(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    Cases([np.arange(8.0), np.ones(8)], [("", 0), ("", 1)], 2, 0).save(path, "key")

    def read() -> object:
        one = read_cases(path, "key")
        return one and repr(one)

    assert silent_changes(path, 400, read) == []


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_no_bit_of_a_saved_reading_changes_it_silently(suffix: str, tmp_path: Path) -> None:
    path = ducks().save(tmp_path / f"a{suffix}")

    def read() -> object:
        one = mv.load_attention(path)
        return one.key, one.weights.tobytes(), one.hidden.tobytes(), one.made, one.text

    assert silent_changes(path, 400, read) == []


def test_no_bit_of_a_downloaded_model_changes_it_silently(hub: FakeHub) -> None:
    """It is refused, or arrives again where its settings are damaged."""
    hub.add("someone/tiny", Repository(tiny_bert_files()))

    def read() -> bytes:
        return mv.load("someone/tiny").encode("the street").weights.tobytes()

    before, folder = read(), find_local_folder(catalog.resolve("someone/tiny"))
    assert folder is not None
    assert {path.name for path in folder.iterdir()} == {*tiny_bert_files(), digests.FILE_NAME}
    for path in sorted(folder.iterdir()):
        assert silent_changes(path, 4, read, before) == [], path.name


def test_no_bit_of_weights_that_another_program_downloaded_changes_them_silently(hub: FakeHub) -> None:
    """The Hub's own client names the file to which a folder has a link by its digest."""
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    mv.load("someone/tiny")
    folder = find_local_folder(catalog.resolve("someone/tiny"))
    assert folder is not None
    (folder / digests.FILE_NAME).unlink()
    path = folder / snapshots.WEIGHTS
    blob = folder.parent.parent / "blobs" / digests.digest_file(path)
    blob.parent.mkdir()
    path.rename(blob)
    path.symlink_to(blob)
    mv.load("someone/tiny")
    whole = blob.read_bytes()
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])  # in a weight
    with changed(blob, damaged), pytest.raises(ModelBroken, match="have changed since they arrived"):
        mv.load("someone/tiny")
    mv.load("someone/tiny")


@pytest.mark.parametrize("name", [*snapshots._OTHER_FILES, snapshots.WEIGHTS, digests.FILE_NAME])
def test_a_damaged_step_of_the_toy_is_unpacked_again(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(assets.HOME_VARIABLE, str(tmp_path))
    folder = find_local_folder(catalog.resolve("toy"))
    assert folder is not None
    step = snapshots.list_steps(folder)[0]
    into, before = snapshots.unpack(folder, step), dict[str, bytes]()
    for file in into.iterdir():
        before[file.name] = file.read_bytes()
    for _ in flips(into / name, 4):
        assert snapshots.unpack(folder, step) == into
        assert {file.name: file.read_bytes() for file in into.iterdir()} == before
