"""Many threads on one model: each gets exactly the results that it would get alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier

import numpy as np
import pytest
import torch

from mha_viz.attention import Attention
from mha_viz.models.reading import encoder as encoder_module
from mha_viz.models.reading.encoder import Encoder
from tests import lanes
from tests.waiting import PATIENCE

pytestmark = pytest.mark.app

THREADS, EACH = 8, 50 if lanes.everything else 8

_NOUNS = ("animal", "street", "lawyer", "river", "committee", "dog", "unbelievable bookkeeper")
_VERBS = ("crossed", "didn't see", "followed", "rehabilitated")


def sentence(thread: int, number: int) -> str:
    """A different sentence for every pair of numbers, of many lengths."""
    first, second = _NOUNS[number % 7], _NOUNS[(number + thread) % 7]
    return f"The {first} {_VERBS[number % 4]} the {second}{' again' * (number % 12)} {thread} {number}."


def texts(thread: int) -> list[str]:
    """The sentences of one thread."""
    return [sentence(thread, number) for number in range(EACH)]


def assert_threads_equal_serial(encoder: Encoder) -> None:
    """All threads at once, then every sentence alone."""
    together = Barrier(THREADS)

    def work(thread: int) -> list[Attention]:
        together.wait(timeout=PATIENCE)
        return [encoder.encode(text) for text in texts(thread)]

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(work, range(THREADS)))
    for thread, attentions in enumerate(results):
        for text, attention in zip(texts(thread), attentions, strict=True):
            alone = encoder.encode(text)
            assert attention.text == alone.text
            assert np.array_equal(attention.weights, alone.weights), text


def test_the_sentences_differ() -> None:
    assert len({text for thread in range(THREADS) for text in texts(thread)}) == THREADS * EACH


@pytest.fixture
def two_cores() -> Iterator[None]:
    """As on a server: every pass is divided among cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_cores")
def test_eight_threads_equal_serial_ones(minilm: Encoder) -> None:
    assert_threads_equal_serial(minilm)


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2"])
def test_passes_that_run_at_the_same_time_do_not_mix(
    family: str, tiny: Callable[[str], Encoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tiny(family)
    monkeypatch.setattr(encoder_module, "_pass_lock", nullcontext())  # no lock: only the tap keeps them apart
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert_threads_equal_serial(encoder)
    finally:
        torch.set_num_threads(cores)
