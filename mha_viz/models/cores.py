"""Which cores a forward pass uses: all cores, one pass at a time; or several passes at once, each on its own share.

A few large passes are fastest one after the other, each on all cores. For many passes, with other work after each, it
is better to give every core a pass of its own, so that none waits for another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

MOST = 4  # the most workers of a worker pool: each holds a batch in memory


class _Mine(threading.local):
    share = False  # True for the workers of a worker pool, which have cores of their own


class PassLock:
    """A lock for passes that use every core, because two at once would compete for them. The workers of a worker pool
    do not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mine = _Mine()

    def __enter__(self) -> None:
        if not self._mine.share:
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if not self._mine.share:
            self._lock.release()

    @contextmanager
    def worker_pool(self) -> Iterator[ThreadPoolExecutor]:
        """Workers among which the cores are divided; a worker of one pool must not open another. At the end, work
        that has begun is awaited, and no other work begins."""
        cores = torch.get_num_threads()
        workers = min(MOST, cores)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="worker_pool")
        try:
            self._start(pool, workers, cores)
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    def _start(self, pool: ThreadPoolExecutor, workers: int, cores: int) -> None:
        met = threading.Barrier(workers + 1)

        def begin() -> None:
            try:
                torch.get_num_threads()  # PyTorch reads a thread's number once; only then can it be changed
                torch.set_num_threads(cores // workers)
                self._mine.share = True
                met.wait()
            except BaseException:
                met.abort()  # so that nobody waits for this thread
                raise

        with self._lock:  # no other thread may read the number meanwhile
            try:
                for _ in range(workers):
                    pool.submit(begin)
                met.wait()
            finally:
                met.abort()  # releases threads that wait for one that cannot start
                torch.set_num_threads(cores)


pass_lock = PassLock()
