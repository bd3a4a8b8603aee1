"""``python -m mha_viz.cli``."""

from mha_viz.cli import run

run()
