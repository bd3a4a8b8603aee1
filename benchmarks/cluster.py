"""A study on a cluster of 2 × 1 thread on this machine, beside one process; what it moves, holds and merges.

The corpus is made by the built-in grammar, in documents of 20 sentences, and lies in one file of CoNLL-U. Both ways go
from the file to the profile; the models are loaded before the clock starts.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.results import Row, Sample, Target, write
from mha_viz.analysis.evidence import KINDS
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import as_conllu
from mha_viz.corpus.sources import open_corpus
from mha_viz.models.encoder import Encoder, load
from mha_viz.study.cluster import tasks
from mha_viz.study.cluster.connection import connected
from mha_viz.study.cluster.engine import FAN, OnCluster
from mha_viz.study.cluster.sums import Sums, merged
from mha_viz.study.run import Progress, study

SENTENCES = 20_000
PER_DOCUMENT = 20
SHARDS = 1000  # of the merge that is simulated
SHARE = 1 / 0.9  # of the time of one process, at most
FLAT = 1.1  # memory of a worker in the last quarter over the one in the second, at most
MEMORY_EVERY = 2  # parts


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/cluster.json``. ``quick``: fewer sentences and shards."""
    count, shards = (3000, 50) if quick else (SENTENCES, SHARDS)
    encoder = load("minilm")
    with tempfile.TemporaryDirectory() as folder:
        path = treebank(Path(folder) / "grammar.conllu", count)
        alone = _seconds_alone(encoder, path)
        with connected(workers=2) as client:
            measured = _Measured(client, encoder, path)
        few = treebank(Path(folder) / "few.conllu", 2000)
        merging = _merging(encoder, few, shards)
    what = f"{count:,} sentences of the grammar"
    rate = {"sentences_per_second": round(count / measured.seconds)}
    moved = Sample((measured.moved / count * 1000,))
    rows = [
        Row(f"{what}: 2 × 1 thread", Sample((measured.seconds,)), "s", alone, Target("share", SHARE), rate),
        Row("bytes between processes per 1,000 sentences", moved, "bytes"),
        *measured.memory_rows(),
        Row(f"merge of {shards:,} shards, one process", Sample((merging.seconds,)), "s", beside=merging.beside),
    ]
    write(results, "cluster", "A study on a cluster", "one process", rows, f"torch {torch.__version__}")


def treebank(path: Path, count: int) -> Path:
    """Write sentences of the grammar to a file, in documents."""
    with path.open("w", encoding="utf-8") as file:
        for number, sentence in enumerate(grammar.corpus(count).sentences):
            begins = number % PER_DOCUMENT == 0
            file.write(as_conllu([replace(sentence, document=f"d{number // PER_DOCUMENT}" if begins else "")]))
    return path


def _seconds_alone(encoder: Encoder, path: Path) -> Sample:
    began = time.perf_counter()
    study(encoder, open_corpus(path))
    return Sample((time.perf_counter() - began,))


class _Measured:
    """One study on a cluster: its seconds, the bytes that workers have sent, and their memory on the way."""

    def __init__(self, client: Any, encoder: Encoder, path: Path) -> None:
        cluster = OnCluster(client)
        client.run(tasks.encoder_of, tasks.Model.opened_by(encoder))
        self._client, self._memory = client, list[dict[str, int]]()
        before = self._sent()
        began = time.perf_counter()
        cluster.study(encoder, cluster.open(path), progress=self._look)
        self.seconds = time.perf_counter() - began
        self.moved = self._sent() - before

    def _sent(self) -> int:
        return sum(self._client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    def _look(self, so_far: Progress) -> None:
        if len(self._memory) * MEMORY_EVERY <= so_far.done // 2000:
            self._memory.append(self._client.run(resident))

    def memory_rows(self) -> Iterator[Row]:
        """The largest memory of a worker, and whether it grows."""
        each = [max(at.values()) for at in self._memory]
        yield Row("memory of a worker, at most", Sample((max(each),)), "bytes")
        quarter = max(1, len(each) // 4)
        late, early = Sample((max(each[-quarter:]),)), Sample((max(each[quarter : 2 * quarter] or each),))
        yield Row("memory of a worker, last quarter beside second", late, "bytes", early, Target("share", FLAT))


def resident() -> int:
    """The memory that this process holds, in bytes."""
    status = Path("/proc/self/status").read_text("utf-8")
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) * 1024 if match else 0


# ---- the merge ------------------------------------------------------------------------------------------------------


class _Merging:
    """A merge in a tree, in one process: seconds of the merges alone, and the bytes of all that they were given."""

    def __init__(self) -> None:
        self.seconds, self.bytes, self.merges = 0.0, 0, 0
        self._levels: list[list[Sums]] = []

    def add(self, sums: Sums, level: int = 0) -> None:
        """Add what one shard has; FAN of them are merged."""
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(sums)
        if len(self._levels[level]) == FAN:
            together, self._levels[level] = self._levels[level], []
            self.add(self._merged(together), level + 1)

    def root(self) -> Sums:
        """All of them merged."""
        return self._merged([sums for level in self._levels for sums in level])

    def _merged(self, parts: Sequence[Sums]) -> Sums:
        began = time.perf_counter()
        together = merged(parts)
        self.seconds += time.perf_counter() - began
        self.bytes += sum(part.bytes for part in parts)
        self.merges += 1
        return together

    @property
    def beside(self) -> dict[str, Any]:
        """What explains the seconds."""
        return {"merges": self.merges, "bytes_merged": self.bytes}


def _merging(encoder: Encoder, path: Path, shards: int) -> _Merging:
    """Merge the sums of one shard as often as there are ``shards``, each with other documents and sentences."""
    first = tasks.measure(_order(encoder, path))
    merging = _Merging()
    for number in range(shards):
        merging.add(_moved(first, number, shards))
    merging.root()
    return merging


def _order(encoder: Encoder, path: Path) -> tasks.Order:
    from mha_viz.corpus.cutting import cut
    from mha_viz.study.cluster.layout import lay_out, rows_of, survey
    from mha_viz.study.plan import BATCH
    from mha_viz.study.run import PASSES

    one = cut(str(path), 10**9)
    layout = lay_out(path.name, [one], [[survey(shard, one.kind) for shard in one.shards]])
    rows = rows_of(layout, layout.parts[0], encoder.layers * encoder.heads)
    rows = rows._replace(blocks=tuple(row // 50 for row in range(len(rows.blocks))))  # as of a large corpus
    labels = layout.relations.names, layout.relations.upos
    return tasks.Order(layout.parts[0], 0, rows, *labels, tasks.Model.opened_by(encoder), PASSES, BATCH, "")


def _moved(sums: Sums, number: int, shards: int) -> Sums:
    """The sums as if of another shard: its documents are others, and so are the sentences of its cases."""
    blocks = sums.documents + number * 700 // shards
    arrays = dict(sums.arrays)
    for name, cases in sums.arrays.items():
        if name.endswith("/cases") and cases.dtype.names:
            moved = cases.copy()
            for column in ("first", "last"):
                moved[column] += number * 2000
            drawn = moved["slot"] % len(KINDS) == KINDS.index("random")
            moved["rank"][drawn] = np.random.default_rng(number).integers(0, 1 << 46, drawn.sum())
            arrays[name] = moved
    return replace(sums, documents=blocks, arrays=arrays)
