"""Time a study on a cluster of 2 × 1 thread on this machine, compared with one process.

Also measured: bytes moved, memory and merging. The corpora are sentences of the built-in grammar in documents of 20,
each corpus in one CoNLL-U file. Both ways lead from the file to the profile; the models are loaded before the clock
starts.

Throughput and bytes are measured with MiniLM, on shards so small that both workers end at about the same time, as in a
large study. Memory is measured on a longer corpus with the toy model, which has the same kinds of sums.
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
SHARD_BYTES = 400_000  # size of a shard in that comparison
LONG_SENTENCES = 20_000  # sentences for the measurement of memory
SENTENCES_PER_DOCUMENT = 20
MERGED_SHARDS = 1000  # shards of the simulated merge
MAX_TIME_RATIO = 1 / 0.9  # maximum time, relative to one process
MAX_MEMORY_RATIO = 1.1  # maximum memory of a worker in the last quarter, relative to the second


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/cluster.json``. ``quick``: fewer sentences and shards."""
    count, long_count, shard_count = (1000, 3000, 50) if quick else (SENTENCES, LONG_SENTENCES, MERGED_SHARDS)
    encoder, toy = load_one_stack("minilm"), load_one_stack("toy")
    with tempfile.TemporaryDirectory() as folder:
        path = write_treebank(Path(folder) / "grammar.conllu", count)
        single_process = _run_alone(encoder, path)
        with connect(workers=2) as client:
            fast_run = _ClusterRun(client, encoder, path, SHARD_BYTES * count // SENTENCES)
            memory_run = _ClusterRun(client, toy, write_treebank(Path(folder) / "long.conllu", long_count), SHARD_BYTES)
        merge = _measure_merging(encoder, write_treebank(Path(folder) / "few.conllu", 600), shard_count)
    name = f"{count:,} sentences of the grammar"
    cluster_time, single_time = (Sample((elapsed.seconds,)) for elapsed in (fast_run.elapsed, single_process))
    details = {
        "sentences_per_second": round(count / fast_run.elapsed.seconds, 1),
        "processor_seconds": [round(elapsed.cpu) for elapsed in (fast_run.elapsed, single_process)],
    }
    rows = [
        Row(f"{name}: 2 × 1 thread", cluster_time, "s", single_time, Target("share", MAX_TIME_RATIO), details),
        Row("bytes between processes per 1,000 sentences", Sample((fast_run.sent_bytes / count * 1000,)), "bytes"),
        *memory_run.iter_memory_rows(f"toy, {long_count:,} sentences"),
        Row(f"merge of {shard_count:,} shards, one process", Sample((merge.seconds,)), "s", details=merge.details),
    ]
    write(results, "cluster", "A study on a cluster", "one process", rows, f"torch {torch.__version__}")


def write_treebank(path: Path, count: int) -> Path:
    """Write sentences of the grammar to a file, in documents."""
    with path.open("w", encoding="utf-8") as file:
        for number, sentence in enumerate(grammar.corpus(count).sentences):
            document, index = divmod(number, SENTENCES_PER_DOCUMENT)
            file.write(format_conllu([replace(sentence, document="" if index else f"d{document}")]))
    return path


class Elapsed(NamedTuple):
    """Elapsed seconds, and CPU seconds of all processes."""

    seconds: float
    cpu: float


def _run_alone(encoder: Encoder, path: Path) -> Elapsed:
    start, cpu_start = time.perf_counter(), time.process_time()
    study(encoder, read_corpus(path))
    return Elapsed(time.perf_counter() - start, time.process_time() - cpu_start)


class _ClusterRun:
    """Runs one study on a cluster; holds its seconds, the bytes that workers sent, and their memory over time."""

    def __init__(self, client: Any, encoder: Encoder, path: Path, shard_bytes: int) -> None:
        cluster = ClusterEngine(client, size=shard_bytes)
        client.run(open_model, tasks.WorkerModel.from_encoder(encoder))
        self._client, self._memory = client, list[dict[str, int]]()
        sent_before, cpu_start, start = self._count_sent_bytes(), self._measure_cpu(), time.perf_counter()
        cluster.study(encoder, cluster.open(path), progress=lambda _: self._memory.append(client.run(measure_memory)))
        self.elapsed = Elapsed(time.perf_counter() - start, self._measure_cpu() - cpu_start)
        self.sent_bytes = self._count_sent_bytes() - sent_before

    def _count_sent_bytes(self) -> int:
        return sum(self._client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    def _measure_cpu(self) -> float:
        """Return the CPU seconds of the workers and of this process, in which the scheduler runs."""
        worker_seconds: dict[str, float] = self._client.run(time.process_time)
        return time.process_time() + sum(worker_seconds.values())

    def iter_memory_rows(self, name: str) -> Iterator[Row]:
        """Yield rows for the largest memory of a worker and for its growth."""
        peaks = [max(memory.values()) for memory in self._memory]
        yield Row(f"{name}: memory of a worker, at most", Sample((max(peaks),)), "bytes")
        quarter = max(1, len(peaks) // 4)
        late_peak, early_peak = Sample((max(peaks[-quarter:]),)), Sample((max(peaks[quarter : 2 * quarter] or peaks),))
        target = Target("share", MAX_MEMORY_RATIO)
        yield Row("memory of a worker, last quarter beside second", late_peak, "bytes", early_peak, target)


def open_model(model: tasks.WorkerModel) -> None:
    """Open the model in this process."""
    tasks.open_encoder(model)


def measure_memory() -> int:
    """Return the memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text("utf-8")
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


# ---- the merge ------------------------------------------------------------------------------------------------------


class _TimedMerge:
    """Merges sums in a tree, in one process; holds the seconds of the merges alone and the bytes of their inputs."""

    def __init__(self) -> None:
        self.seconds, self.bytes, self.merges = 0.0, 0, 0
        self._levels: list[list[Sums]] = []

    def add(self, sums: Sums, level: int = 0) -> None:
        """Add the sums of one shard. Every MERGE_SIZE of them are merged."""
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(sums)
        if len(self._levels[level]) == MERGE_SIZE:
            full_level, self._levels[level] = self._levels[level], []
            self.add(self._merge(full_level), level + 1)

    def merge_remaining(self) -> Sums:
        """Merge the sums that are left, and return the sum of all shards."""
        return self._merge([sums for level in self._levels for sums in level])

    def _merge(self, parts: Sequence[Sums]) -> Sums:
        start = time.perf_counter()
        total = merge_sums(parts)
        self.seconds += time.perf_counter() - start
        self.bytes += sum(part.bytes for part in parts)
        self.merges += 1
        return total

    @property
    def details(self) -> dict[str, Any]:
        """Numbers that explain the seconds."""
        return {"merges": self.merges, "bytes_merged": self.bytes}


def _measure_merging(encoder: Encoder, path: Path, shards: int) -> _TimedMerge:
    """Merge ``shards`` copies of the sums of one shard, each with other documents and sentences."""
    shard_sums = tasks.measure(_make_task(encoder, path))
    assert isinstance(shard_sums, Sums)
    merge = _TimedMerge()
    for number in range(shards):
        merge.add(_relabel_sums(shard_sums, number))
    merge.merge_remaining()
    return merge


def _make_task(encoder: Encoder, path: Path) -> tasks.PartTask:
    from mha_viz.corpus.cutting import cut_file
    from mha_viz.study.cluster.layout import lay_out, survey_shard
    from mha_viz.study.plan import DEFAULT_BATCH

    file = cut_file(str(path), 10**9)
    layout = lay_out(path.name, [file], [[survey_shard(shard, file.kind) for shard in file.shards]])
    return tasks.PartTask(
        layout.parts[0], tasks.WorkerModel.from_encoder(encoder), tasks.PartSums(PASSES, DEFAULT_BATCH), ""
    )


def _relabel_sums(sums: Sums, number: int) -> Sums:
    """Return the sums as if they came from another shard.

    The cases have other sentences and documents, and the documents share their rows with those of other shards, as in a
    large corpus.
    """
    documents = {f"{number} {name}": index for index, name in enumerate(sums.documents)}
    selection = Selection(sums.relations, sums.heads)
    new_sums = replace(sums, documents=documents, arrays={**sums.arrays}, selection=selection)
    assert sums.selection is not None
    assert new_sums.selection is not None
    cases = sums.selection.cases.copy()
    for column in ("first", "last"):
        cases[column] += number * 2000
    is_random = cases["slot"] % len(KINDS) == KINDS.index("random")
    cases["rank"][is_random] = np.random.default_rng(number).integers(0, 1 << 46, is_random.sum())
    new_sums.selection.merge(cases)
    return new_sums
