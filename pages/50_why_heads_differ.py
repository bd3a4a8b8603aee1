"""The training lab: small trainings that show what makes heads differ."""

from mha_viz.ui import frame
from mha_viz.ui.lab import page as lab

frame.view()
lab.show_lab()
