"""Open a corpus whose cases are measured, to be read by this process or by the workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mha_viz.study.cases import LocalCorpus, MeasurableCorpus

if TYPE_CHECKING:
    from distributed import Client


def open_measurable(source: Any, client: Client | None = None) -> MeasurableCorpus:
    """Open the corpus that ``source`` names.

    It is read by the workers of the Dask ``client`` or, without a client, by this process. Raises CorpusError and
    ClusterError.
    """
    if client is None:
        return LocalCorpus.from_source(source)
    from mha_viz.study.cluster.cases import ClusterCorpus  # Dask is an optional dependency
    from mha_viz.study.cluster.engine import ClusterEngine

    return ClusterCorpus.from_source(ClusterEngine(client), source)
