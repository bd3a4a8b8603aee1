"""Work in steps, which knows nothing of who waits for it: a generator that yields the share that is done after each
step and returns the result. Between two steps its caller can show how far it is, let others go first, or end it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Steps = Generator[float, None, R]


def completed(steps: Steps[R], progress: Callable[[float], None] = lambda _: None) -> R:
    """The result of all steps. ``progress`` is called with the share that is done; an exception from it ends the
    work, and a stop closes it."""
    with closing(steps):
        while True:
            try:
                done = next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            progress(done)


def part_of(steps: Steps[R], number: int, parts: int) -> Steps[R]:
    """Steps as the part with this number, from 0, of equal ``parts``."""
    while True:
        try:
            done = next(steps)
        except StopIteration as end:
            result: R = end.value
            return result
        yield (number + done) / parts


def each(items: Sequence[T], work: Callable[[T], R]) -> Steps[list[R]]:
    """The results of ``work`` on every item, one item a step."""
    results = []
    for item in items:
        results.append(work(item))
        yield len(results) / len(items)
    return results


def ranges(first: int, end: int, at_once: int) -> list[range]:
    """The numbers from ``first`` to ``end`` (exclusive), at most ``at_once`` at a time."""
    return [range(start, min(end, start + at_once)) for start in range(first, end, at_once)]
