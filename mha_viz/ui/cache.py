"""What one server process caches for all its visitors: readings and packets, each bounded in bytes.

Models live in a separate process (:mod:`mha_viz.reader`); one worker thread calls it, with a queue of bounded length in
front. No cache key contains an array: what is computed from a reading is cached under the reading's own key.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from mha_viz.analysis.distance import Map, Matrix, between_heads, divergence, from_head, nearest, plane
from mha_viz.analysis.effects import Changes, Effects, Numbers, Together
from mha_viz.analysis.removal import Removal, Switch
from mha_viz.analysis.syntax import Pointers
from mha_viz.attention import Attention, Head
from mha_viz.attention.answers import Ablation, Answer
from mha_viz.attention.trace import Parameters, Trace
from mha_viz.errors import Busy, Cancelled, MhaVizError
from mha_viz.figures.correspondence import Panel
from mha_viz.figures.packet import Link, Overview, Start, overview, packet
from mha_viz.figures.panels import opened, pack
from mha_viz.files.assets import asset
from mha_viz.models import catalog, hub
from mha_viz.models.folder import stamps
from mha_viz.reader import Reader
from mha_viz.request import Question
from mha_viz.text import Token, TokenizedText, align
from mha_viz.ui import shelves
from mha_viz.ui.annotated import words_of
from mha_viz.ui.shelves import Once, Shelf

READING_BYTES = 60_000_000
PACKET_BYTES = 16_000_000
TRACE_BYTES = 50_000_000
QUESTIONS = 500  # questions and answers
FAILURES = 64  # models that could not be loaded, with the reason…
FAILURE_SECONDS = 60.0  # …for this long, or until somebody tries again
WARM_AFTER = 1.0  # seconds after the first picture
WAITING = 64  # requests that may wait for the worker

Key = tuple[object, ...]
V = TypeVar("V")


class Target(NamedTuple):
    """The target of an encoder–decoder ("" if the model generates it) and the part that is shown; both are empty for a
    model with one stack."""

    text: str = ""
    part: str = ""


NONE = Target()


class Office:
    """The desk of the server process: ask for a reading, get a Future."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inference")
        self._places = threading.BoundedSemaphore(WAITING)
        self._reader = _reader()
        self.readings: Shelf[Key, Attention] = Shelf(READING_BYTES, lambda a: a.weights.nbytes)
        self._packets: Shelf[Key, bytes] = Shelf(PACKET_BYTES, len)
        self._failures: Shelf[str, tuple[float, MhaVizError]] = Shelf(FAILURES, lambda _: 1)
        self._overviews: Shelf[str, Overview] = Shelf(PACKET_BYTES, lambda o: len(o.thumbs) + 30_000)
        self._badges: Shelf[Key, bytes] = Shelf(PACKET_BYTES, len)
        self._distances: Shelf[str, Matrix] = Shelf(PACKET_BYTES, lambda matrix: matrix.nbytes)
        self._maps: Shelf[str, Map] = Shelf(PACKET_BYTES, lambda drawn: drawn.points.nbytes)
        self._traces: Shelf[Key, Trace] = Shelf(TRACE_BYTES, lambda trace: trace.bytes)
        self._parameters: Shelf[tuple[str, int], Parameters] = Shelf(
            TRACE_BYTES, lambda of_layer: sum(array.nbytes for array in of_layer)
        )
        self.effects: Shelf[Key, Effects] = Shelf(PACKET_BYTES, lambda whole: sum(array.nbytes for array in whole))
        self.together: Shelf[Key, Together] = Shelf(PACKET_BYTES, lambda one: one.tokens.nbytes + 500)
        self.at_random: Shelf[Key, Numbers] = Shelf(PACKET_BYTES, lambda values: values.nbytes)
        self._questions: Shelf[Key, Question] = Shelf(QUESTIONS, lambda _: 1)
        self._answers: Shelf[Key, Answer] = Shelf(QUESTIONS, lambda _: 1)
        self._per_head: Shelf[Key, Numbers] = Shelf(PACKET_BYTES, lambda values: values.nbytes)
        self.removals: Shelf[Key, Removal | Switch] = Shelf(QUESTIONS, lambda _: 1)
        self._warming = False
        self._begin()

    def _begin(self) -> None:
        first = first_reading()
        self.readings.put((catalog.DEFAULT, first.text.text, ""), first)

    def begin_again(self) -> None:
        """Reset to the initial state. The process with the models is kept if it holds only the default model, which the
        next visitor needs."""
        self._begin()
        if self._reader.loaded - {catalog.default().name}:
            self._reader.close()
            self._warming = False
        with contextlib.suppress(MhaVizError):
            self._reader.rest()

    def reading(self, model: catalog.Model, text: str, pair: str, of: Target = NONE) -> Future[Attention]:
        """The attention of ``model`` over a text, and, for an encoder–decoder, over a target. The Future raises what
        the encoder raises.

        Raises Busy if too many requests are waiting.
        """
        ask = partial(self._reader.read, model.name, text, pair, _words(text, pair), *of)
        return self._shelved(self.readings, _reading_key(model, text, pair, of), ask)

    def trace(self, model: catalog.Model, text: str, pair: str, layer: int) -> Future[Trace]:
        """Every step inside one layer of ``model`` over a text; Futures and errors as for :meth:`reading`."""
        key = (_state(model), text, pair, layer)
        return self._shelved(self._traces, key, lambda: self._traced(model.name, text, pair, layer))

    def without(self, model: catalog.Model, ablation: Ablation, off: tuple[Head, ...]) -> Future[Attention]:
        """The attention of ``model`` over a text while heads are off; Futures and errors as for :meth:`reading`."""
        words = _words(ablation.text, ablation.pair)
        key = (_state(model), ablation, off)
        return self._shelved(self.readings, key, lambda: self._reader.without(model.name, ablation, words, off))

    def norms(self, model: catalog.Model, text: str, pair: str) -> Future[Attention]:
        """Norm-weighted attention of ``model`` over a text; Futures and errors as for :meth:`reading`."""
        key = (_state(model), text, pair, "norm")
        return self._shelved(self.readings, key, lambda: self._reader.norms(model.name, text, pair, _words(text, pair)))

    def question(
        self, model: catalog.Model, text: str, pair: str, place: int | None, word: str, other: str
    ) -> Future[Question]:
        """The question to ``model`` about a text; Futures and errors as for :meth:`reading` and for
        ``models.answers.question_about``."""
        key = (_state(model), text, pair, place, word, other)
        words = _words(text, pair)
        ask = partial(self._reader.question, model.name, text, pair, words, place, word, other)
        return self._shelved(self._questions, key, ask)

    def answer(self, model: catalog.Model, ablation: Ablation, off: tuple[Head, ...]) -> Future[Answer]:
        """What ``model`` answers with and without the heads ``off``; Futures and errors as for :meth:`reading`."""
        key = (_state(model), ablation, off)
        return self._shelved(self._answers, key, lambda: self._reader.answer(model.name, ablation, off))

    def gradients(self, model: catalog.Model, text: str, pair: str, question: Question) -> Future[Attention]:
        """Attention weighted by the gradient of an answer's score; Futures and errors as for :meth:`reading`."""
        key = (_state(model), text, pair, question)
        ask = partial(self._reader.gradients, model.name, text, pair, _words(text, pair), question)
        return self._shelved(self.readings, key, ask)

    def per_head(
        self, what: Literal["direct", "importance"], model: catalog.Model, text: str, pair: str, question: Question
    ) -> Future[Numbers]:
        """One number per head of ``model`` for this question; Futures and errors as for :meth:`reading`."""
        key = (_state(model), text, pair, what, question)
        ask = partial(self._reader.per_head, what, model.name, text, pair, question)
        return self._shelved(self._per_head, key, ask)

    def lost(self, model: catalog.Model, ablation: Ablation, variants: Sequence[Sequence[Head]]) -> Future[Changes]:
        """The effects of switching heads off on a text and the answer, for several variants; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.lost_each(model.name, ablation, variants))

    def margins(self, model: catalog.Model, ablation: Ablation, variants: Sequence[Sequence[Head]]) -> Future[Numbers]:
        """How far a word is from being the answer, for each of several variants; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.margins(model.name, ablation, variants))

    def lost_at_random(
        self, model: catalog.Model, ablation: Ablation, off: tuple[Head, ...], draws: range
    ) -> Future[Numbers]:
        """The effect of removing random directions instead, for some draws; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.lost_at_random(model.name, ablation, off, draws))

    def some_effects(
        self, model: catalog.Model, ablation: Ablation, layer: int, heads: Sequence[int]
    ) -> Future[Effects]:
        """The effect of switching off each of some heads of a layer alone; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.effects(model.name, ablation, layer, heads))

    def measure_means(self, model: catalog.Model, first: int, end: int) -> Future[None]:
        """Add some of the built-in sentences to the mean outputs for the method "mean"; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.measure_means(model.name, first, end))

    def pointers(self, model: catalog.Model, first: int, end: int) -> Future[tuple[Pointers | None, ...]]:
        """Where every head of ``model`` points in some of the built-in sentences; Futures and errors as for
        :meth:`reading`."""
        return self._submit(lambda: self._reader.pointers(model.name, first, end))

    def repeats(self, model: catalog.Model, first: int, end: int, untrained: bool) -> Future[Numbers]:
        """The measures of heads on some repeated random sequences; Futures and errors as for :meth:`reading`."""
        return self._submit(lambda: self._reader.repeats(model.name, first, end, untrained))

    def packet(self, attention: Attention, wanted: tuple[Head, ...], link: Link | None, start: Start) -> bytes:
        """The reading packed for the browser (``figures.packet``). Raises UnknownHead."""
        key = (attention.key, wanted, link, start)
        thumbnails = self._overviews.get(attention.key) or self._overviews.put(attention.key, overview(attention))
        return self._packets.get(key) or self._packets.put(key, packet(attention, wanted, link, start, thumbnails))

    def panels(self, panels: Sequence[Panel], places: tuple[int, ...] | None, diff: str = "") -> bytes:
        """Heads side by side, packed for the browser; ``places``: their places among the compared heads, if they have
        any; ``diff``: the two that open with their difference."""
        key = (places, diff, *((p.attention.key, p.head, p.name) for p in panels))
        editable = False if places is None else places

        def packed() -> bytes:
            together = pack(panels, editable=editable)
            return opened(together, diff) if diff else together

        return self._packets.get(key) or self._packets.put(key, packed())

    def badges(self, attention: Attention, roles: Hashable, make: Callable[[], bytes]) -> bytes:
        """The roles of a reading's heads, packed for the browser; the result depends on nothing but the reading and
        ``roles``."""
        key = (attention.key, roles)
        return self._badges.get(key) or self._badges.put(key, make())

    def distances(self, attention: Attention) -> Matrix:
        """The divergence of every two heads of a reading, [head, head] in nats."""
        distances = self._distances.get(attention.key)
        return distances if distances is not None else self._distances.put(attention.key, between_heads(attention))

    def plane(self, attention: Attention) -> Map:
        """The two-dimensional map of all heads of a reading."""
        return self._maps.get(attention.key) or self._maps.put(attention.key, plane(self.distances(attention)))

    def similar(self, attention: Attention, head: Head, count: int) -> list[tuple[Head, float]]:
        """The heads that differ least from ``head``, most similar first, with the divergence in nats."""
        distances = from_head(attention, head)
        others = nearest(distances, head.place(attention.heads), count)
        return [(Head(*divmod(other, attention.heads)), float(distances[other])) for other in others]

    def most_similar_head(self, attention: Attention, head: Head, other: Attention) -> tuple[Head, float | None]:
        """The head of ``other`` that differs least from ``head`` word by word, with the divergence in nats.

        If the words of the two do not correspond one to one, it is the head with the same number, or the nearest number
        that exists.
        """
        if attention.is_cross or other.is_cross:
            return Head(min(head.layer, other.layers - 1), min(head.head, other.heads - 1)), None
        place = align(attention.text, other.text).place
        if place != tuple(range(len(other.text.groups))):
            return Head(min(head.layer, other.layers - 1), min(head.head, other.heads - 1)), None
        matrix, words = attention.by_words()[head], other.by_words()
        nats, best = min((divergence(matrix, words[one]), one) for one in other.every_head())
        return best, nats

    def failed(self, model: catalog.Model) -> MhaVizError | None:
        """Why ``model`` could not be loaded a moment ago, or None; saves waiting for the same error again."""
        at, error = self._failures.get(model.name) or (-FAILURE_SECONDS, None)
        return error if time.monotonic() - at < FAILURE_SECONDS else None

    def fail(self, model: catalog.Model, error: MhaVizError) -> None:
        """Remember why ``model`` could not be loaded; cancellations and a full queue are not recorded."""
        if not isinstance(error, Cancelled | Busy):
            self._failures.put(model.name, (time.monotonic(), error))

    def forget_failure(self, model: catalog.Model) -> None:
        """Forget why ``model`` could not be loaded, so that the next request tries again."""
        self._failures.drop(model.name)

    def has_reading(self, model: catalog.Model, text: str, pair: str, of: Target = NONE) -> bool:
        """True if the reading is cached, so that no model is needed."""
        return self.readings.get(_reading_key(model, text, pair, of)) is not None

    def warm(self, model: catalog.Model) -> None:
        """Load ``model`` in the background after a short delay, so that the page's files are sent first."""
        if not self._warming:
            self._warming = True
            later = threading.Timer(WARM_AFTER, self._warm, (model,))
            later.daemon = True
            later.start()

    def _warm(self, model: catalog.Model) -> None:
        with contextlib.suppress(Busy):  # in that case a visitor's request will load it
            self._submit(lambda: self._reader.load(model.name))

    def _shelved(self, shelf: Shelf[Key, V], key: Key, make: Callable[[], V]) -> Future[V]:
        """A Future of the value cached under ``key``, already done, or else of the result of ``make``, which is then
        cached. Raises Busy."""

        def work() -> V:
            value = shelf.get(key)  # another visitor may have asked for it meanwhile
            return shelf.put(key, make()) if value is None else value

        value = shelf.get(key)
        if value is None:
            return self._submit(work)
        done: Future[V] = Future()
        done.set_result(value)
        return done

    def _submit(self, work: Callable[[], V]) -> Future[V]:
        if not self._places.acquire(blocking=False):
            raise Busy("Too many people are asking this server at once.", "Wait a few seconds and press Enter again.")
        future = self._worker.submit(work)
        future.add_done_callback(lambda _: self._places.release())
        return future

    def _traced(self, model: str, text: str, pair: str, layer: int) -> Trace:
        """A trace that shares the parameters, which are most of its bytes, with earlier traces of the same layer."""
        trace = self._reader.trace(model, text, pair, _words(text, pair), layer)
        parameters = self._parameters.get((model, layer))
        if parameters is not None and all(map(np.array_equal, parameters, trace.parameters)):
            return replace(trace, parameters=parameters)
        self._parameters.put((model, layer), trace.parameters)
        return trace


def _reading_key(model: catalog.Model, text: str, pair: str, of: Target) -> Key:
    """The cache key of a reading; for an encoder–decoder it includes the target and the part."""
    return (_state(model), text, pair, *(of if of.part else ()))


def _state(model: catalog.Model) -> object:
    """The part of a cache key that names the model; for a folder it includes the state of its files, which may
    change."""
    return (model.name, stamps(Path(model.path))) if model.kind == "folder" else model.name


def _words(text: str, pair: str) -> tuple[str, ...]:
    """The words that the model reads if the text gives them; empty if its tokenizer splits the text."""
    return () if pair else words_of(text) or ()


@Once
def _reader() -> Reader:
    """The process that holds the models, one for the whole server."""
    return Reader(spare=catalog.hosted())  # a visitor who waits for the import lets all others wait


@Once
def office() -> Office:
    """The only Office of this process."""
    return Office()


def idle() -> None:
    """All visitors have left: free what this module and others cached for them."""
    shelves.rest()
    office().begin_again()


def ready(model: catalog.Model) -> bool:
    """True if the files of ``model`` are on this machine. For models that come with the app this is checked once."""
    return _comes_along(model) if model.kind in ("bundled", "own") else hub.local_folder(model) is not None


@cache
def _comes_along(model: catalog.Model) -> bool:
    return hub.local_folder(model) is not None


def first_reading() -> Attention:
    """The first example as the default model reads it, computed in advance so that the first picture does not need
    torch.

    ``tests/test_first_reading.py`` holds it equal to a live reading.
    """
    with np.load(asset("first_reading.npz"), allow_pickle=False) as stored:
        facts = json.loads(str(stored["reading"]))
        tokens = tuple(Token(**token) for token in facts["tokens"])
        text = TokenizedText(facts["text"], "", tokens)
        return Attention(facts["model"], facts["revision"], text, stored["weights"], made=("typed",))
