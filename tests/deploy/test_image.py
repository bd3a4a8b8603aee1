"""The wheel that the image installs, built from what the Dockerfile copies and nothing else, and its bill of parts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mha_viz import __version__
from tests.deploy.image import ROOT, list_copied_paths

pytestmark = pytest.mark.deploy


def test_the_wheel_holds_the_app(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in list_copied_paths():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    with zipfile.ZipFile(next(tmp_path.glob("mha_viz-*.whl"))) as wheel:
        names = set(wheel.namelist())
        entry_points = next(name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "mha-viz = mha_viz.cli:run" in wheel.read(entry_points).decode()
    assert {"mha_viz/_app/app.py", "mha_viz/_app/.streamlit/config.toml"} <= names
    for folder, place in (("mha_viz", "mha_viz"), ("pages", "mha_viz/_app/pages"), ("assets", "mha_viz/_app/assets")):
        files = [file.relative_to(ROOT / folder) for file in (ROOT / folder).rglob("*") if file.is_file()]
        shipped = [file for file in files if "__pycache__" not in file.parts]
        assert shipped
        assert [file for file in shipped if f"{place}/{file.as_posix()}" not in names] == []


def test_every_locked_package_is_in_the_wheel_s_bill(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tools.sbom", tmp_path], cwd=ROOT, check=True, capture_output=True)
    [file] = tmp_path.iterdir()
    assert file.name == f"mha_viz-{__version__}.cdx.json"
    bill = json.loads(file.read_text("utf-8"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", __version__)
    lock = (ROOT / "deploy" / "requirements.lock").read_text("utf-8")
    locked = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", lock))
    listed = {part["name"]: part["version"] for part in bill["components"]}
    assert listed == locked | {"torch": listed["torch"]}
    assert all(part["externalReferences"][0]["hashes"] for part in bill["components"] if part["name"] != "torch")
