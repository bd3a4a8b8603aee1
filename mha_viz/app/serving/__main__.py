"""Run ``python -m mha_viz.app.serving``."""

import signal
import sys

from mha_viz.app.serving.shutdown import end_server
from mha_viz.app.serving.streamlit_parts import PARTS
from mha_viz.errors import MhaVizError
from mha_viz.library_parts import check_parts

signal.signal(signal.SIGINT, end_server)  # before the imports, which take seconds
try:
    check_parts(PARTS)  # before any part of Streamlit is imported
except MhaVizError as error:
    print(f"mha-viz: {error}", file=sys.stderr)
    sys.exit(2)

from mha_viz.app.serving.start import main  # noqa: E402

main(prog_name="mha-viz serve --")
