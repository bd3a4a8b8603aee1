"""Run a study in a child process, which loads the model, parses the file and returns the tables.

The keys of ``order``: ``folder``, ``name`` and ``revision`` identify the model; ``sums`` is the folder for intermediate
sums, or None; ``data`` has the bytes of the file, and is empty for the built-in sentences. The result contains the
files of the profile by path. It contains neither the name nor the words of an uploaded file; the evidence has only the
numbers of sentences and words.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mha_viz.analysis.profile import Profile
from mha_viz.corpus import grammar, reading
from mha_viz.corpus.uploads import NEUTRAL_NAME
from mha_viz.errors import ExportError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.process import children
from mha_viz.study.run import study


def work(order: dict[str, Any], report: children.ReportProgress, cancelled: children.IsCancelled) -> Mapping[str, str]:
    """Return the files of the requested profile.

    Raises the errors of :func:`mha_viz.study.run.study`, and ExportError when the sums cannot be saved.
    """
    corpus = reading.parse_file(order["data"], NEUTRAL_NAME) if order["data"] else grammar.corpus()
    encoder = Encoder.from_folder(Path(order["folder"]), name=order["name"], revision=order["revision"])
    sums = Path(order["sums"]) if order["sums"] else None
    try:
        profile = study(
            encoder, corpus, resume=sums, progress=lambda state: report(state.fraction), cancelled=cancelled
        )
    except OSError as error:
        raise ExportError(
            f"The sums of this study could not be saved on the server's disk: {error.strerror or error}.",
            "Tell the server’s administrator.",
        ) from error
    return _remove_words(profile).files()


def _remove_words(profile: Profile) -> Profile:
    """Return a profile without the words of the text."""
    lines = [mask_words(line) for line in profile.facts["left_out_first"]]
    return dataclasses.replace(profile, facts={**profile.facts, "left_out_first": lines}, sentences=())


def mask_words(line: str) -> str:
    """Mask the words of the text, quotations and names of chains, in a line about left-out text."""
    prefix, begin, quoted = line.partition("“")
    end = quoted.rfind("”")
    line = f"{prefix}“…{quoted[end:]}" if begin and end >= 0 else line
    return re.sub(r"Entity=\S*", "Entity=…", line)


if __name__ == "__main__":
    children.serve(work)
