"""A study in a process of its own: the model is loaded here, the file is read here, and the tables go out.

The order is a line of JSON, then the bytes of the file, none for the built-in sentences. ``folder``, ``name`` and
``revision`` are those of the model; ``sums`` is the folder where unfinished sums are kept, or null. The answer is JSON:
the files of the profile by their paths. The name of an uploaded file and its words are not in it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from mha_viz import apart
from mha_viz.analysis.profile import Profile
from mha_viz.corpus import grammar, treebank
from mha_viz.errors import ExportError
from mha_viz.models.encoder import Encoder
from mha_viz.study.run import study
from mha_viz.uploads import NEUTRAL


def measured(order: bytes, tell: apart.Tell, stop: apart.Stop) -> bytes:
    """The files of the profile that is asked for. Raises as :func:`mha_viz.study.study`, and ExportError when the sums
    cannot be kept."""
    header, _, data = order.partition(b"\n")
    asked: dict[str, Any] = json.loads(header)
    corpus = treebank.read(data, NEUTRAL) if data else grammar.corpus()
    encoder = Encoder.from_folder(Path(asked["folder"]), name=asked["name"], revision=asked["revision"])
    sums = Path(asked["sums"]) if asked["sums"] else None
    try:
        profile = study(encoder, corpus, resume=sums, progress=lambda so_far: tell(so_far.fraction), cancelled=stop)
    except OSError as error:
        raise ExportError(
            f"The sums of this study could not be kept on the server's disk: {error.strerror or error}.",
            "Tell whoever runs the server.",
        ) from error
    return json.dumps(_discreet(profile).files()).encode()


def _discreet(profile: Profile) -> Profile:
    lines = [without_words(line) for line in profile.facts["left_out_first"]]
    return dataclasses.replace(profile, facts={**profile.facts, "left_out_first": lines})


def without_words(line: str) -> str:
    """What was left out and where, without what stands there: quoted words, and names of chains."""
    return re.sub(r"Entity=\S*", "Entity=…", re.sub(r"“.*”", "“…”", line))


if __name__ == "__main__":
    apart.serve(measured)
