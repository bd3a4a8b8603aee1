"""Which sentences are read of a corpus that is cut: every k-th, whatever shards it is in."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from mha_viz.corpus.limits import choose_step, count_every, name_sample, take_every


@pytest.mark.parametrize(
    ("count", "most", "step"), [(2077, 416, 5), (2077, 415, 6), (7, 7, 1), (7, 6, 2), (7, 1, 7), (3, 400, 1), (0, 4, 1)]
)
def test_the_step_is_the_least_with_no_more_sentences_than_asked_for(count: int, most: int, step: int) -> None:
    assert choose_step(count, most) == step
    assert len([number for number in range(count) if number % step == 0]) <= most
    assert step == 1 or len([number for number in range(count) if number % (step - 1) == 0]) > most


@pytest.mark.parametrize("step", [1, 2, 3, 5, 20])
def test_parts_give_the_sentences_of_the_whole(step: int) -> None:
    sentences, cuts = [f"s{number}" for number in range(17)], (0, 1, 4, 4, 10, 17)
    expected = [sentence for number, sentence in enumerate(sentences) if number % step == 0]
    taken, before = list[str](), 0
    for first, end in pairwise(cuts):
        of_part = take_every(step, sentences[first:end], first)
        assert count_every(step, first) == before, "so many are taken of what comes before"
        assert len(of_part) == count_every(step, end - first, first)
        taken += of_part
        before += len(of_part)
    assert taken == expected == [*take_every(step, sentences)]


def test_a_sample_is_named_as_it_is_read() -> None:
    steps = (1, 2, 3, 4, 11, 21, 1002, 113, 5.0)
    names = ("EWT", *(f"every {nth} sentence of EWT" for nth in ("second", "third", "4th", "11th", "21st", "1,002nd")))
    names += ("every 113th sentence of EWT", "every 5th sentence of EWT")
    assert tuple(name_sample("EWT", step) for step in steps) == names
    for unknown in (None, math.nan):
        assert name_sample("EWT", unknown) == "EWT (its first sentences, as earlier versions read)"
