"""Work in steps: generators that yield the completed fraction after each step and return the result.

The work knows nothing of its callers. Between two steps a caller can show progress, let other work go first, or stop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Steps = Generator[float, None, R]


def run_steps(steps: Steps[R], progress: Callable[[float], None] = lambda _: None) -> R:
    """Run all steps and return their result.

    ``progress`` is called with the completed fraction. An exception from it ends the work and closes the generator.
    """
    with closing(steps):
        while True:
            try:
                done = next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            progress(done)


def scale_progress(steps: Steps[R], number: int, parts: int) -> Steps[R]:
    """Yield the progress of steps as part ``number`` (from 0) of ``parts`` equal parts, and return their result."""
    while True:
        try:
            done = next(steps)
        except StopIteration as end:
            result: R = end.value
            return result
        yield (number + done) / parts


def map_in_steps(items: Sequence[T], work: Callable[[T], R]) -> Steps[list[R]]:
    """Apply ``work`` to every item, one item per step, and return the results."""
    results = []
    for item in items:
        results.append(work(item))
        yield len(results) / len(items)
    return results


def split_range(first: int, end: int, max_size: int) -> list[range]:
    """Split the numbers from ``first`` to ``end`` (exclusive) into ranges of at most ``max_size`` numbers."""
    return [range(start, min(end, start + max_size)) for start in range(first, end, max_size)]
