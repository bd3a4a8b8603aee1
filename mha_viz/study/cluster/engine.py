"""A study on a Dask cluster: each shard is a task that returns sums, and the sums are merged in a tree, whose root is
sent to the client.

Every task is a pure function with a digest of its arguments as its key. So the results of a lost worker are computed
again, and nothing is counted twice; sums of shards that are in the folder for sums are read instead of measured again.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mha_viz.analysis.examples import spans
from mha_viz.analysis.profile import Profile
from mha_viz.corpus.cutting import cut
from mha_viz.corpus.excerpts import Span
from mha_viz.corpus.sources import Source, files_of_source, name_of
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import CorpusError, SumsUnsavedWarning, warn
from mha_viz.models.encoder import Encoder
from mha_viz.numerals import counted as counted_in_words
from mha_viz.study.cluster import connection, tasks
from mha_viz.study.cluster.layout import Layout, Part, documents_of, lay_out, rows_of, survey
from mha_viz.study.cluster.sums import Sums, gold_of, merged, remove_left, tally_of
from mha_viz.study.plan import BATCH
from mha_viz.study.run import PASSES, SEED, Progress
from mha_viz.study.tables import Measured, facts, tables

if TYPE_CHECKING:
    from distributed import Client, Future

SUMS_FOLDER = ".parts"  # the folder of sums, beside the tables
FAN = 8  # sums that are merged in one task
RATE_SECONDS = 60
AHEAD = 2  # tasks per thread that are submitted before one of them has ended
COUNTED = ("sentences", "words", "pieces", "chunks", "anaphors")


class OnCluster:
    """Studies by the workers of one client. ``batch``: the most pieces that are read together; ``size``: the fewest
    bytes of a shard.

    Its methods raise ClusterError if the cluster fails, and the errors of the tasks.
    """

    def __init__(self, client: Client, batch: int = BATCH, size: int | None = None) -> None:
        connection.check_client(client)
        self.client = cast(Any, client)  # Dask's own types are incomplete
        self.batch, self.size = batch, size
        self.folder: Path | None = None  # the folder for the sums of parts, which all workers can access
        self._workers = {*self.client.nthreads()}

    def open(self, source: Source, name: str | None = None) -> Layout:
        """A corpus of files in shards; ``source`` and ``name`` as for :func:`mha_viz.open_corpus`, except for the
        built-in corpus and GAP tables. Raises CorpusError."""
        files = files_of_source(source)
        name = name_of(source) if name is None else name
        cuts = list(self.answers(cut, [(str(path.resolve()), self.size) for path in files]))
        shards = [(shard, one.kind) for one in cuts for shard in one.shards]
        surveys = self.answers(survey, shards)
        return lay_out(name, cuts, [list(islice(surveys, len(one.shards))) for one in cuts])

    def study(
        self,
        encoder: Encoder,
        layout: Layout,
        folder: Path | None = None,
        control: bool = True,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> Profile:
        """The profile of a model over a corpus: the same as from one process, for any shards and workers. The arguments
        are as for :func:`mha_viz.study.run.study`; the sums of parts stay in ``folder`` for later studies."""
        passes = PASSES if control else PASSES[:1]
        self.folder = folder / SUMS_FOLDER if folder else None
        if self.folder:
            remove_left(self.folder)
        total = self.measure(self._orders(encoder, layout, passes), progress)
        if total.unsaved:
            parts = counted_in_words(total.counted["unsaved"], "part")
            warn(SumsUnsavedWarning, f"The sums of {parts} could not be saved: {'; '.join(total.unsaved)[:300]}.")
        if not total.counted["sentences"]:
            lines = "; ".join(line for *_, line in total.left_out[:3])
            raise CorpusError(f"Nothing of {layout.corpus.name} can be read.", lines)
        heads = encoder.layers * encoder.heads
        documents = documents_of(layout, heads)
        trained, *untrained = [tally_of(total, name, heads, documents) for name in passes]
        gold = gold_of(total, documents) if layout.corpus.has_trees else None
        measured = Measured(
            layout.corpus, layout.relations, documents, trained, untrained[0] if untrained else None, gold
        )
        tables_of_model, tables_of_untrained = tables(measured, encoder)
        counted = {name: total.counted[name] for name in COUNTED}
        unread = [line for *_, line in total.left_out]
        facts_of_study = facts(encoder, layout.corpus, counted, unread, SEED)
        facts_of_study["left_out"] = total.counted["left_out"]
        sentences = self._sentences(layout, spans(tables_of_model["evidence"]))
        return Profile(facts_of_study, tables_of_model, tables_of_untrained, sentences)

    def _orders(self, encoder: Encoder, layout: Layout, passes: tuple[str, ...]) -> list[tasks.Order]:
        model, heads = tasks.Model.opened_by(encoder), encoder.layers * encoder.heads
        folder = str(self.folder.resolve()) if self.folder else ""
        labels = layout.relations.names, layout.relations.upos
        return [
            tasks.Order(part, number, rows_of(layout, part, heads), *labels, model, passes, self.batch, folder)
            for number, part in enumerate(layout.parts)
        ]

    def measure(self, orders: Sequence[tasks.Order], progress: Callable[[Progress], None]) -> Sums:
        """The merged sums of all parts, which are merged as soon as they arrive, so that no worker holds many."""
        tree = _Tree(self.client)
        sentences = {order.key: order.part.sentences for order in orders}
        reporter = _Reporter(sum(sentences.values()), progress)
        submit = (
            lambda order=order: self.client.submit(tasks.measure, order, key=f"measure-{order.key}", pure=True)
            for order in orders
        )
        for future in self._completed(submit):
            with self._reached():
                worker, lost = next(iter(self._where(future)), ""), self._lost_workers()
            reporter.add(worker, sentences[str(future.key).removeprefix("measure-")], lost)
            with self._reached():
                tree.add(future)
        with self._reached():
            root = tree.root()
        total: Sums = self._result(root)
        return total

    def _sentences(self, layout: Layout, wanted: Sequence[Span]) -> tuple[Sentence, ...]:
        """The sentences of the table ``evidence``, in the order of its spans."""
        by_part: list[tuple[Part, list[Span]]] = []
        ahead = iter(layout.parts)
        part = next(ahead)
        for span in wanted:  # both are sorted
            while span[0] >= part.first + part.sentences:
                part = next(ahead)
            if not by_part or by_part[-1][0] is not part:
                by_part.append((part, []))
            by_part[-1][1].append(span)
        return tuple(sentence for some in self.answers(tasks.read_excerpts, by_part) for sentence in some)

    # ---- the client -------------------------------------------------------------------------------------------------

    def answers(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """The results of a function for each call, in order, each as soon as it and those before it are done."""
        places: dict[str, int] = {}

        def submitted(place: int, call: Sequence[Any]) -> Future[Any]:
            future: Future[Any] = self.client.submit(function, *call, pure=False)
            places[str(future.key)] = place
            return future

        early: dict[int, Any] = {}
        due = 0
        submit = (lambda place=place, call=call: submitted(place, call) for place, call in enumerate(calls))
        for future in self._completed(submit):
            early[places.pop(str(future.key))] = self._result(future)
            while due in early:
                yield early.pop(due)
                due += 1

    def _completed(self, submit: Iterable[Callable[[], Future[Any]]]) -> Iterator[Future[Any]]:
        """The futures as they finish; at most AHEAD per thread of the cluster are submitted at a time."""
        waiting = iter(submit)
        running = connection.library().as_completed(loop=self.client.loop)
        while self._submit(waiting, running):
            with self._reached():
                future = next(running)
            if future.status != "finished":
                raise connection.in_words(_error_of(future), self._saved())
            yield future
            del future

    def _submit(self, waiting: Iterator[Callable[[], Future[Any]]], running: Any) -> bool:
        """Submit as many tasks as the cluster has room for, since workers come and go; False if none is pending."""
        with self._reached():
            room = AHEAD * max(1, sum(self.client.nthreads().values())) - running.count()
            for one in islice(waiting, max(0, room)):
                running.add(one())
        return not running.is_empty()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """For code that uses the client: its exceptions become a ClusterError."""
        try:
            yield
        except Exception as error:
            raise connection.in_words(error, self._saved()) from error

    def _result(self, future: Future[Any]) -> Any:
        with self._reached():
            return future.result()

    def _where(self, future: Future[Any]) -> Sequence[str]:
        workers: Sequence[str] = self.client.who_has([future]).get(future.key, ())
        return workers

    def _lost_workers(self) -> int:
        """How many of the workers that were ever seen are gone."""
        present = {*self.client.nthreads()}
        self._workers |= present
        return len(self._workers - present)

    def _saved(self) -> str:
        return f"The measured parts are in {self.folder}." if self.folder else ""


class _Tree:
    """Futures of sums, merged FAN at a time: at each level, fewer than FAN wait."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client
        self._levels: list[list[Future[Any]]] = []

    def add(self, future: Future[Any], level: int = 0) -> None:
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(future)
        if len(self._levels[level]) == FAN:
            together, self._levels[level] = self._levels[level], []
            self.add(self._merged(together), level + 1)

    def root(self) -> Future[Any]:
        """The future of the sum of all of them."""
        left = [future for level in self._levels for future in level]
        self._levels = []
        return left[0] if len(left) == 1 else self._merged(left)

    def _merged(self, futures: list[Future[Any]]) -> Future[Any]:
        key = tasks.digest([future.key for future in futures])
        together: Future[Any] = self._client.submit(merged, futures, key=f"merge-{key}", pure=True, priority=10)
        return together


class _Reporter:
    """Reports the progress of a study. The rate is that of the last RATE_SECONDS, because sums read from the folder
    arrive much faster than those measured after them."""

    def __init__(self, total: int, progress: Callable[[Progress], None]) -> None:
        self._total, self._progress = total, progress
        self._by_worker: Counter[str] = Counter()
        self._recent = deque([(time.monotonic(), 0)])  # time and how many were done then

    def add(self, worker: str, sentences: int, lost: int) -> None:
        self._by_worker[worker] += sentences
        done, now = self._by_worker.total(), time.monotonic()
        self._recent.append((now, done))
        while len(self._recent) > 2 and self._recent[1][0] < now - RATE_SECONDS:
            self._recent.popleft()
        began, before = self._recent[0]
        rate = (done - before) / max(1e-9, now - began)
        left = (self._total - done) / rate if rate else None
        self._progress(Progress(done, self._total, rate, left, dict(self._by_worker), lost))


def _error_of(future: Future[Any]) -> BaseException | None:
    """The error that a future ended with; None if it was lost with the connection."""
    error: BaseException | None = future.exception() if future.status == "error" else None  # type: ignore[no-untyped-call]
    return error
