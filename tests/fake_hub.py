"""Run a fake Hub on loopback: an HTTP server that answers like huggingface.co, with faults on request.

with FakeHub() as hub:
    hub.add("someone/tiny", Repository(tiny_bert_files()))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHUNKS = 20  # number of chunks in which a large file is sent

TINY_WORDS = ("the", "animal", "didn", "'", "t", "cross", "street", "because", "it", "was", "too", "tired", ".", "##ed")


@dataclass
class Repository:
    """One model on the fake Hub, with the faults of its answers."""

    files: Mapping[str, bytes]
    gated: str | bool = False
    private: bool = False
    commit: str = COMMIT
    revisions: dict[str, Repository] = field(default_factory=dict)  # other branches and tags
    status: int = 200  # HTTP status of the answer about the model
    file_status: int = 200  # HTTP status of each file
    code: str = ""  # header X-Error-Code of an error
    stall: Literal["", "metadata", "headers", "body"] = ""  # where the server stops answering, with the connection open
    held: bool = False  # pause in the middle of a large file until the Hub's ``go_on`` is set
    chunk_pause: float = 0.0  # seconds between two chunks of a large file
    cut: bool = False  # the connection breaks in the middle of a large file
    page: bytes = b""  # answer with this instead of JSON, like a captive portal
    renamed_to: str = ""
    announced: dict[str, int] = field(default_factory=dict)  # wrong sizes in bytes
    sha256: dict[str, str] = field(default_factory=dict)  # wrong digests


class FakeHub:
    """The server.

    ``url`` is its address, ``requests`` the paths requested so far, ``tokens`` the credentials it received.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[str] = []
        self.tokens: list[str] = []
        self.stalled = threading.Semaphore(0)  # released once for each request that is not answered
        self.closing = threading.Event()
        self.go_on = threading.Event()  # lets files with ``held`` continue
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, hub_id: str, repository: Repository) -> Repository:
        """Put a model on the Hub."""
        self.repositories[hub_id] = repository
        return repository

    def __enter__(self) -> FakeHub:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        self.hub.requests.append(path)
        self.hub.tokens.extend(self.headers.get_all("Authorization", []))
        try:
            self._route(path)
        except (BrokenPipeError, ConnectionResetError):  # the client has disconnected, for example after a cancellation
            self.close_connection = True

    def _route(self, path: str) -> None:
        if path.startswith("/api/models/"):
            self._send_description(path.removeprefix("/api/models/"))
        elif "/resolve/" in path:
            hub_id, _, rest = path[1:].partition("/resolve/")
            commit, _, name = rest.partition("/")
            self._send_file(hub_id, name, commit)
        elif path.startswith("/cdn/"):
            hub_id, _, name = path.removeprefix("/cdn/").rpartition("/")
            repository = self.hub.repositories[hub_id]
            self._send_large(repository, repository.files[name])
        else:
            self._send(404, b"")

    def _send_description(self, path: str) -> None:
        hub_id, separator, revision = path.partition("/revision/")
        repository = self.hub.repositories.get(hub_id)
        if repository is not None and separator and revision != repository.commit:
            if revision not in repository.revisions:
                return self._send_error(404, "RevisionNotFound")
            repository = repository.revisions[revision]
        if repository is None or repository.private:  # without a login, the Hub answers 401 in both cases
            self._send_error(401, "RepoNotFound")
        elif repository.renamed_to:
            self._send(307, b"", {"Location": f"/api/models/{repository.renamed_to}?blobs=True"})
        elif repository.stall == "metadata":
            self._go_silent()
        elif repository.status != 200:
            self._send_error(repository.status, repository.code)
        else:
            page = repository.page or json.dumps(_describe(hub_id, repository)).encode()
            self._send(200, page)

    def _send_file(self, hub_id: str, name: str, commit: str) -> None:
        repository = self.hub.repositories.get(hub_id)
        if repository is not None:
            others = (other for other in repository.revisions.values() if other.commit == commit)
            repository = next(others, repository)
        if repository is not None and repository.renamed_to:
            target = self.path.replace(f"/{hub_id}/", f"/{repository.renamed_to}/", 1)
            self._send(307, b"", {"Location": target})
        elif repository is None or name not in repository.files:
            self._send_error(404, "EntryNotFound")
        elif repository.gated:
            self._send_error(401, "GatedRepo")
        elif repository.file_status != 200:
            self._send_error(repository.file_status, repository.code)
        elif name.endswith(".safetensors"):  # large files are on another host, as for the Hub
            self._send(302, b"", {"Location": f"{self.hub.url}/cdn/{hub_id}/{name}"})
        else:
            self._send(200, repository.files[name])

    def _send_large(self, repository: Repository, body: bytes) -> None:
        if repository.stall == "headers":
            return self._go_silent()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        step = len(body) // CHUNKS + 1
        for number, start in enumerate(range(0, len(body), step)):
            if number == CHUNKS // 2 and repository.stall == "body":
                return self._go_silent()
            if number == CHUNKS // 2 and repository.held:
                self.hub.stalled.release()
                self.hub.go_on.wait()
            if number == CHUNKS // 2 and repository.cut:
                self.close_connection = True
                return None
            self.wfile.write(body[start : start + step])
            self.hub.closing.wait(repository.chunk_pause)
        return None

    def _go_silent(self) -> None:
        self.hub.stalled.release()
        self.hub.closing.wait()
        self.close_connection = True

    def _send_error(self, status: int, code: str) -> None:
        self._send(status, b'{"error": "refused"}', {"X-Error-Code": code} if code else {})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the requests are recorded in a list."""


def _describe(hub_id: str, repository: Repository) -> dict[str, Any]:
    siblings = [_describe_file(name, body, repository) for name, body in repository.files.items()]
    return {"id": hub_id, "sha": repository.commit, "gated": repository.gated, "private": False, "siblings": siblings}


def _describe_file(name: str, body: bytes, repository: Repository) -> dict[str, Any]:
    size = repository.announced.get(name, len(body))
    sibling: dict[str, Any] = {"rfilename": name, "size": size, "blobId": hashlib.sha1(body).hexdigest()}
    if name.endswith(".safetensors"):
        digest = repository.sha256.get(name) or hashlib.sha256(body).hexdigest()
        sibling["lfs"] = {"size": size, "sha256": digest, "pointerSize": 134}
    return sibling


@cache
def tiny_bert_files() -> Mapping[str, bytes]:
    """Return the files of a BERT with 2 layers × 2 heads, d_model 16, random weights and a WordPiece vocabulary."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TINY_WORDS)
    config = BertConfig(
        vocab_size=len(words), num_hidden_layers=2, num_attention_heads=2, hidden_size=16, intermediate_size=32
    )
    with tempfile.TemporaryDirectory() as name, torch.random.fork_rng():
        folder = Path(name)
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
        BertTokenizer({word: i for i, word in enumerate(words)}).save_pretrained(folder)
        (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        return MappingProxyType({p.name: p.read_bytes() for p in sorted(folder.iterdir())})
