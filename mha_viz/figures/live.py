"""Publish a page with a live model, as a folder of static files that any web server can serve."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mha_viz.corpus import grammar
from mha_viz.errors import ExportError
from mha_viz.figures import files as exports
from mha_viz.figures.files.live import OTHER_SENTENCES, LiveSection, build_site
from mha_viz.figures.files.page import Look, PagePart
from mha_viz.figures.layout.packet import build_common_header
from mha_viz.figures.words.known_facts import collect_head_facts
from mha_viz.files import make_folder
from mha_viz.files.assets import storage_folder
from mha_viz.files.npm import Package, fetch_files
from mha_viz.models.reading import onnx, tokenizer_rules
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.tokenizer import Tokenizer

# Libraries that run the model in a browser. npm fetches these versions once, when a page is first written.
LIBRARIES = (
    Package(
        "onnxruntime-web",
        "1.30.0",
        "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
        ("dist/ort.wasm.min.mjs", "dist/ort-wasm-simd-threaded.mjs", "dist/ort-wasm-simd-threaded.wasm"),
    ),
    Package(
        "@huggingface/tokenizers",
        "0.2.0",
        "LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg==",
        ("dist/tokenizers.min.mjs",),
    ),
)
_RUNTIME = "ort-wasm-simd-threaded.wasm"
_PART_BYTES = 95_000_000  # maximum size of a part of the model: hosts refuse files of more than 100 MB


def write_site(
    folder: str | os.PathLike[str],
    model: Encoder,
    parts: Sequence[PagePart],
    example: tuple[str, PagePart],
    *,
    half: bool = False,
    title: str,
    introduction: str,
    look: Look,
) -> Path:
    """Write a page with these ``parts`` and a sentence field in which ``model`` runs.

    :func:`mha_viz.models.reading.onnx.check_exportable` must accept the model. ``example`` is a text and its drawing.

    Raises ModelUnsupported for a tokenizer that a page cannot reproduce, ExportError if a library is missing or the
    folder cannot be written.
    """
    target = Path(folder)
    if target.is_file():
        raise ExportError(
            f"{target.name[:60]!r} is a file.", "Name a folder for a page that runs a model in the browser."
        )
    make_folder(target)
    text, part = example
    files = _build_model_files(model, half, text)
    for library in LIBRARIES:
        files |= fetch_files(library, storage_folder() / "libraries")
    description = json.loads(files["model.json"])
    size = (description["bytes"] + len(files[_RUNTIME])) / 1e6
    head_facts = collect_head_facts(model.name, model.revision, (model.layers, model.heads))
    live = LiveSection(model.name, model.revision, size, description["deviation"], text, part, head_facts)
    files = build_site(parts, live, files, title=title, introduction=introduction, look=look)
    for name, content in files.items():
        exports.write_bytes(target / name, partial(bytes, content))
    return target


def _build_model_files(encoder: Encoder, half: bool, text: str) -> dict[str, bytes]:
    tokenizer = Tokenizer(encoder.vocabulary, encoder.name, encoder.limit)
    description = {
        "common": build_common_header(encoder.name, encoder.revision, encoder.layers, encoder.heads),
        "tokenizer": tokenizer_rules.export_parts(tokenizer),
        "rules": tokenizer_rules.export_rules(tokenizer),
    }
    sentences = [" ".join(sentence.forms) for sentence in grammar.corpus(OTHER_SENTENCES).sentences] if half else []
    data, deviation = onnx.export_graph(encoder, half, (text, *sentences))
    parts = {
        f"model.{i}.onnx": data[start : start + _PART_BYTES] for i, start in enumerate(range(0, len(data), _PART_BYTES))
    }
    facts = {"bytes": len(data), "parts": list(parts), "deviation": deviation, **description}
    return {**parts, "model.json": json.dumps(facts, separators=(",", ":")).encode()}
