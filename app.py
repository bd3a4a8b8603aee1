"""The app: settings, then the page that the URL names."""

from mha_viz.ui import frame

frame.show_page()
