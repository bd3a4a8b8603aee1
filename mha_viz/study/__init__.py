"""A corpus through a model: batches, running sums, tables. The one room that knows models and analysis together."""

from mha_viz.study.run import Progress, study

__all__ = ["Progress", "study"]
