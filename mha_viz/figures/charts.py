"""Plotly, for every module that draws charts; nothing else imports it.

Plotly and the libraries below it take pandas and pyarrow from ``sys.modules`` without importing them, and so may meet
one that another thread is half way through importing. Here pandas, which imports pyarrow, is whole before the first
chart: whoever imports this module while another thread does waits until it is done.
"""

from __future__ import annotations

import pandas  # noqa: F401 (first, and whole)
import plotly.graph_objects as go

__all__ = ["go"]
