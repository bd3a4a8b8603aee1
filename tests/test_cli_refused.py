"""What the command line refuses: one line, and an exit code that a script can read."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from mha_viz import errors
from mha_viz.cli import main, termination
from tests import hostile
from tests.cli_runs import ROOT, assert_one_line, stdin
from tests.fake_hub import FakeHub, Repository, tiny_bert_files

USAGE, NOT_FOUND, NETWORK, BAD_INPUT = 2, 3, 4, 5
ATTENTION = ["attention", "x", "--out", "a.npz"]
STEPS = "0, 50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000, 10000"
REFUSED: list[tuple[int, list[str], list[str]]] = [
    (USAGE, [], ["No command was given. Choose from serve, models,", "See mha-viz --help."]),
    (USAGE, ["figure"], ["No kind was given. Choose from heatmap,", "See mha-viz figure --help."]),
    (USAGE, ["attention"], ["TEXT and --out are missing. See mha-viz attention --help."]),
    (USAGE, ["colour"], ["“colour” is not a command. Choose from", "attention"]),
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
    (USAGE, ["attention", "x", "--out", "."], ["“.” is a folder. Name a file in it, such as example.npz."]),
    (USAGE, ["example", ".."], ["“..” is a folder. Name a file in it, such as ../example.conllu."]),
    (USAGE, ["attention", "x", "--layers", "3", "--out", "a.npz"], ["--layers"]),
    (USAGE, ["toy", "evaluate", "--sentences", "0", "--out", "a.csv"], ["nothing to measure in 0 sentences"]),
    (USAGE, ["toy", "evaluate", "--out", "a.npz"], ["“.npz” is not a table format. Use one of .csv, .json."]),
    (USAGE, ["serve", "--port", "0"], ["“0”", "65535"]),
    (USAGE, ["serve", "--port", "99999999999"], ["65535"]),
    (USAGE, ["serve", "--port", "٣"], ["“٣”"]),
    (USAGE, ["serve", "--server.port", "8600"], ["no option --server.port.", "mha-viz serve -- --server.port 8600."]),
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
    monkeypatch.setattr("mha_viz.models.reading.loading.load", lambda *_, **__: pytest.fail("the model was loaded"))
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
    stopped = "Stopped. " if code == 130 else ""
    assert capsys.readouterr().err == f"mha-viz: {stopped}It happened. Do this.\n"


def test_the_table_of_exit_codes_is_in_the_help_and_in_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown, page = capsys.readouterr().out, (ROOT / "docs/howto/command-line.md").read_text("utf-8")
    for code, meaning in termination.EXIT_CODE_MEANINGS.items():
        assert re.search(rf"^  {code} +{re.escape(meaning)}$", shown, re.MULTILINE)
        assert f"| {code} | {meaning} |" in page


def test_a_hostile_model_name_is_one_line(no_hub: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    for kind, name in hostile.MODEL_IDS.items():
        assert main(["attention", "x", f"--model={name}", "--out", str(out)]) in (NOT_FOUND, NETWORK), kind
        assert_one_line(capsys.readouterr().err)
        assert not out.exists(), kind


def test_a_hub_that_is_not_there_is_one_line(no_hub: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attention", "x", "--model", "gpt2", "--out", str(tmp_path / "a.npz")]) == NETWORK
    assert_one_line(capsys.readouterr().err, "gpt2", "127.0.0.1:9")


def test_a_name_of_the_hub_that_is_nearly_one_of_ours_is_asked_about(
    no_hub: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attention", "x", "--model", "bert-base-uncase", "--out", str(tmp_path / "a.npz")]) == NETWORK
    assert_one_line(capsys.readouterr().err, "Did you mean bert-base-uncased?")


ON_THE_HUB: dict[str, tuple[int, Callable[[], Repository | None], str]] = {
    "unknown": (NOT_FOUND, lambda: None, "The Hub has no public model “someone/tiny”."),
    "private": (NOT_FOUND, lambda: Repository(tiny_bert_files(), private=True), "private ones cannot be read"),
    "busy": (NETWORK, lambda: Repository(tiny_bert_files(), status=429), "Try again in a few minutes."),
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
    monkeypatch.setattr("mha_viz.cli.models.show_download", lambda name: nullcontext(stopped))
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


def test_an_endless_stdin_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin(b"a " * 8_000_001))
    assert main(["attention", "-", "--out", str(tmp_path / "a.npz")]) == BAD_INPUT
    assert_one_line(capsys.readouterr().err, "stdin", "16 MB")


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


def test_bytes_that_are_not_text_are_refused_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin(b"caf\xe9 cat"))
    assert main(["attention", "-", "--out", str(tmp_path / "a.json")]) == BAD_INPUT
    assert_one_line(capsys.readouterr().err, "stdin is not UTF-8 text: byte 3 is 0xE9.")
    assert not list(tmp_path.iterdir())
