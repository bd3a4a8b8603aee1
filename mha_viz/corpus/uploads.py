"""Parse uploaded corpus files in a child process.

The app's process stores only the bytes of a file and a few numbers; a study parses the file again, with the same
:func:`mha_viz.corpus.reading.parse_file`. So not even a malformed file can take CPU time or memory from the app.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mha_viz.corpus import reading
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.errors import CorpusError, TooLarge, TooSlow
from mha_viz.process import children

CHILD_MODULE = "mha_viz.corpus.uploads"
BOUNDS = children.Bounds(seconds=20, megabytes=600)  # 8 MB of CoNLL-U take 2 s on one core and 140 MB
# Shown in place of a file's name to others who have the same file or a link to its profile.
NEUTRAL_NAME = "an uploaded file"
MAX_REASONS = 5  # reasons for left-out annotation that are reported


class StudyCorpus(NamedTuple):
    """A corpus to measure: its name, digest and number of words, and the bytes of its file.

    ``data`` is empty for the built-in sentences. ``left_out`` holds the first reasons why annotation was left out.
    """

    name: str
    digest: str
    words: int
    left_out: tuple[str, ...] = ()
    data: bytes = b""


def parse_in_child(data: bytes, name: str, is_cancelled: children.IsCancelled = lambda: False) -> StudyCorpus:
    """Parse a file in a child process. Raises CorpusError if it is invalid or takes too much time or memory."""
    try:
        facts = children.run(CHILD_MODULE, {"name": name, "data": data}, BOUNDS, cancelled=is_cancelled)
    except TooSlow as error:
        raise CorpusError(f"This file took longer than {BOUNDS.seconds:.0f} s to read.", "Split it.") from error
    except TooLarge as error:
        limit = f"{BOUNDS.megabytes:,} MB of memory"
        raise CorpusError(f"This file needs more than {limit} to be read.", "Split it.") from error
    return StudyCorpus(name, **facts, data=data)


def count_words(corpus: Corpus | Gap) -> int:
    """Count the words of a corpus."""
    if isinstance(corpus, Gap):
        return sum(len(reading.PLAIN_WORDS.findall(row.text)) for row in corpus.rows)
    return sum(len(sentence.words) for sentence in corpus.sentences)


def _work(order: dict[str, Any], report: children.ReportProgress, cancelled: children.IsCancelled) -> dict[str, Any]:
    corpus = reading.parse_file(order["data"], order["name"])
    left_out = () if isinstance(corpus, Gap) else corpus.left_out
    return {"digest": corpus.digest, "words": count_words(corpus), "left_out": tuple(left_out[:MAX_REASONS])}


if __name__ == "__main__":
    children.serve(_work)
