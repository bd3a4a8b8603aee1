"""Show the training lab: small trainings that show what makes heads differ."""

from mha_viz.app.lab import page as lab
from mha_viz.app.widgets import frame

frame.ensure_frame()
lab.show_lab()
