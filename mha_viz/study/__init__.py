"""Measure a model over a corpus: batches, running sums, tables.

The only room on its floor that imports both models and analysis.
"""
