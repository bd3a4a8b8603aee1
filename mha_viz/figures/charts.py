"""Plotly, for every module that draws charts; nothing else imports it.

Plotly and the libraries that it uses take pandas and pyarrow from ``sys.modules`` without importing them, so they may
find one that another thread is still importing. This module imports pandas, which imports pyarrow, completely before
the first chart; a thread that imports this module meanwhile waits until that is done.
"""

from __future__ import annotations

import pandas  # noqa: F401 (first, and whole)
import plotly.graph_objects as go

__all__ = ["go"]
