"""``mha-viz profile``: corpora of every kind through the command, and one line for every error."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from mha_viz.analysis.profile import read_profile
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.limits import MAX_BYTES
from mha_viz.models.reading import loading, properties
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import clean
from tests import hostile

GOOD = (
    "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n"
    "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)
ONE_WORD = "1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
CIRCLE = "1\ta\ta\tX\t_\t_\t2\tx\t_\t_\n2\tb\tb\tX\t_\t_\t1\tx\t_\t_\n\n"
OPEN = GOOD.replace("bark\tVERB\t_\t_\t0\troot\t_\t_", "bark\tVERB\t_\t_\t0\troot\t_\tEntity=(1-person")


TOY = ("--model", "toy")  # measured in a fifth of the time; the default model is minilm
loaded, untrained = cache(loading.load), cache(Encoder.untrained)


@pytest.fixture(autouse=True)
def _each_model_once(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every call of the command would load the model and make its untrained copy again."""
    monkeypatch.setattr(loading, "load", lambda model, *_, **__: minilm if model == "minilm" else loaded(model))
    monkeypatch.setattr(Encoder, "untrained", lambda self, seed=0: untrained(self))


def profile(corpus: str | Path, out: Path, *more: str) -> int:
    return main(["profile", str(corpus), "--out", str(out), *more])


def given(folder: Path, content: str | bytes, name: str = "c.conllu") -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    return path


def test_a_treebank_becomes_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(given(tmp_path, GOOD * 4), tmp_path / "out", "--name", "Dogs") == 0
    printed = capsys.readouterr()
    assert all(" of the text" in line for line in printed.err.splitlines())  # progress, where it takes seconds
    assert "minilm on Dogs (4 sentences, 12 words, 20 pieces)" in printed.out
    written = read_profile(tmp_path / "out")
    assert written.corpus == "Dogs"
    assert {"syntax", "syntax_baselines", "position", "delimiter", "entropy", "uas", "distance", "roles"} <= set(
        written.tables
    )
    assert not list((tmp_path / "out").glob(".*"))  # nothing incomplete is left


def test_the_size_of_a_batch_changes_nothing_but_the_rounding_of_sums(tmp_path: Path) -> None:
    corpus = given(tmp_path, format_conllu(grammar.corpus(12, seed=3).sentences))
    for batch in ("1", "100000"):
        assert profile(corpus, tmp_path / batch, "--batch", batch, *TOY) == 0
    for path in sorted((tmp_path / "1").rglob("*.csv")):
        one, many = (pd.read_csv(tmp_path / batch / path.relative_to(tmp_path / "1")) for batch in ("1", "100000"))
        pd.testing.assert_frame_equal(one, many, rtol=1e-8, atol=1e-12, obj=path.name)


@pytest.mark.parametrize(
    ("content", "tables"),
    [
        (
            "The cat sat.\nIt slept.\n",
            {"position", "delimiter", "entropy", "distance", "candidates", "roles", "evidence", "copying"},
        ),
        (
            "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
            "1\tAnn met Bea and she left.\tshe\t16\tAnn\t0\tTRUE\tBea\t8\tFALSE\tx\n",
            {"gap", "coreference_baselines", "coreference_chosen", "candidates", "roles", "copying"},
        ),
    ],
    ids=["plain", "gap"],
)
def test_corpora_of_other_kinds(tmp_path: Path, content: str, tables: set[str]) -> None:
    assert profile(given(tmp_path, content, "c.txt"), tmp_path / "out", *TOY) == 0
    assert set(read_profile(tmp_path / "out").tables) == tables


def test_a_sentence_that_cannot_be_read_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profile(given(tmp_path, GOOD + "1\tDogs\tdog\n"), tmp_path / "out") == 0
    assert "left out: line 5: 3 columns. The sentence is left out." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "c.conllu is empty"),
        (ONE_WORD.replace("_\t_\n\n", "_\tEntity=" + "a" * 40_000), "line 1: 40,007 characters without a break"),
        (ONE_WORD.strip() + ("\n" + ONE_WORD.strip()) * 1_000, "line 1: a sentence of 1,001 words; at most 1,000"),
        ("\n\n  \n", "c.conllu is empty"),
        (b"\xff\xfe\x00\x01", "line 1: not UTF-8"),
        ("1\tDogs\tdog\n", "line 1: 3 columns"),
        (GOOD.replace("2\tnsubj", "two\tnsubj"), "line 1:"),
        ("# sent_id = 1\n\n", "contains no sentence"),
        ("# nothing else\n", "contains no sentence"),
        ("1 Dogs dog NOUN _ _ 2 nsubj _ _\n2 bark bark VERB _ _ 0 root _ _\n", "line 1:"),  # spaces in place of tabs
    ],
    ids=[
        "nothing",
        "a long cell",
        "a long sentence",
        "blanks",
        "bytes",
        "columns",
        "head",
        "comments",
        "a comment",
        "no tabs",
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, message: str
) -> None:
    assert profile(given(tmp_path, content), tmp_path / "out") == 5
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list((tmp_path / "out").glob("*.csv"))


LONG_WORD = "1\t" + "word " * 600 + "\tx\tX\t_\t_\t0\troot\t_\t_\n\n"
DROPPED_WORD = "1\t\u200b\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\tb\tX\t_\t_\t1\tx\t_\t_\n\n"


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (
            GOOD + CIRCLE + GOOD + LONG_WORD + DROPPED_WORD,
            [
                "line 12: 602 tokens; minilm reads 512",
                "line 14: The tokenizer of minilm keeps nothing",
                "line 5: the heads form a cycle",
            ],
        ),
        (OPEN + GOOD, ["never closes"]),
        (GOOD + ONE_WORD, []),
    ],
    ids=["sentences", "bracket", "nothing"],
)
def test_what_is_left_out_is_said_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, messages: list[str]
) -> None:
    model = () if len(messages) > 1 else TOY
    assert profile(given(tmp_path, content), tmp_path / "out", *model) == 0
    errors = [line for line in capsys.readouterr().err.splitlines() if " of the text" not in line]  # progress, if slow
    assert len(errors) == len(messages)
    assert all(message in error for message, error in zip(messages, errors, strict=True)), errors
    assert read_profile(tmp_path / "out").facts["left_out"] == len(messages)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.conllu"
    with path.open("wb") as file:
        file.truncate(200_000_000)  # takes no room on the disk
    assert profile(path, tmp_path / "out") == 5
    assert f"large.conllu has 200 MB; at most {MAX_BYTES // 10**6} are read." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.conllu", "a\0b", "no/such/file"])
def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert profile(name, tmp_path / "out") == (3 if name in ("missing.conllu", "no/such/file") else 5)
    assert "cannot be read" in capsys.readouterr().err


def test_a_folder_without_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(tmp_path, tmp_path / "out") == 3
    assert f"{tmp_path} names no file that can be read." in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = given(tmp_path, "a file", "file")
    assert profile(given(tmp_path, GOOD), blocked / "out") == 2
    assert "cannot be created" in capsys.readouterr().err


@pytest.mark.parametrize("batch", ["0", "-1", "many", "1e3", "９"])
def test_a_size_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], batch: str) -> None:
    assert profile("grammar", tmp_path, "--batch", batch) == 2
    assert "expected a number of tokens" in capsys.readouterr().err


def test_a_study_that_is_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = given(tmp_path, format_conllu(grammar.corpus(30, seed=5).sentences))
    whole = Encoder.batch
    passes: list[int] = []

    def counted(self: Encoder, sentences: Any) -> Any:
        if stop and len(passes) == 5:
            raise KeyboardInterrupt
        done = whole(self, sentences)
        passes.append(len(sentences))
        return done

    monkeypatch.setattr(Encoder, "batch", counted)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # one worker: passes come one after the other
    stop = False
    assert profile(corpus, tmp_path / "whole", *TOY) == 0
    all_passes, stop = len(passes), True
    passes.clear()
    assert profile(corpus, tmp_path / "out", *TOY) == 130
    assert not (tmp_path / "out" / "profile.json").exists()
    stop = False
    passes.clear()
    assert profile(corpus, tmp_path / "out", *TOY) == 0
    assert len(passes) == all_passes - 5
    for path in sorted((tmp_path / "whole").rglob("*.csv")):
        assert path.read_text() == (tmp_path / "out" / path.relative_to(tmp_path / "whole")).read_text(), path.name


def test_hostile_sentences_are_measured_like_any(tmp_path: Path) -> None:
    lines = [" ".join(clean(text).split()) for text in hostile.TEXTS.values() if text.strip() and len(text) < 1000]
    name = ("--name", "<script>\r\n=1+1")
    assert profile(given(tmp_path, "\n".join(lines), "c.txt"), tmp_path / "out", *name, *TOY) == 0
    facts = json.loads((tmp_path / "out" / "profile.json").read_text("utf-8"))
    assert facts["counts"]["sentences"] + facts["left_out"] >= len([line for line in lines if line])


def test_text_of_which_the_tokenizer_keeps_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(given(tmp_path, "\u200b\u200b\n", "c.txt"), tmp_path / "out") == 5
    assert "Nothing in c.txt can be read" in capsys.readouterr().err


def test_stopped_before_anything_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("mha_viz.study.profiling.study", interrupted)
    assert profile(given(tmp_path, GOOD), tmp_path / "out") == 130
    assert "Stopped. Nothing was written; run the same command again to start over." in capsys.readouterr().err


def test_a_folder_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(given(tmp_path, GOOD)), "--out", ""]) == 2
    assert "the folder has no name" in capsys.readouterr().err


def test_the_built_in_corpus_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = grammar.corpus(5)
    monkeypatch.setattr(grammar, "corpus", lambda: small)
    assert profile("grammar", tmp_path, *TOY) == 0
    assert read_profile(tmp_path).corpus == "grammar"


def test_a_gpu_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        assert properties.parse_device("cuda").type == "cuda"
    else:
        with pytest.raises(properties.SettingError, match="No GPU was found"):
            properties.parse_device("cuda")


@pytest.mark.parametrize(
    ("corpus", "cluster", "words"),
    [
        ("nofile.conllu", "tcp://127.0.0.1:1", "does not exist"),
        ("grammar", "tcp://127.0.0.1:1", "not in a file"),
        ("nofile.conllu", "banana", "does not exist"),
        (__file__, "banana", "“banana” is not the address of a scheduler. Write it as tcp://HOST:PORT."),
        (__file__, "tcp://host:99:1", "is not the address of a scheduler"),
    ],
)
def test_what_a_cluster_cannot_use_is_refused_before_one_is_asked(
    corpus: str, cluster: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["--model", "toy", "--cluster", cluster, "--out", str(tmp_path / "out")]
    assert main(["profile", corpus, *options]) in (2, 3, 5)
    assert words in capsys.readouterr().err
