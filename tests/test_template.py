"""A template makes copies of itself, which have what it imported, two pipes, and nothing else."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from mha_viz import process
from mha_viz.app.service.reader import starting
from mha_viz.process import template
from mha_viz.process.template import PipedProcess, Template
from tests.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(not template.is_supported(), reason="this system has no templates"),
]

TEMPLATE = """
import os, sys, threading, time
from mha_viz.process.template import serve_copies
imported, fork = os.getpid(), os.fork
if "no room" in sys.argv:
    def full():
        os.fork = fork
        raise BlockingIOError
    os.fork = full
if "ends when asked" in sys.argv:
    os.fork = lambda: os._exit(1)
if "threads" in sys.argv:
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()

def work():
    files = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    print(imported, os.getpid(), *files, flush=True)
    for line in sys.stdin:
        if line == "fail\\n":
            raise OSError
        print(line.upper(), end="", flush=True)

serve_copies(work)
"""


def _alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def begun() -> Iterator[Callable[..., Template]]:
    """What begins a template; each is ended after the test."""
    each = list[Template]()

    def begin(*arguments: str) -> Template:
        each.append(Template(*process.build_python_command("-c", TEMPLATE, *arguments)))
        return each[-1]

    yield begin
    for one in each:
        one.close()


def first_line(copy: PipedProcess) -> list[int]:
    """Who imported, the number of the process, and the files that are open in it."""
    return [int(word) for word in copy.stdout.readline().split()]


def test_copies_have_what_was_imported_once_and_hold_only_their_pipes(begun: Callable[..., Template]) -> None:
    one = begun()
    copies = [one.copy(PATIENCE) for _ in range(3)]
    for copy in copies:
        imported, pid, *files = first_line(copy)
        assert (imported, pid) == (one.pid, copy.pid)
        assert files == [0, 1, 2, 3], "0 to 2, and the list of them itself"
        assert psutil.Process(pid).ppid() == one.pid
    assert len({copy.pid for copy in copies}) == 3
    copies[1].stdin.write(b"it answers\n")
    copies[1].stdin.flush()
    assert copies[1].stdout.readline() == b"IT ANSWERS\n"
    for copy in copies:
        assert copy.poll() is None
        copy.communicate()
        assert copy.poll() == 0


def test_a_copy_that_ends_is_noticed_and_forgotten_with_the_next(begun: Callable[..., Template]) -> None:
    one = begun()
    killed, failed = one.copy(PATIENCE), one.copy(PATIENCE)
    killed.kill()
    killed.wait()
    failed.stdin.write(b"fail\n")
    failed.stdin.flush()
    failed.wait()
    assert (killed.poll(), failed.poll()) == (0, 0)
    killed.kill()  # nothing, because it has ended
    after = one.copy(PATIENCE)
    assert not psutil.pid_exists(killed.pid)
    assert not psutil.pid_exists(failed.pid)
    for copy in (killed, failed, after):
        copy.communicate()
    killed.kill()


def test_a_template_with_threads_makes_no_copy_but_works_itself_once(begun: Callable[..., Template]) -> None:
    one = begun("threads")
    itself = one.copy(PATIENCE)
    assert first_line(itself)[:2] == [one.pid, one.pid]
    assert itself.pid == one.pid
    assert not one.is_running, "so that another is begun"
    with pytest.raises(OSError):  # noqa: PT011 (whatever the system calls it)
        one.copy(PATIENCE)
    itself.communicate()


def test_a_template_that_ends_says_so_and_leaves_its_copies(begun: Callable[..., Template]) -> None:
    one = begun()
    copy = one.copy(PATIENCE)
    os.kill(one.pid, signal.SIGKILL)
    until(lambda: not one.is_running)
    with pytest.raises(OSError):  # noqa: PT011
        one.copy(PATIENCE)
    copy.stdin.write(b"still here\n")
    copy.stdin.flush()
    assert first_line(copy)
    assert copy.stdout.readline() == b"STILL HERE\n"
    copy.communicate()


def test_a_template_that_ended_begins_again_before_a_reader_is_needed(
    begun: Callable[..., Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "SPARE_SECONDS", 0.0)
    monkeypatch.setattr(starting, "Template", lambda *_: begun())
    starter = starting.CopyStarter()
    pids = list[int]()
    for _ in range(2):
        copy = starter.start()
        starter.prepare()
        starter.prepare()
        assert starter._template
        pids.append(starter._template.pid)
        assert first_line(copy)[0] == pids[-1], "the one that was prepared, and no third"
        copy.communicate()
        os.kill(pids[-1], signal.SIGKILL)
        until(lambda: not starter._template or not starter._template.is_running)
        starter.prepare()
    assert starter._template.pid not in pids


def test_one_that_is_not_ready_in_time_is_not_waited_for(begun: Callable[..., Template]) -> None:
    one = begun()
    os.kill(one.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        one.copy(0.05)


def test_copies_are_made_and_watched_by_a_server_with_more_than_a_thousand_connections(
    begun: Callable[..., Template],
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_500), hard))
    one = begun()
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        copy = one.copy(PATIENCE)
        assert first_line(copy)[2:] == [0, 1, 2, 3]
        assert copy.poll() is None
        copy.kill()
        copy.wait()
        assert copy.poll() == 0
        copy.communicate()
    finally:
        for number in many:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("module", "name"), [(os, "pidfd_open"), (signal, "pidfd_send_signal")])
def test_a_python_without_handles_of_processes_makes_no_templates(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    monkeypatch.delattr(module, name)
    assert not template.is_supported()
    assert isinstance(starting.make_starter(), starting.SpareStarter)


def test_a_template_that_cannot_make_a_copy_says_so_and_stays(begun: Callable[..., Template]) -> None:
    one = begun("no room")
    with pytest.raises(BlockingIOError):
        one.copy(PATIENCE)
    assert one.is_running
    copy = one.copy(PATIENCE)
    assert first_line(copy)[0] == one.pid
    copy.communicate()


def test_a_template_that_ends_when_it_is_asked_is_replaced_at_once(
    begun: Callable[..., Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = iter([("ends when asked",), ()])
    monkeypatch.setattr(starting, "Template", lambda *_: begun(*next(arguments)))
    copy = starting.CopyStarter().start()
    assert first_line(copy)[1] == copy.pid
    copy.communicate()


def test_no_descriptor_is_left_where_pipes_cannot_be_made(
    begun: Callable[..., Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = begun()
    pipes = iter([os.pipe()])

    def pipe() -> tuple[int, int]:
        if made := next(pipes, None):
            return made
        raise OSError(errno.EMFILE, "Too many open files")

    before = psutil.Process().num_fds()
    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(OSError, match="Too many"):
        one.copy(PATIENCE)
    assert psutil.Process().num_fds() == before - 2


def test_the_copies_of_a_template_that_is_closed_are_buried(begun: Callable[..., Template]) -> None:
    one = begun()
    copy = one.copy(PATIENCE)
    copy.kill()
    copy.communicate()
    one.close()
    assert not psutil.pid_exists(copy.pid)


def test_templates_and_copies_end_with_the_process_that_asks(begun: Callable[..., Template]) -> None:
    """The ends of its pipes and of the socket close then, as they do here."""
    one = begun()
    copy = one.copy(PATIENCE)
    one._requests.close()
    until(lambda: not _alive(one.pid))
    assert _alive(copy.pid)
    copy.communicate()
