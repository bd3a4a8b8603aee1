"""Install PyTorch's CPU build on Linux machines without an NVIDIA GPU.

    python tools/cpu_torch.py INDEX [REQUIREMENT]

REQUIREMENT, such as "torch>=2.13", defaults to the line in requirements.txt. On these machines the default index has
a build with CUDA, several GB larger. All other packages are installed from the default index afterwards, and PyTorch as
well, with a message, if INDEX cannot be reached. The machine's own pip settings still apply.
"""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from importlib import metadata
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/version")
ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 5  # for the index to answer; without a network, looking up its name may take a minute


def find_pin(requirements: str) -> str:
    """Return the line of a list of requirements that pins torch."""
    pin = re.search(r"^torch==\S+$", requirements, re.MULTILINE)
    assert pin, "requirements.txt does not pin torch"
    return pin[0]


def get_version() -> str:
    """Return the installed version of torch, without the name of the build; empty if there is none."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def has_gpu() -> bool:
    """Return True if NVIDIA's driver is loaded, or its own program lists a GPU (as inside WSL)."""
    if DRIVER.exists():
        return True
    program = shutil.which("nvidia-smi")
    process = subprocess.run([program, "-L"], capture_output=True, text=True, check=False) if program else None
    return process is not None and process.returncode == 0 and "GPU " in process.stdout


def check_index(index: str, seconds: float = TIMEOUT_SECONDS) -> str:
    """Return why an index cannot be used; empty if it answers. Never takes longer than ``seconds``."""
    failures: list[str] = []
    thread = threading.Thread(target=lambda: failures.append(_find_failure(index, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return failures[0] if failures else f"it did not answer in {seconds:g} s"


def _find_failure(index: str, seconds: float) -> str:
    try:
        urllib.request.urlopen(f"{index.rstrip('/')}/torch/", timeout=seconds).close()
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return "" if isinstance(reason, ssl.SSLError) else str(reason)  # pip may know the certificate
    return ""


def install(requirement: str, index: str) -> str:
    """Install the requirement without its dependencies. Return why that failed, or an empty string."""
    options = ["--disable-pip-version-check", "--quiet", "--no-compile", "--no-deps", "--index-url", index]
    process = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if process.returncode == 0 else (process.stderr.strip().splitlines() or ["pip failed"])[-1]


def main(index: str, requirement: str = "") -> None:
    """Install PyTorch's CPU build if it is useful and not installed yet."""
    requirement = requirement or find_pin((ROOT / "requirements.txt").read_text("utf-8"))
    if not index or not sys.platform.startswith("linux") or f"torch=={get_version()}" == requirement or has_gpu():
        return
    if reason := check_index(index) or install(requirement, index):
        print(f"No CPU build of PyTorch from {index} ({reason}); using the default index.", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3] or [""])
