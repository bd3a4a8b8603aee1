"""A few sentences of an uploaded file, parsed in a child process.

The request is a line of JSON, ``spans`` of sentence numbers, followed by the bytes of the file; the answer is CoNLL-U,
one sentence for each span.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mha_viz.corpus import reading
from mha_viz.corpus.conllu import as_conllu, read_conllu
from mha_viz.corpus.excerpts import Span, excerpts
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.corpus.uploads import BOUNDS, NEUTRAL
from mha_viz.errors import CorpusError
from mha_viz.process import apart

CHILD = "mha_viz.corpus.excerpting"


def read_excerpts(data: bytes, spans: Sequence[Span]) -> dict[Span, Sentence]:
    """The sentences of a file by number. Raises CorpusError, and the errors of :func:`mha_viz.process.apart.run`."""
    text = apart.run(CHILD, json.dumps({"spans": list(spans)}).encode() + b"\n" + data, BOUNDS).decode()
    return dict(zip(spans, read_conllu(text, NEUTRAL).sentences, strict=True)) if text else {}


def work(order: bytes, report: apart.Tell, cancelled: apart.Stop) -> bytes:
    """The requested sentences. Raises CorpusError."""
    header, _, data = order.partition(b"\n")
    corpus = reading.parse_file(data, NEUTRAL)
    if not isinstance(corpus, Corpus):
        raise CorpusError("A GAP table has no sentences.", "Choose a treebank or plain text.")
    spans = [(int(first), int(last)) for first, last in json.loads(header)["spans"]]
    return as_conllu(excerpts(corpus.sentences, spans)).encode()


if __name__ == "__main__":
    apart.serve(work)
