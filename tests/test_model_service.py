"""What one process caches: bounded in bytes, safe between threads, and never waiting for ever."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.app.service.caches import BoundedCache, ModelService, load_first_reading
from mha_viz.app.service.reader import verbs
from mha_viz.app.url.address import load_examples
from mha_viz.errors import Busy
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process.turns import MAX_WAITING as WAITING
from mha_viz.request import Request
from tests.waiting import PATIENCE

FIRST = "The animal didn't cross the street because it was too tired."


# ---- The bounded cache -------------------------------------------------------------------------------------------


def test_what_was_put_is_there_and_the_oldest_goes_first() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)
    for name in "abc":
        cache.put(name, name.encode() * 4)
    assert [cache.get(name) for name in "abc"] == [None, b"bbbb", b"cccc"]
    assert cache.bytes == 8


def test_what_was_asked_for_counts_as_new() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert cache.get("b") is None
    assert cache.get("a") == b"1234"


def test_the_newest_stays_however_large() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)
    cache.put("small", b"1")
    assert cache.put("large", bytes(100)) == bytes(100)
    assert cache.get("large") == bytes(100)
    assert cache.get("small") is None
    cache.put("next", b"1")
    assert cache.get("large") is None
    assert cache.bytes == 1


def test_a_second_value_under_one_key_replaces_the_first() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)
    cache.put("a", bytes(8))
    cache.put("a", bytes(3))
    assert cache.bytes == 3
    assert cache.get("a") == bytes(3)


def test_when_all_have_gone_the_latest_stay_as_far_as_they_may() -> None:
    rests: BoundedCache[str, bytes] = BoundedCache(100, len)
    stays: BoundedCache[str, bytes] = BoundedCache(100, len, idle_bytes=10)
    for cache in (rests, stays):
        for name in "abc":
            cache.put(name, bytes(5))
        cache.shrink()
    assert (rests.bytes, rests.get("c")) == (0, None)
    assert stays.bytes == 10
    assert [stays.get(name) is not None for name in "abc"] == [False, True, True]
    stays.put("large", bytes(50))
    stays.shrink()
    assert stays.bytes == 0


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=40), st.integers(1, 30))
def test_the_bound_is_in_bytes(puts: list[tuple[int, int]], limit: int) -> None:
    cache: BoundedCache[int, bytes] = BoundedCache(limit, len)
    for key, size in puts:
        cache.put(key, bytes(size))
        assert cache.get(key) == bytes(size)
        values = [value for k in range(7) if (value := cache.get(k)) is not None]
        assert cache.bytes == sum(map(len, values))
        assert cache.bytes <= limit or len(values) == 1


def test_eight_threads_leave_it_in_order() -> None:
    cache: BoundedCache[int, bytes] = BoundedCache(2_000, len)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2_000):
            key = chance.randrange(40)
            if chance.random() < 0.5:
                cache.put(key, bytes(chance.randrange(300)))
            else:
                value = cache.get(key)
                assert value is None or not any(value)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result(PATIENCE)
    values = [value for key in range(40) if (value := cache.get(key)) is not None]
    assert cache.bytes == sum(map(len, values)) <= 2_000


# ---- The model service ------------------------------------------------------------------------------------------


def test_the_first_reading_is_at_hand_before_any_model() -> None:
    service = ModelService()
    model = catalog.resolve("minilm")
    assert service.has_reading(Request(model.name, FIRST))
    assert not service.has_reading(Request(model.name, FIRST, "another"))
    assert not service.has_reading(Request("gpt2", FIRST))
    future = service.ask_cached(verbs.read, Request(model.name, FIRST))
    assert future.done()
    assert future.result() is service.ask_cached(verbs.read, Request(model.name, FIRST)).result()


def test_the_first_reading_is_the_first_example() -> None:
    first = load_first_reading()
    assert first.text.text == FIRST == load_examples()[0]["text"]
    assert (first.model, first.layers, first.heads, len(first.text)) == ("minilm", 6, 12, 16)
    assert not first.weights.flags.writeable
    pronoun, animal = first.tokens.index("it"), first.tokens.index("animal")
    assert first.weights[3, 1, pronoun, animal] == pytest.approx(0.68, abs=0.01)


def test_a_full_waiting_room_says_so_and_opens_again() -> None:
    service, gate, begun = ModelService(), threading.Event(), threading.Event()
    model = catalog.resolve("minilm")
    waiting = [service._submit(lambda: begun.set() or gate.wait(PATIENCE))]
    assert begun.wait(PATIENCE)  # what the worker does takes no place
    waiting += [service._submit(lambda: gate.wait(PATIENCE)) for _ in range(WAITING)]
    try:
        with pytest.raises(Busy) as refused:
            service.ask_cached(verbs.read, Request(model.name, "a sentence that nobody has read"))
        assert refused.value.remedy
        assert service.ask_cached(verbs.read, Request(model.name, FIRST)).done(), "what is kept needs no place"
    finally:
        gate.set()
    assert all(future.result(PATIENCE) for future in waiting)
    assert service._submit(lambda: "free").result(PATIENCE) == "free"


def test_work_that_fails_gives_its_place_back() -> None:
    service = ModelService()
    for _ in range(WAITING + 5):
        with pytest.raises(ZeroDivisionError):
            service._submit(lambda: 1 // 0).result(PATIENCE)
    assert service._submit(lambda: "free").result(PATIENCE) == "free"


def test_one_worker_reads_in_the_order_of_asking() -> None:
    service, order = ModelService(), list[int]()
    for future in [service._submit(partial(order.append, i)) for i in range(40)]:
        future.result(PATIENCE)
    assert all(a < b for a, b in pairwise(order))


def test_the_queue_is_told_how_long_the_text_is(monkeypatch: pytest.MonkeyPatch) -> None:
    service, told = ModelService(), list[tuple[object, ...]]()
    monkeypatch.setattr(service._turns, "submit", lambda _, *who: told.append(who))
    monkeypatch.setattr(service, "identify_asker", lambda: ("visitor", "tab"))
    request = Request("toy", "the old cat slept .", "a dog ran .")
    service.ask_cached(verbs.read, request)
    service.ask(verbs.measure_effects, request, 0, [0, 1])
    service.ask(verbs.load, "toy")
    assert told == [("visitor", "tab", 30), ("visitor", "tab", 30), ("visitor", "tab", 0)]


@pytest.mark.app
def test_sentences_that_several_people_ask_for_are_read_once(minilm: Encoder) -> None:
    service, model = ModelService(), catalog.resolve("minilm")
    texts = [f"Sentence number {i} has its own words." for i in range(4)]
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(lambda text: service.ask_cached(verbs.read, Request(model.name, text)).result(PATIENCE), text)
            for text in texts * 6
        ]
        read = [future.result(PATIENCE) for future in futures]
    for attention, text in zip(read, texts * 6, strict=True):
        assert attention.text.text == text
    assert len({id(attention) for attention in read}) == len(texts)


@pytest.mark.app
def test_a_reading_asked_through_the_service_is_the_encoders_own(minilm: Encoder) -> None:
    model = catalog.resolve("minilm")
    through = (
        ModelService()
        .ask_cached(verbs.read, Request(model.name, "A man is playing a guitar.", "Someone plays."))
        .result(PATIENCE)
    )
    direct = minilm.encode("A man is playing a guitar.", "Someone plays.")
    np.testing.assert_array_equal(through.weights, direct.weights)


def test_values_that_are_given_by_name_are_part_of_the_key() -> None:
    service, request = ModelService(), Request("toy", "the old cat slept .")
    layers = [service.ask_cached(verbs.trace, request, layer=layer).result(PATIENCE).layer for layer in (0, 1, 0)]
    assert layers == [0, 1, 0]
