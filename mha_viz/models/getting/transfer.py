"""List and download files from the Hub, in a child process.

Ending the process ends a name lookup that hangs, the wait for a silent server, and a transfer.

The Hub's own client lists the files and opens the connections, but files are streamed here and not by its
``snapshot_download``. That function compares sizes only after the last byte, so that a server that never stops fills
the disk, and compares no SHA-256. It reports every 10 MB, so that a slow connection looks like a silent one. And before
each file it sends a HEAD request, several times if the Hub fails.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi, get_session, hf_hub_url

from mha_viz.errors import Cancelled, ModelUnreachable
from mha_viz.model_names import quote_model
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.folder import inspect_folder
from mha_viz.models.getting.refusals import (
    CHOOSE_ANOTHER,
    UNEXPLAINED,
    choose_message,
    explain_error,
    get_endpoint,
    make_gated_error,
    make_http_error,
)
from mha_viz.models.getting.storage import COMMIT
from mha_viz.process.children import IsCancelled, ReportProgress, serve


def work(order: dict[str, Any], report_progress: ReportProgress, is_cancelled: IsCancelled) -> object:
    """List the files of the ``model``, or download ``files`` of a ``commit`` to a ``folder`` and return their digests.

    ``order`` has these entries. After ``seconds`` without a byte the Hub counts as silent. ``report_progress`` receives
    the number of bytes so far. Raises the errors that :func:`explain_error` returns. A network error that it cannot
    explain is returned under UNEXPLAINED.
    """
    model = Model(**order["model"])

    def report(done: float) -> None:
        """Report progress. Raises Cancelled if the waiting process has ended."""
        if is_cancelled():
            raise Cancelled("The download was stopped.")
        report_progress(done)

    report(0)  # the Hub cannot count as silent before the work has begun
    try:
        if "folder" not in order:
            return _list_files(model, order["seconds"])
        return _download_files(model, order, report)
    except Exception as error:
        explained_error = explain_error(error, model)
        if explained_error.__cause__ is error:
            return {UNEXPLAINED: f"{type(error).__name__}: {error}"}
        raise explained_error from error


def _list_files(model: Model, seconds: float) -> dict[str, object]:
    """Return the ``commit`` of the model's revision and its ``files``.

    ``files`` maps names to the size in bytes and the SHA-256, which the Hub gives for large files only.
    """
    hub = HfApi(endpoint=get_endpoint(), token=False)
    revision = model.revision or None
    repository = hub.model_info(model.hub_id, revision=revision, files_metadata=True, timeout=seconds)
    if repository.gated:
        raise make_gated_error(quote_model(model.name))
    if repository.sha is None or COMMIT.fullmatch(repository.sha) is None:
        raise ModelUnreachable(
            choose_message(
                f"{get_endpoint()} does not answer like the Hugging Face Hub.",
                "The Hugging Face Hub sent an unexpected response.",
            ),
            choose_message("Check HF_ENDPOINT.", CHOOSE_ANOTHER),
        )
    files = {
        s.rfilename: [(s.lfs.size if s.lfs else s.size) or 0, s.lfs.sha256 if s.lfs else None]
        for s in repository.siblings or ()
    }
    return {"commit": repository.sha, "files": files}


def _download_files(model: Model, request: dict[str, Any], report_progress: ReportProgress) -> dict[str, str]:
    """Download files and return their digests."""
    folder, done, digests = Path(request["folder"]), 0, dict[str, str]()
    for name, (size, sha256) in request["files"].items():
        digests[name] = _download_file(model, request, name, _AnnouncedFile(size, sha256, done), report_progress)
        done += size
        if name == "config.json":  # check it before downloading hundreds of megabytes
            inspect_folder(folder, model, includes_weights=False)
    return digests


class _AnnouncedFile(NamedTuple):
    """The announced size and SHA-256 of a file, and the number of bytes downloaded before it."""

    size: int
    sha256: str | None
    offset: int


def _download_file(
    model: Model, request: dict[str, Any], name: str, file: _AnnouncedFile, report_progress: ReportProgress
) -> str:
    """Download a file chunk by chunk, and return its SHA-256.

    Raises ModelUnreachable unless its size and SHA-256 match the announced values.
    """
    url = hf_hub_url(model.hub_id, name, revision=request["commit"], endpoint=get_endpoint())
    headers = {"Accept-Encoding": "identity", "User-Agent": "mha-viz"}
    digest, size = hashlib.sha256(), 0
    with (
        get_session().stream(
            "GET", url, headers=headers, timeout=request["seconds"], follow_redirects=True
        ) as response,
        (Path(request["folder"]) / name).open("wb") as out,
    ):
        if response.status_code != 200:
            raise make_http_error(response.status_code, response.headers.get("X-Error-Code"), quote_model(model.name))
        report_progress(file.offset)
        for chunk in response.iter_bytes():
            size += len(chunk)
            report_progress(file.offset + size)
            if size > file.size:  # a server that never stops must not fill the disk
                break
            digest.update(chunk)
            out.write(chunk)
    if size != file.size or file.sha256 not in (None, digest.hexdigest()):
        raise ModelUnreachable(f"{quote_model(model.name)}: {name} arrived incomplete or changed.", "Try again.")
    return digest.hexdigest()


if __name__ == "__main__":
    serve(work, network=True)
