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

from mha_viz.errors import Busy
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from mha_viz.reader import verbs
from mha_viz.request import Request
from mha_viz.ui.address import examples
from mha_viz.ui.cache import WAITING, Office, first_reading
from mha_viz.ui.shelves import Shelf
from tests.waiting import PATIENCE

FIRST = "The animal didn't cross the street because it was too tired."


# ---- The shelf -------------------------------------------------------------------------------------------


def test_what_was_put_is_there_and_the_oldest_goes_first() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, len)
    for name in "abc":
        shelf.put(name, name.encode() * 4)
    assert [shelf.get(name) for name in "abc"] == [None, b"bbbb", b"cccc"]
    assert shelf.bytes == 8


def test_what_was_asked_for_counts_as_new() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, len)
    shelf.put("a", b"1234")
    shelf.put("b", b"1234")
    assert shelf.get("a") == b"1234"
    shelf.put("c", b"1234")
    assert shelf.get("b") is None
    assert shelf.get("a") == b"1234"


def test_the_newest_stays_however_large() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, len)
    shelf.put("small", b"1")
    assert shelf.put("large", bytes(100)) == bytes(100)
    assert shelf.get("large") == bytes(100)
    assert shelf.get("small") is None
    shelf.put("next", b"1")
    assert shelf.get("large") is None
    assert shelf.bytes == 1


def test_a_second_value_under_one_key_replaces_the_first() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, len)
    shelf.put("a", bytes(8))
    shelf.put("a", bytes(3))
    assert shelf.bytes == 3
    assert shelf.get("a") == bytes(3)


def test_when_all_have_gone_the_latest_stay_as_far_as_they_may() -> None:
    rests: Shelf[str, bytes] = Shelf(100, len)
    stays: Shelf[str, bytes] = Shelf(100, len, at_rest=10)
    for shelf in (rests, stays):
        for name in "abc":
            shelf.put(name, bytes(5))
        shelf.rest()
    assert (rests.bytes, rests.get("c")) == (0, None)
    assert stays.bytes == 10
    assert [stays.get(name) is not None for name in "abc"] == [False, True, True]
    stays.put("large", bytes(50))
    stays.rest()
    assert stays.bytes == 0


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=40), st.integers(1, 30))
def test_the_bound_is_in_bytes(puts: list[tuple[int, int]], limit: int) -> None:
    shelf: Shelf[int, bytes] = Shelf(limit, len)
    for key, size in puts:
        shelf.put(key, bytes(size))
        assert shelf.get(key) == bytes(size)
        values = [value for k in range(7) if (value := shelf.get(k)) is not None]
        assert shelf.bytes == sum(map(len, values))
        assert shelf.bytes <= limit or len(values) == 1


def test_eight_threads_leave_it_in_order() -> None:
    shelf: Shelf[int, bytes] = Shelf(2_000, len)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2_000):
            key = chance.randrange(40)
            if chance.random() < 0.5:
                shelf.put(key, bytes(chance.randrange(300)))
            else:
                value = shelf.get(key)
                assert value is None or not any(value)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result(PATIENCE)
    values = [value for key in range(40) if (value := shelf.get(key)) is not None]
    assert shelf.bytes == sum(map(len, values)) <= 2_000


# ---- The office ------------------------------------------------------------------------------------------


def test_the_first_reading_is_at_hand_before_any_model() -> None:
    office = Office()
    model = catalog.resolve("minilm")
    assert office.has_reading(Request(model.name, FIRST))
    assert not office.has_reading(Request(model.name, FIRST, "another"))
    assert not office.has_reading(Request("gpt2", FIRST))
    future = office.cached(verbs.read, Request(model.name, FIRST))
    assert future.done()
    assert future.result() is office.cached(verbs.read, Request(model.name, FIRST)).result()


def test_the_first_reading_is_the_first_example() -> None:
    first = first_reading()
    assert first.text.text == FIRST == examples()[0]["text"]
    assert (first.model, first.layers, first.heads, len(first.text)) == ("minilm", 6, 12, 16)
    assert not first.weights.flags.writeable
    pronoun, animal = first.tokens.index("it"), first.tokens.index("animal")
    assert first.weights[3, 1, pronoun, animal] == pytest.approx(0.68, abs=0.01)


def test_a_full_waiting_room_says_so_and_opens_again() -> None:
    office, gate = Office(), threading.Event()
    model = catalog.resolve("minilm")
    waiting = [office._submit(lambda: gate.wait(PATIENCE)) for _ in range(WAITING)]
    try:
        with pytest.raises(Busy) as refused:
            office.cached(verbs.read, Request(model.name, "a sentence that nobody has read"))
        assert refused.value.remedy
        assert office.cached(verbs.read, Request(model.name, FIRST)).done(), "what is kept needs no place"
    finally:
        gate.set()
    assert all(future.result(PATIENCE) for future in waiting)
    assert office._submit(lambda: "free").result(PATIENCE) == "free"


def test_work_that_fails_gives_its_place_back() -> None:
    office = Office()
    for _ in range(WAITING + 5):
        with pytest.raises(ZeroDivisionError):
            office._submit(lambda: 1 // 0).result(PATIENCE)
    assert office._submit(lambda: "free").result(PATIENCE) == "free"


def test_one_worker_reads_in_the_order_of_asking() -> None:
    office, order = Office(), list[int]()
    for future in [office._submit(partial(order.append, i)) for i in range(40)]:
        future.result(PATIENCE)
    assert all(a < b for a, b in pairwise(order))


@pytest.mark.app
def test_sentences_that_several_people_ask_for_are_read_once(minilm: Encoder) -> None:
    office, model = Office(), catalog.resolve("minilm")
    texts = [f"Sentence number {i} has its own words." for i in range(4)]
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(lambda text: office.cached(verbs.read, Request(model.name, text)).result(PATIENCE), text)
            for text in texts * 6
        ]
        read = [future.result(PATIENCE) for future in futures]
    for attention, text in zip(read, texts * 6, strict=True):
        assert attention.text.text == text
    assert len({id(attention) for attention in read}) == len(texts)


@pytest.mark.app
def test_a_reading_asked_through_the_office_is_the_encoders_own(minilm: Encoder) -> None:
    model = catalog.resolve("minilm")
    through = (
        Office()
        .cached(verbs.read, Request(model.name, "A man is playing a guitar.", "Someone plays."))
        .result(PATIENCE)
    )
    direct = minilm.encode("A man is playing a guitar.", "Someone plays.")
    np.testing.assert_array_equal(through.weights, direct.weights)


def test_values_that_are_given_by_name_are_part_of_the_key() -> None:
    desk, request = Office(), Request("toy", "the old cat slept .")
    layers = [desk.cached(verbs.trace, request, layer=layer).result(PATIENCE).layer for layer in (0, 1, 0)]
    assert layers == [0, 1, 0]
