"""``mha-viz replicate`` and ``mha-viz profile --and``: what two corpora establish, and whether it holds on a third."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.analysis.replication import (
    ABSENT,
    FAILS,
    HEADING,
    HOLDS,
    OUTCOMES,
    RULE,
    Replication,
    RoleScore,
)
from mha_viz.analysis.replication import replicate as replicated
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.cli.outcomes import format_replications
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.errors import SettingError
from mha_viz.files.assets import asset_path
from mha_viz.models.reading import loading
from mha_viz.models.reading.encoder import Encoder


@pytest.fixture(autouse=True)
def _one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = loading.load("toy")
    untrained = toy.untrained()
    monkeypatch.setattr(loading, "load", lambda model, *_, **__: toy)
    monkeypatch.setattr(Encoder, "untrained", lambda self, seed=0: untrained)


def treebank(folder: Path, seed: int, sentences: int = 60) -> Path:
    path = folder / f"{seed}.conllu"
    path.write_text(format_conllu(grammar.corpus(sentences, seed).sentences), "utf-8")
    return path


def profile(corpus: Path, out: Path, *more: str) -> int:
    return main(["profile", str(corpus), "--model", "toy", "--out", str(out), *more])


def replicate(folder: Path, corpus: str | Path, *more: str) -> int:
    return main(["replicate", str(folder), str(corpus), *more])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile of the first treebank."""
    folder = tmp_path_factory.mktemp("measured")
    assert profile(treebank(folder, 1), folder / "one") == 0
    return folder / "one"


@pytest.fixture
def one(measured: Path, tmp_path: Path) -> Path:
    """A copy of it, which may be changed."""
    return Path(shutil.copytree(measured, tmp_path / "one"))


def test_two_corpora_establish_roles_that_hold_on_a_third(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert {finding.status for finding in read_profile(one).findings()} == {"suggested"}
    assert profile(treebank(tmp_path, 2), other, "--and", str(one)) == 0
    both = [read_profile(folder).findings() for folder in (one, other)]
    assert [(f.head, f.detail) for f in both[0]] == [(f.head, f.detail) for f in both[1]]
    assert {f.status for f in both[0]} == {"established"}
    assert {f.corpora for f in both[0]} == {("1.conllu", "2.conllu")}
    capsys.readouterr()

    out = tmp_path / "outcomes.csv"
    assert replicate(one, treebank(tmp_path, 3), "--out", str(out)) == 0
    stdout = capsys.readouterr().out
    printed = stdout.splitlines()
    assert printed[0].split() == ["1.conllu", "3.conllu"]
    assert printed[1].split() == ["head", "role", "rule", *["score", "baseline", "cases"] * 2, "outcome"]
    assert [printed[0].index(name) for name in ("1.conllu", "3.conllu")] == [
        at for at in range(len(printed[1])) if printed[1].startswith("score", at)
    ], "each corpus stands over its numbers"
    assert "subject → its verb (nsubj)" in stdout
    assert "dep_to_head" not in stdout
    after = next(line for line in printed if "token → the one after" in line)
    assert float(after.split()[-2].replace(",", "")) < 60 * 20, "rows with a token after them"
    assert "Position and delimiter heads have a threshold; their baseline is evenly spread attention." in stdout
    roles = len(both[0])
    assert printed[-1].startswith("toy: ")
    assert f" of {roles} roles of 1.conllu hold on 3.conllu." in printed[-1]
    table = pd.read_csv(out)
    assert list(table.columns) == list(HEADING)
    assert len(table) == len(both[0])
    assert set(table["outcome"]) <= set(OUTCOMES)
    assert set(table.query("role == 'syntax'")["outcome"]) == {"holds"}
    assert list(tmp_path.glob(".*")) == [], "the sums are gone"


def test_a_table_as_json(measured: Path, tmp_path: Path) -> None:
    assert replicate(measured, treebank(tmp_path, 2, 5), "--out", str(tmp_path / "o.json")) == 0
    lines = json.loads((tmp_path / "o.json").read_text())
    assert set(lines[0]) == set(HEADING)
    assert {"fewer than 100 cases here"} <= {line["outcome"] for line in lines}


def test_a_table_on_stdout_is_the_file_and_nothing_else(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = treebank(tmp_path, 2, 5)
    assert replicate(measured, other, "--out", str(tmp_path / "table"), "--format", "csv") == 0
    for arguments in (["--out", "-", "--format", "csv"], ["--format", "CSV"]):
        capsys.readouterr()
        assert replicate(measured, other, *arguments) == 0
        assert capsys.readouterr().out == (tmp_path / "table").read_text()
    assert list(tmp_path.glob(".*")) == []
    assert replicate(measured, other, "--out", "-") == 2
    assert "stdout has no suffix" in capsys.readouterr().err


def finding(role: str, detail: str) -> Finding:
    return Finding(Head(0, 1), role, detail, 0.9, 0.5, 0.4, 200, math.nan, math.nan)


def test_roles_and_outcomes_stand_in_the_table_in_words() -> None:
    here = RoleScore(0.52, 0.5, 1234)
    replications = [
        Replication(finding("syntax", "nsubj head_row")._replace(state="below"), here, HOLDS),
        Replication(finding("syntax", "obj head_to_dep"), here, RULE),
        Replication(finding("syntax", "xyz dep_to_head"), None, ABSENT),
        Replication(finding("delimiter", "sep"), here, FAILS),
        Replication(finding("broad", "entropy"), here, HOLDS),
    ]
    facts = {"model": "m", "definitions": "3"}
    there, other = (Profile({**facts, "corpus": name}, {}) for name in ("A", "B " * 40))
    table = format_replications(replications, there, other)
    assert [line.split("  ")[1] for line in table[2:7]] == [
        "its verb → subject (nsubj)",
        "object ← its verb, more than any other word (obj)",
        "dependent → its head (xyz)",
        "any token → [SEP]",
        "any token → many tokens",
    ]
    assert [line.split("  ")[-1] for line in table[2:7]] == [
        "holds",
        "a simple rule does as well",
        "not annotated",
        "the head does not do it",
        "holds",
    ]
    assert table[2].split()[-5:] == ["200", "0.520", "0.500", "1,234", "holds"]
    assert table[5].split()[-10:-5] == ["200", "0.520", "0.500", "1,234", "the"]
    rules = [re.split(" {2,}", line)[2] for line in table[1:7]]
    assert rules == ["rule", "below", "–", "–", "–", "–"]
    assert table[-2] == (
        "rule: how the head compares with the rule by parts of speech on the profile's corpora, "
        "by an older version, whose rule uses one part of speech."
    )
    short = "B B B B B B B B B B B B B…"
    assert table[0].endswith(short)
    assert table[-1] == (
        f"m: 2 of 5 roles of A hold on {short}. "
        "1: a simple rule does as well. 1: the head does not do it. 1: not annotated."
    )


def test_a_shipped_profile_is_named_by_its_model_unless_a_folder_is_called_so(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert replicate(Path("toy"), measured) == 0
    assert "of 11 roles of grammar hold on 1.conllu" in capsys.readouterr().out
    assert replicate(Path("../toy"), measured) == 3
    (tmp_path / "toy").mkdir()
    assert replicate(Path("toy"), measured) == 3
    assert "holds no profile" in capsys.readouterr().err


def test_a_profile_is_compared_as_it_was_measured(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = treebank(tmp_path, 2, 20)
    assert profile(other, tmp_path / "two") == 0
    assert replicate(measured, other, "--out", str(tmp_path / "a.csv")) == 0
    assert replicate(measured, tmp_path / "two", "--out", str(tmp_path / "b.csv")) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    capsys.readouterr()
    assert replicate(measured, measured) == 5
    assert "the same corpus" in capsys.readouterr().err
    assert profile(tmp_path / "two", tmp_path / "three") == 5
    assert "is a profile, not a corpus" in capsys.readouterr().err
    assert main(["search", "toy/L0H0", str(tmp_path / "two")]) == 5


def test_a_bundled_profile_is_named_by_its_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replicate", "toy", "toy"]) == 5
    assert "The profile is of the same corpus" in capsys.readouterr().err


def test_roles_are_counted_over_the_profiles_of_runs(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compare the table and the printed lines with ``mv.roles.count_in_runs``."""
    assert replicate(Path("toy"), "toy", "--runs", str(measured), "--out", str(tmp_path / "runs.csv")) == 0
    expected = mv.roles.count_in_runs([mv.load_profile("toy"), mv.load_profile("toy"), mv.load_profile(measured)])
    assert pd.read_csv(tmp_path / "runs.csv").values.tolist() == expected.values.tolist()
    *said, count = capsys.readouterr().out.splitlines()
    assert len(said) == 1 + len(expected)
    assert set(expected["runs"]) <= {1, 2, 3}
    counts = zip(expected["runs"], expected["heads"], said[1:], strict=True)
    assert all(f"{runs} of 3" in line and heads in line for runs, heads, line in counts)
    assert count == f"{(expected['runs'] == 3).sum()} of {len(expected)} roles in all runs."
    assert replicate(Path("toy"), tmp_path / "none", "--runs") == 3


def test_a_profile_replicates_itself() -> None:
    """All numbers of the second corpus equal those of the first, because the corpora are the same."""
    one = read_profile(asset_path("profiles") / "minilm" / "ewt")
    table = replicated(one.findings(), one).table
    assert {"syntax", "position", "delimiter", "broad"} == set(table["role"])
    for there, here in (("score", "score_here"), ("baseline", "baseline_here"), ("n", "n_here")):
        pd.testing.assert_series_equal(table[here], table[there], check_names=False)
    by_rule = table[table["role"] == "syntax"]
    assert (by_rule["upos_baseline_here"] == by_rule["upos_baseline"]).all()
    assert set(table["outcome"]) == {"holds"}


def test_roles_of_another_model_are_refused() -> None:
    findings = mv.load_profile("minilm").findings()
    with pytest.raises(SettingError, match="toy has no head L"):
        replicated(findings, mv.load_profile("toy"))


def test_what_cannot_be_compared_is_one_line(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = measured.parent / "1.conllu"
    empty = tmp_path / "empty"
    (tmp_path / "two.txt").write_text("Two words\n")
    assert main(["profile", str(tmp_path / "two.txt"), "--model", "toy", "--out", str(empty)]) == 0
    profile = read_profile(empty)
    dataclasses.replace(profile, tables={**profile.tables, "roles": profile.tables["roles"][:0]}).write(empty)
    capsys.readouterr()
    tries: dict[str, tuple[str | Path, ...]] = {
        "the same corpus, 1.conllu": (measured, corpus),
        "nowhere” does not exist. Give the folder": (tmp_path / "nowhere", corpus),
        "profile.json, which a study writes last, is missing": (tmp_path, corpus),
        "has no role": (empty, corpus),
        "“.xlsx” is not a table format. Use one of .csv, .json": (
            measured,
            corpus,
            "--out",
            str(tmp_path / "o.xlsx"),
        ),
    }
    for message, arguments in tries.items():
        assert main(["replicate", *map(str, arguments)]) > 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_without_a_file_a_stop_says_that_nothing_is_saved(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mha_viz.study.profiling.study", interrupted)
    other = treebank(tmp_path, 2, 5)
    assert replicate(measured, other) == 130
    assert "Stopped. Nothing was written" in capsys.readouterr().err
    assert replicate(measured, other, "--out", str(tmp_path / "o.csv")) == 130
    assert "Stopped. Nothing was written" in capsys.readouterr().err
