"""Measure over a corpus how heads select their keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.analysis.corpus_why import CorpusWhy, ShareSums, count_cells
from mha_viz.attention.shares import compute_variation
from mha_viz.corpus.limits import choose_step, count_every, take_every
from mha_viz.corpus.sources import Source, open_sentences
from mha_viz.corpus.treebank import Corpus, Gap
from mha_viz.models.getting import catalog
from mha_viz.models.reading.cores import one_blas_thread
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import ModelOrName, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.measures import ReadShard, ResamplingUnits, ShardTexts, read_plain_shard
from mha_viz.study.recipes import check_most
from mha_viz.study.run import Progress, measure_sums
from mha_viz.study.sums import PASSES, Sums

if TYPE_CHECKING:
    from distributed import Client

    from mha_viz.study.cluster.engine import ClusterEngine
    from mha_viz.study.cluster.layout import Layout

DEFAULT_SENTENCES = 100  # maximum number of sentences, by default
FORMAT = 2  # version of the sums and of how they are measured
NAME = "why"  # name of the sums


@with_bar("of the sentences")
def explain_corpus_scores(
    corpus: Source,
    model: ModelOrName = catalog.DEFAULT,
    *,
    most: int = DEFAULT_SENTENCES,
    resume: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    cancelled: Callable[[], bool] = lambda: False,
    client: Client | None = None,
) -> CorpusWhy:
    """Measure how each head selects its keys over a corpus, as :func:`mha_viz.explain_scores`, with 95 % intervals.

    Annotation is not needed. Sentences are weighted by the variance of their scores, as queries are on one text.

    Args:
        corpus: as for :func:`mha_viz.profile`.
        model: as for :func:`mha_viz.profile`.
        most: the maximum number of sentences to read: of N, every ⌈N / most⌉-th.
        resume: a folder for intermediate sums, so that a stopped measurement can resume.
        device: as for :func:`mha_viz.load`, where ``model`` is a name.
        progress: True for a bar, or a function that is called with the progress, in tokens or, with ``client``, in
            sentences.
        cancelled: returns True to stop the measurement in this process.
        client: a Dask client, whose workers read the files, as for :func:`mha_viz.profile`.

    Returns the shares (:class:`mha_viz.analysis.corpus_why.CorpusWhy`). Raises CorpusError, SettingError, ModelError,
    with the reason for families whose scores cannot be decomposed; Cancelled soon after ``cancelled`` returns True;
    ClusterError.

    >>> mv.explain_corpus_scores("repeats", "repeater", most=5).arrows().iloc[0][["from", "side"]].tolist()
    ['L0H0', 'key']
    """
    check_most(most)
    encoder, folder = load_one_stack(model, device), None if resume is None else Path(resume)
    if client is not None:
        from mha_viz.study.cluster.engine import ClusterEngine  # Dask is an optional dependency

        cluster = ClusterEngine(client)
        return explain_on_cluster(cluster, cluster.open(corpus), encoder, most, folder, as_callback(progress))
    source = open_sentences(corpus)
    step = choose_step(len(source.sentences), most)
    documents = [sentence.document for sentence in take_every(step, source.sentences)]
    kind = _make_kind(encoder, documents, step)
    sums = measure_sums([encoder], source, kind, resume=folder, progress=as_callback(progress), cancelled=cancelled)
    return _make_result(encoder, source.name, step, documents, sums)


def explain_on_cluster(
    cluster: ClusterEngine,
    layout: Layout,
    encoder: Encoder,
    most: int,
    folder: Path | None,
    progress: Callable[[Progress], None],
) -> CorpusWhy:
    """Measure a corpus, which the cluster has opened, with its workers.

    Raises the errors of :func:`explain_corpus_scores`.
    """
    spans = [span for part in layout.parts for span in part.documents]
    step = choose_step(layout.sentences, most)
    documents = take_every(step, [name for name, count in spans for _ in range(count)])
    sums = cluster.measure_sums(encoder, layout, folder, PASSES[:1], _make_kind(encoder, documents, step), progress)
    return _make_result(encoder, layout.name, step, documents, sums)


class ScoreSums(NamedTuple):
    """The sums of score variances over every ``step``-th sentence, for each of the ``units`` of resampling."""

    step: int
    units: ResamplingUnits
    has_cases: bool = False

    def definition(self) -> list[object]:
        """Return all fields, with the version of the sums."""
        return [NAME, FORMAT, *self]

    def count_sentences(self, count: int, first: int) -> int:
        """Count every ``step``-th sentence."""
        return count_every(self.step, count, first)

    def shard(self, encoder: Encoder, corpus: Corpus | Gap, first: int) -> ReadShard:
        """Return the sentences without their annotation."""
        return read_plain_shard(encoder, corpus, first, self.step, self.units)

    def texts(self, shard: ReadShard) -> dict[str, ShardTexts]:
        """Return the sentences, in batches of one."""
        lengths = [len(pieces) if pieces else 0 for pieces in shard.plan.sentences]
        make_batches = lambda numbers, *_: [(number,) for number in numbers if lengths[number]]  # noqa: E731
        return {"sentences": ShardTexts(lengths, range(len(lengths)), make_batches, _add_variations)}


def _make_kind(encoder: Encoder, documents: Sequence[str], step: int) -> ScoreSums:
    """Return the sums to measure over sentences of these documents."""
    return ScoreSums(step, ResamplingUnits.choose(documents, count_cells(encoder.layers * encoder.heads)))


def _add_variations(
    encoder: Encoder, shard: ReadShard, text_numbers: Sequence[int], sums: Sums, pass_name: str
) -> None:
    """Add the variations of scores on some sentences."""
    share_sums = ShareSums(len(sums.documents), encoder.layers, encoder.heads)
    rows = sums.indices("document", [shard.labels[number] for number in text_numbers])
    for number, row in zip(text_numbers, rows, strict=True):
        pieces = shard.plan.sentences[number]
        assert pieces is not None
        with one_blas_thread:
            layers = encoder.iter_parts(pieces, range(encoder.layers))
            share_sums.add(row, [compute_variation(trace, parts) for trace, parts in layers])
    sums.arrays |= {f"{pass_name}/{NAME}/{quantity}": array for quantity, array in share_sums.sums.items()}


def _make_result(encoder: Encoder, name: str, step: int, documents: Sequence[str], sums: Sums) -> CorpusWhy:
    """Return the shares from the sums of all sentences."""
    share_sums = ShareSums(len(sums.documents), encoder.layers, encoder.heads, sums.select(f"{PASSES[0]}/{NAME}"))
    counted = sums.counted
    count, left_out = len({*documents}), counted["left_out"]
    rows, composed = tuple(share_sums.rows()), tuple(share_sums.composed())
    return CorpusWhy(encoder.name, encoder.revision, name, counted["sentences"], step, count, left_out, rows, composed)
