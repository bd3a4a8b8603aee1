"""The three scripts that BertViz loads from a CDN, fetched from npm once and stored in benchmarks/cache."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from tools import node

CACHE = Path(__file__).resolve().parent / "cache"


class Script(NamedTuple):
    """One script: where BertViz expects it, and its counterpart in npm."""

    cdn: str  # its URL in BertViz's output
    package: str  # npm package and version
    member: str  # its file in the package
    sha256: str

    @property
    def path(self) -> str:
        """Its path on the loopback page."""
        return f"/{Path(self.member).name}"


_CDN = "https://cdnjs.cloudflare.com/ajax/libs"
SCRIPTS = (
    Script(
        f"{_CDN}/require.js/2.3.6/require.min.js",
        "requirejs@2.3.6",  # npm has it only unminified
        "package/require.js",
        "9485f0917f97fcf4f63a5ea365200ffd57f123f451382a2f9a1ad2e2fd51ac9b",
    ),
    Script(
        f"{_CDN}/d3/5.7.0/d3.min",
        "d3@5.7.0",
        "package/dist/d3.min.js",
        "bdad5585ef9a965ff25458738309b006058c55f2c78d794d25fbecae35014609",
    ),
    Script(
        f"{_CDN}/jquery/2.0.0/jquery.min",
        "jquery@2.1.0",  # npm has no 2.0.0; this is the next one
        "package/dist/jquery.min.js",
        "8851e7844413ec986053d7d497ca932861b8622d2369bb291777329c2a713c72",
    ),
)


def fetch_content(script: Script) -> bytes:
    """Return the script's content. Raises SystemExit if npm is missing or returns something else."""
    cache_path = CACHE / script.path.removeprefix("/")
    if not cache_path.exists():
        CACHE.mkdir(exist_ok=True)
        cache_path.write_bytes(_fetch_script(script))
    return cache_path.read_bytes()


def _fetch_script(script: Script) -> bytes:
    npm = node.find_npm()
    if npm is None:
        sys.exit("npm was not found; BertViz's scripts come from it. Run: pip install -r requirements-dev.txt")
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [*npm, "pack", "--silent", "--pack-destination", folder, script.package], cwd=folder, check=False
        )
        archives = list(Path(folder).glob("*.tgz"))
        if result.returncode or not archives:
            sys.exit(f"npm could not fetch {script.package}, which BertViz needs. Is registry.npmjs.org reachable?")
        with tarfile.open(archives[0]) as archive:
            member = archive.extractfile(script.member)
            content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != script.sha256:
        sys.exit(f"{script.package} is not the file that these benchmarks were written with: its sha256 differs.")
    return content
