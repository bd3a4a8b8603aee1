"""Write live pages, serve them as static files, and read texts with their worker."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from playwright.sync_api import Page

import mha_viz as mv
from mha_viz.attention import Weights
from mha_viz.figures.live import LIBRARIES
from mha_viz.files.assets import storage_folder
from mha_viz.files.npm import fetch_files
from mha_viz.models.reading import tokenizer_rules
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import Tokenizer
from tools.node import find_node

EXAMPLE = "The cat didn't see the dog."
PART = 100_000  # bytes
CLOSE = 1e-5  # tolerance between weights in a browser and in the library
_SCRIPT = Path(__file__).parent / "js" / "read_live.mjs"
# Send texts to the page's worker like the page.
_READ = """async (texts) => {
    const worker = new Worker("reader.js", { type: "module" });
    const answers = [];
    for (const text of texts) {
        const answer = await new Promise((resolve) => {
            worker.onmessage = ({ data }) => data.loaded === undefined && resolve(data);
            worker.postMessage(text);
        });
        const bytes = new Uint8Array(answer.weights?.buffer ?? 0);
        let binary = "";
        for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
        answers.push({ ...answer, weights: btoa(binary) });
    }
    worker.terminate();
    return answers;
}"""


class Answer(NamedTuple):
    """The answer of a worker to a text.

    It has the fields of the reading and its weights [layer, head, query, key], or the reason for a refusal.
    """

    reading: dict[str, Any]
    weights: Weights
    refusal: str


def write(model: Encoder, folder: Path, half: bool = False) -> Path:
    """Write a live page with ``model``, with weights in float16 if ``half``."""
    return mv.publish([(model.encode(EXAMPLE), "L1H1")], folder, live=model, half=half)


def write_in_parts(model: Encoder, folder: Path) -> Path:
    """Write a live page whose graph is split into files of ``PART`` bytes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mha_viz.figures.live._PART_BYTES", PART)
        return write(model, folder)


def format_strongest(model: Encoder, text: str) -> str:
    """Return the weight of the strongest link between words in the head that opens with the example."""
    words = model.encode(text).by_words()
    ordinary = [i for i, special in enumerate(words.queries.special) if not special]
    return f"{words['L1H1'][np.ix_(ordinary, ordinary)].max():.3f}"


def list_parts(folder: Path) -> list[bytes]:
    """Return the files of the graph of a live page."""
    description = json.loads((folder / "model.json").read_text("utf-8"))
    return [(folder / name).read_bytes() for name in description["parts"]]


@contextmanager
def serve_folder(
    folder: Path, get_other_page: Callable[[str], bytes | None] = lambda _: None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Serve a folder of static files; return its address and a function that stops the server.

    ``get_other_page`` returns another app's page at an address, or None; such pages must not be cached.
    """

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            if (body := get_other_page(self.path)) is None:
                return super().do_GET()
            self.send_response(200)
            headers = {"Content-Type": "text/html", "Cache-Control": "no-store", "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", server.shutdown
        finally:
            server.shutdown()
            thread.join()


def read_in_page(page: Page, texts: Sequence[str]) -> list[Answer]:
    """Return the answer of an open page's worker to each text."""
    answers = page.evaluate(_READ, list(texts))
    return [_read(answer) for answer in answers]


def _read(answer: dict[str, Any]) -> Answer:
    reading = answer.get("reading") or {}
    numbers = np.frombuffer(base64.b64decode(answer["weights"]), np.float32)
    shape = (reading["layers"], reading["heads"], reading["n"], reading["n"]) if reading else (0,)
    return Answer(reading, numbers.reshape(shape), answer.get("refusal", ""))


@cache  # slow, because it tests every character
def read_rules(model: Encoder) -> dict[str, Any]:
    """Return the tokenizer of a model as exported to its live page."""
    tokenizer = Tokenizer(model.vocabulary, model.name, model.limit)
    return {"tokenizer": tokenizer_rules.export_parts(tokenizer), "rules": tokenizer_rules.export_rules(tokenizer)}


def library() -> str:
    """Return the path of Hugging Face's tokenizers for JavaScript."""
    package = LIBRARIES[1]
    fetch_files(package, storage_folder() / "libraries")
    (path,) = (storage_folder() / "libraries").glob(f"*tokenizers-{package.version}/*.mjs")
    return str(path)


def ask_node(*questions: dict[str, Any]) -> list[Any]:
    """Return the answers of read_live.mjs."""
    node = find_node()
    assert node, "Node 20 or later was not found: pip install -r requirements-dev.txt"
    process = subprocess.run(
        [node, str(_SCRIPT)], input=json.dumps(questions), capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    answers: list[Any] = json.loads(process.stdout)
    return answers
