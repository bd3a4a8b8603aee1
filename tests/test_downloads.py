"""Downloads that take too long or too much room, or are forgotten or killed: what remains, and what visitors are
told."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mha_viz.app.service import downloads, jobs
from mha_viz.app.service.caches import BoundedCache, get_model_service
from mha_viz.app.service.jobs import KINDS, QUEUES, Job
from mha_viz.app.service.reader import Reader, verbs
from mha_viz.errors import Busy, Cancelled, MhaVizError, ModelError, ModelUnreachable, ModelUnsupported, SettingError
from mha_viz.models.getting import budget, catalog, storage, transfer
from mha_viz.models.getting import hub as hub_module
from mha_viz.models.getting.catalog import Model, resolve
from mha_viz.models.getting.hub import fetch, find_local_folder
from mha_viz.process import children
from mha_viz.request import Request
from tests.copies import Copy, copy_readers
from tests.fake_hub import FakeHub, Repository, tiny_bert_files
from tests.page_session import PageSession, press
from tests.waiting import PATIENCE, until

TINY = resolve("someone/tiny")


@pytest.fixture
def strangers(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public server, whose visitors may choose these models."""
    monkeypatch.setenv(catalog.SETTING, "minilm,someone/tiny,a/a,b/b,c/c")


def left_over(hub_cache: Path) -> list[Path]:
    return [path for path in hub_cache.rglob("*") if path.is_file()]


# ---- Time ------------------------------------------------------------------------------------------------


def test_a_server_that_drips_is_given_up(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "SPARE_SECONDS", 0.3)
    hub.add("someone/tiny", Repository(tiny_bert_files(), chunk_pause=0.1))  # 2 s in all, and never silent
    with pytest.raises(ModelUnreachable, match="too slowly"):
        fetch(TINY)
    assert find_local_folder(TINY) is None


def test_a_large_model_may_take_longer(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spare_nothing(_: int, total: int) -> None:
        """Leave it only the time for its bytes, once their number is known."""
        if total:
            monkeypatch.setattr(hub_module, "SPARE_SECONDS", 0.0)

    monkeypatch.setattr(hub_module, "MIN_BYTES_PER_SECOND", 100.0)  # bytes a second
    hub.add("someone/tiny", Repository(tiny_bert_files(), chunk_pause=0.1))
    assert fetch(TINY, spare_nothing) == find_local_folder(TINY)
    assert hub_module.SPARE_SECONDS == 0.0


# ---- Visitors --------------------------------------------------------------------------------------------


class Visitors:
    """The current visitor, with a separate queue."""

    def __init__(self) -> None:
        self.who = "ann"
        self.jobs: list[Job] = []

    def start(self, name: str, who: str = "ann") -> Job:
        self.who = who
        job = downloads.start(resolve(name))
        self.jobs.append(job)
        return job

    def cancel(self, job: Job, who: str = "ann") -> None:
        self.who = who
        job.cancel()


@pytest.fixture
def visitors(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitors]:
    asking = Visitors()
    monkeypatch.setattr(jobs, "get_visitor", lambda: asking.who)
    monkeypatch.setattr(get_model_service(), "_failures", BoundedCache(10, lambda _: 1))
    QUEUES["download"].clear()
    yield asking
    for job in asking.jobs:
        for who in ("ann", "bob", "eve"):
            asking.cancel(job, who)
        assert job.wait(PATIENCE)
    QUEUES["download"].clear()


@pytest.mark.usefixtures("strangers")
def test_a_visitor_has_one_place(hub: FakeHub, visitors: Visitors) -> None:
    for name in ("a/a", "b/b"):
        hub.add(name, Repository(tiny_bert_files(), stall="body"))
    first = visitors.start("a/a", "ann")
    with pytest.raises(Busy, match="You already have a download running: “a/a”"):
        visitors.start("b/b", "ann")
    assert visitors.start("a/a", "ann") is first  # in another tab
    other = visitors.start("b/b", "bob")
    assert visitors.start("b/b", "ann") is other  # takes no place
    for job in (first, other):
        for who in ("ann", "bob"):
            visitors.cancel(job, who)
        assert job.wait(PATIENCE)
    hub.add("b/b", Repository(tiny_bert_files()))
    assert visitors.start("b/b", "ann").wait(PATIENCE)


def test_on_ones_own_machine_one_person_may_order_several(hub: FakeHub, visitors: Visitors) -> None:
    for name in ("a/a", "b/b"):
        hub.add(name, Repository(tiny_bert_files(), stall="body"))
    assert [visitors.start(name).error for name in ("a/a", "b/b")] == [None, None]


class Clock:
    """The clock by which jobs count how long ago somebody looked; it stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(jobs, "time", made)
    return made


@pytest.mark.usefixtures("strangers")
def test_what_nobody_looks_at_stops(hub: FakeHub, visitors: Visitors, clock: Clock) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    job = visitors.start("someone/tiny")
    assert hub.stalled.acquire(timeout=PATIENCE)
    for _ in range(3):
        clock.now += KINDS["download"].timeout_s - 1
        job.heartbeat()
        assert not job.is_stopped()
    clock.now += KINDS["download"].timeout_s + 1
    assert job.wait(PATIENCE)
    assert isinstance(job.error, Cancelled)
    assert find_local_folder(TINY) is None


def test_on_ones_own_machine_a_forgotten_download_ends_well(hub: FakeHub, visitors: Visitors, clock: Clock) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), held=True))
    job = visitors.start("someone/tiny")
    assert hub.stalled.acquire(timeout=PATIENCE)
    clock.now += 10 * KINDS["download"].timeout_s
    hub.go_on.set()
    assert job.wait(PATIENCE)
    assert job.error is None


def test_after_a_cancellation_the_same_model_can_be_fetched(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    job = visitors.start("someone/tiny")
    assert hub.stalled.acquire(timeout=PATIENCE)
    visitors.cancel(job)
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    again = visitors.start("someone/tiny")
    assert again is not job
    assert again.wait(PATIENCE)
    assert again.error is None
    assert job.wait(PATIENCE)
    assert isinstance(job.error, Cancelled)
    assert find_local_folder(TINY) is not None


def test_a_download_tells_how_far_it_is(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    job = visitors.start("someone/tiny")
    assert hub.stalled.acquire(timeout=PATIENCE)
    files = tiny_bert_files()
    size = sum(map(len, files.values()))
    small = size - len(files["model.safetensors"])
    while job.fraction * size < small:  # the small files have arrived; the count follows within a tick
        assert not job.wait(hub_module.TICK_SECONDS)
    assert job.size == size
    assert 0 < job.fraction < 1
    assert not job.is_finished


def test_two_visitors_share_one_transfer(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), held=True))
    job = visitors.start("someone/tiny", "ann")
    assert hub.stalled.acquire(timeout=PATIENCE)
    assert visitors.start("someone/tiny", "bob") is job
    hub.go_on.set()
    assert job.wait(PATIENCE)
    assert job.fraction == 1.0
    assert find_local_folder(TINY) is not None
    assert sum(r.endswith("/cdn/someone/tiny/model.safetensors") for r in hub.requests) == 1


def test_one_visitor_who_leaves_does_not_stop_the_other(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), held=True))
    job = visitors.start("someone/tiny", "ann")
    assert hub.stalled.acquire(timeout=PATIENCE)
    visitors.start("someone/tiny", "bob")
    visitors.cancel(job, "ann")
    visitors.cancel(job, "ann")  # counts once, although ordered twice
    assert job.is_cancelled
    assert not job.is_stopped()
    hub.go_on.set()
    assert job.wait(PATIENCE)
    assert job.error is None
    assert find_local_folder(TINY) is not None


def test_the_last_visitor_who_leaves_stops_the_transfer(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    job = visitors.start("someone/tiny", "ann")
    visitors.start("someone/tiny", "bob")
    visitors.cancel(job, "ann")
    assert not job.is_stopped()
    visitors.cancel(job, "bob")
    assert job.wait(PATIENCE)
    assert isinstance(job.error, Cancelled)
    assert left_over(Path(os.environ["HF_HUB_CACHE"])) == []


@pytest.fixture
def downloading(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The child processes that download, in place of this one."""
    started, begun = children._start_child, list[subprocess.Popen[bytes]]()

    @contextmanager
    def noted(module: str, bounds: children.Bounds) -> Iterator[subprocess.Popen[bytes]]:
        with started(module, bounds) as child:
            begun.append(child)
            yield child

    monkeypatch.setattr(children, "_start_child", noted)
    monkeypatch.setattr(hub_module, "run", children.run)
    return begun


@pytest.mark.app
def test_a_child_lists_the_files_of_a_model_and_another_brings_them(
    hub: FakeHub, hub_cache: Path, downloading: list[subprocess.Popen[bytes]]
) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    bytes_and_total: list[tuple[int, int]] = []
    assert fetch(TINY, lambda *done: bytes_and_total.append(done)) == find_local_folder(TINY)
    assert len(downloading) == 2
    assert bytes_and_total[-1][0] == bytes_and_total[-1][1] > len(tiny_bert_files()["model.safetensors"])
    hub.add("someone/other", Repository(tiny_bert_files(), code="GatedRepo", file_status=403))
    with pytest.raises(ModelUnsupported, match="“someone/other” is gated"):
        fetch(resolve("someone/other"))


@pytest.mark.app
@pytest.mark.parametrize("where", ["metadata", "body"])
def test_cancelling_ends_the_child_and_nothing_is_kept(
    where: Any, hub: FakeHub, visitors: Visitors, downloading: list[subprocess.Popen[bytes]]
) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall=where))
    job = visitors.start("someone/tiny")
    assert hub.stalled.acquire(timeout=PATIENCE)
    assert downloading[-1].poll() is None
    visitors.cancel(job)
    assert downloading[-1].wait(PATIENCE) == -signal.SIGKILL
    assert job.wait(PATIENCE)
    assert isinstance(job.error, Cancelled)
    until(lambda: left_over(Path(os.environ["HF_HUB_CACHE"])) == [])


def test_a_failure_reaches_every_visitor_and_can_be_tried_again(hub: FakeHub, visitors: Visitors) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), status=500))
    job = visitors.start("someone/tiny")
    assert job.wait(PATIENCE)
    assert isinstance(job.error, ModelUnreachable)
    assert get_model_service().get_failure(resolve("someone/tiny")) is job.error, "no page has looked at the job"
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    again = visitors.start("someone/tiny")
    assert again.wait(PATIENCE)
    assert again.error is None


def test_two_models_travel_at_once_and_others_wait(hub: FakeHub, visitors: Visitors) -> None:
    for name in ("a/a", "b/b"):
        hub.add(name, Repository(tiny_bert_files(), stall="body"))
    hub.add("c/c", Repository(tiny_bert_files()))
    running = [visitors.start(name) for name in ("a/a", "b/b")]
    third = visitors.start("c/c")
    assert not any(map(downloads.is_waiting, running))
    assert downloads.is_waiting(third)
    assert not third.wait(3 * hub_module.TICK_SECONDS)
    visitors.cancel(running[0])
    assert third.wait(PATIENCE)
    assert third.error is None


# ---- The page --------------------------------------------------------------------------------------------


def progress(page: PageSession) -> str:
    """The words beside the page's progress bar; empty without one."""
    return " ".join(bar.proto.text for bar in page.at.get("progress"))


@pytest.mark.parametrize("off", ["none", "L1H1", None])
def test_the_page_tells_how_far_a_download_is_and_cancels_it(hub: FakeHub, visitors: Visitors, off: str | None) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    page = PageSession({"model": "someone/tiny"} | ({"off": off} if off else {}))
    until(lambda: visitors.start("someone/tiny").size > 0)
    page.at.run()
    assert "Downloading someone/tiny" in progress(page)
    assert "Shown below instead: MiniLM" in page.said
    press(page, "cancel_download")
    assert "model" not in page.url
    assert not progress(page)
    assert visitors.jobs[0].wait(PATIENCE)
    assert isinstance(visitors.jobs[0].error, Cancelled)


def test_the_page_says_that_a_download_waits_for_others(hub: FakeHub, visitors: Visitors) -> None:
    for name in ("a/a", "b/b", "c/c"):
        hub.add(name, Repository(tiny_bert_files(), stall="body"))
    for name in ("a/a", "b/b"):
        visitors.start(name)
    page = PageSession({"model": "c/c"})
    visitors.start("c/c")
    assert progress(page) == "c/c is waiting for other downloads…"


# ---- Messages --------------------------------------------------------------------------------------------


def _failed(model: Model) -> MhaVizError:
    with pytest.raises(MhaVizError) as caught:
        fetch(model)
    return caught.value


@pytest.mark.parametrize("case", ["silent", "nonsense", "offline", "unwritable", "full", "too large"])
@pytest.mark.parametrize("reader", ["strangers", "owner"])
def test_strangers_are_told_nothing_of_the_machine(
    case: str,
    reader: str,
    hub: FakeHub,
    hub_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    repository = Repository(tiny_bert_files())
    hub.add("someone/tiny", repository)
    if reader == "strangers":
        monkeypatch.setenv(catalog.SETTING, "minilm,someone/tiny")
    match case:
        case "silent":
            repository.cut = True
        case "nonsense":
            repository.commit = "main"
        case "offline":
            from huggingface_hub.errors import OfflineModeIsEnabled

            monkeypatch.setattr(transfer, "_list_files", _raising(OfflineModeIsEnabled("HF_HUB_OFFLINE is set")))
        case "unwritable":
            hub_cache.write_text("a file where a folder should be")
        case "full":
            repository.announced["model.safetensors"] = 10**14
            monkeypatch.setenv(hub_module.SIZE_SETTING, "999999999")
            monkeypatch.setenv(budget.SETTING, "999999999")
        case "too large":
            repository.announced["model.safetensors"] = 3 * 10**9
    error = _failed(TINY)
    inside = (hub.url, str(hub_cache), "HF_", "MHA_VIZ_", "HF_HUB_CACHE", "disk has")
    assert any(word in str(error) for word in inside) == (reader == "owner")
    assert "someone/tiny" in str(error) or case == "nonsense"
    assert error.remedy
    if reader == "strangers" and case not in ("too large",):
        assert caplog.records[-1].levelno == logging.WARNING


def _raising(error: Exception) -> object:
    def raises(*_: object) -> None:
        raise error

    return raises


# ---- Disk space ------------------------------------------------------------------------------------------

LARGE = {**tiny_bert_files(), "vocab.txt": b"x" * 700_000}


def add(hub: FakeHub, *names: str) -> None:
    for name in names:
        hub.add(name, Repository(LARGE))


def age(name: str, seconds: float) -> None:
    """Set the time at which the model was last loaded to this long ago."""
    then = time.time() - seconds
    os.utime(storage.find_model_storage(name) / budget.NOTE, (then, then))


def here(*names: str) -> list[str]:
    return [name for name in names if find_local_folder(resolve(name)) is not None]


def test_what_was_loaded_longest_ago_makes_room(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.SETTING, "2")
    add(hub, "a/a", "b/b", "c/c")
    for name in ("a/a", "b/b"):
        fetch(resolve(name))
    age("a/a", 7000)
    age("b/b", 8000)
    fetch(resolve("c/c"))
    assert here("a/a", "b/b", "c/c") == ["a/a", "c/c"]
    assert not storage.find_model_storage("b/b").exists()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, hub: FakeHub) -> Iterator[Reader]:
    """A process with models: a copy of this one."""
    copy_readers(monkeypatch)
    one = Reader()
    yield one
    one.close()


def test_what_another_process_reads_with_stays(
    hub: FakeHub, hub_cache: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(budget.SETTING, "2")
    add(hub, "a/a", "b/b", "c/c")
    for name in ("a/a", "b/b"):
        fetch(resolve(name))
    reader.ask(verbs.load, "a/a")
    age("a/a", 8000)
    age("b/b", 7000)
    assert reader.ask(verbs.read, Request("a/a", "the animal")).layers == 2
    fetch(resolve("c/c"))
    assert here("a/a", "b/b", "c/c") == ["a/a", "c/c"]
    with pytest.raises(ModelError, match="no room for “b/b”"):
        fetch(resolve("b/b"))


def test_a_use_is_noted_once_a_minute(hub: FakeHub, hub_cache: Path) -> None:
    add(hub, "a/a")
    folder = fetch(resolve("a/a"))
    noted = storage.find_model_storage("a/a") / budget.NOTE
    for seconds, again in ((30, False), (90, True)):
        age("a/a", seconds)
        before = noted.stat().st_mtime_ns
        budget.record_use(folder)
        assert (noted.stat().st_mtime_ns > before) == again


def test_the_server_notes_what_the_process_that_reads_has_used(hub: FakeHub, hub_cache: Path, reader: Reader) -> None:
    """A process that is confined cannot change the time of a file."""
    add(hub, "a/a")
    fetch(resolve("a/a"))
    noted = storage.find_model_storage("a/a") / budget.NOTE
    for _ in range(2):  # when it is loaded, and when it is there
        age("a/a", 90)
        before = noted.stat().st_mtime_ns
        reader.ask(verbs.load, "a/a")
        assert noted.stat().st_mtime_ns > before


def test_the_process_that_reads_downloads_nothing(hub: FakeHub, hub_cache: Path, reader: Reader) -> None:
    add(hub, "a/a")
    with pytest.raises(ModelUnreachable, match="“a/a” is not on this machine"):
        reader.ask(verbs.load, "a/a")
    assert not left_over(hub_cache)
    assert here("a/a") == []


def test_downloads_under_way_count(hub: FakeHub, visitors: Visitors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.SETTING, "1")
    hub.add("a/a", Repository(LARGE, stall="body"))
    add(hub, "b/b")
    visitors.start("a/a")
    assert hub.stalled.acquire(timeout=PATIENCE)
    with pytest.raises(ModelError, match="no room for “b/b”"):
        fetch(resolve("b/b"))


def test_the_files_of_other_programs_stay(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs store their files in blobs/ and link to them."""
    monkeypatch.setenv(budget.SETTING, "1")
    add(hub, "a/a", "b/b")
    theirs = storage.find_model_storage("other/model") / "snapshots" / ("1" * 40)
    theirs.mkdir(parents=True)
    (theirs / "model.safetensors").write_bytes(b"x" * 5_000_000)
    folder = fetch(resolve("a/a"))
    blob = storage.find_model_storage("a/a") / "blobs" / "1"
    blob.parent.mkdir()
    (folder / "vocab.txt").rename(blob)
    (folder / "vocab.txt").symlink_to(blob)
    (folder / "README.md").write_text("theirs")
    age("a/a", 8000)
    (storage.find_model_storage("a/a") / "snapshots" / ("2" * 40)).mkdir()
    hub.add("b/b", Repository({**LARGE, "vocab.txt": b"x" * 920_000}))
    fetch(resolve("b/b"))
    assert (theirs / "model.safetensors").exists()
    assert blob.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "vocab.txt"]
    assert here("a/a", "b/b") == ["b/b"]


@pytest.mark.parametrize("noted", ["[]", "{", '{"../..": ["x"]}', '{"0": 1}', json.dumps({"0" * 40: ["../../keep"]})])
def test_a_note_that_is_not_ours_removes_nothing(
    noted: str, hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(budget.SETTING, "1")
    add(hub, "a/a")
    place = storage.find_model_storage("other/model")
    (place / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (place / "keep").write_bytes(b"x" * 900_000)
    (place / budget.NOTE).write_text(noted)
    age("other/model", 8000)
    fetch(resolve("a/a"))
    assert (place / "keep").exists()


def test_a_model_beyond_all_room_is_refused(hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.SETTING, "1")
    hub.add("someone/tiny", Repository({**LARGE, "vocab.txt": b"x" * 1_000_000}))
    with pytest.raises(ModelUnsupported, match="limit for all downloads"):
        fetch(TINY)


@pytest.mark.parametrize("value", ["0", "-1", "lots"])
def test_a_wrong_budget_is_named(value: str, hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.SETTING, value)
    add(hub, "someone/tiny")
    with pytest.raises(SettingError, match=budget.SETTING):
        fetch(TINY)


# ---- Sudden ends -----------------------------------------------------------------------------------------


def test_nothing_of_a_killed_download_is_ever_used(hub: FakeHub, hub_cache: Path, tmp_path: Path) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files(), stall="body"))
    process = Copy(lambda: len(fetch(TINY).name), tmp_path / "log")
    try:
        assert hub.stalled.acquire(timeout=PATIENCE)
    finally:
        assert process.kill() == -signal.SIGKILL
    partial = next(storage.find_model_storage("someone/tiny").glob("partial-*"))
    assert (partial / "config.json").exists(), "it was killed too early"
    assert find_local_folder(TINY) is None
    os.utime(partial, (0, 0))
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    assert fetch(TINY) == find_local_folder(TINY)
    assert not partial.exists()


@pytest.mark.parametrize("step", range(12))
def test_a_download_killed_while_it_is_put_in_place_is_never_used(
    step: int, hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turn, each move is the last one; the folder then contains no model, or a complete one."""
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    moves: list[str] = []
    replace = Path.replace

    def until(path: Path, target: Path) -> Path:
        if len(moves) == step:
            raise KeyboardInterrupt  # nothing handles it, like SIGKILL
        moves.append(path.name)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", until)
    monkeypatch.setattr(hub_module.shutil, "rmtree", lambda *_, **__: None)
    state = hub_module._DownloadState()
    try:
        hub_module._download(TINY, state)
    except KeyboardInterrupt:
        assert find_local_folder(TINY) is None
    else:
        assert moves[-1] == "main"
        assert find_local_folder(TINY) is not None
    monkeypatch.undo()


def test_a_disk_that_fills_on_the_way_is_said_and_nothing_is_left(
    hub: FakeHub, hub_cache: Path, tmp_path: Path
) -> None:
    """A limit on the size of files makes a write fail in the middle, like a full disk."""
    assert len(tiny_bert_files()["model.safetensors"]) > 20_000
    hub.add("someone/tiny", Repository(tiny_bert_files()))

    def limited() -> int:
        import resource

        sys.dont_write_bytecode = True  # half a file of compiled code would stay in the environment
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        print(_failed(TINY))
        return 0

    process = Copy(limited, tmp_path / "log")
    assert (process.wait(), process.log.read_text().count("\n")) == (0, 1), process.log.read_text()
    assert "“someone/tiny” cannot be stored: File too large." in process.log.read_text()
    assert os.strerror(errno.EFBIG) == "File too large"
    assert left_over(hub_cache) == []
