"""Run a study on a Dask cluster: each shard is a task that returns sums, and the sums are merged in a tree.

The root of the tree is sent to the client. Every task is a pure function with a digest of its arguments as its key, so
the results of a lost worker are computed again, and nothing is counted twice. Sums of shards that are in the folder for
sums are read instead of measured again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mha_viz.analysis.profile import Profile
from mha_viz.corpus.cutting import cut_file
from mha_viz.corpus.excerpts import SentenceSpan
from mha_viz.corpus.sources import Source, list_source_files, name_source
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import CorpusError, MhaVizError, SumsUnsavedWarning, warn
from mha_viz.files import remove_leftovers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.numerals import counted as counted_in_words
from mha_viz.study.cluster import connection, tasks
from mha_viz.study.cluster.layout import Layout, Part, lay_out, survey_shard
from mha_viz.study.measures import PROFILE_SUMS, SumKind
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.run import SEED, Progress
from mha_viz.study.sums import PASSES, Sums, merge_sums
from mha_viz.study.tables import build_profile

if TYPE_CHECKING:
    from distributed import Client, Future

SUMS_FOLDER = ".parts"  # the folder of sums, next to the tables
MERGE_SIZE = 8  # number of sums that are merged in one task
TASKS_PER_THREAD = 2  # maximum number of submitted tasks per thread
RATE_SECONDS = 60  # the rate is averaged over this time


class ClusterEngine:
    """The engine that measures with the workers of a Dask client.

    ``batch`` is the maximum number of tokens per batch; ``size`` the minimum size of a shard in bytes. Its methods
    raise ClusterError if the cluster fails, and the errors of the tasks.
    """

    def __init__(self, client: Client, batch: int = DEFAULT_BATCH, size: int | None = None) -> None:
        connection.check_client(client)
        self.client = cast(Any, client)  # Dask's own types are incomplete
        self.batch, self.size = batch, size
        self.folder: Path | None = None  # the folder for the sums of parts, which all workers can access
        self._workers = Workers(client)

    def open(self, source: Source, name: str | None = None) -> Layout:
        """Open a corpus of files in shards. Raises CorpusError.

        ``source`` and ``name`` are as for :func:`mha_viz.read_corpus`, except for the built-in corpus and GAP tables.
        """
        files = list_source_files(source)
        name = name_source(source) if name is None else name
        cuts = list(self.iter_results(cut_file, [(str(path.resolve()), self.size) for path in files]))
        shards = [(shard, file.kind) for file in cuts for shard in file.shards]
        surveys = self.iter_results(survey_shard, shards)
        return lay_out(name, cuts, [list(islice(surveys, len(file.shards))) for file in cuts])

    def study(
        self,
        encoder: Encoder,
        layout: Layout,
        folder: Path | None = None,
        control: bool = True,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> Profile:
        """Return the profile of a model over a corpus, the same as from one process, for any shards and workers.

        The arguments are as for :func:`mha_viz.study.run.study`; the sums of parts stay in ``folder`` for later
        studies.
        """
        kind = PROFILE_SUMS._replace(rules=layout.rules)
        total = self.measure_sums(encoder, layout, folder, PASSES if control else PASSES[:1], kind, progress)
        return build_profile(encoder, layout.corpus, total, SEED, partial(self.read_sentences, layout))

    def measure_sums(
        self,
        encoder: Encoder,
        layout: Layout,
        folder: Path | None,
        passes: tuple[str, ...],
        kind: SumKind,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> Sums:
        """Return the sums over the sentences of a corpus that ``kind`` reads. Raises CorpusError if there are none."""
        self.folder = folder / SUMS_FOLDER if folder else None
        parts = [part for part in layout.parts if kind.count_sentences(part.sentences, part.first)]
        total = self._merge(self.make_tasks(encoder, parts, tasks.PartSums(passes, self.batch, kind)), progress)
        warn_unsaved(total.unsaved)
        if not total.counted["sentences"]:
            lines = "; ".join(line for *_, line in total.left_out[:3])
            raise CorpusError(f"Nothing in {layout.corpus.name} can be read.", lines)
        return total

    def make_tasks(self, encoder: Encoder, parts: Sequence[Part], measure: tasks.Measure) -> list[tasks.PartTask]:
        """Return the tasks that measure parts; their results are stored in the folder, if there is one."""
        if self.folder:
            remove_leftovers(self.folder)
        model, folder = tasks.WorkerModel.from_encoder(encoder), str(self.folder.resolve()) if self.folder else ""
        return [tasks.PartTask(part, model, measure, folder) for part in parts]

    def _merge(self, part_tasks: Sequence[tasks.PartTask], progress: Callable[[Progress], None]) -> Sums:
        """Return the sums of all parts, merged as they arrive, so that no worker holds many."""
        tree = _Tree(self.client)
        sentences = {f"measure-{task.key}": task.part.sentences for task in part_tasks}
        reporter = ProgressReporter(sum(sentences.values()))
        submissions = (
            lambda task=task, key=key: self.client.submit(tasks.measure, task, key=key, pure=True)
            for key, task in zip(sentences, part_tasks, strict=True)
        )
        for future in self._iter_completed(submissions):
            progress(self.report(reporter, future, sentences[str(future.key)]))
            with self._convert_errors():
                tree.add(future)
        with self._convert_errors():
            root = tree.root()
        total: Sums = self._result(root)
        return total

    def read_sentences(self, layout: Layout, spans: Sequence[SentenceSpan]) -> tuple[Sentence, ...]:
        """Return the sentences of each span, joined; the spans are sorted. Raises CorpusError."""
        calls: list[tuple[Part, list[SentenceSpan]]] = []
        parts = iter(layout.parts)
        part = next(parts)
        for span in spans:  # spans and parts are sorted
            while span[0] >= part.first + part.sentences:
                part = next(parts)
            if not calls or calls[-1][0] is not part:
                calls.append((part, []))
            calls[-1][1].append(span)
        return tuple(sentence for excerpt in self.iter_results(tasks.read_excerpts, calls) for sentence in excerpt)

    # ---- the client -------------------------------------------------------------------------------------------------

    def iter_results(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """Yield the results of a function for each call in the order of the calls, each as soon as possible."""
        return (result for arrival in self.iter_arrivals(function, calls) for result in arrival.results)

    def iter_arrivals(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Iterator[Arrival]:
        """Yield each finished call of a function, with the results that can then be handed over in order."""
        indices: dict[str, int] = {}

        def submit_call(index: int, call: Sequence[Any]) -> Future[Any]:
            future: Future[Any] = self.client.submit(function, *call, pure=False)
            indices[str(future.key)] = index
            return future

        waiting_results: dict[int, Any] = {}
        next_index = 0
        submissions = (lambda index=index, call=call: submit_call(index, call) for index, call in enumerate(calls))
        for future in self._iter_completed(submissions):
            index = indices.pop(str(future.key))
            waiting_results[index] = self._result(future)
            first_due = next_index
            while next_index in waiting_results:
                next_index += 1
            yield Arrival(index, future, [waiting_results.pop(number) for number in range(first_due, next_index)])

    def report(self, reporter: ProgressReporter, future: Future[Any], sentences: int) -> Progress:
        """Record that a task on this many sentences is done. Return the progress."""
        with self._convert_errors():
            worker = next(iter(self.client.who_has([future]).get(future.key, ())), "")
            lost = self._workers.count_lost()
        return reporter.add(worker, sentences, lost)

    def _iter_completed(self, submissions: Iterable[Callable[[], Future[Any]]]) -> Iterator[Future[Any]]:
        """Yield futures as they finish; at most TASKS_PER_THREAD per thread run or wait at a time."""
        waiting = iter(submissions)
        running = connection.import_distributed().as_completed(loop=self.client.loop)
        while self._submit(waiting, running):
            with self._convert_errors():
                future = next(running)
            if future.status != "finished":
                raise self._make_error(future)
            yield future
            del future

    def _submit(self, waiting: Iterator[Callable[[], Future[Any]]], running: Any) -> bool:
        """Submit as many tasks as the cluster has room for now. Return False if no task is pending."""
        with self._convert_errors():
            room = TASKS_PER_THREAD * max(1, sum(self.client.nthreads().values())) - running.count()
            for submit_task in islice(waiting, max(0, room)):
                running.add(submit_task())
        return not running.is_empty()

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert exceptions of the client in the block to a ClusterError."""
        try:
            yield
        except Exception as error:
            raise connection.convert_client_error(error, self._describe_saved()) from error

    def _result(self, future: Future[Any]) -> Any:
        """Return the result of a future, or raise its error as an MhaVizError."""
        try:
            return future.result()
        except Exception as error:
            raise self._make_error(future, error) from error

    def _make_error(self, future: Future[Any], error: Exception | None = None) -> MhaVizError:
        """Return the reason why a future has no result, as an error.

        It is the error of its task or, if the future was lost with the connection, the error of the client.
        """
        if future.status == "error":
            return connection.convert_task_error(cast(Any, future).exception(), self._describe_saved())
        return connection.convert_client_error(error, self._describe_saved())

    def _describe_saved(self) -> str:
        """Return a sentence on where the measured parts are; empty if they were not saved."""
        return f"The measured parts are in {self.folder}." if self.folder else ""


def warn_unsaved(unsaved: Counter[str]) -> None:
    """Warn if the results of some parts could not be saved, with the number of parts and the reasons."""
    if unsaved:
        parts, reasons = counted_in_words(unsaved.total(), "part"), "; ".join(unsaved)[:300]
        warn(SumsUnsavedWarning, f"The results of {parts} could not be saved: {reasons}.")


class Arrival(NamedTuple):
    """A finished call.

    Attributes:
        call_index: the index of the call.
        future: its future.
        results: the results that can now be handed over in order, because all earlier ones have been.
    """

    call_index: int
    future: Future[Any]
    results: list[Any]


class _Tree:
    """A tree that merges futures of sums, MERGE_SIZE at a time; at each level, fewer than MERGE_SIZE wait."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client
        self._levels: list[list[Future[Any]]] = []

    def add(self, future: Future[Any], level: int = 0) -> None:
        """Add a future, and merge a level that is full."""
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(future)
        if len(self._levels[level]) == MERGE_SIZE:
            full_level, self._levels[level] = self._levels[level], []
            self.add(self._submit_merge(full_level), level + 1)

    def root(self) -> Future[Any]:
        """Return the future of the sum of all added futures."""
        remaining = [future for level in self._levels for future in level]
        self._levels = []
        return remaining[0] if len(remaining) == 1 else self._submit_merge(remaining)

    def _submit_merge(self, futures: list[Future[Any]]) -> Future[Any]:
        """Submit the task that merges these futures."""
        key = tasks.digest_values([future.key for future in futures])
        merged_future: Future[Any] = self._client.submit(
            merge_sums, futures, key=f"merge-{key}", pure=True, priority=10
        )
        return merged_future


class Workers:
    """Counts the workers of a cluster that have been lost since the start."""

    def __init__(self, client: Client) -> None:
        self._client = cast(Any, client)  # Dask's own types are incomplete
        self._addresses = {*self._client.nthreads()}
        self._lost_count = 0

    def count_lost(self) -> int:
        """Count the workers that disappeared without retiring."""
        addresses = {*self._client.nthreads()}
        for address in self._addresses - addresses:
            events = [event for _, event in self._client.get_events(address) if isinstance(event, dict)]
            # A worker that retired is not lost: the scheduler has moved its results elsewhere.
            self._lost_count += not any(event.get("action") == "retired" or event.get("expected") for event in events)
        self._addresses = addresses
        return self._lost_count


class ProgressReporter:
    """The progress of a study of ``total`` sentences.

    The rate is averaged over the last RATE_SECONDS, because results read from the folder arrive much faster than those
    measured after them.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._by_worker: Counter[str] = Counter()
        self._recent = deque([(time.monotonic(), 0)])  # (time, sentences done by then)

    def add(self, worker: str, sentences: int, lost: int) -> Progress:
        """Record that a worker measured ``sentences`` more, and that ``lost`` workers have been lost so far.

        Returns the progress.
        """
        self._by_worker[worker] += sentences
        done, now = self._by_worker.total(), time.monotonic()
        self._recent.append((now, done))
        while len(self._recent) > 2 and self._recent[1][0] < now - RATE_SECONDS:
            self._recent.popleft()
        start, done_before = self._recent[0]
        rate = (done - done_before) / max(1e-9, now - start)
        seconds_left = (self._total - done) / rate if rate else None
        return Progress(done, self._total, rate, seconds_left, dict(self._by_worker), lost)
