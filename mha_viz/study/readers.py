"""Open a corpus whose cases are measured, to be read by this process or by the workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mha_viz.study.cases import Readable, ReadHere

if TYPE_CHECKING:
    from distributed import Client


def readable(source: Any, client: Client | None = None) -> Readable:
    """Return the corpus that ``source`` names, to be read by this Dask client's workers or, without a client, by this
    process.

    Raises CorpusError and ClusterError.
    """
    if client is None:
        return ReadHere.of(source)
    from mha_viz.study.cluster.cases import ReadByWorkers  # without Dask, this process measures
    from mha_viz.study.cluster.engine import OnCluster

    return ReadByWorkers.of(OnCluster(client), source)
