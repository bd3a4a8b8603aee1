"""Studies on a Dask cluster of real processes: the same numbers as from one process, whatever happens to the
workers."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.profile import Profile
from mha_viz.cli import main
from mha_viz.errors import ClusterError, ClusterMissing, CorpusError, SettingError, SumsUnsavedWarning
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.cluster.connection import connect, convert_client_error, convert_task_error
from mha_viz.study.cluster.engine import SUMS_FOLDER, ClusterEngine
from mha_viz.study.run import Progress, study
from tests import lanes
from tests.shards import get_trust, open_cluster, scheduler, treebank, worker
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("one_thread")]

SENTENCES = 150 if lanes.everything else 60
SHARD = 2000  # bytes: about four sentences
COUNTS = ("n", "correct", "first", "last", "word", "answer", "right", "n_even", "n_odd")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two worker processes, one for all tests."""
    with open_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "c.conllu"
    path.write_text(treebank(SENTENCES, 5), "utf-8")
    return path


@pytest.fixture(scope="module")
def whole(toy: Encoder, corpus: Path) -> Profile:
    """The profile that one process measures."""
    return study(toy, mv.read_corpus(corpus))


def assert_equal(ours: Profile, theirs: Profile) -> None:
    """Counts, texts and sentences are equal, other numbers equal to within 2e-8."""
    assert ours.facts == theirs.facts
    assert ours.sentences == theirs.sentences
    for mine, others in ((ours.tables, theirs.tables), (ours.untrained, theirs.untrained)):
        assert_tables_equal(mine, others)


def assert_tables_equal(mine: Mapping[str, pd.DataFrame], others: Mapping[str, pd.DataFrame]) -> None:
    assert mine.keys() == others.keys()
    for name, table in others.items():
        pd.testing.assert_frame_equal(mine[name], table, check_exact=False, rtol=2e-8, atol=2e-8)
        for column in {*COUNTS} & {*table.columns}:
            assert mine[name][column].tolist() == table[column].tolist(), (name, column)


def files_in(folder: Path) -> dict[str, int]:
    """The files of sums, with their modification times."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / SUMS_FOLDER).glob("*.npz")}


def test_two_workers_one_of_which_is_killed_measure_what_one_process_does(
    client: Any, toy: Encoder, corpus: Path, whole: Profile, tmp_path: Path
) -> None:
    cluster = ClusterEngine(client, size=SHARD)
    layout = cluster.open(corpus)
    assert len(layout.parts) > 10
    seen: list[Progress] = []

    def progress(so_far: Progress) -> None:
        seen.append(so_far)
        if len(seen) == 2:
            worker = next(iter(so_far.by_worker))
            os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)

    measured = cluster.study(toy, layout, tmp_path, progress=progress)
    assert_equal(measured, whole)
    assert seen[-1].lost == 1
    assert (seen[-1].done, seen[-1].total, seen[-1].seconds_left) == (SENTENCES, SENTENCES, 0)
    assert seen[1].rate > 0
    assert sum(seen[-1].by_worker.values()) == SENTENCES

    # A second run measures nothing, and a longer corpus only what is new.
    before = files_in(tmp_path)
    assert len(before) == len(layout.parts)
    assert_equal(cluster.study(toy, layout, tmp_path), whole)
    assert files_in(tmp_path) == before
    longer = tmp_path / "longer.conllu"
    longer.write_text(treebank(SENTENCES, 5) + treebank(8, 4, seed=1).replace("= d", "= e"), "utf-8")
    parts = cluster.open(longer, whole.corpus)
    cluster.study(toy, parts, tmp_path)
    after = files_in(tmp_path)
    assert {name: after[name] for name in before} == before
    assert 1 <= len(after) - len(before) <= 3  # the last shard has grown, and others were added


def test_a_bad_line_is_left_out_and_counted_and_a_full_disk_costs_nothing_but_time(
    client: Any, toy: Encoder, corpus: Path, whole: Profile, tmp_path: Path
) -> None:
    until(lambda: len(client.nthreads()) == 2)  # the killed one has been restarted
    cluster = ClusterEngine(client, size=SHARD)
    broken = tmp_path / "broken.conllu"
    sentences = corpus.read_bytes().split(b"\n\n")
    broken.write_bytes(b"\n\n".join([*sentences[:40], b"1\tbroken\xff", *sentences[40:]]))
    with pytest.raises(CorpusError):
        mv.read_corpus(broken)
    full = next(iter(client.nthreads()))
    client.run(limit_files, 1000, workers=[full])
    try:
        with pytest.warns(SumsUnsavedWarning, match="could not be saved: .*File too large"):
            measured = cluster.study(toy, cluster.open(broken, whole.corpus), tmp_path)
    finally:
        client.run(limit_files, resource.RLIM_INFINITY, workers=[full])
    assert measured.facts["left_out"] == 1
    assert "not UTF-8 text. The sentence is left out." in measured.facts["left_out_first"][0]
    assert measured.facts["counts"] == whole.facts["counts"]
    assert_tables_equal(measured.tables, whole.tables)


def limit_files(most: int) -> None:
    """Limit the size of this process's files, which refuses writes like a full disk."""
    sys.dont_write_bytecode = True  # half a file of compiled code would stay in the environment
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_the_commands_measure_by_a_cluster_that_runs(
    client: Any, corpus: Path, whole: Profile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask

    out, other = tmp_path / "out", tmp_path / "other.conllu"
    other.write_text(treebank(40, 4, seed=3), "utf-8")
    address = ["--cluster", client.scheduler.address]
    with dask.config.set(get_trust(client)):
        assert main(["profile", str(corpus), "--model", "toy", "--out", str(out), *address]) == 0
        printed = capsys.readouterr()
        assert "The cluster’s dashboard: http://" in printed.err
        assert f"toy on {corpus.name} ({SENTENCES} sentences" in printed.out
        assert mv.load_profile(out).facts == whole.facts
        for command in (
            ["replicate", str(out), str(other)],
            ["effect", str(corpus), "--model", "toy", "--heads", "L1H1", "--most", "20"],
            ["used", "toy", str(corpus), "--method", "mean", "--means", str(corpus), "--most", "6"],
        ):
            assert main([*command, *address]) == 0
            on_cluster = capsys.readouterr().out
            assert main(command) == 0
            assert capsys.readouterr().out == on_cluster


def test_the_command_counts_roles_of_other_words_of_the_kind_by_a_cluster(
    client: Any, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask

    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)
    other = tmp_path / "other.conllu"
    other.write_text(treebank(SENTENCES, 4, seed=3), "utf-8")
    tables = []
    command = [
        "profile",
        str(corpus),
        "--name",
        "trees",
        "--and",
        str(other),
        "--model",
        "toy",
        "--chance-of-kind",
        "2",
    ]
    with dask.config.set(get_trust(client)):
        for place, where in (("here", []), ("there", ["--cluster", client.scheduler.address])):
            out = tmp_path / place
            assert main([*command, "--out", str(out), *where]) == 0
            tables.append(mv.load_profile(out).tables["chance"])
            assert [*out.glob(".kinds-*")] == [], "nothing is left over"
    assert tables[0].equals(tables[1])
    assert tables[0]["roles"][0] > 2
    assert {*tables[0]["corpora"]} == {"other.conllu; trees"}


def test_several_corpora_and_steps_of_a_training_in_one_call(client: Any, corpus: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog saw the girl .\nthe girl saw it .\n" * 5, "utf-8")
    measured = mv.roles.profile_all([corpus, text], ["toy@0", "toy"], out=tmp_path / "out", client=client)
    names = [(profile.model, profile.corpus) for profile in measured]
    assert names == [("toy@0", "c.conllu"), ("toy@0", "text.txt"), ("toy", "c.conllu"), ("toy", "text.txt")]
    for profile in measured:
        assert mv.load_profile(tmp_path / "out" / profile.model / profile.corpus) == profile
    together = pd.read_csv(tmp_path / "out" / "profiles.csv")
    assert list(together.columns[4:]) == [f"{model} on {name}" for model, name in names]
    for _, row in mv.roles.compare_scores(measured).iterrows():
        for profile in measured:
            lines = profile.tables["candidates"]
            same = np.logical_and.reduce([lines[key] == row[key] for key in ("layer", "head", "role", "detail")])
            scores = lines[same]["score"].tolist()
            assert [row[f"{profile.model} on {profile.corpus}"]] == (scores or [pytest.approx(np.nan, nan_ok=True)])


# ---- Errors ----------------------------------------------------------------------------------------------------------


def test_without_dask_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["profile", str(corpus), "--model", "toy", "--out", str(tmp_path), "--workers", "2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert 'pip install ".[cluster]"' in error
    with pytest.raises(ClusterMissing):
        mv.profile(corpus, "toy", client=object())


def test_what_is_no_cluster_is_refused(
    client: Any, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ClusterError, match="not a Dask client"):
        mv.profile(corpus, "toy", client="tcp://127.0.0.1:8786")
    with pytest.raises(CorpusError, match="A cluster reads files"):
        mv.profile("grammar", "toy", client=client)
    with pytest.raises(SettingError, match="are lists"):
        mv.roles.profile_all("grammar", ["toy"])
    with pytest.raises(SettingError, match="the same results folder"):
        mv.roles.profile_all(["grammar", "grammar"], ["toy"])
    command = ["profile", str(corpus), "--model", "toy", "--out", str(tmp_path)]
    assert main([*command, "--cluster", "tcp://127.0.0.1:9", "--workers", "2"]) == 2
    assert "both given" in capsys.readouterr().err
    assert main([*command, "--cluster", "nonsense://x:1"]) == 4
    assert "No Dask scheduler answers at “nonsense://x:1”" in capsys.readouterr().err
    assert main([*command, "--cluster", "tls://127.0.0.1:9"]) == 4
    assert "without a certificate" in capsys.readouterr().err
    assert main([command[0], "grammar", *command[1:], "--name", "x"]) == 2
    assert "--name goes with one corpus" in capsys.readouterr().err


@pytest.mark.parametrize("question", ["who_has", "nthreads", "submit"])
def test_a_scheduler_that_goes_away_is_named_whatever_was_asked(
    client: Any, toy: Encoder, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    import distributed

    cluster = ClusterEngine(client, size=10**6)
    layout = cluster.open(corpus)

    def gone(*_: object, **__: object) -> None:
        raise distributed.comm.CommClosedError("in <TCP (closed)>")

    monkeypatch.setattr(client, question, gone)
    with pytest.raises(ClusterError, match="stopped answering"):
        cluster.study(toy, layout, tmp_path)


def test_workers_that_join_have_work_at_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, running, submitted = ClusterEngine(client), Mock(), list[int]()
    running.add, running.count, running.is_empty = submitted.append, lambda: len(submitted), lambda: not submitted
    waiting = iter([partial(int, number) for number in range(9)])
    for workers, expected in (({"a": 1}, 2), ({"a": 1, "b": 3}, 8), ({"b": 1}, 8), ({"a": 4, "b": 4}, 9)):
        monkeypatch.setattr(client, "nthreads", lambda workers=workers: workers)
        assert cluster._submit(waiting, running)
        assert submitted == [*range(expected)]


def test_workers_of_this_machine_spend_no_time_on_a_profile_of_themselves(client: Any) -> None:
    import dask

    setting = "distributed.worker.profile.enabled"
    assert not any(client.run(dask.config.get, setting).values())


def test_processes_of_this_machine_refuse_whoever_lacks_their_certificate(client: Any) -> None:
    import distributed

    def reach(address: str, security: Any) -> None:
        async def connect() -> None:
            arguments = security.get_connection_args("client")
            (await distributed.comm.connect(address, timeout=PATIENCE, **arguments)).abort()

        client.sync(connect)  # this thread may have a loop already, of a browser

    workers = client.scheduler_info(n_workers=-1)["workers"]
    addresses = [client.scheduler.address, *workers, *(worker["nanny"] for worker in workers.values())]
    assert len(addresses) == 5
    for address in addresses:
        reach(address, client.security)
        for stranger in (distributed.Security(), distributed.Security.temporary()):
            with pytest.raises(OSError) as refused:  # noqa: PT011
                reach(address if stranger.require_encryption else address.replace("tls:", "tcp:"), stranger)
            assert "Timed out" not in str(refused.value)


def test_without_what_makes_certificates_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ClusterMissing, match="cryptography is not installed"), connect(workers=1):
        pass


def test_an_error_of_a_task_is_named_and_is_not_one_of_the_connection(client: Any, tmp_path: Path) -> None:
    cluster = ClusterEngine(client)
    cluster.folder = tmp_path
    for error, words in (
        (RuntimeError("not enough memory: you tried to allocate 9 GB."), "RuntimeError: not enough memory: .* 9 GB.$"),
        (PermissionError(13, "Permission denied", "/shared/a.txt"), "Permission denied: '/shared/a.txt'.$"),
        (OSError(), "A worker could not do its part: OSError.$"),
    ):
        with pytest.raises(ClusterError) as raised:
            [*cluster.iter_results(fail, [(error,)])]
        assert re.search(words, raised.value.problem)
        assert raised.value.remedy.endswith(f"The measured parts are in {tmp_path}.")
        with pytest.raises(ClusterError, match="could not do its part"):
            cluster._result(client.submit(fail, error, pure=False))
    with pytest.raises(CorpusError, match="refused"):
        [*cluster.iter_results(fail, [(CorpusError("refused", "Give another."),)])]


def fail(error: Exception) -> None:
    """A task that ends with an error."""
    raise error


def test_faults_of_workers_are_errors_of_the_family() -> None:
    import distributed

    killed = distributed.KilledWorker("measure-1", None, 3)
    assert "killed its worker 4 times" in str(convert_task_error(killed, "Kept."))
    assert convert_task_error(CorpusError("a", "b"), "").problem == "a"
    cancelled = distributed.client.FutureCancelledError("measure-1", "scheduler-connection-lost")
    for gone in (None, cancelled, distributed.client.ClosedClientError(), OSError(), RuntimeError("IOLoop is closed")):
        assert "stopped answering" in str(convert_client_error(gone, "Kept."))
    assert "stopped answering" in str(convert_task_error(cancelled, ""))
    fault = convert_task_error(ModuleNotFoundError("No module named 'mha_viz'"), "")
    assert "No module named" in fault.problem
    assert "same version of mha-viz" in fault.remedy


def test_a_study_whose_scheduler_goes_away_is_resumed_by_another(
    client: Any, toy: Encoder, corpus: Path, whole: Profile, tmp_path: Path
) -> None:
    with scheduler() as (address, process), worker(address), connect(address) as its_client:
        cluster = ClusterEngine(its_client, size=SHARD)
        layout = cluster.open(corpus)

        def progress(so_far: Progress) -> None:
            if so_far.done > SENTENCES // 4:
                process.kill()

        with pytest.raises(ClusterError, match="stopped answering") as raised:
            cluster.study(toy, layout, tmp_path, progress=progress)
        assert str(tmp_path) in raised.value.remedy
    before = files_in(tmp_path)
    assert 0 < len(before) < len(layout.parts)
    cluster = ClusterEngine(client, size=SHARD)
    assert_equal(cluster.study(toy, cluster.open(corpus), tmp_path), whole)
    after = files_in(tmp_path)
    assert {name: after[name] for name in before} == before
