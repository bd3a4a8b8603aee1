"""``python -m mha_viz.serving``."""

import signal

from mha_viz.serving.ends import end_server

signal.signal(signal.SIGINT, end_server)  # before libraries are imported, for seconds

from mha_viz.serving.start import main  # noqa: E402

main(prog_name="mha-viz serve --")
