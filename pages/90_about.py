"""Explain the pictures and their limits."""

from mha_viz.app.about import page
from mha_viz.app.widgets import frame

frame.ensure_frame()
page.show_about()
