"""One study: every sentence once through the model and once through its untrained twin, reduced on the fly.

Of attention, memory holds the sums and a batch of each worker, whatever the size of the corpus. The numbers do not
depend on the size of a batch, nor on the order, nor on the number of workers: a sentence's attention is the same in any
batch, counts are whole, and what is added over sentences is float64.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis.profile import DEFINITIONS, Profile
from mha_viz.analysis.reduce import Batch
from mha_viz.analysis.syntax import Relations, Tree
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.errors import Cancelled, CorpusError
from mha_viz.models.cores import MOST, turn
from mha_viz.models.encoder import Encoder
from mha_viz.study.gap import add_gap
from mha_viz.study.plan import BATCH, Plan, batches, plan
from mha_viz.study.tables import Measured, facts, tables
from mha_viz.study.tally import Tally
from mha_viz.text import WordPieces

ROWS = 30  # of GAP in one part of the work
AHEAD = 2 * MOST  # parts that are begun before their turn
SAVE_SECONDS = 5.0  # between two savings of the sums
SEED = 0  # of the untrained twin
PASSES = ("trained", "untrained")


class Progress(NamedTuple):
    """How far a study is: pieces of text read so far, and in all passes together."""

    done: int
    total: int

    @property
    def fraction(self) -> float:
        """The share that is done, 0 to 1."""
        return self.done / self.total if self.total else 1.0


def study(
    encoder: Encoder,
    corpus: Corpus | Gap,
    *,
    resume: Path | None = None,
    batch: int = BATCH,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """The profile of a model over a corpus.

    ``resume`` names a folder where finished sums are kept, so that a study that was stopped goes on; they are deleted
    at the end. ``batch`` is the most pieces of text in one pass: it changes speed and memory, and no number.
    ``progress`` is called after each batch. Raises Cancelled soon after ``cancelled`` says so, CorpusError when no
    sentence can be read.
    """
    run = _Run(encoder, corpus, resume, batch, progress, cancelled)
    twin = encoder.untrained(SEED)
    with turn.crew() as crew:
        tallies = [run.through(which, reader, crew) for which, reader in zip(PASSES, (encoder, twin), strict=True)]
    measured = Measured(corpus, run.relations, *tallies)
    profile = Profile(facts(encoder, corpus, run.plan, DEFINITIONS, SEED), *tables(measured, encoder))
    run.forget()
    return profile


def one_pass(encoder: Encoder, corpus: Corpus | Gap) -> Tally:
    """The sums of a model over a corpus, without its untrained twin."""
    run = _Run(encoder, corpus, None, BATCH, lambda _: None, lambda: False)
    with turn.crew() as crew:
        return run.through(PASSES[0], encoder, crew)


class _Run:
    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus | Gap,
        resume: Path | None,
        size: int,
        progress: Callable[[Progress], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self.corpus, self.resume, self.size = corpus, resume, size
        self.progress, self.cancelled = progress, cancelled
        self.plan = plan(encoder, corpus) if isinstance(corpus, Corpus) else Plan((), (), ())
        self.relations = Relations(corpus.sentences if isinstance(corpus, Corpus) else ())
        self.trees = _trees(corpus, self.relations)
        self.key = {
            "model": [encoder.name, encoder.revision],
            "corpus": corpus.digest,
            "definitions": DEFINITIONS,
            "seed": SEED,
        }
        lengths = (
            [1] * len(corpus.rows) if isinstance(corpus, Gap) else [len(s) if s else 0 for s in self.plan.sentences]
        )
        self.work = np.array(lengths, np.int64), np.array([len(text) for _, text in self.plan.chunks], np.int64)
        self.total = len(PASSES) * int(sum(lengths.sum() for lengths in self.work))
        self.done = 0
        self._saved = time.monotonic()
        if self.total == 0:
            raise CorpusError(f"Nothing of {corpus.name} can be read.", "; ".join(self.plan.left_out[:3]))

    def through(self, which: str, encoder: Encoder, crew: Executor) -> Tally:
        """One pass of all sentences, from where it was left."""
        tally = self._tally(encoder)
        kept = self.resume / f".{which}.npz" if self.resume else None
        if kept:
            tally.resume(kept, self.key)
        self._report(tally)
        begun: deque[Future[Tally]] = deque()
        try:
            for part in self._parts(encoder, tally):
                begun.append(crew.submit(part))
                if len(begun) > AHEAD:
                    self._take(begun, tally, kept)
            while begun:
                self._take(begun, tally, kept)
        finally:
            for future in begun:  # what was begun when the study was stopped is not lost
                if not future.cancel() and future.exception() is None:
                    tally.merge(future.result())
            if kept and tally.whole:
                tally.save(kept, self.key)
        return tally

    def _take(self, begun: deque[Future[Tally]], tally: Tally, kept: Path | None) -> None:
        """Take in the first of the parts that were begun, once it is done."""
        part = begun[0].result()
        begun.popleft()
        tally.merge(part)
        self._report(part)
        if kept and time.monotonic() - self._saved > SAVE_SECONDS:
            tally.save(kept, self.key)
            self._saved = time.monotonic()

    def _tally(self, encoder: Encoder) -> Tally:
        sentences = len(self.corpus.rows) if isinstance(self.corpus, Gap) else len(self.plan.sentences)
        return Tally(encoder.layers * encoder.heads, self.relations, sentences, len(self.plan.chunks))

    def _report(self, sums: Tally) -> None:
        """The pieces of text, or rows of GAP, that are in these sums are done now."""
        lengths, chunk_lengths = self.work
        self.done += int(lengths[sums.done].sum() + chunk_lengths[sums.chunks_done].sum())
        self.progress(Progress(self.done, self.total))
        if self.cancelled():
            raise Cancelled("The study was stopped.", "What is done is kept; start it again to go on.")

    def _parts(self, encoder: Encoder, tally: Tally) -> Iterator[Callable[[], Tally]]:
        """The work that is left of a pass, in parts that do not depend on each other: each makes sums of its own."""
        if isinstance(self.corpus, Gap):
            left = _left(tally.done)
            for start in range(0, len(left), ROWS):
                yield partial(self._rows, encoder, self.corpus, left[start : start + ROWS])
            return
        heads = encoder.layers * encoder.heads
        for numbers in batches(self.plan.sentences, _left(tally.done), heads, self.size):
            yield partial(self._sentences, encoder, numbers)
        for numbers in batches([text for _, text in self.plan.chunks], _left(tally.chunks_done), heads, self.size):
            yield partial(self._chunks, encoder, numbers)

    def _rows(self, encoder: Encoder, gap: Gap, numbers: Sequence[int]) -> Tally:
        part = self._tally(encoder)
        add_gap(encoder, gap, numbers, part)
        return part

    def _sentences(self, encoder: Encoder, numbers: tuple[int, ...]) -> Tally:
        part = self._tally(encoder)
        part.add(_batch(encoder, [self.plan.sentences[number] for number in numbers], numbers), self.trees)
        return part

    def _chunks(self, encoder: Encoder, numbers: tuple[int, ...]) -> Tally:
        part = self._tally(encoder)
        chunks = [self.plan.chunks[number] for number in numbers]
        part.add_chunks(
            _batch(encoder, [text for _, text in chunks], numbers),
            dict(zip(numbers, (c for c, _ in chunks), strict=True)),
        )
        return part

    def forget(self) -> None:
        """The study is finished: its unfinished sums are not needed any more."""
        for which in PASSES if self.resume else ():
            (self.resume / f".{which}.npz").unlink(missing_ok=True)  # type: ignore[operator]


def _left(done: Any) -> list[int]:
    return [number for number, was in enumerate(done) if not was]


def _trees(corpus: Corpus | Gap, relations: Relations) -> dict[int, Tree]:
    if not isinstance(corpus, Corpus) or not corpus.has_trees:
        return {}
    return {number: relations.tree(sentence) for number, sentence in enumerate(corpus.sentences)}


def _batch(encoder: Encoder, texts: Sequence[WordPieces | None], numbers: tuple[int, ...]) -> Batch:
    pieces = tuple(text for text in texts if text is not None)
    weights = encoder.batch(pieces)
    return Batch(weights.reshape(-1, *weights.shape[2:]), pieces, numbers)
