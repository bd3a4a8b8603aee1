"""Limits on corpus files, and the choice of sentences when not all of a corpus is read.

The limits keep the time and memory for an untrusted text proportional to its length. If not all sentences are read,
every k-th sentence is, so that all documents and genres of the corpus are represented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn, TypeVar

from mha_viz.errors import CorpusError

MAX_BYTES = 64_000_000  # per file; larger files are refused without being read
MAX_STORED_CELL = 10_000_000  # average bytes per cell in a row group of a Parquet file
MAX_LINE = 100_000  # characters
MAX_CELL = 10_000  # characters of a column, and of a word of plain text
MAX_WORDS = 1_000  # per sentence
MAX_SENTENCES = 500_000
MAX_BRACKETS = 20  # coreference brackets on one word
MAX_LABELS = 200  # distinct relations of a corpus, with subtypes; distinct parts of speech
INVALID_TEXT = re.compile("[\udc80-\udcff\0]")  # bytes that are not UTF-8, read as surrogates; zero bytes
MAX_LABEL = 100  # characters; a profile repeats the label for each direction and head

Item = TypeVar("Item")

_STEP_WORDS = {2: "every second sentence", 3: "every third sentence"}


def decode(data: bytes, name: str) -> str:
    """Decode the text of a file. Raises CorpusError if it is too large or not UTF-8."""
    if len(data) > MAX_BYTES:
        raise_too_large(name, len(data))
    try:
        text = data.decode("utf-8-sig")
        if "\0" in text:
            raise CorpusError(
                f"{name} is not a text file: it contains a zero byte.", "Expected CoNLL-U, a GAP table or text."
            )
        return text
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CorpusError(f"{name}, line {line}: not UTF-8 text.", "Save the file as UTF-8.") from error


def raise_too_large(name: str, size: int) -> NoReturn:
    """Raise the CorpusError for a file that is too large, ``size`` bytes.

    Decompression stops one byte above the limit, so ``size`` may be a lower bound.
    """
    prefix = "more than " if size == MAX_BYTES + 1 else ""
    limit = MAX_BYTES // 10**6
    raise CorpusError(f"{name} has {prefix}{size / 1e6:.0f} MB; at most {limit} are read.", "Split the file.")


def check_line(line: str, number: int, name: str) -> None:
    if len(line) > MAX_LINE:
        raise CorpusError(
            f"{name}, line {number}: {len(line):,} characters; at most {MAX_LINE:,} of a line are read.",
            "Break the line; start every sentence on a new line.",
        )


def check_text(line: str, number: int, name: str) -> None:
    if INVALID_TEXT.search(line):
        raise CorpusError(f"{name}, line {number}: not UTF-8 text.", "Save the file as UTF-8.")


def check_cells(cells: Sequence[str], number: int, name: str) -> None:
    longest = max(map(len, cells), default=0)
    if longest > MAX_CELL:
        raise CorpusError(
            f"{name}, line {number}: {longest:,} characters without a break; at most {MAX_CELL:,} are read.",
            "Shorten the column, or delete the line.",
        )


def check_sentences(count: int, number: int, name: str) -> None:
    if count > MAX_SENTENCES:
        raise CorpusError(
            f"{name}, line {number}: sentence number {count:,}; at most {MAX_SENTENCES:,} are read.", "Split the file."
        )


def check_words(count: int, number: int, name: str) -> None:
    if count > MAX_WORDS:
        raise CorpusError(
            f"{name}, line {number}: a sentence of {count:,} words; at most {MAX_WORDS:,} are read.",
            "Split it into sentences, or delete it.",
        )


class Labels:
    """The distinct labels of one kind, limited in number and length.

    The limits bound the tables of a study, which cross relations with parts of speech and with heads. ``is_full`` is
    True once there were too many labels.
    """

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name
        self._labels: set[str] = set()
        self.is_full = False

    def add(self, label: str, line: int) -> None:
        if len(label) > MAX_LABEL:
            raise CorpusError(
                f"{self._name}, line {line}: the {self._kind} “{label[:40]}…” has {len(label):,} characters; "
                f"at most {MAX_LABEL} are read.",
                "Shorten it, or check the order of the columns.",
            )
        if label:
            self._labels.add(label)
        if len(self._labels) > MAX_LABELS:
            self.is_full = True
            raise CorpusError(
                f"{self._name}, line {line}: “{label[:40]}” is {self._kind} number {len(self._labels)}; "
                f"at most {MAX_LABELS} different ones are read, counting subtypes.",
                "A treebank has about 50: check the order of the columns, or merge rare ones.",
            )


def choose_step(count: int, max_count: int) -> int:
    """Return k = ⌈count / max_count⌉, at least 1.

    Every k-th of ``count`` sentences, from the first on, is a sample of at most ``max_count``.
    """
    return max(1, -(-count // max_count))


def take_every(step: int, items: Sequence[Item], first: int = 0) -> Sequence[Item]:
    """Return every ``step``-th item of a corpus.

    ``items`` may be a part of the corpus that begins with the item numbered ``first``.
    """
    return items[-first % step :: step]


def count_every(step: int, count: int, first: int = 0) -> int:
    """Return how many of ``count`` items :func:`take_every` returns."""
    return len(range(-first % step, count, step))


def name_sample(corpus: str, step: float | None) -> str:
    """Name the sample that was read: "EWT" (all of it), "every third sentence of EWT", "every 5th sentence of EWT".

    ``step`` is None or NaN in results of earlier versions, which read the first sentences.
    """
    if step is None or step != step:
        return f"{corpus} (its first sentences, as earlier versions read)"
    number = int(step)
    if number == 1:
        return corpus
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{_STEP_WORDS.get(number, f'every {number:,}{ending} sentence')} of {corpus}"
