"""The picture of the first visit was computed in advance: it equals what the model computes now."""

from __future__ import annotations

import numpy as np

from mha_viz.app.service.caches import load_first_reading
from mha_viz.app.url.address import load_examples
from mha_viz.models.reading.encoder import Encoder


def test_the_stored_reading_is_the_live_one(minilm: Encoder) -> None:
    stored, live = load_first_reading(), minilm.encode(load_examples()[0]["text"])
    assert stored.text == live.text
    assert (stored.model, stored.revision) == (live.model, live.revision)
    assert np.abs(stored.weights - live.weights).max() <= 1e-5
