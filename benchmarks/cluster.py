"""A study on a cluster of 2 × 1 thread on this machine, compared with one process.

It measures time, bytes moved, memory and merging. The corpora are made by the built-in grammar, in documents of 20
sentences, each in one CoNLL-U file. Both methods lead from the file to the profile; the models are loaded before the
clock starts.

Throughput and bytes are those of MiniLM, over shards so small that both workers end at about the same time, as in a
large study; the memory is measured over a longer corpus with the toy model, which has the same kinds of sums.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.results import Row, Sample, Target, write
from mha_viz.analysis.evidence import KINDS, Selection
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.sources import read_corpus
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.study.cluster import tasks
from mha_viz.study.cluster.connection import connect
from mha_viz.study.cluster.engine import MERGE_SIZE, ClusterEngine
from mha_viz.study.run import study
from mha_viz.study.sums import PASSES, Sums, merge_sums

SENTENCES = 4_000  # sentences of the comparison with one process
SHARD = 400_000  # bytes of a shard in it
LONG = 20_000  # sentences over which the memory is measured
PER_DOCUMENT = 20
SHARDS = 1000  # shards of the simulated merge
SHARE = 1 / 0.9  # share of the time of one process, at most
FLAT = 1.1  # memory of a worker in the last quarter relative to the second, at most


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/cluster.json``. ``quick``: fewer sentences and shards."""
    count, long, shards = (1000, 3000, 50) if quick else (SENTENCES, LONG, SHARDS)
    encoder, toy = load_one_stack("minilm"), load_one_stack("toy")
    with tempfile.TemporaryDirectory() as folder:
        path = write_treebank(Path(folder) / "grammar.conllu", count)
        alone = _run_alone(encoder, path)
        with connect(workers=2) as client:
            fast = _Measured(client, encoder, path, SHARD * count // SENTENCES)
            followed = _Measured(client, toy, write_treebank(Path(folder) / "long.conllu", long), SHARD)
        merging = _measure_merging(encoder, write_treebank(Path(folder) / "few.conllu", 600), shards)
    what = f"{count:,} sentences of the grammar"
    ours, other = (Sample((taken.seconds,)) for taken in (fast.taken, alone))
    beside = {
        "sentences_per_second": round(count / fast.taken.seconds, 1),
        "processor_seconds": [round(taken.processor) for taken in (fast.taken, alone)],
    }
    rows = [
        Row(f"{what}: 2 × 1 thread", ours, "s", other, Target("share", SHARE), beside),
        Row("bytes between processes per 1,000 sentences", Sample((fast.moved / count * 1000,)), "bytes"),
        *followed.memory_rows(f"toy, {long:,} sentences"),
        Row(f"merge of {shards:,} shards, one process", Sample((merging.seconds,)), "s", beside=merging.beside),
    ]
    write(results, "cluster", "A study on a cluster", "one process", rows, f"torch {torch.__version__}")


def write_treebank(path: Path, count: int) -> Path:
    """Write sentences of the grammar to a file, in documents."""
    with path.open("w", encoding="utf-8") as file:
        for number, sentence in enumerate(grammar.corpus(count).sentences):
            begins = number % PER_DOCUMENT == 0
            file.write(format_conllu([replace(sentence, document=f"d{number // PER_DOCUMENT}" if begins else "")]))
    return path


class Elapsed(NamedTuple):
    """Seconds on the clock, and seconds of all processors."""

    seconds: float
    processor: float


def _run_alone(encoder: Encoder, path: Path) -> Elapsed:
    began, processor = time.perf_counter(), time.process_time()
    study(encoder, read_corpus(path))
    return Elapsed(time.perf_counter() - began, time.process_time() - processor)


class _Measured:
    """One study on a cluster: its seconds, the bytes sent by workers, and their memory over time."""

    def __init__(self, client: Any, encoder: Encoder, path: Path, size: int) -> None:
        cluster = ClusterEngine(client, size=size)
        client.run(open_model, tasks.WorkerModel.from_encoder(encoder))
        self._client, self._memory = client, list[dict[str, int]]()
        before, processor, began = self._sent(), self._processor(), time.perf_counter()
        cluster.study(encoder, cluster.open(path), progress=lambda _: self._memory.append(client.run(measure_memory)))
        self.taken = Elapsed(time.perf_counter() - began, self._processor() - processor)
        self.moved = self._sent() - before

    def _sent(self) -> int:
        return sum(self._client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    def _processor(self) -> float:
        """Return the CPU seconds of the workers and of this process, in which the scheduler runs."""
        of_workers: dict[str, float] = self._client.run(time.process_time)
        return time.process_time() + sum(of_workers.values())

    def memory_rows(self, what: str) -> Iterator[Row]:
        """Return rows for the largest memory of a worker and for its growth."""
        each = [max(at.values()) for at in self._memory]
        yield Row(f"{what}: memory of a worker, at most", Sample((max(each),)), "bytes")
        quarter = max(1, len(each) // 4)
        late, early = Sample((max(each[-quarter:]),)), Sample((max(each[quarter : 2 * quarter] or each),))
        yield Row("memory of a worker, last quarter beside second", late, "bytes", early, Target("share", FLAT))


def open_model(model: tasks.WorkerModel) -> None:
    """Open the model in this process."""
    tasks.open_encoder(model)


def measure_memory() -> int:
    """Return the memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text("utf-8")
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


# ---- the merge ------------------------------------------------------------------------------------------------------


class _Merging:
    """A merge in a tree, in one process: the seconds of the merges alone, and the bytes of their inputs."""

    def __init__(self) -> None:
        self.seconds, self.bytes, self.merges = 0.0, 0, 0
        self._levels: list[list[Sums]] = []

    def add(self, sums: Sums, level: int = 0) -> None:
        """Add the sums of one shard; FAN of them are merged."""
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(sums)
        if len(self._levels[level]) == MERGE_SIZE:
            together, self._levels[level] = self._levels[level], []
            self.add(self._merged(together), level + 1)

    def root(self) -> Sums:
        """Return the sum of all shards."""
        return self._merged([sums for level in self._levels for sums in level])

    def _merged(self, parts: Sequence[Sums]) -> Sums:
        began = time.perf_counter()
        together = merge_sums(parts)
        self.seconds += time.perf_counter() - began
        self.bytes += sum(part.bytes for part in parts)
        self.merges += 1
        return together

    @property
    def beside(self) -> dict[str, Any]:
        """Numbers that explain the seconds."""
        return {"merges": self.merges, "bytes_merged": self.bytes}


def _measure_merging(encoder: Encoder, path: Path, shards: int) -> _Merging:
    """Merge the sums of one shard ``shards`` times, each time with other documents and sentences."""
    first = tasks.measure(_make_task(encoder, path))
    assert isinstance(first, Sums)
    merging = _Merging()
    for number in range(shards):
        merging.add(_relabel_sums(first, number))
    merging.root()
    return merging


def _make_task(encoder: Encoder, path: Path) -> tasks.PartTask:
    from mha_viz.corpus.cutting import cut_file
    from mha_viz.study.cluster.layout import lay_out, survey_shard
    from mha_viz.study.plan import DEFAULT_BATCH

    one = cut_file(str(path), 10**9)
    layout = lay_out(path.name, [one], [[survey_shard(shard, one.kind) for shard in one.shards]])
    return tasks.PartTask(
        layout.parts[0], tasks.WorkerModel.from_encoder(encoder), tasks.PartSums(PASSES, DEFAULT_BATCH), ""
    )


def _relabel_sums(sums: Sums, number: int) -> Sums:
    """Return the sums as if another shard had given them.

    Its cases have other sentences and other documents, and the documents share their rows with those of other shards,
    as in a large corpus.
    """
    documents = {f"{number} {name}": at for at, name in enumerate(sums.documents)}
    moved = replace(sums, documents=documents, arrays={**sums.arrays}, selection=Selection(sums.relations, sums.heads))
    assert sums.selection is not None
    assert moved.selection is not None
    cases = sums.selection.cases.copy()
    for column in ("first", "last"):
        cases[column] += number * 2000
    drawn = cases["slot"] % len(KINDS) == KINDS.index("random")
    cases["rank"][drawn] = np.random.default_rng(number).integers(0, 1 << 46, drawn.sum())
    moved.selection.merge(cases)
    return moved
