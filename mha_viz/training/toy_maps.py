"""The attention of a toy model at every saved step of its training, on one text, which the page plays.

``python -m mha_viz.training.toy_maps toy assets/toy The cat sleeps .`` writes the maps of that text, by the model in
that folder, to ``assets/toy_maps.npz``; with ``hidden`` or ``repeater``, to ``assets/hidden_maps.npz`` or
``assets/repeater_maps.npz``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.errors import ResultUnreadable
from mha_viz.files.assets import asset

TOY = "toy"
HIDDEN = "hidden"  # the same model trained on masked words alone
REPEATER = "repeater"


class ToyMaps(NamedTuple):
    """``maps`` [step, layer, head, query, key] of ``words``, float32, without special tokens; ``steps`` [step]."""

    words: tuple[str, ...]
    steps: npt.NDArray[np.int64]
    maps: npt.NDArray[np.float32]


def measure(forms: Sequence[str], folder: Path) -> ToyMaps:
    """The maps of a sentence, given as its words, by the model in a folder at each of its saved steps."""
    from mha_viz.models import snapshots
    from mha_viz.models.encoder import Encoder

    steps = snapshots.steps(folder)
    models = (Encoder.from_folder(snapshots.unpacked(folder, step)) for step in steps)
    readings = [model.encode_words(list(forms)).by_words().content() for model in models]
    return ToyMaps(tuple(forms), np.array(steps), np.stack([reading.weights for reading in readings]))


def to_bytes(recorded: ToyMaps) -> bytes:
    """The bytes of an NPZ file; maps are stored with half precision."""
    file = io.BytesIO()
    np.savez_compressed(
        file,
        allow_pickle=False,
        words=np.array(recorded.words),
        steps=recorded.steps,
        maps=recorded.maps.astype(np.float16),
    )
    return file.getvalue()


@cache
def shipped(name: str = TOY) -> ToyMaps:
    """The maps that come with the app, for TOY, HIDDEN or REPEATER. Raises ResultUnreadable."""
    try:
        with np.load(asset(f"{name}_maps.npz"), allow_pickle=False) as file:
            words = tuple(str(word) for word in file["words"])
            return ToyMaps(words, file["steps"], file["maps"].astype(np.float32))
    except (OSError, ValueError, KeyError) as error:
        raise ResultUnreadable(
            "The recorded maps of the toy model cannot be read.", "Install the app again; the file comes with it."
        ) from error


if __name__ == "__main__":
    asset(f"{sys.argv[1]}_maps.npz").write_bytes(to_bytes(measure(sys.argv[3:], Path(sys.argv[2]))))
