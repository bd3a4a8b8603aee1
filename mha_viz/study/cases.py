"""Cases over a corpus: the engine of every measure that keeps a row of numbers per case, instead of sums.

A measure is a :class:`CaseKind`. It contains no model; it says which sentences are read, returns their cases, and lists
everything that these depend on. It is measured by this process, which can resume from a file, or by the workers of a
cluster (:mod:`mha_viz.study.cluster.cases`). However the corpus is divided, the cases are the same, in the same order.
Cases that are sums (:class:`mha_viz.study.corpus_effects.OutputSums`) are equal up to rounding, because the sums of
parts are added.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from mha_viz.analysis.effects import Numbers
from mha_viz.analysis.syntax import Relations
from mha_viz.corpus.limits import take_every
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.corpus.treebank import Corpus, Sentence
from mha_viz.errors import Cancelled, SumsUnsavedWarning, warn
from mha_viz.files import load_arrays
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.run import SAVE_SECONDS, Progress
from mha_viz.study.sums import write_arrays
from mha_viz.version import __version__

FIRST_SIZE = 25  # maximum number of sentences in the first batch
SHORT_SECONDS = 1.0  # after a batch that takes less time, the next one has twice as many sentences
SAVE_RATIO = 10  # the time between saves is at least this many times the duration of a save
NumberedSentence = tuple[int, Sentence]


@dataclass
class Cases:
    """Results of a measure, one entry per case.

    Attributes:
        cases: the values of each case.
        units: (document, sentence number) of each case.
        sentences_read: the number of sentences read.
        left_out: the number of words or sentences that could not be measured.
        counts: how often each tuple of labels occurred.
        unsaved: reasons why results of parts could not be saved, with counts.
        is_complete: False while :meth:`add` is running or after it was interrupted.
    """

    cases: list[Numbers] = field(default_factory=list)
    units: list[tuple[str, int]] = field(default_factory=list)
    sentences_read: int = 0
    left_out: int = 0
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    unsaved: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True

    def add(self, other: Cases) -> None:
        """Add the results of later sentences."""
        was_complete, self.is_complete = self.is_complete, False
        self.cases += other.cases
        self.units += other.units
        self.sentences_read += other.sentences_read
        self.left_out += other.left_out
        self.counts.update(other.counts)
        self.unsaved.update(other.unsaved)
        self.is_complete = was_complete

    def save(self, path: Path, key: str) -> None:
        """Write the results to one file atomically. ``key`` identifies what they depend on. Raises OSError."""
        facts = {"key": key, "units": self.units, "read": self.sentences_read, "left_out": self.left_out}
        write_arrays({"cases": np.array(self.cases)}, {**facts, "counts": [*self.counts.items()]}, path)


def read_cases(path: Path, key: str) -> Cases | None:
    """Read the cases that :meth:`Cases.save` wrote under this key; None if there is no complete file."""
    try:
        arrays = load_arrays(path)
        facts = json.loads(str(arrays["facts"]))
        units = [(document, number) for document, number in facts["units"]]
        counts = Counter({tuple(labels): count for labels, count in facts.get("counts", ())})
        cases = Cases([*arrays["cases"]], units, facts["read"], facts["left_out"], counts)
        return cases if facts["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class CaseKind:
    """A measurement of sentences, case by case.

    Attributes:
        step: every ``step``-th sentence of a corpus is read.
        size: the maximum number of sentences per call of :meth:`cases`.
    """

    step: int
    size: ClassVar[int] = 1

    @property
    def depends_on_position(self) -> bool:
        """Whether cases depend on the numbers of their sentences."""
        return False

    def definition(self, offset: int) -> list[object]:
        """Return everything that cases depend on besides the model and the sentences, as JSON values; a version first.

        ``offset`` is the number of the first sentence of a part of the corpus, modulo ``step``.
        """
        raise NotImplementedError

    def cases(self, encoder: Encoder, numbered_sentences: Sequence[NumberedSentence]) -> Cases:
        """Return the cases of some sentences, given with their numbers in the corpus."""
        raise NotImplementedError

    def reduce(self, cases: Cases) -> Cases:
        """Drop cases that the result does not need; by default none."""
        return cases


class CaseRun(Protocol):
    """The interface of a measurement of a corpus. ``cases`` has the results for the sentences read so far."""

    cases: Cases

    def iter_progress(self) -> Generator[Progress, None, None]:
        """Read one batch, or one part, at a time, and yield the progress."""

    def discard_partial_results(self) -> None:
        """Remove saved partial results, unless later measurements may use them."""


class LocalRun:
    """A measurement in this process.

    ``first`` is the number of the first sentence of a part of a corpus. Cases are saved in ``folder`` periodically and
    at the end, so that the same measurement can resume.
    """

    def __init__(
        self, encoder: Encoder, corpus: Corpus, kind: CaseKind, *, first: int = 0, folder: Path | None = None
    ) -> None:
        self._encoder, self._kind, self._save_at = encoder, kind, time.monotonic() + SAVE_SECONDS
        self._sentences = take_every(kind.step, [*enumerate(corpus.sentences, first)], first)
        self._key, self.file = "", None
        if folder is not None:
            facts = [__version__, encoder.name, encoder.revision, corpus.digest, kind.step, first]
            self._key = hashlib.sha256(json.dumps([*facts, *kind.definition(0)]).encode()).hexdigest()
            self.file = folder / f"{self._key}.npz"
        saved_cases = read_cases(self.file, self._key) if self.file else None
        # Reduce again, because the earlier run may have stopped between adding and reducing.
        self.cases = kind.reduce(saved_cases) if saved_cases else Cases()

    def iter_progress(self) -> Generator[Progress, None, None]:
        """Read the sentences in batches, and yield the progress after each.

        Batches are small at first and grow up to the kind's ``size`` as long as they are fast.
        """
        size, max_size = min(FIRST_SIZE, self._kind.size), self._kind.size
        try:
            while batch := self._sentences[self.cases.sentences_read : self.cases.sentences_read + size]:
                start = time.monotonic()
                self.cases.add(self._kind.cases(self._encoder, batch))
                self.cases = self._kind.reduce(self.cases)
                if time.monotonic() - start < SHORT_SECONDS:
                    size = min(2 * size, max_size)
                if time.monotonic() > self._save_at:
                    self._save()
                yield Progress(self.cases.sentences_read, len(self._sentences))
        finally:
            self._save()

    def discard_partial_results(self) -> None:
        """Remove the file."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def _save(self) -> None:
        """Save the cases if they are complete. If that fails, warn and continue without saving."""
        if self.file is None or not self.cases.is_complete or not self.cases.sentences_read:
            return
        start = time.monotonic()
        try:
            self.cases.save(self.file, self._key)
        except OSError as error:  # the work continues without saving
            self.file = None
            warn(SumsUnsavedWarning, f"The results could not be saved: {error.strerror or error}.")
        end = time.monotonic()
        self._save_at = end + max(SAVE_SECONDS, SAVE_RATIO * (end - start))


class MeasurableCorpus(Protocol):
    """The interface of a corpus that can be measured."""

    @property
    def corpus(self) -> Corpus:
        """The corpus, without its sentences if workers read them."""

    @property
    def count(self) -> int:
        """The number of sentences."""

    @property
    def documents(self) -> list[str]:
        """The name of the document of each sentence."""

    @property
    def relations(self) -> Relations:
        """The labels of relations and parts of speech."""

    def sentences(self, numbers: Sequence[int]) -> list[Sentence]:
        """Return the sentences with these numbers, which must be sorted. Raises CorpusError."""

    def run(self, encoder: Encoder, kind: CaseKind, folder: Path | None = None) -> CaseRun:
        """Return a measurement of every ``kind.step``-th sentence, which is saved in ``folder``."""

    def open(self, source: Any) -> MeasurableCorpus:
        """Return another corpus that is read in the same way. Raises CorpusError."""

    def with_name(self, name: str) -> MeasurableCorpus:
        """Return the corpus under another name."""


@dataclass(frozen=True)
class LocalCorpus:
    """A corpus that this process reads."""

    corpus: Corpus

    @classmethod
    def from_source(cls, source: Source) -> LocalCorpus:
        """Return the corpus that ``source`` names. Raises CorpusError."""
        return cls(open_sentences(source))

    @property
    def count(self) -> int:
        """The number of sentences."""
        return len(self.corpus.sentences)

    @property
    def documents(self) -> list[str]:
        """The document of each sentence."""
        return [sentence.document for sentence in self.corpus.sentences]

    @property
    def relations(self) -> Relations:
        """The labels of relations and parts of speech."""
        return Relations(self.corpus.sentences)

    def sentences(self, numbers: Sequence[int]) -> list[Sentence]:
        """Return the sentences with these numbers."""
        return [self.corpus.sentences[number] for number in numbers]

    def run(self, encoder: Encoder, kind: CaseKind, folder: Path | None = None) -> LocalRun:
        """Return a measurement in this process."""
        return LocalRun(encoder, self.corpus, kind, folder=folder)

    def open(self, source: Source) -> LocalCorpus:
        """Return another corpus."""
        return self.from_source(source)

    def with_name(self, name: str) -> LocalCorpus:
        """Return the corpus under another name."""
        return LocalCorpus(replace(self.corpus, name=name))


def collect_cases(
    run: CaseRun, progress: Callable[[Progress], None], cancelled: Callable[[], bool] = lambda: False
) -> Cases:
    """Return the cases of a whole corpus. Raises Cancelled soon after ``cancelled`` returns True."""
    with closing(run.iter_progress()) as reports:
        for state in reports:
            progress(state)
            if cancelled():
                raise Cancelled("The study was stopped.", "Start it again.")
    return run.cases
