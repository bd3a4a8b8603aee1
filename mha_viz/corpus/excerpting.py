"""A few sentences of an uploaded file, parsed in a child process.

The order has ``spans`` of sentence numbers and ``data``, the bytes of the file; the result is CoNLL-U, one sentence for
each span.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mha_viz.corpus import reading
from mha_viz.corpus.conllu import as_conllu, read_conllu
from mha_viz.corpus.excerpts import SentenceSpan, excerpts
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.corpus.uploads import BOUNDS, NEUTRAL
from mha_viz.errors import CorpusError
from mha_viz.process import apart

CHILD = "mha_viz.corpus.excerpting"


def read_excerpts(data: bytes, spans: Sequence[SentenceSpan]) -> dict[SentenceSpan, Sentence]:
    """The sentences of a file by number. Raises CorpusError, and the errors of :func:`mha_viz.process.apart.run`."""
    text = apart.run(CHILD, {"spans": [*map(tuple, spans)], "data": data}, BOUNDS)
    return dict(zip(spans, read_conllu(text, NEUTRAL).sentences, strict=True)) if text else {}


def work(order: dict[str, Any], report: apart.Tell, cancelled: apart.Stop) -> str:
    """The requested sentences. Raises CorpusError."""
    corpus = reading.parse_file(order["data"], NEUTRAL)
    if not isinstance(corpus, Corpus):
        raise CorpusError("A GAP table has no sentences.", "Choose a treebank or plain text.")
    return as_conllu(excerpts(corpus.sentences, order["spans"]))


if __name__ == "__main__":
    apart.serve(work)
