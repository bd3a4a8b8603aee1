"""Cases over a corpus: the engine of every measure that keeps cases, one row of numbers each, in place of sums.

A measure is a :class:`CaseKind`, a value without a model: which sentences it reads, the cases of some of them, and what
they depend on. This process measures it, and continues after a stop from a file, or the workers of a cluster
(:mod:`mha_viz.study.cluster.cases`), with the same cases in the same order, whatever the parts. Cases that are sums
(:class:`mha_viz.study.corpus_effects.OutputSums`) are equal up to rounding, since those of parts are added.
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
from mha_viz.files import arrays_in
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.run import SAVE_SECONDS, Progress
from mha_viz.study.sums import write
from mha_viz.version import __version__

FIRST_SIZE = 25  # sentences that are handed over at first, at most
SHORT = 1.0  # seconds: after a step that takes less, twice as many are handed over
SAVES = 10  # times what a save took pass before the next one
NumberedSentence = tuple[int, Sentence]


@dataclass
class Cases:
    """For each case its values, its document and the number of its sentence; how many sentences were read, and how many
    words or sentences were left out; ``counts``: how often what labels name was seen. ``unsaved``: why results of
    shards could not be saved, and how many. ``whole`` is False after an addition that was interrupted."""

    cases: list[Numbers] = field(default_factory=list)
    units: list[tuple[str, int]] = field(default_factory=list)
    read: int = 0
    left_out: int = 0
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    unsaved: Counter[str] = field(default_factory=Counter)
    whole: bool = True

    def add(self, later: Cases) -> None:
        """Add what was measured of later sentences."""
        before, self.whole = self.whole, False
        self.cases += later.cases
        self.units += later.units
        self.read += later.read
        self.left_out += later.left_out
        self.counts.update(later.counts)
        self.unsaved.update(later.unsaved)
        self.whole = before

    def save(self, path: Path, key: str) -> None:
        """Write it to one file atomically. ``key`` identifies what it depends on. Raises OSError."""
        facts = {"key": key, "units": self.units, "read": self.read, "left_out": self.left_out}
        write({"cases": np.array(self.cases)}, {**facts, "counts": [*self.counts.items()]}, path)


def read_cases(path: Path, key: str) -> Cases | None:
    """What :meth:`Cases.save` wrote under the same key; None if there is no file, or no complete one."""
    try:
        arrays = arrays_in(path)
        facts = json.loads(str(arrays["facts"]))
        units = [(document, number) for document, number in facts["units"]]
        counts = Counter({tuple(labels): count for labels, count in facts.get("counts", ())})
        cases = Cases([*arrays["cases"]], units, facts["read"], facts["left_out"], counts)
        return cases if facts["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class CaseKind:
    """A measurement of sentences, case by case. ``step``: of the sentences of a corpus, every ``step``-th is read;
    ``size``: how many are handed over together, at most."""

    step: int
    size: ClassVar[int] = 1

    @property
    def is_placed(self) -> bool:
        """Whether cases depend on the numbers of their sentences."""
        return False

    def definition(self, offset: int) -> list[object]:
        """Everything that cases depend on besides the model and the sentences, as values that JSON can hold.
        ``offset``: the number of the first sentence of a part of the corpus, modulo ``step``."""
        raise NotImplementedError

    def cases(self, encoder: Encoder, numbered: Sequence[NumberedSentence]) -> Cases:
        """Return the cases of some sentences with their numbers in the corpus."""
        raise NotImplementedError

    def reduced(self, cases: Cases) -> Cases:
        """Keep what is needed of the cases so far: by default all."""
        return cases


class CaseRun(Protocol):
    """One measurement of a corpus: ``cases`` of the sentences read so far."""

    cases: Cases

    def reports(self) -> Generator[Progress, None, None]:
        """Read one sentence, or one part, after the other."""

    def forget(self) -> None:
        """Remove what was saved to continue from."""


class RunHere:
    """A measurement in this process. ``first``: the number of the first sentence of a part of a corpus; ``folder``:
    where cases are saved now and then and at the end, and from which the same measurement continues."""

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
        earlier = read_cases(self.file, self._key) if self.file else None
        self.cases = kind.reduced(earlier) if earlier else Cases()  # a stop may be between an addition and this

    def reports(self) -> Generator[Progress, None, None]:
        """Read some sentences after the other: few at first, and as many as ``size`` if that is fast."""
        size, most = min(FIRST_SIZE, self._kind.size), self._kind.size
        try:
            while some := self._sentences[self.cases.read : self.cases.read + size]:
                began = time.monotonic()
                self.cases.add(self._kind.cases(self._encoder, some))
                self.cases = self._kind.reduced(self.cases)
                if time.monotonic() - began < SHORT:
                    size = min(2 * size, most)
                if time.monotonic() > self._save_at:
                    self._save()
                yield Progress(self.cases.read, len(self._sentences))
        finally:
            self._save()

    def forget(self) -> None:
        """Remove the file."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def _save(self) -> None:
        if self.file is None or not self.cases.whole or not self.cases.read:
            return
        began = time.monotonic()
        try:
            self.cases.save(self.file, self._key)
        except OSError as error:  # the work continues without saving
            self.file = None
            warn(SumsUnsavedWarning, f"What was measured could not be saved: {error.strerror or error}.")
        ended = time.monotonic()
        self._save_at = ended + max(SAVE_SECONDS, SAVES * (ended - began))


class Readable(Protocol):
    """A corpus that can be measured: ``corpus`` lacks its sentences, if workers read them."""

    @property
    def corpus(self) -> Corpus:
        """The corpus, or what it is called and has."""

    @property
    def count(self) -> int:
        """How many sentences there are."""

    @property
    def documents(self) -> list[str]:
        """The document of each sentence."""

    @property
    def relations(self) -> Relations:
        """The labels that it has."""

    def sentences(self, numbers: Sequence[int]) -> list[Sentence]:
        """Return the sentences with these numbers, which are sorted. Raises CorpusError."""

    def run(self, encoder: Encoder, kind: CaseKind, folder: Path | None = None) -> CaseRun:
        """Return the measurement of every ``kind.step``-th sentence, which is saved in ``folder``."""

    def open(self, source: Any) -> Readable:
        """Another corpus that is read in the same way. Raises CorpusError."""

    def named(self, name: str) -> Readable:
        """Return the corpus under another name."""


@dataclass(frozen=True)
class ReadHere:
    """A corpus that this process reads."""

    corpus: Corpus

    @classmethod
    def of(cls, source: Source) -> ReadHere:
        """Return the corpus that ``source`` names. Raises CorpusError."""
        return cls(open_sentences(source))

    @property
    def count(self) -> int:
        """How many sentences there are."""
        return len(self.corpus.sentences)

    @property
    def documents(self) -> list[str]:
        """The document of each sentence."""
        return [sentence.document for sentence in self.corpus.sentences]

    @property
    def relations(self) -> Relations:
        """The labels that it has."""
        return Relations(self.corpus.sentences)

    def sentences(self, numbers: Sequence[int]) -> list[Sentence]:
        """Return the sentences with these numbers."""
        return [self.corpus.sentences[number] for number in numbers]

    def run(self, encoder: Encoder, kind: CaseKind, folder: Path | None = None) -> RunHere:
        """Return a measurement in this process."""
        return RunHere(encoder, self.corpus, kind, folder=folder)

    def open(self, source: Source) -> ReadHere:
        """Another corpus."""
        return self.of(source)

    def named(self, name: str) -> ReadHere:
        """Return the corpus under another name."""
        return ReadHere(replace(self.corpus, name=name))


def completed_cases(
    run: CaseRun, progress: Callable[[Progress], None], cancelled: Callable[[], bool] = lambda: False
) -> Cases:
    """Return the cases of a whole corpus. Raises Cancelled soon after ``cancelled`` returns True."""
    with closing(run.reports()) as reports:
        for so_far in reports:
            progress(so_far)
            if cancelled():
                raise Cancelled("The study was stopped.", "Start it again.")
    return run.cases
