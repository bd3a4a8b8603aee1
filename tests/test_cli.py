"""The command line: what it prints, what it writes, and one line for every error."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_safetensors

from mha_viz import __version__
from mha_viz.cli import main, output
from mha_viz.cli.usage import suggest_head
from mha_viz.figures import files
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import progress as progress_bars
from tests import hostile
from tests.cli_runs import ROOT, assert_one_line, run

SENTENCE = "The animal didn't cross the street because it was too tired."


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["models", "--help"], ["attention", "--help"]])
def test_help_says_how(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    assert ended.value.code == 0
    assert shown.out.startswith("usage: mha-viz")
    assert ("examples:" if arguments[1:] else "first steps") in shown.out


def test_models_lists_every_row_of_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", head) == ["NAME", "LAYERS × HEADS", "D_MODEL", "MB", "WHERE", "ABOUT"]
    assert [row.split()[0] for row in rows] == [model.name for model in catalog.list_offered()]
    assert re.split(r"  +", rows[0]) == ["minilm", "6 × 12", "384", "91", "bundled", "MiniLM, a small BERT"]
    assert re.split(r"  +", rows[1]) == ["toy", "2 × 4", "64", "1", "bundled", "Toy, trained on the built-in grammar"]


def test_models_shows_what_a_restricted_server_offers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("MHA_VIZ_MODELS", f"gpt2,owner/other,{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    assert main(["models"]) == 0
    rows = [re.split(r"  +", row) for row in capsys.readouterr().out.splitlines()[1:]]
    assert rows[0][:-1] == ["gpt2", "12 × 12", "768", "548", "not downloaded"]
    assert rows[1] == ["owner/other", "?", "?", "?", "not downloaded"]
    assert rows[2][-2] == "folder"


def test_models_shows_what_is_on_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("MHA_VIZ_ACCESS", "here")
    assert main(["models"]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]] == ["minilm", "toy", "repeater"]


def test_attention_writes_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "heads.npz"
    assert main(["attention", SENTENCE, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert str(out) in shown.out
    assert "6 layers × 12 heads" in shown.out
    with np.load(out, allow_pickle=False) as file:
        assert str(file["text"]) == SENTENCE
        assert str(file["unit"]) == "pieces"
        tokens = file["tokens"].tolist()
        # Head L3H1 finds the antecedent: measured once with plain transformers.
        assert file["weights"][3, 1, tokens.index("it"), tokens.index("animal")] == pytest.approx(0.68, abs=0.01)


def test_words_pair_and_without_special(tmp_path: Path) -> None:
    out = tmp_path / "heads.json"
    arguments = ["attention", "Who didn't sit?", "--pair", "The cat.", "--words", "--without-special"]
    assert main([*arguments, "--out", str(out)]) == 0
    tree = json.loads(out.read_text("utf-8"))
    assert (tree["unit"], tree["pair"]) == ("words", "The cat.")
    assert [t["text"] for t in tree["tokens"]] == ["Who", "didn't", "sit", "?", "The", "cat", "."]
    assert [t["segment"] for t in tree["tokens"]] == [0, 0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(np.array(tree["weights_by_words_rescaled"]).sum(axis=3), 1, atol=1e-3)
    assert 0 < np.array(tree["hidden"]).mean() < 1


@pytest.mark.app
def test_a_hyphen_reads_stdin(tmp_path: Path) -> None:
    out = tmp_path / "heads.csv"
    done = run("attention", "-", "--words", "--out", str(out), given="Café cat\r\n".encode())
    assert (done.returncode, done.stderr) == (0, b"")
    rows = list(csv.DictReader(io.StringIO(out.read_text("utf-8"))))
    assert [row["key_token"] for row in rows[:4]] == ["[CLS]", "Café", "cat", "[SEP]"]
    assert len(rows) == 6 * 12 * 4 * 4


def test_a_text_that_is_too_long_is_cut_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "heads.safetensors"
    assert main(["attention", hostile.TEXTS["two thousand words"], "--out", str(out)]) == 0
    assert_one_line(capsys.readouterr().err, "512")


USAGE, NOT_FOUND, NETWORK, BAD_INPUT = 2, 3, 4, 5


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mha-viz {__version__}\n"


@pytest.mark.parametrize(
    ("job", "options"),
    [
        ("toy train", {"--kind", "--help", "--seed", "--out", "--steps"}),
        ("toy evaluate", {"--help", "--seed", "--out", "--format", "--sentences", "--model"}),
        ("toy history", {"--kind", "--folder", "--help", "--seed", "--out", "--format", "--sentences"}),
        ("toy effects", {"--help", "--seed", "--out", "--format", "--sentences"}),
    ],
)
def test_each_job_has_a_help_of_its_own(job: str, options: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*job.split(), "--help"])
    shown = capsys.readouterr().out
    assert set(re.findall(r"^ +(?:-\w(?: \w+)?, )?(--[\w-]+)", shown, re.MULTILINE)) == options
    assert f"mha-viz {job} " in shown.partition("examples:")[2]


def test_models_as_csv_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert main(["models", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [one["name"] for one in listed] == [row["name"] for row in rows] == [m.name for m in catalog.list_offered()]
    expected = {"name": "minilm", "layers": 6, "heads": 12, "d_model": 384, "megabytes": 91, "where": "bundled"}
    expected |= {"about": "MiniLM, a small BERT"}
    assert listed[0] == expected
    assert rows[0] == {name: str(value) for name, value in expected.items()}


@pytest.mark.parametrize("suffix", ["csv", "json", "npz", "safetensors"])
def test_a_reading_on_stdout_is_the_file(suffix: str, tmp_path: Path, capfdbinary: Any) -> None:
    arguments = ["attention", "The cat sat.", "--model", "toy"]
    assert main([*arguments, "--out", str(tmp_path / f"a.{suffix}")]) == 0
    assert b"2 layers" in capfdbinary.readouterr().out
    assert main([*arguments, "--out", "-", "--format", suffix.upper()]) == 0
    shown = capfdbinary.readouterr()
    assert shown.err == b""
    if suffix == "npz":  # a zip file in a pipe cannot state its sizes in advance
        with np.load(io.BytesIO(shown.out)) as piped, np.load(tmp_path / "a.npz") as saved:
            assert all(np.array_equal(piped[name], saved[name]) for name in saved)
    elif suffix == "safetensors":  # the order of its metadata is not defined
        read = [load_safetensors(content) for content in (shown.out, (tmp_path / "a.safetensors").read_bytes())]
        assert all(np.array_equal(read[0][name], read[1][name]) for name in ("weights", "hidden"))
    else:
        assert shown.out == (tmp_path / f"a.{suffix}").read_bytes()


def test_a_file_without_a_suffix_takes_the_format(tmp_path: Path) -> None:
    assert main(["attention", "The cat sat.", "--model", "toy", "--out", str(tmp_path / "a"), "--format", "csv"]) == 0
    assert (tmp_path / "a").read_text().startswith("layer,head,")


def test_the_scores_of_the_toy_model_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["toy", "evaluate", "--sentences", "3", "--out", "-", "--format"]
    assert main([*arguments, "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main([*arguments, "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(rows) == len(listed) == 24
    assert [float(row["accuracy"] or "nan") for row in rows] == pytest.approx(
        [math.nan if one["accuracy"] is None else one["accuracy"] for one in listed], abs=1e-5, nan_ok=True
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_binary_data_is_refused_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["attention", "x", "--out", "-", "--format", "npz"]) == USAGE
    os.close(reader)
    assert_one_line(capsys.readouterr().err, "A .npz file is binary", "--out - > file.npz")


@pytest.mark.app
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a disk that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["replicate", "minilm", str(asset_path("profiles") / "minilm" / "gum"), "--out", "-", "--format", "csv"],
        ["models"],
        ["completion", "bash"],  # more than a buffer holds
    ],
)
def test_stdout_on_a_full_disk_is_one_line(arguments: list[str]) -> None:
    """A new process, because what could not be written is tried again when it ends."""
    command = [sys.executable, "-m", "mha_viz.cli", *arguments]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == USAGE
    assert b" cannot be written: no space left" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_the_size_of_a_large_table_is_announced(
    suffix: str, minilm: Encoder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attention = minilm.encode(" ".join(["The animal didn't cross the street because it was too tired."] * 6))
    size = len(files.to_bytes(attention, suffix))
    assert output.estimate_text_size(attention, suffix) == pytest.approx(size, rel=0.2)
    to = output.Destination(Path(f"a{suffix}"), suffix)
    output.announce_size(attention, to)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(output, "LARGE_BYTES", size // 2)
    output.announce_size(attention, to)
    assert_one_line(capsys.readouterr().err, f"a{suffix} will hold {attention.weights.size:,} weights", ".npz holds")
    output.announce_size(attention, output.Destination(Path("a.npz"), ".npz"))
    assert capsys.readouterr().err == ""


def test_a_log_file_gets_a_line_of_progress_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 100, 2))  # seconds
    monkeypatch.setattr(progress_bars, "monotonic", lambda: next(clock))
    with progress_bars.bar("of the text") as show:
        for done in range(0, 2000, 200):
            show(done, 2000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "mha-viz: 20% of the text"
    assert 2 <= len(lines) <= 5
    assert all(re.fullmatch(r"mha-viz: \d+% of the text", line) for line in lines)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("4-2", "L3H1, which papers write as 4-2"),
        ("3.1", "L3H1"),
        ("layer 3 head 1", "L3H1"),
        ("L3", ""),
        ("0-1", "L0H1"),
    ],
)
def test_which_head_was_meant(name: str, meant: str) -> None:
    assert suggest_head(name) == (f"Did you mean {meant}?" if meant else "")


@pytest.mark.app
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_knows_every_command_option_and_model(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("serve", "figure", "compare", "columns", "history", "minilm", "distilbert-base-uncased", "completion"):
        assert word in script, word
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


BASH = """
source /dev/stdin
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); FUNCTION "$1" "${!#}" "${@:$#-1:1}"
echo "${COMPREPLY[@]}"; }
complete_line mha-viz fi
complete_line mha-viz figure com
complete_line mha-viz figure compare --col
complete_line mha-viz attention --model distil
complete_line mha-viz toy train --s
"""


@pytest.mark.app
@pytest.mark.skipif(shutil.which("bash") is None and "CI" not in os.environ, reason="needs bash, which CI must have")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    name = re.findall(r"complete .*-F (\w+)", script)[-1]
    done = subprocess.run(
        ["bash", "-c", BASH.replace("FUNCTION", name)], input=script, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [
        ["figure"],
        ["compare"],
        ["--columns"],
        ["distilbert-base-uncased"],
        ["--seed", "--steps"],
    ]


def test_json_tables_keep_the_digits_of_small_numbers(tmp_path: Path) -> None:
    rows = pd.DataFrame({"n": [1, 2], "q": [3e-12, 0.123456789], "p": [math.nan, math.inf], "name": ["a", None]})
    output.Destination(tmp_path / "rows.json", ".json").write_table(rows)
    assert json.loads((tmp_path / "rows.json").read_text("utf-8"), parse_constant=pytest.fail) == [
        {"n": 1, "q": 3e-12, "p": None, "name": "a"},
        {"n": 2, "q": 0.123456789, "p": None, "name": None},
    ]
