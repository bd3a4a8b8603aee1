"""A corpus in a file of a stranger: what it holds is found out in a child process, and the words stay in the file.

The process of the app keeps the bytes and a few numbers; whoever measures them reads the file again, by the same
:func:`mha_viz.treebank.read`. So no file, however odd, takes the interpreter or the memory of those who read.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from mha_viz import apart, treebank
from mha_viz.errors import CorpusError, TooLarge, TooSlow
from mha_viz.treebank import Corpus, Gap

CHILD = "mha_viz.uploads"
BOUNDS = apart.Bounds(seconds=20, megabytes=600)  # 8 MB of CoNLL-U take 2 s of a core and 140 MB
NEUTRAL = "an uploaded file"  # whoever has the same file, or a link to what was measured, is not told its name
LEFT_OUT = 5  # sentences on what was left out that are told


class Source(NamedTuple):
    """A corpus to be measured: the bytes of its file, what it is called, and what is in it. ``data`` is empty for the
    sentences that come with the app; ``left_out`` holds the first of what could not be used, one sentence each."""

    name: str
    digest: str
    words: int
    left_out: tuple[str, ...] = ()
    data: bytes = b""


def read(data: bytes, name: str, cancelled: apart.Stop = lambda: False) -> Source:
    """What a file holds. Raises CorpusError for what cannot be read, and for what takes too much time or memory."""
    order = json.dumps({"name": name}).encode() + b"\n" + data
    try:
        facts = json.loads(apart.run(CHILD, order, BOUNDS, cancelled=cancelled))
    except TooSlow as error:
        raise CorpusError(f"This file took longer than {BOUNDS.seconds:.0f} s to read.", "Split it.") from error
    except TooLarge as error:
        most = f"{BOUNDS.megabytes:,} MB of memory"
        raise CorpusError(f"This file needs more than {most} to be read.", "Split it.") from error
    return Source(name, facts["digest"], facts["words"], tuple(facts["left_out"]), data)


def words(corpus: Corpus | Gap) -> int:
    """How much there is to read."""
    if isinstance(corpus, Gap):
        return sum(len(treebank.PLAIN_WORDS.findall(row.text)) for row in corpus.rows)
    return sum(len(sentence.words) for sentence in corpus.sentences)


def _facts(order: bytes, tell: apart.Tell, stop: apart.Stop) -> bytes:
    header, _, data = order.partition(b"\n")
    corpus = treebank.read(data, json.loads(header)["name"])
    left_out = () if isinstance(corpus, Gap) else corpus.left_out
    facts = {"digest": corpus.digest, "words": words(corpus), "left_out": left_out[:LEFT_OUT]}
    return json.dumps(facts).encode()


if __name__ == "__main__":
    apart.serve(_facts)
