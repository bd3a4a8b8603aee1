"""Importing the package changes nothing for the process; the program's own processes get their settings first."""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from transformers.utils import logging as transformers_logging

import mha_viz
from mha_viz import process
from mha_viz.app.service.reader.__main__ import serve
from mha_viz.models.reading.encoder import Encoder
from tests import tiny_models
from tests.copies import Copy, Piped

pytestmark = pytest.mark.app

ROOT = Path(__file__).resolve().parent.parent

RUN_WHEN_IMPORTED = {"mha_viz.cli.__main__", "mha_viz.app.serving.__main__"}


def modules() -> list[str]:
    """The names of all modules of the package."""
    found = pkgutil.walk_packages(mha_viz.__path__, "mha_viz.")
    return ["mha_viz", *(module.name for module in found if module.name not in RUN_WHEN_IMPORTED)]


def loggers() -> list[logging.Logger]:
    every = logging.root.manager.loggerDict.values()
    return [logging.root, *(one for one in every if isinstance(one, logging.Logger))]


def state() -> dict[str, Any]:
    """What belongs to the whole process, and so to the program that imports the package."""
    return {
        "environment": dict(os.environ),
        "levels": {one.name: one.level for one in loggers() if not one.name.startswith("mha_viz")},
        "handlers": [repr(one) for one in logging.root.handlers],
        "warnings": [repr(one) for one in warnings.filters],
        "progress bars": transformers_logging.is_progress_bar_enabled(),
        "threads": torch.get_num_threads(),
        "chance": hash((random.getstate(), torch.random.initial_seed())),
        "interrupt": repr(signal.getsignal(signal.SIGINT)),
        "paths": list(sys.path),
        "folder": str(Path.cwd()),
    }


def import_all_again() -> int:
    """Every module is imported twice. The first import also runs the libraries' code, which may do anything; before the
    second, the state of the process is set to marks that any change would overwrite."""
    names = modules()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mha_viz"]:
        del sys.modules[name]
    for name in set(os.environ) - {"PATH", "HOME"}:
        del os.environ[name]
    for one in loggers():
        one.setLevel(17)
    warnings.resetwarnings()
    transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(3)
    before = state()
    for name in names:
        importlib.import_module(name)
    after = state()
    print(json.dumps({name: changes(before[name], after[name]) for name in after if after[name] != before[name]}))
    return 0


def changes(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    return {name: new.get(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def test_importing_any_module_changes_nothing_for_the_process(tmp_path: Path) -> None:
    assert len(modules()) > 100
    importing = Copy(import_all_again, tmp_path / "log")
    assert importing.wait() == 0, importing.log.read_text()
    assert json.loads(importing.log.read_text().splitlines()[-1]) == {}


class Step(NamedTuple):
    """What a process does, which modules it has not imported then, and whether it has got its settings."""

    name: str
    code: str
    absent: tuple[str, ...]
    is_prepared: bool = False


HEAVY = ("torch", "transformers", "huggingface_hub")
STEPS = (
    Step("the package", "import mha_viz; assert set(mha_viz.__all__) <= {*dir(mha_viz)}", (*HEAVY, "streamlit")),
    Step("a menu", "from mha_viz.models.getting import catalog; catalog.list_offered()", (*HEAVY, "streamlit")),
    Step(
        "a model that comes along",
        "from mha_viz.models.getting import hub; assert hub.find_local_folder(catalog.CATALOG['minilm'])",
        HEAVY,
    ),
    Step("a command", "import mha_viz.cli; mha_viz.cli.main(['models'])", HEAVY, is_prepared=True),
    Step(
        "a server",
        "from mha_viz.app.serving import start; start._run = lambda *_: None; start.main([], standalone_mode=False)",
        HEAVY,
        is_prepared=True,
    ),
    Step(
        "a first picture",
        "from mha_viz.app.widgets import frame, inference, request, download_panel;"
        "from mha_viz.app.compare import page; from mha_viz.app.explore import gold, page",
        (*HEAVY, "pandas", "plotly.graph_objs._figure"),
    ),
    Step(
        "the bytes of a picture",
        "from mha_viz.app.service.caches import load_first_reading; from mha_viz.figures.layout.packet import "
        "build_packet;"
        "from mha_viz.attention import Head; build_packet(load_first_reading(), [Head(3, 1)])",
        HEAVY,
    ),
    Step(
        "a stored run",
        "from mha_viz.lab import lab; from mha_viz.figures.charts import training;"
        "[row.statements(lab.load_stored(name)) for name, row in lab.EXPERIMENTS.items()]",
        HEAVY,
    ),
    Step(
        "a reading",
        "from mha_viz.app.service.reader import verbs; from mha_viz.request import Request;"
        " from mha_viz.app.service.caches import ModelService;"
        "assert ModelService().ask_cached(verbs.read, Request('toy', 'the old cat slept')).result(60).layers == 2",
        HEAVY,
    ),
    Step(
        "a page under streamlit run",
        "from streamlit.testing.v1 import AppTest; AppTest.from_file('app.py').run(timeout=60)",
        HEAVY,
        is_prepared=True,
    ),
    Step(
        "the page of experiments",
        "from tests.page_session import PageSession;"
        "[PageSession({'experiment': name}, 'pages/50_why_heads_differ.py')"
        " for name in ('identical', 'count', 'removal')]",
        HEAVY,
    ),
)
# One process does all of it, from the lightest to the heaviest.
IN_TURN = """
import contextlib, io, json, os, sys
from types import SimpleNamespace
settings, steps, given, written = json.loads(sys.argv[1])
from mha_viz.app.service.reader import client

pipes = SimpleNamespace(stdin=os.fdopen(given, "wb"), stdout=os.fdopen(written, "rb"), poll=lambda: None)
client.Reader._ensure_process = lambda self: (False, pipes)
for name, code, absent, is_prepared in steps:
    for setting in settings:
        os.environ.pop(setting, None)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code)
    assert not set(absent) & set(sys.modules), (name, set(absent) & set(sys.modules))
    assert not is_prepared or {one: os.environ.get(one) for one in settings} == settings, name
"""


def test_a_process_of_our_own_imports_late_and_is_prepared_before_the_libraries_come() -> None:
    models = Piped(serve)  # in place of the process that it would start
    pipes = (models.stdin.fileno(), models.stdout.fileno())
    given = json.dumps([dict(process.SETTINGS), STEPS, *pipes])
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, given], cwd=ROOT, pass_fds=pipes, capture_output=True, text=True, check=False
    )
    models.communicate()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("setting", ["", "7"])
def test_what_the_environment_says_is_left_alone(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in process.SETTINGS:
        monkeypatch.setenv(name, setting)
        if not setting:
            monkeypatch.delenv(name)
    process.set_environment()
    assert {name: os.environ[name] for name in process.SETTINGS} == {
        name: setting or usual for name, usual in process.SETTINGS.items()
    }


def test_processes_that_are_started_get_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.app.service.reader import client
    from mha_viz.process import children

    for name in process.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    started: list[dict[str, str]] = []

    def pretend(*_: object, env: dict[str, str], **__: object) -> None:
        started.append(env)
        raise OSError

    monkeypatch.setattr(subprocess, "Popen", pretend)
    for start in (client.Reader()._ensure_process, lambda: children.run("mha_viz.study.child", {}, children.Bounds())):
        with pytest.raises(OSError):  # noqa: PT011 (our own, of no other kind)
            start()
    assert len(started) == 2
    for environment in started:
        assert process.SETTINGS.items() <= environment.items()
        assert "HF_HUB_DISABLE_IMPLICIT_TOKEN" not in os.environ


def test_loading_a_model_leaves_the_reports_of_transformers_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_models.build("bert", tmp_path / "bert")
    before = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()  # type: ignore[no-untyped-call]
    try:
        transformers_logging.set_verbosity_info()  # type: ignore[no-untyped-call]
        transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        capfd.readouterr()
        Encoder.from_folder(folder)
        assert capfd.readouterr() == ("", "")
        assert transformers_logging.get_verbosity() == transformers_logging.INFO  # type: ignore[no-untyped-call]
        assert transformers_logging.is_progress_bar_enabled()
    finally:
        transformers_logging.set_verbosity(before[0])
        if not before[1]:
            transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


FAULTS = """
import resource, sys
from mha_viz import process

if "keep" in sys.argv:
    process.keep_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    bytearray(b"x") * 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_memory_is_fetched_once_whatever_dask_has_set() -> None:
    fetched = [
        int(
            subprocess.run(
                [sys.executable, "-c", FAULTS, *more],
                env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
                stdout=subprocess.PIPE,
                check=True,
                cwd=ROOT,
            ).stdout
        )
        for more in ([], ["keep"])
    ]
    assert fetched[0] > 10 * fetched[1]  # pages: 245 of 4 kB each time, or once
