"""By what heads find their keys over a corpus, and the command for it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis import corpus_why, intervals
from mha_viz.analysis.corpus_why import CorpusWhy, ShareSums
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.cli import main
from mha_viz.corpus.sources import iterate
from mha_viz.errors import Cancelled, CorpusError, SettingError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.study.cluster.tasks import PartSums, PartTask, WorkerModel, measure
from mha_viz.study.measures import ResamplingUnits
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.run import Progress
from mha_viz.study.sums import PASSES, Sums, merge_sums
from mha_viz.study.why import ScoreSums
from tests.shards import lay_out_corpus

SENTENCES = 6


@pytest.fixture(scope="module")
def repeater() -> Encoder:
    return load_one_stack("repeater")


@pytest.fixture(scope="module")
def measured(repeater: Encoder) -> CorpusWhy:
    return mv.explain_corpus_scores("repeats", repeater, most=SENTENCES)


def test_shares_over_a_corpus_are_sums_of_covariances_over_sums_of_variances(
    measured: CorpusWhy, repeater: Encoder
) -> None:
    sentences = list(iterate("repeats"))
    step = math.ceil(len(sentences) / SENTENCES)
    sentences = sentences[::step]
    assert (measured.sentences, measured.every) == (len(sentences), step)
    layers = [mv.explain_scores(repeater, "", words=each.forms).variations[1] for each in sentences]
    variance = sum(each.variance for each in layers)
    expected = sum(each.sum_groups() for each in layers) / variance[:, None]  # [head, group]
    rows = measured.table()
    rows = rows[rows["layer"] == 1]
    assert np.allclose(rows["share"].to_numpy().reshape(4, len(GROUPS)), expected)
    assert (rows["low"] <= rows["share"]).all()
    assert (rows["share"] <= rows["high"]).all()
    place = layers[0].names.index("L0H0")
    by_key = sum(each.key[2, place] for each in layers) / variance[2]
    arrows = measured.arrows()
    row = arrows[(arrows["from"] == "L0H0") & (arrows["to"] == "L1H2") & (arrows["side"] == "key")].iloc[0]
    assert row["share"] == pytest.approx(by_key)
    assert row["low"] < by_key < row["high"]


def test_the_head_for_the_token_before_is_the_largest_arrow(measured: CorpusWhy) -> None:
    assert measured.arrows().iloc[0][["from", "side"]].tolist() == ["L0H0", "key"]
    assert measured.arrows()["share"].is_monotonic_decreasing
    assert len(measured.arrows(least=0.3)) < len(measured.arrows())


def test_of_many_sentences_some_are_drawn_together(
    measured: CorpusWhy, repeater: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "FEWEST_BLOCKS", 4)
    monkeypatch.setattr(intervals, "CELLS", 1)
    fewer = mv.explain_corpus_scores("repeats", repeater, most=SENTENCES).table()
    assert np.allclose(fewer["share"], measured.table()["share"])
    assert not np.allclose(fewer["low"], measured.table()["low"])


def test_it_is_the_same_from_any_shards(repeater: Encoder, tmp_path: Path) -> None:
    lines = ["dog river dog river", "anna king anna king green anna", "cat dog cat", "red bridge red bridge red"]
    file = tmp_path / "some.txt"
    file.write_text("".join(f"{line}\n" for line in lines * 3), "utf-8")
    whole = mv.explain_corpus_scores(file, repeater, most=10)
    kind, parts = ScoreSums(2, ResamplingUnits(by_sentence=True, bits=None)), lay_out_corpus("some", [file], 40).parts
    assert len(parts) > 3
    model, folder = WorkerModel.from_encoder(repeater), str(tmp_path / "sums")
    todo = [PartTask(part, model, PartSums(PASSES[:1], DEFAULT_BATCH, kind), folder) for part in parts]
    sums = merge_sums([part for part in map(measure, todo[::-1]) if isinstance(part, Sums)])
    gathered = ShareSums(len(sums.documents), repeater.layers, repeater.heads, sums.select("trained/why"))
    assert sums.counted["sentences"] == whole.sentences == 6
    assert whole.every == 2
    ours, theirs = (np.array([each for *_, each in rows]) for rows in (gathered.rows(), whole.rows))
    assert np.allclose(ours, theirs)


def test_it_continues_where_it_was_stopped(
    measured: CorpusWhy, repeater: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Progress] = []
    with pytest.raises(Cancelled):
        mv.explain_corpus_scores(
            "repeats",
            repeater,
            most=SENTENCES,
            resume=tmp_path,
            progress=steps.append,
            cancelled=lambda: len(steps) == 4,
        )
    assert [*tmp_path.iterdir()]
    again: list[Progress] = []
    continued = mv.explain_corpus_scores("repeats", repeater, most=SENTENCES, resume=tmp_path, progress=again.append)
    assert again[0].done >= steps[-1].done
    assert np.allclose(continued.table()[["share", "low"]], measured.table()[["share", "low"]])
    assert not [*tmp_path.iterdir()], "intermediate sums are deleted"


@pytest.mark.parametrize("command", [["why"], ["effect", "--heads", "L1H1"]])
def test_one_sentence_has_no_interval(
    command: list[str], repeater: Encoder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, (name, *more) = tmp_path / "one.txt", command
    file.write_text("dog river dog\n", "utf-8")
    table = mv.explain_corpus_scores(file, repeater).table()
    assert table["share"].notna().all()
    assert table["low"].isna().all()
    assert main([name, str(file), "--model", "repeater", *more]) in (0, None)
    printed = capsys.readouterr().out
    assert "L1H1 (2-2)" in printed
    assert "nan" not in printed
    assert "[" not in printed


def test_sentences_that_cannot_be_read_are_left_out(repeater: Encoder, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text(f"dog river dog\n{'dog ' * 65}\n", "utf-8")
    measured = mv.explain_corpus_scores(tmp_path / "some.txt", repeater)
    assert (measured.sentences, measured.left_out) == (1, 1)
    (tmp_path / "long.txt").write_text(f"{'dog ' * 65}\n", "utf-8")
    with pytest.raises(CorpusError, match="Nothing in long"):
        mv.explain_corpus_scores(tmp_path / "long.txt", repeater)


def test_what_is_no_number_of_sentences_is_refused(repeater: Encoder) -> None:
    with pytest.raises(SettingError, match="most is 0"):
        mv.explain_corpus_scores("repeats", repeater, most=0)


def test_it_says_how_far_it_is_and_stops(repeater: Encoder) -> None:
    steps: list[Progress] = []
    with pytest.raises(Cancelled):
        mv.explain_corpus_scores("repeats", repeater, most=5, progress=steps.append, cancelled=lambda: len(steps) == 2)
    assert 0 == steps[0].done < steps[1].done < steps[1].total


def test_the_command_prints_shares_and_arrows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "repeats", "--model", "repeater", "--most", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sample, read = "every 100th sentence of repeats", "4 sentences of 4 documents, 0 left"
    assert lines[0].startswith(f"repeater on {sample}: what attention depends on, {read}")
    assert lines[1].startswith("Few documents (4): the intervals apply to these alone")
    assert lines[2].startswith("L0H0 (1-1) position ")
    assert lines[6].startswith("L1H0 (2-1) earlier heads ")
    assert lines[11].startswith("L0H0 (1-1) → L1H")
    assert lines[-1].endswith("more")


@pytest.mark.parametrize(("option", "columns"), [([], corpus_why.HEADING), (["--arrows"], corpus_why.ARROW_COLUMNS)])
def test_the_command_writes_a_table(option: list[str], columns: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "why.csv"
    assert main(["why", "repeats", "--model", "repeater", "--most", "4", "--out", str(out), *option]) == 0
    assert tuple(pd.read_csv(out).columns) == columns


def test_shares_are_stored_in_the_profile_of_the_same_model_alone(measured: CorpusWhy, tmp_path: Path) -> None:
    folder = mv.load_profile("toy").save(tmp_path / "toy")
    assert main(["why", "grammar", "--model", "toy", "--most", "2", "--profile", str(folder)]) == 0
    profile = mv.load_profile(folder)
    assert set(profile.tables["why"]["sentences"]) == {2}
    assert (
        corpus_why.load_head_shares(profile.head("L0H3")["why"])[Head(0, 3)]
        .words.partition(" · ")[0]
        .endswith("% position")
    )
    with pytest.raises(SettingError, match="results are of repeater"):
        measured.stored_in(profile)
    for name in ("a", "z"):  # before and after it in the alphabet
        with pytest.raises(SettingError, match="results are of repeater"):
            measured.stored_in(replace(profile, facts={**profile.facts, "model": name}))


def test_no_profile_is_changed_that_is_bundled_or_of_another_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", "grammar", "--model", "toy", "--most", "2", "--profile", "toy"]) == 2
    assert "The profile of toy comes with the app and stays as it is." in capsys.readouterr().err
    folder = mv.load_profile("toy").save(tmp_path / "toy")
    assert main(["why", "repeats", "--model", "repeater", "--most", "2", "--profile", str(folder)]) == 2
    printed = capsys.readouterr()
    assert "The results are of repeater" in printed.err
    assert not printed.out, "said before anything is measured"
