"""What the pictures show and what they do not."""

from mha_viz.app.about import page
from mha_viz.app.widgets import frame

frame.ensure_frame()
page.show_about()
