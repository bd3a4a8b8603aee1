"""``python -m mha_viz.serving``."""

from mha_viz.serving.start import main

main(prog_name="mha-viz serve --")
