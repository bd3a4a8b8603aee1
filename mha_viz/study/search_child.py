"""A search in a child process, which loads the model, parses the file and returns links, counts and sentences.

The request is a line of JSON followed by the bytes of the file; without bytes the built-in sentences are searched.
``folder``, ``name`` and ``revision`` identify the model; ``head``, ``conditions`` and ``most`` are those of
:func:`mha_viz.study.search.searching`. The answer is JSON. It contains sentences of the file, so only visitors who have
that file may see it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mha_viz.analysis.links import Conditions, packed
from mha_viz.corpus import grammar, reading
from mha_viz.corpus.uploads import NEUTRAL
from mha_viz.models.encoder import Encoder
from mha_viz.process import apart
from mha_viz.study.search import searching


def work(order: bytes, report: apart.Tell, cancelled: apart.Stop) -> bytes:
    """The result, incomplete if the search was cancelled. Raises the errors of :func:`mha_viz.study.search.search`."""
    header, _, data = order.partition(b"\n")
    request: dict[str, Any] = json.loads(header)
    corpus = reading.parse_file(data, NEUTRAL) if data else grammar.corpus()
    encoder = Encoder.from_folder(Path(request["folder"]), name=request["name"], revision=request["revision"])
    result = None
    for result in searching(encoder, corpus, request["head"], Conditions(*request["conditions"]), request["most"]):
        report(result.sentences_read / result.sentences)
        if cancelled():
            break
    return json.dumps(packed(result)).encode() if result else b"null"


if __name__ == "__main__":
    apart.serve(work)
