"""Which cores a forward pass uses: all cores, one pass at a time; or several passes at once, each on its own share.

A few large passes are fastest one after the other, each on all cores. For many passes, with other work after each, it
is better to give every core a pass of its own, so that none waits for another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

MOST = 4  # the most workers of a worker pool: each holds a batch in memory


@cache
def _libraries() -> Any:
    return ThreadpoolController()


class OneBlasThread:
    """While anybody is in it, NumPy's products take one thread: the threads of BLAS go on spinning for a while after
    each product, and those of PyTorch wait for them, which makes a pass several times as slow."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _libraries().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


one_blas_thread = OneBlasThread()


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
