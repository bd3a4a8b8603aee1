"""A study in a child process, which loads the model, parses the file and returns the tables.

The request is a line of JSON followed by the bytes of the file; without bytes the built-in sentences are measured.
``folder``, ``name`` and ``revision`` identify the model; ``sums`` is the folder for intermediate sums, or null. The
answer is JSON: the files of the profile by path. It contains neither the name nor the words of an uploaded file: of
the evidence, only the numbers of sentences and words.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from mha_viz.analysis.profile import Profile
from mha_viz.corpus import grammar, reading
from mha_viz.corpus.uploads import NEUTRAL
from mha_viz.errors import ExportError
from mha_viz.models.encoder import Encoder
from mha_viz.process import apart
from mha_viz.study.run import study


def work(order: bytes, report: apart.Tell, cancelled: apart.Stop) -> bytes:
    """The files of the requested profile. Raises like :func:`mha_viz.study.run.study`, and ExportError when the sums
    cannot be saved."""
    header, _, data = order.partition(b"\n")
    request: dict[str, Any] = json.loads(header)
    corpus = reading.parse_file(data, NEUTRAL) if data else grammar.corpus()
    encoder = Encoder.from_folder(Path(request["folder"]), name=request["name"], revision=request["revision"])
    sums = Path(request["sums"]) if request["sums"] else None
    try:
        profile = study(
            encoder, corpus, resume=sums, progress=lambda so_far: report(so_far.fraction), cancelled=cancelled
        )
    except OSError as error:
        raise ExportError(
            f"The sums of this study could not be saved on the server's disk: {error.strerror or error}.",
            "Tell the server’s administrator.",
        ) from error
    return json.dumps(_discreet(profile).files()).encode()


def _discreet(profile: Profile) -> Profile:
    lines = [without_words(line) for line in profile.facts["left_out_first"]]
    return dataclasses.replace(profile, facts={**profile.facts, "left_out_first": lines}, sentences=())


def without_words(line: str) -> str:
    """A line about what was left out, without the words of the text: quotations and names of chains are masked."""
    before, begin, quoted = line.partition("“")
    end = quoted.rfind("”")
    line = f"{before}“…{quoted[end:]}" if begin and end >= 0 else line
    return re.sub(r"Entity=\S*", "Entity=…", line)


if __name__ == "__main__":
    apart.serve(work)
