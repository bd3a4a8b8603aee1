"""A search in a child process, which loads the model, parses the file and returns links, counts and sentences.

Of the order, ``folder``, ``name`` and ``revision`` identify the model; ``head``, ``conditions`` and ``most`` are those
of :func:`mha_viz.study.search.searching`; ``data`` are the bytes of the file, empty for the built-in sentences. The
result, None if the search was cancelled before anything was read, is as ``analysis.links.packed`` packs it. It contains
sentences of the file, so only visitors who have that file may see it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mha_viz.analysis.links import Conditions, packed
from mha_viz.corpus import grammar, reading
from mha_viz.corpus.uploads import NEUTRAL
from mha_viz.models.encoder import Encoder
from mha_viz.process import apart
from mha_viz.study.search import searching


def work(order: dict[str, Any], report: apart.Tell, cancelled: apart.Stop) -> dict[str, Any] | None:
    """The result, incomplete if the search was cancelled. Raises the errors of :func:`mha_viz.study.search.search`."""
    corpus = reading.parse_file(order["data"], NEUTRAL) if order["data"] else grammar.corpus()
    encoder = Encoder.from_folder(Path(order["folder"]), name=order["name"], revision=order["revision"])
    result = None
    for result in searching(encoder, corpus, order["head"], Conditions(*order["conditions"]), order["most"]):
        report(result.sentences_read / result.sentences)
        if cancelled():
            break
    return packed(result) if result else None


if __name__ == "__main__":
    apart.serve(work)
