"""Divide CPU cores among forward passes: one pass at a time on all cores, or several passes at once on shares of them.

A few large passes are fastest in sequence, each on all cores. Many passes with other work after each are faster if
every core runs its own, so that no pass waits for another.
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

MAX_WORKERS = 4  # maximum number of workers in a pool, because each holds a batch in memory


@cache
def _get_thread_controller() -> Any:
    """Return the controller of the thread pools of numeric libraries."""
    return ThreadpoolController()


class SingleBlasThread:
    """A context in which NumPy's products use a single thread. It can be nested and shared by threads.

    BLAS threads keep spinning for a while after each product, and PyTorch's threads wait for them, which makes a pass
    several times as slow.
    """

    def __init__(self) -> None:
        self._lock, self._uses = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._uses += 1
            if self._uses == 1:
                self._limit = _get_thread_controller().limit(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._uses -= 1
            if not self._uses:
                self._limit.restore_original_limits()


one_blas_thread = SingleBlasThread()


class _ThreadState(threading.local):
    """State of a thread."""

    is_pool_worker = False  # pool workers have cores of their own


class PassLock:
    """A lock for passes that use all cores, because two such passes would compete for them.

    The workers of a worker pool do not wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = _ThreadState()

    def __enter__(self) -> None:
        if not self._thread.is_pool_worker:
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if not self._thread.is_pool_worker:
            self._lock.release()

    @contextmanager
    def worker_pool(self) -> Iterator[ThreadPoolExecutor]:
        """Yield an executor among whose workers the cores are divided.

        A worker of one pool must not open another. At the end, work that has begun is completed, and other work is
        cancelled.
        """
        cores = torch.get_num_threads()
        workers = min(MAX_WORKERS, cores)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="worker_pool")
        try:
            self._start(pool, workers, cores)
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    def _start(self, pool: ThreadPoolExecutor, workers: int, cores: int) -> None:
        """Start the workers, each with its share of the cores."""
        barrier = threading.Barrier(workers + 1)

        def set_threads() -> None:
            """Set the number of threads of this worker."""
            try:
                torch.get_num_threads()  # PyTorch initialises this number on first reading; only then can it be changed
                torch.set_num_threads(cores // workers)
                self._thread.is_pool_worker = True
                barrier.wait()
            except BaseException:
                barrier.abort()  # so that no other thread waits for this one
                raise

        with self._lock:  # no other thread may read the number meanwhile
            try:
                for _ in range(workers):
                    pool.submit(set_threads)
                barrier.wait()
            finally:
                barrier.abort()  # releases the threads that wait for a thread that cannot start
                torch.set_num_threads(cores)


pass_lock = PassLock()
