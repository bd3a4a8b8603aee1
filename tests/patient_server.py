"""``python -m tests.patient_server``: the server, which waits long for a Hub that answers on a busy machine, or that
holds a file back until a test lets it go."""

from __future__ import annotations

from mha_viz.models import hub
from mha_viz.serving.start import main

if __name__ == "__main__":
    hub.METADATA_SECONDS = hub.STALL_SECONDS = hub.SPARE_SECONDS = 600.0
    main(prog_name="tests.patient_server")
