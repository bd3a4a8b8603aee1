"""A corpus through a model: batches, running sums, tables. The one room that knows models and analysis together."""
