"""One study: every sentence once through the model and once through its untrained twin, reduced on the fly.

Of attention, memory holds the sums and one batch, whatever the size of the corpus. The numbers do not depend on the
size of a batch nor on the order: a sentence's attention is the same in any batch, counts are whole, sums are float64.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from mha_viz.analysis.profile import DEFINITIONS, Profile
from mha_viz.analysis.reduce import Batch
from mha_viz.analysis.syntax import Relations, Tree
from mha_viz.errors import Cancelled, CorpusError
from mha_viz.models.encoder import Encoder
from mha_viz.study.gap import add_gap
from mha_viz.study.plan import BATCH, Plan, batches, plan
from mha_viz.study.tables import Measured, facts, tables
from mha_viz.study.tally import Spread, Tally
from mha_viz.text import WordPieces
from mha_viz.treebank import Corpus, Gap

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
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        twin = encoder.untrained(SEED)
        tallies = [run.through(which, reader, pool.map) for which, reader in zip(PASSES, (encoder, twin), strict=True)]
    measured = Measured(corpus, run.relations, *tallies)
    profile = Profile(facts(encoder, corpus, run.plan, DEFINITIONS, SEED), *tables(measured, encoder))
    run.forget()
    return profile


def one_pass(encoder: Encoder, corpus: Corpus | Gap) -> Tally:
    """The sums of a model over a corpus, without its untrained twin."""
    run = _Run(encoder, corpus, None, BATCH, lambda _: None, lambda: False)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return run.through(PASSES[0], encoder, pool.map)


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
        rows = len(corpus.rows) if isinstance(corpus, Gap) else 0
        self.work = [len(s) if s else 0 for s in self.plan.sentences], [len(p) for _, p in self.plan.chunks]
        self.total = len(PASSES) * (sum(map(sum, self.work)) + rows)
        self.done = 0
        self._saved = time.monotonic()
        if self.total == 0:
            raise CorpusError(f"Nothing of {corpus.name} can be read.", "; ".join(self.plan.left_out[:3]))

    def through(self, which: str, encoder: Encoder, spread: Spread) -> Tally:
        """One pass of all sentences, from where it was left."""
        sentences, chunks = len(self.plan.sentences), len(self.plan.chunks)
        rows = len(self.corpus.rows) if isinstance(self.corpus, Gap) else sentences
        tally = Tally(encoder.layers * encoder.heads, self.relations, rows, chunks)
        kept = self.resume / f".{which}.npz" if self.resume else None
        if kept:
            tally.resume(kept, self.key)
        try:
            for seen in self._steps(encoder, tally, spread):
                self.done += seen
                self.progress(Progress(self.done, self.total))
                if self.cancelled():
                    raise Cancelled("The study was stopped.", "What is done is kept; start it again to go on.")
                if kept and time.monotonic() - self._saved > SAVE_SECONDS:
                    tally.save(kept, self.key)
                    self._saved = time.monotonic()
        finally:
            if kept:
                tally.save(kept, self.key)
        return tally

    def _steps(self, encoder: Encoder, tally: Tally, spread: Spread) -> Iterator[int]:
        """The work of a pass, batch by batch; yields the pieces that each has read."""
        lengths, chunk_lengths = self.work
        yield sum(n for n, done in zip(lengths, tally.done, strict=False) if done)
        yield sum(n for n, done in zip(chunk_lengths, tally.chunks_done, strict=True) if done)
        if isinstance(self.corpus, Gap):
            yield from add_gap(encoder, self.corpus, tally)
            return
        for numbers in batches(self.plan.sentences, _left(tally.done), self.size):
            tally.add(_batch(encoder, self.plan.sentences, numbers), self.trees, spread)
            yield sum(lengths[number] for number in numbers)
        chunks = {number: chunk for number, (chunk, _) in enumerate(self.plan.chunks)}
        pieces = [text for _, text in self.plan.chunks]
        for numbers in batches(pieces, _left(tally.chunks_done), self.size):
            tally.add_chunks(_batch(encoder, pieces, numbers), chunks)
            yield sum(chunk_lengths[number] for number in numbers)

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
    pieces = tuple(text for number in numbers if (text := texts[number]) is not None)
    weights = encoder.batch(pieces)
    return Batch(weights.reshape(-1, *weights.shape[2:]), pieces, numbers)
