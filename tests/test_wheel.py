"""The wheel: its dependencies, and the main job in a clean environment with the lowest versions of all of them."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
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


READER = """
from mha_viz.app.service.reader import Reader, verbs
from mha_viz.request import Request

print(Reader().ask(verbs.read, Request(model="minilm", text="The cat sat.")).weights.shape)
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


# Names inside are used, which may change (mha_viz/library_parts.py): the newest version that was tried, where it is
# newer than the pinned one.
BY_MINOR = {"streamlit": "", "transformers": "5.24", "uvicorn": ""}


def test_each_range_ends_before_the_next_major_or_minor_version() -> None:
    for name, end in HIGHEST.items():
        newest = Version(BY_MINOR.get(name) or pins()[name])
        ends = f"{newest.major}.{newest.minor + 1}" if name in BY_MINOR else f"{newest.major + 1}"
        assert Version(end) == Version(ends), name
        assert len(RANGES[name]) == 2


def test_the_version_is_stated_once() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", mha_viz.__version__)
    assert "version" not in PROJECT
    image = re.findall(r"image: mha-viz:(\S+)", (ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8"))
    assert set(image) == {mha_viz.__version__}


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "mha_viz" / "py.typed").read_bytes() == b""


PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"


def run(folder: Path, *command: str | Path) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Source distribution and wheel by suffix, as `make dist` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    venv.create(folder / "venv", with_pip=True)
    tools = (ROOT / "requirements-docs.txt").read_text("utf-8").splitlines()
    python = folder / "venv" / PROGRAMS / "python"
    run(folder, python, "-m", "pip", "install", "--quiet", next(line for line in tools if line.startswith("build==")))
    run(folder, python, "-m", "build", "--outdir", folder, ROOT)
    name = f"mha_viz-{mha_viz.__version__}"
    assert {path.name for path in folder.glob("mha_viz-*")} == {f"{name}.tar.gz", f"{name}-py3-none-any.whl"}
    return {".tar.gz": folder / f"{name}.tar.gz", ".whl": folder / f"{name}-py3-none-any.whl"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".whl", ".tar.gz"])
def test_what_make_dist_builds_can_be_installed(suffix: str, distributions: dict[str, Path], tmp_path: Path) -> None:
    """Installs it with the dependencies that are present, then reads, draws, and runs the command."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / PROGRAMS / "python"
    packages = Path(run(tmp_path, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    run(tmp_path, python, "-m", "pip", "install", "--quiet", "--no-deps", distributions[suffix])
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    assert run(tmp_path, python, "-I", "-c", JOB).split() == [mha_viz.__version__]
    where = run(tmp_path, python, "-I", "-c", "import mha_viz; print(mha_viz.__file__)")
    assert Path(where.strip()).is_relative_to(packages)
    command = tmp_path / "venv" / PROGRAMS / "mha-viz"
    assert run(tmp_path, command, "--version") == f"mha-viz {mha_viz.__version__}\n"
    assert "figure" in run(tmp_path, command, "completion", "bash")
    run(tmp_path, command, "toy", "evaluate", "--sentences", "2", "--out", "scores.csv")
    assert (packages / "mha_viz" / "_app" / "app.py").is_file()


@pytest.mark.slow
def test_the_lowest_versions_do_the_main_job(distributions: dict[str, Path], tmp_path: Path) -> None:
    """Installs the wheel, then reads a sentence, draws every kind of figure, runs the command, and asks the process
    that reads for the pages."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / PROGRAMS
    lowest = [f"{name}=={version}" for name, version in LOWEST.items()]
    run(tmp_path, programs / "python", "-m", "pip", "install", "--quiet", distributions[".whl"], *lowest)
    run(tmp_path, programs / "python", "-m", "pip", "check")

    assert run(tmp_path, programs / "python", "-I", "-c", JOB).split() == [mha_viz.__version__]
    assert run(tmp_path, programs / "python", "-I", "-c", READER) == "(6, 12, 6, 6)\n"
    assert "minilm" in run(tmp_path, programs / "mha-viz", "models")
    assert "fish" in run(tmp_path, programs / "mha-viz", "completion", "fish")
    run(tmp_path, programs / "mha-viz", "figure", "links", "The cat sat.", "--head", "L3H1", "--out", "cat.pdf")
    run(tmp_path, programs / "mha-viz", "attention", "The cat sat.", "--out", "cat.csv")
    assert (tmp_path / "cat.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "cat.csv").stat().st_size > 500
    run(tmp_path, programs / "python", "-c", "import mha_viz.app.serving.start")
