"""The wheel: what it depends on, and the main job in a clean environment with the lowest versions of all of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import mha_viz

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RANGES = {canonicalize_name(one.name): one.specifier for one in map(Requirement, PROJECT["dependencies"])}
LOWEST = {name: next(part.version for part in both if part.operator == ">=") for name, both in RANGES.items()}
HIGHEST = {name: next(part.version for part in both if part.operator == "<") for name, both in RANGES.items()}

JOB = """
from importlib import metadata, resources
import mha_viz as mv

assert resources.files(mv).joinpath("py.typed").is_file()
assert metadata.version("mha-viz") == mv.__version__

a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
assert abs(a[mv.Head(3, 1)][10, 2] - 0.677) < 1e-3
figures = {"grid": a.grid(), "heatmap": a.heatmap(3, 1), "links": a.links(layer=3, head=1, pin="q10")}
figures["compare"] = mv.compare([(a, "L3H1"), (a, "L5H11")])
for name, figure in figures.items():
    for suffix in (".svg", ".pdf", ".png", ".html", ".csv", ".npz", ".safetensors", ".json"):
        assert figure.save(name + suffix).stat().st_size > 500
assert figures["links"].figure() is not None
print(mv.__version__)
"""


def pins() -> dict[str, str]:
    """The versions of requirements.txt by name."""
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pinned.items()}


def test_the_wheel_asks_for_ranges_that_hold_the_pins() -> None:
    assert RANGES.keys() == pins().keys()
    for name, version in pins().items():
        assert RANGES[name].contains(version), name


def test_each_range_ends_before_the_next_major_version() -> None:
    for name, end in HIGHEST.items():
        assert Version(end) == Version(str(Version(pins()[name]).major + 1)), name
        assert len(RANGES[name]) == 2


def test_the_version_is_stated_once() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", mha_viz.__version__)
    assert "version" not in PROJECT
    image = re.findall(r"image: mha-viz:(\S+)", (ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8"))
    assert set(image) == {mha_viz.__version__}


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "mha_viz" / "py.typed").read_bytes() == b""


@pytest.mark.slow
def test_the_lowest_versions_do_the_main_job(tmp_path: Path) -> None:
    """Builds and installs the wheel, then reads a sentence, draws every kind of figure, and runs the command."""

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    lowest = [f"{name}=={version}" for name, version in LOWEST.items()]
    run(programs / "python", "-m", "pip", "install", "--quiet", next(tmp_path.glob("mha_viz-*.whl")), *lowest)
    run(programs / "python", "-m", "pip", "check")

    assert run(programs / "python", "-I", "-c", JOB).split() == [mha_viz.__version__]
    assert "minilm" in run(programs / "mha-viz", "models")
    run(programs / "mha-viz", "figure", "links", "The cat sat.", "--head", "L3H1", "--out", "cat.pdf")
    run(programs / "mha-viz", "attention", "The cat sat.", "--out", "cat.csv")
    assert (tmp_path / "cat.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "cat.csv").stat().st_size > 500
    run(programs / "python", "-c", "import mha_viz.serving.start")
