"""Which threads compute on which cores: one pass on all of them, or a pool whose workers have a share each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event

import pytest
import torch
from threadpoolctl import threadpool_info

from mha_viz.models.reading.cores import MAX_WORKERS, PassLock, one_blas_thread
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def eight_cores() -> Iterator[None]:
    """As on a machine with eight cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


def in_a_new_thread() -> int:
    """The number of threads that a pass can use in a new thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_the_cores_are_divided_among_the_workers_and_nobody_else_is_slowed() -> None:
    assert MAX_WORKERS == 4
    all_there = threading.Barrier(MAX_WORKERS)

    def share(_: int) -> tuple[int, int]:
        all_there.wait(timeout=PATIENCE)
        return threading.get_ident(), torch.get_num_threads()

    with PassLock().worker_pool() as workers:
        shares = list(workers.map(share, range(MAX_WORKERS)))
        assert (torch.get_num_threads(), in_a_new_thread()) == (8, 8)
    assert len({thread for thread, _ in shares}) == MAX_WORKERS
    assert [threads for _, threads in shares] == [2] * MAX_WORKERS
    assert (torch.get_num_threads(), in_a_new_thread()) == (8, 8)


def test_on_one_core_there_is_one_worker() -> None:
    torch.set_num_threads(1)
    with PassLock().worker_pool() as workers:
        assert len(set(workers.map(lambda _: threading.get_ident(), range(20)))) == 1
        assert workers.submit(torch.get_num_threads).result() == 1


def test_others_take_turns_and_workers_do_not_wait() -> None:
    pass_lock, asked, done = PassLock(), Event(), Event()

    def other() -> None:
        asked.set()
        with pass_lock:
            done.set()

    def worker() -> bool:
        with pass_lock:
            return True

    with pass_lock.worker_pool() as workers:
        with pass_lock:
            threading.Thread(target=other, daemon=True).start()
            assert asked.wait(PATIENCE)
            assert workers.submit(worker).result(timeout=PATIENCE)
            assert not done.wait(0.05)
        assert done.wait(PATIENCE)


def test_a_worker_pool_that_cannot_start_says_so_and_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, pass_lock = threading.Thread.start, PassLock()
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        usual(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start"), pass_lock.worker_pool():
        pass
    monkeypatch.undo()
    assert not begun[0].is_alive()
    with pass_lock:
        assert (torch.get_num_threads(), in_a_new_thread()) == (8, 8)


def test_a_worker_that_cannot_begin_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, pass_lock = torch.set_num_threads, PassLock()

    def refuse(threads: int) -> None:
        if threads < 8:
            raise ValueError
        usual(threads)

    monkeypatch.setattr(torch, "set_num_threads", refuse)
    with pytest.raises(threading.BrokenBarrierError), pass_lock.worker_pool():
        pass
    with pass_lock:
        assert (torch.get_num_threads(), in_a_new_thread()) == (8, 8)


def test_no_worker_pool_begins_in_the_middle_of_a_pass() -> None:
    pass_lock, begun = PassLock(), Event()

    def study() -> None:
        with pass_lock.worker_pool():
            begun.set()

    with pass_lock:
        threading.Thread(target=study, daemon=True).start()
        assert not begun.wait(0.2)
        assert in_a_new_thread() == 8
    assert begun.wait(PATIENCE)


def test_what_has_not_begun_when_the_pool_is_left_never_begins() -> None:
    torch.set_num_threads(1)
    begun, late = Event(), Event()
    waiting: Queue[Future[None]] = Queue()

    def first() -> None:
        begun.set()
        second = waiting.get(timeout=PATIENCE)
        until(second.cancelled)

    with PassLock().worker_pool() as workers:
        running = workers.submit(first)
        second = workers.submit(late.set)
        assert begun.wait(PATIENCE)
        waiting.put(second)
    assert running.done()
    assert running.exception() is None
    assert second.cancelled()
    assert not late.is_set()


def test_products_take_one_thread_until_the_last_has_left() -> None:
    before = _threads_of_blas()
    with one_blas_thread:
        with one_blas_thread:
            pass
        assert {*_threads_of_blas()} == {1}
    assert _threads_of_blas() == before


def _threads_of_blas() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
