"""Heads side by side: any layer, sentence and model, on one scale."""

from mha_viz.ui import compare, explore, frame

frame.view()
compare.show(explore.asked())
