"""Orders of visitors: one place each, shared with everyone who asks for the same, and stopped if nobody polls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from mha_viz.errors import Busy, Cancelled
from mha_viz.ui import jobs
from mha_viz.ui.jobs import Job, JobQueue, Rules
from tests.waiting import until


class Visitors:
    """The current visitor, how long a queue waits for a poll, and work that continues until it is stopped."""

    def __init__(self) -> None:
        self.who = "ann"
        self.tab = "1"
        self.end = threading.Event()
        self.begun: list[str] = []
        self.rules = Rules("training", "trainings", "Stop it first.", places=3, forgotten=600.0)
        self.queue = JobQueue[str, None](self.rules)

    def forget(self, seconds: float) -> None:
        """From now on visitors count as gone after so many seconds."""
        self.rules = self.rules._replace(forgotten=seconds)
        for rules_of in (self.queue, *(entry.job for entry in self.queue._entries)):
            rules_of._rules = self.rules

    def entry(self, key: str, who: str) -> Job:
        self.who = who
        return self.queue.submit(key, f"run {key}", self.work(key))

    def work(self, key: str) -> Callable[[Job], None]:
        def work(job: Job) -> None:
            self.begun.append(key)
            until(lambda: self.end.is_set() or job.stopped())
            if job.stopped():
                raise Cancelled("It was stopped.")

        return work


@pytest.fixture
def visitors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitors]:
    people = Visitors()
    monkeypatch.setattr(jobs, "visitor", lambda: people.who)
    monkeypatch.setattr(jobs, "session", lambda: people.tab)
    yield people
    people.end.set()


def test_one_visitor_has_one_place_and_is_told_what_to_do(visitors: Visitors) -> None:
    visitors.entry("a", "ann")
    with pytest.raises(Busy, match=r"You already have a training running: run a\. Stop it first\."):
        visitors.entry("b", "ann")
    assert visitors.entry("b", "bob").owner == "bob"


def test_joining_is_always_allowed_and_takes_no_place(visitors: Visitors) -> None:
    first = visitors.entry("a", "ann")
    visitors.entry("b", "bob")
    assert visitors.entry("a", "bob") is first
    assert visitors.entry("a", "eve") is first
    assert visitors.entry("c", "eve").owner == "eve"


def test_a_place_is_free_again_after_stop_though_others_go_on(visitors: Visitors) -> None:
    first = visitors.entry("a", "ann")
    visitors.entry("a", "bob")
    visitors.who = "ann"
    first.let_go()
    assert not first.stopped()
    assert visitors.entry("b", "ann") is not first


def test_a_second_tab_keeps_an_order_that_the_first_one_left(visitors: Visitors) -> None:
    job = visitors.entry("a", "ann")
    visitors.tab = "2"
    assert visitors.entry("a", "ann") is job
    visitors.tab = "1"
    job.leave()
    assert not job.stopped()
    visitors.tab = "2"
    job.leave()
    assert job.stopped()


def test_stop_in_one_tab_stops_it_in_all_tabs_of_the_visitor(visitors: Visitors) -> None:
    job = visitors.entry("a", "ann")
    visitors.tab = "2"
    visitors.entry("a", "ann").let_go()
    assert job.stopped()
    visitors.tab = "1"
    assert job.left


def test_a_tab_that_orders_another_leaves_the_one_before(visitors: Visitors) -> None:
    visitors.queue = JobQueue(visitors.rules._replace(one_per_tab=True))
    first = visitors.entry("a", "ann")
    visitors.entry("a", "bob")
    second = visitors.entry("b", "ann")
    assert not first.stopped(), "bob waits"
    assert visitors.entry("c", "ann") is not second
    assert second.stopped()
    visitors.tab = "2"
    with pytest.raises(Busy, match="run c"):
        visitors.entry("d", "ann")


def test_an_order_that_its_owner_has_forgotten_takes_no_place_of_theirs(visitors: Visitors) -> None:
    first = visitors.entry("a", "ann")
    visitors.entry("a", "bob")
    visitors.who = "ann"
    first.leave()
    assert visitors.entry("b", "ann") is not first
    assert not first.stopped()


def test_a_place_is_free_again_when_the_order_is_done(visitors: Visitors) -> None:
    visitors.end.set()
    first = visitors.entry("a", "ann")
    until(lambda: first.finished)
    assert first.error is None
    assert visitors.entry("b", "ann")


def test_what_nobody_looks_at_stops_and_is_not_joined_any_more(visitors: Visitors) -> None:
    first = visitors.entry("a", "ann")
    until(lambda: visitors.begun == ["a"])
    visitors.forget(0.0)
    until(lambda: first.finished)
    assert isinstance(first.error, Cancelled)
    assert visitors.queue.failed("a") is first
    visitors.forget(600.0)
    assert first.stopped(), "a late look brings nothing back to life"
    assert visitors.entry("a", "ann") is not first


def test_orders_that_nobody_looked_at_while_they_waited_never_begin(visitors: Visitors) -> None:
    visitors.entry("a", "ann")
    until(lambda: visitors.begun == ["a"])
    waiting = visitors.entry("b", "bob")
    assert visitors.queue.before(waiting) == 1
    waiting.let_go()
    visitors.end.set()
    until(lambda: waiting.finished)
    assert visitors.begun == ["a"]


def test_a_full_queue_refuses_whoever_is_new_and_nobody_else(visitors: Visitors) -> None:
    for who in ("ann", "bob", "eve"):
        visitors.entry(who, who)
    with pytest.raises(Busy, match="Too many trainings are waiting on this server"):
        visitors.entry("d", "dan")
    assert visitors.entry("ann", "dan").owner == "ann"


def test_orders_that_were_stopped_take_no_place(visitors: Visitors) -> None:
    visitors.entry("long", "bob")
    until(lambda: visitors.begun == ["long"])
    stopped = []
    for number in range(3):
        stopped.append(visitors.entry(f"run {number}", "ann"))
        stopped[-1].let_go()
    assert all(job.finished for job in stopped), "at once: the worker is not asked"
    assert visitors.queue.before(visitors.entry("d", "eve")) == 1


def test_ordering_and_stopping_the_same_leaves_nothing_behind(visitors: Visitors) -> None:
    visitors.entry("long", "bob")
    until(lambda: visitors.begun == ["long"])
    for _ in range(20):
        visitors.entry("a", "ann").let_go()
    assert [entry.key for entry in visitors.queue._entries] == ["long"]
    assert visitors.queue.under_way("a") is None
    last = visitors.entry("a", "ann")
    visitors.end.set()
    until(lambda: last.finished)
    assert visitors.begun == ["long", "a"]


def test_waiting_orders_that_everybody_left_take_no_place(visitors: Visitors) -> None:
    running = visitors.entry("long", "bob")
    until(lambda: visitors.begun == ["long"])
    left = [visitors.entry(who, who) for who in ("ann", "eve")]
    visitors.forget(0.0)
    assert all(job.stopped() for job in (running, *left))
    visitors.forget(600.0)
    assert visitors.entry("d", "dan").owner == "dan"
    assert all(job.finished for job in left)


def test_nobody_in_particular_is_not_counted(visitors: Visitors) -> None:
    visitors.entry("a", jobs.NOBODY)
    assert visitors.entry("b", jobs.NOBODY)


def test_a_queue_does_not_keep_its_process_alive(visitors: Visitors) -> None:
    visitors.entry("a", "ann")
    assert all(t.daemon for t in threading.enumerate() if t.name == "training")


def test_what_is_left_is_estimated_from_what_is_done() -> None:
    job = Job(Rules("training", "trainings", "Stop it first.", places=1, forgotten=600.0), "run")
    assert job.seconds_left is None
    job.begin()
    assert job.seconds_left is None
    job._start -= 10
    job.tell(0.25)
    assert job.seconds_left == pytest.approx(30, rel=0.05)
    job.tell(1.0)
    assert job.seconds_left == 0
