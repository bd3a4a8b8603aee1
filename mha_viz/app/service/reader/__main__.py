"""The process that runs models: it answers requests from standard input, one at a time, until standard input closes.

Where the system allows it, the process has no network and can write only below the folders given as arguments.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import warnings
from typing import Any

from mha_viz import process
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.reader.models import Models
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.errors import MhaVizError, ReadingFailed, TextCutWarning
from mha_viz.models.getting import catalog
from mha_viz.process import log, messages
from mha_viz.process.confinement import confine, hide_memory
from mha_viz.process.messages import Array, Json
from mha_viz.process.orphans import end_with_parent
from mha_viz.process.template import serve_copies

_LOG = logging.getLogger(__name__)


def serve() -> None:
    """Answer requests until standard input closes. Output that libraries print goes to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server, which ends this process
    replies: Any = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warnings.simplefilter("ignore", TextCutWarning)  # the page shows it; the log must not contain visitors' words
    log.limit_records()
    models = Models()
    end_with_parent()
    while True:
        try:
            message, arrays = messages.receive(sys.stdin.buffer)
        except EOFError:
            return
        answer: list[Array] = []
        try:
            arguments, options = CODEC.parse(message["values"], arrays)
            value, answer = CODEC.pack(verbs.VERBS[message["verb"]](models, *arguments, **options))
            heading: Json = {"value": value}
        except MhaVizError as error:
            heading = messages.pack_error(error)
        except BaseException as error:  # any error of a library, including Rust panics, must fail this request only
            heading = messages.pack_error(_convert_error(error))
        messages.send(replies, heading | {"loaded": models.names, "used": str(models.last_folder or "")}, answer)
        gc.enable()  # garbage collection was off during the imports


def _convert_error(error: BaseException) -> ReadingFailed:
    """Log an error of a library, and return one that tells visitors what they can do."""
    if process.is_out_of_memory(error):
        _LOG.error("There was not enough memory for a request.")
        return ReadingFailed("There was not enough memory to read this.", verbs.MEMORY_REMEDY)
    _LOG.error("A request failed.", exc_info=error)
    detail = "" if catalog.is_hosted() else f": {type(error).__name__}: {str(error)[:200]}"
    return ReadingFailed(f"The model could not read this{detail}.", "Try another text or another model.")


def main() -> None:
    """Confine this process, then serve."""
    confine(sys.argv[1:])
    serve()


def serve_template() -> None:
    """Serve copies of this process, each of which is confined and then serves requests.

    The copies share the modules imported above, which are enough for a BERT. For a model of another family, the copy
    that opens it imports transformers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hide_memory()
    serve_copies(main)


if __name__ == "__main__":
    main()
