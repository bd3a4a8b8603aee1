"""The progress of a study on a cluster: its speed, its workers and those that were lost."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mha_viz.cli.cluster import MAX_LISTED_WORKERS, format_progress, get_partial_folder, show_cluster_progress
from mha_viz.cli.output import Destination
from mha_viz.study.cluster import engine
from mha_viz.study.cluster.engine import ProgressReporter, Workers
from mha_viz.study.run import Progress
from tests.shards import open_cluster
from tests.waiting import until

pytestmark = pytest.mark.app


def test_workers_that_retire_are_not_lost() -> None:
    with open_cluster(3) as client:
        workers = Workers(client)
        retires, dies, stays = client.nthreads()
        client.retire_workers(workers=[retires])
        until(lambda: retires not in client.nthreads())
        assert workers.count_lost() == 0
        os.kill(client.run(os.getpid, workers=[dies])[dies], signal.SIGKILL)
        until(lambda: dies not in client.nthreads())
        assert workers.count_lost() == 1
        until(lambda: len(client.nthreads()) == 2)  # another has been started in its place
        assert workers.count_lost() == 1
        assert stays in client.nthreads()


def test_time_left_is_told_by_what_is_measured_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    reporter = ProgressReporter(10_000)
    for _ in range(90):  # read from the folder, in a second
        now[0] += 1 / 90
        so_far = reporter.add("a", 100, 0)
    assert so_far.rate > 8000
    for _ in range(9):
        now[0] += 20
        so_far = reporter.add("b", 100, 0)
    assert (so_far.done, so_far.by_worker) == (9900, {"a": 9000, "b": 900})
    assert (so_far.rate, so_far.seconds_left) == (pytest.approx(5), pytest.approx(20))


def test_the_line_has_the_sentences_of_each_worker() -> None:
    so_far = Progress(1410, 2000, 82.5, 7.2, {"tcp://10.0.0.5:1": 1012, "tcp://10.0.0.6:1": 398})
    line = "1,410 of 2,000 sentences, 82 per second, about 7 s left"
    assert format_progress(so_far) == f"{line}; w0 1,012 · w1 398"
    lost = "1 worker lost, whose shards are measured again"
    assert format_progress(so_far._replace(lost=1)) == f"{line}; {lost}; w0 1,012 · w1 398"
    many = {str(number): 100 + number for number in range(MAX_LISTED_WORKERS + 1)}
    assert format_progress(so_far._replace(by_worker=many)) == f"{line}; 9 workers, each 100 to 108, median 104"


def test_on_a_terminal_the_line_is_as_long_as_the_terminal_is_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    workers = {str(number): 1000 + number for number in range(MAX_LISTED_WORKERS)}
    with show_cluster_progress() as show:
        show(Progress(8000, 9000, 82.5, 7.2, workers))
        show(Progress(9000, 9000, 82.5, 0, {}))
    lines = capsys.readouterr().err.rstrip("\n").split("\r")[1:]
    assert [len(line) for line in lines] == [99, 99]


def test_what_is_measured_is_stored_beside_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert get_partial_folder(Destination(tmp_path / "new.csv", ".csv"), "parts") == tmp_path / ".new.csv.parts"
    for to in (None, Destination(None, ".csv"), Destination(tmp_path / "pipe.csv", ".csv")):
        assert get_partial_folder(to, "parts") is None
