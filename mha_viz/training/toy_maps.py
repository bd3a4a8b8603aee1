"""The attention of the toy model at every kept step of its training, on one sentence: what the page plays.

``python -m mha_viz.training.toy_maps The cat sleeps .`` writes the maps of that sentence to ``assets/toy_maps.npz``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.errors import ResultUnreadable
from mha_viz.files.assets import asset

FILE = "toy_maps.npz"
MODEL = "toy"


class ToyMaps(NamedTuple):
    """``maps`` [step, layer, head, query, key] of ``words``, float32, special tokens left out; ``steps`` [step]."""

    words: tuple[str, ...]
    steps: npt.NDArray[np.int64]
    maps: npt.NDArray[np.float32]


def measure(forms: Sequence[str]) -> ToyMaps:
    """The maps of a sentence, given as its words, by the model at each of its kept steps."""
    from mha_viz.models import snapshots
    from mha_viz.models.encoder import load

    steps = snapshots.steps(asset(MODEL))
    readings = [load(f"{MODEL}@{step}").encode_words(list(forms)).by_words().content() for step in steps]
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
def shipped() -> ToyMaps:
    """The maps that come with the app. Raises ResultUnreadable."""
    try:
        with np.load(asset(FILE), allow_pickle=False) as file:
            words = tuple(str(word) for word in file["words"])
            return ToyMaps(words, file["steps"], file["maps"].astype(np.float32))
    except (OSError, ValueError, KeyError) as error:
        raise ResultUnreadable(
            "The recorded maps of the toy model cannot be read.", "Install the app again; the file comes with it."
        ) from error


if __name__ == "__main__":
    asset(FILE).write_bytes(to_bytes(measure(sys.argv[1:])))
