"""The worker serves visitors in turn; of each tab one request waits; nobody takes all of its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from mha_viz.errors import Busy, Cancelled
from mha_viz.process import turns
from mha_viz.process.turns import FairWorker
from tests.waiting import PATIENCE


class Blocked:
    """A worker that is kept busy until the test opens it, and the order in which it served."""

    def __init__(self, worker: FairWorker | None = None) -> None:
        self.turns, self.served = worker or FairWorker("test"), list[str]()
        self._open, began = threading.Event(), threading.Event()

        def first() -> None:
            began.set()
            self._open.wait(PATIENCE)

        self.futures: list[Future[None]] = [self.turns.submit(first, "nobody else")]
        assert began.wait(PATIENCE)

    def ask(self, visitor: str, tab: str = "", characters: int = 0, work: Callable[[], object] = lambda: None) -> None:
        """Queue a request that notes its visitor and tab when it is served, and does some work."""

        def served() -> None:
            self.served.append(visitor + tab)
            work()

        self.futures.append(self.turns.submit(served, visitor, tab, characters))

    def open(self) -> list[str]:
        """Let the worker go on; returns who was served, in order."""
        self._open.set()
        for future in self.futures:  # which grows while requests ask for more
            future.exception(PATIENCE)
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


class Clock:
    """The time of the worker, which only work moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(turns.time, "monotonic", lambda: self.now)

    def work(self, seconds: float) -> Callable[[], None]:
        """Work that takes so long."""

        def pass_time() -> None:
            self.now += seconds

        return pass_time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("others", ["bc", "aa"], ids=["of others", "of other tabs"])
def test_a_short_text_does_not_wait_for_long_ones(others: str, clock: Clock) -> None:
    worker = FairWorker("test")
    for seconds, characters in ((5.0, 0), (1.0, 1000)):  # the first loads a model, the second shows the speed
        worker.submit(clock.work(seconds), "z", "1", characters).result(PATIENCE)
        worker._worker.submit(lambda: None).result(PATIENCE)  # until the time is noted
    blocked = Blocked(worker)
    for number, visitor in enumerate(others):
        blocked.ask(visitor, f" long {number}", 2000, clock.work(2.0))
    blocked.ask("a", " short", 50)
    assert blocked.open() == ["a short", f"{others[0]} long 0", f"{others[1]} long 1"]


def test_visitors_who_wait_get_the_same_seconds(clock: Clock, blocked: Blocked) -> None:
    """The first work for each does not count, so that a has had 0, 3 and 6 seconds, b 0, 1, 2, …"""
    for tab in "1234":
        blocked.ask("a", tab, work=clock.work(3.0))
    for tab in "12345678":
        blocked.ask("b", tab, work=clock.work(1.0))
    assert " ".join(blocked.open()) == "a1 b1 a2 b2 b3 b4 a3 b5 b6 b7 a4 b8"


def test_nobody_saves_up_seconds_by_not_asking(clock: Clock, blocked: Blocked) -> None:
    """When c comes, a has had two seconds and b one; c begins with one, and its first work does not count."""

    def come() -> None:
        for tab in "1234":
            blocked.ask("c", tab, work=clock.work(1.0))

    for tab in "12345":
        for visitor in "ab":
            blocked.ask(visitor, tab, work=come if visitor + tab == "b3" else clock.work(1.0))
    assert " ".join(blocked.open()) == "a1 b1 a2 b2 a3 b3 b4 c1 c2 a4 b5 c3 a5 c4"


def test_work_in_the_background_has_the_share_of_a_visitor(clock: Clock, blocked: Blocked) -> None:
    for _ in range(4):
        blocked.ask("", work=clock.work(1.0))
    for tab in "1234":
        blocked.ask("a", tab, work=clock.work(1.0))
    assert blocked.open() == ["", "a1", "", "a2", "", "a3", "", "a4"]


def test_work_that_kept_nobody_waiting_is_forgotten(clock: Clock, blocked: Blocked) -> None:
    blocked.open()
    for _ in range(3):
        blocked.turns.submit(clock.work(9.0), "a", "1").result(PATIENCE)
        blocked.turns._worker.submit(lambda: None).result(PATIENCE)  # until the time is noted
    again = Blocked(blocked.turns)
    for tab in "12":
        for visitor in "ab":
            again.ask(visitor, tab)
    assert again.open() == ["a1", "b1", "a2", "b2"]


def test_a_newer_request_of_a_tab_replaces_the_one_that_waits(blocked: Blocked) -> None:
    older = blocked.turns.submit(lambda: blocked.served.append("older"), "a", "1")
    blocked.ask("a", "1")
    with pytest.raises(Cancelled, match="newer request from the same tab"):
        older.result(PATIENCE)
    assert blocked.open() == ["a1"]


def test_what_nobody_waits_for_any_more_leaves_the_queue(blocked: Blocked) -> None:
    for _ in range(3 * turns.MAX_WAITING):
        blocked.turns.submit(lambda: blocked.served.append("left"), "a").cancel()
    blocked.ask("a")
    assert blocked.open() == ["a"]


@pytest.mark.parametrize(
    ("visitors", "most"), [(1, turns.MAX_WAITING_PER_VISITOR), (turns.MAX_WAITING, turns.MAX_WAITING)]
)
def test_the_queue_is_bounded_for_one_and_for_all(blocked: Blocked, visitors: int, most: int) -> None:
    for number in range(most):
        blocked.ask(f"v{number % visitors} ", str(number))
    with pytest.raises(Busy, match="Too many requests"):
        blocked.ask("v0 ", "more")
    blocked.ask("v0 ", "0")  # in place of the one that waits


def test_the_time_of_one_visitor_is_bounded_while_others_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)
    worker = FairWorker("test")

    def work() -> None:
        nonlocal now
        now += turns.MAX_SECONDS_PER_VISITOR

    def ask(visitor: str) -> None:
        worker.submit(work if visitor == "a" else lambda: None, visitor).result(PATIENCE)
        worker._worker.submit(lambda: None).result(PATIENCE)  # until the time is noted

    for _ in range(3):
        ask("a")  # the first may load a model, and does not count; alone, there is no bound
    ask("b")
    with pytest.raises(Busy, match="worked for you for 60 of the last 60 seconds") as refused:
        ask("a")
    assert "Wait 60 seconds" in refused.value.remedy
    ask("b")
    now += turns.WINDOW_SECONDS + 1
    ask("a")
    for _ in range(3):
        worker.submit(work).result(PATIENCE)  # work in the background is bounded elsewhere


@pytest.mark.parametrize(("seconds", "wait"), [(31.0, "58 seconds"), (29.9, "1 second ")])
def test_a_visitor_is_told_how_long_to_wait(seconds: float, wait: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until so much of their work is over for so long that they may ask again."""
    monkeypatch.setattr(turns.time, "monotonic", lambda: 160.0)
    worker = FairWorker("test")
    for end, visitor, used in ((100.5, "a", 0.5), (157.5, "a", seconds), (159.0, "b", 1.0)):
        worker._finished_work.append(turns._FinishedWork(end, visitor, used, 1))
    with pytest.raises(Busy) as refused:
        worker.submit(lambda: None, "a")
    assert f"Wait {wait}" in refused.value.remedy


def test_an_error_of_the_work_is_the_result_and_the_worker_goes_on() -> None:
    worker = FairWorker("test")
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 // 0, "a").result(PATIENCE)
    assert worker.submit(lambda: 1, "a").result(PATIENCE) == 1
