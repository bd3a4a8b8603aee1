"""Caches that all visitors of a server share: models' answers, packed drawings, and objects that are created once.

Each cache is bounded in bytes or entries.

Models live in a separate process (:mod:`mha_viz.app.service.reader`). One worker thread calls it and serves visitors in
turn. No cache key contains an array: results computed from a reading are cached under the reading's key.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakSet

import numpy as np

from mha_viz.analysis.distance import compute_divergences_from, divergence, find_nearest_heads
from mha_viz.app.service.reader import Reader, verbs
from mha_viz.app.url.annotated_texts import read_words
from mha_viz.attention import Attention, Head
from mha_viz.attention.steps import TYPED
from mha_viz.attention.trace import Parameters, Trace
from mha_viz.errors import Busy, Cancelled, MhaVizError
from mha_viz.figures.layout.packet import OpenHead, Overview, RankedLink, build_packet, compute_overview
from mha_viz.figures.layout.panels import Panel, pack_comparison, set_initial_state
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog, hub
from mha_viz.models.getting.folder import Facts, read_stamps
from mha_viz.process.messages import estimate_size
from mha_viz.process.turns import FairWorker
from mha_viz.request import Request
from mha_viz.text import Token, TokenizedText, align

if TYPE_CHECKING:
    from mha_viz.app.service.reader.models import Models


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


class BoundedCache(Generic[K, V]):
    """A thread-safe least-recently-used cache of at most ``limit`` bytes, as ``size`` counts them.

    The newest entry always stays, however large it is. When all visitors have left, only the newest entries of at most
    ``idle_bytes`` bytes stay. Use ``idle_bytes`` for values that took long to compute.
    """

    def __init__(self, limit: int, size: Callable[[V], int], idle_bytes: int = 0) -> None:
        self._limit, self._size, self._idle_bytes = limit, size, idle_bytes
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        with _caches_lock:
            _caches.add(self)

    def get(self, key: K) -> V | None:
        """Return the value cached under ``key`` and mark it as the most recently used; None if there is none."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: K, value: V) -> V:
        """Cache ``value`` and return it; drop the oldest entries until the cache is within its limit."""
        with self._lock:
            if key in self._entries:
                self.bytes -= self._size(self._entries.pop(key))
            self._entries[key] = value
            self.bytes += self._size(value)
            while self.bytes > self._limit and len(self._entries) > 1:
                self.bytes -= self._size(self._entries.popitem(last=False)[1])
        return value

    def shrink(self) -> None:
        """Drop the oldest entries until at most ``idle_bytes`` bytes are left. Called once all visitors have left."""
        with self._lock:
            while self.bytes > self._idle_bytes:
                self.bytes -= self._size(self._entries.popitem(last=False)[1])

    def drop(self, key: K) -> None:
        """Remove the entry under ``key``, if there is one."""
        with self._lock:
            if key in self._entries:
                self.bytes -= self._size(self._entries.pop(key))


class Once(Generic[V]):
    """A function without arguments that is executed once per process, even if several threads call it at once.

    Streamlit's own cache does the same, but any browser can make Streamlit clear it.
    """

    def __init__(self, make: Callable[[], V]) -> None:
        self._make, self._results = make, list[V]()
        self._lock = threading.Lock()

    def __call__(self) -> V:
        with self._lock:
            if not self._results:
                self._results.append(self._make())
            return self._results[0]

    def clear(self) -> None:
        """Forget the result, so that the next call computes it again."""
        with self._lock:
            self._results.clear()


_caches: WeakSet[BoundedCache[Any, Any]] = WeakSet()
_caches_lock = threading.Lock()
_clear_functions: list[Callable[[], None]] = []  # functions that empty the caches of :func:`cache_results`


def cache_results(max_results: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Return a decorator that caches the last ``max_results`` results of a function until all visitors have left."""

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        cached_function = lru_cache(maxsize=max_results)(function)
        _clear_functions.append(cached_function.cache_clear)
        return cached_function  # type: ignore[return-value]

    return decorate


def release_caches() -> None:
    """Shrink all caches to the entries that stay when there are no visitors."""
    with _caches_lock:
        caches = list(_caches)
    for clear in (*(bounded_cache.shrink for bounded_cache in caches), *_clear_functions):
        clear()


# ---- Answers of models -------------------------------------------------------------------------------------

READING_BYTES = 60_000_000
PACKET_BYTES = 16_000_000
TRACE_BYTES = 50_000_000
MAX_FAILURES = 64  # maximum number of models whose loading errors are remembered
FAILURE_SECONDS = 60.0  # seconds for which an error is remembered, unless somebody tries again
WARM_DELAY_S = 1.0  # seconds after the first picture

Key = tuple[object, ...]


class ModelService:
    """Answers requests to models, from a cache or from the process that runs models, as Futures."""

    def __init__(self) -> None:
        self._turns = FairWorker("inference")
        # Returns the visitor and the tab that send a request.
        self.identify_asker: Callable[[], tuple[str, str]] = _identify_nobody
        self._reader = _get_reader()
        self.readings = BoundedCache[Key, Attention](READING_BYTES, lambda a: a.weights.nbytes)
        self._packets = BoundedCache[Key, bytes](PACKET_BYTES, len)
        self._failures = BoundedCache[str, tuple[float, MhaVizError]](MAX_FAILURES, lambda _: 1)
        self._overviews = BoundedCache[str, Overview](PACKET_BYTES, lambda o: len(o.thumbs) + 30_000)
        self._derived_results = BoundedCache[Key, bytes](PACKET_BYTES, len)
        self._traces = BoundedCache[Key, Trace](TRACE_BYTES, lambda trace: trace.bytes)
        self._parameters = BoundedCache[tuple[str, int], Parameters](
            TRACE_BYTES, lambda parameters: sum(array.nbytes for array in parameters)
        )
        self._answers = BoundedCache[Key, Any](PACKET_BYTES, estimate_size)
        self._is_warming = False
        self._cache_first_reading()

    def _cache_first_reading(self) -> None:
        first_reading = load_first_reading()
        self.readings.put(_make_key(verbs.read, Request(catalog.DEFAULT, first_reading.text.text)), first_reading)

    def reset(self) -> None:
        """Reset the service to its initial state.

        The process that runs models is kept if it holds nothing but the default model, because the next visitor needs
        that.
        """
        self._cache_first_reading()
        if self._reader.loaded_models - {catalog.choose_default().name}:
            self._reader.close()
            self._is_warming = False
        with contextlib.suppress(MhaVizError):
            self._reader.free_memory()

    def ask(self, verb: Callable[Concatenate[Models, P], V], *arguments: P.args, **options: P.kwargs) -> Future[V]:
        """Call a verb of ``app.service.reader.verbs`` with these arguments and return a Future of its result.

        The Future raises the model's errors. Raises Busy as ``process.turns`` does.
        """
        return self._submit(lambda: self._reader.ask(verb, *arguments, **options), arguments)

    def ask_cached(
        self, verb: Callable[Concatenate[Models, P], V], *arguments: P.args, **options: P.kwargs
    ) -> Future[V]:
        """Call a verb as :meth:`ask` does, or answer from the cache if the same call was made before.

        The Future of a cached answer is already done. Also raises the errors of ``catalog.resolve``.
        """
        special_caches: dict[Callable[..., object], BoundedCache[Key, Any]]
        special_caches = {verbs.read: self.readings, verbs.trace: self._traces}
        verb_cache = special_caches.get(verb, self._answers)
        key = _make_key(verb, *arguments, *sorted(options.items()))

        def work() -> V:
            value: V | None = verb_cache.get(key)  # another visitor's request may have been answered meanwhile
            if value is None:
                value = verb_cache.put(
                    key, self._share_parameters(self._reader.ask(verb, *_fill_words(*arguments), **options))
                )
            return value

        value = verb_cache.get(key)
        if value is None:
            return self._submit(work, arguments)
        finished_future: Future[V] = Future()
        finished_future.set_result(value)
        return finished_future

    def pack_reading(
        self, attention: Attention, heads: tuple[Head, ...], link: RankedLink | None, opening: OpenHead
    ) -> bytes:
        """Return the reading packed for the browser (``figures.layout.packet``). Raises UnknownHead."""
        key = (attention.key, heads, link, opening)
        overview = self._overviews.get(attention.key) or self._overviews.put(attention.key, compute_overview(attention))
        return self._packets.get(key) or self._packets.put(key, build_packet(attention, heads, link, opening, overview))

    def pack_panels(self, panels: Sequence[Panel], positions: tuple[int, ...] | None, **initial_state: str) -> bytes:
        """Return heads side by side, packed for the browser.

        Args:
            panels: the heads.
            positions: their positions in the list of compared heads; None if they are not from that list.
            initial_state: how they open (:func:`mha_viz.figures.layout.panels.set_initial_state`).
        """
        key = (positions, *sorted(initial_state.items()), *((p.attention.key, p.head, p.name) for p in panels))
        editable = False if positions is None else positions

        def pack_and_open() -> bytes:
            packet = pack_comparison(panels, editable=editable)
            return set_initial_state(packet, **initial_state)

        return self._packets.get(key) or self._packets.put(key, pack_and_open())

    def derive(self, attention: Attention, subkey: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return the cached result of ``make``, which must depend on nothing but the reading and ``subkey``."""
        key = (attention.key, subkey)
        return self._derived_results.get(key) or self._derived_results.put(key, make())

    def find_similar_heads(self, attention: Attention, head: Head, count: int) -> list[tuple[Head, float]]:
        """Return the ``count`` heads most similar to ``head``, most similar first, with the divergence in nats."""
        distances = compute_divergences_from(attention, head)
        neighbours = find_nearest_heads(distances, attention.place(head), count)
        heads = attention.every_head()
        return [(heads[index], float(distances[index])) for index in neighbours]

    def find_most_similar_head(self, attention: Attention, head: Head, other: Attention) -> tuple[Head, float | None]:
        """Return the head of ``other`` that is most similar to ``head`` word by word, with the divergence in nats.

        If the words of the two texts do not correspond one to one, return the head with the same number, or with the
        nearest number that exists, and None.
        """
        layer = max(
            (candidate for candidate in other.layer_numbers if candidate <= head.layer), default=other.layer_numbers[0]
        )
        default_head = Head(layer, min(head.head, other.heads - 1))
        if attention.is_cross or other.is_cross:
            return default_head, None
        alignment = align(attention.text, other.text).pairs
        if alignment != tuple(range(len(other.text.groups))):
            return default_head, None
        matrix, words = attention.by_words()[head], other.by_words()
        nats, best_head = min((divergence(matrix, words[candidate]), candidate) for candidate in other.every_head())
        return best_head, nats

    def get_failure(self, model: catalog.Model) -> MhaVizError | None:
        """Return the error if ``model`` recently failed to load, else None.

        This saves waiting for the same error again.
        """
        failed_at, error = self._failures.get(model.name) or (-FAILURE_SECONDS, None)
        return error if time.monotonic() - failed_at < FAILURE_SECONDS else None

    def note_failure(self, model: catalog.Model, error: MhaVizError) -> None:
        """Remember why ``model`` could not be loaded, unless it was cancelled or the queue was full."""
        if not isinstance(error, Cancelled | Busy):
            self._failures.put(model.name, (time.monotonic(), error))

    def forget_failure(self, model: catalog.Model) -> None:
        """Forget why ``model`` could not be loaded, so that the next request tries again."""
        self._failures.drop(model.name)

    def has_reading(self, request: Request) -> bool:
        """Return whether the reading is cached, so that no model is needed."""
        return self.readings.get(_make_key(verbs.read, request)) is not None

    def warm(self, model: catalog.Model) -> None:
        """Load ``model`` in the background after a short delay, so that the page's files are sent first."""
        if not self._is_warming:
            self._is_warming = True
            timer = threading.Timer(WARM_DELAY_S, self._load_model, (model,))
            timer.daemon = True
            timer.start()

    def _load_model(self, model: catalog.Model) -> None:
        with contextlib.suppress(Busy):  # a visitor's request will load it
            self.ask(verbs.load, model.name)

    def _submit(self, work: Callable[[], V], arguments: Sequence[object] = ()) -> Future[V]:
        characters = sum(len(r.text) + len(r.pair) for r in arguments if isinstance(r, Request))
        return self._turns.submit(work, *self.identify_asker(), characters)

    def _share_parameters(self, value: V) -> V:
        """Return the value. A trace shares its parameters with earlier traces of the same layer.

        The parameters are most of a trace's bytes.
        """
        if not isinstance(value, Trace):
            return value
        layer_key = value.model, value.layer
        parameters = self._parameters.get(layer_key)
        if parameters is not None and all(map(np.array_equal, parameters, value.parameters)):
            return replace(value, parameters=parameters)
        self._parameters.put(layer_key, value.parameters)
        return value


def _identify_nobody() -> tuple[str, str]:
    return "", ""


def _make_key(verb: Callable[..., object], *arguments: object) -> Key:
    """Return the cache key for a call of a verb.

    If the model comes from a folder, the key includes the state of its files, which may change.
    """
    model = catalog.resolve(verbs.find_model_name(*arguments))
    file_state = [read_stamps(Path(model.path))] if model.kind == "folder" else []
    return (verb.__name__, *arguments, *file_state)


def _fill_words(request: Any, *other_arguments: Any) -> tuple[Any, ...]:
    """Return the arguments of a call. If the text defines its words (CoNLL-U), add them to the request.

    In other texts, the tokenizer finds the words.
    """
    if isinstance(request, Request) and not request.pair:
        request = replace(request, words=read_words(request.text) or ())
    return (request, *other_arguments)


@Once
def _get_reader() -> Reader:
    """Return the process that runs models; there is one per server."""
    return Reader()


@Once
def get_model_service() -> ModelService:
    """Return the only ModelService of this process."""
    return ModelService()


def empty_caches() -> None:
    """Shrink the caches of all modules and reset the model service; called once all visitors have left."""
    release_caches()
    get_model_service().reset()


def is_ready(model: catalog.Model) -> bool:
    """Return whether the files of ``model`` are on this machine."""
    return read_facts(model) is not None


def read_facts(model: catalog.Model) -> Facts | None:
    """Return the facts in the files of ``model``; None if the files are not on this machine.

    The files of models that come with the app are read only once. Raises the errors of ``hub.read_facts``.
    """
    return _read_bundled_facts(model) if model.kind in ("bundled", "own") else hub.read_facts(model)


_read_bundled_facts = cache(hub.read_facts)


def load_first_reading() -> Attention:
    """Load the stored reading of the first example by the default model, so that the first picture does not need torch.

    ``tests/test_first_reading.py`` checks that it equals a live reading.
    """
    with np.load(asset_path("first_reading.npz"), allow_pickle=False) as archive:
        fields = json.loads(str(archive["reading"]))
        tokens = tuple(Token(**token) for token in fields["tokens"])
        text = TokenizedText(fields["text"], "", tokens)
        return Attention(fields["model"], fields["revision"], text, archive["weights"], made=(TYPED,))
