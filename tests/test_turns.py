"""The worker serves visitors in turn; of each tab one request waits; nobody takes all of its time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from functools import partial

import pytest

from mha_viz.errors import Busy, Cancelled
from mha_viz.process import turns
from mha_viz.process.turns import Turns
from tests.waiting import PATIENCE


class Blocked:
    """A worker that is kept busy until the test opens it, and the order in which it served."""

    def __init__(self, worker: Turns | None = None) -> None:
        self.turns, self.served = worker or Turns("test"), list[str]()
        self._open, began = threading.Event(), threading.Event()

        def first() -> None:
            began.set()
            self._open.wait(PATIENCE)

        self.futures: list[Future[None]] = [self.turns.submit(first, "nobody else")]
        assert began.wait(PATIENCE)

    def ask(self, visitor: str, tab: str = "") -> None:
        """Queue a request that notes its visitor and tab when it is served."""
        self.futures.append(self.turns.submit(lambda: self.served.append(visitor + tab), visitor, tab))

    def open(self) -> list[str]:
        """Let the worker go on; returns who was served, in order."""
        self._open.set()
        done, _ = wait(self.futures, PATIENCE)
        assert len(done) == len(self.futures)
        return self.served


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    worker = Blocked()
    yield worker
    worker.open()


def test_a_visitor_with_many_tabs_has_one_turn_like_everybody(blocked: Blocked) -> None:
    for tab in "123":
        blocked.ask("a", tab)
    blocked.ask("b", "1")
    blocked.ask("c", "1")
    blocked.ask("d")  # two requests of no tab in particular
    blocked.ask("d")
    assert blocked.open() == ["a1", "b1", "c1", "d", "a2", "d", "a3"]


@pytest.mark.parametrize("heavy", ["a", "b"], ids=["of one visitor", "of two"])
def test_whoever_asked_for_little_is_served_before_those_who_asked_for_much(
    heavy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind one address, many people may be one visitor. The first work, which may load a model, does not count."""
    now, worker = 100.0, Turns("test")
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    for visitor, tab, seconds in (("a", "bystander", 12.0), (heavy, "0", 2.0), (heavy, "1", 2.0), (heavy, "2", 2.0)):
        worker.submit(partial(work, seconds), visitor, tab).result(PATIENCE)
        worker._worker.submit(lambda: None).result(PATIENCE)  # until the time is noted
    again = Blocked(worker)
    for tab in "12":
        again.ask(heavy, tab)
    again.ask("a", "bystander")
    assert again.open() == ["abystander", f"{heavy}1", f"{heavy}2"]


def test_a_newer_request_of_a_tab_replaces_the_one_that_waits(blocked: Blocked) -> None:
    older = blocked.turns.submit(lambda: blocked.served.append("older"), "a", "1")
    blocked.ask("a", "1")
    with pytest.raises(Cancelled, match="newer request from the same tab"):
        older.result(PATIENCE)
    assert blocked.open() == ["a1"]


def test_what_nobody_waits_for_any_more_leaves_the_queue(blocked: Blocked) -> None:
    for _ in range(3 * turns.PLACES):
        blocked.turns.submit(lambda: blocked.served.append("left"), "a").cancel()
    blocked.ask("a")
    assert blocked.open() == ["a"]


@pytest.mark.parametrize(("visitors", "most"), [(1, turns.PER_VISITOR), (turns.PLACES, turns.PLACES)])
def test_the_queue_is_bounded_for_one_and_for_all(blocked: Blocked, visitors: int, most: int) -> None:
    for number in range(most):
        blocked.ask(f"v{number % visitors} ", str(number))
    with pytest.raises(Busy, match="Too many requests"):
        blocked.ask("v0 ", "more")
    blocked.ask("v0 ", "0")  # in place of the one that waits


def test_the_time_of_one_visitor_is_bounded_while_others_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)
    worker = Turns("test")

    def work() -> None:
        nonlocal now
        now += turns.SHARE

    def ask(visitor: str) -> None:
        worker.submit(work if visitor == "a" else lambda: None, visitor).result(PATIENCE)
        worker._worker.submit(lambda: None).result(PATIENCE)  # until the time is noted

    for _ in range(3):
        ask("a")  # the first may load a model, and does not count; alone, there is no bound
    ask("b")
    with pytest.raises(Busy, match="worked for you for 60 of the last 60 seconds") as refused:
        ask("a")
    assert "Wait 30 seconds" in refused.value.remedy
    ask("b")
    now += turns.WINDOW + 1
    ask("a")
    for _ in range(3):
        worker.submit(work).result(PATIENCE)  # work in the background is bounded elsewhere


def test_an_error_of_the_work_is_the_result_and_the_worker_goes_on() -> None:
    worker = Turns("test")
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 // 0, "a").result(PATIENCE)
    assert worker.submit(lambda: 1, "a").result(PATIENCE) == 1
