"""A disk that is really full, during a study, a training, a download, an export and the opening of a step of the toy:
one sentence is shown, or another folder serves, and no incomplete file is left.

Each runs in a separate mount namespace with a small file system in memory. Other tests limit the size of files, which
needs no privileges; these are run on demand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mha_viz.files.assets import HOME_VARIABLE
from tests.fake_hub import FakeHub, Repository, tiny_bert_files

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.app, pytest.mark.slow]

# A script that mounts the disk and runs another script on it; prints its output, then the files that are left.
MOUNTED = """
set -e
mount -t tmpfs -o size="$1" none "$2"
"$3" -c "$4" "$2" "$5"
find "$2" -type f ! -name filler -printf 'LEFT %f %s\\n'
"""
FILL = """
import os, sys
from pathlib import Path
def fill(spare=0):
    with open(Path(sys.argv[1], "filler"), "ab", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError as error:
            assert error.strerror == "No space left on device"
        filler.truncate(max(0, filler.tell() - spare))
"""
STUDY = """
import time
from mha_viz.corpus import grammar, uploads
from mha_viz.corpus.conllu import format_conllu
from mha_viz.models.getting import catalog
from mha_viz.app.service import studies
source = uploads.parse_in_child(format_conllu(grammar.corpus(40, 5).sentences).encode(), "forty.conllu")
fill(spare=8192)
job = studies.start(catalog.resolve(sys.argv[2]), source)
while not job.is_finished:
    time.sleep(0.05)
print(job.error)
"""
TRAINING = """
import time
from dataclasses import replace
from mha_viz.lab.lab import HEAD_COUNT, EXPERIMENTS
from mha_viz.app.lab import trainings
fill()
job = trainings.start(replace(EXPERIMENTS[HEAD_COUNT].default, steps=50))
while not job.is_finished:
    job.heartbeat()
    time.sleep(0.05)
print(job.error)
"""
DOWNLOAD = """
import shutil
from collections import namedtuple
from mha_viz.errors import ModelError
from mha_viz.models.getting.catalog import resolve
from mha_viz.models.getting.hub import fetch
if sys.argv[2] == "on the way":
    shutil.disk_usage = lambda _: namedtuple("usage", "total used free")(1 << 40, 0, 1 << 40)
fill(spare=20480)
try:
    fetch(resolve("someone/tiny"))
except ModelError as error:
    print(error)
"""
STEP = """
fill()
from tests.page_session import PageSession
page = PageSession({"model": "toy@400", "text": "the dog saw the girl ."})
print([error.value for error in page.at.error], "mha_explorer" in page._drawn())
"""
EXPORT = """
from mha_viz.cli import main
out = Path(sys.argv[1], "grid.svg")
out.write_text("what was there")
fill(spare=8192)
print(main(["figure", "grid", "The cat sat.", "--out", str(out)]), out.read_text())
"""


def on_a_full_disk(folder: Path, script: str, argument: str = "", size: str = "1m") -> tuple[str, list[str]]:
    """The standard output and error of a script, and the files that it left, with their sizes in bytes."""
    folder.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "sh"]
    environment = {
        **os.environ,
        HOME_VARIABLE: str(folder),
        "TMPDIR": str(folder),
        "HF_HUB_CACHE": str(folder / "cache"),
    }
    done = subprocess.run(
        [*command, size, folder, sys.executable, FILL + script, argument],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    return done.stderr + "\n".join(line for line in lines if not line.startswith("LEFT")), [
        line for line in lines if line.startswith("LEFT")
    ]


def test_a_study_on_a_full_disk(tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    output, left = on_a_full_disk(tmp_path / "disk", STUDY, str(tiny_folder("bert")))
    assert "could not be saved on the server's disk: No space left on device" in output
    assert left == []


def test_a_training_on_a_full_disk(tmp_path: Path) -> None:
    output, left = on_a_full_disk(tmp_path / "disk", TRAINING)
    assert output == "None", "the record goes through a pipe"
    assert left == []


@pytest.mark.parametrize(
    ("when", "reason"), [("before", "the disk has 0 MB left"), ("on the way", "No space left on device")]
)
def test_a_download_on_a_full_disk(hub: FakeHub, tmp_path: Path, when: str, reason: str) -> None:
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    output, left = on_a_full_disk(tmp_path / "disk", DOWNLOAD, when)
    assert "“someone/tiny”" in output
    assert reason in output
    assert left == []


def test_an_export_on_a_full_disk(tmp_path: Path) -> None:
    output, left = on_a_full_disk(tmp_path / "disk", EXPORT)
    assert "cannot be written: no space left on device" in output
    assert output.endswith("2 what was there")
    assert left == ["LEFT grid.svg 14"]


def test_a_page_with_a_step_of_the_toy_on_a_full_disk(tmp_path: Path) -> None:
    """Another folder for temporary files is found; without any, see ``test_snapshots``."""
    output, left = on_a_full_disk(tmp_path / "disk", STEP)
    assert output.endswith("[] True"), "no error, and the drawing"
    assert left == []
