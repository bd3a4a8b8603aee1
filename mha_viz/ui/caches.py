"""What is cached for all visitors of one server: bounded caches, and objects that are made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


class BoundedCache(Generic[K, V]):
    """A least-recently-used cache bounded in bytes; the newest entry always stays. Safe between threads.

    When all visitors have left, the latest entries of at most ``at_rest`` bytes stay, for values that took long to
    make.
    """

    def __init__(self, limit: int, size: Callable[[V], int], at_rest: int = 0) -> None:
        self._limit, self._size, self._at_rest = limit, size, at_rest
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        with _caches_lock:
            _caches.add(self)

    def get(self, key: K) -> V | None:
        """The value cached under ``key``, which becomes the most recent one."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: K, value: V) -> V:
        """Cache ``value``; the oldest entries are dropped until the rest is within the limit."""
        with self._lock:
            if key in self._entries:
                self.bytes -= self._size(self._entries.pop(key))
            self._entries[key] = value
            self.bytes += self._size(value)
            while self.bytes > self._limit and len(self._entries) > 1:
                self.bytes -= self._size(self._entries.popitem(last=False)[1])
        return value

    def rest(self) -> None:
        """All visitors have left: drop the oldest entries, down to ``at_rest`` bytes."""
        with self._lock:
            while self.bytes > self._at_rest:
                self.bytes -= self._size(self._entries.popitem(last=False)[1])

    def drop(self, key: K) -> None:
        """Drop the entry under ``key``, if there is one."""
        with self._lock:
            if key in self._entries:
                self.bytes -= self._size(self._entries.pop(key))


class Once(Generic[V]):
    """A function without arguments that makes one object for the whole process, however many threads call it at once.

    Streamlit's own cache does the same, but any browser can make Streamlit clear it.
    """

    def __init__(self, make: Callable[[], V]) -> None:
        self._make, self._made = make, list[V]()
        self._lock = threading.Lock()

    def __call__(self) -> V:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    def clear(self) -> None:
        """Forget the object; the next call makes another."""
        with self._lock:
            self._made.clear()


_caches: WeakSet[BoundedCache[Any, Any]] = WeakSet()
_caches_lock = threading.Lock()
_results: list[Callable[[], None]] = []  # functions that clear the results of :func:`lasting`


def lasting(most: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """A decorator that caches the ``most`` latest results of a function until all visitors have left."""

    def keep(function: Callable[P, V]) -> Callable[P, V]:
        cached = lru_cache(maxsize=most)(function)
        _results.append(cached.cache_clear)
        return cached  # type: ignore[return-value]

    return keep


def rest() -> None:
    """All visitors have left: free what was cached for them."""
    with _caches_lock:
        caches = list(_caches)
    for clear in (*(cache.rest for cache in caches), *_results):
        clear()
