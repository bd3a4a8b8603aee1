"""The effect of switching heads off, measured by a cluster of real processes, stored and resumed."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.corpus_effects import MASKED_WORD, CorpusEffect, list_variants
from mha_viz.analysis.profile import read_profile
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import SumsUnsavedWarning
from mha_viz.files.assets import asset_path
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study.cases import Cases
from mha_viz.study.cluster import cases as cases_of_parts
from mha_viz.study.cluster.cases import CaseMeasure, ClusterCorpus
from mha_viz.study.cluster.engine import ClusterEngine
from mha_viz.study.cluster.layout import Part
from mha_viz.study.cluster.tasks import PartTask, WorkerModel, digest_values
from mha_viz.study.corpus_effects import CorpusReplacements, EffectCases, EffectSettings, Measurement
from mha_viz.study.run import Progress
from tests.shards import get_trust, lay_out_corpus, open_cluster, run_module, treebank
from tests.waiting import until

pytestmark = [pytest.mark.app, pytest.mark.usefixtures("one_thread")]

SHARD = 2000  # bytes: about four sentences
SENTENCES = EffectSettings(Request(off=(Head(1, 1),)), most=30)
WORDS = EffectSettings(Request(off=(Head(0, 2), Head(1, 1))), relation="nsubj", most=30)
HELD = 2  # how many parts a worker measures before it waits


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two worker processes, one for all tests."""
    with open_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "c.conllu"
    path.write_text(treebank(60, 5), "utf-8")
    return path


def of_one_process(toy: Encoder, corpus: Path, settings: EffectSettings) -> CorpusEffect:
    run = Measurement(toy, mv.read_corpus(corpus), settings)
    for _ in run.iter_progress():
        pass
    return run.result()


def on_cluster(
    cluster: ClusterEngine, toy: Encoder, corpus: Any, settings: EffectSettings, folder: Path
) -> Measurement:
    return Measurement(toy, ClusterCorpus.from_source(cluster, corpus), settings, folder=folder)


def effects_of(settings: EffectSettings, step: int = 1) -> CaseMeasure:
    """What a worker measures by these settings; of words that are no drawn ones."""
    variants = list_variants(settings.request.off, (), 4)
    return CaseMeasure(EffectCases(step, settings, variants, MASKED_WORD))


def assert_equal(ours: CorpusEffect, theirs: CorpusEffect) -> None:
    for name in ("cases", "sentences", "every", "documents", "left_out"):
        assert getattr(ours, name) == getattr(theirs, name)
    pd.testing.assert_frame_equal(ours.table(), theirs.table(), check_exact=False, rtol=1e-9, atol=1e-12)


def files_in(folder: Path) -> dict[str, int]:
    """The stored files, with their modification times."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}


@pytest.mark.parametrize("settings", [SENTENCES, WORDS], ids=["sentences", "words"])
def test_a_second_run_reads_what_the_first_has_stored(
    client: Any, toy: Encoder, corpus: Path, tmp_path: Path, settings: EffectSettings
) -> None:
    expected = of_one_process(toy, corpus, settings)
    cluster = ClusterEngine(client, size=SHARD)
    layout = cluster.open(corpus)
    stopped = on_cluster(cluster, toy, layout, settings, tmp_path)
    so_far = next(reports := stopped.iter_progress())
    assert 0 < so_far.done < so_far.total == settings.most
    assert so_far.rate > 0
    assert [*so_far.by_worker.values()] == [so_far.done]
    reports.close()
    # What was begun is still measured and stored.
    until(lambda: not any([*client.processing().values(), *client.run(at_work).values()]))
    before = files_in(tmp_path)
    assert before

    resumed = on_cluster(cluster, toy, layout, settings, tmp_path)
    *_, last = resumed.iter_progress()
    assert (last.done, last.total, last.seconds_left, last.lost) == (settings.most, settings.most, 0, 0)
    assert_equal(resumed.result(), expected)
    after = files_in(tmp_path)
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)

    client.run(forbid_measuring)
    try:
        again = on_cluster(cluster, toy, layout, settings, tmp_path)
        assert len([*again.iter_progress()]) == len(after)
    finally:
        client.run(allow_measuring)
    assert_equal(again.result(), expected)
    assert files_in(tmp_path) == after


def at_work(dask_worker: Any) -> int:
    """How many tasks a worker has begun and not yet ended, whether or not anybody still wants their results."""
    return len(dask_worker.active_keys)


def forbid_measuring() -> None:
    """From now on, a worker that measures fails."""
    cases_of_parts.forbidden, CaseMeasure.measure_part = CaseMeasure.measure_part, None  # type: ignore[attr-defined, assignment, method-assign]


def measure_few_until(path: str) -> None:
    """From now on, a worker measures a few parts, and others only when there is a file at this path."""
    measured, left = CaseMeasure.measure_part, [*range(HELD)]

    def waiting(self: CaseMeasure, model: WorkerModel, part: Part) -> Cases:
        if left:
            left.pop()
        else:
            until(Path(path).exists)
        return measured(self, model, part)

    cases_of_parts.forbidden, CaseMeasure.measure_part = measured, waiting  # type: ignore[attr-defined, method-assign]


def allow_measuring() -> None:
    """Undo that."""
    CaseMeasure.measure_part = cases_of_parts.forbidden  # type: ignore[attr-defined, method-assign]


def test_files_before_others_leave_what_was_measured_of_a_relation(
    client: Any, toy: Encoder, corpus: Path, tmp_path: Path
) -> None:
    cluster = ClusterEngine(client)
    sums, settings = tmp_path / "sums", WORDS._replace(most=1000)
    for _ in on_cluster(cluster, toy, corpus, settings, sums).iter_progress():
        pass
    before = files_in(sums)
    other = tmp_path / "a.conllu"
    other.write_text(treebank(20, 4, seed=1), "utf-8")
    both = on_cluster(cluster, toy, [other, corpus], settings, sums)
    for _ in both.iter_progress():
        pass
    after = files_in(sums)
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 1
    here = Measurement(toy, mv.read_corpus([other, corpus]), settings)
    for _ in here.iter_progress():
        pass
    assert_equal(both.result(), here.result())


def test_a_command_that_is_killed_is_resumed(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask

    folder, table, go = tmp_path / "corpus", tmp_path / "effect.csv", tmp_path / "go"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.conllu").write_text(treebank(2, 5, seed=number), "utf-8")
    command = ["effect", str(folder), "--model", "toy", "--heads", "L1H1", "--out", str(table)]
    by_workers = [*command, "--cluster", client.scheduler.address]
    parts = tmp_path / ".effect.csv.parts"
    client.run(measure_few_until, str(go))
    try:
        with run_module("mha_viz.cli", *by_workers, trust=get_trust(client)) as process:
            until(lambda: len(files_in(parts)) == 2 * HELD)
            assert process.is_alive()
    finally:
        go.touch()
    until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    until(lambda: not any(client.run(lambda dask_worker: len(dask_worker.state.executing)).values()))
    client.run(allow_measuring)
    before = files_in(parts)
    assert 2 * HELD <= len(before) <= 2 * HELD + 2
    assert not table.exists()
    with monkeypatch.context() as patch, dask.config.set(get_trust(client)):
        patch.setattr("mha_viz.process.progress.SECONDS_BETWEEN_LINES", 0)
        assert main(by_workers) == 0
    after = files_in(parts)
    assert len(after) == 12
    assert {name: after[name] for name in before} == before
    resumed, printed = pd.read_csv(table), capsys.readouterr()
    assert re.search(r"mha-viz: 24 of 24 sentences, \d+ per second, .*; w0 \d+ · w1 \d+\n", printed.err)
    assert main(command) == 0
    assert capsys.readouterr().out == printed.out
    pd.testing.assert_frame_equal(resumed, pd.read_csv(table))

    all_sentences = Measurement.iter_progress

    def stopped(self: Measurement) -> Iterator[Progress]:
        for report in all_sentences(self):
            yield report
            if self.measured_cases.cases:  # a part counts when those before it have come
                raise KeyboardInterrupt

    monkeypatch.setattr(Measurement, "iter_progress", stopped)
    with dask.config.set(get_trust(client)):
        assert main(by_workers) == 130
    printed = capsys.readouterr()
    assert "the sentences read so far; run the same command again to continue." in printed.err
    assert "L1H1" in printed.out


def test_a_full_disk_costs_nothing_but_time(client: Any, toy: Encoder, corpus: Path, tmp_path: Path) -> None:
    cluster = ClusterEngine(client, size=SHARD)
    run = on_cluster(cluster, toy, corpus, WORDS, tmp_path)
    client.run(limit_files, 100)
    try:
        with pytest.warns(SumsUnsavedWarning, match="results of 12 parts could not be saved: .*File too large"):
            [*run.iter_progress()]
    finally:
        client.run(limit_files, resource.RLIM_INFINITY)
    assert_equal(run.result(), of_one_process(toy, corpus, WORDS))
    assert files_in(tmp_path) == {}


def limit_files(most: int) -> None:
    """Limit the size of this process's files, which refuses writes like a full disk."""
    sys.dont_write_bytecode = True  # half a file of compiled code would stay in the environment
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_means_over_a_corpus_are_summed_by_the_workers(client: Any, toy: Encoder, corpus: Path, tmp_path: Path) -> None:
    settings = SENTENCES._replace(request=replace(SENTENCES.request, method="mean"))
    measured = on_cluster(ClusterEngine(client, size=SHARD), toy, corpus, settings, tmp_path)
    progress = [*measured.iter_progress()]
    assert max(report.done for report in progress) == 2 * settings.most, "of the means, and of the effects"
    assert measured.result().method == "mean over c.conllu"
    theirs, ours = (of.table() for of in (of_one_process(toy, corpus, settings), measured.result()))
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-5, atol=1e-7)  # of sums in another order


def test_random_sentences_are_those_of_one_process(client: Any, toy: Encoder, corpus: Path, tmp_path: Path) -> None:
    settings = SENTENCES._replace(request=replace(SENTENCES.request, method="resample"))
    measured = on_cluster(ClusterEngine(client, size=SHARD), toy, corpus, settings, tmp_path)
    assert max(report.done for report in measured.iter_progress()) == settings.most
    assert measured.result().method == "resample over c.conllu"
    assert_equal(measured.result(), of_one_process(toy, corpus, settings))


def test_used_roles_are_those_of_one_process(client: Any, toy: Encoder, corpus: Path) -> None:
    profile = read_profile(asset_path("profiles") / "toy" / "grammar")
    shares: list[float] = []
    ours, theirs = (
        mv.roles.ablate(profile, corpus, toy, most=12, client=by, progress=shares.append) for by in (client, None)
    )
    pd.testing.assert_frame_equal(ours.tables["used"], theirs.tables["used"])
    assert len(ours.tables["used"]) > 2
    assert shares.count(1.0) == 2, "both are done at the end"


def test_the_key_of_cases_holds_all_that_they_depend_on(toy: Encoder, corpus: Path) -> None:
    layout = lay_out_corpus("a", [corpus], SHARD)
    part, model = layout.parts[1], WorkerModel.from_encoder(toy)
    task = PartTask(part, model, effects_of(WORDS), "")
    drawn = task._replace(measure=effects_of(WORDS._replace(relation="")))
    shard = part.shard._replace(path="/b.conllu")
    elsewhere = part._replace(shard=shard, first=7, documents=(("9", 10),), multi_file=True)
    changed = [
        task._replace(model=model._replace(revision="other")),
        task._replace(part=part._replace(shard=part.shard._replace(digest="other"))),
        drawn,
        drawn._replace(part=elsewhere),
        *(
            task._replace(measure=effects_of(WORDS._replace(**changed)))
            for changed in (
                {"request": replace(WORDS.request, off=(Head(0, 0),))},
                {"request": replace(WORDS.request, method="mean")},
                {"means": CorpusReplacements(np.ones((2, 4, 8)))},
                {"relation": "obj"},
                {"direction": "head_to_dep"},
                {"same_role": ["L0H0"]},
            )
        ),
        task._replace(measure=effects_of(WORDS, 2)),
        task._replace(measure=effects_of(WORDS, 2), part=part._replace(first=part.first + 1)),
        task._replace(measure=effects_of(WORDS._replace(means=CorpusReplacements(sentences=(("A", "cat"),))))),
    ]
    assert len({task.key, *(one.key for one in changed)}) == 14
    assert task._replace(part=elsewhere, folder="/elsewhere").key == task.key


def test_cases_that_were_stored_before_are_read(corpus: Path) -> None:
    layout = lay_out_corpus("a", [corpus], SHARD)
    part = layout.parts[0]._replace(first=7, sentences=10, file_format="c")
    part = part._replace(shard=part.shard._replace(digest="d"))
    digests = [
        digest_values(effects_of(settings).list_dependencies(part)) for settings in (WORDS, WORDS._replace(relation=""))
    ]
    assert [one[:12] for one in digests] == ["034990b208dc", "b68d79e4f1b6"]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut off", None])
def test_damaged_cases_are_measured_again(toy: Encoder, corpus: Path, tmp_path: Path, damage: bytes | None) -> None:
    layout = lay_out_corpus("a", [corpus], SHARD)
    cases = effects_of(WORDS)
    task = PartTask(layout.parts[1], WorkerModel.from_encoder(toy), cases, str(tmp_path))
    first = cases_of_parts.run_part_task(task)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    assert cases.read(path, task.key) is None
    assert [*map(list, cases_of_parts.run_part_task(task).cases)] == [*map(list, first.cases)]
    assert cases_of_parts.run_part_task(task).units == first.units


def test_one_word_of_each_sentence_is_drawn_in_one_process_as_in_parts(toy: Encoder, corpus: Path) -> None:
    whole = Measurement(toy, mv.read_corpus(corpus), SENTENCES)
    assert whole.kind.measure == MASKED_WORD
    [*whole.iter_progress()]
    layout = lay_out_corpus("a", [corpus], SHARD)
    cases, together = effects_of(SENTENCES, 2), Cases()
    for part in layout.parts:
        if cases.count_sentences(part) > 0:
            together.add(cases_of_parts.run_part_task(PartTask(part, WorkerModel.from_encoder(toy), cases, "")))
    assert together.units == whole.measured_cases.units
    assert len(together.units) > 10
    np.testing.assert_allclose(together.cases, whole.measured_cases.cases, atol=1e-6)


def test_shares_over_a_corpus_are_those_of_one_process(client: Any, toy: Encoder, corpus: Path) -> None:
    ours, theirs = (mv.explain_corpus_scores(corpus, toy, most=12, client=one) for one in (client, None))
    assert (ours.sentences, ours.documents) == (theirs.sentences, theirs.documents) == (12, 12)
    pd.testing.assert_frame_equal(ours.table(), theirs.table())
    pd.testing.assert_frame_equal(ours.arrows(), theirs.arrows())
