"""Run a study: the model and its untrained copy read every sentence once, and only sums are stored.

Memory holds the sums and one batch of attention per worker, whatever the size of the corpus. The results do not depend
on the batch size, the order or the number of workers: a sentence has the same attention in any batch, counts are
integers, and sums over sentences are float64.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.evidence import Selection
from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.syntax import count_cases, count_gold
from mha_viz.corpus.excerpts import SentenceSpan, extract_excerpts
from mha_viz.corpus.treebank import Corpus, Gap, Sentence
from mha_viz.errors import Cancelled, CorpusError
from mha_viz.models.reading.cores import MAX_WORKERS, pass_lock
from mha_viz.models.reading.encoder import Encoder
from mha_viz.study.measures import PROFILE_SUMS, ShardTexts, SumKind, count_measured
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.sums import MAX_LEFT_OUT_LINES, PASSES, Array, Sums, number_labels, read
from mha_viz.study.tables import build_profile

MAX_SUBMITTED = 2 * MAX_WORKERS  # batches that are submitted before the first of them is merged
SAVE_SECONDS = 5.0  # seconds between two writes of the sums
SEED = 0  # seed of the untrained weights
SUMS_FILE = ".sums.npz"  # the sums of an unfinished study, in the folder of its profile


class Progress(NamedTuple):
    """The progress of a study: tokens that were read, and the total of both passes.

    Attributes:
        done, total: tokens; on a cluster, sentences.
        rate: on a cluster, the number of sentences measured per second.
        seconds_left: the estimated time left; None if there is no estimate yet.
        by_worker: the number of sentences that each worker has measured, by its address.
        lost: the number of workers that were lost.
    """

    done: int
    total: int
    rate: float = 0.0
    seconds_left: float | None = None
    by_worker: Mapping[str, int] = MappingProxyType({})
    lost: int = 0

    @property
    def fraction(self) -> float:
        """The completed fraction, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    def scale_to_passes(self, number: int, passes: int) -> Progress:
        """Return the progress over all ``passes`` of the same length; this is the pass with this number, from 0."""
        return self._replace(done=number * self.total + self.done, total=passes * self.total)


def study(
    encoder: Encoder,
    corpus: Corpus | Gap,
    *,
    resume: Path | None = None,
    batch: int = DEFAULT_BATCH,
    control: bool = True,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Profile:
    """Measure the profile of a model over a corpus.

    Args:
        encoder: the model.
        corpus: the sentences.
        resume: a folder for intermediate sums, so that a stopped study can resume; they are deleted at the end.
        batch: the maximum number of tokens per batch, which affects speed and memory but no result.
        control: whether the untrained model is measured too; otherwise the tables lack its accuracy.
        progress: called after each batch.
        cancelled: returns True to stop the study.

    Raises Cancelled soon after ``cancelled`` returns True, and CorpusError when no sentence can be read.
    """
    models = (encoder, encoder.untrained(SEED)) if control else (encoder,)
    with _open_sums_file(resume) as file:
        sums = _check_and_measure(StudyRun(models, corpus, file, batch, progress, cancelled))

        def sentences(spans: Sequence[SentenceSpan]) -> tuple[Sentence, ...]:
            return extract_excerpts(corpus.sentences, spans) if isinstance(corpus, Corpus) else ()

        return build_profile(encoder, corpus, sums, SEED, sentences)


def measure_sums(
    models: Sequence[Encoder],
    corpus: Corpus,
    kind: SumKind,
    *,
    resume: Path | None = None,
    keep: bool = False,
    batch: int = DEFAULT_BATCH,
    progress: Callable[[Progress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Sums:
    """Measure the sums of a kind over a corpus, with a model and, if given, its untrained copy.

    With ``keep``, the sums stay in ``resume``, so that the next call finds them there. The other arguments and
    the errors are as for :func:`study`.
    """
    with _open_sums_file(resume, keep) as file:
        return _check_and_measure(StudyRun(models, corpus, file, batch, progress, cancelled, kind=kind))


@contextmanager
def _open_sums_file(folder: Path | None, keep: bool = False) -> Iterator[Path | None]:
    """Yield the file for intermediate sums, and delete it when the block ends without an error, unless ``keep``."""
    file = folder / SUMS_FILE if folder else None
    yield file
    if file and not keep:
        file.unlink(missing_ok=True)


def _check_and_measure(run: StudyRun) -> Sums:
    """Measure the sums of a run. Raises CorpusError if there is nothing to measure."""
    run.check()
    return run.measure()


def measure_one_pass(encoder: Encoder, corpus: Corpus | Gap) -> Sums:
    """Measure the sums of a model over a corpus with its trained weights only."""
    run = StudyRun((encoder,), corpus)
    run.check()
    return run.measure_passes()


class StudyRun:
    """The passes over a corpus, or over a shard of one that begins with the sentence numbered ``first``.

    There is a pass for each of ``models``, the trained and the untrained. A run that was stopped continues from the
    sums in ``file``.
    """

    def __init__(
        self,
        models: Sequence[Encoder],
        corpus: Corpus | Gap,
        file: Path | None = None,
        size: int = DEFAULT_BATCH,
        progress: Callable[[Progress], None] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
        first: int = 0,
        number: int = 0,
        kind: SumKind = PROFILE_SUMS,
    ) -> None:
        """Prepare a run.

        ``size`` is the maximum number of tokens per batch, ``number`` the place of the shard in the corpus, and
        ``kind`` the sums to measure.
        """
        self.models, self.corpus, self.file, self.size = dict(zip(PASSES, models, strict=False)), corpus, file, size
        self.progress, self.cancelled, self.number, self.kind = progress, cancelled, number, kind
        self.heads = models[0].layers * models[0].heads
        self.shard = kind.shard(models[0], corpus, first)
        self.texts = kind.texts(self.shard)
        self.total = len(self.models) * sum(sum(texts.lengths) for texts in self.texts.values())
        self.done = 0
        model = [models[0].name, models[0].revision]
        self.key = json.dumps([model, corpus.digest, SEED, list(self.models), *kind.definition()])
        self._last_save = -math.inf  # save the first sums at once, so that a slow start is not lost

    def check(self) -> None:
        """Raise CorpusError if there is nothing to measure."""
        if self.total == 0:
            raise CorpusError(f"Nothing in {self.corpus.name} can be read.", "; ".join(self.shard.plan.left_out[:3]))

    def measure(self) -> Sums:
        """Measure the sums of all passes, and count the gold cases and the text that was measured.

        Raises Cancelled.
        """
        sums = self.measure_passes()
        if self.shard.trees:
            sums.arrays |= self._count_gold(sums)
        corpus, lines = self.shard.corpus, self.shard.plan.left_out
        unread = sum(pieces is None for pieces in self.shard.plan.sentences)
        corpus_lines = corpus.left_out if isinstance(corpus, Corpus) else ()
        # A study lists left-out text in this order: sentences, chunks, annotation.
        reasons = enumerate((lines[:unread], lines[unread:], corpus_lines))
        left_out = tuple(
            (reason, self.number, index, line) for reason, group in reasons for index, line in enumerate(group)
        )
        sums.counted = Counter({**count_measured(self.shard), "left_out": len(left_out)})
        sums.left_out = left_out[:MAX_LEFT_OUT_LINES]
        for name in sums.select("done"):
            del sums.arrays[f"done/{name}"]
        return sums

    def measure_passes(self) -> Sums:
        """Measure the sums of all passes. Raises Cancelled."""
        sums = (read(self.file, self.key) if self.file else None) or self._make_empty_sums(self.shard.labels)
        with pass_lock.worker_pool() as workers:
            for pass_name in self.models:
                self._measure(pass_name, sums, workers)
        return sums

    def _measure(self, pass_name: str, sums: Sums, workers: Executor) -> None:
        """Run one pass over the texts that these sums lack."""
        self._report(pass_name, sums)
        submitted: deque[Future[Sums]] = deque()
        try:
            for batch in self._iter_batches(pass_name, sums):
                submitted.append(workers.submit(batch))
                if len(submitted) > MAX_SUBMITTED:
                    self._merge_first(pass_name, submitted, sums)
            while submitted:
                self._merge_first(pass_name, submitted, sums)
        finally:
            for future in submitted:  # also merge batches that have finished when the study is stopped
                if not future.cancel() and future.exception() is None:
                    sums.add(future.result())
            self._save(sums)

    def _merge_first(self, pass_name: str, submitted: deque[Future[Sums]], sums: Sums) -> None:
        """Wait for the first submitted batch and merge its sums."""
        batch_sums = submitted[0].result()
        submitted.popleft()
        sums.add(batch_sums)
        self._report(pass_name, batch_sums)
        if time.monotonic() - self._last_save > SAVE_SECONDS:
            self._save(sums)

    def _save(self, sums: Sums) -> None:
        if self.file and sums.is_complete:
            sums.save(self.file, self.key, finished=False)
            self._last_save = time.monotonic()

    def _report(self, pass_name: str, sums: Sums) -> None:
        """Report the tokens of the texts, or the rows of GAP, in these sums as done. Raises Cancelled."""
        for text_kind, texts in self.texts.items():
            self.done += int(np.array(texts.lengths, np.int64)[_find_done(pass_name, text_kind, texts, sums)].sum())
        self.progress(Progress(self.done, self.total))
        if self.cancelled():
            remedy = "The work so far is saved; start the study again to continue." if self.file else "Start it again."
            raise Cancelled("The study was stopped.", remedy)

    def _iter_batches(self, pass_name: str, sums: Sums) -> Iterator[Callable[[], Sums]]:
        """Yield the remaining work of a pass as independent tasks, each of which returns its own sums."""
        for text_kind, texts in self.texts.items():
            remaining = np.flatnonzero(~_find_done(pass_name, text_kind, texts, sums)).tolist()
            for text_numbers in texts.batches(remaining, self.heads, self.size):
                yield partial(self._measure_batch, pass_name, text_kind, text_numbers, sums)

    def _measure_batch(self, pass_name: str, text_kind: str, text_numbers: Sequence[int], total: Sums) -> Sums:
        """Read one batch and return its sums. They will be added to ``total``."""
        texts = self.texts[text_kind]
        labels = [self.shard.labels[texts.sentences[number]] for number in text_numbers]
        sums = self._make_empty_sums(labels, pass_name, total)
        texts.add(self.models[pass_name], self.shard, text_numbers, sums, pass_name)
        done = sums.arrays[f"done/{pass_name}/{text_kind}"] = np.zeros(len(texts.lengths), bool)
        done[list(text_numbers)] = True
        return sums

    def _make_empty_sums(self, labels: Sequence[str], pass_name: str = PASSES[0], total: Sums | None = None) -> Sums:
        """Return empty sums for sentences with these document labels. They will be added to ``total``."""
        selection, relations = None, self.shard.relations
        if pass_name == PASSES[0] and isinstance(self.corpus, Corpus) and self.kind.has_cases:
            selection = Selection(relations, self.heads, total.selection if total else None)
        return Sums(self.heads, relations, number_labels(labels, self.shard.first), selection=selection)

    def _count_gold(self, sums: Sums) -> dict[str, Array]:
        """Return the counts that depend only on the annotation, over the sentences that were read."""
        shard = self.shard
        documents = Documents.from_numbers(sums.indices("document", shard.labels), len(sums.documents))
        numbers = np.flatnonzero(_find_done(PASSES[0], "sentences", self.texts["sentences"], sums)).tolist()
        numbered_trees = [(shard.first + number, shard.trees[number]) for number in numbers]
        gold_sums = count_gold(shard.relations, numbered_trees)._asdict()
        gold_sums["cases"], gold_sums["ruled"] = count_cases(shard.relations, numbered_trees, documents, shard.first)
        gold_sums["named"] = shard.relations.mark_named(shard.rules)
        return {f"gold/{name}": array for name, array in gold_sums.items()}


def _find_done(pass_name: str, text_kind: str, texts: ShardTexts, sums: Sums) -> Array:
    """Return whether each text of a kind is in these sums, [text]."""
    return sums.arrays.get(f"done/{pass_name}/{text_kind}", np.zeros(len(texts.lengths), bool))
