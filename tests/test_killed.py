"""A server that is killed with SIGKILL while it works: its children end, and no incomplete file is used afterwards."""

from __future__ import annotations

import atexit
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mha_viz import process
from mha_viz.app.lab import trainings
from mha_viz.app.service import studies
from mha_viz.app.service.jobs import Job
from mha_viz.app.serving.shutdown import end_server
from mha_viz.app.url.annotated_texts import load_built_in_corpus
from mha_viz.corpus import grammar, reading, uploads
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.errors import ExportError
from mha_viz.files.assets import HOME_VARIABLE
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import children
from mha_viz.study.run import SUMS_FILE, study
from tests.copies import Copy
from tests.new_server import restart_server
from tests.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc"),
]


USUAL = children.run  # in a child process
SECONDS_TO_END = 5.0


@cache
def treebank(sentences: int) -> StudyCorpus:
    return uploads.parse_in_child(format_conllu(grammar.corpus(sentences, 5).sentences).encode(), "treebank.conllu")


def the_longest_training() -> Job:
    default = EXPERIMENTS[HEAD_COUNT].default
    return trainings.start(replace(default, steps=EXPERIMENTS[HEAD_COUNT].max_steps))


@contextmanager
def killed(
    start: Callable[[], Job],
    folder: Path,
    end: Callable[[], object] = lambda: os.kill(os.getpid(), signal.SIGKILL),
    file: str = "",
) -> Iterator[list[int]]:
    """Let a server with this home work until the work is under way, and has saved a ``file`` if one is named, and then
    kill itself with SIGKILL, or ``end`` otherwise; yields its children."""

    def serve() -> int:
        children.run = USUAL
        os.environ.update({HOME_VARIABLE: str(folder), "TMPDIR": str(folder)})
        tempfile.tempdir = None  # is looked up again
        restart_server()  # the threads of this process's queues are not in its copy
        job = start()
        while not job.is_finished:
            job.heartbeat()
            if job.fraction > 0.02 and (not file or any(folder.rglob(file))):
                print(*children_of(os.getpid()))
                end()
            time.sleep(0.01)
        raise job.error or AssertionError("it ended before it was killed")

    folder.mkdir()
    server = Copy(serve, folder.with_suffix(".log"))
    assert server.wait() in (-signal.SIGKILL, 0), server.log.read_text()
    yield [int(pid) for pid in server.log.read_text().split()]


def children_of(pid: int) -> list[int]:
    """The child processes of a process."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            pids.append(int(entry.parent.name))
    return pids


def alive(pid: int) -> bool:
    """True while a process runs, but not for a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("in_process")  # but the study that is killed is in a new process
def test_a_study_of_a_server_that_was_killed_goes_on_after_the_next_start(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    model, source = catalog.resolve(str(tiny_folder("bert"))), treebank(100)
    with killed(lambda: studies.start(model, source), home, file=SUMS_FILE) as child_processes:
        assert len(child_processes) == 1
        until(lambda: not any(map(alive, child_processes)))
    assert not list(home.rglob("*.part"))
    assert not list(home.rglob("*.csv"))
    assert not list(home.rglob("profile.json"))
    assert list(home.rglob(SUMS_FILE)), "the child kept what it had done"
    restart_server()
    assert studies.find_profile(model, source.digest) is None
    assert studies.summarise(model).roles == ()
    again = studies.start(model, source)
    until(lambda: again.is_finished)
    profile = studies.find_profile(model, source.digest)
    assert profile is not None
    assert not list(home.rglob(".*"))
    corpus = reading.parse_file(source.data, uploads.NEUTRAL_NAME)
    whole = study(Encoder.from_folder(Path(model.path), name=model.name), corpus)
    # A server stores no visitor's sentences; the built-in ones it has anyway.
    assert profile.files() == replace(whole, sentences=()).files()


def test_a_half_written_or_damaged_profile_is_none(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """The states in which a server leaves it that is killed between two tables, the roles are there and profile.json is
    not, and in which a disk leaves it that loses a bit: the page offers to measure the model."""
    profile = study(Encoder.from_folder(tiny_folder("bert")), grammar.corpus(40, 5))
    key = "0" * 32
    folder = tmp_path / key
    profile.write(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mha_viz.app.service.profiles.get_root_folder", lambda: tmp_path)
        patched.setattr("mha_viz.app.service.profiles.make_key", lambda *_: key)
        model, roles = catalog.resolve(str(tiny_folder("bert"))), (folder / "roles.csv").read_bytes()
        assert studies.summarise(model).is_measured
        (folder / "roles.csv").write_bytes(roles.replace(b"0.", b"1.", 1))
        is_none(model)
        (folder / "roles.csv").write_bytes(roles)
        (folder / "profile.json").unlink()
        is_none(model)


def is_none(model: catalog.Model) -> None:
    restart_server()
    assert studies.find_profile(model, load_built_in_corpus().digest) is None
    assert studies.summarise(model).roles == ()
    assert not studies.summarise(model).is_measured


def test_a_training_ends_with_the_server_that_began_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with killed(the_longest_training, home) as child_processes:
        assert len(child_processes) == 1
        until(lambda: not any(map(alive, child_processes)))
    assert list(home.iterdir()) == [], "neither results nor temporary files"


def left() -> NoReturn:
    """End a copy of this process as a server ends."""
    atexit._clear()  # what the libraries of the tests registered is not a server's
    end_server(signal.SIGTERM)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("what", ["training", "study"])
def test_sigterm_leaves_nothing_after_five_seconds(
    what: str, tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work has time to save what it has done; what it keeps is as after SIGKILL."""
    home = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    model, source = catalog.resolve(str(tiny_folder("bert"))), treebank(100)
    start = the_longest_training if what == "training" else partial(studies.start, model, source)
    with killed(start, home, left) as child_processes:
        assert len(child_processes) == 1
        assert not any(map(alive, child_processes))
        assert time.time() - home.with_suffix(".log").stat().st_mtime < SECONDS_TO_END
    assert not list(home.rglob("*.part"))


def test_sigterm_ends_a_child_that_notices_nothing(tmp_path: Path) -> None:
    def serve() -> int:
        held = threading.Event()
        order = ("tests.children", {"do": "hold"}, children.Bounds(), lambda _: held.set())
        threading.Thread(target=USUAL, args=order, daemon=True).start()
        assert held.wait(PATIENCE)
        print(*children_of(os.getpid()))
        left()

    server = Copy(serve, tmp_path / "log")
    assert server.wait() == 0, server.log.read_text()
    child_processes = [*map(int, server.log.read_text().split())]
    assert len(child_processes) == 1
    until(lambda: not any(map(alive, child_processes)))
    assert time.time() - server.log.stat().st_mtime < SECONDS_TO_END


@pytest.mark.parametrize("given", ["", "threading.Event()"], ids=["answers requests", "does one piece of work"])
def test_a_process_ends_soon_after_its_parent(given: str) -> None:
    """Also one that has not read all that was sent, and is in the middle of a call."""
    script = f"import threading, time\nfrom mha_viz.process.orphans import end_with_parent\nend_with_parent({given})\n"
    command, environment = process.build_python_command("-c", f"{script}print('begun', flush=True)\ntime.sleep(120)")
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"begun\n"
            child.stdin.write(b"never read")
            child.stdin.flush()
            time.sleep(1)
            assert child.poll() is None
            child.stdin.close()
            assert child.wait(SECONDS_TO_END) == 1
        finally:
            child.kill()


# ---- A disk that takes no more ------------------------------------------------------------------------------------


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse every write beyond this many bytes of a file, here and in children, in the middle of the
    file; sums and tables of forty sentences exceed 4096."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.usefixtures("in_process")
def test_a_study_that_the_disk_cannot_take_says_so_and_leaves_nothing_half_written(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = catalog.resolve(str(tiny_folder("bert")))
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    with files_of_at_most(4096):
        job = studies.start(model, treebank(40))
        until(lambda: job.is_finished)
    assert isinstance(job.error, ExportError)
    assert "could not be saved on the server's disk: File too large" in str(job.error)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("in_process")
def test_a_profile_that_the_disk_cannot_take_is_known_until_the_server_ends(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    model = catalog.resolve(str(tiny_folder("bert")))
    usual = studies.parse_profile
    with ExitStack() as full:

        def measured(value: Any) -> Any:
            full.enter_context(files_of_at_most(4096))
            return usual(value)

        monkeypatch.setattr(studies, "parse_profile", measured)
        job = studies.start(model, treebank(40))
        until(lambda: job.is_finished)
    assert job.error is None
    assert studies.find_profile(model, treebank(40).digest) is not None
    assert "File too large" in str(studies.find_write_error(model, treebank(40).digest))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
