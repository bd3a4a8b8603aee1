"""Extend the product, either from a program or by rows of tables in the source.

* a measure per head, in tables, menus and profiles: :func:`register_metric` (``analysis/metrics.py``)
* a file format of readings: :func:`register_writer` (``figures/files/registry.py``)
* a quantity to draw instead of the weight: :func:`add_quantity` (``study/reading.py``)
* a rule of a recipe: a row of ``RULES`` (``analysis/rules.py``)
* a finding about a sentence: a row of ``KINDS`` (``analysis/unusual_heads.py``)

Pages and figures read the rows when they are imported, so add yours right after ``import mha_viz as mv``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mha_viz.analysis.metrics import metric as register_metric
from mha_viz.study.reading import add as add_quantity

if TYPE_CHECKING:
    from mha_viz.figures.files.registry import Writer

__all__ = ["add_quantity", "register_metric", "register_writer"]


def register_writer(suffix: str) -> Callable[[Writer], Writer]:
    """Register a writer for files that end in ``suffix``: ``@register_writer(".tsv")``.

    The decorated function writes a reading to an open file. Returns the decorator. Raises ValueError when a function is
    decorated, if the suffix has a writer already.
    """
    from mha_viz.figures.files import writer  # imported late: figures read the quantities, and more may be added first

    return writer(suffix)
