"""Recordings of a toy model at every saved training step.

A recording holds the attention on one text, the beginning of each head's W_Q, and the loss.

``python -m mha_viz.lab.toy_maps toy assets/toy The cat sleeps .`` writes the recording of the model in that folder on
that text to ``assets/toy_maps.npz``; with ``hidden`` or ``repeater``, to ``assets/hidden_maps.npz`` or
``assets/repeater_maps.npz``. The page animates the recordings.
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
from mha_viz.files.assets import asset_path
from mha_viz.lab.record import RECORDED_WEIGHTS

Floats = npt.NDArray[np.float32]
TOY = "toy"
HIDDEN = "hidden"  # the same model trained on masked words only
REPEATER = "repeater"


class ToyMaps(NamedTuple):
    """The recording of a toy model at each of its ``steps``; maps, queries and loss are float32.

    Attributes:
        words: the words of the text.
        steps: the recorded training steps.
        maps: attention on ``words``, without special tokens, [step, layer, head, query, key].
        queries: the first RECORDED_WEIGHTS numbers of a head's W_Q, row by row, [step, layer, head, number].
        loss: [step], on sentences that the model was not trained on: of hidden words or, for the repeater, of the next
            word.
    """

    words: tuple[str, ...]
    steps: npt.NDArray[np.int64]
    maps: Floats
    queries: Floats
    loss: Floats


def measure(forms: Sequence[str], folder: Path) -> ToyMaps:
    """Record the model in ``folder`` on the sentence whose words are ``forms``."""
    from mha_viz.lab import repeater, toy_model
    from mha_viz.models.getting import snapshots
    from mha_viz.models.reading.encoder import Encoder

    steps = snapshots.list_steps(folder)
    folders = [snapshots.unpack(folder, step) for step in steps]
    models = [Encoder.from_folder(snapshot_folder) for snapshot_folder in folders]
    is_repeater = models[0].family == "gpt2"
    measure_loss = repeater.measure_next_word_loss if is_repeater else toy_model.measure_masked_word_loss
    readings = [model.encode_words(list(forms)).by_words().content() for model in models]
    maps = np.stack([reading.weights for reading in readings])
    w_q = [[model.trace("", layer=n, words=forms).parameters.w_q for n in range(model.layers)] for model in models]
    # [step, layer, head, d_model, d_k]
    w_q_by_head = np.stack(np.split(np.array(w_q), models[0].heads, axis=-1), axis=2)
    queries = w_q_by_head.reshape(*maps.shape[:3], -1)[..., :RECORDED_WEIGHTS]
    losses = np.array([measure_loss(snapshot_folder) for snapshot_folder in folders], np.float32)
    return ToyMaps(tuple(forms), np.array(steps), maps, queries, losses)


def to_bytes(recording: ToyMaps) -> bytes:
    """Return the bytes of an NPZ file; maps and weights are stored with half precision."""
    file = io.BytesIO()
    half_precision = {name: getattr(recording, name).astype(np.float16) for name in ("maps", "queries")}
    np.savez_compressed(file, allow_pickle=False, **(recording._asdict() | half_precision))
    return file.getvalue()


@cache
def load_bundled(name: str = TOY) -> ToyMaps:
    """Load the bundled recording of TOY, HIDDEN or REPEATER. Raises ResultUnreadable."""
    try:
        with np.load(asset_path(f"{name}_maps.npz"), allow_pickle=False) as file:
            words = tuple(str(word) for word in file["words"])
            numbers = [file[name].astype(np.float32) for name in ("maps", "queries", "loss")]
            return ToyMaps(words, file["steps"], *numbers)
    except (OSError, ValueError, KeyError) as error:
        raise ResultUnreadable(
            "The recorded maps of the toy model cannot be read.", "Install the app again; the file comes with it."
        ) from error


if __name__ == "__main__":
    asset_path(f"{sys.argv[1]}_maps.npz").write_bytes(to_bytes(measure(sys.argv[3:], Path(sys.argv[2]))))
