"""PyTorch's build for the CPU is installed where no other build is useful, from an index made for these tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import threading
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import lanes
from tools import cpu_torch

ROOT = Path(__file__).resolve().parent.parent
PIN = cpu_torch.find_pin((ROOT / "requirements.txt").read_text("utf-8"))
VERSION = PIN.removeprefix("torch==")
CPU = f"{VERSION}+cpu"

pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is one build only"),
]


def wheel(folder: Path, version: str) -> None:
    """An empty package named torch, on the page of a simple index."""
    (folder / "torch").mkdir(parents=True)
    name = f"torch-{version}-py3-none-any.whl"
    about = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / "torch" / name, "w") as file:
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    page = f'<!DOCTYPE html><html><body><a href="{name}">{name}</a></body></html>'
    (folder / "torch" / "index.html").write_text(page, "utf-8")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of an index."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a clean environment, which has the pip of this one: installing another takes seconds."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(place)
    pip = find_spec("pip")
    assert pip
    assert pip.origin
    Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}), "pip").symlink_to(Path(pip.origin).parent)
    return place / "bin" / "python"


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The index of PyTorch and the default one, each with its own build of torch."""
    wheel(tmp_path / "pytorch", CPU)
    wheel(tmp_path / "default", VERSION)
    with served(tmp_path / "pytorch") as pytorch, served(tmp_path / "default") as default:
        yield pytorch, default


def installed_by_make(python: Path, index: str, default: str, tmp_path: Path) -> tuple[str, str]:
    """The installed build, and the output, after the steps of the Makefile in an empty environment."""
    pip = [str(python), "-m", "pip"]
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "torch"], check=True, capture_output=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    place = clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": default, "PATH": "/nowhere"}
    first = [str(python), str(ROOT / "tools" / "cpu_torch.py"), index]
    done = subprocess.run(first, env=place, capture_output=True, text=True, check=True)
    (tmp_path / "requirements.txt").write_text(f"{PIN}\n", "utf-8")
    then = [*pip, "install", "--quiet", "--disable-pip-version-check", "-r", str(tmp_path / "requirements.txt")]
    subprocess.run(then, env=place, check=True, capture_output=True)
    ask = [str(python), "-c", "from importlib import metadata; print(metadata.version('torch'))"]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip(), done.stdout + done.stderr


no_gpu = pytest.mark.skipif(cpu_torch.has_gpu(), reason="this machine has a GPU, whose build is wanted")


@no_gpu
def test_the_build_for_the_cpu_comes_from_its_own_index_and_stays(
    python: Path, indexes: tuple[str, str], tmp_path: Path
) -> None:
    assert installed_by_make(python, *indexes, tmp_path) == (CPU, "")


def without_anything(pytorch: str) -> dict[str, str]:
    """Addresses at which there is no build of torch, by the reason."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        refused = f"http://127.0.0.1:{free.getsockname()[1]}"
    return {"refused": refused, "unknown name": "http://index.invalid", "no such page": f"{pytorch}/no"}


def assert_said(printed: str, index: str) -> None:
    assert printed.startswith(f"No CPU build of PyTorch from {index} (")
    assert printed.endswith("); using the default index.\n")
    assert printed.count("\n") == 1


@no_gpu
@pytest.mark.parametrize(
    "why", lanes.some(["refused", "unknown name", "no such page", "a broken wheel"], "a broken wheel")
)
def test_the_default_index_is_asked_where_the_other_has_nothing(
    python: Path, indexes: tuple[str, str], tmp_path: Path, why: str
) -> None:
    pytorch, default = indexes
    if why == "a broken wheel":
        next((tmp_path / "pytorch" / "torch").glob("*.whl")).write_bytes(b"not a wheel")
    index = without_anything(pytorch).get(why, pytorch)
    version, printed = installed_by_make(python, index, default, tmp_path)
    assert version == VERSION
    assert_said(printed, index)


@no_gpu
def test_an_index_that_has_nothing_is_said_in_one_line_and_nothing_is_installed(
    indexes: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu_torch, "get_version", lambda: "")
    monkeypatch.setattr(cpu_torch, "install", lambda *_: pytest.fail("installed"))
    for index in without_anything(indexes[0]).values():
        cpu_torch.main(index)
        assert_said(capsys.readouterr().out, index)


def test_an_index_that_never_answers_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert cpu_torch.check_index(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.5)


def test_a_machine_with_a_gpu_or_a_torch_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_torch, "check_index", lambda *_: pytest.fail("asked"))
    monkeypatch.setattr(cpu_torch, "install", lambda *_: pytest.fail("installed"))
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H100'\n", "utf-8")
    program.chmod(0o755)
    with monkeypatch.context() as gpu:
        gpu.setattr(cpu_torch, "get_version", lambda: "")
        gpu.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        assert cpu_torch.has_gpu()
        cpu_torch.main("http://index.invalid")
    cpu_torch.main("")
    monkeypatch.setattr(cpu_torch, "get_version", lambda: VERSION)
    cpu_torch.main("http://index.invalid")


def test_make_asks_for_this_build_before_all_else() -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    for target in ("run", "check", "bench"):
        command = ["make", "--dry-run", target, "--assume-new=requirements.txt"]
        planned = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=True).stdout
        first, second, third, *_ = [line for line in planned.splitlines() if "cpu_torch" in line or " install " in line]
        assert first.endswith('tools/cpu_torch.py "https://download.pytorch.org/whl/cpu"'), target
        assert " -r requirements" in second
        assert third.endswith("--no-deps --editable .")
