"""What the pictures show and what they do not."""

from mha_viz.ui import about, frame

frame.view()
about.show_about()
