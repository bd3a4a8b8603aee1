"""Write deploy/requirements.lock and deploy/build.lock: what the image installs, with versions and hashes.

python -m pip install uv==0.13.9 && python tools/lock.py [--upgrade]

Without --upgrade, versions in the files stay as long as requirements.txt allows them, and so does the date on which
they were last looked up. tests/test_pins.py refuses a date that is too old.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
# Dependencies that the CPU build of PyTorch does not need.
CUDA = """
cuda-bindings
cuda-toolkit
nvidia-cudnn-cu13
nvidia-cusparselt-cu13
nvidia-nccl-cu13
nvidia-nvshmem-cu13
triton
"""
HEADER = """\
# Made by tools/lock.py; pinned {date}. For Linux on x86-64, Python 3.11, with the build of PyTorch for the CPU.
"""
TORCH_NOTE = """\
# PyTorch itself has no hash here: its CPU build is only in PyTorch's own index, which tools/lock.py does not query.
# requirements.txt pins its version, and the Dockerfile installs it without its dependencies, which are in this file.
# The hashes are those that PyPI announces, for every platform.
"""


def compile_lock(source: Path, lock: Path, *options: str) -> str:
    """Resolve the requirements in ``source`` into ``lock``, and return its lines without comments."""
    command = ["uv", "pip", "compile", str(source), "--output-file", str(lock), "--generate-hashes", "--no-header"]
    command += ["--no-annotate", "--only-binary", ":all:", *PLATFORM, *options, *sys.argv[1:]]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return "".join(line for line in lock.read_text("utf-8").splitlines(keepends=True) if not line.startswith("#"))


def format_header(lock: Path) -> str:
    """Return the first lines of ``lock``, with the day on which its versions were looked up."""
    match = re.search(r"pinned (\S+)\.", lock.read_text("utf-8"))
    return HEADER.format(date=match[1] if match and "--upgrade" not in sys.argv else date.today().isoformat())


def main() -> None:
    """Write both lock files."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    docs = (ROOT / "requirements-docs.txt").read_text("utf-8").splitlines()
    build += [line for line in docs if line.startswith("cyclonedx-bom==")]  # writes the image's bill of materials
    with tempfile.TemporaryDirectory() as folder:
        excluded, build_requirements = Path(folder) / "cuda.txt", Path(folder) / "build.in"
        excluded.write_text(CUDA, "utf-8")
        build_requirements.write_text("\n".join(build), "utf-8")
        lock = ROOT / "deploy" / "requirements.lock"
        without_torch = ["--excludes", str(excluded), "--no-emit-package", "torch"]
        header = format_header(lock) + TORCH_NOTE
        lock.write_text(header + compile_lock(ROOT / "requirements.txt", lock, *without_torch), "utf-8")
        lock = ROOT / "deploy" / "build.lock"
        header = format_header(lock)
        lock.write_text(header + compile_lock(build_requirements, lock), "utf-8")


if __name__ == "__main__":
    main()
