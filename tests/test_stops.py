"""Ctrl-C ends every command, whenever it is pressed, with 130 and one sentence on what is kept and how to go on."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mha_viz import process
from mha_viz.cli import main, table, termination
from mha_viz.cli.termination import STOPPED
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.files import record_writes, write_atomically
from tests import lanes
from tests.cli_runs import ROOT
from tests.copies import EXIT_RAISED, Copy
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.app, pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")]

TEXT, OTHER = "the dog sees the girls .", "the girl smiles because [MASK] sings ."
# A command line of each command of the table, with a model that is fast; {} is a folder that each run has anew, and
# {corpus} a few annotated sentences.
COMMANDS = {
    "models": "models",
    "attention": "attention|the dog sees the girls .|--model|toy|--out|{}/a.csv",
    "figure grid": "figure|grid|the dog sees .|--model|toy|--out|{}/a.pdf",
    "figure heatmap": "figure|heatmap|the dog sees .|--model|toy|--all-heads|{}/heads|--format|pdf",
    "figure links": "figure|links|the dog sees .|--model|toy|--head|L1H1|--out|{}/a.svg",
    "figure compare": "figure|compare|the dog sees .|--model|toy|--head|L1H1|--head|L0H0|--out|{}/a.html",
    "figure difference": "figure|difference|the dog sees .|--and|the cat sees .|--model|toy|--head|L1H1|--out|{}/a.pdf",
    "publish": "publish|the dog sees .|--model|toy|--head|L1H1|--out|{}/a.html",
    "profile": "profile|{corpus}|--model|toy|--out|{}/profile",
    "replicate": "replicate|toy|{corpus}|--out|{}/a.csv",
    "report": "report|toy|--out|{}/a.csv",
    "recipes": "recipes|{corpus}|--model|toy|--most|8|--out|{}/recipes",
    "search": "search|toy/L1H1|{corpus}|--out|{}/a.csv",
    "groups": "groups|toy/L1H1|{corpus}|--out|{}/a.csv",
    "effect": "effect|{corpus}|--model|toy|--heads|L1H1|--out|{}/a.csv",
    "used": "used|toy|{corpus}|--most|8",
    "patch": "patch|the girl smiles because [MASK] sings .|the boy smiles because [MASK] sings .|--model|toy",
    "pairs": "pairs|repeater-pairs|--model|repeater|--out|{}/a.csv",
    "why": "why|{corpus}|--model|toy|--most|8|--out|{}/a.csv",
    "decoder-heads": "decoder-heads|repeater|--draws|3|--out|{}/a.csv",
    "toy train": "toy|train|--kind|repeater|--steps|6|--out|{}/toy",
    "toy evaluate": "toy|evaluate|--sentences|20|--out|{}/a.csv",
    "toy history": "toy|history|--sentences|5|--out|{}/a.csv",
    "toy effects": "toy|effects|--sentences|10|--out|{}/a.csv",
    "completion": "completion|bash",
    "example": "example|{}/a.conllu|--grammar|1",
}
ON_ITS_OWN = {"serve"}  # below
GOLDEN = 0.618034  # whose multiples are spread evenly between whole numbers
MOMENTS = (0.05, 0.25, 0.5, 0.75, 0.93)
OFTEN = 0.5  # of its time, in every run of the tests
SAID = "mha-viz: Stopped. "
SENTENCES = 16


def leaves(parser: Any, name: str = "") -> Iterator[str]:
    """The names of the commands that a parser runs."""
    groups = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    if not groups:
        yield name
    for commands in groups:
        for word, inner in commands.items():
            yield from leaves(inner, f"{name} {word}".strip())


def test_every_command_of_the_table_is_stopped_here() -> None:
    assert {*leaves(table.build_parser())} == COMMANDS.keys() | ON_ITS_OWN


def arguments_of(name: str, folder: Path) -> list[str]:
    folder.mkdir()
    corpus = folder.parent / "few.conllu"
    corpus.write_text(format_conllu(grammar.corpus(SENTENCES, seed=5).sentences))
    return COMMANDS[name].replace("{}", str(folder)).replace("{corpus}", str(corpus)).split("|")


def begun(name: str, folder: Path) -> Copy:
    arguments = arguments_of(name, folder)
    return Copy(lambda: main(arguments), folder.with_suffix(".log"))


def assert_stopped(code: int, printed: str) -> None:
    assert code == STOPPED, printed
    assert printed.count(SAID) == 1, printed
    assert SAID in printed.splitlines()[-1], printed  # behind half a line, if it was stopped while it printed
    assert printed.endswith(".\n")
    assert "Traceback" not in printed
    assert "KeyboardInterrupt" not in printed


@pytest.fixture(scope="module")
def durations() -> dict[str, float]:
    """How long each command takes, as far as it is known."""
    return {}


@pytest.mark.parametrize("moment", lanes.some(MOMENTS, OFTEN))
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_stopped(name: str, moment: float, durations: dict[str, float], tmp_path: Path) -> None:
    if name not in durations:
        assert main(arguments_of(name, tmp_path / "first")) == 0  # imports what copies of this process then have
        started = time.monotonic()
        whole = begun(name, tmp_path / "whole")
        assert whole.wait() == 0, whole.log.read_text()
        durations[name] = time.monotonic() - started
        assert SAID not in whole.log.read_text()
    for attempt in range(100):  # at other moments, evenly spread, if it had ended or not begun
        span = durations[name] * (1 + attempt / 25)  # a busy machine takes longer than it did
        stopped = begun(name, tmp_path / str(attempt))
        time.sleep(span * ((moment + attempt * GOLDEN) % 1))
        if stopped.poll() is None:
            os.kill(stopped.pid, signal.SIGINT)
        code = stopped.wait()
        if code not in (0, EXIT_RAISED):
            break
    assert_stopped(code, stopped.log.read_text())
    left = [file.name for file in (tmp_path / str(attempt)).rglob("*") if file.name.endswith(".part")]
    assert not left


# ---- Where Python swallows it ---------------------------------------------------------------------------------


class Deaf:
    """Something during whose removal Ctrl-C is pressed: there Python can raise nothing."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def run_as(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command ``models`` do this work."""
    monkeypatch.setattr("mha_viz.cli.listing.run", lambda _: work())


def test_a_stop_that_python_swallows_is_raised_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        Deaf()
        time.sleep(30)

    run_as(work, monkeypatch)
    begun = time.monotonic()
    assert main(["models"]) == STOPPED
    assert time.monotonic() - begun < 10
    assert_stopped(STOPPED, capsys.readouterr().err)


def test_a_stop_that_a_library_swallows_ends_with_130_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise RuntimeError("a library's own words") from error

    run_as(work, monkeypatch)
    assert main(["models"]) == STOPPED
    assert SAID in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_errors_that_cannot_be_raised_are_printed_as_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []
    with monkeypatch.context() as patched, termination.InterruptHandler() as stopped:
        patched.setattr(stopped, "_old_hook", seen.append)
        sys.unraisablehook(type("Unraisable", (), {"exc_type": ValueError})())
        patched.undo()
    assert len(seen) == 1
    assert not stopped.is_interrupted


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ([], {"out": "a.csv"}, "Nothing was written"),
        (["a.csv"], {"out": "a.csv"}, "a.csv was written completely"),
        (["before: a.csv"], {"out": "a.csv"}, "Nothing was written"),
        ([".a.csv.parts/taken.npz"], {"out": "a.csv"}, ".a.csv.parts; run the same command again to continue"),
        ([".a.csv.sums/.sums.npz"], {"out": "a.csv"}, ".a.csv.sums; run the same command again to continue"),
        (["p/.sums.npz"], {"out": "p"}, "p; run the same command again to continue"),
        (["p/.parts/1.npz"], {"out": "p"}, "p; run the same command again to continue"),
        (["p/toy/few/.sums.npz"], {"out": "p"}, "p; run the same command again to continue"),
        (["p/roles.csv"], {"out": "p"}, "The files in {}/p are complete; run the same command again for the"),
        (["before: p/roles.csv"], {"out": "p"}, "Nothing was written"),
        (["p/.x.part"], {"out": "p"}, "Nothing was written"),
        (["h/L0H0.pdf"], {"out": None, "all_heads": "h"}, "The files in {}/h are complete"),
        (["s/index.html"], {"out": None, "live": "s"}, "The files in {}/s are complete"),
        ([], {"out": "-"}, "Nothing was written"),
        ([], {}, "Nothing was written"),
    ],
)
@pytest.mark.parametrize("jump", [0, -3600, 86_400], ids=["as it goes", "put back", "put forward"])
def test_what_is_kept_is_said_however_the_clock_is_set(
    files: list[str], options: dict[str, Any], said: str, jump: float, tmp_path: Path
) -> None:
    """``jump``: seconds by which the clock is set while the command runs, in which it writes these files."""
    for name in files:
        file = tmp_path / name.removeprefix("before: ")
        file.parent.mkdir(parents=True, exist_ok=True)
        if name != str(file.relative_to(tmp_path)):
            file.touch()
    with record_writes() as record:
        for name in files:
            if not name.startswith("before: "):
                with write_atomically(tmp_path / name):
                    pass
                os.utime(tmp_path / name, (time.time() + jump,) * 2)
    given = {name: value if value in (None, "-") else str(tmp_path / value) for name, value in options.items()}
    assert said.replace("{}", str(tmp_path)) in termination.describe_kept_output(argparse.Namespace(**given), record)


def test_the_current_folder_holds_partial_results_only_if_they_are_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").touch()
    assert termination.describe_kept_output(argparse.Namespace(out="."), {}).startswith("Nothing was written")
    Path(".sums.npz").touch()
    assert termination.describe_kept_output(argparse.Namespace(out="."), {}).startswith("Partial results are in .;")


IN_AN_IMPORT = """
import signal, sys
from importlib.abc import MetaPathFinder

class Press(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "numpy":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Press())
from mha_viz.cli import run
assert "numpy" not in sys.modules
run()
"""


def test_the_begin_of_a_process_hears_it() -> None:
    """Large libraries are imported once Ctrl-C is heard; before, a traceback was printed."""
    command, environment = process.build_python_command("-c", IN_AN_IMPORT, "models")
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert_stopped(ended.returncode, ended.stderr)
    assert "Nothing was written" in ended.stderr


def test_the_end_of_a_process_hears_it(tmp_path: Path) -> None:
    """Leave whole what was printed and written; before, Python ended with 0 and a traceback."""
    script = "import atexit, sys, time\nfrom mha_viz.cli import run\natexit.register(time.sleep, 30)\nrun()\n"
    command, environment = process.build_python_command("-c", script, "completion", "bash")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(3)  # by now it is at its end
            child.send_signal(signal.SIGINT)
            _, printed = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    assert_stopped(child.returncode, printed)
    assert "Everything was written." in printed


@pytest.mark.parametrize(("code", "exit_code", "message"), [(0, STOPPED, termination.ALL_WRITTEN), (4, 4, "")])
def test_the_end_after_an_error_does_not_say_that_everything_was_written(
    code: int, exit_code: int, message: str
) -> None:
    script = (
        "import atexit, signal\nfrom mha_viz.cli.termination import end_process\n"
        f"atexit.register(signal.raise_signal, signal.SIGINT)\nend_process({code})\n"
    )
    command, environment = process.build_python_command("-c", script)
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == exit_code
    assert ended.stderr.strip().endswith(message)
    assert bool(ended.stderr) is bool(message)
