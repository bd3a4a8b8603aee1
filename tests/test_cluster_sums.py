"""Sums of shards add up to those of one process in any order of merging, and survive the disk."""

from __future__ import annotations

import os
import random
import signal
import unittest.mock
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from mha_viz.analysis import intervals
from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.sources import read_corpus
from mha_viz.errors import ClusterError
from mha_viz.files import remove_leftovers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study import measures, sums
from mha_viz.study.cluster import tasks
from mha_viz.study.cluster.layout import Layout
from mha_viz.study.cluster.tasks import PartSums, PartTask
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.run import StudyRun
from mha_viz.study.sums import PASSES, Sums, merge_sums
from tests import lanes
from tests.conllu import conllu, line
from tests.copies import Copy
from tests.shards import lay_out_corpus, treebank

SENTENCES = 31  # of the first file

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two treebanks, one without chains and with a relation that the other lacks, and plain text."""
    folder = tmp_path_factory.mktemp("corpus")
    other = conllu(line(1, "Dogs", 2, "nsubj:outer"), line(2, "bark", 0, "root"), line(3, "twice", 2, "advmod")) * 5
    texts = {"a.conllu": treebank(SENTENCES, 3), "b.conllu": other, "c.txt": "the dog saw the girl .\n" * 7}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in texts]


def tasks_of(encoder: Encoder, layout: Layout, folder: str = "") -> list[PartTask]:
    profiling = PartSums(PASSES, DEFAULT_BATCH, measures.PROFILE_SUMS._replace(rules=layout.rules))
    model = tasks.WorkerModel.from_encoder(encoder)
    return [PartTask(part, model, profiling, folder) for part in layout.parts]


def measure(task: PartTask) -> Sums:
    measured = tasks.measure(task)
    assert isinstance(measured, Sums)
    return measured


def in_one_process(encoder: Encoder, files: list[Path]) -> Sums:
    return StudyRun((encoder, encoder.untrained(0)), read_corpus(files)).measure()


def assert_equal(ours: Sums, theirs: Sums) -> None:
    assert [*ours.documents.items()] == [*theirs.documents.items()]
    assert (ours.relations.names, ours.relations.upos) == (theirs.relations.names, theirs.relations.upos)
    assert ours.arrays.keys() == theirs.arrays.keys()
    for name, array in theirs.arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(ours.arrays[name], array, rtol=2e-8, atol=2e-8, err_msg=name)
        else:
            np.testing.assert_array_equal(ours.arrays[name], array, err_msg=name)
    assert ours.selection is not None
    assert theirs.selection is not None
    assert ours.selection.cases.tolist() == theirs.selection.cases.tolist()
    assert ours.counted == theirs.counted


def merged_at_random(parts: list[Sums], seed: int) -> Sums:
    """Merged in a random order, a random number of them at a time."""
    rng = random.Random(seed)
    parts = list(parts)
    while len(parts) > 1:
        rng.shuffle(parts)
        count = rng.randint(2, min(5, len(parts)))
        parts = [merge_sums(parts[:count]), *parts[count:]]
    return parts[0]


def test_sums_of_shards_are_those_of_one_process_in_any_order(toy: Encoder, files: list[Path]) -> None:
    whole = in_one_process(toy, files)
    layout = lay_out_corpus("c", files, 1500)
    assert len(layout.parts) > 8
    parts = [measure(task) for task in tasks_of(toy, layout)]
    for seed in range(4):
        total = merged_at_random(parts, seed)
        assert_equal(total, whole)
    assert total.counted["sentences"] == SENTENCES + 5 + 7


def test_many_documents_are_in_the_same_blocks_whatever_the_shards(
    toy: Encoder, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "FEWEST_BLOCKS", 4)
    for cells in (0, 6 * 8 * 24 * 7):  # the second: with the relations of some shards more documents than with all
        monkeypatch.setattr(intervals, "CELLS", cells)
        whole = in_one_process(toy, files)
        assert 1 < whole.resampling_documents.count <= 8
        assert all(label.startswith("\0") for label in whole.documents)
        for size in (1500, 9000):  # fewer documents in a shard than blocks, and more
            parts = [measure(task) for task in tasks_of(toy, lay_out_corpus("c", files, size))]
            for seed in range(3):
                assert_equal(merged_at_random(parts, seed), whole)


def test_sums_on_disk_are_read_and_not_measured_again(
    toy: Encoder, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = lay_out_corpus("a", files[:1], 2500)
    first = [measure(task) for task in tasks_of(toy, layout, str(tmp_path))]
    assert len(list(tmp_path.glob("*.npz"))) == len(layout.parts)
    monkeypatch.setattr(PartSums, "measure_part", pytest.fail)
    for one, other in zip(first, [measure(task) for task in tasks_of(toy, layout, str(tmp_path))], strict=True):
        assert_equal(one, other)
        assert one.left_out == other.left_out


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", None])
def test_damaged_sums_are_measured_again(toy: Encoder, files: list[Path], tmp_path: Path, damage: bytes | None) -> None:
    task = tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6), str(tmp_path))[0]
    first = measure(task)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    assert sums.read(path, task.key) is None
    assert_equal(measure(task), first)
    assert sums.read(path, task.key) is not None


def test_no_damage_stops_a_study(toy: Encoder, files: list[Path], tmp_path: Path) -> None:
    task = tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6), str(tmp_path))[0]
    measure(task)
    (path,) = tmp_path.glob("*.npz")
    whole = path.read_bytes()
    for at in range(0, len(whole), 29 if lanes.everything else 307):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        sums.read(path, task.key)


def test_a_worker_that_is_killed_while_it_writes_leaves_no_sums(
    toy: Encoder, files: list[Path], tmp_path: Path
) -> None:
    task = tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6), str(tmp_path))[0]
    part_sums = measure(task._replace(folder=""))
    path = tmp_path / f"{task.key}.npz"

    def half(file: BinaryIO, **_: object) -> None:
        file.write(b"PK\x03\x04")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> int:
        with unittest.mock.patch.object(np, "savez_compressed", half):
            part_sums.save(path, task.key)
        return 0

    log = tmp_path.with_suffix(".log")
    assert Copy(work, log).wait() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    assert measure(task).counted["sentences"] == 5
    assert sums.read(path, task.key) is not None
    remove_leftovers(tmp_path)
    assert left.exists()  # it may be written at this moment
    os.utime(left, (0, 0))
    remove_leftovers(tmp_path)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["DEFINITIONS", "FORMAT", "__version__", "SEED"])
def test_sums_by_other_definitions_are_measured_again(
    toy: Encoder, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    task = tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6), str(tmp_path))[0]
    measure(task)
    monkeypatch.setattr(measures if name == "DEFINITIONS" else tasks, name, 1000)
    monkeypatch.setattr(PartSums, "measure_part", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measure(task)


def test_the_key_of_sums_holds_all_that_they_depend_on(toy: Encoder, files: list[Path]) -> None:
    task = tasks_of(toy, lay_out_corpus("a", files[:1], 10**6))[0]
    part, model, kind = task.part, task.model, task.measure.kind  # type: ignore[attr-defined]
    changed = [
        task._replace(measure=PartSums(PASSES[:1], DEFAULT_BATCH, kind)),
        task._replace(measure=PartSums(PASSES, DEFAULT_BATCH)),
        task._replace(model=model._replace(revision="other")),
        task._replace(part=part._replace(first=1)),
        task._replace(part=part._replace(start=part.start._replace(lines=1))),
        task._replace(part=part._replace(shard=part.shard._replace(digest="other"))),
        task._replace(part=part._replace(documents=(("all", part.sentences),))),
    ]
    assert len({task.key, *(one.key for one in changed)}) == 8
    assert task._replace(measure=PartSums(PASSES, 7, kind), folder="/elsewhere").key == task.key
    several = tasks_of(toy, lay_out_corpus("ab", files, 10**6))[0]  # lines that are left out name their file
    path = part.shard._replace(path=str(Path(part.shard.path).with_name("other.conllu")))
    assert task._replace(part=part._replace(shard=path)).key == task.key
    renamed = several._replace(part=several.part._replace(shard=path))
    assert len({task.key, several.key, renamed.key}) == 3


def test_another_revision_of_the_model_is_refused(toy: Encoder, files: list[Path]) -> None:
    task = tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6))[0]
    model = task.model._replace(revision="0123456789ab", folder="")
    with pytest.raises(ClusterError, match="revision"):
        measure(task._replace(model=model))


def test_dask_knows_how_large_sums_are(toy: Encoder, files: list[Path]) -> None:
    from dask.sizeof import sizeof

    part = measure(tasks_of(toy, lay_out_corpus("b", files[1:2], 10**6))[0])
    assert part.bytes > 30_000
    assert part.bytes < sizeof(part) < part.bytes + 1000


def test_labels_are_sorted_and_a_union_has_all() -> None:
    relations = Relations((), {"nsubj", "det"}, {"VERB", "DET"})
    assert (relations.names, relations.upos) == (("det", "nsubj"), ("DET", "VERB"))
