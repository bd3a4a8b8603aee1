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
from mha_viz.corpus.sources import open_corpus
from mha_viz.errors import ClusterError
from mha_viz.models.encoder import Encoder, load
from mha_viz.study.cluster import sums, tasks
from mha_viz.study.cluster.layout import Layout, documents_of, rows_of
from mha_viz.study.cluster.sums import Sums, merged, tally_of
from mha_viz.study.plan import BATCH
from mha_viz.study.run import PASSES, Run
from mha_viz.study.tally import Tally
from tests import lanes
from tests.conllu import conllu, line
from tests.copies import Copy
from tests.shards import laid_out, treebank

SENTENCES = 31  # of the first file

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def toy() -> Encoder:
    return load("toy")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two treebanks, one without chains and with a relation that the other lacks, and plain text."""
    folder = tmp_path_factory.mktemp("corpus")
    other = conllu(line(1, "Dogs", 2, "nsubj:outer"), line(2, "bark", 0, "root"), line(3, "twice", 2, "advmod")) * 5
    texts = {"a.conllu": treebank(SENTENCES, 3), "b.conllu": other, "c.txt": "the dog saw the girl .\n" * 7}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in texts]


def orders(encoder: Encoder, layout: Layout, folder: str = "") -> list[tasks.Order]:
    heads, model = encoder.layers * encoder.heads, tasks.Model.opened_by(encoder)
    labels = layout.relations.names, layout.relations.upos
    return [
        tasks.Order(part, number, rows_of(layout, part, heads), *labels, model, PASSES, BATCH, folder)
        for number, part in enumerate(layout.parts)
    ]


def in_one_process(encoder: Encoder, files: list[Path]) -> dict[str, Tally]:
    from mha_viz.models.cores import turn

    run = Run(encoder, open_corpus(files))
    models = zip(PASSES, (encoder, encoder.untrained(0)), strict=True)
    with turn.crew() as workers:
        return {name: run.measure(name, model, workers) for name, model in models}


def assert_equal(ours: Tally, theirs: Tally) -> None:
    for name, array in theirs.arrays().items():
        if name.startswith("done/") or name == "gap/scored":
            continue
        if array.dtype.kind == "f":
            np.testing.assert_allclose(ours.arrays()[name], array, rtol=2e-8, atol=2e-8, err_msg=name)
        else:
            np.testing.assert_array_equal(ours.arrays()[name], array, err_msg=name)
    if theirs.selection is not None:
        assert ours.selection is not None
        assert ours.selection.cases.tolist() == theirs.selection.cases.tolist()


def merged_at_random(parts: list[Sums], seed: int) -> Sums:
    """Merged in a random order, a random number of them at a time."""
    rng = random.Random(seed)
    parts = list(parts)
    while len(parts) > 1:
        rng.shuffle(parts)
        count = rng.randint(2, min(5, len(parts)))
        parts = [merged(parts[:count]), *parts[count:]]
    return parts[0]


def test_sums_of_shards_are_those_of_one_process_in_any_order(toy: Encoder, files: list[Path]) -> None:
    whole = in_one_process(toy, files)
    layout = laid_out("c", files, 1500)
    assert len(layout.parts) > 8
    parts = [tasks.measure(order) for order in orders(toy, layout)]
    heads = toy.layers * toy.heads
    for seed in range(4):
        total = merged_at_random(parts, seed)
        for name in PASSES:
            assert_equal(tally_of(total, name, heads, documents_of(layout, heads)), whole[name])
    assert total.counted["sentences"] == layout.sentences == SENTENCES + 5 + 7


def test_many_documents_are_blocks_whatever_the_shards(
    toy: Encoder, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "FEWEST_BLOCKS", 4)
    monkeypatch.setattr(intervals, "CELLS", 0)
    whole = in_one_process(toy, files[:1])
    assert whole["trained"].documents.count == 4
    heads = toy.layers * toy.heads
    for size in (1500, 9000):  # fewer documents in a shard than blocks, and more
        layout = laid_out("a", files[:1], size)
        total = merged([tasks.measure(order) for order in orders(toy, layout)])
        assert_equal(tally_of(total, "trained", heads, documents_of(layout, heads)), whole["trained"])


def test_sums_on_disk_are_read_and_not_measured_again(
    toy: Encoder, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = laid_out("a", files[:1], 2500)
    first = [tasks.measure(order) for order in orders(toy, layout, str(tmp_path))]
    assert len(list(tmp_path.glob("*.npz"))) == len(layout.parts)
    monkeypatch.setattr(tasks, "_measured", pytest.fail)
    # Within another corpus, with other relations: the same sums.
    wider = laid_out("ab", [*files[:1], files[1]], 2500)
    same_orders = orders(toy, layout, str(tmp_path))
    again = [tasks.measure(order) for order in same_orders]
    for one, other in zip(first, again, strict=True):
        assert one.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
        assert (one.counted["sentences"], one.left_out) == (other.counted["sentences"], other.left_out)
    assert len(wider.relations.names) > len(layout.relations.names)
    relabelled = sums.placed(first[0], wider.relations, range(len(first[0].documents)), 3, toy.layers * toy.heads)
    assert relabelled.arrays["trained/syntax/correct"].sum() == first[0].arrays["trained/syntax/correct"].sum()


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", None])
def test_damaged_sums_are_measured_again(toy: Encoder, files: list[Path], tmp_path: Path, damage: bytes | None) -> None:
    order = orders(toy, laid_out("b", files[1:2], 10**6), str(tmp_path))[0]
    first = tasks.measure(order)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    assert sums.read(path) is None
    again = tasks.measure(order)
    assert np.array_equal(again.arrays["trained/syntax/correct"], first.arrays["trained/syntax/correct"])
    assert sums.read(path) is not None


def test_no_damage_stops_a_study(toy: Encoder, files: list[Path], tmp_path: Path) -> None:
    order = orders(toy, laid_out("b", files[1:2], 10**6), str(tmp_path))[0]
    tasks.measure(order)
    (path,) = tmp_path.glob("*.npz")
    whole = path.read_bytes()
    for at in range(0, len(whole), 29 if lanes.everything else 307):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        sums.read(path)


def test_a_worker_that_is_killed_while_it_writes_leaves_no_sums(
    toy: Encoder, files: list[Path], tmp_path: Path
) -> None:
    order = orders(toy, laid_out("b", files[1:2], 10**6), str(tmp_path))[0]
    part_sums = tasks.measure(order._replace(folder=""))
    path = tmp_path / f"{order.content_key}.npz"

    def half(file: BinaryIO, **_: object) -> None:
        file.write(b"PK\x03\x04")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def work() -> int:
        with unittest.mock.patch.object(np, "savez_compressed", half):
            sums.save(part_sums, path)
        return 0

    log = tmp_path.with_suffix(".log")
    assert Copy(work, log).wait() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    assert tasks.measure(order).counted["sentences"] == 5
    assert sums.read(path) is not None
    sums.remove_left(tmp_path)
    assert left.exists()  # it may be written at this moment
    os.utime(left, (0, 0))
    sums.remove_left(tmp_path)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["DEFINITIONS", "FORMAT", "__version__", "SEED"])
def test_sums_by_other_definitions_are_measured_again(
    toy: Encoder, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    order = orders(toy, laid_out("b", files[1:2], 10**6), str(tmp_path))[0]
    sums.save(tasks.measure(order._replace(folder="")), tmp_path / f"{order.content_key}.npz")
    monkeypatch.setattr(tasks, name, 1000)
    monkeypatch.setattr(tasks, "_measured", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tasks.measure(order)


def test_the_key_of_sums_holds_all_that_they_depend_on(toy: Encoder, files: list[Path]) -> None:
    order = orders(toy, laid_out("a", files[:1], 10**6))[0]
    part, model = order.part, order.model
    changed = [
        order._replace(passes=PASSES[:1]),
        order._replace(model=model._replace(revision="other")),
        order._replace(part=part._replace(first=1)),
        order._replace(part=part._replace(shard=part.shard._replace(digest="other"))),
        order._replace(rows=order.rows._replace(local=((0, part.sentences),))),
    ]
    assert len({order.content_key, *(one.content_key for one in changed)}) == 6
    same = order._replace(batch=7, folder="/elsewhere", relations=("x",), number=9)
    assert same.content_key == order.content_key
    assert same.key != order.key
    several = orders(toy, laid_out("ab", files, 10**6))[0]  # lines that are left out name their file
    path = part.shard._replace(path=str(Path(part.shard.path).with_name("other.conllu")))
    assert order._replace(part=part._replace(shard=path)).content_key == order.content_key
    renamed = several._replace(part=several.part._replace(shard=path))
    assert len({order.content_key, several.content_key, renamed.content_key}) == 3


def test_another_revision_of_the_model_is_refused(toy: Encoder, files: list[Path]) -> None:
    order = orders(toy, laid_out("b", files[1:2], 10**6))[0]
    model = order.model._replace(revision="0123456789ab", folder="")
    with pytest.raises(ClusterError, match="revision"):
        tasks.measure(order._replace(model=model))


def test_dask_knows_how_large_sums_are(toy: Encoder, files: list[Path]) -> None:
    from dask.sizeof import sizeof

    part = tasks.measure(orders(toy, laid_out("b", files[1:2], 10**6))[0])
    assert part.bytes > 30_000
    assert part.bytes < sizeof(part) < part.bytes + 1000


def test_labels_are_sorted_and_a_union_has_all() -> None:
    relations = Relations((), {"nsubj", "det"}, {"VERB", "DET"})
    assert (relations.names, relations.upos) == (("det", "nsubj"), ("DET", "VERB"))
