"""Which cores a forward pass takes: every core, one pass at a time; or several passes at once, each on its own share.

Few large passes are quickest one after the other, each on all cores. For many of them, with other work after each, it
is better that every core has a pass of its own: none waits for another.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

MOST = 4  # workers of a crew: each holds a batch of its own in memory


class _Mine(threading.local):
    share = False  # True for the workers of a crew, which have cores of their own


class Turn:
    """A lock for passes that use every core: two at once would only fight for them. A crew's workers pass freely."""

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
    def crew(self) -> Iterator[ThreadPoolExecutor]:
        """Workers among whom the cores are divided; not for a worker of another crew. At the end what has begun is
        awaited, and nothing more begins."""
        cores = torch.get_num_threads()
        workers = min(MOST, cores)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="crew")
        try:
            self._start(pool, workers, cores)
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)

    def _start(self, pool: ThreadPoolExecutor, workers: int, cores: int) -> None:
        met = threading.Barrier(workers + 1)

        def begin() -> None:
            try:
                torch.get_num_threads()  # PyTorch asks for a thread's number once; only then can it be another
                torch.set_num_threads(cores // workers)
                self._mine.share = True
                met.wait()
            except BaseException:
                met.abort()  # nobody waits for this one
                raise

        with self._lock:  # no thread asks for its number meanwhile
            try:
                for _ in range(workers):
                    pool.submit(begin)
                met.wait()
            finally:
                met.abort()  # sets free who would wait for one that cannot start
                torch.set_num_threads(cores)


turn = Turn()
