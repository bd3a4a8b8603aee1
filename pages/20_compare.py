"""Heads side by side: any layer, sentence and model, on one scale."""

from mha_viz.ui import address, frame
from mha_viz.ui.compare import page as compare

frame.view()
compare.show_comparison(address.url())
