"""The training lab: small trainings that show what makes heads differ."""

from mha_viz.ui import frame, lab

frame.view()
lab.show()
