"""The reader process: its answers equal those of the model in this process, and its end affects nobody else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file, save_file

from mha_viz.app.service import caches
from mha_viz.app.service.caches import ModelService, Once
from mha_viz.app.service.reader import Reader, client, starting, verbs
from mha_viz.app.service.reader.models import Models
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.errors import EmptyText, MeansMissing, ReadingFailed, ShapeError, UnknownHead, UnknownModel
from mha_viz.models.getting import catalog
from mha_viz.models.intervening.ablation import Means
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import template
from mha_viz.process.messages import Array, Json
from mha_viz.request import Request
from mha_viz.study.plan import find_all_pointers
from tests import hostile
from tests.copies import Copy, copy_readers
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.app

TEXT = "A well-known man didn't cross the street."
WORDS = ("A", "well-known", "man", ".")


@pytest.fixture(scope="module")
def current_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with modules that have the names of libraries."""
    folder = tmp_path_factory.mktemp("current")
    for name in ("numpy", "torch", "streamlit", "json", "mha_viz"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def reader(current_folder: Path) -> Iterator[Reader]:
    """Its first process is a new one, as on a server, started in that folder, and logs to a file there what it says
    of a text that is cut; those that replace it in these tests are copies of this one."""
    one, stderr = Reader(), os.dup(2)
    with pytest.MonkeyPatch.context() as patch, (current_folder / "log").open("w") as log:
        patch.chdir(current_folder)
        os.dup2(log.fileno(), 2)
        try:
            assert one.ask(verbs.read, Request("toy", "SECRET " * 600)).text.cut is not None
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
    yield one
    one.close()


def test_a_new_process_imports_nothing_from_the_current_folder_and_logs_nothing_of_a_text(
    reader: Reader, current_folder: Path
) -> None:
    assert reader.ask(verbs.read, Request("toy", "the dog saw the girl .")).layers == 2
    logged = (current_folder / "log").read_text("utf-8")
    assert "SECRET" not in logged
    assert "imported from the current folder" not in logged


def test_a_new_process_leaves_out_scipy_where_it_is_not_needed_and_has_it_where_it_is() -> None:
    """Versions of transformers before 5.21 import scikit-learn, and so scipy, wherever they find it."""
    begun = starting._START_CODE.partition("from mha_viz")[0]
    needed = "import transformers.generation.candidate_generator; assert 'scipy' not in sys.modules; import scipy.stats"
    subprocess.run([sys.executable, "-c", f"{begun}\n{needed}", "main", "8000000000"], check=True)


def test_ctrl_c_is_for_the_server_also_while_libraries_are_imported() -> None:
    begun = starting._START_CODE.partition("import transformers")[0]
    command = f"{begun}\nos.kill(os.getpid(), signal.SIGINT); print('goes on')"
    ended = subprocess.run([sys.executable, "-c", command, "main", "8000000000"], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("goes on\n", "")


@pytest.fixture(autouse=True)
def _replacements_are_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_readers(monkeypatch)


@pytest.fixture
def service(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> ModelService:
    """The service of a server whose models are in this process, as ``get_model_service()`` gives it."""
    monkeypatch.setattr(caches, "_get_reader", lambda: reader)
    monkeypatch.setattr(caches, "get_model_service", Once(ModelService))
    return caches.get_model_service()


def _pid(reader: Reader) -> int:
    assert reader._process is not None
    return reader._process.pid


@pytest.mark.skipif(not template.is_supported(), reason="this system has no templates")
def test_a_process_that_is_killed_three_times_in_a_row_is_replaced_by_copies_that_import_nothing(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    reader.ask(verbs.load, "toy")
    starter, killed, starts = reader._starter, list[int](), Reader.starts
    assert isinstance(starter, starting.CopyStarter)
    reader._starter.prepare()
    libraries = starter._template
    assert libraries is not None
    for _ in range(3):
        killed.append(_pid(reader))
        os.kill(killed[-1], signal.SIGKILL)
        assert reader.ask(verbs.read, Request("toy", "the dog saw the girl .")).layers == 2
        assert psutil.Process(_pid(reader)).ppid() == libraries.pid
        assert starter._template is libraries
    copy = psutil.Process(_pid(reader))
    assert copy.rlimit(psutil.RLIMIT_DATA) == (starting.DATA_BYTES,) * 2
    assert copy.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert Path(f"/proc/{copy.pid}/oom_score_adj").read_text() == "500\n"
    assert len({*killed, _pid(reader)}) == 4
    assert Reader.starts == starts + 3  # the number that the owner of a server gets
    assert not any(psutil.pid_exists(pid) for pid in killed[1:]), "no zombie is left"


def _has_ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_reading_arrives_as_the_model_made_it(reader: Reader, minilm: Encoder) -> None:
    for arrived, here in (
        (reader.ask(verbs.read, Request("minilm", TEXT)), minilm.encode(TEXT)),
        (reader.ask(verbs.read, Request("minilm", TEXT, "He sat.")), minilm.encode(TEXT, "He sat.")),
        (reader.ask(verbs.read, Request("minilm", "", words=tuple(WORDS))), minilm.encode_words(WORDS)),
        (reader.ask(verbs.read, Request("minilm", "word " * 900)), minilm.encode("word " * 900)),
    ):
        assert arrived.text == here.text
        assert arrived.key == here.key
        np.testing.assert_array_equal(arrived.weights, here.weights)
        assert not arrived.weights.flags.writeable


def test_the_inside_of_a_layer_arrives_as_the_model_made_it(reader: Reader, minilm: Encoder) -> None:
    for words in ((), WORDS):
        arrived, here = (
            reader.ask(verbs.trace, Request("minilm", TEXT, words=tuple(words)), 2),
            minilm.trace(TEXT, "", 2, words),
        )
        for field in fields(here):
            one, other = getattr(arrived, field.name), getattr(here, field.name)
            if isinstance(other, np.ndarray):
                np.testing.assert_array_equal(one, other)
            elif field.name == "parameters":
                for mine, theirs in zip(one, other, strict=True):
                    np.testing.assert_array_equal(mine, theirs)
            else:
                assert one == other, field.name


def test_turned_queries_arrive_as_the_model_made_them(tiny: Callable[[str], Encoder]) -> None:
    here = tiny("qwen3").trace(TEXT, layer=1)
    packed, arrays = CODEC.pack(here)
    arrived = CODEC.parse(json.loads(json.dumps(packed)), arrays)
    assert arrived.layer_input is not None
    assert arrived.rotation is not None
    np.testing.assert_array_equal(arrived.layer_input, here.layer_input)
    for one, other in zip(arrived.rotation, here.rotation or (), strict=True):
        np.testing.assert_array_equal(one, other)
    assert arrived.loop_difference == here.loop_difference
    assert arrived.bytes == here.bytes


def test_where_heads_point_arrives_as_it_was_counted(reader: Reader) -> None:
    from mha_viz.models.reading.loading import load

    here = find_all_pointers(load("toy"), grammar.corpus())
    parts = (reader.ask(verbs.find_pointers, "toy", first, first + 150) for first in range(0, len(here), 150))
    for arrived, counted in zip(chain.from_iterable(parts), here, strict=True):
        assert (arrived is None) == (counted is None)
        if arrived is not None and counted is not None:
            np.testing.assert_array_equal(arrived.row, counted.row)
            np.testing.assert_array_equal(arrived.column, counted.column)


def test_errors_arrive_as_they_were_raised(reader: Reader) -> None:
    with pytest.raises(EmptyText, match="Nothing was typed"):
        reader.ask(verbs.read, Request("minilm", " "))
    with pytest.raises(UnknownModel, match="no model of this name"):
        reader.ask(verbs.load, "no model of this name")
    with pytest.raises((UnknownHead, ShapeError)):
        reader.ask(verbs.trace, Request("minilm", TEXT), 99)
    assert reader.ask(verbs.read, Request("minilm", TEXT)).text.text == TEXT


def test_hostile_texts_come_through_the_pipe(reader: Reader) -> None:
    for name, text in hostile.KINDS.items():
        with suppress(EmptyText):
            assert reader.ask(verbs.read, Request("minilm", text)).layers == 6, name


def test_a_process_that_was_killed_is_replaced_and_has_the_time_of_a_load(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines, exchange = list[tuple[str, float]](), reader._exchange

    def noted(
        model: str, message: Json, arrays: Sequence[Array], seconds: float, again: bool
    ) -> tuple[Json, list[Array]]:
        deadlines.append((message["verb"], seconds))
        return exchange(model, message, arrays, seconds, again)

    reader.ask(verbs.load, "minilm")
    monkeypatch.setattr(reader, "_exchange", noted)
    assert reader.ask(verbs.read, Request("minilm", TEXT)).text.text == TEXT
    first = _pid(reader)
    os.kill(first, signal.SIGKILL)
    assert reader.ask(verbs.read, Request("minilm", TEXT)).text.text == TEXT
    assert _pid(reader) != first
    assert _has_ended(first)
    assert ("load", client.LOAD_SECONDS) == deadlines[0] == deadlines[-2]
    assert ("read", client.READ_SECONDS) == deadlines[1] == deadlines[-1]


def test_means_over_a_part_of_the_sentences_are_never_used(reader: Reader) -> None:
    count, without = len(grammar.corpus().sentences), Request("toy", TEXT, off=(Head(0, 0),), method="mean")
    reader.ask(verbs.measure_means, "toy", 0, 50)
    with pytest.raises(MeansMissing, match="no longer available"):
        reader.ask(verbs.read, without)
    os.kill(_pid(reader), signal.SIGKILL)
    with pytest.raises(MeansMissing, match="no longer available"):
        reader.ask(verbs.measure_means, "toy", 50, count)
    with pytest.raises(MeansMissing):
        reader.ask(verbs.read, without)
    reader.ask(verbs.measure_means, "toy", 0, count)
    assert reader.ask(verbs.read, without).layers == 2


def test_sentences_that_were_counted_when_one_failed_are_not_counted_twice(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, models = str(tiny_folder("bert")), Models()
    usual, texts = Means.add, list[str]()

    def fails_half_way(means: Means, more: Iterable[str]) -> None:
        texts.extend(more)
        usual(means, texts[: len(texts) // 2])
        raise ReadingFailed("No memory.")

    models.add_to_means(name, 0, 10)
    with monkeypatch.context() as patched:
        patched.setattr(Means, "add", fails_half_way)
        with pytest.raises(ReadingFailed):
            models.add_to_means(name, 10, 20)
    with pytest.raises(MeansMissing):
        models.add_to_means(name, 10, 20)


def test_what_takes_too_long_is_stopped_and_the_next_question_is_answered(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.ask(verbs.load, "minilm")
    with monkeypatch.context() as impatient:
        impatient.setattr(client, "READ_SECONDS", 0.001)
        with pytest.raises(ReadingFailed, match=r"minilm took longer than 0 s and was stopped\."):
            reader.ask(verbs.read, Request("minilm", "word " * 900))
    assert reader.ask(verbs.read, Request("minilm", TEXT)).text.text == TEXT


def test_a_model_that_wants_too_much_memory_ends_alone(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.close()
    monkeypatch.undo()  # a new process, because only one has the limit
    with monkeypatch.context() as narrow:
        narrow.setattr(starting, "DATA_BYTES", 60_000_000)
        with pytest.raises(ReadingFailed):
            reader.ask(verbs.load, "minilm")
    copy_readers(monkeypatch)
    assert reader.ask(verbs.read, Request("minilm", TEXT)).text.text == TEXT


def test_the_process_ends_with_the_one_that_asks(tmp_path: Path) -> None:
    def ask() -> int:
        asking = Reader()
        asking.ask(verbs.load, "toy")
        print(_pid(asking))
        signal.pause()
        return 0

    server = Copy(ask, tmp_path / "log")
    until(lambda: server.log.read_text().endswith("\n") or server.poll() is not None)
    child = int(server.log.read_text())
    assert server.kill() == -signal.SIGKILL
    until(lambda: _has_ended(child))


def test_when_all_have_gone_what_was_kept_is_given_back(
    service: ModelService, tiny_folder: Callable[[str], Path]
) -> None:
    model, other = catalog.resolve("minilm"), catalog.resolve(str(tiny_folder("bert")))
    first = service.ask_cached(verbs.read, Request(model.name, caches.load_first_reading().text.text)).result(PATIENCE)
    for one in (model, other):
        attention = service.ask_cached(verbs.read, Request(one.name, "This is read and then forgotten.")).result(
            PATIENCE
        )
        service.find_similar_heads(attention, Head(0, 0), 3)
    caches.empty_caches()
    assert not service.has_reading(Request(model.name, "This is read and then forgotten."))
    assert service.has_reading(Request(model.name, first.text.text)), "the first picture needs no model"
    assert all(cache.bytes == 0 for cache in (service._packets, service._traces))
    assert service._reader.loaded_models == frozenset(), "a model that a visitor chose is not kept for nobody"
    assert service.ask_cached(verbs.read, Request(model.name, "This is read anew.")).result(PATIENCE).layers == 6


def test_at_rest_the_process_keeps_the_model_that_the_next_visitor_needs(service: ModelService) -> None:
    caches.empty_caches()  # other tests may have used other models
    model = catalog.resolve("minilm")
    service.ask_cached(verbs.read, Request(model.name, "This is read before the rest.")).result(PATIENCE)
    running = service._reader._process
    caches.empty_caches()
    assert running is not None
    assert service._reader._process is running
    assert running.poll() is None
    assert service._reader.loaded_models == {"minilm"}


def test_nobody_starts_a_process_for_it_to_rest() -> None:
    reader = Reader()
    reader.free_memory()
    assert reader._process is None


def test_a_folder_whose_files_changed_is_read_again(
    service: ModelService, tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_folder("bert"), tmp_path / "model"))
    model = catalog.resolve(str(folder))
    request = Request(model.name, "One dog.")
    before, trace = (
        service.ask_cached(verbs.read, request).result(PATIENCE),
        service.ask_cached(verbs.trace, request, 0).result(),
    )
    assert service.ask_cached(verbs.read, request).result(PATIENCE) is before
    arrays = {name: 2 * array for name, array in load_file(folder / "model.safetensors").items()}
    save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    after = service.ask_cached(verbs.read, request).result(PATIENCE)
    assert after.key != before.key
    assert not np.allclose(after.weights, before.weights)
    again = service.ask_cached(verbs.trace, request, 0).result(PATIENCE)
    assert not np.allclose(again.weights, trace.weights)


def test_one_service_asks_one_process() -> None:
    assert ModelService()._reader is ModelService()._reader
