"""Folders of strangers' models are looked into by a child process, and nothing in them stops it."""

from __future__ import annotations

import shutil
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks import hostile
from mha_viz.app.serving import start
from mha_viz.app.serving.settings import ServerSettings
from mha_viz.errors import MhaVizError, ModelBroken
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog, folder, hub, inspection
from mha_viz.models.getting.catalog import Model

pytestmark = pytest.mark.app


@pytest.fixture
def stranger(tmp_path: Path) -> Model:
    """A copy of the toy model at a place of its own."""
    shutil.copytree(asset_path("toy"), tmp_path / "stranger", ignore=shutil.ignore_patterns("snapshots*"))
    return catalog.resolve(str(tmp_path / "stranger"))


@pytest.fixture
def apart() -> Iterator[None]:
    inspection.use_child_processes()
    yield
    folder.set_inspector(folder.inspect_folder)


class Stopped(Exception):
    """In place of serving."""


def test_a_server_opens_no_file_of_a_stranger(stranger: Model, monkeypatch: pytest.MonkeyPatch, apart: None) -> None:
    folder.set_inspector(folder.inspect_folder)
    monkeypatch.setattr(start, "raise_descriptor_limit", lambda: (_ for _ in ()).throw(Stopped))
    monkeypatch.setattr(start, "create_app", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    with pytest.raises(Stopped):
        start._run({}, ServerSettings())
    opened: list[str] = []
    watched = stranger.path

    def watch(event: str, values: tuple[object, ...]) -> None:
        if watched and event == "open" and watched in str(values[0]):
            opened.append(str(values[0]))

    sys.addaudithook(watch)  # for good: there is no way to remove it
    facts = hub.read_facts(stranger)
    watched = ""
    assert opened == []
    assert facts is not None
    assert (facts.model.layers, facts.model.heads, facts.parts, facts.causal) == (2, 4, (), False)
    assert facts == folder.inspect_folder(Path(stranger.path), stranger)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_broken_folder_is_told_in_the_same_words(seed: int, tmp_path: Path, apart: None) -> None:
    hostile.mutate(tmp_path, seed)
    model = Model("stranger", "stranger", kind="folder", path=str(tmp_path))
    errors = []
    for look in (folder.inspect_folder, folder.inspect_cached):
        with pytest.raises(MhaVizError) as caught:
            look(tmp_path, model)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_what_exceeds_the_limits_of_the_child_counts_as_broken(
    stranger: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "BOUNDS", inspection.BOUNDS._replace(seconds=0))
    monkeypatch.setattr(
        "mha_viz.process.children.POLL_SECONDS", 0.001
    )  # a fast child would answer before it is looked at
    with pytest.raises(ModelBroken, match="took longer"):
        inspection.inspect_in_child(Path(stranger.path), stranger)


def test_no_damaged_file_of_a_model_ends_a_process() -> None:
    outcomes = hostile.run_in_children(range(300))
    assert [one.seed for one in outcomes] == [*range(300)]
    assert {one.result for one in outcomes} == {"opened", "ModelBroken", "ModelUnsupported", "MhaVizError"}
    assert max(one.megabytes for one in outcomes) < hostile.MAX_MEGABYTES
    assert (
        max(one.seconds for one in outcomes) < 2 * hostile.MAX_SECONDS
    )  # of processor time: other programs hardly count


@pytest.mark.parametrize("tensors", [30_000, 80_000])
def test_the_longest_header_that_is_read_takes_as_little_as_others(tensors: int, tmp_path: Path) -> None:
    row = '"encoder.layer.%d.attention.self.query.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = ("{" + ",".join(row % number for number in range(tensors)) + "}").encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    tracemalloc.start()
    began = time.process_time()
    with suppress(ModelBroken):
        assert folder._count_elements(file, "stranger") == tensors == 30_000
    seconds, most = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 8 * hostile.MAX_SECONDS  # tracing memory takes its time
    assert most < hostile.MAX_MEGABYTES * 1e6


def test_a_sequence_of_no_steps_is_refused(tmp_path: Path) -> None:
    hostile.mutate(tmp_path, 1483)
    assert hostile._try_folder(tmp_path, 1483).result == "ModelUnsupported"
