"""Importing the package changes nothing for the process; the program's own processes get their settings first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers.utils import logging as transformers_logging

from mha_viz import process
from mha_viz.models.encoder import Encoder
from tests import tiny_models

pytestmark = pytest.mark.app

ROOT = Path(__file__).resolve().parent.parent

# Every module is imported twice. The first import also runs the libraries' code, which may do anything; before the
# second, the state of the process is set to marks that any change would overwrite.
IMPORTS = """
import importlib, json, logging, os, pkgutil, random, signal, sys, warnings
own = dict(os.environ)
import mha_viz

runs_when_imported = {"mha_viz.cli.__main__", "mha_viz.serving.__main__"}
found = pkgutil.walk_packages(mha_viz.__path__, "mha_viz.")
names = ["mha_viz", *(module.name for module in found if module.name not in runs_when_imported)]
for name in names:
    importlib.import_module(name)

import torch
from transformers.utils import logging as transformers_logging

def loggers():
    every = logging.root.manager.loggerDict.values()
    return [logging.root, *(one for one in every if isinstance(one, logging.Logger))]

def state():
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
        "folder": os.getcwd(),
    }

for name in [name for name in sys.modules if name.partition(".")[0] == "mha_viz"]:
    del sys.modules[name]
for name in set(os.environ) - set(own):
    del os.environ[name]
for one in loggers():
    one.setLevel(17)
warnings.resetwarnings()
transformers_logging.enable_progress_bar()
torch.set_num_threads(3)
before = state()
for name in names:
    importlib.import_module(name)
after = state()

def changes(old, new):
    if not isinstance(new, dict):
        return new
    return {name: new.get(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)}

changed = {name: changes(before[name], after[name]) for name in after if after[name] != before[name]}
print(json.dumps({"modules": len(names), "changed": changed}))
"""


def fresh(code: str, **environment: str) -> str:
    """The output of ``code`` in a process without these settings."""
    place = {name: value for name, value in os.environ.items() if name not in process.SETTINGS} | environment
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=place, capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_any_module_changes_nothing_for_the_process() -> None:
    report = json.loads(fresh(IMPORTS))
    assert report["modules"] > 100
    assert report["changed"] == {}


@pytest.mark.parametrize(
    "start",
    [
        "import mha_viz.cli; mha_viz.cli.main(['models'])",
        "import mha_viz.serving.start as start; start._run = lambda *_: None; start.main([], standalone_mode=False)",
        "from streamlit.testing.v1 import AppTest; AppTest.from_file('app.py').run(timeout=60)",
    ],
    ids=["a command", "a server", "a page under streamlit run"],
)
def test_a_process_of_our_own_is_prepared_before_the_libraries_come(start: str) -> None:
    code = f"""
import contextlib, io, os, sys
with contextlib.redirect_stdout(io.StringIO()):
    {start}
assert "huggingface_hub" not in sys.modules and "torch" not in sys.modules
print(*[os.environ[name] for name in {list(process.SETTINGS)}])
"""
    assert fresh(code).split() == list(process.SETTINGS.values())


@pytest.mark.parametrize("setting", ["", "7"])
def test_what_the_environment_says_is_left_alone(setting: str) -> None:
    given = dict.fromkeys(process.SETTINGS, setting) if setting else {}
    code = f"""
from mha_viz import process
process.prepare()
import os; print(*[os.environ[name] for name in {list(process.SETTINGS)}])
"""
    assert fresh(code, **given).split() == [given.get(name, value) for name, value in process.SETTINGS.items()]


def test_processes_that_are_started_get_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.process import apart
    from mha_viz.reader import client

    for name in process.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    started: list[dict[str, str]] = []

    def pretend(*_: object, env: dict[str, str], **__: object) -> None:
        started.append(env)
        raise OSError

    monkeypatch.setattr(subprocess, "Popen", pretend)
    for start in (client.Reader()._running, lambda: apart.run("mha_viz.study.child", b"", apart.Bounds())):
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
