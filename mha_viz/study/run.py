"""A study: every sentence is read once by the model and once by its untrained copy, and only sums are stored.

Memory holds the sums and one batch of attention per worker, whatever the size of the corpus. The results do not depend
on the batch size, the order or the number of workers: a sentence has the same attention in any batch, counts are
integers, and sums over sentences are float64.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mha_viz.analysis.examples import spans
from mha_viz.analysis.intervals import Documents, documents_of
from mha_viz.analysis.profile import DEFINITIONS, Profile
from mha_viz.analysis.reduce import Batch
from mha_viz.analysis.syntax import DIRECTIONS, HALVES, Relations, Tree, cases, gold
from mha_viz.corpus.excerpts import excerpts
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.errors import Cancelled, CorpusError
from mha_viz.models.cores import MOST, turn
from mha_viz.models.encoder import Encoder
from mha_viz.study.gap import add_gap
from mha_viz.study.plan import BATCH, Plan, batches, plan
from mha_viz.study.tables import GoldCases, Measured, counts, facts, tables
from mha_viz.study.tally import Tally
from mha_viz.text import WordPieces

GAP_ROWS = 30  # rows of a GAP table per task
MAX_SUBMITTED = 2 * MOST  # tasks that are submitted before the first of them is merged
SAVE_SECONDS = 5.0  # seconds between two writes of the sums
SEED = 0  # seed of the untrained weights
PASSES = ("trained", "untrained")


class Progress(NamedTuple):
    """The progress of a study: pieces of text that are done, and the total of both passes.

    On a cluster ``done`` and ``total`` are sentences; ``rate`` is how many are measured per second, ``seconds_left``
    the estimated time left, None if there is no estimate yet; ``by_worker`` how many each worker has measured, by
    address, and ``lost`` how many workers were lost.
    """

    done: int
    total: int
    rate: float = 0.0
    seconds_left: float | None = None
    by_worker: Mapping[str, int] = MappingProxyType({})
    lost: int = 0

    @property
    def fraction(self) -> float:
        """The fraction that is done, 0 to 1."""
        return self.done / self.total if self.total else 1.0


def study(
    encoder: Encoder,
    corpus: Corpus | Gap,
    *,
    resume: Path | None = None,
    batch: int = BATCH,
    control: bool = True,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """The profile of a model over a corpus.

    ``control``: whether the untrained model is measured too; without it, the tables lack the accuracy of the untrained
    model.

    ``resume``: a folder for intermediate sums, from which a stopped study continues; they are deleted at the end.
    ``batch``: the maximum number of pieces per batch, which affects speed and memory but no result. ``progress`` is
    called after each batch. Raises Cancelled soon after ``cancelled`` returns True, and CorpusError when no sentence
    can be read.
    """
    passes = PASSES if control else PASSES[:1]
    run = Run(encoder, corpus, resume, batch, progress, cancelled, passes)
    run.check()
    models = (encoder, encoder.untrained(SEED)) if control else (encoder,)
    with turn.crew() as workers:
        trained, *untrained = [run.measure(name, model, workers) for name, model in zip(passes, models, strict=True)]
    gold = run.gold(trained) if isinstance(corpus, Corpus) and corpus.has_trees else None
    measured = Measured(corpus, run.relations, run.documents, trained, untrained[0] if control else None, gold)
    tables_of_model, tables_of_untrained = tables(measured, encoder)
    sentences = _sentences(corpus, tables_of_model)
    facts_of_study = facts(encoder, corpus, counts(corpus, run.plan), run.plan.left_out, SEED)
    profile = Profile(facts_of_study, tables_of_model, tables_of_untrained, sentences)
    run.delete_sums()
    return profile


def one_pass(encoder: Encoder, corpus: Corpus | Gap) -> Tally:
    """The sums of a model over a corpus, for its trained weights only."""
    run = Run(encoder, corpus, passes=PASSES[:1])
    run.check()
    with turn.crew() as workers:
        return run.measure(PASSES[0], encoder, workers)


class Run:
    """The passes over a corpus, or over a part of one that begins with the sentence numbered ``first`` and contains the
    given ``documents``."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus | Gap,
        resume: Path | None = None,
        size: int = BATCH,
        progress: Callable[[Progress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
        passes: Sequence[str] = PASSES,
        first: int = 0,
        documents: Documents | None = None,
    ) -> None:
        self.encoder, self.corpus, self.resume, self.size = encoder, corpus, resume, size
        self.progress, self.cancelled, self.passes, self.first = progress, cancelled, passes, first
        self.plan = plan(encoder, corpus, first) if isinstance(corpus, Corpus) else Plan((), (), ())
        self.relations = Relations(corpus.sentences if isinstance(corpus, Corpus) else ())
        self.trees = _trees(corpus, self.relations, first)
        self.documents = documents or _documents(corpus, self.relations, encoder.layers * encoder.heads)
        self.key = {
            "model": [encoder.name, encoder.revision],
            "corpus": corpus.digest,
            "definitions": DEFINITIONS,
            "seed": SEED,
        }
        lengths = (
            [1] * len(corpus.rows) if isinstance(corpus, Gap) else [len(s) if s else 0 for s in self.plan.sentences]
        )
        self.lengths = np.array(lengths, np.int64), np.array([len(text) for _, text in self.plan.chunks], np.int64)
        self.total = len(passes) * int(sum(lengths.sum() for lengths in self.lengths))
        self.done = 0
        self._saved = time.monotonic()

    def check(self) -> None:
        """Raise CorpusError if there is nothing to measure."""
        if self.total == 0:
            raise CorpusError(f"Nothing of {self.corpus.name} can be read.", "; ".join(self.plan.left_out[:3]))

    def gold(self, tally: Tally) -> GoldCases:
        """The results that follow from the annotation of the sentences in these sums alone."""
        assert isinstance(self.corpus, Corpus)
        read = [(self.first + at, self.corpus.sentences[at]) for at in np.flatnonzero(tally.done).tolist()]
        return GoldCases(gold(self.relations, read), cases(self.relations, read, self.documents, self.first))

    def measure(self, pass_name: str, encoder: Encoder, workers: Executor) -> Tally:
        """One pass over all sentences, continued from the stored sums if there are any."""
        tally = self._tally(encoder)
        sums_file = self.resume / f".{pass_name}.npz" if self.resume else None
        if sums_file:
            tally.resume(sums_file, self.key)
        self._report(tally)
        submitted: deque[Future[Tally]] = deque()
        try:
            for part in self._parts(encoder, tally):
                submitted.append(workers.submit(part))
                if len(submitted) > MAX_SUBMITTED:
                    self._merge_first(submitted, tally, sums_file)
            while submitted:
                self._merge_first(submitted, tally, sums_file)
        finally:
            for future in submitted:  # tasks that have finished when the study is stopped are merged too
                if not future.cancel() and future.exception() is None:
                    tally.merge(future.result())
            if sums_file and tally.whole:
                tally.save(sums_file, self.key)
        return tally

    def _merge_first(self, submitted: deque[Future[Tally]], tally: Tally, sums_file: Path | None) -> None:
        """Wait for the first submitted task and merge its sums."""
        part = submitted[0].result()
        submitted.popleft()
        tally.merge(part)
        self._report(part)
        if sums_file and time.monotonic() - self._saved > SAVE_SECONDS:
            tally.save(sums_file, self.key)
            self._saved = time.monotonic()

    def _tally(self, encoder: Encoder, sentences: Sequence[int] | None = None, whole: Tally | None = None) -> Tally:
        heads, chunks = encoder.layers * encoder.heads, len(self.plan.chunks)
        evidence = encoder is self.encoder and isinstance(self.corpus, Corpus)
        return Tally(heads, self.relations, self.documents, chunks, sentences, evidence, self.first, whole)

    def _report(self, sums: Tally) -> None:
        """Report the pieces of text, or rows of GAP, in these sums as done."""
        lengths, chunk_lengths = self.lengths
        self.done += int(lengths[sums.done].sum() + chunk_lengths[sums.chunks_done].sum())
        self.progress(Progress(self.done, self.total))
        if self.cancelled():
            raise Cancelled("The study was stopped.", "The work so far is saved; start the study again to continue.")

    def _parts(self, encoder: Encoder, tally: Tally) -> Iterator[Callable[[], Tally]]:
        """The remaining work of a pass as independent tasks, each of which returns its own sums."""
        if isinstance(self.corpus, Gap):
            left = _remaining(tally.done)
            for start in range(0, len(left), GAP_ROWS):
                yield partial(self._rows, encoder, self.corpus, left[start : start + GAP_ROWS])
            return
        heads = encoder.layers * encoder.heads
        for numbers in batches(self.plan.sentences, _remaining(tally.done), heads, self.size):
            yield partial(self._sentences, encoder, tally, numbers)
        for numbers in batches([text for _, text in self.plan.chunks], _remaining(tally.chunks_done), heads, self.size):
            yield partial(self._chunks, encoder, tally, numbers)

    def _rows(self, encoder: Encoder, gap: Gap, numbers: Sequence[int]) -> Tally:
        part = self._tally(encoder, numbers)
        add_gap(encoder, gap, numbers, part)
        return part

    def _sentences(self, encoder: Encoder, whole: Tally, places: tuple[int, ...]) -> Tally:
        numbers = tuple(self.first + place for place in places)
        part = self._tally(encoder, numbers, whole)
        part.add(_batch(encoder, [self.plan.sentences[place] for place in places], numbers), self.trees)
        return part

    def _chunks(self, encoder: Encoder, whole: Tally, numbers: tuple[int, ...]) -> Tally:
        chunks = [self.plan.chunks[number] for number in numbers]
        part = self._tally(encoder, [chunk.numbers[0] for chunk, _ in chunks], whole)
        part.add_chunks(
            _batch(encoder, [text for _, text in chunks], numbers),
            dict(zip(numbers, (c for c, _ in chunks), strict=True)),
        )
        return part

    def delete_sums(self) -> None:
        """Delete the intermediate sums of a finished study."""
        for pass_name in self.passes if self.resume else ():
            (self.resume / f".{pass_name}.npz").unlink(missing_ok=True)  # type: ignore[operator]


def _sentences(corpus: Corpus | Gap, tables_of_model: Mapping[str, Any]) -> tuple[Sentence, ...]:
    """The sentences of the table ``evidence``."""
    if not isinstance(corpus, Corpus) or not len(tables_of_model["evidence"]):
        return ()
    return excerpts(corpus.sentences, spans(tables_of_model["evidence"]))


def _remaining(done: Any) -> list[int]:
    return [number for number, is_done in enumerate(done) if not is_done]


def _trees(corpus: Corpus | Gap, relations: Relations, first: int) -> dict[int, Tree]:
    if not isinstance(corpus, Corpus) or not corpus.has_trees:
        return {}
    return {number: relations.tree(sentence) for number, sentence in enumerate(corpus.sentences, first)}


def _documents(corpus: Corpus | Gap, relations: Relations, heads: int) -> Documents:
    if isinstance(corpus, Gap):
        return Documents([""] * len(corpus.rows))
    return documents_of(corpus.sentences, len(HALVES) * len(DIRECTIONS) * len(relations.names) * heads)


def _batch(encoder: Encoder, texts: Sequence[WordPieces | None], numbers: tuple[int, ...]) -> Batch:
    pieces = tuple(text for text in texts if text is not None)
    weights = encoder.batch(pieces)
    return Batch(weights.reshape(-1, *weights.shape[2:]), pieces, numbers)
