"""``mha-viz replicate`` and ``mha-viz profile --and``: what two corpora establish, and whether it holds on a third."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from mha_viz.analysis.profile import read_profile
from mha_viz.analysis.replication import HEADING, OUTCOMES
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import as_conllu
from mha_viz.models import encoder
from mha_viz.models.encoder import Encoder


@pytest.fixture(autouse=True)
def _one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = encoder.load("toy")
    untrained = toy.untrained()
    monkeypatch.setattr(encoder, "load", lambda name, device="cpu": toy)
    monkeypatch.setattr(Encoder, "untrained", lambda self, seed=0: untrained)


def treebank(folder: Path, seed: int, sentences: int = 60) -> Path:
    path = folder / f"{seed}.conllu"
    path.write_text(as_conllu(grammar.corpus(sentences, seed).sentences), "utf-8")
    return path


def profile(corpus: Path, out: Path, *more: str) -> int:
    return main(["profile", str(corpus), "--model", "toy", "--out", str(out), *more])


def replicate(folder: Path, corpus: str | Path, *more: str) -> int:
    return main(["replicate", str(folder), str(corpus), *more])


def test_two_corpora_establish_roles_that_hold_on_a_third(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert profile(treebank(tmp_path, 1), one) == 0
    assert {finding.status for finding in read_profile(one).findings()} == {"suggested"}
    assert profile(treebank(tmp_path, 2), other, "--and", str(one)) == 0
    both = [read_profile(folder).findings() for folder in (one, other)]
    assert [(f.head, f.detail) for f in both[0]] == [(f.head, f.detail) for f in both[1]]
    assert {f.status for f in both[0]} == {"established"}
    assert {f.corpora for f in both[0]} == {("1.conllu", "2.conllu")}
    capsys.readouterr()

    out = tmp_path / "outcomes.csv"
    assert replicate(one, treebank(tmp_path, 3), "--out", str(out)) == 0
    said = capsys.readouterr().out
    assert "toy: roles of 1.conllu (there), on 3.conllu (here)" in said
    assert "syntax: nsubj dep_to_head" in said
    table = pd.read_csv(out)
    assert list(table.columns) == list(HEADING)
    assert len(table) == len(both[0])
    assert set(table["outcome"]) <= set(OUTCOMES)
    assert set(table.query("role == 'syntax'")["outcome"]) == {"holds"}
    assert list(tmp_path.glob(".*")) == [], "the sums are gone"


def test_a_table_as_json(tmp_path: Path) -> None:
    assert profile(treebank(tmp_path, 1), tmp_path / "one") == 0
    assert replicate(tmp_path / "one", treebank(tmp_path, 2, 5), "--out", str(tmp_path / "o.json")) == 0
    lines = json.loads((tmp_path / "o.json").read_text())
    assert set(lines[0]) == set(HEADING)
    assert {"fewer than 100 cases here"} <= {line["outcome"] for line in lines}


def test_what_cannot_be_compared_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = treebank(tmp_path, 1)
    assert profile(corpus, tmp_path / "one") == 0
    empty = tmp_path / "empty"
    (tmp_path / "two.txt").write_text("Two words\n")
    assert main(["profile", str(tmp_path / "two.txt"), "--model", "toy", "--out", str(empty)]) == 0
    (empty / "roles.csv").write_text((empty / "roles.csv").read_text().split("\n")[0] + "\n")
    capsys.readouterr()
    tries: dict[str, tuple[str | Path, ...]] = {
        "the same corpus, 1.conllu": (tmp_path / "one", corpus),
        "holds no profile that can be read": (tmp_path / "nowhere", corpus),
        "has no role": (empty, corpus),
        "neither CSV nor JSON": (tmp_path / "one", corpus, "--out", str(tmp_path / "o.xlsx")),
    }
    for said, arguments in tries.items():
        assert main(["replicate", *map(str, arguments)]) > 1
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_without_a_file_a_stop_says_that_nothing_is_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert profile(treebank(tmp_path, 1), tmp_path / "one") == 0
    monkeypatch.setattr("mha_viz.study.run.study", interrupted)
    assert replicate(tmp_path / "one", treebank(tmp_path, 2)) == 130
    assert "Stopped. Nothing is saved without --out." in capsys.readouterr().err
    assert replicate(tmp_path / "one", treebank(tmp_path, 2), "--out", str(tmp_path / "o.csv")) == 130
    assert "Stopped. Nothing was done yet." in capsys.readouterr().err
