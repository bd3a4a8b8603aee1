"""The command line: what it prints, what it writes, and one line for whatever goes wrong."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors

from mha_viz import __version__, errors, exports
from mha_viz.cli import exit_codes, main, output, terminal
from mha_viz.cli.suggestions import meant_head
from mha_viz.cli.terminal import downloading
from mha_viz.models import catalog
from mha_viz.models.encoder import Encoder
from tests import hostile
from tests.fake_hub import FakeHub, Repository, tiny_bert_files

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = "The animal didn't cross the street because it was too tired."


def run(
    *arguments: str, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mha_viz.cli", *arguments]
    place = {**os.environ, **(environment or {})}
    return subprocess.run(command, input=given, cwd=ROOT, capture_output=True, check=False, env=place)


def assert_one_line(stderr: str, *words: str) -> None:
    stderr = re.sub(r"^mha-viz: Downloading .*\n", "", stderr, flags=re.MULTILINE)  # on a slow machine
    assert stderr.startswith("mha-viz: ")
    assert stderr.count("\n") == 1
    assert stderr.endswith("\n")
    assert "Traceback" not in stderr
    assert all(word in stderr for word in words), stderr


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["models", "--help"], ["attention", "--help"]])
def test_help_says_how(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    assert ended.value.code == 0
    assert shown.out.startswith("usage: mha-viz")
    assert "examples:" in shown.out


def test_models_lists_every_row_of_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", head) == ["NAME", "LAYERS × HEADS", "D_MODEL", "MB", "WHERE", "ABOUT"]
    assert [row.split()[0] for row in rows] == [model.name for model in catalog.offered()]
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
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]] == ["minilm", "toy"]


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
    np.testing.assert_allclose(np.array(tree["weights"]).sum(axis=3), 1, atol=1e-3)
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
ATTENTION = ["attention", "x", "--out", "a.npz"]
STEPS = "0, 50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000, 10000"
REFUSED: list[tuple[int, list[str], list[str]]] = [
    (USAGE, [], ["No command was given. Choose from serve, models,", "See mha-viz --help."]),
    (USAGE, ["figure"], ["No kind was given. Choose from heatmap,", "See mha-viz figure --help."]),
    (USAGE, ["attention"], ["TEXT and --out are missing. See mha-viz attention --help."]),
    (USAGE, ["paint"], ["“paint” is not a command. Choose from", "attention"]),
    (USAGE, ["atention", "x"], ["Did you mean attention?"]),
    (USAGE, ["--verison"], ["Did you mean --version?"]),
    (USAGE, ["-v"], ["no option -v", "Did you mean -V?"]),
    (USAGE, ["figure", "gird", "x"], ["“gird” is not a kind. Did you mean grid?"]),
    (USAGE, ["toy", "trian"], ["“trian” is not a job. Did you mean train?"]),
    (USAGE, ["completion", "fisch"], ["Did you mean fish?", "bash, zsh, fish"]),
    (USAGE, ["models", "--format", "cvs"], ["Did you mean csv?", "table, csv, json"]),
    (USAGE, ["attention", "x"], ["--out", "mha-viz attention --help"]),
    (USAGE, ["attention", "x", "--ot", "a.npz"], ["attention has no option --ot. Did you mean --out?"]),
    (USAGE, ["attention", "x", "--head", "L3H1"], ["--head does not go with attention", "publish"]),
    (USAGE, ["models", "--words"], ["--words does not go with models. It goes with attention."]),
    (USAGE, ["attention", "x", "--out", "heads.xls"], [".xls", ".npz"]),
    (USAGE, ["attention", "x", "--out", "heads.jsno"], ["Did you mean .json?"]),
    (USAGE, ["attention", "x", "--out", "heads"], ["suffix", ".npz"]),
    (USAGE, [*ATTENTION, "--format", "csv"], ["--format csv contradicts the suffix .npz. Leave one of them out."]),
    (USAGE, ["attention", "x", "--out", "-"], ["stdout has no suffix", "--format csv"]),
    (USAGE, ["attention", "x", "--out", "-", "--format", "svg"], ["“.svg” is not", ".csv"]),
    (USAGE, ["attention", "x", "--out", "no/such/folder/a.npz"], ["no/such/folder/a.npz", "no such file"]),
    (USAGE, ["attention", "x", "--out", "a" * 300 + ".npz"], ["cannot be written", "too long"]),
    (USAGE, ["attention", "x", "--out", "..", "--format", "npz"], ["it is a folder"]),
    (USAGE, ["attention", "x", "--layers", "3", "--out", "a.npz"], ["--layers"]),
    (USAGE, ["toy", "evaluate", "--sentences", "0", "--out", "a.csv"], ["0 sentences decide nothing"]),
    (USAGE, ["toy", "evaluate", "--out", "a.npz"], ["“.npz” is not a format of tables. Use one of .csv, .json."]),
    (USAGE, ["serve", "--port", "0"], ["“0”", "65535"]),
    (USAGE, ["serve", "--port", "99999999999"], ["65535"]),
    (USAGE, ["serve", "--port", "٣"], ["“٣”"]),
    (USAGE, ["serve", "--host", "nowhere.invalid"], ["nowhere.invalid"]),
    (USAGE, ["serve", "--host", "a" * 300], ["a" * 60]),
    (NOT_FOUND, [*ATTENTION, "--model", "no such"], ["no such"]),
    (NOT_FOUND, [*ATTENTION, "--model", "../../etc/passwd"], ["../../etc/passwd"]),
    (NOT_FOUND, [*ATTENTION, "--model", "mini lm"], ["“mini lm” is not a model. Did you mean minilm?"]),
    (NOT_FOUND, [*ATTENTION, "--model", "toy@7"], ["“toy@7” does not exist. Give toy@", STEPS]),
    (NOT_FOUND, ["toy", "evaluate", "--model", "toy@x", "--out", "a.csv"], ["“toy@x” does not exist.", STEPS]),
    (NOT_FOUND, ["profile", "gramar", "--out", "d"], ["does not exist. Did you mean grammar?"]),
    (BAD_INPUT, ["attention", "", "--out", "a.npz"], ["Nothing was typed."]),
    (BAD_INPUT, ["attention", "  \n ", "--out", "a.npz"], ["Nothing was typed."]),
]


@pytest.mark.parametrize(("code", "arguments", "words"), REFUSED, ids=[" ".join(a)[:60] for _, a, _ in REFUSED])
def test_what_is_refused_before_a_model_is_loaded_is_one_line_with_its_exit_code(
    code: int,
    arguments: list[str],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mha_viz.models.encoder.load", lambda *_: pytest.fail("the model was loaded"))
    assert main(arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert_one_line(shown.err, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SettingError, USAGE),
        (errors.ExportError, USAGE),
        (errors.UnknownModel, NOT_FOUND),
        (errors.ModelNotAllowed, NOT_FOUND),
        (errors.ModelMissing, NOT_FOUND),
        (errors.UnknownHead, NOT_FOUND),
        (errors.CorpusMissing, NOT_FOUND),
        (errors.ModelUnreachable, NETWORK),
        (errors.EmptyText, BAD_INPUT),
        (errors.ShapeError, BAD_INPUT),
        (errors.ModelBroken, BAD_INPUT),
        (errors.ModelUnsupported, BAD_INPUT),
        (errors.CorpusError, BAD_INPUT),
        (errors.OpenError, BAD_INPUT),
        (errors.Cancelled, 130),
        (errors.Fault, 1),
    ],
)
def test_each_error_has_its_exit_code(
    error: type[errors.MhaVizError], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise error("It happened.", "Do this.")

    monkeypatch.setattr("mha_viz.cli.listing.run", failing)
    assert main(["models"]) == code
    assert capsys.readouterr().err == "mha-viz: It happened. Do this.\n"


def test_the_table_of_exit_codes_is_in_the_help_and_in_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown, readme = capsys.readouterr().out, (ROOT / "README.md").read_text("utf-8")
    for code, meaning in exit_codes.MEANINGS.items():
        assert re.search(rf"^  {code} +{re.escape(meaning)}$", shown, re.MULTILINE)
        assert f"| {code} | {meaning} |" in readme


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mha-viz {__version__}\n"


@pytest.mark.parametrize(
    ("job", "options"),
    [
        ("toy train", {"--help", "--seed", "--out", "--steps"}),
        ("toy evaluate", {"--help", "--seed", "--out", "--format", "--sentences", "--model"}),
        ("toy history", {"--help", "--seed", "--out", "--format", "--sentences"}),
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
    assert [one["name"] for one in listed] == [row["name"] for row in rows] == [m.name for m in catalog.offered()]
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
    if suffix == "npz":  # a zip file in a pipe cannot state its sizes first
        pairs = (np.load(io.BytesIO(shown.out)), np.load(tmp_path / "a.npz"))
        assert all(np.array_equal(pairs[0][name], pairs[1][name]) for name in pairs[1])
    elif suffix == "safetensors":  # the order of its metadata is left open
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
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_stdout_on_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "mha_viz.cli", "attention", "x", "--model", "toy", "--out", "-", "--format", "csv"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == USAGE
    assert b"stdout cannot be written: no space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_the_size_of_a_large_table_is_announced(
    suffix: str, minilm: Encoder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attention = minilm.encode(" ".join(["The animal didn't cross the street because it was too tired."] * 6))
    size = len(exports.to_bytes(attention, suffix))
    assert output.text_size(attention, suffix) == pytest.approx(size, rel=0.2)
    to = output.Destination(Path(f"a{suffix}"), suffix)
    output.announce(attention, to)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(output, "LARGE_BYTES", size // 2)
    output.announce(attention, to)
    assert_one_line(capsys.readouterr().err, f"a{suffix} will hold {attention.weights.size:,} weights", ".npz holds")
    output.announce(attention, output.Destination(Path("a.npz"), ".npz"))
    assert capsys.readouterr().err == ""


def test_a_log_file_gets_a_line_of_progress_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 100, 2))  # seconds
    monkeypatch.setattr(terminal, "monotonic", lambda: next(clock))
    with terminal.bar("of the text") as show:
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
    assert meant_head(name) == (f"Did you mean {meant}?" if meant else "")


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


@pytest.mark.parametrize("name", hostile.MODEL_IDS)
def test_a_hostile_model_name_is_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # discard: nothing listens
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert main(["attention", "x", f"--model={hostile.MODEL_IDS[name]}", "--out", str(tmp_path / "a.npz")]) in (
        NOT_FOUND,
        NETWORK,
    )
    assert_one_line(capsys.readouterr().err)
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.app
def test_a_hub_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(tmp_path)}
    done = run("attention", "x", "--model", "gpt2", "--out", str(tmp_path / "a.npz"), environment=hub)
    assert done.returncode == NETWORK
    assert_one_line(done.stderr.decode(), "gpt2", "127.0.0.1:9")


def test_a_name_of_the_hub_that_is_nearly_one_of_ours_is_asked_about(
    no_hub: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", "x", "--model", "bert-base-uncase", "--out", str(tmp_path / "a.npz")]) == NETWORK
    assert_one_line(capsys.readouterr().err, "Did you mean bert-base-uncased?")


ON_THE_HUB: dict[str, tuple[int, Callable[[], Repository | None], str]] = {
    "unknown": (NOT_FOUND, lambda: None, "The Hub has no public model “someone/tiny”."),
    "private": (NOT_FOUND, lambda: Repository(tiny_bert_files(), private=True), "private ones cannot be read"),
    "busy": (NETWORK, lambda: Repository(tiny_bert_files(), status=429), "Try again in some minutes."),
    "failing": (NETWORK, lambda: Repository(tiny_bert_files(), status=500), "HTTP status 500"),
    "cut": (NETWORK, lambda: Repository(tiny_bert_files(), cut=True), "stopped answering"),
    "gated": (BAD_INPUT, lambda: Repository(tiny_bert_files(), gated="manual"), "Choose an open model"),
    "foreign": (BAD_INPUT, lambda: Repository({"config.json": b'{"model_type": "x"}'}), "someone/tiny"),
}


@pytest.mark.parametrize("case", ON_THE_HUB)
def test_a_script_can_tell_what_the_hub_answered(
    case: str, hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, offered, words = ON_THE_HUB[case]
    if (repository := offered()) is not None:
        hub.add("someone/tiny", repository)
    out = tmp_path / "a.npz"
    capsys.readouterr()  # what transformers prints while it writes the tiny model
    assert main(["attention", "x", "--model", "someone/tiny", "--out", str(out)]) == code
    assert_one_line(capsys.readouterr().err, words)
    assert not out.exists()


def test_a_download_that_is_stopped(
    hub: FakeHub, hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    hub.add("someone/tiny", Repository(tiny_bert_files()))
    monkeypatch.setattr("mha_viz.cli.models.downloading", lambda name: nullcontext(stopped))
    assert main(["attention", "x", "--model", "someone/tiny", "--out", str(tmp_path / "a.npz")]) == 130
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.glob("a.npz"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{", "config.json"),
        ("config.json", b'{"model_type": "x"}', "“x”"),
        ("model.safetensors", b"\x00" * 20, "safetensors"),
    ],
    ids=["no JSON", "another family", "no weights"],
)
def test_a_folder_that_holds_no_good_model(
    name: str, content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for file, body in tiny_bert_files().items():
        (folder / file).write_bytes(body)
    (folder / name).write_bytes(content)
    capsys.readouterr()  # what transformers prints while it writes the tiny model
    assert main(["attention", "x", "--model", str(folder), "--out", str(tmp_path / "a.npz")]) == BAD_INPUT
    assert_one_line(capsys.readouterr().err, words)


@pytest.mark.app
def test_an_endless_stdin_is_refused(tmp_path: Path) -> None:
    done = run("attention", "-", "--out", str(tmp_path / "a.npz"), given=b"a " * 8_000_001)
    assert done.returncode == BAD_INPUT
    assert_one_line(done.stderr.decode(), "stdin", "16 MB")


def test_closed_streams_are_no_fault(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdin", None)
        assert main(["attention", "-", "--out", "a.npz"]) == BAD_INPUT
        closed.setattr(sys, "stdout", None)
        assert main(["models"]) == 0
    assert_one_line(capsys.readouterr().err, "stdin is closed")


def test_a_fault_of_ours_is_one_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("text without bytes below it: _stdin() cannot know this"))
    assert main(["attention", "-", "--out", "a.npz"]) == 1
    assert_one_line(capsys.readouterr().err, "AttributeError", "python -X dev")


@pytest.mark.app
def test_bytes_that_are_not_text_are_refused_with_their_place(tmp_path: Path) -> None:
    done = run("attention", "-", "--out", str(tmp_path / "a.json"), given=b"caf\xe9 cat")
    assert done.returncode == BAD_INPUT
    assert b"stdin is not UTF-8 text: byte 3 is 0xE9." in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.app
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
def test_a_command_that_is_told_to_end_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, time; from pathlib import Path\n"
        "from mha_viz import cli; from mha_viz.files import whole_file\n"
        "def endless(args):\n"
        "    with whole_file(Path(sys.argv[1]) / 'a.csv') as file:\n"
        "        file.write(b'x'); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)\n"
        "cli.attention.run = endless; sys.exit(cli.main(['attention', 'x', '--out', 'y.csv']))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (143, b"")
    assert not list(tmp_path.iterdir())


@pytest.mark.app
def test_a_terminal_without_the_characters_gets_question_marks() -> None:
    done = run("models", environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"6 ? 12" in done.stdout


@pytest.mark.app
@pytest.mark.skipif(os.name == "nt", reason="signals and pipes work otherwise on Windows")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{{ '{sys.executable}' -m mha_viz.cli models; echo \"code $?\" >&2; }} | true"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "code 0\n"


INTERRUPTED = """
import os, signal, sys, threading
from mha_viz.cli import main
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.exit(main(["attention", "-", "--out", "never.npz"]))
"""


@pytest.mark.app
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    waiting = os.pipe()  # nobody ever writes to it
    try:
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED],
            stdin=waiting[0],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        for end in waiting:
            os.close(end)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with downloading("gpt2") as show:
        show(1_000_000, 548_000_000)
    assert capsys.readouterr().err == ""
    reader, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with downloading("gpt2") as show:
            show(0, 0)
            show(1_000_000, 548_000_000)
        shown = ""
        while not shown.endswith("\r\n"):
            shown += os.read(reader, 10_000).decode()
    os.close(reader)
    assert "asking the Hub" in shown
    assert "\rDownloading gpt2: 1 of 548 MB" in shown
    assert shown.endswith("\r\n")


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("PORT", str(taken.getsockname()[1]))
        monkeypatch.delenv("HOST", raising=False)
        assert main(["serve"]) == 2
        assert_one_line(capsys.readouterr().err, "in use", "--port", str(taken.getsockname()[1]))


@pytest.mark.parametrize("setting", ["MHA_VIZ_DISK_MB", "MHA_VIZ_DOWNLOADS_MB", "MHA_VIZ_MAX_MODEL_MB"])
def test_serve_names_a_setting_that_is_no_number_of_megabytes(
    setting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("the server was started"))
    monkeypatch.setenv(setting, "5 GB")
    assert main(["serve"]) == 2
    assert_one_line(capsys.readouterr().err, setting, "5 GB", "megabytes")


@pytest.mark.skipif(os.name == "nt", reason="there a server is a child process")
def test_serve_says_where_other_machines_reach_it_and_an_empty_host_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "500000")
    monkeypatch.setenv("MHA_VIZ_HOME", str(tmp_path / "file" / "below"))
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "execv", lambda *_: None)
    monkeypatch.setattr("mha_viz.cli.serve._address", lambda: "10.0.0.5")
    assert main(["serve", "--host", "0.0.0.0", "--port", "18766"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "Other machines reach this server at http://10.0.0.5:18766\n"
    assert "cannot be written (not a directory)" in printed.err
    assert main(["serve", "--host", " "]) == 2
    assert "The host is empty." in capsys.readouterr().err


@pytest.mark.app
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
def test_serve_serves_where_the_environment_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mha_viz.cli", "serve", "--", "--server.headless", "true"]
    place = os.environ | {"HOST": "127.0.0.1", "PORT": str(port)}
    with subprocess.Popen(command, cwd=ROOT, env=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert _health(port, server) == b"ok"
        finally:
            server.send_signal(signal.SIGINT)
            said = server.communicate(timeout=60)[0].decode()
    assert server.returncode == 0, said
    assert f"http://127.0.0.1:{port}" in said
    assert "not a valid config option" not in said
    assert "Traceback" not in said


def _health(port: int, server: subprocess.Popen[bytes]) -> bytes:
    """The body of the health page, as soon as there is one."""
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=10) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.URLError:
            time.sleep(0.1)
    return b""


@pytest.mark.app
@pytest.mark.skipif(os.name == "nt", reason="the Makefile is for Unix; README names the commands for Windows")
def test_make_run_hands_over_host_and_port() -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "run", "HOST=0.0.0.0", "PORT=8600"]
    planned = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=True).stdout
    assert planned.splitlines()[-1].endswith('serve --host "0.0.0.0" --port "8600"')
